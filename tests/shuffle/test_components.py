"""LehmerCode, blocks and the pieces of a line: exact where it is close, and the same for every component."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.statistics import expect_broken, expect_law

from dovetail.core.entropy import Entropy, Words, system_entropy
from dovetail.core.errors import DataError
from dovetail.shuffle.fitting.components import PartitionedOrder, exchangeable, partition_reference_order
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.sampling.lehmer_code import ERROR, draw_lehmer_code, minus_logs
from dovetail.shuffle.sampling.permutations import permute_within_blocks
from dovetail_protocol.exact_thresholds import GeometricLaw, exp_bracket


class Scripted(Entropy):
    """Hands out given words, then words of an alternating pattern; counts them."""

    provenance = "simulation"

    def __init__(self, *script: int) -> None:
        self.script = list(script)

    def words(self, count: int) -> Words:
        given = self.script[:count]
        self.script = self.script[count:]
        return np.array(given + [0x5555555555555555] * (count - len(given)), dtype=np.uint64)


@pytest.mark.parametrize("theta", [1e-3, 0.04, 0.7, 3.0])
@pytest.mark.parametrize("k", [0, 1, 5, 11])
def test_a_word_next_to_a_step_is_decided_as_exact_arithmetic_says(theta: float, k: int) -> None:
    law = GeometricLaw(Fraction(theta))
    step = law.thresholds(k + 1)[k]  # a word below certainly means at most k, one above certainly more
    for word, wanted in ((step - 1, k), (step, None), (step + 1, k + 1)):
        entropy = Scripted(word)
        drawn = draw_lehmer_code(np.array([0, 1]), np.array([theta]), entropy, beyond=10**6)[0]
        uniform = word if wanted is not None else (word << 64) + 0x5555555555555555
        assert drawn == law.resolve(uniform, 64 if wanted is not None else 128)
        assert wanted is None or word == 2**64 or drawn == wanted or word >= 2**64


@pytest.mark.parametrize("theta", [1e-9, 1e-7, 3e-7])
def test_a_flat_digit_next_to_its_step_is_decided_as_exact_arithmetic_says(theta: float) -> None:
    """With theta m < 1 the first word holds k and the first half of U, the second word the other half."""
    bound = 10**6
    for k in (1, 999, 999_999):
        low = (k * 2**32 + bound - 1) // bound + 1  # Lemire: the low half that means k
        step = math.floor(2**64 * (1 - exp_bracket(-k * Fraction(theta))[1]))
        for uniform in (step - 2**20, step - 1, step + 1, step + 2**20):
            first, second = ((uniform >> 32) << 32) | low, (uniform & 0xFFFFFFFF) << 32
            marker = (0xFFFFFFFF << 32) | 5  # accepted at once: k = 0
            drawn = draw_lehmer_code(
                np.array([0, 1]), np.array([theta]), Scripted(first, second, marker), beyond=bound - 1
            )[0]
            assert drawn == (k if uniform >= step else 0)


def test_the_logarithm_keeps_its_stated_error() -> None:
    random = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    small = random >> (random % np.uint64(64))
    few = np.arange(5000, dtype=np.uint64)
    words = np.concatenate((random, small, ~small, few, ~few))
    words = words[words > 0]
    exact = 64 * np.log(np.longdouble(2)) - np.log(words.astype(np.longdouble))  # 64 bits of mantissa
    near = words > np.uint64(2**63)
    exact[near] = -np.log1p(-((~words[near]).astype(np.longdouble) + 1) / np.longdouble(2) ** 64)
    mine = words.astype(np.float64)
    minus_logs(mine, np.empty(mine.size), mine.size)
    assert (np.abs(mine - exact) <= ERROR * (1 + exact)).all()


def test_thetas_of_many_sizes_side_by_side_follow_their_own_laws(rng: Entropy) -> None:
    draws, thetas = 100_000, np.array([0.0, 1e-12, 0.2, 1.1, 40.0])
    starts = np.arange(0, 3 * 5 * draws + 1, 3)
    table = draw_lehmer_code(starts, np.tile(thetas, draws), rng).reshape(draws, 5, 3)
    assert not table[:, 0].any() and not table[:, :, 2].any()  # theta = 0 is left to a uniform shuffle
    for block, theta in enumerate(thetas[1:], start=1):
        for place, bound in ((0, 3), (1, 2)):
            law = np.exp(-theta * np.arange(bound))
            expect_law(np.bincount(table[:, block, place], minlength=bound), law / law.sum())
    for block, theta in ((2, 0.2), (3, 1.1)):
        law = np.exp(-1.2 * theta * np.arange(3))
        expect_broken(np.bincount(table[:, block, 0], minlength=3), law / law.sum())


def test_a_digit_without_an_end_is_geometric(rng: Entropy) -> None:
    drawn = draw_lehmer_code(np.array([0, 200_000]), np.array([0.4]), rng, beyond=2**31 - 200_001)
    counts = np.bincount(np.minimum(drawn, 12), minlength=13)
    law = -np.expm1(-0.4) * np.exp(-0.4 * np.arange(12))
    expect_law(counts, np.append(law, math.exp(-0.4 * 12)))


@pytest.mark.parametrize("sizes", [[3, 1, 2], [1, 1], [4]])
def test_blocks_are_permuted_uniformly_and_independently(sizes: list[int], rng: Entropy) -> None:
    starts = np.concatenate(([0], np.cumsum(sizes)))
    draws = 30_000
    shifted = np.concatenate([starts[:-1] + starts[-1] * t for t in range(draws)] + [[starts[-1] * draws]])
    table = permute_within_blocks(shifted, rng).reshape(draws, -1) % starts[-1]
    codes = np.unique(table, axis=0, return_counts=True)[1]
    count = math.prod(math.factorial(size) for size in sizes)
    assert codes.size == count
    expect_law(codes, np.full(count, 1 / count))
    if count > 1:
        expect_broken(np.bincount(np.zeros(draws, dtype=int), minlength=count), np.full(count, 1 / count))


def test_a_line_holds_components_and_atoms_together() -> None:
    groups = Groups.from_lists([[0, 2, 4, 6], [4, 6, 8], [1, 3]], 10)
    for reference in (None, np.arange(10)[::-1]):
        line, provenance = partition_reference_order(groups, reference=reference)
        assert sorted(line.sizes.tolist()) == [1, 1, 1, 2, 5] and provenance.reference
        atoms = {tuple(sorted(cell)) for cell in np.split(line.order, line.atom_starts[1:-1])}
        assert atoms == {(0, 2), (4, 6), (8,), (1, 3), (5,), (7,), (9,)}


def test_only_atoms_are_uniform_where_an_order_is_dispersed_however_little() -> None:
    line, _ = partition_reference_order(Groups.from_lists([[0, 2, 4, 6], [4, 6, 8], [1, 3]], 10))
    little = np.where(line.sizes > 1, 1e-6, 0.0)
    assert exchangeable(line, little).tolist() == line.atom_starts.tolist()
    assert exchangeable(line, 0.0 * little).tolist() == line.component_starts.tolist()


def test_a_line_of_nothing_but_strangers_stays() -> None:
    line, _ = partition_reference_order(Groups.from_lists([], 4))
    assert line.sizes.tolist() == [1, 1, 1, 1] and not line.has_several_atoms.any()


def test_a_line_needs_a_permutation() -> None:
    with pytest.raises(DataError, match="`order`"):
        PartitionedOrder.single_component(np.array([0, 0, 1]))


def test_nobody_moves_on_a_still_line() -> None:
    line = PartitionedOrder.singletons(5)
    assert permute_within_blocks(line.atom_starts, system_entropy()).tolist() == [0, 1, 2, 3, 4]


def test_a_word_beyond_the_largest_multiple_is_not_used_for_a_block() -> None:
    """2^64 - 1 is a multiple of 3, and used it would make place 0 likelier than the others."""
    shuffled = permute_within_blocks(np.array([0, 3]), Scripted(2**64 - 1, 1, 1))
    assert shuffled.tolist() == [0, 2, 1]
    assert permute_within_blocks(np.array([0, 3]), Scripted(2**64 - 2, 1)).tolist() == [0, 1, 2]
