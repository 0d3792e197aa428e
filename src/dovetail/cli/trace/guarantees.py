"""A guarantee as the verbs print it: for machines, and for people."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from dovetail.cli.console.output import print_rows
from dovetail.core.display.losses import upward

if TYPE_CHECKING:
    from dovetail.trace.guarantee import TraceGuarantee


def describe(guarantee: TraceGuarantee, delta: float) -> dict[str, Any]:
    """A guarantee for machines."""

    def number(value: float) -> float | str:
        return "inf" if value == float("inf") else value

    finite = guarantee.mu < float("inf")
    return {
        "noise": guarantee.noise,
        "mu": number(guarantee.mu),
        "epsilon": guarantee.epsilon(delta) if finite else "inf",
        "delta": delta,
        "odds": {"1 %": guarantee.odds(0.01), "10 %": guarantee.odds(0.1)}
        if finite
        else {"1 %": "inf", "10 %": "inf"},
        "meaning": _meaning(guarantee),
        "by_adversary": {name: number(value) for name, value in guarantee.by_adversary.items()},
        "secrets": [
            {
                "points": list(one.places),
                "start": one.start,
                "end": one.end,
                "mu": number(one.mu),
                "width": one.width,
                "other_release": one.other_release,
            }
            for one in guarantee.secrets
        ],
        "releases": guarantee.releases,
        "conditions": list(guarantee.conditions),
        "caveats": list(guarantee.caveats),
        "source": guarantee.source,
    }


def _meaning(guarantee: TraceGuarantee) -> str:
    """mu as a sentence: who holds even odds, and how sure the release makes him in one case of ten."""
    odds = guarantee.odds(0.1) if guarantee.mu < float("inf") else float("inf")
    sure = ceil(100.0 / (1.0 + 1.0 / odds))
    return (
        f"somebody undecided between two places {guarantee.radius:g} m apart is {sure} % sure in one release of ten"
    )


def _beside(document: dict[str, Any]) -> dict[str, str]:
    """What independent noise of the same error would tell, where that was computed."""
    found = document.get("uniform_mu")
    return {} if found is None else {"uniform noise": f"mu {upward(found)} at the same error"}


def show_guarantee(title: str, document: dict[str, Any]) -> None:
    """The same for people."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else upward(value)

    odds = document["odds"]
    rows = {
        "error of a point": _error(document),
        "guarantee": f"mu {text(document['mu'])} within {document['radius']:g} m",
        "that is": document["meaning"],
        **_beside(document),
        "releases counted": str(document["releases"]),
        "epsilon": f"{text(document['epsilon'])} at delta {document['delta']:g}",
        "posterior odds": f"{text(odds['10 %'])} with chance 10 %, {text(odds['1 %'])} with chance 1 %",
        **{f"mu, {name}": text(value) for name, value in document["by_adversary"].items()},
        "secrets": f"{len(document['secrets']):,}",
        "conditions": " ".join(f"({i}) {each}" for i, each in enumerate(document["conditions"], start=1)),
    }
    if document["caveats"]:
        rows["caution"] = "; ".join(document["caveats"])
    rows |= document["files"]
    print_rows(title, rows)


def _error(document: dict[str, Any]) -> str:
    mean = f"{document['error']:.4g} m (root mean square), {document['noise']} noise"
    worst = document.get("worst_point_error")
    return mean if worst is None else f"{mean}; the point that moves most: {worst:.4g} m"
