"""A guarantee as the verbs print it: for machines, and for people."""

from __future__ import annotations

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


def show_guarantee(title: str, document: dict[str, Any]) -> None:
    """The same for people."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else upward(value)

    odds = document["odds"]
    rows = {
        "error of a point": _error(document),
        "guarantee": f"mu {text(document['mu'])} within {document['radius']:g} m",
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
