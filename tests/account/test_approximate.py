"""Approximate local privacy: the falling branch, its refusals and its laws."""

from itertools import pairwise
from math import exp

import numpy as np
import pytest

from dovetail.account.clones import ClonePair, amplify_approximate, smallest_epsilon
from dovetail.core.errors import ParameterError

GRID = [(0.5, 1e-13, 10**4), (1.0, 1e-12, 10**3), (1.0, 1e-16, 10**6), (4.0, 1e-14, 10**5), (2.0, 1e-10, 3)]


def total(epsilon0: float, delta0: float, n: int, epsilon: float) -> float:
    """The proposition's delta, lower end of its numerical part."""
    pair = ClonePair(epsilon0, n, "clones")
    return pair.delta(epsilon, resolution=1e-6).lower + (exp(epsilon) + 1) * (1 + exp(-epsilon0)) * n * delta0


@pytest.mark.parametrize(("epsilon0", "delta0", "n"), GRID)
def test_the_answer_keeps_delta_and_the_lower_end_does_not(epsilon0: float, delta0: float, n: int) -> None:
    bound = amplify_approximate(epsilon0, delta0, n=n, delta=1e-6)
    assert bound.epsilon is not None and bound.lower is not None
    assert total(epsilon0, delta0, n, bound.epsilon) <= 1e-6
    assert total(epsilon0, delta0, n, bound.lower) >= 1e-6 * (1 - 1e-7)
    assert bound.lower <= bound.epsilon <= min(epsilon0, bound.lower * (1 + 1e-3))


def test_without_delta0_it_is_the_clone_pair() -> None:
    for epsilon0, _, n in GRID:
        bound, pure = (
            amplify_approximate(epsilon0, 0.0, n=n, delta=1e-6),
            ClonePair(epsilon0, n, "clones").epsilon(1e-6),
        )
        assert bound.epsilon is not None
        assert pure.lower * (1 - 1e-7) <= bound.epsilon <= pure.upper * (1 + 2e-4)


def test_the_term_is_the_proposition_s_not_a_smaller_one() -> None:
    epsilon0, n, delta0 = 1.0, 10_000, 1e-11
    epsilon = amplify_approximate(epsilon0, delta0, n=n, delta=1e-6).epsilon
    assert epsilon is not None
    pure = ClonePair(epsilon0, n, "clones").delta(epsilon)
    smaller = (
        pure.upper + (exp(epsilon) + 1) * (1 + exp(-epsilon0) / 2) * n * delta0
    )  # as the full version recalls it
    assert smaller < 1e-6 * (1 - 1e-2)


def test_epsilon_grows_with_delta0_and_falls_with_delta() -> None:
    by_delta0 = [amplify_approximate(1.0, d, n=1_000, delta=1e-6).epsilon for d in (0.0, 1e-14, 1e-12, 1e-11, 1e-10)]
    by_delta = [amplify_approximate(1.0, 1e-12, n=1_000, delta=d).epsilon for d in (1e-2, 1e-4, 1e-6, 1e-8)]
    for growing in (by_delta0, by_delta):
        assert all(a is not None and b is not None and a <= b for a, b in pairwise(growing)), growing


def test_too_much_delta0_leaves_the_local_promise_where_delta_covers_it_and_else_nothing() -> None:
    local = amplify_approximate(1.0, 1e-8, n=10_000, delta=1e-6)
    assert (local.epsilon, local.name) == (1.0, "local")
    nothing = amplify_approximate(1.0, 1e-8, n=10_000, delta=1e-9)
    assert nothing.epsilon is None
    for bound in (local, nothing):
        assert "n * delta0 too large" in bound.reason
    assert amplify_approximate(1.0, 0.0, n=10_000, delta=0.0).epsilon == 1.0


@pytest.mark.exhaust
def test_a_narrow_falling_branch_is_found_and_a_missed_one_is_not_invented() -> None:
    pair, slack = ClonePair(3.0, 500, "clones"), 1e-4
    blocks = pair.blocks(1e-14, 1e-4)
    curve = lambda e: pair.upper(e, blocks)  # noqa: E731
    epsilons = np.linspace(0.0, 3.0, 3_001)
    totals = np.array([curve(e) + (exp(e) + 1) * slack for e in epsilons])
    least = float(totals.min())
    assert 0 < int(totals.argmin()) < 3_000  # it falls, then grows
    for share in (1e-6, 1e-3, 0.3):
        found = smallest_epsilon(curve, least * (1 + share), slack=slack, most=3.0, guess=1.0)
        assert found is not None
        first = epsilons[np.argmax(totals <= least * (1 + share))]
        assert first - 1e-3 <= found[1] <= first
    assert smallest_epsilon(curve, least * 0.99, slack=slack, most=3.0, guess=1.0) is None


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, 1e-9, 10, 1e-6),
        (np.nan, 1e-9, 10, 1e-6),
        (1.0, -1e-9, 10, 1e-6),
        (1.0, 1.0, 10, 1e-6),
        (1.0, np.True_, 10, 1e-6),
        (1.0, 1e-9, 0, 1e-6),
        (1.0, 1e-9, 10, 1.0),
        (1.0, 1e-9, 10, "1e-6"),
    ],
)
def test_arguments_outside_their_range_are_refused(arguments) -> None:  # type: ignore[no-untyped-def]
    epsilon0, delta0, n, delta = arguments
    with pytest.raises(ParameterError):
        amplify_approximate(epsilon0, delta0, n=n, delta=delta)
