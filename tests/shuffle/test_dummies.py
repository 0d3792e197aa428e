"""Dummies of the shuffler have their law, keep their promise in every collection, and are accounted exactly."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import erf, exp, log, log1p, sqrt
from typing import Any

import numpy as np
import pytest
from tests.randomize.chosen import Chosen
from tests.statistics import expect_broken, expect_law, expect_mean

from dovetail.account.amplify import amplify
from dovetail.account.dummies import (
    dummies_delta,
    dummies_epsilon,
    dummies_for_rounds,
    dummies_guarantee,
)
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.estimate import KnownNoise
from dovetail.estimate.dummies import estimate_with_dummies, shares_of_counts
from dovetail.estimate.frequency import project_shares
from dovetail.plan.dummies import plan_with_dummies
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.randomize.unary import Unary
from dovetail.shuffle.sampling.dummies import Dummies, GaussianDummies, TruncatedGaussian, TruncatedGeometric
from dovetail_protocol.exact_thresholds import WORD, exp_bracket

LAWS = [TruncatedGeometric(1, 2, 1), TruncatedGeometric(2, 3, 2), TruncatedGeometric(3, 4, 3)]
# docs/theory/accuracy.md, section B, at delta = 1e-6: epsilon, s, variance
TABLE = [(0.1, 217, 798.8), (0.5, 50, 31.8), (1.0, 27, 7.83), (2.0, 14, 1.84)]

Law = dict[tuple[int, ...], float]


def masses(law: TruncatedGeometric) -> np.ndarray:
    weights = law.weights
    return np.array([float(Fraction(one, sum(weights))) for one in weights])


def release(law: TruncatedGeometric, counts: tuple[int, ...], weight: float = 1.0) -> Iterator[tuple[Any, float]]:
    """Every histogram that these counts can be released as."""
    d = masses(law)
    for drawn in product(range(d.size), repeat=len(counts)):
        key = tuple(c + z for c, z in zip(counts, drawn, strict=True))
        yield key, weight * float(np.prod(d[list(drawn)]))


def collected(law: TruncatedGeometric, values: tuple[int, ...], rows: np.ndarray) -> Law:
    """The law of the released histogram of people with these values and this local channel."""
    found: Law = {}
    for reports in product(range(len(rows)), repeat=len(values)):
        weight = float(np.prod([rows[v, y] for v, y in zip(values, reports, strict=True)]))
        if weight:
            for key, more in release(law, tuple(np.bincount(reports, minlength=len(rows)).tolist()), weight):
                found[key] = found.get(key, 0.0) + more
    return found


def hockey_stick(p: Law, q: Law, factor: float) -> float:
    return sum(max(0.0, mass - factor * q.get(key, 0.0)) for key, mass in p.items())


@pytest.mark.parametrize(("epsilon", "reach", "variance"), TABLE)
def test_calibrated_laws_are_those_of_the_theory(epsilon: float, reach: int, variance: float) -> None:
    law = TruncatedGeometric.calibrated(epsilon=epsilon, delta=1e-6)
    assert law.reach == reach
    assert float(law.variance) == pytest.approx(variance, rel=2e-3)
    assert law.delta <= Fraction(1e-6) and law.epsilon <= epsilon
    assert exp_bracket(-Fraction(law.epsilon) / 2)[1] <= law.ratio
    shorter = TruncatedGeometric(law.numerator, law.denominator, reach - 1)
    assert shorter.delta > Fraction(1e-6)


@pytest.mark.parametrize(("epsilon", "delta", "least"), [(3.0, 0.5, 1), (5.0, 1e-3, None), (0.1, 0.4, None)])
def test_no_shorter_law_keeps_a_generous_delta(epsilon: float, delta: float, least: int | None) -> None:
    law = TruncatedGeometric.calibrated(epsilon=epsilon, delta=delta)
    assert law.delta <= Fraction(delta) and law.reach == (least or law.reach)
    for reach in range(1, law.reach):
        assert TruncatedGeometric(law.numerator, law.denominator, reach).delta > Fraction(delta)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_delta_is_what_falls_outside_every_other_world(law: TruncatedGeometric) -> None:
    d = [Fraction(one, sum(law.weights)) for one in law.weights]
    assert d[0] == law.least and sum(d) == 1 and sum(a * p for a, p in enumerate(d)) == law.reach
    factor = 1 / law.ratio**2
    plus = {(a + 1, b): d[a] * d[b] for a in range(len(d)) for b in range(len(d))}
    minus = {(a, b + 1): d[a] * d[b] for a in range(len(d)) for b in range(len(d))}
    exact = sum(max(Fraction(0), mass - factor * minus.get(key, Fraction(0))) for key, mass in plus.items())
    assert exact == law.delta == 2 * law.least - law.least**2
    assert law.delta <= dummies_delta(law, law.epsilon) <= float(law.delta) * (1 + 1e-8)


@pytest.mark.parametrize("law", LAWS[:2], ids=repr)
@pytest.mark.parametrize(("d", "n"), [(2, 3), (3, 2)])
def test_no_collection_exceeds_the_promise_and_all_of_them_reach_it(law: TruncatedGeometric, d: int, n: int) -> None:
    for epsilon in (0.0, 0.4, law.epsilon, 1.5 * law.epsilon):
        bound = dummies_delta(law, epsilon)
        for values in product(range(d), repeat=n):
            for other in range(1, d):
                there = ((values[0] + other) % d, *values[1:])
                exact = hockey_stick(
                    collected(law, values, np.eye(d)), collected(law, there, np.eye(d)), exp(epsilon)
                )
                assert exact <= bound
                assert exact == pytest.approx(bound, rel=1e-7)


@pytest.mark.exhaust
@pytest.mark.parametrize("epsilon0", [0.7, 2.0])
@pytest.mark.parametrize(("k", "n"), [(2, 3), (3, 2)])
def test_local_noise_and_dummies_together_keep_the_smaller_promise(epsilon0: float, k: int, n: int) -> None:
    law, krr = LAWS[1], KRR(k, epsilon0)
    gamma, rows = krr.channel().contrast, krr.channel().matrix()
    for factor in (1.1, 2.0, 3.0):
        bound = gamma * dummies_delta(law, log(factor))
        combined = 1.0 + gamma * (factor - 1.0)
        worst = 0.0
        for others in product(range(k), repeat=n - 1):
            p, q = (collected(law, (own, *others), rows) for own in (0, 1))
            worst = max(worst, hockey_stick(p, q, combined), hockey_stick(q, p, combined))
        assert worst <= bound * (1 + 1e-12) + 1e-15
        assert worst > 0.1 * bound  # not vacuous


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("law", LAWS[:2], ids=repr)
def test_rounds_compose_to_the_product_of_their_pairs(law: TruncatedGeometric, rounds: int) -> None:
    d = masses(law)
    single = {}
    for a, b in product(range(d.size + 1), repeat=2):  # histograms of the two symbols
        p = (d[a - 1] if a else 0.0) * (d[b] if b < d.size else 0.0)
        q = (d[a] if a < d.size else 0.0) * (d[b - 1] if b else 0.0)
        if p or q:
            single[a, b] = (p, q)
    pairs = np.array(list(single.values()))
    p, q = pairs[:, 0], pairs[:, 1]
    for _ in range(rounds - 1):
        p, q = np.outer(p, pairs[:, 0]).ravel(), np.outer(q, pairs[:, 1]).ravel()
    for epsilon in (0.0, 0.3, 1.0, rounds * law.epsilon):
        exact = float(np.maximum(p - exp(epsilon) * q, 0.0).sum())
        assert exact <= dummies_delta(law, epsilon, rounds=rounds) <= exact * (1 + 1e-7) + 1e-15


def test_twelve_rounds_buy_more_than_twelve_twelfths() -> None:
    monthly = dummies_for_rounds(k=4, epsilon=1.0, delta=1e-6, rounds=12, law="geometric")
    assert isinstance(monthly, Dummies)
    assert monthly.epsilon >= 0.102
    assert monthly.variance**0.5 == pytest.approx(27.6, rel=0.01)
    assert dummies_epsilon(monthly.noise, 1e-6, rounds=12) <= 1.0
    assert dummies_guarantee(monthly, n=1000, delta=1e-6, rounds=12).epsilon <= 1.0


@pytest.mark.parametrize(("rounds", "better"), [(1, Dummies), (4, Dummies), (5, GaussianDummies)])
def test_the_better_law_is_taken_by_the_number_of_rounds(rounds: int, better: type) -> None:
    found = dummies_for_rounds(k=3, epsilon=1.0, delta=1e-6, rounds=rounds)
    assert isinstance(found, better)
    both = [
        dummies_for_rounds(k=3, epsilon=1.0, delta=1e-6, rounds=rounds, law=one) for one in ("geometric", "gaussian")
    ]
    assert [type(one) for one in both] == [Dummies, GaussianDummies]
    assert found.variance == min(one.variance for one in both)
    for one in both:
        promise = dummies_guarantee(one, n=1000, delta=1e-6, rounds=rounds)
        assert 0.99 < promise.epsilon <= 1.0 and promise.trust == "shuffler"
        with pytest.raises(DataError, match="its shuffler adds others, or none"):
            one.people(1000, 1000)
    with pytest.raises(ParameterError, match="`law` must be"):
        dummies_for_rounds(k=3, epsilon=1.0, delta=1e-6, rounds=2, law="normal")


@pytest.mark.parametrize("law", [TruncatedGaussian(Fraction(1, 2), 2), TruncatedGaussian(Fraction(9), 8)], ids=repr)
def test_gaussian_draws_have_the_law(law: TruncatedGaussian, rng: Entropy) -> None:
    counts = np.bincount(law.sample(50_000, rng), minlength=2 * law.reach + 1)
    expect_law(counts, law.masses)
    wider = TruncatedGaussian(law.scale * Fraction(6, 5), law.reach)
    expect_broken(np.bincount(wider.sample(50_000, rng), minlength=2 * law.reach + 1), law.masses)


@pytest.mark.exhaust
def test_local_noise_below_gaussian_dummies_keeps_the_smaller_promise() -> None:
    """As below geometric ones: the theorem asks nothing of the law."""
    dummies, krr = GaussianDummies(3, TruncatedGaussian(Fraction(30), 40)), KRR(3, 2.0)
    alone = dummies_guarantee(dummies, n=200, delta=1e-6)
    both = dummies_guarantee(dummies, n=200, delta=1e-6, randomizer=krr)
    gamma = krr.channel().contrast
    inside = log1p(gamma * (exp(dummies_epsilon(dummies.noise, 1e-6 / gamma)) - 1.0))
    assert both.epsilon == pytest.approx(inside, rel=1e-6) and both.epsilon < alone.epsilon
    assert both.colluding == 2.0 and alone.colluding == float("inf")
    with pytest.raises(UnsupportedError, match="take at least"):
        dummies_guarantee(GaussianDummies(3, TruncatedGaussian(Fraction(30), 10)), n=200, delta=1e-6)
    with pytest.raises(ParameterError, match="`delta` must be given"):
        dummies_guarantee(dummies, n=200)


@pytest.mark.parametrize("law", [*LAWS, TruncatedGeometric.calibrated(epsilon=2.0, delta=1e-4)], ids=repr)
def test_draws_have_the_law(law: TruncatedGeometric, rng: Entropy) -> None:
    counts = np.bincount(law.sample(50_000, rng), minlength=2 * law.reach + 1)
    expect_law(counts, masses(law))
    expect_broken(counts, masses(TruncatedGeometric(law.numerator, law.numerator + law.denominator, law.reach)))


def test_words_at_a_step_are_settled_by_further_words() -> None:
    law = TruncatedGeometric(1, 2, 1)  # 1/4, 1/2, 1/4: steps at whole words
    quarter = WORD // 4
    assert law.sample(4, Chosen([quarter - 1, quarter, 3 * quarter - 1, 3 * quarter])).tolist() == [0, 1, 1, 2]
    third = TruncatedGeometric(1, 1, 1)  # 1/3 each: 2^64 / 3 lies inside a word
    step = WORD // 3
    below, above = Chosen([step, 0]), Chosen([step, WORD - 1])
    assert third.sample(1, below).tolist() == [0] and third.sample(1, above).tolist() == [1]
    assert not below.left and not above.left


def test_dummies_cannot_be_told_from_reports_by_their_place(rng: Entropy) -> None:
    dummies = Dummies(k=2, epsilon=2.0, delta=1e-3)
    firsts = np.array([dummies.add([0] * 12, rng)[0] for _ in range(3000)])
    ones = dummies.reach / (12 + 2 * dummies.reach)  # of all places, and so of the first one, on average
    expect_mean((firsts == 1).astype(float)[:, None], [ones])


def test_estimates_are_unbiased_with_their_standard_error_with_and_without_local_noise(rng: Entropy) -> None:
    dummies, n = Dummies(k=3, epsilon=1.0, delta=1e-4), 400
    values = np.repeat([0, 1, 2], [250, 149, 1])
    truth = np.bincount(values) / n
    for randomizer in (None, KRR(3, 2.0)):
        found = []
        for _ in range(250):
            sent = values if randomizer is None else randomizer.randomize(values, rng)
            found.append(estimate_with_dummies(dummies, dummies.add(sent, rng), n=n, randomizer=randomizer))
        expect_mean(np.array([one.value for one in found]), truth)
        spread = np.std([one.value for one in found], axis=0)
        np.testing.assert_allclose(spread, found[0].standard_error, rtol=0.25)


def test_the_trust_model_stands_in_the_guarantee_and_is_never_mixed() -> None:
    dummies = Dummies(k=4, epsilon=1.0, delta=1e-6)
    bare, layered = (dummies_guarantee(dummies, n=1000, randomizer=one) for one in (None, KRR(4, 6.0)))
    local = amplify(KRR(4, 1.0), n=1000, delta=1e-6)
    assert (bare.trust, layered.trust, local.trust) == ("shuffler", "shuffler", "local")
    assert bare.colluding == float("inf") and layered.colluding == 6.0
    assert "every answer; there is no local promise" in bare.lines()[2] and "epsilon 6" in layered.lines()[2]
    assert not bare.implies(local) and not local.implies(bare)
    trusting = replace(local, trust="users")  # the same numbers, by other people's noise
    assert local.implies(local) and not local.implies(trusting) and not trusting.implies(local)
    with pytest.raises(UnsupportedError, match="state each by itself"):
        bare.compose(local)
    assert bare.compose(bare).trust == "shuffler"


def test_who_has_to_be_honest_depends_on_whose_noise_decides() -> None:
    dummies = Dummies(16, 1.0, 1e-6)
    alone, under, over = (
        dummies_guarantee(dummies, n=10_000, randomizer=one, honest=9_000)
        for one in (None, KRR(16, 9.0), KRR(16, 2.0))
    )
    assert alone.honest_n == under.honest_n == 1  # dummies hide a person from all others together
    assert "with any number of participants" in alone.lines()[0] and "any number" in under.lines()[0]
    assert over.honest_n == 9_000 and over.epsilon < 0.5 < under.epsilon
    assert "if 9,000 of 10,000 people are honest" in over.lines()[0]


@pytest.mark.parametrize(("epsilon0", "epsilon"), [(4.0, 0.1048), (6.0, 0.3504), (8.0, 0.9967)])
def test_the_smaller_of_both_layers_is_quoted(epsilon0: float, epsilon: float) -> None:
    both = dummies_guarantee(Dummies(16, 1.0, 1e-6), n=100_000, randomizer=KRR(16, epsilon0))
    alone = amplify(KRR(16, epsilon0), n=100_000, delta=1e-6).epsilon
    gamma = KRR(16, epsilon0).channel().contrast
    noise = dummies_epsilon(Dummies(16, 1.0, 1e-6).noise, 1e-6 / gamma)
    assert both.epsilon == pytest.approx(min(alone, log1p(gamma * (exp(noise) - 1))), rel=1e-7)
    assert both.epsilon == pytest.approx(epsilon, rel=1e-2)


def test_a_batch_that_these_dummies_cannot_have_made_is_refused() -> None:
    dummies = Dummies(k=3, epsilon=1.0, delta=1e-6)
    assert dummies.people(101, 100) == 100
    many = Dummies(k=10_000, epsilon=1.0, delta=1e-6)
    assert many.people(270_100, 100) == 100
    for given, size in ((dummies, 99), (dummies, 100), (dummies, 101 + 6 * dummies.reach), (many, 265_000)):
        with pytest.raises(DataError, match="its shuffler adds others, or none"):
            estimate_with_dummies(given, np.zeros(size, dtype=np.int64), n=100)


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"k": 1}, "k"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": 1e-3}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
    ],
)
def test_parameters_outside_their_ranges_are_refused(bad: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"`{name}` must be"):
        Dummies(**{"k": 4, "epsilon": 1.0, "delta": 1e-6, **bad})


def test_what_cannot_be_promised_is_refused() -> None:
    dummies = Dummies(k=4, epsilon=1.0, delta=1e-6)
    with pytest.raises(UnsupportedError, match="no epsilon keeps delta"):
        dummies_guarantee(dummies, n=100, delta=1e-9)
    with pytest.raises(UnsupportedError, match="do not fit"):
        dummies_guarantee(dummies, n=100, randomizer=KRR(5, 1.0))
    with pytest.raises(ParameterError, match="must report one of these"):
        estimate_with_dummies(dummies, [0] * 100, n=50, randomizer=Unary(4, 1.0))
    with pytest.raises(DataError, match="`reports` must be whole numbers"):
        dummies.add([4], rng=simulation(1))
    with pytest.raises(UnsupportedError, match="join symbols"):
        Dummies(k=1 << 23, epsilon=1.0, delta=1e-6).add([0], rng=simulation(1))
    assert OpenAnswers(4).guarantee.epsilon == float("inf")


def test_every_part_of_an_error_is_counted() -> None:
    dummies, noisy, counts, n = Dummies(3, 1.0, 1e-6), KRR(3, 1.0), np.array([50.0, 30.0, 20.0]), 100
    stretch = (exp(1.0) + 2) / (exp(1.0) - 1)  # 1 / (p - q): a dummy too many is that many people too many
    for randomizer, factor in ((None, 1.0), (noisy, stretch)):
        found = shares_of_counts(dummies, counts, n=n, randomizer=randomizer)
        shares = project_shares(found.value)
        local = np.zeros(3) if randomizer is None else noisy.variance(shares) / n
        variance = local + dummies.variance * (factor / n) ** 2
        np.testing.assert_allclose(found.standard_error**2, variance, rtol=1e-9)
        np.testing.assert_allclose(found.population_error**2, variance + shares * (1 - shares) / n, rtol=1e-9)
    with pytest.raises(ParameterError, match="must report one of these 3 symbols"):
        shares_of_counts(dummies, counts, n=n, randomizer=KRR(4, 1.0))


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0])
def test_intervals_behind_dummies_are_the_shortest_that_cover_as_often_as_they_say(epsilon: float) -> None:
    dummies, n = Dummies(2, epsilon, 1e-6), 1000
    law, off = masses(dummies.noise), np.arange(-dummies.reach, dummies.reach + 1)
    found = [shares_of_counts(dummies, np.array([400.0 + z, 600.0 - z]), n=n).interval() for z in off]
    covered = np.array([low[0] <= 0.4 <= high[0] for low, high in found])
    reach = int(np.abs(off[covered]).max())
    assert law[covered].sum() >= 0.95 > law[np.abs(off) < reach].sum()
    assert law[np.abs(off) <= 1.96 * sqrt(dummies.variance)].sum() < 0.945  # a normal interval does not
    assert plan_with_dummies(n=n, k=2, epsilon=epsilon, delta=1e-6).accuracy.error95 == pytest.approx(reach / n)


@pytest.mark.parametrize("local", [0.5, 3.0])
def test_intervals_behind_dummies_and_a_normal_error_cover_as_often_as_they_say(local: float) -> None:
    law = TruncatedGeometric(3, 5, 12)
    off, known = np.arange(-12, 13), KnownNoise(*law.error_law(1.0), variance=np.array([local**2]), sampling=0.0)

    def covers(t: float) -> float:
        ends = np.array([[erf((sign * t - z) / local / sqrt(2.0)) for z in off] for sign in (1, -1)])
        return float(masses(law) @ (ends[0] - ends[1])) / 2.0

    reach = float(known.interval(np.zeros(1), 1.959963984540054)[1][0])
    assert covers(reach) >= 0.95 > covers(0.97 * reach)
