"""Vulnerability, leakage, risk, entropy and capacity obey their laws, in exact fractions."""

from fractions import Fraction
from itertools import permutations
from math import log

import numpy as np
import pytest
from tests.leak.exactly import SEEDS, channel, situation, weights

from dovetail.core.channel import DenseChannel, KRRChannel
from dovetail.core.errors import DataError, DovetailError, ParameterError, UnsupportedError
from dovetail.leak.qif import bayes_vulnerability as bayes
from dovetail.leak.qif import capacity
from dovetail.leak.qif import entropies as uncertainty
from dovetail.leak.qif.arithmetic import laws
from dovetail.leak.qif.channel_algebra import cascade, constant, identity
from dovetail.leak.qif.hyper import hyper, posteriors, reduced
from dovetail.leak.qif.inputs import joint
from dovetail.leak.qif.prior import uniform
from dovetail.randomize.krr import KRR

BINARY = [[0.75, 0.25], [0.25, 0.75]]


@pytest.mark.parametrize("seed", SEEDS)
def test_looking_never_hurts_and_never_earns_more_than_knowing(seed: int) -> None:
    prior, seen, gain = situation(seed)
    before, after = (
        bayes.prior_vulnerability(prior, gain=gain),
        bayes.posterior_vulnerability(prior, seen, gain=gain),
    )
    assert isinstance(after, Fraction)
    assert before <= after <= bayes.posterior_vulnerability(prior, identity(prior.size), gain=gain)
    assert after - before == bayes.additive_leakage(prior, seen, gain=gain)
    assert after / before == bayes.multiplicative_leakage(prior, seen, gain=gain)
    assert bayes.additive_leakage(prior, constant(prior.size), gain=gain) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_data_processing(seed: int) -> None:
    prior, seen, gain = situation(seed)
    processed = cascade(seen, channel(seed, seen.shape[1], 3))
    assert bayes.posterior_vulnerability(prior, processed, gain=gain) <= bayes.posterior_vulnerability(
        prior, seen, gain=gain
    )
    assert uncertainty.shannon_leakage(prior, processed) <= uncertainty.shannon_leakage(prior, seen) + 1e-15
    assert uncertainty.conditional_guessing_entropy(prior, processed) >= uncertainty.conditional_guessing_entropy(
        prior, seen
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reduced_channel_leaks_the_same(seed: int) -> None:
    prior, seen, gain = situation(seed)
    split = np.hstack([seen / 3, seen * Fraction(2, 3), 0 * seen])
    assert reduced(split).shape[1] <= seen.shape[1]
    for one in (split, reduced(split), reduced(seen)):
        assert bayes.posterior_vulnerability(prior, one, gain=gain) == bayes.posterior_vulnerability(
            prior, seen, gain=gain
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_multiplicative_capacity_bounds_every_ratio_and_is_reached(seed: int) -> None:
    prior, seen, gain = situation(seed)
    most = capacity.multiplicative_capacity(seen)
    assert 1 <= bayes.multiplicative_leakage(prior, seen, gain=gain) <= most <= min(seen.shape)
    assert bayes.multiplicative_leakage(laws([1] * prior.size), seen) == most


@pytest.mark.parametrize("seed", SEEDS)
def test_the_additive_capacity_bounds_every_gain_of_span_one_and_is_reached(seed: int) -> None:
    prior, seen, gain = situation(seed)
    found = capacity.additive_capacity(prior, seen)
    assert bayes.additive_leakage(prior, seen, gain=gain * Fraction(1, 6)) <= found.value
    assert found.gain.min() >= 0 and (found.gain.max(axis=1) - found.gain.min(axis=1)).max() <= 1
    assert bayes.additive_leakage(prior, seen, gain=found.gain) == found.value
    assert bayes.prior_vulnerability(prior, gain=found.gain) == 1
    assert found.value * 2 == np.abs(joint(prior, seen) - np.outer(prior, prior @ seen)).sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_vulnerability_is_the_mean_over_the_hyper(seed: int) -> None:
    prior, seen, gain = situation(seed)
    found = hyper(prior, seen)
    assert found.outer.sum() == 1 and (found.inners.sum(axis=1) == 1).all()
    assert (found.outer @ found.inners == prior).all()
    assert len({tuple(inner) for inner in found.inners}) == len(found.inners)
    parts = [
        p * bayes.prior_vulnerability(inner, gain=gain) for p, inner in zip(found.outer, found.inners, strict=True)
    ]
    assert sum(parts) == bayes.posterior_vulnerability(prior, seen, gain=gain)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_strategy_earns_the_vulnerability(seed: int) -> None:
    prior, seen, gain = situation(seed)
    actions = bayes.strategy(prior, seen, gain=gain)
    earned = sum(
        prior[x] * seen[x, y] * int(gain[actions[y], x]) for x in range(len(seen)) for y in range(len(seen.T))
    )
    assert earned == bayes.posterior_vulnerability(prior, seen, gain=gain)


@pytest.mark.parametrize("seed", SEEDS)
def test_risk_is_what_vulnerability_leaves(seed: int) -> None:
    prior, seen, gain = situation(seed)
    assert bayes.bayes_risk(prior, seen) == 1 - bayes.posterior_vulnerability(prior, seen)
    zero_one = 1 - identity(prior.size)
    assert bayes.bayes_risk(prior, seen) == bayes.posterior_risk(prior, seen, loss=zero_one)
    loss = 5 - gain
    assert bayes.posterior_risk(prior, seen, loss=loss) == 5 - bayes.posterior_vulnerability(prior, seen, gain=gain)
    assert bayes.prior_risk(prior, loss=loss) == 5 - bayes.prior_vulnerability(prior, gain=gain)


@pytest.mark.parametrize("seed", SEEDS)
def test_guessing_entropy_is_the_best_order_of_guesses(seed: int) -> None:
    prior, seen, _ = situation(seed)
    orders = list(permutations(range(1, prior.size + 1)))
    assert uncertainty.guessing_entropy(prior) == min(sum(np.array(order) * prior) for order in orders)
    by_output = [min(sum(np.array(order) * column) for order in orders) for column in joint(prior, seen).T]
    assert uncertainty.conditional_guessing_entropy(prior, seen) == sum(by_output)


@pytest.mark.parametrize("seed", SEEDS)
def test_shannon_leakage_is_what_the_entropy_loses(seed: int) -> None:
    prior, seen, _ = situation(seed)
    leak = uncertainty.shannon_leakage(prior, seen)
    lost = uncertainty.shannon_entropy(prior) - uncertainty.conditional_entropy(prior, seen)
    assert leak == pytest.approx(lost, abs=1e-14)  # a few dozen terms of size 1
    backwards = posteriors(prior, reduced(seen))
    assert leak == pytest.approx(uncertainty.shannon_leakage(prior @ reduced(seen), backwards), abs=1e-14)
    assert leak <= log(capacity.multiplicative_capacity(seen)) + 1e-14


@pytest.mark.parametrize("seed", SEEDS)
def test_floats_follow_the_fractions(seed: int) -> None:
    prior, seen, gain = situation(seed)
    near = DenseChannel(seen)
    for measure in (bayes.posterior_vulnerability, bayes.additive_leakage, bayes.multiplicative_leakage):
        exact, rounded = measure(prior, seen, gain=gain), measure(prior, near, gain=gain)
        assert isinstance(exact, Fraction) and isinstance(rounded, float)
        assert rounded == pytest.approx(float(exact), abs=1e-13)  # under 20 products of size 25 at most
    assert bayes.min_entropy_leakage(prior, near) == pytest.approx(log(bayes.multiplicative_leakage(prior, seen)))


def test_tiny_leakage_keeps_its_digits() -> None:
    edge = 2.0**-50
    seen = [[0.5 + edge, 0.5 - edge], [0.5 - edge, 0.5 + edge]]
    assert bayes.additive_leakage([0.5, 0.5], seen) == edge
    assert bayes.min_entropy_leakage([0.5, 0.5], seen) == pytest.approx(2.0 * edge, rel=1e-14)
    step, third = 2.0**-30, 0.3  # the difference of the entropies has an error of about 1e-16, the leakage is 4e-19
    prior, seen = [0.25, 0.75], [[third + step, 1 - third - step], [third, 1 - third]]
    output = third + step / 4
    exact = (3 / 4 * step) ** 2 / 8 + 3 * (step / 4) ** 2 / 8  # sum of pi t^2 / 2 times p, (1 + O(t))
    exact *= 1 / output + 1 / (1 - output)
    rounding = 2.0**-53 / step  # of C - p, relative
    assert uncertainty.shannon_leakage(prior, seen) == pytest.approx(exact, rel=10.0 * rounding)


def test_channels_and_randomizers_are_read_as_their_matrix() -> None:
    krr = KRR(k=3, epsilon=1.0)
    values = [
        bayes.posterior_vulnerability(uniform(3), each) for each in (krr, krr.channel(), krr.channel().matrix())
    ]
    assert values == [pytest.approx(krr.channel().p, rel=1e-15)] * 3


@pytest.mark.parametrize("seed", SEEDS)
def test_metric_privacy_with_the_discrete_metric_is_epsilon(seed: int) -> None:
    seen = channel(seed, 3, 4)
    apart = 1 - np.eye(3)
    assert capacity.metric_privacy(seen, distance=apart) == pytest.approx(DenseChannel(seen).epsilon, abs=1e-12)
    assert capacity.metric_privacy(seen, distance=4 * apart) == pytest.approx(
        DenseChannel(seen).epsilon / 4, abs=1e-12
    )


def test_metric_privacy_of_a_geometric_channel_is_its_rate() -> None:
    line = np.abs(np.subtract.outer(range(5), range(5)))
    # truncation at the ends doubles the tails, which keeps the ratio of neighbours
    cells = 0.5**line * np.where((np.arange(5) == 0) | (np.arange(5) == 4), 2 / 3, 1 / 3)
    assert capacity.metric_privacy(cells, distance=line) == pytest.approx(log(2), rel=1e-14)
    assert capacity.metric_privacy(KRRChannel(2, 3, 1), distance=[[0, 0], [0, 0]]) == float("inf")
    assert capacity.metric_privacy(identity(2), distance=[[0, 1], [1, 0]]) == float("inf")
    assert capacity.metric_privacy(constant(3), distance=np.zeros((3, 3))) == 0.0
    for bad in ([[0, 1], [2, 0]], [[1, 1], [1, 1]], [[0, -1], [-1, 0]], [0, 1], [[0, 1, 1]] * 3):
        with pytest.raises(ParameterError, match="`distance` must be"):
            capacity.metric_privacy(BINARY, distance=bad)  # type: ignore[arg-type]


def test_negative_gains_have_a_leakage_but_no_ratio() -> None:
    gain = [[1, -1], [-2, 1]]
    assert bayes.prior_vulnerability([0.5, 0.5], gain=gain) == 0.0
    assert bayes.additive_leakage([0.5, 0.5], BINARY, gain=gain) == pytest.approx(0.375)
    shifted = np.add(gain, 2)
    assert bayes.additive_leakage([0.5, 0.5], BINARY, gain=shifted) == pytest.approx(0.375)
    with pytest.raises(ParameterError, match="`gain` must be at least 0 for a ratio"):
        bayes.multiplicative_leakage([0.5, 0.5], BINARY, gain=gain)
    with pytest.raises(UnsupportedError, match="there is no ratio"):
        bayes.multiplicative_leakage([0.5, 0.5], BINARY, gain=[[0, 0]])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], "row 1 sums to 1.1"),
        ([[1.2, -0.2], [0.5, 0.5]], r"entry \(0, 1\) is -0.2"),
        ([[0.5, float("nan")], [0.5, 0.5]], "nan"),
        ([[Fraction(1, 2), Fraction(1, 3)], [1, 0]], "row 0 sums to 5/6"),
        ([0.5, 0.5], "must be a matrix"),
        ([[]], "must be a matrix"),
        ("channel", "array of numbers"),
        ([[1.0], [1.0], [1.0]], "`prior` must be a law on the 3 secrets of the channel, got 2"),
    ],
    ids=repr,
)
def test_what_is_no_channel_is_refused(bad: object, message: str) -> None:
    for measure in (bayes.posterior_vulnerability, bayes.bayes_risk, uncertainty.shannon_leakage, hyper):
        with pytest.raises(DovetailError, match=message):
            measure([0.5, 0.5], bad)


