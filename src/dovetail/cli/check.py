"""`dovetail check`: every problem of a table at once, and the configuration that reads it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.output import Force, Full, Json, Paste, check_free, show, write_text
from dovetail.cli.progress import progress_bar
from dovetail.core.display import counted
from dovetail.core.errors import ParameterError
from dovetail.core.settings import split_names

if TYPE_CHECKING:
    from dovetail.table.check import TableCheck
    from dovetail.table.columns import Declared, Fix, Problem

_STOPPED = 1
_TITLES = {
    "stops": "Decide before you run",
    "confirm": "Assumed; confirm the marked lines",
    "settled": "Settled by the configuration",
    "note": "Good to know",
}


@dataclass(frozen=True)
class DeclaredOptions:
    """Declarations about the table, made before it is read."""

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
    epsilon: Annotated[
        float | None, typer.Option(help="Local epsilon of each report, nats; default: 2, or as --plan says.")
    ] = None

    def declared(self, plan: Mapping[str, Any], decided: Sequence[str]) -> Declared:
        """The same, checked, with what a plan says."""
        from dovetail.core.checks import privacy_budget
        from dovetail.job.plan_file import MOST_LISTED
        from dovetail.table.columns import Declared
        from dovetail.table.data_section import read_decisions, toml_text

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
        planned = plan.get("data", {})
        categories = None if self.categories is None else tuple(split_names(self.categories))
        if categories is not None and len(set(categories)) < max(2, len(categories)):
            raise ParameterError(f"--categories must name at least two different ones, got {self.categories!r}.")
        wanted = len(planned.get("categories", ()))
        if categories is not None and 0 < wanted != len(categories) and wanted < MOST_LISTED:
            raise ParameterError(f"--categories must name the {wanted} of the plan, got {len(categories)}.")
        lower, upper = planned.get("lower", self.lower), planned.get("upper", self.upper)
        if self.lower is not None and (self.lower, self.upper) != (lower, upper):
            raise ParameterError(f"--lower and --upper must be those of the plan, {lower:g} and {upper:g}.")
        epsilon = plan.get("randomize", {}).get("epsilon", 2.0)
        if self.epsilon is not None and plan:
            raise ParameterError("--epsilon is what the plan says: leave it out, or plan again.")
        decided = [*decided]
        if "missing" in planned and "missing" not in read_decisions(decided):
            decided.append(f"missing = {toml_text(planned['missing'])}")
        return Declared(
            self.private, self.person, public, categories, lower, upper,
            privacy_budget("epsilon", epsilon if self.epsilon is None else self.epsilon),
            plan.get("promise", {}).get("trust", "local"), tuple(decided),
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
    plan: Annotated[
        Path | None, typer.Option(help="What `dovetail plan --out` wrote: its numbers go into the configuration.")
    ] = None,
    decided: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A key of [data] as TOML, such as 'missing = \"drop\"', or `mode`; may be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="TOML file for the configuration; default: TABLE.toml beside you.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit status 1 when something stops a run.")] = False,
    force: Force = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """List every problem of a table with a remedy each, and write the configuration that `run` takes.

    Prints labels, counts and row numbers, also of the private column, to readers of the table; never a row. What
    was read off the table is marked in the configuration, and a release is refused until a person has confirmed it.
    Problems are no failure: exit status 0 also when something stops a run, unless --strict is given.

    A configuration (.toml) that is there already is checked with the table that it names: all that `run` would
    refuse, and all that it leaves open, at once. Nothing is written but what --set decides.

    Examples:
    dovetail check survey.csv --private affair --plan plan.toml;
    dovetail check survey.toml;
    dovetail check survey.toml --set 'missing = "drop"'
    """
    if table.suffix.lower() == ".toml":
        if declared != DeclaredOptions() or text_encoding is not None or out is not None or force:
            raise ParameterError(
                f"{table}: says itself what is in the table; only --set, --strict, --full and --json go with it."
            )
        _check_config(table, decided or [], strict=strict, full=full, as_json=as_json)
        return
    target = out if out is not None else Path(f"{table.stem}.toml")
    force = force or _is_as_written(target)
    check_free(target, force=force)
    from dovetail.job.plan_file import complete, read_plan
    from dovetail.table.check import check_table, write_configuration

    planned = {} if plan is None else read_plan(plan)
    asked = declared.declared(planned, decided or [])
    with progress_bar(hidden=as_json) as progress:
        found = check_table(table, asked, encoding=text_encoding, progress=progress)
    text, left = complete(write_configuration(found, target), planned, list(asked.public))
    found = replace(found, problems=(*left, *found.problems))
    write_text(target, _marked(text), force=force)
    if "question" in planned and not found.stops:
        found = replace(found, problems=(*_of_question(target), *found.problems))
    _tell(found, target, strict=strict, full=full, as_json=as_json)


def _of_question(config: Path) -> Iterator[Problem]:
    """Yield what stops a run or drowns it that the private column alone does not tell: of further columns."""
    from dovetail.job.check_config import check_config
    from dovetail.table.columns import Status

    for one in check_config(config).problems:
        if one.status == Status.STOPS or (one.status == Status.NOTE and one.where == "configuration"):
            yield one


def _check_config(config: Path, decided: list[str], *, strict: bool, full: bool, as_json: bool) -> None:
    from dovetail.job.check_config import check_config

    if decided:
        from dovetail.job.plan_file import decide
        from dovetail.table.data_section import read_toml

        read_toml(config)
        write_text(config, decide(config.read_text(encoding="utf-8-sig"), decided, name=str(config)), force=True)
    with progress_bar(hidden=as_json) as progress:
        found = check_config(config, progress=progress)
    _tell(found, config, strict=strict, full=full, as_json=as_json)


# What nobody has changed since `check` wrote it may be written anew.


_MARK = "# Unchanged since `dovetail check` wrote it, while this is the SHA-256 of what stands above: "


def _marked(text: str) -> str:
    return f"{text}\n{_MARK}{_digest(text)}\n"


def _is_as_written(place: Path) -> bool:
    try:
        text, mark, digest = place.read_text(encoding="utf-8").rpartition(f"\n{_MARK}")
    except (OSError, UnicodeDecodeError):
        return False
    return bool(mark) and digest.strip() == _digest(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _tell(found: TableCheck, config: Path, *, strict: bool, full: bool, as_json: bool) -> None:
    show(_document(found, config), *_blocks(found, config, full=full), as_json=as_json)
    if strict and found.stops:
        raise typer.Exit(_STOPPED)


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


def _blocks(found: TableCheck, target: Path, *, full: bool) -> Iterator[str | Paste]:
    from dovetail.table.columns import SHOWN

    yield f"{found.path}: {counted(found.n, 'row')}, {counted(len(found.columns), 'column')} looked at"
    for status, title in _TITLES.items():
        problems = [problem for problem in found.problems if problem.status == status]
        if problems:
            yield from ("", f"{title} ({len(problems)})")
        for problem in problems:
            yield f"  {problem.where}: {problem.what}"
            yield f"    -> {problem.remedy}{':' if problem.fixes else ''}"
            for fix in problem.fixes:
                yield f"       {fix.words}:"
                yield Paste(" " * 9 + _command(["check", str(target), *_options(fix)]))
            if problem.ranges is not None:
                column, widths = problem.ranges
                asked = ["--columns", column, "--ranges", ",".join(f"{width:g}" for width in widths)]
                yield "       what each costs:"
                yield Paste(" " * 9 + _command(["plan-shuffle", "--labels", str(target), *asked]))
            if full and problem.texts:
                yield f"    all of them: {', '.join(map(repr, problem.texts))}"
    if not found.problems:
        yield "No problems."
    if found.promises:
        yield from ("", "Promised to each person, of her answers to all questions")
        yield from (f"  {line}" for line in _promises(found.promises))
    yield from ("", f"Configuration: {target}")
    if any(len(problem.texts) > SHOWN for problem in found.problems) and not full:
        yield '--full lists what "and more" stands for.'
    yield from _next(found, target)


def _options(fix: Fix) -> list[str]:
    return [word for line in fix.lines for word in ("--set", line)]


def _command(words: list[str]) -> str:
    return shlex.join(["dovetail", *words])


def _promises(said: dict[str, Any]) -> Iterator[str]:
    from dovetail.core.display import downward, upward

    yield f"epsilon {upward(said['local'])} of everything that she sends, no matter who looks at it"
    if said["epsilon"] is None:
        yield f"no more than that after the shuffle: {said['reason']}"
        return
    people = f"{said['batch']:,} people" if said["batch"] == said["n"] else f"{said['batch']:,} in the smallest group"
    honest = "" if said["honest"] == said["batch"] else f", {said['honest']:,} of them honest"
    yield (
        f"epsilon {upward(said['epsilon'])} with delta {upward(said['delta'])} of everything that is released "
        f"({people}"
        f"{honest}); no proof can promise less than {downward(said['attack_lower'])}"
    )


def _next(found: TableCheck, target: Path) -> Iterator[str | Paste]:
    from dovetail.table.check import choices

    if found.asked.private is None:
        fit = choices(found)[:3]
        yield "Next: name the private column" + (", such as:" if fit else ".")
        for name in fit:
            yield Paste("  " + _command(["check", str(found.path), "--private", name]))
        return
    if found.stops:
        yield "Next: decide what stops a run, by these commands or in the file, then:"
        yield Paste("  " + _command(["check", str(target)]))
        return
    yield "Next, and before a release confirm the marked lines:" if found.unconfirmed else "Next:"
    from dovetail.table.data_section import read_toml

    apart = ["--out", f"{target.stem}-release"] if read_toml(target).get("mode") == "release" else []
    yield Paste("  " + _command(["run", str(target), *apart]))


VERBS = {"check": _check}
