"""Sentence privacy by listing all documents, of the weights and coins that the samplers use."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from tests.statistics import expect_broken, expect_law, rng_of
from tests.text.small import PAIR, SENTENCES, SETS, candidates, documents, neighbours

from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.sampler import Exponential, IntegerBudget, Levels, PermuteAndFlip, flip, power_bounds
from dovetail.text.utilities import SELECTIONS, UTILITIES

each_utility = pytest.mark.parametrize("utility", UTILITIES)
each_selection = pytest.mark.parametrize("selection", SELECTIONS)
each_set = pytest.mark.parametrize("public", ["pair", "cross", pytest.param("uneven", marks=pytest.mark.exhaust)])


def exact_law(selection: str, levels: Levels, base: int) -> list[Fraction]:
    """What the sampler's coins say, as fractions."""
    heads = [Fraction(base, base + 1) ** int(one) for one in levels]
    if selection == "exponential":  # uniform proposals, of which the first with heads is taken
        return [one / sum(heads) for one in heads]
    law = [Fraction(0)] * len(heads)
    orders = list(permutations(range(len(heads))))
    for order in orders:
        missed = Fraction(1)
        for one in order:
            law[one] += missed * heads[one] / len(orders)
            missed *= 1 - heads[one]
    return law


def worst_loss(mechanism: DeepCandidate, selection: str, k: int) -> tuple[float, float]:
    """Largest log ratio over neighbours, and over documents with one sentence more."""
    law = {
        document: exact_law(selection, mechanism.levels(SENTENCES[list(document)]), mechanism.budget.base)
        for size in (k, k + 1)
        for document in documents(size)
        if size == k or k == 1
    }
    ratio = lambda a, b: max(abs(math.log(p / q)) for p, q in zip(law[a], law[b], strict=True))  # noqa: E731
    same = max(ratio(one, other) for one in law if len(one) == k for other in neighbours(one))
    longer = [(one, tuple(sorted((*one, more)))) for one in law if len(one) == k for more in range(len(SENTENCES))]
    return same, max((ratio(*pair) for pair in longer if pair[1] in law), default=0.0)


@each_utility
@each_selection
@each_set
@pytest.mark.parametrize("epsilon", [pytest.param(0.5, marks=pytest.mark.exhaust), 3.0])
def test_no_replaced_sentence_tells_more_than_epsilon(
    utility: str, selection: str, public: str, epsilon: float
) -> None:
    mechanism = DeepCandidate.of(SETS[public], epsilon=epsilon, utility=utility, selection=selection)
    same, longer = worst_loss(mechanism, selection, 1)
    assert mechanism.guarantee.epsilon == epsilon and same <= epsilon * (1 + 1e-12)
    assert longer <= epsilon / 2 * (1 + 1e-12)


@each_utility
@each_selection
@pytest.mark.exhaust
def test_nor_in_documents_of_two_sentences(utility: str, selection: str) -> None:
    mechanism = DeepCandidate.of(SETS["uneven"], epsilon=1.0, utility=utility, selection=selection)
    assert worst_loss(mechanism, selection, 2)[0] <= 1.0 + 1e-12


@pytest.mark.parametrize(("selection", "epsilon", "k"), [("exponential", 1.0, 8), ("exponential", 3.0, 3),
                                                         ("permute-and-flip", 1.0, 2)])  # fmt: skip
@pytest.mark.parametrize("utility", ["clipped", "approval", "votes", "inner"])
def test_some_pair_of_documents_reaches_nine_tenths_of_epsilon(
    selection: str, epsilon: float, k: int, utility: str
) -> None:
    public = candidates([(4096, 0), (-4096, 0)], half_range=4096 * 4096)
    mechanism = DeepCandidate.of(public, epsilon=epsilon, utility=utility, selection=selection)
    right, left = (4096, 0), (-4096, 0)
    laws = []
    # the better candidate leads by as much as one sentence moves, or its own law is nearly flat
    for against in range(k + 1):
        rows = np.array([left] * against + [right] * (k - against), dtype=np.int16)
        laws.append(exact_law(selection, mechanism.levels(rows), mechanism.budget.base))
    reached = max(abs(math.log(p / q)) for a, b in pairwise(laws) for p, q in zip(a, b, strict=True))
    assert 0.9 * epsilon < reached <= epsilon


