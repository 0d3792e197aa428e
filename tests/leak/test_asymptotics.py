"""Limits: the right constants, their rate, and the exponential bound."""

from math import log, pi, sqrt

import numpy as np
import pytest

from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.leak.additive_leakage import chernoff_bound, normal_limit, normal_maximum, published_limit
from dovetail.leak.vulnerability import vulnerability


def test_the_largest_normal_has_its_closed_forms() -> None:
    assert normal_maximum(1) == pytest.approx(0.0, abs=1e-14)
    assert normal_maximum(2) == pytest.approx(1 / sqrt(pi), rel=1e-12)
    assert normal_maximum(3) == pytest.approx(1.5 / sqrt(pi), rel=1e-12)
    four = 6 / sqrt(pi) * (0.25 + np.arcsin(1 / 3) / (2 * pi))
    assert normal_maximum(4) == pytest.approx(four, rel=1e-12)
    assert normal_maximum(10**6) < sqrt(2 * log(10**6))


@pytest.mark.exhaust
@pytest.mark.parametrize("k", [2, 3, 5, 10, 100])
def test_leakage_reaches_its_limit_and_the_printed_constant_does_not_hold(k: int) -> None:
    channel = KRRChannel.of(k, 0.8)
    for n in (10**5, 10**6):  # at rate sqrt(k/n); .36 measured at k = 100
        leak = vulnerability(channel, n=n).randomized_shuffled_leakage
        assert leak / normal_limit(channel, n=n) == pytest.approx(1.0, abs=0.5 * sqrt(k / n))
        ratio = normal_maximum(k) / sqrt(log(k))
        assert leak / published_limit(channel, n=n) == pytest.approx(ratio, rel=0.5 * sqrt(k / n))


def test_the_limit_needs_reports_that_favour_the_truth() -> None:
    with pytest.raises(UnsupportedError, match="p >= 1/k"):
        normal_limit(KRRChannel(3, 1, 2), n=10)


@pytest.mark.exhaust
def test_random_gains_stay_below_the_exponential_bound(rng: Entropy) -> None:
    draw, caught = np.random.default_rng(rng.words(2)), 0
    for _ in range(20):
        prior, gain = draw.dirichlet([1.0, 1.0, 1.0]), draw.random((4, 3))
        rows = draw.dirichlet([1.0, 1.0, 1.0], size=3)
        law, earned = prior @ rows, gain @ (prior[:, None] * rows)
        best = int(np.argmax(earned.sum(axis=1)))
        edge = np.delete(earned - earned[best], best, axis=0) / law
        for n in (1, 10, 100):
            scores = draw.multinomial(n, law, size=4_000) @ edge.T / n
            mean = np.maximum(scores.max(axis=1), 0.0)
            surely = mean.mean() - 6.2 * mean.std() / sqrt(4_000)  # false alarm below 1e-9
            assert surely <= chernoff_bound(edge, law, n)
            caught += surely > chernoff_bound(edge, law, 4 * n)  # a rate that is four times too large
    assert caught > 0


def test_the_exponential_bound_adds_up_what_each_of_several_guesses_may_earn() -> None:
    edge = np.where(np.eye(4, 5) == 1.0, 1.0, -1000.0)  # four kinds of report, each of which another guess is for
    law = np.array([0.2, 0.2, 0.2, 0.2, 0.2])
    assert 0.8 <= chernoff_bound(edge, law, 1) < 0.9, "one report earns 1 with chance 0.8"
