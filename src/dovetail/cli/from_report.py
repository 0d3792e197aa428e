"""`dovetail synthesize` and `dovetail refine`: what is made of a report, made-up people and the next round."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.cli.output import Force, Full, Grid, Json, Paste, check_free, show, write_text, write_whole
from dovetail.cli.progress import tell
from dovetail.core.errors import DataError, OutputError
from dovetail.ledger.files import read_json
from dovetail.report.document import to_jsonable

SHORT = 12  # pairs that are listed without --full
NO_ERRORS = (
    "No standard errors can be quoted for a synthetic table: those of the report are of its cells. What three "
    "columns say together in it is an assumption of the model, not data. It costs no privacy beyond the release."
)


def _synthesize(
    report: Annotated[Path, typer.Argument(help="Folder that `run` wrote of a question on tables, or report.json.")],
    out: Annotated[
        Path | None, typer.Option(help="Parquet or CSV for the table; without it only pairs are told.")
    ] = None,
    people: Annotated[int | None, typer.Option(min=1, help="Rows; default: as many people as took part.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same table for the same report and seed.")] = 0,
    force: Force = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Write a table of made-up people from a release of all two-way tables, and say which pairs it is good for.

    For each pair of columns: how far noise moves its table on average and how far the synthetic table is from the
    released one, as total variation distance. Of a rehearsal only that is told, because its draws protect nobody.

    Example: dovetail synthesize survey-release --out synthetic.parquet
    """
    from dovetail.job.synthesize import synthetic_table

    document = _document(report)
    if out is not None:
        if out.suffix.lower() not in (".parquet", ".pq", ".csv"):
            raise OutputError(f"{out}: the table is written as .parquet or .csv.")
        if document.get("mode") != "release":
            raise OutputError(f"{out}: not written: {report} is a rehearsal, which protects nobody. Run a release.")
        check_free(out, force=force)
    tell("make people up")
    made = synthetic_table(document, people=people, seed=seed)
    if out is not None:
        write = made.table.write_csv if out.suffix.lower() == ".csv" else made.table.write_parquet
        write_whole(out, write, force=force)
    files = {} if out is None else {"table": str(out)}
    told = {"columns": made.table.columns, "people": made.table.height, "pairs": list(made.pairs), "files": files}
    worst = sorted(made.pairs, key=lambda one: (one.good, -one.noise))
    rows = [
        (
            f"{one.columns[0]} and {one.columns[1]}",
            f"{one.noise:.2g}",
            f"{one.fit:.2g}",
            "good" if one.good else f"too few people: it takes {one.people:,}",
        )
        for one in (worst if full else worst[:SHORT])
    ]
    title = (
        f"Pairs of columns, {len(rows)} of {len(worst)}, noise first"
        if len(rows) < len(worst)
        else "Pairs of columns"
    )
    written = [] if out is None else [f"{made.table.height:,} made-up people: {out}"]
    show(
        to_jsonable(told),
        Grid(title, ("columns", "moved by noise", "off the release", "verdict"), rows),
        NO_ERRORS,
        *written,
        as_json=as_json,
    )


def _refine(
    config: Annotated[Path, typer.Argument(help="TOML file of the last round.")],
    report: Annotated[Path, typer.Argument(help="Folder that `run` wrote of it, or its report.json.")],
    out: Annotated[Path, typer.Option(help="TOML file of the next round, in the folder of the last one.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the configuration of the next round: finer bins where the intervals of the last round lie.

    For quantiles of a number with a huge range, asked in rounds: [promise] rounds says how many keep the promise
    together. It is made of what is published. Run it with --new-release.

    Example: dovetail refine sizes.toml sizes-report --out sizes2.toml
    """
    import tomlkit

    from dovetail.job.refine import refine

    if out.absolute().parent != config.absolute().parent:
        raise OutputError(f"{out}: must lie beside {config}, whose paths are relative to it.")
    check_free(out, force=force)
    made = refine(config, _document(report))
    text = tomlkit.parse(config.read_text("utf-8-sig"))
    _change(text["question"], made["question"])
    if "seed" in made:
        text["seed"] = made["seed"]
    write_text(out, tomlkit.dumps(text), force=force)
    ends = made["question"]["ends"].split(",")
    after = Paste(f"dovetail run {shlex.quote(str(out))} --new-release")
    told = {"bins": len(ends) - 1, "files": {"config": str(out)}}
    show(told, f"{len(ends) - 1} bins: {out}", after, as_json=as_json)


def _change(table: Any, settings: Mapping[str, Any]) -> None:
    """Set a table of TOML; what stands in it stays with its comments, and so do those above the next table."""
    body = table.value.body
    end = 1 + max(place for place, (key, _) in enumerate(body) if key is not None)
    above = body[end:]
    del body[end:]
    for name in [name for name in table if name not in settings]:
        del table[name]
    for name, value in settings.items():
        if table.get(name) != value:
            table[name] = value
    body.extend(above)


def _document(place: Path) -> dict[str, Any]:
    found = read_json(place / "report.json" if place.is_dir() else place)
    if not isinstance(found, dict):
        raise DataError(f"{place}: is no report.json of `dovetail run`.")
    return found


VERBS = {"synthesize": _synthesize, "refine": _refine}
