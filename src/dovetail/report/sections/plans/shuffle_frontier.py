"""The frontier of order privacy in words and pictures: what alpha buys, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dovetail.report.charts.curve_chart import NamedCurve, curve_chart
from dovetail.report.charts.reference_line import ReferenceLine
from dovetail.report.number_format import ABSENT, upward
from dovetail.report.render.result_page import Number, Picture, ResultPage, Section
from dovetail.report.sections.tables import Table

Document = dict[str, Any]

COLUMNS = ("alpha asked", "shuffler", "alpha kept", "told apart", "lambda", "group error", "attack", "verdict")
LEGEND = (
    "told apart: bound on the chance to guess who of two people of one group sent a report, e^alpha / (1 + e^alpha).",
    "lambda: share of the differences between regions that the order takes away, 0 none, 1 all.",
    "group error: root mean square error of the share of a region, noise of the reports included.",
    "attack: chance that the sender posterior, which knows the shuffle's law, names a person's simulated value.",
    "verdict: beside stands for comparison; keeps is 1 - lambda, exposes the part of an attack's gain from a uniform "
    "shuffle to none. Buys nothing: keeps under 10 %; a uniform shuffle promises alpha = 0 for it. "
    "Costs everything: exposes more than 90 %. No promise: two of a group may be told apart with more than 99 %.",
)
LIMITS = (
    "The values are simulated: real ones may follow public columns more or less than these do.",
    "The attack is the best of ours, not of all; the bound in the column told apart holds whatever is done.",
    "The guarantee is alpha for the groups as they were given; what one report tells is up to epsilon.",
)


def frontier_table(document: Document) -> Table:
    """A row for each shuffler; uniform ones and none stand beside for comparison."""
    return Table(COLUMNS, tuple(_row(each) for each in document["points"]), LEGEND)


def frontier_page(document: Document, sentence: str) -> ResultPage:
    """The page: verdict, both curves, table, limits."""
    chance, agree = document["chance"], document["agree"]
    asked = [each for each in document["points"] if each["asked"] is not None]
    return ResultPage(
        kicker="Order privacy before any data",
        title="What alpha buys, and what it costs",
        verdict=sentence[:1].upper() + sentence[1:],
        found="nothing" if any(_worth(each) for each in asked) else "unclear",
        summary=(
            f"{document['n']:,} people in {document['regions']} regions of the public columns.",
            f"Simulated: {_percent(agree)} of a region hold its value, reports at epsilon = {document['epsilon']:g}.",
        ),
        numbers=(
            Number("Blind guess", _percent(chance), "right without any report"),
            Number("Knowing the regions", _percent(agree), "right from the shares of regions alone"),
            Number("No shuffle", _percent(_of(document, "identity")["attack"]), "right with everybody's own report"),
        ),
        sections=(
            Section("The frontier", pictures=_pictures(document, asked)),
            Section("In numbers", tables=(("Shufflers", frontier_table(document)),), words=("shuffler", "verdict")),
        ),
        limits=LIMITS,
        source="Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR.",
    )


def _worth(point: Document) -> bool:
    return str(point["verdict"]).startswith("keeps") and "no promise" not in point["verdict"]


def _pictures(document: Document, asked: Sequence[Document]) -> tuple[Picture, ...]:
    shown = [each for each in asked if 0.0 < each["asked"] < math.inf]
    if len(shown) < 2:
        return ()
    x = [each["asked"] for each in shown]
    even, bare = _of(document, "uniform"), _of(document, "identity")
    axis = "alpha asked (logarithmic)"
    error = curve_chart(
        [NamedCurve("group error", "curve-main", x, [each["error"] for each in shown])],
        title="Group error against alpha",
        description="The error of a region's share falls from that of a uniform shuffle to that of none.",
        tick=lambda value: f"{value:.2f}",
        levels=(
            ReferenceLine("uniform shuffle", "level-other", even["error"]),
            ReferenceLine("none", "level-main", bare["error"]),
        ),
        axis=axis,
    )  # fmt: skip
    attack = curve_chart(
        [
            NamedCurve("attack", "curve-main", x, [each["attack"] for each in shown]),
            NamedCurve("bound: two told apart", "curve-other", x, [each["told_apart"] for each in shown]),
        ],
        title="Attack success against alpha",
        description="The success of the attack rises from the blind guess to that without a shuffle.",
        tick=lambda value: f"{100 * value:.0f} %",
        levels=(
            ReferenceLine("blind guess", "level-main", document["chance"]),
            ReferenceLine("no shuffle", "level-other", bare["attack"]),
        ),
        axis=axis,
    )
    return Picture("Error of a region's share", error), Picture("Right guesses of a person's value", attack)


def _of(document: Document, shuffler: str) -> Document:
    found: Document = next(e for e in document["points"] if e["asked"] is None and e["shuffler"] == shuffler)
    return found


def _row(point: Document) -> tuple[str, ...]:
    return (
        ABSENT if point["asked"] is None else _alpha(point["asked"]),
        str(point["shuffler"]).replace("_", " ").replace("identity", "none"),
        _alpha(point["alpha"]),
        _percent(point["told_apart"]),
        f"{point['lost']:.2f}",
        f"{point['error']:.3f}",
        _percent(point["attack"]),
        point["verdict"],
    )


def _alpha(value: float) -> str:
    return "inf" if math.isinf(value) else upward(value)


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"
