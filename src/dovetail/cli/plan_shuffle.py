"""`dovetail plan-shuffle`: fits an order-private shuffler to public data, touching no reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.options import ShufflerSettings, TableOptions, as_share, chosen
from dovetail.cli.output import Facts, Force, Grid, Json, check_free, show, write_text
from dovetail.cli.progress import tell
from dovetail.core.display import upward
from dovetail.core.errors import DataError, ParameterError, UnsupportedError

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
    epsilon: Annotated[float, typer.Option(help="With --frontier and --ranges: local epsilon of each report.")] = 2.0
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

    check_free(asked.report, force=force)
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
        page = render_result(frontier_page(document, found.sentence))
        write_text(asked.report, page, force=force)
    files = {} if asked.report is None else {"files": {"report": str(asked.report)}}
    printed = to_jsonable({**document, "sentence": found.sentence, **files})
    show(printed, *_blocks(found, document), as_json=as_json)


def _blocks(found: Frontier, document: dict[str, Any]) -> Iterator[str | Grid]:
    from dovetail.report.plans import frontier_table

    shown = frontier_table(document)
    yield (
        f"{found.n:,} people in {found.regions} regions; simulated values, {100.0 * found.agree:g} % of a region "
        f"agree; epsilon {upward(found.epsilon)}; a blind guess is right for {100.0 * found.chance:.1f} %."
    )
    yield Grid("", tuple(shown.columns), [tuple(row) for row in shown.rows])
    yield from (*shown.notes, found.sentence[:1].upper() + found.sentence[1:])


# `dovetail plan-shuffle --ranges`: what coarser groups cost.


def show_ranges(grouping: Grouping, written: TableOptions, epsilon: float, *, header: bool, as_json: bool) -> None:
    """Print what each width of a range costs."""
    from dovetail.core.display import upward
    from dovetail.plan.search import default_delta
    from dovetail.plan.shuffle_frontier import coarser_groups
    from dovetail.report.number_format import percent_up

    (kind, path), *more = grouping.sources()
    if kind != "labels" or more or grouping.radius is not None:
        raise ParameterError("--ranges goes with --labels alone, and without --radius.")
    try:
        widths = [float(part) for part in str(grouping.ranges).split(",")]
    except ValueError:
        raise ParameterError(f"`--ranges` must be numbers separated by commas, got {grouping.ranges!r}.") from None
    table = _read(path, written, header=header)
    labels, delta = _columns(table, path, grouping.columns, wanted=1).to_series(), default_delta(table.height)
    tell(f"weigh {len(widths)} widths")
    found = coarser_groups(labels, widths, epsilon=epsilon, delta=delta)
    rows = [
        (
            f"{one.width:g}" if one.width else "as it is", f"{one.groups:,}", f"{one.smallest:,}", f"{one.alone:,}",
            upward(one.epsilon), upward(one.median_epsilon), percent_up(one.error95),
        )
        for one in found
    ]  # fmt: skip
    columns = ("range", "groups", "smallest", "alone", "epsilon there", "in a median one", "error there")
    document = {
        "column": labels.name,
        "epsilon0": epsilon,
        "delta": delta,
        "ranges": [one.document() for one in found],
    }
    show(
        document,
        Grid(f"{labels.name} of {table.height:,} people, each group shuffled by itself", columns, rows),
        f"epsilon: after a shuffle inside the smallest group, and inside one of median size, delta {delta:g}, of "
        f"reports with {epsilon:g} (krr, two answers; somewhat more with more of them). error: of "
        "a share in the median one, with 95 % probability. "
        "Wider ranges protect more and tell less: groups in one range can no longer be told apart.",
        as_json=as_json,
    )  # fmt: skip


def _read(path: Path, written: TableOptions, *, header: bool) -> pl.DataFrame:
    """A table; of a configuration the public columns, as [data] reads them without ranges."""
    if path.suffix.lower() != ".toml":
        return written.reader(path)(str(path), header=header)
    import polars as pl

    from dovetail.table.data_section import DataSection, parse_section, read_toml
    from dovetail.table.reader import columns_of, read_table
    from dovetail.table.spelling import read_numbers

    data = parse_section(DataSection, read_toml(path).get("data") or {}, name=str(path), at="data")
    data = data.model_copy(update={"ranges": {}})
    frame = read_table(None if data.path is None else str(path.parent / data.path), written=data)
    public = columns_of(frame, data)[0].select(data.public)
    texts = [column for column in public if column.dtype == pl.String]
    read = {column.name: read_numbers(column, data) for column in texts}
    return public.with_columns([read[one.name] for one in texts if read[one.name].null_count() == one.null_count()])


BEST = "best"
_KEYS = ("width", "sensitivity", "theta", "theta_n", "components", "largest_group")
_WIDTHS = {"labels": 1, "groups": 2, "edges": 2}  # columns of a table that describes groups in this way


@dataclass(frozen=True)
class Grouping:
    """Public data, and how they group people."""

    labels: Annotated[
        Path | None, typer.Option(help="Table with one label per person: groups of equal labels; or CONFIG.toml.")
    ] = None
    points: Annotated[Path | None, typer.Option(help="Table with coordinates, one row per person.")] = None
    groups: Annotated[
        Path | None, typer.Option(help="Table with a row per membership: columns group and person (0, 1, ..).")
    ] = None
    edges: Annotated[Path | None, typer.Option(help="Edge list: two columns of people (0, 1, ..).")] = None
    ranges: Annotated[
        str | None,
        typer.Option(help="Labels: widths of ranges to compare instead of --alpha, such as 2,5,10."),
    ] = None
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

    def sources(self) -> list[tuple[str, Path]]:
        """The kinds of public data that were given, each with its file."""
        files = {"labels": self.labels, "points": self.points, "groups": self.groups, "edges": self.edges}
        chosen = [(kind, path) for kind, path in files.items() if path is not None]
        if not chosen:
            raise ParameterError("give --labels, --points, --groups or --edges.")
        if len(chosen) > 1 and self.columns is not None:
            raise ParameterError("--columns goes with one of --labels, --points, --groups and --edges alone.")
        if len(chosen) > 1 and self.labels is not None and self.points is not None and self.radius is not None:
            raise ParameterError("--radius with both --labels and --points could be of either; give one of them.")
        return chosen

    def join(self, tables: list[tuple[str, pl.DataFrame]]) -> tuple[Any, Groups]:
        """Coordinates (where there are some) and the groups of all tables, whose promises are all kept."""
        from dovetail.shuffle.fitting.groups import Groups

        rows = {len(table) for kind, table in tables if kind in ("labels", "points")}
        if len(rows) > 1:
            raise DataError(f"--labels and --points must have a row for each person, got {sorted(rows)} rows.")
        known = replace(self, n=next(iter(rows))) if rows and self.n is None else self
        found = [known.fit(kind, table) for kind, table in tables]
        points = next((each for each, _ in found if each is not None), None)
        return points, found[0][1] if len(found) == 1 else Groups.union(*(groups for _, groups in found))

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
    settings: ShufflerSettings,
    alpha: Annotated[float | None, typer.Option(help="Order privacy wanted, nats; or give --frontier.")] = None,
    shuffler: Annotated[
        str,
        typer.Option(help="Which shuffler; an unknown name is answered with all of them."),
    ] = BEST,
    written: TableOptions = TableOptions(),
    header: Annotated[bool, typer.Option(help="Whether a CSV file names its columns in the first row.")] = True,
    out: Annotated[Path | None, typer.Option(help="Save the fitted shuffler (.npz, public data only).")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Price a promise about order: fits a shuffler to public labels, points, groups or a graph.

    With --ranges coarser groups are compared by how many people stand in the smallest one, what a shuffle inside
    groups promises them, and how far off estimates of a group may be.

    With --frontier a list of alphas is compared by what remains to be learned of regions and by the success of an
    attack on simulated values, beside uniform shuffles and none: where alpha buys nothing, and where it costs
    everything. Only public columns are read.

    Example: dovetail plan-shuffle --labels ages.csv --columns age --radius 1 --alpha 4
    """
    given = [value for value in (alpha, comparing.frontier, grouping.ranges) if value is not None]
    if len(given) != 1:
        raise ParameterError("give one of --alpha, --frontier and --ranges.")
    if comparing.frontier is not None and out is not None:
        raise ParameterError("--out goes with --alpha, not with --frontier.")
    if comparing.frontier is None and comparing.report is not None:
        raise ParameterError("--report goes with --frontier.")
    sources, chosen_settings = grouping.sources(), chosen(settings)
    if grouping.ranges is not None:
        if out is not None or chosen_settings or shuffler != BEST:
            raise ParameterError("--ranges compares groups alone: without --out, --shuffler and its settings.")
        show_ranges(grouping, written, comparing.epsilon, header=header, as_json=as_json)
        return
    from dovetail.core.stages import SHUFFLERS, PublicData
    from dovetail.report.document import to_jsonable

    tell("read the table and form the groups")
    read = [(kind, path, _read(path, written, header=header)) for kind, path in sources]
    points, groups = grouping.join(
        [(kind, _columns(table, path, grouping.columns, wanted=_WIDTHS.get(kind))) for kind, path, table in read]
    )
    kind_of_shuffler = SHUFFLERS[shuffler]
    wanted = {one.name: one for one in kind_of_shuffler.settings()}
    for name in chosen_settings:
        if name not in wanted or comparing.frontier is not None:
            raise ParameterError(f"--{name} goes with --alpha and a --shuffler that takes it; {shuffler} does not.")
    columns = {
        name: _numbers(name, read, n=groups.n) for key, name in chosen_settings.items() if wanted[key].is_column
    }
    if not kind_of_shuffler.needs_groups and not kind_of_shuffler.settings():
        raise ParameterError(f"--shuffler {shuffler} is fitted to nothing: it costs no promise about groups.")
    if comparing.frontier is not None:
        show_frontier(comparing, groups, points, shuffler=shuffler, force=force, as_json=as_json)
        return
    tell(f"fit the shuffler to {groups.n:,} people")
    fitted = kind_of_shuffler.from_public(
        PublicData(groups.n, groups, points, columns=columns), alpha=alpha, **chosen_settings
    )
    document = _document(fitted, groups)
    if out is not None:
        document["files"] = {"shuffler": _save(fitted, out, force=force)}
    rows = {name: _shown(value) for name, value in document["summary"].items()}
    show(
        to_jsonable(document),
        Facts(f"{fitted.label[:1].upper()}{fitted.label[1:]} for {groups.n:,} people", rows),
        as_json=as_json,
    )


def _document(fitted: Shuffler, groups: Groups) -> dict[str, Any]:
    from dovetail.core.missing import Missing

    summary, none = fitted.summary(), Missing(f"{fitted.label} has no such parameter")
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

    check_free(out, force=force)
    mechanism = fitted.acting
    if not isinstance(mechanism, FittedShuffler):
        raise UnsupportedError(f"this shuffler ({mechanism.label}) cannot be saved; leave out --out.")
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


def _numbers(name: str, read: list[tuple[str, Path, pl.DataFrame]], *, n: int) -> Any:
    """A column of a table with a row for each person, as numbers."""
    from dovetail.table.reader import numeric

    for kind, _, table in read:
        if kind in ("labels", "points") and name in table.columns and len(table) == n:
            return numeric(table[name])
    raise DataError(f"no table of --labels or --points has a column {name!r}.")


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


VERBS = {"plan-shuffle": _plan_shuffle}
