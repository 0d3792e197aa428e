"""What a promise leaves to guess is what the best mechanism that keeps it gives away, and no more."""

import numpy as np
import pytest
from scipy.optimize import linprog

from dovetail.account.closed_forms import guess_bound, guess_bounds
from dovetail.core.errors import DataError, ParameterError


def best_mechanism(prior: list[float], epsilon: float, delta: float) -> float:
    """Largest chance of a right guess over all (epsilon, delta)-private laws of guesses, by a linear program.

    Variables: P[x, g] (k, k), and for each ordered pair x, x' and guess g its excess over e^epsilon P[x', g].
    """
    k = len(prior)
    pairs = [(x, other) for x in range(k) for other in range(k) if x != other]
    size = k * k + len(pairs) * k
    gain = np.zeros(size)
    rows, limits = [], []
    for x in range(k):
        gain[x * k + x] = -prior[x]
    for number, (x, other) in enumerate(pairs):
        total = np.zeros(size)
        for g in range(k):
            excess = k * k + number * k + g
            row = np.zeros(size)
            row[x * k + g], row[other * k + g], row[excess] = 1.0, -np.exp(epsilon), -1.0
            rows.append(row)
            limits.append(0.0)
            total[excess] = 1.0
        rows.append(total)
        limits.append(delta)
    sums = np.zeros((k, size))
    for x in range(k):
        sums[x, x * k : (x + 1) * k] = 1.0
    found = linprog(gain, A_ub=np.array(rows), b_ub=limits, A_eq=sums, b_eq=np.ones(k), bounds=(0, 1))
    return float(-found.fun)


@pytest.mark.parametrize(
    ("prior", "epsilon", "delta"),
    [
        ([0.5, 0.5], 1.0, 0.0),
        ([0.9, 0.1], 1.0, 0.0),
        ([0.6, 0.3, 0.1], 0.7, 0.0),
        ([0.6, 0.3, 0.1], 1.5, 0.05),
        ([0.25, 0.25, 0.25, 0.25], 0.0, 0.1),
        ([0.4, 0.3, 0.2, 0.1], 2.0, 0.01),
    ],
)
def test_the_bound_is_the_best_of_all_private_mechanisms(prior: list[float], epsilon: float, delta: float) -> None:
    assert guess_bound(prior, epsilon=epsilon, delta=delta) == pytest.approx(
        best_mechanism(prior, epsilon, delta), abs=1e-8
    )


def test_without_a_report_the_blind_guess_is_left_and_without_a_promise_everything() -> None:
    assert guess_bound([0.2, 0.5, 0.3], epsilon=0.0) == pytest.approx(0.5, abs=1e-11)
    assert guess_bound([0.2, 0.5, 0.3], epsilon=np.inf) == guess_bound([0.2, 0.8], epsilon=1.0, delta=1.0) == 1.0


def test_every_row_is_bounded_by_itself() -> None:
    rows = np.array([[0.5, 0.5], [0.9, 0.1]])
    assert guess_bounds(rows, epsilon=1.0).tolist() == [guess_bound(row, epsilon=1.0) for row in rows]


def test_what_is_no_prior_and_no_promise_is_refused() -> None:
    with pytest.raises(DataError, match="sum to 1"):
        guess_bound([0.5, 0.6], epsilon=1.0)
    with pytest.raises(ParameterError, match="`delta` must be in"):
        guess_bound([0.5, 0.5], epsilon=1.0, delta=1.5)
    with pytest.raises(ParameterError, match="`epsilon`"):
        guess_bound([0.5, 0.5], epsilon=-1.0)
