"""`dovetail shuffle`: the stage in between on a file of reports."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from dovetail.cli.console.mechanism_options import GroupOptions, ShufflerSettings, shuffle_section
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import (
    Force,
    Json,
    Seed,
    description_of,
    entropy_of,
    print_json,
    print_rows,
    write_reports,
)
from dovetail.cli.console.progress import tell
from dovetail.cli.console.table_options import TableOptions
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.registries import SHUFFLERS
from dovetail.core.stages import Shuffler
from dovetail.pipeline.config.build import fit_beside
from dovetail.pipeline.config.parse import parse_section
from dovetail.pipeline.config.sections import ShuffleSection
from dovetail.pipeline.files.report_columns import described_columns

MOVING = [kind.name for kind in SHUFFLERS if kind.moves_reports]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("shuffle")(flatten(_shuffle))


def _shuffle(
    reports: Annotated[Path, typer.Argument(help="Reports as `randomize` writes them, or any table with `report`.")],
    out: Annotated[Path, typer.Option(help="Parquet file for the shuffled reports.")],
    groups: GroupOptions,
    settings: ShufflerSettings,
    written: TableOptions = TableOptions(),
    shuffler: Annotated[
        str | None,
        typer.Option(help=f"Default: best where groups are given, otherwise uniform. One of {', '.join(MOVING)}."),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Order privacy, nats; rase: only with --refine.")] = None,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Reorder a batch of reports; a uniform shuffle drops the public columns, the others keep them beside.

    Example: dovetail shuffle y.parquet --shuffler within_groups --labels age --out z.parquet
    """
    if shuffler is None and groups.section():
        shuffler = "best"
    section = _section(shuffle_section(shuffler, alpha, groups, settings))
    rng = entropy_of(seed)
    tell("read the reports")
    table = written.reader(reports)(str(reports))
    if table.height == 0:
        raise DataError(f"{reports}: the table has no rows.")
    columns = described_columns(table, description_of(reports))
    if not columns:
        raise DataError(f"{reports}: the table has no column 'report' (nor report_0, report_1, ..).")
    table = table[rng.permutation(table.height)]  # the order of a file may encode the secret
    public = table.drop(columns)
    tell(f"fit and shuffle {table.height:,} reports")
    fitted = fit_beside(section, public, n=table.height)
    moved = table.select(columns)[fitted.permutation(rng)]
    released = pl.concat([public, moved], how="horizontal") if fitted.keeps_places else moved
    description = {**description_of(reports), "shuffle": section.model_dump(mode="json")}
    simulated = "simulation" in (rng.provenance, description.get("entropy"))
    description["entropy"] = "simulation" if simulated else "device"
    write_reports(released, out, description, force=force)
    order = fitted.guarantee.drawn_from(description["entropy"])
    _tell(fitted, order, description, out, as_json=as_json)


def _section(raw: dict[str, Any]) -> ShuffleSection:
    kind = SHUFFLERS[raw["shuffler"]]
    if not kind.moves_reports:
        raise ParameterError(f"--shuffler {kind.name} leaves everybody's report in place; choose another one.")
    if not kind.needs_groups and not kind.settings() and ("groups" in raw or "alpha" in raw):
        raise ParameterError(
            f"--shuffler {kind.name} takes no groups and no alpha; choose another --shuffler, or drop them."
        )
    return parse_section(ShuffleSection, raw, name="options")


def _tell(fitted: Shuffler, order: OrderPrivacy, description: dict[str, Any], out: Path, *, as_json: bool) -> None:
    shown = {name: "inf" if value == math.inf else value for name, value in fitted.summary().items()}
    if as_json:
        document = {
            "n": fitted.n,
            "shuffler": fitted.name,
            "alpha": "inf" if order.alpha == math.inf else order.alpha,
            "source": order.source,
            "caveats": order.caveats,
            "summary": shown,
            "entropy": description["entropy"],
            "files": {"reports": str(out)},
        }
        print_json(document)
        return
    rows = {"reports": f"{fitted.n:,} in {out}", **{name: str(value) for name, value in shown.items()}}
    rows["source"] = order.source
    if order.caveats:
        rows["caution"] = "; ".join(order.caveats)
    print_rows("Shuffled", rows)
