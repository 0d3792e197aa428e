"""Documents under sentence privacy as one HTML file that needs nothing else: no network, no script, no font."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dovetail.core.display.losses import upward
from dovetail.report.charts.curve_chart import NamedCurve, curve_chart
from dovetail.report.charts.reference_line import ReferenceLine
from dovetail.report.sections.text_verdict import text_verdict

_KINDS = ("curve-main", "curve-other", "curve-third", "curve-fourth", "curve-fifth", "curve-sixth")
_MOST_CURVES = len(_KINDS)

Figure = tuple[str, Markup]  # caption and picture


def render_text(document: dict[str, Any]) -> str:
    """The page of a release, a rehearsal or an attack.

    Parameters
    ----------
    document : dict
        As `dovetail text protect`, `evaluate` or `attack` print it with --json.
    """
    environment = Environment(
        loader=PackageLoader("dovetail.report.render"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["up"] = upward
    charts = [made for made in (_scores(document.get("rows", [])), _attacks(document.get("attacks", []))) if made]
    return environment.get_template("text.html.j2").render(
        document=document, charts=charts, verdict=text_verdict(document)
    )


def _scores(rows: list[dict[str, Any]]) -> Figure | None:
    """Macro-F1 against epsilon of all documents; None for a single epsilon."""
    whole = [row for row in rows if row["sentences"] == "all"]
    flat = [row for row in whole if row["epsilon"] is None]
    levels = [
        ReferenceLine(f"{row['release']}: {row['score']['macro_f1']:.2f}", kind, row["score"]["macro_f1"])
        for row, kind in zip(flat, ("level-main", "level-other"), strict=False)
    ]
    points = {
        name: [(row["epsilon"], row["score"]["macro_f1"]) for row in whole if row["release"] == name]
        for name in dict.fromkeys(row["release"] for row in whole if row["epsilon"] is not None)
    }
    return _chart(points, levels, "Macro-F1 of a public classifier on released embeddings")


def _attacks(rows: list[dict[str, Any]]) -> Figure | None:
    points = {}
    for attack in dict.fromkeys(row["attack"] for row in rows):
        mine = [row for row in rows if row["attack"] == attack]
        points[f"{attack}, best"] = [(row["epsilon"], row["best"]) for row in mine]
        points[f"{attack}, bound"] = [(row["epsilon"], row["bound"]) for row in mine]
    return _chart(points, [], "Success at naming a sentence, and the bound that epsilon implies")


def _chart(points: dict[str, list[tuple[float, float]]], levels: list[ReferenceLine], title: str) -> Figure | None:
    shown = dict(list(points.items())[:_MOST_CURVES])
    if not shown or min(len({x for x, _ in line}) for line in shown.values()) < 2:
        return None
    curves = [
        NamedCurve(name, kind, *map(list, zip(*sorted(line), strict=True)))
        for (name, line), kind in zip(shown.items(), _KINDS, strict=False)
    ]
    chart = curve_chart(
        curves, title=title, description="The table below holds the same numbers.", tick=lambda value: f"{value:g}",
        levels=levels, axis="epsilon (logarithmic)",
    )  # fmt: skip
    return title, chart
