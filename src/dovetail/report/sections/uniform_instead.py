"""Where a uniform shuffle is the better choice: it promises more, and no less can be learned from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dovetail.report.number_format import display_name, missing_reason, upward
from dovetail.report.sections.sentences import learnability_of

Document = dict[str, Any]

NO_LESS = 0.9  # of the error of a full shuffle; two means of ten releases differ by less
AS_GOOD = 1.05  # times the error of an order-private shuffle, inside disjoint groups


def uniform_instead(document: Document) -> Iterator[str]:
    """A sentence for each shuffler of a rehearsal whose order costs a promise and tells nothing for it."""
    entries = document.get("comparison") or [document]
    by_name = {str(entry["shuffler"]): entry for entry in entries}
    for name, entry in by_name.items():
        learned, alpha = learnability_of(entry), _alpha(entry)
        if not learned or alpha is None or alpha <= 0.0:
            continue
        shown = ", ".join(f"by {each['by']} {each['error']:.2f} against {each['uniform']:.2f}" for each in learned)
        if all(each["error"] >= NO_LESS * each["uniform"] for each in learned):
            central = _central(by_name.get("uniform"))
            yield (
                f"Better than {display_name(name)}: a uniform shuffle. The order tells hardly more about groups (λ "
                f"{shown}), and a uniform shuffle promises α = 0{central}. For an order that can be learned from, "
                "raise α or make the groups smaller."
            )
        elif _no_worse(by_name.get("within_groups"), learned):
            yield (
                f"Better than {display_name(name)}: the shuffle within groups. Groups are estimated as well from it, "
                f"and it promises α = 0{_central(by_name['within_groups'])}."
            )


def _alpha(entry: Document) -> float | None:
    """What the order costs; None where nothing is shuffled or nothing is promised."""
    order = entry["order"]
    if missing_reason(order) is not None or missing_reason(order["alpha"]) is not None or order["alpha"] == "inf":
        return None
    return float(order["alpha"])


def _central(entry: Document | None) -> str:
    """The central guarantee of a shuffle, where it was computed and hides more than the reports do."""
    if entry is None or missing_reason(entry["central"]) is not None:
        return " and a central ε" if entry is None else ""
    epsilon = entry["central"].get("epsilon")
    if missing_reason(epsilon) is not None or not float(epsilon) < float(entry["local"]["epsilon"]):
        return ""
    return f" and a central ε of {upward(epsilon)}"


def _no_worse(entry: Document | None, learned: list[Document]) -> bool:
    """Whether every column's groups are estimated about as well from another shuffle."""
    other = {} if entry is None else {each["by"]: each["error"] for each in learnability_of(entry)}
    return bool(other) and all(other.get(each["by"], 2.0) <= AS_GOOD * each["error"] for each in learned)
