"""Metres of a tangent plane: distances hold, poles and the antimeridian are not special, nonsense is refused."""

import numpy as np
import pytest

from dovetail.core.errors import DataError, ParameterError
from dovetail.trace.trace import TangentPlane

ORIGINS = [(0.0, 0.0), (41.15, -8.6), (-33.9, 179.99), (89.999, 12.0), (-90.0, 0.0)]


@pytest.mark.parametrize("origin", ORIGINS, ids=str)
def test_there_and_back_is_the_same_place_within_a_millimetre(origin: tuple[float, float]) -> None:
    plane = TangentPlane(*origin)
    rng = np.random.default_rng(7)
    metres = rng.uniform(-50_000, 50_000, (200, 2))
    latitude, longitude = plane.to_degrees(metres)
    assert np.abs(plane.to_metres(latitude, longitude) - metres).max() < 1e-3


def test_north_and_east_are_not_mixed_up_and_east_shrinks_with_latitude() -> None:
    plane = TangentPlane(60.0, 10.0)
    (east, north), (still, up) = plane.to_metres([60.0, 60.001], [10.001, 10.0])
    assert abs(north) < 0.01 and abs(still) < 0.01
    assert east == pytest.approx(55.8, abs=0.1) and up == pytest.approx(111.4, abs=0.1)  # WGS 84 at 60 degrees


def test_a_step_over_the_antimeridian_is_a_step() -> None:
    plane = TangentPlane(-17.0, 180.0)
    points = plane.to_metres([-17.0, -17.0], [179.999, -179.999])
    assert np.linalg.norm(points[1] - points[0]) == pytest.approx(213.0, abs=0.5)


@pytest.mark.parametrize(
    ("latitude", "longitude", "word"),
    [
        (91.0, 0.0, "in \\[-90, 90\\]"),
        (0.0, 400.0, "in \\[-180, 360\\]"),
        (np.nan, 0.0, "1 points do not"),
        (9.0, 0.0, "km from"),
    ],
)
def test_places_that_are_none_or_far_away_are_refused(latitude: float, longitude: float, word: str) -> None:
    with pytest.raises(DataError, match=word):
        TangentPlane(0.0, 0.0).to_metres([latitude], [longitude])


def test_an_origin_that_is_none_is_refused() -> None:
    with pytest.raises(ParameterError, match="`latitude` of the origin"):
        TangentPlane(100.0, 0.0)
