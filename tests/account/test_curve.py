"""Curves are their points."""

import numpy as np
import pytest

from dovetail.account.amplify import amplify, curve
from dovetail.core.errors import ParameterError

AXES = {
    "n": {"epsilon0": 1.0, "n": np.geomspace(1e3, 1e9, 5).astype(int), "delta": 1e-6},
    "epsilon0": {"epsilon0": np.linspace(0.1, 8.0, 5), "n": 10**5, "delta": 1e-6},
    "delta": {"epsilon0": 1.0, "n": 10**6, "delta": np.geomspace(1e-12, 1e-2, 5)},
}


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("axis", AXES)
def test_every_point_is_what_amplify_promises_and_monotone(axis: str, adaptive: bool) -> None:
    found = curve(**AXES[axis], adaptive=adaptive)
    for place in (0, 2, 4):
        question = {name: axis.flat[place].item() for name, axis in (("n", found.n), ("delta", found.delta))}
        single = amplify(
            float(found.epsilon0[place]), n=int(question["n"]), delta=question["delta"], adaptive=adaptive
        )
        assert found.upper[place] == single.epsilon
        assert found.lower[place] == single.attack_lower <= single.epsilon
    assert np.all(np.diff(found.upper) <= 0.0) or (axis == "epsilon0" and np.all(np.diff(found.upper) >= 0.0))


def test_axes_broadcast_and_keep_their_shape() -> None:
    found = curve(epsilon0=[[0.5], [1.0]], n=[10, 100, 1000], delta=1e-6)
    assert found.upper.shape == found.n.shape == (2, 3)
    assert found.upper[1, 2] == amplify(1.0, n=1000, delta=1e-6).epsilon


def test_a_wrong_point_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="`n` must be"):
        curve(epsilon0=1.0, n=[10, 0], delta=1e-6)
    with pytest.raises(ParameterError, match="`delta` must be"):
        curve(epsilon0=1.0, n=10, delta=[1e-6, np.nan])
    with pytest.raises(ParameterError, match="grid"):
        curve(epsilon0=[], n=10, delta=1e-6)
    with pytest.raises(ParameterError, match="broadcast"):
        curve(epsilon0=[1.0, 2.0], n=[1, 2, 3], delta=1e-6)
