"""What a report opens with: the verdict by whom one has to trust, what is public, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from dovetail.core.verdict import Promise, Verdict, judge, warnings_of
from dovetail.report.number_format import Document, display_name, missing_reason
from dovetail.report.sentences import amplifies, has_dummies

NOTHING = "Nothing stands out. Read the assumptions before anything is released."


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
    if estimates["measure"] != "share" or missing_reason(overall) is not None:
        return None
    return min(1.0, max(float(high) for _, high in overall["interval"]))


def verdict(document: Document) -> tuple[VerdictLine, ...]:
    """The verdict, a line for each set of people whom one may trust, what is public, and what to do."""
    found = judged(document)
    return (
        VerdictLine("Protection of one person", found.word, f"{found.sentence()}."),
        *(VerdictLine(f"Trusting {row.who}", row.word, f"{row.sentence()}.") for row in found.rows),
        VerdictLine("Public", "", " ".join(_public(document))),
        VerdictLine("What to do", "", " ".join(_steps(document)) or NOTHING),
    )


def _promise(block: Document) -> Promise:
    return Promise(float(block["epsilon"]), float(block.get("delta") or 0.0))


def _moves(document: Document) -> bool:
    """Whether anything is shuffled."""
    order = document["order"]
    return missing_reason(order) is None and math.isfinite(float(order["alpha"]))


# --- what is public ------------------------------------------------------------------------------------------------


def _public(document: Document) -> Iterator[str]:
    """Which columns leave as they are, how many people are alone with theirs, and who is seen to take part."""
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
    alone = document["collection"].get("alone")
    if missing_reason(alone) is None and alone:
        yield "Publish fewer or coarser columns."
    better = document["estimates"].get("better")
    if better is not None and missing_reason(better) is None:
        yield f"Take the randomizer {display_name(better['name'])}: it is more accurate for so many values."
    if document["mode"] == "rehearsal":
        yield f"Keep this rehearsal in the house. {_release(document)}"


def _hiding(central: Document) -> int:
    """People behind whom one hides; noise of a shuffler hides her by itself."""
    return int(central["n"] if has_dummies(central) else central["honest_n"])


def _release(document: Document) -> str:
    """What turns this rehearsal into a release."""
    unconfirmed = document["collection"].get("unconfirmed") or ()
    also = ["remove `seed`"] if isinstance(document["seed"], int) else []
    also += [f"confirm {', '.join(unconfirmed)} and delete `unconfirmed`"] if unconfirmed else []
    declare = ["declare `categories`"] if document["collection"].get("inferred") and not unconfirmed else []
    if not document["config"]:
        return f"To release, {''.join(f'{one} and ' for one in declare)}call dt.release."
    also += declare
    return f'To release, set mode = "release"{"".join(f", {one}" for one in also)}.'
