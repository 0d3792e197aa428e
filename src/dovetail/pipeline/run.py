"""The main job: a table goes in; a sanitized table, estimates with errors and a privacy report come out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, StorageError
from dovetail.pipeline.config.build import build_randomizer, fresh
from dovetail.pipeline.config.run_config import RunConfig, load_config, parse_config
from dovetail.pipeline.evaluate.evaluate import beside, fitted, look, report_of
from dovetail.pipeline.files.publish import check_target, publish
from dovetail.pipeline.files.table import Survey, read_survey
from dovetail.pipeline.progress import Progress as Progress
from dovetail.pipeline.progress import silent
from dovetail.pipeline.rehearse import rehearse
from dovetail.pipeline.release import refuse_still, release
from dovetail.pipeline.release_ledger import Ledger
from dovetail.pipeline.stream.run_stream import run_stream
from dovetail.report.document import Missing, PrivacyReport
from dovetail.report.render.html import render_html


def run(
    config: str | Path | dict[str, Any] | RunConfig,
    *,
    table: Any = None,
    out: str | Path | None = None,
    force: bool = False,
    new_release: bool = False,
    ledger: str | Path | None = None,
    progress: Progress = silent,
) -> PrivacyReport:
    """Run one collection from a table to its privacy report.

    Parameters
    ----------
    config : path of a TOML file, dictionary or RunConfig
    table : data frame, optional
        Anything that speaks Arrow (polars, pandas, duckdb, pyarrow), instead of the configured path.
    out : folder, optional
        Receives report.json, report.html and, for a release, sanitized.parquet: all of them or none.
    force : bool
        Replace a folder that holds an earlier report.
    new_release : bool
        Draw afresh although this table has been released before; budgets add.
    ledger : folder, optional
        The private release ledger; default: DOVETAIL_LEDGER or the user's application folder.
    progress : function (step, done, total), optional

    Returns
    -------
    PrivacyReport
        Its `sanitized` holds the released table.

    Raises
    ------
    ConfigError, DataError, UnsupportedError, OutputError
        One line: what, where, what to do. Nothing is written.
    """
    settings = _settings(config)
    if new_release and settings.mode != "release":
        raise ConfigError("`new_release` is for releases; a rehearsal is drawn afresh unless it names a `seed`.")
    target = None if out is None else Path(out)
    book = Ledger(Path(ledger)) if ledger is not None else Ledger.default()
    if target is not None:
        check_target(target, force=force)
        _keep_apart(target, book)
    rng = fresh(settings)
    if settings.data.time is not None:
        report = run_stream(settings, rng, book, table=table, new_release=new_release, progress=progress)
        return report if target is None else _write(report, target, force=force, progress=progress)
    progress("read the table", 0, 1)
    survey = read_survey(settings.data, rng, table=table, numbers=settings.numbers)
    progress("read the table", 1, 1)
    if settings.promise.honest is not None and settings.promise.honest > survey.n:
        raise ConfigError(f"`promise.honest` must be at most the {survey.n:,} people of the table, got "
                          f"{settings.promise.honest:,}.")  # fmt: skip
    if settings.mode == "release":
        report = _release(settings, survey, rng, book, new_release=new_release, progress=progress)
    else:
        report = rehearse(settings, survey, rng, progress)
    return report if target is None else _write(report, target, force=force, progress=progress)


def _settings(config: str | Path | dict[str, Any] | RunConfig) -> RunConfig:
    if isinstance(config, RunConfig):
        return config
    return parse_config(config) if isinstance(config, dict) else load_config(config)


def _keep_apart(target: Path, book: Ledger) -> None:
    inside, outside = book.folder.absolute(), target.absolute()
    if inside == outside or outside in inside.parents:
        raise ConfigError(f"{book.folder}: the private ledger must lie outside the output folder {target}.")


def _release(
    settings: RunConfig, survey: Survey, rng: Entropy, book: Ledger, *, new_release: bool, progress: Progress
) -> PrivacyReport:
    """What leaves the house: from the reports on, nothing looks at the private column any more."""
    randomizer = build_randomizer(settings, survey.categories)
    shuffler = fitted(settings.shuffle.shuffler, settings, survey)
    refuse_still(shuffler)
    progress("draw the release", 0, 1)
    released = release(settings, survey, randomizer, shuffler, rng, book, new_release=new_release)
    progress("draw the release", 1, 1)
    if shuffler.keeps_places:  # the recorded rows have their own order: fit to that
        shuffler = fitted(settings.shuffle.shuffler, settings, replace(survey, public=released.public))
    lenses = look(settings, randomizer, shuffler, released.reports, beside(released.public, shuffler),
                   survey.categories, truth=None, provenance=rng.provenance)  # fmt: skip
    lenses = released.compose(lenses)
    return report_of(settings, survey, randomizer, lenses, rng, released=released)


def _write(report: PrivacyReport, target: Path, *, force: bool, progress: Progress) -> PrivacyReport:
    sanitized = report.sanitized
    files = {
        "report_json": "report.json",
        "report_html": "report.html",
        "sanitized": sanitized if isinstance(sanitized, Missing) else "sanitized.parquet",
    }
    report = replace(report, files=files)
    progress("write the report", 0, 1)
    with publish(target, force=force) as folder:
        document = report.document()
        try:
            if isinstance(sanitized, pl.DataFrame):
                description = {"dovetail": json.dumps(report.sanitized_description)}
                sanitized.write_parquet(folder / "sanitized.parquet", metadata=description)
        except pl.exceptions.PolarsError as error:
            raise StorageError(f"{target}: could not be written ({error}); nothing was left.") from None
        (folder / "report.json").write_text(
            json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        (folder / "report.html").write_text(render_html(document), encoding="utf-8")
    progress("write the report", 1, 1)
    return report
