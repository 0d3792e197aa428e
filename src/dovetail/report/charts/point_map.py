"""Points of three samples in a plane, with labels at places: a map of the cells of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from dovetail.report.charts.svg import WIDTH, svg_picture, svg_text

_HEIGHT, _EDGE, _FOOT = 300.0, 10.0, 28.0

Points = Sequence[Sequence[float]]


def point_map(
    samples: Sequence[tuple[str, str, Points]], labels: Sequence[tuple[Sequence[float], str]], *, title: str
) -> Markup:
    """A scatter of samples, each with its class of the style sheet and its name, and labels at places of the plane.

    Both axes are stretched to fill the picture.
    """
    east = [point[0] for _, _, points in samples for point in points]
    north = [point[1] for _, _, points in samples for point in points]
    left, bottom = min(east), min(north)
    wide, high = max(max(east) - left, 1e-300), max(max(north) - bottom, 1e-300)

    def place(point: Sequence[float]) -> tuple[float, float]:
        return (
            _EDGE + (point[0] - left) / wide * (WIDTH - 2 * _EDGE),
            _HEIGHT - _EDGE - (point[1] - bottom) / high * (_HEIGHT - 2 * _EDGE),
        )

    parts = []
    for kind, _, points in samples:
        for point in points:
            x, y = place(point)
            parts.append(Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="1.8"/>').format(kind, x, y))
    for where, words in labels:
        x, y = place(where)
        parts.append(svg_text("label middle", min(max(x, 30.0), WIDTH - 30.0), min(max(y, 14.0), _HEIGHT - 4), words))
    for number, (kind, name, _) in enumerate(samples):
        x = _EDGE + number * (WIDTH - 2 * _EDGE) / len(samples)
        parts.append(Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="4"/>').format(kind, x + 4, _HEIGHT + 14))
        parts.append(svg_text("legend start", x + 13, _HEIGHT + 18, name))
    return svg_picture(_HEIGHT + _FOOT, title, title, parts)
