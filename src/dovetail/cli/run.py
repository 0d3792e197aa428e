"""`dovetail run` and `dovetail demo`: the main job, on a table of one's own or on a real survey."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dovetail.cli.output import Force, Full, Json, Paste, after_writing, print_json, print_summary, show, write_whole
from dovetail.cli.progress import progress_bar
from dovetail.core.errors import ParameterError
from dovetail.table.data_section import read_toml

if TYPE_CHECKING:
    import polars as pl

    from dovetail.core.entropy import Entropy


# `dovetail run`: the main job.


def _run(
    config: Annotated[Path, typer.Argument(help="TOML file; docs/samples has an annotated one for each job.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; default: CONFIG-report beside you.")
    ] = None,
    force: Force = False,
    new_release: Annotated[
        bool, typer.Option("--new-release", help="Draw afresh although the table was released before; budgets add.")
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option(help="Private release ledger; default: DOVETAIL_LEDGER or your application folder.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="processes or spark: a table in many files, drawn by several tasks at once.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="With --engine processes; default: all cores.")] = None,
    master: Annotated[
        str | None,
        typer.Option(help="With --engine spark: local[4], spark://host:7077 or sc://host; default: local[*]."),
    ] = None,
    dossier: Annotated[
        bool, typer.Option("--dossier", help="Of a release, also the register's entry, questions and a label.")
    ] = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """A table goes in; a sanitized table, estimates with errors and a privacy report come out.

    With [data] time the table is a stream of rounds: a series of estimates, window queries and the budget spent.

    mode = "rehearsal" knows the truth and is for planning: report.html and report.json, marked as such. mode =
    "release" draws from the operating system and writes sanitized.parquet besides; asked again, it reproduces the
    first release. With --engine, [data] path is a folder of Parquet files or a glob, and a release is one, too.
    """
    from dovetail.core.errors import UnsupportedError
    from dovetail.engine.run import run as run_in_files
    from dovetail.job.run import run

    if engine is None and (workers is not None or master is not None):
        raise UnsupportedError("--workers goes with --engine processes, and --master with --engine spark.")
    if engine is not None and force:
        raise UnsupportedError("--engine never replaces a release: name another place with --out.")
    target = out if out is not None else Path(f"{config.stem}-report")
    if dossier and read_toml(config).get("mode") != "release":
        raise UnsupportedError("--dossier is about a release: a rehearsal contains the truth and protects nobody.")
    with progress_bar(hidden=as_json) as progress:
        if engine is None:
            report = run(config, out=target, force=force, new_release=new_release, ledger=ledger, progress=progress)
        else:
            report = run_in_files(
                config, out=target, engine=engine, workers=workers, master=master, new_release=new_release,
                ledger=ledger, progress=progress,
            )  # fmt: skip
    document = report.document()
    if dossier:
        write_dossier(document, target, force=force)
    given = {"--engine": engine, "--workers": workers, "--master": master, "--ledger": ledger}
    drawn = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    after = ["dovetail", "run", str(config), *drawn, "--out", f"{config.stem}-release"]
    if engine is None:
        after = _to_release(config) or after
    if document["mode"] == "release":
        after = _go_on(document, target, in_memory=engine is None)
    with after_writing(target):
        print_json(document) if as_json else print_summary(document, target, after=after, full=full)


def _to_release(config: Path) -> list[str]:
    """The command that makes a release of a rehearsal's configuration; none where it sets what releases refuse."""
    raw = read_toml(config)
    if {"seed", "attack"} & raw.keys() or "compare" in raw.get("shuffle", {}) or "questions" in raw:
        return []
    confirmed = ["--set", "unconfirmed = []"] if raw.get("data", {}).get("unconfirmed") else []
    return ["dovetail", "check", str(config), "--set", 'mode = "release"', *confirmed]


def write_dossier(document: dict[str, Any], folder: Path, *, force: bool) -> None:
    """Write what a reviewer asks for into `folder`/dossier."""
    from dovetail.report.dossier import dossier

    (folder / "dossier").mkdir(exist_ok=True)
    for name, text in dossier(document).items():
        write_whole(folder / "dossier" / name, partial(_write_text, text), force=force)


def _write_text(text: str, place: Path) -> None:
    place.write_text(text, "utf-8")


def _go_on(document: dict[str, Any], folder: Path, *, in_memory: bool) -> list[str]:
    """The command that reads the release again, where one verb does that."""
    from dovetail.report.sentences import has_dummies

    if document["collection"]["kind"] == "tables":
        return ["dovetail", "synthesize", str(folder), "--out", "synthetic.parquet"]
    plain = (
        in_memory
        and document["collection"]["kind"] in ("categorical", "numeric")
        and not has_dummies(document["central"])
    )
    return ["dovetail", "estimate", str(folder / "sanitized.parquet")] if plain else []


# `dovetail demo`: the main job on a real survey that ships with the package, or on a synthetic stream.


