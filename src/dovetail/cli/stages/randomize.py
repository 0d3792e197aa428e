"""`dovetail randomize`: the device stage on a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from dovetail.cli.console.mechanism_options import RandomizerName, RandomizerSettings, chosen
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.options import given
from dovetail.cli.console.output import Force, Json, Seed, entropy_of, print_json, print_rows, write_reports
from dovetail.cli.console.progress import tell
from dovetail.cli.console.table_options import TableOptions
from dovetail.core.errors import DataError
from dovetail.core.guarantee import LocalDP
from dovetail.core.settings import split_names
from dovetail.pipeline.config.build import build_collection
from dovetail.pipeline.config.run_config import RunConfig, parse_config
from dovetail.pipeline.files.csv_text import WrittenOtherwise
from dovetail.pipeline.files.report_columns import describe_reports, to_columns


@dataclass(frozen=True)
class DataOptions:
    """The section [data] but for table and private column."""

    categories: Annotated[str | None, typer.Option(help="Declared categories, separated by commas.")] = None
    lower: Annotated[float | None, typer.Option(help="Numbers: declared lower bound.")] = None
    upper: Annotated[float | None, typer.Option(help="Numbers: declared upper bound.")] = None
    grid: Annotated[float | None, typer.Option(help="Numbers: grid step; default a 1024th of the range.")] = None
    public: Annotated[str, typer.Option(help="Public columns to keep beside the reports, separated by commas.")] = ""
    person: Annotated[str | None, typer.Option(help="Column that names people: nobody may stand in two rows.")] = None
    missing: Annotated[str, typer.Option(help="refuse, or the category for missing values.")] = "refuse"

    def section(self) -> dict[str, Any]:
        """The keys of [data]."""
        lists = {"categories": split_names(self.categories) or None, "public": split_names(self.public)}
        return given(asdict(self) | lists)


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("randomize")(flatten(_randomize))


def _randomize(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet.")],
    private: Annotated[str, typer.Option(help="The private column.")],
    epsilon: Annotated[float, typer.Option(help="Local epsilon of each report, nats.")],
    out: Annotated[Path, typer.Option(help="Parquet file for the reports.")],
    data: DataOptions,
    written: TableOptions,
    settings: RandomizerSettings,
    randomizer: RandomizerName = "krr",
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Turn a private column into locally private reports, one per row, in a fresh random order of the rows.

    Example: dovetail randomize survey.csv --private affair --categories no,yes --epsilon 2 --out y.parquet
    """
    asked = {"randomizer": randomizer, "epsilon": epsilon, **chosen(settings)}
    rng, source = entropy_of(seed), {"path": str(table), "private": private, **data.section(), **written.section()}
    tell("read the table")
    try:
        collection = build_collection(_config(source, asked, seed=seed), rng)
    except WrittenOtherwise as error:
        raise DataError(error.options) from None
    made, known = collection.randomizer, collection.categories
    tell(f"randomize {collection.n:,} values")
    reports = to_columns(made, made.randomize(collection.survey.values, rng), known)
    description = describe_reports(made, known, rng.provenance, columns=reports.columns)
    write_reports(pl.concat([collection.survey.public, reports], how="horizontal"), out, description, force=force)
    local = made.guarantee.drawn_from(rng.provenance)
    if as_json:
        print_json(_document(collection.n, local, description, out))
    else:
        print_rows("Randomized", _rows(collection.n, local, out))


def _config(data: dict[str, Any], randomize: dict[str, Any], *, seed: int | None) -> RunConfig:
    """The configuration that the options describe: with a seed it is a rehearsal."""
    mode = {"mode": "release"} if seed is None else {"mode": "rehearsal", "seed": seed}
    return parse_config({"schema_version": 1, "data": data, "randomize": randomize, **mode}, name="options")


def _document(n: int, local: LocalDP, description: dict[str, Any], out: Path) -> dict[str, Any]:
    return {
        "n": n,
        "local": {"epsilon": local.epsilon, "delta": local.delta, "source": local.source, "caveats": local.caveats},
        **description,
        "files": {"reports": str(out)},
    }


def _rows(n: int, local: LocalDP, out: Path) -> dict[str, str]:
    caution = {"caution": "; ".join(local.caveats)} if local.caveats else {}
    return {"reports": f"{n:,} in {out}", "local epsilon": f"{local.epsilon:g}", "source": local.source, **caution}
