"""What `dovetail account` prints: the central epsilon, where the truth lies, and all bounds side by side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import typer

from dovetail.cli.console.output import print_rows
from dovetail.core.display.losses import downward

WIDTH = 24  # characters of the bar


def print_inverse(document: dict[str, Any]) -> None:
    """The largest epsilon0, rounded down, and how well it protects one person."""
    from dovetail.core.verdict import numbered

    epsilon0 = f"{math.floor(document['epsilon0'] * 1e6) / 1e6:.6f}"
    rows = {"epsilon0": epsilon0, "protection": document["verdict"]["sentence"], **numbered(document["notes"])}
    print_rows("Largest local epsilon", rows)


def print_account(document: dict[str, Any]) -> None:
    from dovetail.core.verdict import numbered

    rows = {
        "protection": document["verdict"]["sentence"],
        "epsilon": _words(document["epsilon"]),
        **_central_rows(document),
        "method": document["method"],
    }
    if document["numeric_lower"] is not None:
        lower = downward(document["numeric_lower"])
        rows["numerics"] = f"the value of the theorem used lies between {lower} and epsilon"
    if not isinstance(document["attack_lower"], dict):
        reached = downward(document["attack_lower"])
        rows["attack"] = f"a collection exists whose reports reach {reached}: no proof can promise less"
        rows["truth"] = truth_bar(document["attack_lower"], document["epsilon"])
    rows["source"] = document["source"]
    rows |= numbered(document["notes"])
    print_rows("After shuffling", rows)
    _print_bounds(document["bounds"])
    for kind, place in document.get("files", {}).items():
        typer.echo(f"{kind}: {Path(place)}")


def truth_bar(attack: float, quoted: float) -> str:
    """Where the truth lies: beyond what an attack reaches, not beyond what is quoted.

    >>> truth_bar(0.5, 1.0)
    '0 ############------------ 1: # attacked, - the truth is here'
    """
    full = WIDTH if quoted <= 0.0 else min(WIDTH, math.floor(WIDTH * attack / quoted))
    return f"0 {'#' * full}{'-' * (WIDTH - full)} {_words(quoted)}: # attacked, - the truth is here"


def _central_rows(document: dict[str, Any]) -> dict[str, str]:
    central = document["central"]
    if "lines" in central:
        return dict(zip(("all honest", "some honest", "colluding"), central["lines"], strict=True))
    return {
        f"{document['rounds']} rounds": f"all {central['n']:,} honest: {_words(central['all'])}",
        "some honest": f"{central['honest_n']:,} of them: {_words(central['honest'])}",
        "colluding": f"the local guarantees add to epsilon {_words(central['colluding'])}",
    }


def _print_bounds(bounds: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from dovetail.report.number_format import ABSENT

    table = Table(title="All bounds, side by side", title_justify="left", title_style="bold", box=None)
    table.add_column("bound", no_wrap=True)
    table.add_column("epsilon", justify="right")
    for name, value in bounds.items():
        table.add_row(name, ABSENT if isinstance(value, dict) else _words(value))
    console = Console()
    console.print(table)
    for name, value in bounds.items():
        if isinstance(value, dict):
            console.print(f"{ABSENT} {name}: {value['reason']}", markup=False, highlight=False)


def _words(value: Any) -> str:
    from dovetail.report.number_format import upward

    return f"nothing: {value['reason']}" if isinstance(value, dict) else upward(value)
