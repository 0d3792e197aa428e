"""`dovetail estimate`: the analyst's stage on a file of reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dovetail.cli.console.options import Beta, Precision, Rho, given
from dovetail.cli.console.output import Json, description_of, print_json
from dovetail.cli.shuffle import _fit as fit_shuffler
from dovetail.core.errors import DataError, ParameterError
from dovetail.pipeline.config.build import build_randomizer
from dovetail.pipeline.config.run_config import parse_config, parse_section
from dovetail.pipeline.config.sections import NUMERIC, EstimateSection, ShuffleSection
from dovetail.pipeline.evaluate.estimates import estimates
from dovetail.pipeline.files.report_columns import from_columns, report_columns
from dovetail.pipeline.files.table import read_table
from dovetail.report.charts.svg import printable
from dovetail.report.document import IntervalEstimates, Missing, to_jsonable
from dovetail.shuffle.identity import Identity


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("estimate")(_estimate)


def _estimate(
    reports: Annotated[Path, typer.Argument(help="Parquet from `randomize`, `shuffle` or `run`; or any table.")],
    by: Annotated[str, typer.Option(help="Public columns to estimate by, separated by commas.")] = "",
    min_group_size: Annotated[int, typer.Option(min=2, help="Smaller groups are withheld.")] = 50,
    randomizer: Annotated[
        Literal["krr", "hadamard", "unary", "local_hashing", "laplace", "budget_laplace"] | None,
        typer.Option(help="For tables that do not say how they were made."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="With --randomizer.")] = None,
    categories: Annotated[str | None, typer.Option(help="With --randomizer: separated by commas.")] = None,
    lower: Annotated[float | None, typer.Option(help="With --randomizer: numbers.")] = None,
    upper: Annotated[float | None, typer.Option(help="With --randomizer: numbers.")] = None,
    grid: Annotated[float | None, typer.Option(help="With --randomizer: numbers.")] = None,
    beta: Beta = None,
    rho: Rho = None,
    precision: Precision = None,
    as_json: Json = False,
) -> None:
    """Unbiased frequencies or a mean with standard errors and 95 % intervals, overall and per public group.

    Example: dovetail estimate z.parquet --by age
    """
    table = read_table(str(reports))
    if table.height == 0:
        raise DataError(f"{reports}: the table has no rows.")
    made = description_of(reports)
    numbers = {"lower": lower, "upper": upper, "grid": grid, "beta": beta, "rho": rho, "precision": precision}
    if randomizer is None and given({"epsilon": epsilon, "categories": categories, **numbers}):
        raise ParameterError("--epsilon, --categories and the options of numbers go with --randomizer.")
    if randomizer is not None:
        listed = [name.strip() for name in categories.split(",")] if categories else None
        told = {"randomizer": randomizer, "epsilon": epsilon, "categories": listed, **numbers}
        for name, value in given(told).items():
            if name in made and made[name] != value:
                raise ParameterError(
                    f"{reports}: says that its reports were made with {name} {made[name]!r}, not {value!r}; drop "
                    "--randomizer and what goes with it."
                )
        made = {**told, "shuffle": made.get("shuffle")}
    if randomizer is not None and randomizer not in NUMERIC and not categories:
        raise ParameterError("--randomizer needs --categories, the declared categories in their order.")
    if randomizer in NUMERIC and (lower is None or upper is None):
        raise ParameterError(f"--randomizer {randomizer} needs --lower and --upper.")
    if "randomizer" not in made:
        raise DataError(
            f"{reports}: does not say how its reports were made; give --randomizer, --epsilon and domain."
        )
    config = _config(made)
    known = config.data.categories
    plan = build_randomizer(config, None if known is None else tuple(known))
    public = table.drop(report_columns(table))
    wanted = [name.strip() for name in by.split(",") if name.strip()]
    for name in wanted:
        if name not in public.columns:
            raise DataError(f"{reports}: column {name!r} does not stand beside the reports; there: {public.columns}.")
    section = parse_section(ShuffleSection, made["shuffle"], name=str(reports)) if made.get("shuffle") else None
    shuffler = (
        Identity(table.height) if section is None or not wanted else fit_shuffler(section, public, table.height)
    )
    answer = estimates(
        plan, from_columns(plan, table, known), public if wanted else Missing("no grouping column was asked for"),
        shuffler, wanted=EstimateSection(by=wanted, min_group_size=min_group_size),
        labels=list(known or ["mean"]), truth=None,
    )  # fmt: skip
    if as_json:
        print_json(to_jsonable(answer))
    else:
        _print(answer.overall, answer.groups, answer.withheld)


def _config(made: dict[str, Any]) -> Any:
    domain = given({key: made.get(key) for key in ("categories", "lower", "upper", "grid")})
    asked = given({key: made.get(key) for key in ("randomizer", "epsilon", "beta", "rho", "precision")})
    return parse_config(
        {
            "schema_version": 1,
            "mode": "rehearsal",
            "data": {"private": "report", **domain},
            "randomize": asked,
        },
        name="options",
    )


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