@each_utility
def test_scores_of_neighbours_differ_by_no_more_than_the_spread(utility: str) -> None:
    for public in SETS.values():
        made = UTILITIES[utility].of(public)
        score = {one: made.scores(SENTENCES[list(one)]) for one in [(), *documents(1), *documents(2)]}
        for one in documents(1):
            changes = [score[other] - score[one] for other in neighbours(one)]
            assert max(int(np.ptp(change)) for change in changes) <= made.spread
            assert 2 * int(np.ptp(score[one] - score[()])) <= made.spread
        for one in documents(2):
            for part in {one[:1], one[1:]}:
                assert 2 * int(np.ptp(score[one] - score[part])) <= made.spread


def test_seven_tenths_of_the_diameter_would_promise_too_little() -> None:
    made = UTILITIES["inner"].of(PAIR)
    change = made.scores(np.array([(4096, 0)], dtype=np.int16)) - made.scores(np.array([(-4096, 0)], dtype=np.int16))
    assert int(np.ptp(change)) > 0.7 * made.spread
    assert int(np.ptp(change)) <= made.spread


@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 1.0, 3.0, 10.0, 30.0, 700.0])
def test_steps_never_cost_more_than_epsilon_and_one_base_finer_would_not_be_coarser(epsilon: float) -> None:
    flint = pytest.importorskip("flint")
    budget = IntegerBudget.of(epsilon)
    with flint.ctx.workprec(200):
        step = (flint.arb(budget.base + 1) / budget.base).log()
        assert step * budget.steps <= flint.arb(epsilon)
        assert not step * (budget.steps + 2) <= flint.arb(epsilon)
        assert step * budget.steps <= flint.arb(budget.spent) and budget.spent <= epsilon
    assert budget.steps % 2 == 0


