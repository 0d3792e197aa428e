"""Pictures: strips of images, maps of points and traces inside a page, and figures as files."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from math import atan2, degrees
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dovetail.core.display import figure_style
from dovetail.core.errors import OutputError
from dovetail.core.extras import require
from dovetail.report.charts import WIDTH, svg_line, svg_picture, svg_text

if TYPE_CHECKING:
    import polars as pl


# Rows of small pictures as one PNG inside the page: what was generated above what it is nearest to.


Pixels = NDArray[np.uint8]  # (h, w, 3)


def image_strip(rows: Sequence[Sequence[Pixels]], *, title: str) -> Markup:
    """Rows of equally large pictures, one below the other, as an <img> that needs no file."""
    lines = [np.concatenate([_framed(picture) for picture in row], axis=1) for row in rows]
    data = b64encode(png(np.concatenate(lines, axis=0))).decode()
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(title, data)


def as_pixels(picture: NDArray[np.generic], *, low: float, high: float) -> Pixels:
    """A picture (h, w), (h, w, 1) or (h, w, 3) with numbers from `low` to `high`."""
    whole = np.asarray(picture, dtype=np.float64)
    whole = whole[:, :, None] if whole.ndim == 2 else whole
    scaled = np.clip((whole - low) / max(high - low, 1e-300), 0.0, 1.0)
    return np.asarray(np.rint(255 * np.broadcast_to(scaled, (*whole.shape[:2], 3))), dtype=np.uint8)


def png(pixels: Pixels) -> bytes:
    """The file format, without a library: one filter byte before each line of RGB."""
    height, width = pixels.shape[:2]
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    ]
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _framed(picture: Pixels) -> Pixels:
    return np.pad(picture, ((2, 2), (2, 2), (0, 0)), constant_values=255)


# Points of three samples in a plane, with labels at places: a map of the cells of a comparison.


_HEIGHT, _EDGE, _FOOT = 300.0, 10.0, 28.0

Points = Sequence[Sequence[float]]


def point_map(samples: Sequence[tuple[str, str, Points]], labels: Sequence[tuple[Sequence[float], str]]) -> Markup:
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
    title = "Cells of the training data"
    return svg_picture(_HEIGHT + _FOOT, title, title, parts)


# A map-like picture of a trace: where somebody was, what was released, and what an adversary believes.


_MAP_HEIGHT, _MAP_EDGE, _MAP_FOOT = 300.0, 14.0, 64.0
_SURE = 2.0  # ellipses hold 86 % of a planar Gaussian


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
    scale = min((WIDTH - 2 * _MAP_EDGE) / (right - left), (_MAP_HEIGHT - 2 * _MAP_EDGE) / (top - bottom))

    def place(point: Sequence[float]) -> tuple[float, float]:
        return _MAP_EDGE + (point[0] - left) * scale, _MAP_HEIGHT - _MAP_EDGE - (point[1] - bottom) * scale

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
    return svg_picture(_MAP_HEIGHT + _MAP_FOOT, title, title, [*parts, *_legend(scale)])


def _path(kind: str, points: Sequence[tuple[float, float]]) -> Markup:
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline class="{}" points="{}"/>').format(kind, steps)


def _legend(scale: float) -> list[Markup]:
    """Draw the legend of the lines, and a scale of a round number of metres."""
    round_lengths = (5000, 2000, 1000, 500, 200, 100, 50, 20, 10)
    length = next((metres for metres in round_lengths if metres * scale <= 90), 1)
    low, high = _MAP_HEIGHT + 16, _MAP_HEIGHT + 40
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


# Pictures as files: one style, readable in print and colour-blind safe, drawn by matplotlib (extra `studies`).


KINDS = (".pdf", ".png", ".svg")


def save_figure(place: Path, draw: Callable[[Any], Any], *, kind: str | None = None) -> None:
    """Save the figure that draw(pyplot) returns.

    Parameters
    ----------
    place : Path
    draw : function of matplotlib.pyplot that returns a figure
    kind : str, optional
        ".pdf", ".png" or ".svg"; default the ending of `place`.

    Raises
    ------
    OutputError
        When the kind is none of these.
    MissingExtraError
        Without matplotlib.
    """
    ending = kind or place.suffix
    check_figure(Path(f"figure{ending}"))
    with figure_style() as pyplot:
        figure = draw(pyplot)
        figure.savefig(place, format=ending[1:].lower(), bbox_inches="tight", dpi=150)
        pyplot.close(figure)


def check_figure(place: Path) -> None:
    """Refuse what could not be drawn, before the work is done."""
    if place.suffix.lower() not in KINDS:
        raise OutputError(f"{place}: a picture is one of {', '.join(KINDS)}; name it so.")
    require("matplotlib", extra="studies").use("Agg")


def line_figure(
    pyplot: Any, table: pl.DataFrame, x: str, *, labels: dict[str, str], y: str, log_x: bool, log_y: bool, title: str
) -> Any:
    """One line for each column of `table` named in `labels` against column `x`; gaps where a value is null."""
    import polars as pl

    figure, axis = pyplot.subplots(figsize=(6.4, 4.2))
    for column, label in labels.items():
        axis.plot(table[x].to_numpy(), table[column].cast(pl.Float64).to_numpy(), label=label)
    axis.set(xlabel=x, ylabel=y, title=title)
    if log_x:
        axis.set_xscale("log")
    if log_y:
        axis.set_yscale("log")
    axis.legend(fontsize="small")
    return figure
