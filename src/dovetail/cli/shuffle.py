"""`dovetail shuffle`: the stage in between on a file of reports."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
import typer

from dovetail.cli.console.options import given
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
from dovetail.core.errors import DataError, ParameterError
from dovetail.pipeline.config.build import build_groups, build_shuffler, public_points
from dovetail.pipeline.config.run_config import parse_section
from dovetail.pipeline.config.sections import ShuffleSection
from dovetail.pipeline.files.report_columns import described_columns
from dovetail.pipeline.files.table import Survey, read_table


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("shuffle")(_shuffle)


def _shuffle(
    reports: Annotated[Path, typer.Argument(help="Reports as `randomize` writes them, or any table with `report`.")],
    out: Annotated[Path, typer.Option(help="Parquet file for the shuffled reports.")],
    shuffler: Annotated[
        Literal["uniform", "within_groups", "mallows", "noisy_sort", "planar", "rase", "best"] | None,
        typer.Option(help="Which shuffler; default: best where groups are given, otherwise uniform."),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Order privacy, nats; rase: only with --refine.")] = None,
    labels: Annotated[str | None, typer.Option(help="Public column: groups of equal (or near) labels.")] = None,
    points: Annotated[str | None, typer.Option(help="Public columns of coordinates, separated by commas.")] = None,
    radius: Annotated[float | None, typer.Option(help="Groups within this distance.")] = None,
    nearest: Annotated[
        int | None, typer.Option(help="Groups of this many nearest people, the owner included.")
    ] = None,
    refine: Annotated[
        Literal["blocks", "agglomerative"] | None, typer.Option(help="rase: refine the groups, as published.")
    ] = None,
    k: Annotated[int | None, typer.Option(help="rase: number of refined groups.")] = None,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Reorder a batch of reports; a uniform shuffle drops the public columns, the others keep them beside.

    Example: dovetail shuffle y.parquet --shuffler within_groups --labels age --out z.parquet
    """
    described = {
        "labels": labels,
        "points": [name.strip() for name in points.split(",")] if points else None,
        "radius": radius,
        "nearest": nearest,
    }
    groups = given(described)
    shuffler = shuffler or ("best" if groups else "uniform")
    if shuffler == "uniform" and (groups or alpha is not None):
        raise ParameterError(
            "--shuffler uniform takes no groups and no alpha; choose another --shuffler, or drop them."
        )
    raw = {"shuffler": shuffler, "alpha": alpha, "groups": groups or None, "refine": refine, "k": k}
    section = parse_section(ShuffleSection, given(raw), name="options")
    rng = entropy_of(seed)
    table = read_table(str(reports))
    if table.height == 0:
        raise DataError(f"{reports}: the table has no rows.")
    columns = described_columns(table, description_of(reports))
    if not columns:
        raise DataError(f"{reports}: the table has no column 'report' (nor report_0, report_1, ..).")
    table = table[rng.permutation(table.height)]  # the order of a file may encode the secret
    public = table.drop(columns)
    fitted = _fit(section, public, table.height)
    moved = table.select(columns)[fitted.permutation(rng)]
    released = moved if not fitted.keeps_places else pl.concat([public, moved], how="horizontal")
    description = {**description_of(reports), "shuffle": section.model_dump(mode="json")}
    simulated = "simulation" in (rng.provenance, description.get("entropy"))
    description["entropy"] = "simulation" if simulated else "device"
    write_reports(released, out, description, force=force)
    order = fitted.guarantee.drawn_from(description["entropy"])
    shown = {name: "inf" if value == math.inf else value for name, value in fitted.summary().items()}
    document = {
        "n": table.height,
        "shuffler": fitted.name,
        "alpha": "inf" if order.alpha == math.inf else order.alpha,
        "source": order.source,
        "caveats": order.caveats,
        "summary": shown,
        "entropy": description["entropy"],
        "files": {"reports": str(out)},
    }
    if as_json:
        print_json(document)
    else:
        rows = {"reports": f"{table.height:,} in {out}", **{name: str(value) for name, value in shown.items()}}
        rows["source"] = order.source
        if order.caveats:
            rows["caution"] = "; ".join(order.caveats)
        print_rows("Shuffled", rows)


def _fit(section: ShuffleSection, public: pl.DataFrame, n: int) -> Any:
    """The shuffler, from the public columns that stand beside the reports."""
    groups, survey = None, Survey.of(public)
    if section.groups is not None:
        for name in section.groups.columns:
            if name not in public.columns:
                raise ParameterError(f"column {name!r} does not stand beside the reports; there: {public.columns}.")
        groups = build_groups(section.groups, survey)
    points = public_points(section.groups, survey)
    return build_shuffler(
        section.shuffler, n=n, groups=groups, alpha=section.alpha, points=points, refine=section.refine, k=section.k
    )