def test_an_output_that_never_occurs_has_no_posterior() -> None:
    with pytest.raises(UnsupportedError, match="Output 1 never occurs"):
        posteriors([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    assert hyper([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]).outer.tolist() == [1.0]


def test_exact_laws_come_from_whole_weights_only() -> None:
    assert laws([[1, 3], [Fraction(1, 2), Fraction(1, 2)]]).tolist() == [
        [Fraction(1, 4), Fraction(3, 4)],
        [Fraction(1, 2)] * 2,
    ]
    big = laws([2**80, 2**80])
    assert big.tolist() == laws(np.full(2, 2**64 - 1, dtype=np.uint64)).tolist() == [Fraction(1, 2)] * 2
    for bad in ([0.5, 0.5], [0, 0], [-1, 2], [], 3, ["1/2"], [True, True]):
        with pytest.raises((ParameterError, DataError), match="`weights` must be"):
            laws(bad)  # type: ignore[arg-type]


def test_a_float_among_fractions_makes_the_answer_a_float() -> None:
    assert isinstance(bayes.posterior_vulnerability([0.5, 0.5], laws([[3, 1], [1, 3]])), float)
    assert isinstance(bayes.posterior_vulnerability([Fraction(1, 2), 0.5], identity(2)), float)
    assert isinstance(bayes.posterior_vulnerability([1, 0], identity(2)), float)
    assert isinstance(bayes.posterior_vulnerability(laws([1, 1]), identity(2)), Fraction)
    assert weights(np.random.default_rng(1), 3).min() >= 0
