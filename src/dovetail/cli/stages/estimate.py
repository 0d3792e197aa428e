"""`dovetail estimate`: the analyst's stage on a file of reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dovetail.cli.console.mechanism_options import RandomizerSettings, chosen
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.options import given
from dovetail.cli.console.output import Json, description_of, print_json
from dovetail.cli.console.progress import tell
from dovetail.cli.console.table_options import TableOptions
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.registries import RANDOMIZERS
from dovetail.core.settings import split_names
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.pipeline.config.build import build_randomizer, fit_beside
from dovetail.pipeline.config.parse import parse_section
from dovetail.pipeline.config.sections import DataSection, EstimateSection, RandomizeSection, ShuffleSection
from dovetail.pipeline.evaluate.estimates import estimates
from dovetail.pipeline.files.report_columns import from_columns, report_columns
from dovetail.report.charts.svg import printable
from dovetail.report.document import IntervalEstimates, Missing, to_jsonable
from dovetail.shuffle.identity import Identity


@dataclass(frozen=True)
class MadeOptions:
    """How the reports were made, for tables that do not say so."""

    randomizer: Annotated[
        str | None,
        typer.Option(help=f"For tables that do not say how they were made: {', '.join(RANDOMIZERS.names())}."),
    ] = None
    epsilon: Annotated[float | None, typer.Option(help="With --randomizer.")] = None
    categories: Annotated[str | None, typer.Option(help="With --randomizer: separated by commas.")] = None
    lower: Annotated[float | None, typer.Option(help="With --randomizer: numbers.")] = None
    upper: Annotated[float | None, typer.Option(help="With --randomizer: numbers.")] = None
    grid: Annotated[float | None, typer.Option(help="With --randomizer: numbers.")] = None

    def told(self, settings: Any) -> dict[str, Any]:
        """What the options say; empty without --randomizer."""
        found = given(asdict(self) | {"categories": split_names(self.categories) or None}) | chosen(settings)
        if self.randomizer is None:
            if found:
                raise ParameterError(
                    f"--{next(iter(found))} goes with --randomizer, for tables that do not say how they were made."
                )
            return {}
        question = RANDOMIZERS[self.randomizer].question
        if question == "frequency" and not self.categories:
            raise ParameterError("--randomizer needs --categories, the declared categories in their order.")
        if question == "mean" and (self.lower is None or self.upper is None):
            raise ParameterError(f"--randomizer {self.randomizer} needs --lower and --upper.")
        return found


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("estimate")(flatten(_estimate))


def _estimate(
    reports: Annotated[Path, typer.Argument(help="Parquet from `randomize`, `shuffle` or `run`; or any table.")],
    options: MadeOptions,
    settings: RandomizerSettings,
    written: TableOptions = TableOptions(),
    by: Annotated[str, typer.Option(help="Public columns to estimate by, separated by commas.")] = "",
    min_group_size: Annotated[int, typer.Option(min=2, help="Smaller groups are withheld.")] = 50,
    as_json: Json = False,
) -> None:
    """Unbiased frequencies or a mean with standard errors and 95 % intervals, overall and per public group.

    Example: dovetail estimate z.parquet --by age
    """
    tell("read the reports")
    table = written.reader(reports)(str(reports))
    if table.height == 0:
        raise DataError(f"{reports}: the table has no rows.")
    made = _made(reports, options.told(settings))
    for key, what in (
        ("dummies", "dummies of the shuffler"),
        ("user_dummies", "dummies of people"),
        ("classes", "reports of different epsilons"),
    ):
        if made.get(key):
            raise DataError(f"{reports}: holds {what}; its estimates are those of the report beside it.")
    known, randomizer = made.get("categories"), _randomizer(made)
    public, wanted = table.drop(report_columns(table)), split_names(by)
    for name in wanted:
        if name not in public.columns:
            raise DataError(f"{reports}: column {name!r} does not stand beside the reports; there: {public.columns}.")
    shuffle = given(made.get("shuffle") or {})
    section = parse_section(ShuffleSection, shuffle, name=str(reports)) if shuffle and wanted else None
    beside: pl.DataFrame | Missing = public if wanted else Missing("no grouping column was asked for")
    tell(f"estimate from {table.height:,} reports")
    answer = estimates(
        randomizer, from_columns(randomizer, table, known), beside,
        Identity(table.height) if section is None else fit_beside(section, public, n=table.height),
        wanted=EstimateSection(by=wanted, min_group_size=min_group_size), labels=known or ["mean"], truth=None,
    )  # fmt: skip
    if as_json:
        print_json(to_jsonable(answer))
    else:
        _print(answer.overall, answer.groups, answer.withheld)


def _made(reports: Path, told: dict[str, Any]) -> dict[str, Any]:
    """How the reports were made: by the file, or by options that do not contradict it."""
    made = description_of(reports)
    if "questions" in made:
        raise DataError(
            f"{reports}: holds answers to several questions; their estimates are in the report beside it."
        )
    for name, value in told.items():
        if name in made and made[name] != value:
            raise ParameterError(
                f"{reports}: says that its reports were made with {name} {made[name]!r}, not {value!r}; drop "
                "--randomizer and what goes with it."
            )
    if not told and "randomizer" not in made:
        raise DataError(
            f"{reports}: does not say how its reports were made; give --randomizer, --epsilon and domain."
        )
    return {**told, "shuffle": made.get("shuffle")} if told else made


def _randomizer(made: dict[str, Any]) -> FrequencyRandomizer | NumericRandomizer:
    domain = given({key: made.get(key) for key in ("categories", "lower", "upper", "grid")})
    own = [one.name for one in RANDOMIZERS[made["randomizer"]].settings()]
    asked = given({key: made.get(key) for key in ("randomizer", "epsilon", *own)})
    data = parse_section(DataSection, {"private": "report", **domain}, name="options")
    section = parse_section(RandomizeSection, asked, name="options", at="randomize")
    return build_randomizer(section, data, tuple(data.categories) if data.categories else None)


def _print(overall: IntervalEstimates, groups: Any, withheld: list[dict[str, Any]]) -> None:
    table = Table(title="Estimates with 95 % intervals", title_justify="left", title_style="bold")
    for heading in ("group", "label"):
        table.add_column(heading, style="cyan")
    for heading in ("estimate", "standard error", "interval", "n"):
        table.add_column(heading, justify="right")
    for entry in [overall, *(groups if isinstance(groups, list) else [])]:
        where = "everybody" if entry.by is None else f"{entry.by} = {entry.group}"
        for label, value, error, (low, high) in zip(
            entry.labels, entry.value, entry.standard_error, entry.interval, strict=True
        ):
            table.add_row(
                Text(printable(where)),
                Text(printable(label)),
                f"{value:.4g}",
                f"{error:.2g}",
                f"{low:.4g} to {high:.4g}",
                f"{entry.n:,}",
            )
    console = Console(markup=False, highlight=False)
    console.print(table)
    for item in withheld:
        console.print(f"withheld: {item['groups']} small groups of {item['by']} ({item['people']} people)")
