"""`dovetail check`: every problem of a table at once, and the configuration that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.options import add_verbs
from dovetail.cli.output import Force, Json, print_json, write_whole
from dovetail.cli.progress import progress_bar
from dovetail.core.errors import OutputError, ParameterError
from dovetail.core.settings import split_names

if TYPE_CHECKING:
    from dovetail.table.check import TableCheck
    from dovetail.table.columns import Declared

_STOPPED = 1
_TITLES = {
    "stops": "Decide before you run",
    "confirm": "Assumed; confirm the marked lines",
    "settled": "Settled by the configuration",
    "note": "Good to know",
}


@dataclass(frozen=True)
class DeclaredOptions:
    """What a person says about the table before it is looked at."""

    private: Annotated[str | None, typer.Option(help="The column to protect.")] = None
    person: Annotated[str | None, typer.Option(help="Column that names people; default: found by its name.")] = None
    public: Annotated[
        str, typer.Option(help="Columns that are no secret, separated by commas; in quotes where a name holds one.")
    ] = ""
    categories: Annotated[
        str | None, typer.Option(help="Declared answers, separated by commas; in quotes where one holds a comma.")
    ] = None
    lower: Annotated[float | None, typer.Option(help="Numbers: declared lower bound.")] = None
    upper: Annotated[float | None, typer.Option(help="Numbers: declared upper bound.")] = None
    epsilon: Annotated[float, typer.Option(help="Local epsilon of each report, nats.")] = 2.0

    def declared(self) -> Declared:
        """The same, checked."""
        from dovetail.core.checks import privacy_budget
        from dovetail.table.columns import Declared

        if (self.lower is None) != (self.upper is None):
            raise ParameterError("--lower and --upper are declared together or not at all.")
        if self.lower is not None and self.categories is not None:
            raise ParameterError("declare either --categories or --lower and --upper, not both.")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise ParameterError(f"--lower must be below --upper, got {self.lower:g} and {self.upper:g}.")
        public = tuple(split_names(self.public))
        roles = [name for name in (self.private, self.person, *public) if name is not None]
        twice = [name for name in roles if roles.count(name) > 1]
        if twice:
            raise ParameterError(f"{twice[0]!r} is named more than once among --private, --person and --public.")
        categories = None if self.categories is None else tuple(split_names(self.categories))
        if categories is not None and len(set(categories)) < max(2, len(categories)):
            raise ParameterError(f"--categories must name at least two different ones, got {self.categories!r}.")
        return Declared(
            self.private, self.person, public, categories, self.lower, self.upper,
            privacy_budget("epsilon", self.epsilon),
        )  # fmt: skip


def _check(
    table: Annotated[
        Path,
        typer.Argument(help="CSV in any encoding and spelling, or Parquet; or CONFIG.toml, checked with its table."),
    ],
    declared: DeclaredOptions,
    text_encoding: Annotated[
        str | None, typer.Option(help="Of a CSV file, where you know it; default: found out.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="TOML file for the configuration; default: TABLE.toml beside you.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit status 1 when something stops a run.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """List every problem of a table with a remedy each, and write the configuration that `run` takes.

    Prints labels, counts and row numbers, also of the private column, to whoever may see the table; never a row. What
    was read off the table is marked in the configuration, and a release is refused until a person has confirmed it.
    Problems are no failure: exit status 0 also when something stops a run, unless --strict is given.

    A configuration (.toml) that is there already is checked with the table that it names: all that `run` would
    refuse, and all that it leaves open, at once. Nothing is written.

    Examples:
    dovetail check survey.csv --private affair;
    dovetail check survey.toml
    """
    if table.suffix.lower() == ".toml":
        if declared != DeclaredOptions() or text_encoding is not None or out is not None or force:
            raise ParameterError(f"{table}: says itself what is in the table; only --strict and --json go with it.")
        _check_config(table, strict=strict, as_json=as_json)
        return
    target = out if out is not None else Path(f"{table.stem}.toml")
    if target.exists() and not force:
        raise OutputError(f"{target}: exists already; use --force to replace it, or name another place with --out.")
    from dovetail.table.check import check_table, write_configuration

    with progress_bar(hidden=as_json) as progress:
        found = check_table(table, declared.declared(), encoding=text_encoding, progress=progress)
    text = write_configuration(found, target)
    write_whole(target, lambda scratch: _write(scratch, text), force=force)
    _tell(found, target, _next(found, target), strict=strict, as_json=as_json)


def _check_config(config: Path, *, strict: bool, as_json: bool) -> None:
    from dovetail.job.check_config import check_config

    with progress_bar(hidden=as_json) as progress:
        found = check_config(config, progress=progress)
    decide = "decide what stops a run, then: " if found.stops else ""
    _tell(found, config, f"Next: {decide}dovetail run {config}", strict=strict, as_json=as_json)


def _tell(found: TableCheck, config: Path, after: str, *, strict: bool, as_json: bool) -> None:
    if as_json:
        print_json(_document(found, config))
    else:
        _print(found, config, after)
    if strict and found.stops:
        raise typer.Exit(_STOPPED)


def _write(place: Path, text: str) -> None:
    place.write_text(text, encoding="utf-8")


def _document(found: TableCheck, target: Path) -> dict[str, Any]:
    return {
        "problems": [problem.document() for problem in found.problems],
        "config": str(target),
        "n": found.n,
        "stops": found.stops,
        "unconfirmed": list(found.unconfirmed),
        **({"promises": found.promises} if found.promises else {}),
        "columns": {
            name: {"kind": str(column.kind), "distinct": column.distinct, "missing": column.missing}
            for name, column in found.columns.items()
        },
    }


def _print(found: TableCheck, target: Path, after: str) -> None:
    from rich.console import Console
    from rich.padding import Padding

    from dovetail.cli.output import foreign
    from dovetail.table.columns import many

    console = Console(highlight=False)
    console.print(foreign(f"{found.path}: {found.n:,} rows, {many(len(found.columns), 'column')} looked at"))
    for status, title in _TITLES.items():
        problems = [problem for problem in found.problems if problem.status == status]
        if problems:
            console.print(f"\n[bold]{title}[/bold] ({len(problems)})")
        for problem in problems:
            console.print(Padding(foreign(f"{problem.where}: {problem.what}"), (0, 0, 0, 2), expand=False))
            console.print(Padding(foreign(f"-> {problem.remedy}"), (0, 0, 0, 4), expand=False), style="dim")
    if not found.problems:
        console.print("No problems.")
    if found.promises:
        console.print("\n[bold]Promised to each person[/bold], of her answers to all questions")
        for line in _promises(found.promises):
            console.print(Padding(foreign(line), (0, 0, 0, 2), expand=False))
    console.print()
    console.print(foreign(f"Configuration: {target}"))
    console.print(foreign(after))


def _promises(said: dict[str, Any]) -> Iterator[str]:
    from dovetail.core.display import downward, upward

    yield f"epsilon {upward(said['local'])} of everything that she sends, whoever looks at it"
    if said["epsilon"] is None:
        yield f"no more than that after the shuffle: {said['reason']}"
        return
    people = f"{said['batch']:,} people" if said["batch"] == said["n"] else f"{said['batch']:,} in the smallest group"
    honest = "" if said["honest"] == said["batch"] else f", {said['honest']:,} of them honest"
    yield (
        f"epsilon {upward(said['epsilon'])} with delta {said['delta']:g} of everything that is released ({people}"
        f"{honest}); no proof can promise less than {downward(said['attack_lower'])}"
    )


def _next(found: TableCheck, target: Path) -> str:
    if found.asked.private is None:
        return f"Next: name the private column: dovetail check {found.path} --private COLUMN --force"
    if found.stops:
        return f"Next: decide what stops a run, then: dovetail run {target}"
    return f"Next: dovetail run {target}    # a rehearsal; confirm the marked lines before a release"


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    add_verbs(app, {"check": _check})
