"""A map-like picture of a trace: where somebody was, what was released, and what an adversary believes."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, degrees

from markupsafe import Markup

from dovetail.report.charts.svg import WIDTH, svg_line, svg_picture, svg_text

_HEIGHT, _EDGE, _FOOT = 300.0, 14.0, 64.0
_SURE = 2.0  # ellipses hold 86 % of a planar Gaussian

Points = Sequence[Sequence[float]]


def trace_map(
    true: Points,
    released: Points,
    *,
    secrets: Sequence[int],
    centres: Points,
    deviations: Points,
    axes: Points,
    frame: tuple[float, float, float, float],
    title: str,
) -> Markup:
    """The picture of one release; metres east and north.

    Parameters
    ----------
    true, released : points (n, 2)
    secrets : positions of the secret points
    centres, deviations : points (k, 2)
        Posterior means, and standard deviations along `axes`, of the adversary who knows the kernel.
    axes : two unit vectors
    frame : left, bottom, right, top
        The same for pictures that are compared.
    title : str
    """
    left, bottom, right, top = frame
    scale = min((WIDTH - 2 * _EDGE) / (right - left), (_HEIGHT - 2 * _EDGE) / (top - bottom))

    def place(point: Sequence[float]) -> tuple[float, float]:
        return _EDGE + (point[0] - left) * scale, _HEIGHT - _EDGE - (point[1] - bottom) * scale

    angle = -degrees(atan2(axes[0][1], axes[0][0]))  # the picture's second coordinate points down
    parts = [_path("map-true", [place(p) for p in true]), _path("map-released", [place(p) for p in released])]
    for spot, centre, spread in zip(secrets, centres, deviations, strict=True):
        x, y = place(centre)
        parts.append(
            Markup(
                '<ellipse class="map-belief" cx="{:.1f}" cy="{:.1f}" rx="{:.1f}" ry="{:.1f}" '
                'transform="rotate({:.1f} {:.1f} {:.1f})"/>'
            ).format(x, y, max(1.5, _SURE * spread[0] * scale), max(1.5, _SURE * spread[1] * scale), angle, x, y)
        )
        x, y = place(true[spot])
        parts.append(Markup('<circle class="map-secret" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(x, y))
    return svg_picture(_HEIGHT + _FOOT, title, title, [*parts, *_legend(scale)])


def _path(kind: str, points: Sequence[tuple[float, float]]) -> Markup:
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline class="{}" points="{}"/>').format(kind, steps)


def _legend(scale: float) -> list[Markup]:
    """What the lines are, and how long a round number of metres is."""
    round_lengths = (5000, 2000, 1000, 500, 200, 100, 50, 20, 10)
    length = next((metres for metres in round_lengths if metres * scale <= 90), 1)
    low, high = _HEIGHT + 16, _HEIGHT + 40
    return [
        svg_line("map-true", 12, low, 40, low),
        svg_text("label start", 46, low + 4, "true"),
        svg_line("map-released", 92, low, 120, low),
        svg_text("label start", 126, low + 4, "released"),
        svg_line("map-scale", 215, low, 215 + length * scale, low),
        svg_text("label start", 221 + length * scale, low + 4, f"{length:,} m"),
        Markup('<circle class="map-secret" cx="26" cy="{:.1f}" r="3.5"/>').format(high),
        svg_text("label start", 46, high + 4, "secret place"),
        Markup('<ellipse class="map-belief" cx="156" cy="{:.1f}" rx="12" ry="7"/>').format(high),
        svg_text("label start", 174, high + 4, "belief, 86 %"),
    ]


def common_frame(pictures: Sequence[Points]) -> tuple[float, float, float, float]:
    """Left, bottom, right and top of all of these points, with a little room."""
    east = [point[0] for points in pictures for point in points]
    north = [point[1] for points in pictures for point in points]
    room = 0.03 * max(max(east) - min(east), max(north) - min(north), 1.0)
    return min(east) - room, min(north) - room, max(east) + room, max(north) + room
