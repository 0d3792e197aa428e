"""Unary encoding packs exact coins."""

import numpy as np
import pytest
from tests.randomize.chosen import Chosen
from tests.statistics import expect_broken, expect_law

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.randomize.sampling.coins import coins, row_sizes
from dovetail.randomize.unary import Unary
from dovetail_protocol.exact_thresholds import WORD


def test_coins_compare_all_64_bits() -> None:
    mass = 0x80_00000000000123
    for rest, expected in ((0x122, True), (0x123, False), (0x124, False)):
        assert coins(mass, 1, Chosen([0x80, rest << 8 | 0xFF])).tolist() == [expected]
    assert coins(mass, 2, Chosen([0x817F])).tolist() == [True, False]
    assert coins(WORD // 2, 2, Chosen([0x7F80])).tolist() == [False, True]  # a tie that needs no more bits
    assert not coins(0, 100, Chosen([0] * 13)).any()


@pytest.mark.parametrize("mass", [1 << 60, WORD // 3, WORD // 2 + 1, WORD - 1])
def test_coins_have_their_probability(mass: int, rng: Entropy) -> None:
    heads = int(coins(mass, 200_000, rng).sum())
    expect_law([heads, 200_000 - heads], [mass / WORD, 1 - mass / WORD])


def test_reports_are_packed_in_the_order_of_packbits(rng: Entropy) -> None:
    randomizer = Unary(k=11, epsilon=80.0, encoding="symmetric")  # the noise is negligible
    reports = randomizer.randomize(np.arange(11), rng)
    np.testing.assert_array_equal(reports, np.packbits(np.eye(11, dtype=bool), axis=1))
    np.testing.assert_array_equal(randomizer.tally(reports), np.ones(11))


@pytest.mark.parametrize("n", [0, 1, 254, 255, 256, 1000])
@pytest.mark.parametrize("k", [2, 8, 9, 37])
def test_tallies_count_the_bits(n: int, k: int, rng: Entropy) -> None:
    randomizer = Unary(k=k, epsilon=1.0)
    reports = randomizer.randomize(np.arange(n) % k, rng)
    np.testing.assert_array_equal(randomizer.tally(reports), np.unpackbits(reports, axis=1)[:, :k].sum(axis=0))
    np.testing.assert_array_equal(randomizer.tally(np.full_like(reports, 255) & _padding(k)), np.full(k, n))


def _padding(k: int) -> np.ndarray:
    return np.packbits(np.ones(k, dtype=bool))


def test_bits_set_in_the_padding_are_refused() -> None:
    with pytest.raises(DataError, match="zero from bit 3; 1 of 2"):
        Unary(k=3, epsilon=1.0).check_reports(np.array([[0b10100000], [0b00010000]], dtype=np.uint8))


def test_the_dense_channel_is_refused_for_many_symbols() -> None:
    assert Unary(k=10, epsilon=1.0).channel().shape == (10, 1024)
    with pytest.raises(UnsupportedError, match="bit_channel"):
        Unary(k=20, epsilon=1.0).channel()


@pytest.mark.parametrize("encoding", ["optimized", "symmetric"])
def test_every_bit_has_the_law_of_the_bit_channel(encoding: str, rng: Entropy) -> None:
    randomizer = Unary(k=40, epsilon=1.0, encoding=encoding)  # type: ignore[arg-type]
    bits = np.unpackbits(randomizer.randomize(np.full(50_000, 17), rng), axis=1)
    for x in (0, 17, 39):
        ones = int(bits[:, x].sum())
        expect_law([50_000 - ones, ones], randomizer.bit_channel().matrix()[int(x == 17)])


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ParameterError, match="`encoding` must be"):
        Unary(k=3, epsilon=1.0, encoding="onehot")  # type: ignore[arg-type]


def test_swapped_bit_probabilities_are_caught(rng: Entropy) -> None:
    randomizer = Unary(k=3, epsilon=1.0)
    ones = int(np.unpackbits(randomizer.randomize(np.zeros(50_000, dtype=int), rng), axis=1)[:, 0].sum())
    expect_broken([50_000 - ones, ones], randomizer.bit_channel().matrix()[0])


def test_the_set_bits_of_a_packed_report_are_counted_one_by_one(rng: Entropy) -> None:
    bits = np.unpackbits(rng.narrow(50 * 3, np.uint8).reshape(50, 3), axis=1)
    np.testing.assert_array_equal(row_sizes(np.packbits(bits, axis=1)), bits.sum(axis=1))


@pytest.mark.parametrize("bit", range(3))
def test_no_bit_of_the_padding_marks_a_device(bit: int) -> None:
    with pytest.raises(DataError, match="zero from bit 5"):
        Unary(k=5, epsilon=1.0).tally(np.array([[1 << bit]], dtype=np.uint8))


def test_bits_beyond_the_last_value_are_no_report() -> None:
    encoded = np.array([[0b10100000], [0b10100001], [0b00010000]], dtype=np.uint8)
    _, valid = Unary(k=3, epsilon=1.0).decode_bytes(encoded)
    assert valid.tolist() == [True, False, False]
