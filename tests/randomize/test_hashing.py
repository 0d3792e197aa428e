"""Local hashing counts support by the same hash that the device used."""

import numpy as np
import pytest

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.randomize.local_hashing import LocalHashing


def by_definition(a: int, b: int, x: int, g: int) -> int:
    return (((a * x + b) % (1 << 64)) >> 32) * g >> 32


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 11.0])
def test_the_hash_is_the_documented_formula(epsilon: float, rng: Entropy) -> None:
    randomizer = LocalHashing(k=1 << 31, epsilon=epsilon)
    values = np.array([0, 1, 12345, (1 << 31) - 1])
    seeds = rng.words(8).reshape(-1, 2)
    expected = [by_definition(int(a), int(b), int(x), randomizer.g) for (a, b), x in zip(seeds, values, strict=True)]
    assert randomizer.hash(values, seeds).tolist() == expected


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 11.0])
def test_the_tally_counts_symbols_whose_hash_is_the_report(epsilon: float, rng: Entropy) -> None:
    randomizer = LocalHashing(k=30, epsilon=epsilon)
    reports = randomizer.randomize(np.arange(300) % 30, rng)
    everyone = np.arange(30)
    support = [randomizer.hash(everyone, row[None, :2].repeat(30, axis=0)) == row[2] for row in reports]
    np.testing.assert_array_equal(randomizer.tally(reports), np.sum(support, axis=0))


def test_words_at_the_edge_of_a_bucket_are_counted_where_they_hash() -> None:
    randomizer = LocalHashing(k=2, epsilon=1.0)
    g = randomizer.g
    edges = [-((-y << 32) // g) << 32 for y in range(1, g)]
    rows = [(0, (edge + shift) % (1 << 64), y) for edge in [*edges, 0] for shift in (-1, 0, 1) for y in range(g)]
    for row in rows:
        support = randomizer.tally(np.array([row], dtype=np.uint64))
        assert support.tolist() == [int(by_definition(row[0], row[1], x, g) == row[2]) for x in (0, 1)], row


def test_the_seed_channel_is_the_law_for_one_hash_function(rng: Entropy) -> None:
    randomizer = LocalHashing(k=6, epsilon=2.0)
    a, b = (int(word) for word in rng.words(2))
    rows = randomizer.seed_channel(a, b).matrix()
    for x in range(6):
        assert int(rows[x].argmax()) == by_definition(a, b, x, randomizer.g)
        assert rows[x].max() == pytest.approx(randomizer.hash_channel().p)


def test_matrices_that_cannot_exist_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="seed_channel"):
        LocalHashing(k=3, epsilon=1.0).channel()
    with pytest.raises(UnsupportedError, match="hash_channel"):
        LocalHashing(k=1 << 30, epsilon=1.0).seed_channel(1, 2)


def test_reports_with_a_bucket_beyond_g_are_refused() -> None:
    with pytest.raises(DataError, match=r"y in 0\.\.3; 1 of 1"):
        LocalHashing(k=3, epsilon=1.0).check_reports(np.array([[1, 2, 4]], dtype=np.uint64))


@pytest.mark.exhaust
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 5.0])
def test_a_hash_at_the_edge_of_its_bucket_is_counted_where_it_belongs(epsilon: float) -> None:
    randomizer = LocalHashing(k=2, epsilon=epsilon)
    for bucket in range(randomizer.g):
        edge = -(-(bucket << 32) // randomizer.g)
        for high in {max(edge - 1, 0), edge}:  # the last high half before the bucket, and its first
            seeds = np.array([[0, high << 32]], dtype=np.uint64)
            own = int(randomizer.hash(np.array([0]), seeds)[0])
            for named in range(randomizer.g):
                report = np.array([[0, high << 32, named]], dtype=np.uint64)
                assert randomizer.tally(report).tolist() == [int(named == own)] * 2
