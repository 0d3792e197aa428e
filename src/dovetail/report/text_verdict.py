"""The sentence that opens the page of a rehearsal of documents: what releases are good for, or give away."""

from __future__ import annotations

from typing import Any

from dovetail.report.number_format import percent, percent_up, upward

SURE = 2.0  # standard deviations over the mechanism's randomness by which a release has to beat guessing
_DOES = {"inversion": "names a sentence of a document", "membership": "tells whether a sentence was in a document"}

Row = dict[str, Any]


def text_verdict(document: dict[str, Any]) -> str:
    """One or two sentences; empty for a release, whose page opens with its guarantee."""
    if "rows" in document:
        return _usefulness([row for row in document["rows"] if row["sentences"] == "all"])
    return _given_away(document["attacks"]) if document.get("attacks") else ""


def _usefulness(rows: list[Row]) -> str:
    """The smallest epsilon at which a release is more useful than guessing, and the best at the largest."""
    plain = {row["release"].partition(" ")[0]: row["score"]["macro_f1"] for row in rows if row["epsilon"] is None}
    guess, full = plain["guess"], plain["mean"]
    private = [row for row in rows if row["epsilon"] is not None and "incomparable" not in row["unit"]]
    if not private:
        return ""
    scale = f"{full:.2f} without privacy and {guess:.2f} by guessing"
    useful = [row for row in private if row["score"]["macro_f1"] - SURE * row["score"]["macro_f1_deviation"] > guess]
    if not useful:
        tried = upward(max(row["epsilon"] for row in private))
        return f"No release is more useful than guessing up to epsilon {tried}, the largest that was tried: {scale}."
    first = min(useful, key=lambda row: (row["epsilon"], -row["score"]["macro_f1"]))
    best = max(private, key=lambda row: float(row["score"]["macro_f1"]))
    more = "" if best is first else f" The best of all: {_scored(best)}."
    return (
        f"Releases are more useful than guessing from epsilon {upward(first['epsilon'])} on: {_scored(first)}, "
        f"against {scale}.{more}"
    )


def _scored(row: Row) -> str:
    return f"{row['release']} at epsilon {upward(row['epsilon'])} has a macro-F1 of {row['score']['macro_f1']:.2f}"


def _given_away(rows: list[Row]) -> str:
    """The attack that gains most over chance, and what it gains at the smallest epsilon."""
    worst = max(rows, key=lambda row: float(row["best"] - row["chance"]))
    least = min((row for row in rows if row["attack"] == worst["attack"]), key=lambda row: float(row["epsilon"]))
    more = "" if least is worst else f" At epsilon {upward(least['epsilon'])} it is {percent_up(least['best'])}."
    return (
        f"The most that is given away: at epsilon {upward(worst['epsilon'])} the best possible attacker "
        f"{_DOES[worst['attack']]} in {percent_up(worst['best'])} of the cases, by chance in "
        f"{percent(worst['chance'])}; epsilon allows {percent_up(worst['bound'])} at most.{more}"
    )
