"""`dovetail attack`: what a real attacker gets out of files; one function for each attack."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dovetail.attack.reidentify.experiment import ReidentificationResult, reidentify
from dovetail.attack.reidentify.forest import ForestAttack
from dovetail.cli.attack import released as attack_released
from dovetail.cli.attack import values as attack_values
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import Json, entropy_of, print_json, print_rows
from dovetail.cli.console.progress import progress_bar
from dovetail.cli.console.table_options import TableOptions
from dovetail.core.errors import ParameterError
from dovetail.core.extras import require
from dovetail.pipeline.files.attack_history import PLACE, read_history, read_releases
from dovetail.report.charts.svg import printable
from dovetail.report.number_format import percent

LONGEST = 20  # devices that are printed


@dataclass(frozen=True)
class ColumnOptions:
    """What the attacker looks at."""

    features: Annotated[str, typer.Option(help="Columns the attacker looks at, separated by commas.")] = "value"
    device: Annotated[str, typer.Option(help="Column that names the sender.")] = "device"
    batch: Annotated[str | None, typer.Option(help="Column of rounds: what was shuffled together.")] = None
    place: Annotated[
        bool, typer.Option("--place", help="Also look at the place in the batch: without it no shuffle is seen.")
    ] = False

    def read_options(self) -> dict[str, Any]:
        """What the readers of history and releases are told."""
        names = [name.strip() for name in self.features.split(",") if name.strip()]
        if not names and not self.place:
            raise ParameterError("--features must name at least one column, or give --place.")
        if PLACE in names and self.place:
            raise ParameterError(
                f"--place adds a feature {PLACE!r}, which --features names already; rename the column."
            )
        return {"device": self.device, "features": names, "batch": self.batch, "place": self.place}


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    group = typer.Typer(help="Attacks on tables and released files, with chance level and intervals.")
    attack_values.register(group)
    attack_released.register(group)
    group.command("reidentify")(flatten(_reidentify))
    app.add_typer(group, name="attack")


def _reidentify(
    history: Annotated[Path, typer.Argument(help="Table of known senders: what the attacker learned beforehand.")],
    released: Annotated[
        list[Path],
        typer.Argument(help="Releases with the same columns, in their released order; the device is for scoring."),
    ],
    columns: ColumnOptions = ColumnOptions(),
    written: TableOptions = TableOptions(),
    trees: Annotated[int, typer.Option(min=1, help="Trees of the forest.")] = 100,
    permutations: Annotated[int, typer.Option(min=1, help="Reassignments of the test against chance.")] = 999,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the forest and the test reproducible.")] = None,
    as_json: Json = False,
) -> None:
    """Re-identification by a random forest: who sent each report, against a guess that does not look.

    Intervals are over releases; a single release is cut into up to ten parts of whole rounds (--batch). Needs the
    extra `attack`.

    Example: dovetail attack reidentify history.csv released.csv --features value,hour --batch minute --place
    """
    require("sklearn.ensemble", extra="attack")
    how = {**columns.read_options(), "read": written.reader(history, *released)}
    if any(path.resolve() == history.resolve() for path in released):
        raise ParameterError(
            f"{history}: is the history and a release; an attack on what it has learned says nothing."
        )
    records, known = read_history(str(history), **how)
    releases = read_releases([str(path) for path in released], known, **how)
    rng, left = entropy_of(seed), iter(releases)
    with progress_bar(hidden=as_json) as progress:
        progress("learn the history", 0, 1)
        attack = ForestAttack.learn(records, trees=trees, rng=rng)
        progress("learn the history", 1, 1)
        result = reidentify(
            attack, lambda rng: next(left), trials=len(releases), rng=rng, permutations=permutations,
            progress=lambda done, total: progress("attack", done, total),
        )  # fmt: skip
    document = _document(result, known, releases=len(released))
    print_json(document) if as_json else _print(document)


def _document(result: ReidentificationResult, known: tuple[str, ...], *, releases: int) -> dict[str, Any]:
    per_device = zip(
        known, *(np.round(part, 6).tolist() for part in (
            result.recall_by_device, result.recall_reach_by_device,
            result.precision_by_device, result.precision_reach_by_device,
        )), strict=True,
    )  # fmt: skip
    keys = ("device", "recall", "recall_reach", "precision", "precision_reach")
    return {
        "schema_version": 1,
        "name": result.name,
        "recall": result.recall,
        "recall_interval": list(result.recall_interval),
        "precision": result.precision,
        "precision_interval": list(result.precision_interval),
        "level": result.level,
        "chance": result.chance,
        "p_value": result.p_value,
        "features": list(result.features),
        "known_devices": len(known),
        "records": result.records,
        "trials": result.trials,
        "trials_are": "releases" if releases > 1 else "parts of one release",
        "devices": [dict(zip(keys, row, strict=True)) for row in per_device],
    }


def _print(document: dict[str, Any]) -> None:
    level = percent(document["level"])
    rows = {
        "recall": _with_interval(document, "recall"),
        "precision": _with_interval(document, "precision"),
        "chance": f"{percent(document['chance'])}: a guess that does not look",
        "p-value": f"{document['p_value']:.3g}: how often guesses about relabelled devices are right as often",
        "features": printable(", ".join(document["features"])),
        "records": f"{document['records']:,} of {document['known_devices']:,} known devices",
        "intervals": f"{level}, over {document['trials']:,} {document['trials_are']}",
    }
    print_rows("Re-identification by a random forest", rows)
    table = Table(title="Devices recognized best", title_justify="left", title_style="bold")
    table.add_column("device", style="cyan")
    for heading in ("recall", "precision"):
        table.add_column(heading, justify="right")
    ranked = sorted(document["devices"], key=lambda each: -each["recall"])
    for each in ranked[:LONGEST]:
        table.add_row(
            Text(printable(each["device"])),
            *(f"{percent(each[what])} ± {percent(each[f'{what}_reach'])}" for what in ("recall", "precision")),
        )
    console = Console()
    console.print(table)
    if len(ranked) > LONGEST:
        console.print(f"{len(ranked) - LONGEST} more devices with --json.", style="dim")


def _with_interval(document: dict[str, Any], what: str) -> str:
    low, high = document[f"{what}_interval"]
    return f"{percent(document[what])} ({percent(low)} to {percent(high)})"
