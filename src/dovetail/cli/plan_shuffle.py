"""`dovetail plan-shuffle`: fits an order-private shuffler to public data, touching no reports."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
import typer

from dovetail.cli.console.output import Force, Json, print_json, print_rows
from dovetail.core.checks import nearest as nearest_name
from dovetail.core.errors import DataError, OutputError, ParameterError, UnsupportedError
from dovetail.pipeline.config.build import build_shuffler, mechanism_of
from dovetail.pipeline.files.table import numeric, read_table
from dovetail.report.document import Missing, to_jsonable
from dovetail.shuffle.fitting.fitted_shuffler import FittedShuffler
from dovetail.shuffle.groups.groups import Groups


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("plan-shuffle")(_plan)


def _plan(
    alpha: Annotated[float, typer.Option(help="Order privacy wanted, nats.")],
    labels: Annotated[
        Path | None, typer.Option(help="Table with one label per person: groups of equal labels.")
    ] = None,
    points: Annotated[Path | None, typer.Option(help="Table with coordinates, one row per person.")] = None,
    groups: Annotated[
        Path | None, typer.Option(help="Table with a row per membership: columns group and person (0, 1, ..).")
    ] = None,
    edges: Annotated[Path | None, typer.Option(help="Edge list: two columns of people (0, 1, ..).")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns to use, separated by commas; default: all for points, else the first.")
    ] = None,
    radius: Annotated[float | None, typer.Option(help="Labels or points within this distance.")] = None,
    nearest: Annotated[
        int | None, typer.Option(help="Points: groups of this many nearest, the owner included.")
    ] = None,
    metric: Annotated[
        str,
        typer.Option(help="Points: euclidean, haversine (latitude, longitude; radius in metres) or scipy's name."),
    ] = "euclidean",
    hops: Annotated[int, typer.Option(min=1, help="Edges: neighbourhoods of this many steps.")] = 1,
    n: Annotated[
        int | None, typer.Option(min=1, help="Groups and edges: number of people; default: the largest.")
    ] = None,
    shuffler: Annotated[
        Literal["best", "within_groups", "mallows", "noisy_sort", "planar", "rase"],
        typer.Option(help="Which shuffler."),
    ] = "best",
    header: Annotated[bool, typer.Option(help="Whether a CSV file names its columns in the first row.")] = True,
    out: Annotated[Path | None, typer.Option(help="Save the fitted shuffler (.npz, public data only).")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """What a promise about order costs: fits a shuffler to public labels, points, groups or a graph.

    Example: dovetail plan-shuffle --labels ages.csv --columns age --radius 1 --alpha 4
    """
    given = {"labels": labels, "points": points, "groups": groups, "edges": edges}
    chosen = [(name, path) for name, path in given.items() if path is not None]
    if len(chosen) != 1:
        raise ParameterError("give exactly one of --labels, --points, --groups and --edges.")
    kind, path = chosen[0]
    table = _columns(path, columns, header=header, wanted={"labels": 1, "groups": 2, "edges": 2}.get(kind))
    spread, grouping = _groups(kind, table, radius=radius, nearest=nearest, metric=metric, hops=hops, n=n)
    fitted = build_shuffler(shuffler, n=grouping.n, groups=grouping, alpha=alpha, points=spread)
    summary = fitted.summary()
    none = Missing(f"{fitted.name} has no such parameter")
    document: dict[str, Any] = {key: summary.get(key, none) for key in _KEYS} | {
        "alpha": fitted.guarantee.alpha,
        "shuffler": fitted.name,
    }
    document |= {"source": fitted.guarantee.source, "summary": summary, "grouping": grouping.summary()}
    if out is not None:
        if out.exists() and not force:
            raise OutputError(f"{out}: exists already; use --force to replace it.")
        mechanism = mechanism_of(fitted)
        if not isinstance(mechanism, FittedShuffler):
            raise UnsupportedError(f"a {mechanism.name} shuffler cannot be saved; leave out --out.")
        mechanism.save(out)
        document["files"] = {"shuffler": str(out)}
    if as_json:
        print_json(to_jsonable(document))
        return
    print_rows(f"{fitted.name} for {grouping.n:,} people", {name: _shown(value) for name, value in summary.items()})


_KEYS = ("width", "sensitivity", "theta", "theta_n", "components", "largest_group")


def _columns(path: Path, columns: str | None, *, header: bool, wanted: int | None) -> pl.DataFrame:
    """The columns that were asked for, as text where the file is text."""
    table = read_table(str(path), header=header)
    if table.height == 0:
        raise DataError(f"{path}: the table has no rows.")
    names = [name.strip() for name in columns.split(",")] if columns else table.columns[:wanted]
    for name in names:
        if name not in table.columns:
            raise DataError(f"{path}: has no column {name!r}{nearest_name(name, table.columns)}.")
    if wanted is not None and len(names) != wanted:
        raise ParameterError(f"--columns must name {wanted} columns here, got {len(names)}.")
    return table.select(names)


def _groups(
    kind: str,
    table: pl.DataFrame,
    *,
    radius: float | None,
    nearest: int | None,
    metric: str,
    hops: int,
    n: int | None,
) -> tuple[Any, Groups]:
    """Coordinates (where there are some) and the grouping."""
    if kind == "labels":
        column = table.to_series()
        return None, Groups.from_labels(column.to_numpy() if radius is None else numeric(column), radius)
    if kind == "points":
        points = np.column_stack([numeric(column) for column in table])
        if (radius is None) == (nearest is None):
            raise ParameterError("--points takes either --radius or --nearest.")
        if nearest is not None:
            return points, Groups.nearest(points, nearest)
        assert radius is not None
        return (points if metric == "euclidean" else None), Groups.within_radius(points, radius, metric=metric)
    pairs = np.column_stack([_people(column) for column in table])
    size = int(pairs.max()) + 1 if n is None and kind == "edges" else n
    if kind == "edges":
        return None, Groups.from_graph(pairs, hops=hops, n=size)
    order = np.argsort(pairs[:, 0], kind="stable")
    parts = np.split(pairs[order, 1], np.flatnonzero(np.diff(pairs[order, 0])) + 1)
    return None, Groups.from_lists([part.tolist() for part in parts], int(pairs[:, 1].max()) + 1 if n is None else n)


def _people(column: pl.Series) -> Any:
    numbers = numeric(column)
    if (numbers != np.floor(numbers)).any() or (numbers < 0).any():
        raise DataError(f"column {column.name!r}: people are numbered 0, 1, 2, ..; found others.")
    return numbers.astype(np.int64)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return "inf" if math.isinf(value) else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
