"""Sparse dummies: every release of a few people by exact fractions, their pure promise, estimates and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from dovetail.account.dummies import sparse_delta, sparse_for_rounds, sparse_guarantee
from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.estimate.dummies import KeptCounts, shares_of_kept
from dovetail.noise.sparse import SparseNoise
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import SparseDummies
from dovetail.shuffle.uniform import Uniform
from dovetail_protocol.exact_thresholds import exp_bracket

MOST = 6  # counts that are enumerated; beyond them ratios repeat
EPSILONS = (0.3, 1.0, 2.5)


def count_law(dummies: SparseDummies, held: int) -> list[Fraction]:
    """Of one count of so many people, by hand: who is kept, and how many dummies there are."""
    law = [Fraction(0)] * (MOST + 1)
    for kept in range(held + 1):
        coins = math.comb(held, kept) * dummies.kept**kept * (1 - dummies.kept) ** (held - kept)
        for more in range(MOST + 1 - kept):
            law[kept + more] += coins * (1 - dummies.more) * dummies.more**more
    return law


def ratios(dummies: SparseDummies, here: Sequence[int], there: Sequence[int]) -> list[Fraction]:
    """How much likelier each release is with one data set than with the other, given as counts."""
    laws = [[count_law(dummies, held) for held in counts] for counts in (here, there)]
    found = []
    for release in product(range(MOST + 1), repeat=len(here)):
        p, q = (math.prod(law[h] for law, h in zip(one, release, strict=True)) for one in laws)
        found.append(p / q)
    return found


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_release_is_likelier_than_is_promised_whatever_the_others_hold(epsilon: float) -> None:
    dummies = SparseDummies(2, epsilon)
    promise = sparse_guarantee(dummies, n=3)
    assert promise.delta == 0.0 and promise.epsilon <= epsilon and promise.trust == "shuffler"
    lift = 1 + dummies.kept / (dummies.more * (1 - dummies.kept))
    assert lift <= exp_bracket(Fraction(epsilon))[0] and lift <= exp_bracket(Fraction(promise.epsilon))[1]
    for others in product(range(3), repeat=2):
        own = (others[0] + 1, others[1]), (others[0], others[1] + 1)
        found = ratios(dummies, *own)
        assert max(found) <= lift and 1 / min(found) <= lift
        if others == (0, 0):
            assert max(found) == lift  # reached, exactly
    together = ratios(dummies, (3, 0), (0, 3))  # three people together
    assert max(together) <= lift**3
    present = ratios(dummies, (1, 0), (0, 0))  # taking part
    half = exp_bracket(Fraction(promise.epsilon) / 2)[1] * (1 + Fraction(1, 1 << 20))
    assert max(present) <= half and 1 / min(present) <= half


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_two_batches_together_are_what_all_their_releases_say(epsilon: float) -> None:
    """Exactly, by the laws of both counts in both batches; counts beyond `MOST` lie with it, as their ratios do."""
    dummies = SparseDummies(2, epsilon)
    laws = [count_law(dummies, held) for held in (0, 1)]
    for law in laws:
        law[MOST] += 1 - sum(law)
    one = [(laws[1][a] * laws[0][b], laws[0][a] * laws[1][b]) for a, b in product(range(MOST + 1), repeat=2)]
    for wanted in (0.2 * epsilon, 0.9 * epsilon, 1.5 * epsilon):
        lift = Fraction(math.exp(wanted))
        exact = float(sum(max(Fraction(0), p * r - lift * q * s) for (p, q), (r, s) in product(one, repeat=2)))
        found = sparse_delta(dummies, wanted, rounds=2)
        assert exact <= found <= exact * (1.0 + 1e-6)
        assert sparse_guarantee(dummies, n=1, rounds=2, delta=found).epsilon == pytest.approx(wanted, rel=1e-6)
    pure = sparse_guarantee(dummies, n=1, rounds=2)
    assert pure.delta == 0.0 and 2.0 * epsilon * (1.0 - 1e-6) <= pure.epsilon <= 2.0 * epsilon * (1.0 + 1e-8)


def test_two_symbols_of_a_person_are_hidden_as_is_said_in_all_releases_of_both_lists() -> None:
    """Exactly: the promise is reached by one release, and with dummies for one symbol alone it is broken."""
    noise = SparseNoise(sparse_for_rounds(k=4, epsilon=1.0, delta=1e-6, rounds=2), OpenAnswers(4), 2)
    promise = noise.central(Uniform(1), People(1), delta=1e-6)
    assert isinstance(promise, CentralDP) and promise.delta == 0.0 and 0.99 < promise.epsilon <= 1.0
    bound = exp_bracket(Fraction(promise.epsilon))[1]
    for dummies, kept_promise in ((noise.dummies, True), (SparseDummies(4, 1.0), False)):
        one = ratios(dummies, (1, 0), (0, 1))  # in either list
        both = [here * there for here, there in product(one, repeat=2)]
        assert (max(both) <= bound) == kept_promise == (1 / min(both) <= bound)
    assert float(max(ratios(noise.dummies, (1, 0), (0, 1))) ** 2) == pytest.approx(math.e, rel=1e-5)


def test_each_symbol_of_a_person_is_kept_by_a_coin_of_its_own() -> None:
    """Six standard deviations of three counts: a right implementation fails with a chance below 1e-8."""
    noise, n = SparseNoise(SparseDummies(4, 1.0), OpenAnswers(4), 2), 20_000
    sent = np.column_stack([np.arange(n) % 2, 2 + np.arange(n) % 2])
    (first, own), (second, other) = noise.messages(sent, simulation(1))
    assert (own == sent[first, 0]).all() and (other == sent[second, 1]).all()
    beta = float(noise.dummies.kept)
    for places, chance in ((first, beta), (second, beta), (np.intersect1d(first, second), beta**2)):
        assert abs(places.size - n * chance) < 6.0 * math.sqrt(n * chance * (1.0 - chance))


def test_a_delta_is_spent_where_it_pays() -> None:
    for symbols in (2, 3, 5):
        few = sparse_for_rounds(k=4, epsilon=1.0, delta=1e-6, rounds=symbols)
        assert few.epsilon == pytest.approx(1.0 / symbols, rel=2e-6)
        told = sparse_guarantee(few, n=9, rounds=symbols, delta=1e-6)
        assert told.delta == 0.0 and told.epsilon <= 1.0
    for symbols, gain in ((8, 1.04), (12, 1.23), (66, 2.75)):
        few = sparse_for_rounds(k=4, epsilon=1.0, delta=1e-6, rounds=symbols)
        told = sparse_guarantee(few, n=9, rounds=symbols, delta=1e-6)
        assert few.epsilon * symbols > 0.999 * gain and told.delta == 1e-6 and told.epsilon <= 1.0


@pytest.mark.parametrize("held", [0, 1, 7])
def test_counts_are_unbiased_and_vary_as_is_said(held: int) -> None:
    dummies = SparseDummies(2, 1.0)
    q, beta = float(dummies.more), float(dummies.kept)
    h = np.arange(300)
    law = np.convolve(binom.pmf(np.arange(held + 1), held, beta), (1 - q) * q**h)[:300]
    counts = np.array([dummies.counts_of(np.array([one, 0]))[0] for one in h])
    assert law @ counts == pytest.approx(held, abs=1e-10)
    assert law @ (counts - held) ** 2 == pytest.approx(float(dummies.variance(held)), rel=1e-9)
    # the table of the theory: dummies of an answer, variances at 0 and of each person
    assert dummies.mean == pytest.approx(0.61, abs=5e-3)
    assert math.sqrt(float(dummies.variance(0))) == pytest.approx(2.5, abs=0.06)
    assert math.sqrt(float(dummies.variance(100))) == pytest.approx(13, abs=0.5)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_cover_every_number_of_people(epsilon: float) -> None:
    """Exactly, by the law of the count; and shares of a population that these people are drawn from."""
    dummies, n, level = SparseDummies(2, epsilon), 30, 0.9
    q, beta = float(dummies.more), float(dummies.kept)
    h = np.arange(160)
    exact = KeptCounts(h, beta, q, n)
    z = math.sqrt(2.0) * float(__import__("scipy.special", fromlist=["erfinv"]).erfinv(level))
    low, high = exact.interval(h / n, z)
    wide = exact.drawn(1.0 / n).interval(h / n, z)
    geometric = (1 - q) * q**h
    covered = []
    for held in range(n + 1):
        law = np.convolve(binom.pmf(np.arange(held + 1), held, beta), geometric)[: h.size]
        inside = (low <= held / n + 1e-12) & (held / n - 1e-12 <= high)
        covered.append(float(law @ inside))
        drawn = np.convolve(binom.pmf(np.arange(n + 1), n, beta * held / n), geometric)[: h.size]
        assert float(drawn @ ((wide[0] <= held / n + 1e-9) & (held / n - 1e-9 <= wide[1]))) >= level - 1e-9
    assert min(covered) >= level - 1e-9
    assert np.mean(covered) < 0.985  # and not by saying nothing


def test_a_large_count_has_an_interval_like_a_normal_one() -> None:
    dummies, n = SparseDummies(3, 1.0), 1_000_000
    tally = np.array([200_000, 1, 0])
    found = shares_of_kept(dummies, tally, n=n)
    low, high = found.interval(0.95)
    assert high[0] - low[0] == pytest.approx(2 * 1.96 * found.standard_error[0], rel=1e-2)
    assert low[1] == low[2] == 0.0 and 0.0 < high[2] < high[1] < 20 / n
    everything = KeptCounts(np.array([2_000_000]), 0.4, 0.4, n).interval(np.array([1.0]), 2.0)
    assert everything[0][0] == everything[1][0] == 1.0  # more than can be: the most there are


def test_batches_that_cannot_be_are_refused_and_fair_ones_are_not() -> None:
    dummies = SparseDummies(1000, 1.0)
    mean = 5000 * float(dummies.kept) + dummies.total
    assert dummies.people(round(mean), 5000) == 5000
    for size in (5000 + round(dummies.total), round(mean) - 700, 10):
        with pytest.raises(DataError, match="its shuffler keeps others, or adds others"):
            dummies.people(size, 5000)
    for epsilon in (0.0, 1e-9, 41.0):
        with pytest.raises(ParameterError, match="`epsilon` must be"):
            SparseDummies(3, epsilon)