@pytest.mark.exhaust
def test_rounding_a_spread_to_levels_moves_them_apart_by_at_most_the_steps() -> None:
    budget = IntegerBudget(1.0, 16, 16)
    for spread in (7, 13, 14, 15, 28):
        for start in range(-40, 40):
            for width in (spread, spread // 2):
                for low in range(-width, 1):
                    a, b = np.array([start, 0, 17]), np.array([start + low, low + width, 17])
                    moved = budget.levels(b, spread) - budget.levels(a, spread)
                    assert int(np.ptp(moved)) <= (16 if width == spread else 8)


@pytest.mark.exhaust
@each_selection
def test_the_sampler_draws_from_its_published_law(selection: str, rng: Entropy) -> None:
    levels, budget = np.array([0, 5, 5, 20, 400]), IntegerBudget.of(1.0)
    rule = SELECTIONS[selection]()
    law = rule.probabilities(levels, budget)
    assert law == pytest.approx([float(one) for one in exact_law(selection, levels, budget.base)], abs=1e-13)
    seen = np.bincount([rule.draw(levels, budget, rng) for _ in range(20_000)], minlength=5)
    expect_law(seen, law)
    expect_broken(seen, rule.probabilities(levels * 2, budget))


class FixedWords(Entropy):
    """Words that are known beforehand."""

    provenance = "simulation"

    def __init__(self, *drawn: int) -> None:
        self.drawn = list(drawn)

    def words(self, count: int) -> np.ndarray:
        return np.array([self.drawn.pop(0) for _ in range(count)], dtype=np.uint64)


def test_coins_are_exact_where_64_bits_do_not_decide() -> None:
    chance = Fraction(16, 17) ** 3
    place = int(chance * 2**64)  # the chance lies inside this word's interval
    more = int((chance * 2**64 - place) * 2**64)
    level = np.array([3])
    assert flip(level, 16, FixedWords(place - 1))[0] and not flip(level, 16, FixedWords(place + 1))[0]
    assert flip(level, 16, FixedWords(place, more - 1))[0] and not flip(level, 16, FixedWords(place, more + 1))[0]


@pytest.mark.parametrize("level", [3, 17, 80, 200, 333])
@pytest.mark.parametrize("words", [-3000, -1500, -2, 2, 1500, 3000])
def test_coins_near_their_edge_fall_on_the_right_side(level: int, words: int) -> None:
    place = int(Fraction(16, 17) ** level * 2**64) + words
    drawn = FixedWords(place, *[0] * 4)
    assert bool(flip(np.array([level]), 16, drawn)[0]) == (words < 0)


@pytest.mark.parametrize(("base", "level"), [(16, 1), (16, 4096), (1 << 20, 12_345_678), (1 << 20, 256 << 20)])
def test_powers_are_bracketed_within_the_guard_bits(base: int, level: int) -> None:
    low, high = power_bounds(base, level, 512)
    assert low <= high <= low + (1 << 33)  # half of the guard
    if level < 5000:
        assert Fraction(low, 1 << 512) <= Fraction(base, base + 1) ** level <= Fraction(high, 1 << 512)
    else:
        flint = pytest.importorskip("flint")
        with flint.ctx.workprec(700):
            exact = (flint.arb(base) / (base + 1)) ** level * flint.arb(2) ** 512
            assert low <= exact <= high


def test_a_coin_of_a_tiny_chance_is_decided_at_once() -> None:
    # all bits zero: the word alone never decides, and a power of whole numbers would have a billion digits
    assert flip(np.array([256 << 20]), 1 << 20, FixedWords(*[0] * 9))[0]
    assert not flip(np.array([256 << 20]), 1 << 20, FixedWords(0, *[2**64 - 1] * 8))[0]


def test_every_proposal_and_every_coin_of_the_exponential_mechanism_is_counted() -> None:
    levels, budget, grid = np.array([0, 3, 11, 0]), IntegerBudget(1.0, 16, 16), 512
    taken = np.zeros(4)
    for proposal in range(3):
        for coin in range(grid):
            size = levels.size + 64
            word = (2 * coin + 1) << 54  # the middle of its cell
            refused = [3] * size + [0] * size  # then the fourth one is drawn, which stands for a refusal
            drawn = FixedWords(*[proposal] * size, *[word] * size, *refused)
            choice = Exponential().draw(levels, budget, drawn)
            taken[choice] += 1
    assert np.abs(taken[:3] / grid - (16 / 17) ** levels[:3]).max() <= 0.5 / grid + 1e-12


@pytest.mark.exhaust
def test_every_order_and_every_coin_of_permute_and_flip_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    levels, budget, grid = np.array([0, 3, 11]), IntegerBudget(1.0, 16, 16), 64
    taken = np.zeros(3)
    for order in permutations(range(3)):
        monkeypatch.setattr(FixedWords, "permutation", lambda self, n, order=order: np.array(order), raising=False)
        for first in range(grid):
            for second in range(grid):
                words = ((2 * coin + 1) << 57 for coin in (0, first, second))
                taken[PermuteAndFlip().draw(levels, budget, FixedWords(*words))] += 1 / (6 * grid**2)
    assert np.abs(taken - np.array(exact_law("permute-and-flip", levels, 16), dtype=float)).max() < 2 * 0.5 / grid


@each_selection
def test_thousands_of_sentences_and_a_small_epsilon_are_drawn_in_the_memory_of_their_coins(selection: str) -> None:
    import tracemalloc

    levels, budget = np.arange(5_000) * 53_000, IntegerBudget.of(1e-4)
    assert levels.max() > 200 * budget.base
    tracemalloc.start()
    SELECTIONS[selection]().draw(levels, budget, rng_of("far"))
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


@each_utility
def test_ten_thousand_sentences_are_scored_without_a_table_of_sentences_and_candidates(utility: str) -> None:
    import tracemalloc

    rows = np.resize(SENTENCES, (10_000, 2))
    many = np.stack([np.arange(4096, 96, -2), np.arange(2000)], axis=1).astype(np.int16) // 2
    public = candidates([tuple(one) for one in many.tolist()])
    made = UTILITIES[utility].of(public)
    tracemalloc.start()
    scores = made.scores(rows)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000 < 10_000 * 2_000
    tracemalloc.stop()
    parts = [made.scores(rows[start : start + 7]) for start in range(0, 70, 7)]
    if utility not in ("depth", "published"):
        assert np.array_equal(sum(parts), made.scores(rows[:70])) and scores.any()


def test_ties_of_approval_go_to_earlier_candidates() -> None:
    public = candidates([(4096, 0), (0, 4096), (0, -4096), (-4096, 0)], approved=2)
    assert UTILITIES["approval"].of(public).scores(np.array([(4096, 0)], dtype=np.int16)).tolist() == [1, 1, 0, 0]


def test_permute_and_flip_is_never_worse_in_expectation_than_the_exponential_mechanism() -> None:
    rng, budget = rng_of("expectation"), IntegerBudget.of(2.0)
    for _ in range(200):
        levels = rng.below(200, 30)
        levels -= levels.min()
        rules = PermuteAndFlip(), Exponential()
        ours, theirs = (float(rule.probabilities(levels, budget) @ levels) for rule in rules)
        assert ours <= theirs + 1e-9


def test_small_epsilon_selects_nearly_uniformly_and_large_epsilon_the_best() -> None:
    rows = np.array([(4096, 0), (4000, 500)], dtype=np.int16)
    tiny = DeepCandidate.of(SETS["uneven"], epsilon=1e-4).probabilities(rows)
    huge = DeepCandidate.of(SETS["uneven"], epsilon=700.0, utility="inner")
    assert tiny == pytest.approx(np.full(5, 0.2), abs=1e-3)
    assert huge.probabilities(rows)[huge.utility.scores(rows).argmax()] > 0.999


def test_a_document_without_sentences_gets_a_uniform_candidate() -> None:
    nothing = np.zeros((0, 2), dtype=np.int16)
    for utility in UTILITIES:
        law = DeepCandidate.of(SETS["cross"], epsilon=5.0, utility=utility).probabilities(nothing)
        assert law == pytest.approx(np.full(len(law), 1 / len(law)))


def test_the_published_maximum_hardly_selects_where_the_minimum_does(rng: Entropy) -> None:
    good = rng.below(2001, 40 * 16).reshape(40, 16) // 10 - 100  # in the middle, the others far on one side
    rows = np.concatenate([good, good * 0 + 1000 + rng.below(20, 40 * 16).reshape(40, 16)]).astype(np.int16)
    sentences = (rng.below(2001, 10 * 16).reshape(10, 16) - 1000).astype(np.int16)
    directions = (rng.below(1001, 8 * 16).reshape(8, 16) - 500).astype(np.int16)
    public = candidates([(0, 1), (1, 0)])
    from dataclasses import replace

    public = replace(public, rows=rows, centres=rows[:2], projections=directions, clusters=np.zeros(80, dtype=int),
        samples=rows[:0], names=tuple(map(str, range(80))))  # fmt: skip
    minimum, maximum = (UTILITIES[name].of(public).scores(sentences) for name in ("depth", "published"))
    assert len(np.unique(maximum)) <= 2 < len(np.unique(minimum))


def test_depth_is_symmetric_and_shrinks_with_more_projections(rng: Entropy) -> None:
    from dataclasses import replace

    public = SETS["uneven"]
    rows = SENTENCES[[0, 3, 3, 5, 9]]
    found = UTILITIES["depth"].of(public).scores(rows)
    turned = replace(public, projections=-public.projections)
    assert np.array_equal(UTILITIES["depth"].of(turned).scores(rows), found)
    fewer = replace(public, projections=public.projections[:1])
    assert (UTILITIES["depth"].of(fewer).scores(rows) >= found).all()
    assert np.array_equal(UTILITIES["depth"].of(public).scores(rows[::-1]), found)


@each_utility
def test_rows_without_a_direction_have_no_say(utility: str) -> None:
    mechanism = DeepCandidate.of(SETS["uneven"], epsilon=10.0, utility=utility)
    silent = np.zeros((10, 2), dtype=np.int16)
    law = mechanism.probabilities(silent)
    assert law == pytest.approx(np.full(len(law), 1 / len(law)))
    rows = np.array([(4096, 0), (0, 4096)], dtype=np.int16)
    assert np.array_equal(mechanism.levels(np.concatenate([rows, silent])), mechanism.levels(rows))


@pytest.mark.parametrize("steps", [0, 15, 18, 1640])
def test_a_budget_of_too_many_or_odd_steps_is_refused(steps: int) -> None:
    with pytest.raises(ParameterError, match="`steps` must be even and from 2 to 16"):
        IntegerBudget(1.0, 16, steps)


def test_the_smallest_budget_has_two_steps_of_the_finest_base() -> None:
    assert (IntegerBudget.of(2e-6).base, IntegerBudget.of(2e-6).steps) == (1 << 20, 2)
    assert IntegerBudget(2e-6, 1 << 20, 2).steps == 2
    with pytest.raises(ParameterError, match="at least 2e-6"):
        IntegerBudget.of(1.9e-6)


@pytest.mark.exhaust
def test_the_published_law_adds_up_for_many_candidates() -> None:
    for levels in (np.zeros(100_000, dtype=np.int64), np.arange(50_000)):
        assert PermuteAndFlip().probabilities(levels, IntegerBudget.of(1.0)).sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("spread", [1, 7, 10])
def test_one_sentence_moves_two_candidates_apart_by_no_more_steps_than_are_paid_for(spread: int) -> None:
    budget, most = IntegerBudget.of(0.01), 0
    for first, second, both in product(range(spread), range(spread, 2 * spread), range(spread + 1)):
        before = budget.levels(np.array([first, second]), spread)
        after = budget.levels(np.array([first + both, second + both - spread]), spread)
        most = max(most, abs(int(np.diff(after)[0] - np.diff(before)[0])))
    assert budget.steps - 2 <= most <= budget.steps
