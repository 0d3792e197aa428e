"""The opening of a report: the verdict by whom one has to trust, what is public, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from dovetail.core.stages import RANDOMIZERS
from dovetail.core.verdict import Promise, Verdict, judge, warnings_of
from dovetail.report.number_format import Document, label_of, missing_reason, percent, percent_up, upward
from dovetail.report.sentences import amplifies, has_dummies

READ = "Read the assumptions before anything is published."


class VerdictLine(NamedTuple):
    """One line of the first screen; `grade` is a word of the scale, or "" where nothing is graded."""

    name: str
    grade: str
    text: str

    @property
    def words(self) -> str:
        """The text with its grade, once."""
        return self.text if self.text.startswith(self.grade) else f"{self.grade}: {self.text}"


def judged(document: Document) -> Verdict:
    """Judge what a report promises: the same function as for plans, from the numbers in the document."""
    local, central = document["local"], document["central"]
    everybody, commonest = int(document["collection"]["n"]), _commonest(document)
    own = Promise(math.inf) if missing_reason(local) is not None else _promise(local)
    if missing_reason(central) is not None:
        return judge(own, n=everybody, shuffled=_moves(document), commonest=commonest)
    alone = (
        central.get("trust") == "shuffler" and central["honest_n"] == 1
    )  # the shuffler's noise needs no other people
    return judge(
        own,
        shuffler=_promise(central) if alone else None,
        people=_promise(central),
        n=int(central["n"]),
        honest=None if alone else int(central["honest_n"]),
        crowd="people" if int(central["n"]) >= everybody else "people of the smallest group",
        commonest=commonest,
    )


def _commonest(document: Document) -> float | None:
    """The largest upper end of a published share: who reads the report knows the commonest answer and this of it."""
    estimates = document["estimates"]
    overall = estimates["overall"]
    if estimates["measure"] != "share" or missing_reason(overall) is not None or len(overall["labels"]) < 2:
        return None  # a single share is of no answer
    return min(1.0, max(float(high) for _, high in overall["interval"]))


def verdict(document: Document) -> tuple[VerdictLine, ...]:
    """The verdict, a line for each set of people whom one may trust, what is public, and what to do."""
    found = judged(document)
    return (
        VerdictLine("Protection of one person", found.word, f"{found.sentence()}."),
        *(VerdictLine(f"Trusting {row.who}", row.word, f"{row.sentence()}.") for row in found.rows),
        VerdictLine("Public", "", " ".join(_public(document))),
        VerdictLine("What to do", "", " ".join(_steps(document)) or READ),
    )


def _promise(block: Document) -> Promise:
    return Promise(float(block["epsilon"]), float(block.get("delta") or 0.0))


def _moves(document: Document) -> bool:
    """True if anything is shuffled."""
    order = document["order"]
    return missing_reason(order) is None and math.isfinite(float(order["alpha"]))


# --- what is public ------------------------------------------------------------------------------------------------


def _public(document: Document) -> Iterator[str]:
    """Say which columns are released as they are, how many people are unique in them, and who is seen."""
    collection = document["collection"]
    published = collection.get("published", collection["public"])
    if not published:
        yield "No column beside the reports; how many people took part is visible."
        return
    yield f"Published unchanged, so that taking part is visible: {', '.join(published)}."
    alone = collection.get("alone")
    if missing_reason(alone) is None:
        yield f"Alone with their combination: {alone:,} of {collection['n']:,} people."
    found = document.get("copying")
    if found is not None and missing_reason(found) is None:
        yield f"Test whether released rows are those of people: {found['verdict']} (p = {found['p_copying']:.1g})."


# --- what to do ----------------------------------------------------------------------------------------------------


def _steps(document: Document) -> Iterator[str]:
    central, first = document["central"], judged(document).rows[0]
    known = missing_reason(central) is None
    delta, n = (float(central["delta"]), int(central["n"])) if known else (0.0, int(document["collection"]["n"]))
    for warning in warnings_of(delta, n, honest=_hiding(central) if known else None, epsilon0=first.epsilon):
        yield f"{warning[0].upper()}{warning[1:]}."
    if not known:
        yield f"There is no promise for the shuffled reports ({missing_reason(central)})."
    elif not amplifies(central):
        yield "More honest people, or larger groups, are needed for shuffling to protect anybody."
    told = document["estimates"].get("hidden", document["collection"].get("too_few"))
    if told is not None:
        yield f"{told[0].upper()}{told[1:]}."
    alone = document["collection"].get("alone")
    if missing_reason(alone) is None and alone:
        yield "Publish fewer or coarser columns."
    better = document["estimates"].get("better")
    if better is not None and missing_reason(better) is None:
        name = better["name"]
        yield f'Take {label_of(RANDOMIZERS, name)} (randomizer = "{name}"): it is more accurate for so many values.'
    if document["mode"] == "rehearsal":
        yield f"Keep this rehearsal in the house. {_release(document)}"


def _hiding(central: Document) -> int:
    """People behind whom one hides; noise of a shuffler hides her by itself."""
    return int(central["n"] if has_dummies(central) else central["honest_n"])


def _release(document: Document) -> str:
    """Say what turns this rehearsal into a release."""
    unconfirmed = document["collection"].get("unconfirmed") or ()
    also = ["remove `seed`"] if isinstance(document["seed"], int) else []
    also += [f"confirm {', '.join(unconfirmed)} and delete `unconfirmed`"] if unconfirmed else []
    declare = ["declare `categories`"] if document["collection"].get("inferred") and not unconfirmed else []
    if not document["config"]:
        return f"To release, {''.join(f'{one} and ' for one in declare)}call dt.release."
    also += declare
    return f'To release, set mode = "release"{"".join(f", {one}" for one in also)}.'


# The sentence that opens the page of a rehearsal of documents: what releases are good for, or give away.


SURE = 2.0  # standard deviations over the mechanism's randomness by which a release has to beat guessing
_DOES = {"inversion": "names a sentence of a document", "membership": "tells whether a sentence was in a document"}

Row = dict[str, Any]


def text_verdict(document: dict[str, Any]) -> str:
    """One or two sentences for the top of the page."""
    if "rows" in document:
        return _usefulness([row for row in document["rows"] if row["sentences"] == "all"])
    if document.get("attacks"):
        return _given_away(document["attacks"])
    return _promised(float(document["epsilon"])) if "epsilon" in document else ""


def _promised(epsilon: float) -> str:
    """The word of the one scale, and how often a guess between two sentences is right."""
    found = judge(Promise(epsilon), n=1, shuffled=False)
    return (
        f"Protection of one sentence: {found.sentence()}. A guess between two is right: blind 50%, from this at most "
        f"{percent_up(found.rows[0].guess)}."
    )


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
