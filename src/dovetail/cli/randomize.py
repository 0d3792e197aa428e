"""`dovetail randomize`: the device stage on a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import typer

from dovetail.cli.console.options import Beta, Precision, Rho, given
from dovetail.cli.console.output import Force, Json, Seed, entropy_of, print_json, print_rows, write_reports
from dovetail.pipeline.config.build import build_randomizer
from dovetail.pipeline.config.run_config import parse_config
from dovetail.pipeline.files.report_columns import describe_reports, to_columns
from dovetail.pipeline.files.table import read_survey


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("randomize")(_randomize)


def _randomize(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet.")],
    private: Annotated[str, typer.Option(help="The private column.")],
    epsilon: Annotated[float, typer.Option(help="Local epsilon of each report, nats.")],
    out: Annotated[Path, typer.Option(help="Parquet file for the reports.")],
    randomizer: Annotated[
        Literal["krr", "hadamard", "unary", "local_hashing", "laplace", "budget_laplace"],
        typer.Option(help="Which randomizer."),
    ] = "krr",
    categories: Annotated[str | None, typer.Option(help="Declared categories, separated by commas.")] = None,
    lower: Annotated[float | None, typer.Option(help="Numbers: declared lower bound.")] = None,
    upper: Annotated[float | None, typer.Option(help="Numbers: declared upper bound.")] = None,
    grid: Annotated[float | None, typer.Option(help="Numbers: grid step; default a 1024th of the range.")] = None,
    beta: Beta = None,
    rho: Rho = None,
    precision: Precision = None,
    public: Annotated[str, typer.Option(help="Public columns to keep beside the reports, separated by commas.")] = "",
    person: Annotated[
        str | None, typer.Option(help="Column that names people: nobody may stand in two rows.")
    ] = None,
    missing: Annotated[str, typer.Option(help="refuse, or the category for missing values.")] = "refuse",
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Turn a private column into locally private reports, one per row, in a fresh random order of the rows.

    Example: dovetail randomize survey.csv --private affair --categories no,yes --epsilon 2 --out y.parquet
    """
    data: dict[str, object] = {"path": str(table), "private": private, "public": _names(public), "missing": missing}
    declared = {
        "categories": _names(categories) if categories else None,
        "lower": lower,
        "upper": upper,
        "person": person,
        "grid": grid,
    }
    data |= given(declared)
    asked = {"randomizer": randomizer, "epsilon": epsilon, "beta": beta, "rho": rho, "precision": precision}
    mode = {"mode": "release"} if seed is None else {"mode": "rehearsal", "seed": seed}
    config = parse_config(
        {"schema_version": 1, "data": data, "randomize": given(asked), **mode},
        name="options",
    )
    rng = entropy_of(seed)
    survey = read_survey(config.data, rng)
    plan = build_randomizer(config, survey.categories)
    known = None if survey.categories is None else list(survey.categories)
    reports = to_columns(plan, plan.randomize(survey.values, rng), known)
    description = describe_reports(plan, known, rng.provenance, columns=reports.columns)
    write_reports(pl.concat([survey.public, reports], how="horizontal"), out, description, force=force)
    local = plan.guarantee.drawn_from(rng.provenance)
    document = {
        "n": survey.n,
        "local": {"epsilon": local.epsilon, "delta": local.delta, "source": local.source, "caveats": local.caveats},
        **description,
        "files": {"reports": str(out)},
    }
    if as_json:
        print_json(document)
    else:
        rows = {"reports": f"{survey.n:,} in {out}", "local epsilon": f"{local.epsilon:g}", "source": local.source}
        if local.caveats:
            rows["caution"] = "; ".join(local.caveats)
        print_rows("Randomized", rows)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