def configuration(private: str, *, epsilon: float, seed: int, trials: int = 10) -> dict[str, Any]:
    """The rehearsal that the demo runs: four shufflers side by side on the same reports."""
    categories = {"affair": ["no", "yes"], "affair_class": ["none", "under 0.5", "0.5 to 2", "2 and more"]}
    return {
        "schema_version": 1,
        "title": "Redbook survey 1974: extramarital affairs",
        "mode": "rehearsal",
        "seed": seed,
        "data": {
            "private": private,
            "public": ["age", "years_married", "education", "occupation"],
            "categories": categories[private],
        },
        "randomize": {"randomizer": "krr", "epsilon": epsilon},
        "shuffle": {
            "shuffler": "best",
            "alpha": 4.0,
            "groups": {"labels": "age", "radius": 1.0},
            "compare": ["identity", "uniform", "mallows"],
        },
        "promise": {"delta": 1e-6, "honest": 6350},
        "estimate": {"by": ["age"], "min_group_size": 50},
        "attack": {"similar": ["years_married", "education", "occupation"], "trials": trials},
    }


def stream_configuration(*, epsilon: float, seed: int) -> dict[str, Any]:
    """The rehearsal of a stream: two hours of a fleet, each house shuffled by itself, a budget for half of it."""
    return {
        "schema_version": 1,
        "title": "Appliances of eight houses, minute by minute",
        "mode": "rehearsal",
        "seed": seed,
        "data": {
            "private": "watts",
            "person": "device",
            "time": "minute",
            "public": ["house"],
            "lower": 3.9,
            "upper": 178.3,
        },
        "randomize": {"randomizer": "budget_laplace", "epsilon": epsilon, "beta": 0.5, "rho": 0.9},
        "shuffle": {"shuffler": "rase", "groups": {"labels": "house"}},
        "promise": {"delta": 1e-6, "cap": 90 * epsilon},
        "estimate": {"window": 10},
    }


def loads(rng: Entropy) -> pl.DataFrame:
    """Synthetic loads of 64 appliances in eight houses, as a stream of 120 rounds."""
    import numpy as np
    import polars as pl

    from dovetail.datasets.houses import synthetic_loads

    devices, rounds = 64, 120
    watts = synthetic_loads(devices, rounds, minutes=1.0, start=420.0, rng=rng)
    return pl.DataFrame(
        {
            "device": [f"appliance{place:02d}" for place in range(devices)] * rounds,
            "house": [f"house{1 + place // 8}" for place in range(devices)] * rounds,
            "minute": np.repeat(np.arange(1, rounds + 1), devices),
            "watts": watts.ravel().round(3),
        }
    )


def _demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo-report"),
    private: Annotated[
        Literal["affair", "affair_class"] | None,
        typer.Option(help="Private column: affair (yes or no; the default), or how much in four classes."),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Local epsilon of each report, nats.")] = 2.0,
    stream: Annotated[
        bool, typer.Option("--stream", help="A stream of synthetic appliance loads instead of the survey.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rehearsal.")] = 1,
    trials: Annotated[
        int, typer.Option(min=2, help="Batches that each attack is tried on; more narrow its interval.")
    ] = 10,
    save_table: Annotated[
        Path | None, typer.Option(help="Write the table as CSV and rehearse nothing: to try `check` and `run` on it.")
    ] = None,
    force: Force = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """A rehearsal on the 1974 Redbook survey (6,366 women; private: affairs), with four shufflers side by side.

    The survey ships with Dovetail; nothing is downloaded. With --stream, 64 appliances report every minute for
    two hours.
    """
    if stream and private is not None:
        raise ParameterError("--private is a column of the survey; --stream has none of it.")
    from dovetail.core.entropy import simulation
    from dovetail.datasets.people import redbook
    from dovetail.job.run import run

    table = loads(simulation(seed)) if stream else redbook()
    config = stream_configuration(epsilon=epsilon, seed=seed)
    if not stream:
        config = configuration(private or "affair", epsilon=epsilon, seed=seed, trials=trials)
    if save_table is not None:
        named = table if stream else table.with_row_index("id")
        write_whole(save_table, named.write_csv, force=force)
        _tell_table(save_table, named.height, config["data"]["private"], as_json=as_json)
        return
    with progress_bar(hidden=as_json) as progress:
        report = run(config, table=table, out=out, force=force, progress=progress)
    document = report.document()
    after = ["dovetail", "demo", *(["--stream"] if stream else []), "--save-table"]
    after += ["loads.csv" if stream else "survey.csv", "--force"]
    with after_writing(out):
        print_json(document) if as_json else print_summary(document, out, after=after, full=full)


def _tell_table(place: Path, rows: int, private: str, *, as_json: bool) -> None:
    """Say where the table is, and how to go on with it."""
    following = shlex.join(["dovetail", "check", str(place), "--private", private])
    document = {"n": rows, "files": {"table": str(place)}, "next": following}
    show(document, f"{place}: {rows:,} rows", "Next:", Paste(f"  {following}"), as_json=as_json)


VERBS = {"run": _run, "demo": _demo}
