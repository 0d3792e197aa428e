"""Curves are their points."""

import numpy as np
import pytest

from dovetail.account.amplify import curve
from dovetail.account.clones import ClonePair
from dovetail.core.errors import ParameterError

AXES = {
    "n": {"epsilon0": 1.0, "n": np.geomspace(1e3, 1e9, 25).astype(int), "delta": 1e-6},
    "epsilon0": {"epsilon0": np.linspace(0.1, 8.0, 25), "n": 10**5, "delta": 1e-6},
    "delta": {"epsilon0": 1.0, "n": 10**6, "delta": np.geomspace(1e-12, 1e-2, 25)},
}


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("axis", AXES)
def test_every_point_is_certified_and_monotone(axis: str, adaptive: bool) -> None:
    found = curve(**AXES[axis], adaptive=adaptive)
    kind = "clones" if adaptive else "stronger clones"
    for epsilon0, n, delta, lower, upper in zip(
        found.epsilon0, found.n, found.delta, found.lower, found.upper, strict=True
    ):
        pair = ClonePair(float(epsilon0), int(n), kind)
        assert pair.delta(float(upper), resolution=1e-6).upper <= delta  # other blocks than the curve's
        assert lower <= upper <= max(lower * (1 + 1e-4), lower + 1e-6 * pair.gaussian_scale)
        assert lower <= pair.epsilon(float(delta)).upper * (1 + 1e-9)
    assert np.all(np.diff(found.upper) <= 0.0) or (axis == "epsilon0" and np.all(np.diff(found.upper) >= 0.0))


def test_axes_broadcast_and_keep_their_shape() -> None:
    found = curve(epsilon0=[[0.5], [1.0]], n=[10, 100, 1000], delta=1e-6)
    assert found.upper.shape == found.n.shape == (2, 3)
    ends = ClonePair(1.0, 1000).epsilon(1e-6)
    assert (found.lower[1, 2], found.upper[1, 2]) == (ends.lower, ends.upper)


def test_a_wrong_point_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="`n` must be"):
        curve(epsilon0=1.0, n=[10, 0], delta=1e-6)
    with pytest.raises(ParameterError, match="`delta` must be"):
        curve(epsilon0=1.0, n=10, delta=[1e-6, np.nan])
    with pytest.raises(ParameterError, match="grid"):
        curve(epsilon0=[], n=10, delta=1e-6)
    with pytest.raises(ParameterError, match="broadcast"):
        curve(epsilon0=[1.0, 2.0], n=[1, 2, 3], delta=1e-6)
