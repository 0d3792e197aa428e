"""`dovetail plan-shuffle`: fits an order-private shuffler to public data, touching no reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.options import TableOptions, add_verbs, as_share
from dovetail.cli.output import Force, Json, print_json, print_rows, write_whole
from dovetail.cli.progress import tell
from dovetail.core.errors import DataError, OutputError, ParameterError, UnsupportedError

if TYPE_CHECKING:
    import polars as pl

    from dovetail.core.stages import Shuffler
    from dovetail.plan.shuffle_frontier import Frontier
    from dovetail.shuffle.fitting.groups import Groups


# `dovetail plan-shuffle --frontier`: what alpha buys and what it costs, before anything is collected.


@dataclass(frozen=True)
class FrontierOptions:
    """A list of alphas instead of one."""

    frontier: Annotated[
        str | None,
        typer.Option(help="Instead of --alpha: alphas to compare, separated by commas, such as 1,4,16; simulated."),
    ] = None
    epsilon: Annotated[float, typer.Option(help="With --frontier: local epsilon of the simulated reports.")] = 2.0
    agree: Annotated[
        float,
        typer.Option(parser=as_share, help="With --frontier: share of a region that holds its value, above 0.5."),
    ] = 0.8
    report: Annotated[Path | None, typer.Option(help="With --frontier: write a page (HTML) with the curves.")] = None

    def alphas(self) -> list[float]:
        """The list as numbers."""
        try:
            return [float(part) for part in str(self.frontier).split(",")]
        except ValueError:
            raise ParameterError(
                f"`--frontier` must be numbers separated by commas, got {self.frontier!r}."
            ) from None


def show_frontier(
    asked: FrontierOptions, groups: Groups, points: Any, *, shuffler: str, force: bool, as_json: bool
) -> None:
    """Compute, print and write the frontier."""
    from dovetail.plan.shuffle_frontier import shuffle_frontier
    from dovetail.report.document import to_jsonable
    from dovetail.report.html import render_result
    from dovetail.report.plans import frontier_page

    if asked.report is not None and (not asked.report.parent.is_dir() or (asked.report.exists() and not force)):
        write_whole(asked.report, lambda scratch: None, force=force)  # refuses before the work
    found = shuffle_frontier(
        groups,
        asked.alphas(),
        epsilon=asked.epsilon,
        points=points,
        shuffler=shuffler,
        agree=asked.agree,
        progress=tell,
    )
    document = found.document()
    if asked.report is not None:
        text = render_result(frontier_page(document, found.sentence))

        def write(scratch: Path) -> None:
            scratch.write_text(text, encoding="utf-8")

        write_whole(asked.report, write, force=force)
    if as_json:
        files = {} if asked.report is None else {"files": {"report": str(asked.report)}}
        print_json(to_jsonable({**document, "sentence": found.sentence, **files}))
        return
    _print(found, document)


def _print(found: Frontier, document: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from dovetail.report.plans import frontier_table

    shown, console = frontier_table(document), Console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in shown.columns:
        table.add_column(name, justify="left" if name in ("shuffler", "verdict") else "right", overflow="fold")
    for row in shown.rows:
        table.add_row(*row)
    console.print(
        f"{found.n:,} people in {found.regions} regions; simulated values, {100.0 * found.agree:g} % of a region "
        f"agree; epsilon {found.epsilon:g}; a blind guess is right for {100.0 * found.chance:.1f} %.",
        markup=False, highlight=False,
    )  # fmt: skip
    console.print(table)
    for line in (*shown.notes, found.sentence[:1].upper() + found.sentence[1:]):
        console.print(line, markup=False, highlight=False)


_KEYS = ("width", "sensitivity", "theta", "theta_n", "components", "largest_group")
_WIDTHS = {"labels": 1, "groups": 2, "edges": 2}  # columns of a table that describes groups in this way


@dataclass(frozen=True)
class Grouping:
    """Public data, and how they group people."""

    labels: Annotated[Path | None, typer.Option(help="Table with one label per person: groups of equal labels.")] = (
        None
    )
    points: Annotated[Path | None, typer.Option(help="Table with coordinates, one row per person.")] = None
    groups: Annotated[
        Path | None, typer.Option(help="Table with a row per membership: columns group and person (0, 1, ..).")
    ] = None
    edges: Annotated[Path | None, typer.Option(help="Edge list: two columns of people (0, 1, ..).")] = None
    columns: Annotated[
        str | None, typer.Option(help="Columns to use, separated by commas; default: all for points, else the first.")
    ] = None
    radius: Annotated[float | None, typer.Option(help="Labels or points within this distance.")] = None
    nearest: Annotated[int | None, typer.Option(help="Points: groups of this many nearest, the owner included.")] = (
        None
    )
    metric: Annotated[
        str,
        typer.Option(help="Points: euclidean, haversine (latitude, longitude; radius in metres) or scipy's name."),
    ] = "euclidean"
    hops: Annotated[int, typer.Option(min=1, help="Edges: neighbourhoods of this many steps.")] = 1
    n: Annotated[
        int | None, typer.Option(min=1, help="Groups and edges: number of people; default: the largest.")
    ] = None

    def source(self) -> tuple[str, Path]:
        """The one kind of public data that was given, and its file."""
        files = {"labels": self.labels, "points": self.points, "groups": self.groups, "edges": self.edges}
        chosen = [(kind, path) for kind, path in files.items() if path is not None]
        if len(chosen) != 1:
            raise ParameterError("give exactly one of --labels, --points, --groups and --edges.")
        return chosen[0]

    def fit(self, kind: str, table: pl.DataFrame) -> tuple[Any, Groups]:
        """Coordinates (where there are some) and the groups."""
        if kind == "labels":
            return None, self._from_labels(table.to_series())
        if kind == "points":
            return self._from_points(table)
        return None, self._from_edges(table) if kind == "edges" else self._from_memberships(table)

    def _from_labels(self, labels: pl.Series) -> Groups:
        from dovetail.shuffle.fitting.groups import Groups
        from dovetail.table.reader import numeric

        return Groups.from_labels(labels.to_numpy() if self.radius is None else numeric(labels), self.radius)

    def _from_points(self, table: pl.DataFrame) -> tuple[Any, Groups]:
        import numpy as np

        from dovetail.shuffle.fitting.groups import Groups
        from dovetail.table.reader import numeric

        points = np.column_stack([numeric(column) for column in table])
        if (self.radius is None) == (self.nearest is None):
            raise ParameterError("--points takes either --radius or --nearest.")
        if self.nearest is not None:
            return points, Groups.nearest(points, self.nearest)
        assert self.radius is not None
        groups = Groups.within_radius(points, self.radius, metric=self.metric)
        return (points if self.metric == "euclidean" else None), groups

    def _from_edges(self, table: pl.DataFrame) -> Groups:
        from dovetail.shuffle.fitting.groups import Groups

        pairs = _people(table)
        return Groups.from_graph(pairs, hops=self.hops, n=int(pairs.max()) + 1 if self.n is None else self.n)

    def _from_memberships(self, table: pl.DataFrame) -> Groups:
        import numpy as np

        from dovetail.shuffle.fitting.groups import Groups

        pairs = _people(table)
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        parts = np.split(pairs[:, 1], np.flatnonzero(np.diff(pairs[:, 0])) + 1)
        return Groups.from_lists(
            [part.tolist() for part in parts], int(pairs[:, 1].max()) + 1 if self.n is None else self.n
        )


def _plan_shuffle(
    grouping: Grouping,
    comparing: FrontierOptions,
    alpha: Annotated[float | None, typer.Option(help="Order privacy wanted, nats; or give --frontier.")] = None,
    shuffler: Annotated[
        str,
        typer.Option(help="Which shuffler; an unknown name is answered with all of them."),
    ] = "best",
    written: TableOptions = TableOptions(),
    header: Annotated[bool, typer.Option(help="Whether a CSV file names its columns in the first row.")] = True,
    out: Annotated[Path | None, typer.Option(help="Save the fitted shuffler (.npz, public data only).")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """What a promise about order costs: fits a shuffler to public labels, points, groups or a graph.

    With --frontier a list of alphas is compared by what remains to be learned of regions and by the success of an
    attack on simulated values, beside uniform shuffles and none: where alpha buys nothing, and where it costs
    everything. Only public columns are read.

    Example: dovetail plan-shuffle --labels ages.csv --columns age --radius 1 --alpha 4
    """
    if (alpha is None) == (comparing.frontier is None):
        raise ParameterError("give either --alpha or --frontier.")
    if comparing.frontier is not None and out is not None:
        raise ParameterError("--out goes with --alpha, not with --frontier.")
    if comparing.frontier is None and comparing.report is not None:
        raise ParameterError("--report goes with --frontier.")
    kind, path = grouping.source()
    from dovetail.core.stages import SHUFFLERS, PublicData
    from dovetail.report.document import to_jsonable

    tell("read the table and form the groups")
    table = written.reader(path)(str(path), header=header)
    points, groups = grouping.fit(kind, _columns(table, path, grouping.columns, wanted=_WIDTHS.get(kind)))
    kind_of_shuffler = SHUFFLERS[shuffler]
    if not kind_of_shuffler.needs_groups and not kind_of_shuffler.settings():
        raise ParameterError(f"--shuffler {shuffler} is fitted to nothing: it costs no promise about groups.")
    if comparing.frontier is not None:
        show_frontier(comparing, groups, points, shuffler=shuffler, force=force, as_json=as_json)
        return
    tell(f"fit the shuffler to {groups.n:,} people")
    fitted = kind_of_shuffler.from_public(PublicData(groups.n, groups, points), alpha=alpha)
    document = _document(fitted, groups)
    if out is not None:
        document["files"] = {"shuffler": _save(fitted, out, force=force)}
    if as_json:
        print_json(to_jsonable(document))
        return
    rows = {name: _shown(value) for name, value in document["summary"].items()}
    print_rows(f"{fitted.name} for {groups.n:,} people", rows)


def _document(fitted: Shuffler, groups: Groups) -> dict[str, Any]:
    from dovetail.report.document import Missing

    summary, none = fitted.summary(), Missing(f"{fitted.name} has no such parameter")
    return {
        **{key: summary.get(key, none) for key in _KEYS},
        "alpha": fitted.guarantee.alpha,
        "shuffler": fitted.name,
        "source": fitted.guarantee.source,
        "summary": summary,
        "grouping": groups.summary(),
    }


def _save(fitted: Shuffler, out: Path, *, force: bool) -> str:
    """Where the fitted shuffler was saved."""
    from dovetail.shuffle.fitting.fitted_shuffler import FittedShuffler

    if out.exists() and not force:
        raise OutputError(f"{out}: exists already; use --force to replace it.")
    mechanism = fitted.acting
    if not isinstance(mechanism, FittedShuffler):
        raise UnsupportedError(f"a {mechanism.name} shuffler cannot be saved; leave out --out.")
    mechanism.save(out)
    return str(out)


def _columns(table: pl.DataFrame, path: Path, columns: str | None, *, wanted: int | None) -> pl.DataFrame:
    """The columns that were asked for, as text where the file is text."""
    from dovetail.core.checks import nearest

    if table.height == 0:
        raise DataError(f"{path}: the table has no rows.")
    names = [name.strip() for name in columns.split(",")] if columns else table.columns[:wanted]
    for name in names:
        if name not in table.columns:
            raise DataError(f"{path}: has no column {name!r}{nearest(name, table.columns)}.")
    if wanted is not None and len(names) != wanted:
        raise ParameterError(f"--columns must name {wanted} columns here, got {len(names)}.")
    return table.select(names)


def _people(table: pl.DataFrame) -> Any:
    """Numbers of people (rows, columns)."""
    import numpy as np

    return np.column_stack([_numbered(column) for column in table])


def _numbered(column: pl.Series) -> Any:
    import numpy as np

    from dovetail.table.reader import numeric

    numbers = numeric(column)
    if (numbers != np.floor(numbers)).any() or (numbers < 0).any():
        raise DataError(f"column {column.name!r}: people are numbered 0, 1, 2, ..; found others.")
    return numbers.astype(np.int64)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return "inf" if math.isinf(value) else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    add_verbs(app, {"plan-shuffle": _plan_shuffle})
