"""Questions of hundreds of nats, or where next to nobody lies, have an answer: no power leaves the doubles."""

import numpy as np
import pytest

from dovetail.account.amplify import amplify
from dovetail.account.expected_positive_part import saddle_point
from dovetail.core.special import Reals
from dovetail.core.stages import Randomizer
from dovetail.randomize.krr import KRR
from dovetail.randomize.unary import Unary


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("mechanism", "n", "delta"),
    [
        (KRR(3, 30.0), 10**5, 1e-300),
        (KRR(3, 29.09), 57_699, 3e-8),
        (Unary(5, 30.0, "symmetric"), 10**5, 1e-12),
        (Unary(5, 97.0, "symmetric"), 15, 1e-4),
    ],
    ids=str,
)
def test_the_promise_of_reports_that_hide_next_to_nothing_is_ordered(
    mechanism: Randomizer, n: int, delta: float
) -> None:
    found = amplify(mechanism, n=n, delta=delta)
    assert 0.0 <= found.attack_lower <= found.numeric.lower <= found.honest <= mechanism.guarantee.epsilon


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_the_tilt_is_found_for_values_of_any_size(scale: float) -> None:
    values: Reals = np.array([320.0, -1.14e26, -1.0])
    masses = np.array([9.4e-14, 9.4e-14, 1.0 - 2 * 9.4e-14])
    theta = saddle_point(scale * values, masses, 10**5) * scale
    tilted = masses * np.exp(theta * values)
    slope = 10**5 * float(tilted @ values) / float(tilted.sum()) * theta - 1.0
    assert abs(slope) < 0.02
