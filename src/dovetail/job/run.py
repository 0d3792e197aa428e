"""The main job: a table goes in; a sanitized table, estimates with errors and a privacy report come out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError
from dovetail.core.progress import Progress, silent
from dovetail.job.build import build_collection, build_groups, fit_of, fresh
from dovetail.job.collection import Collection
from dovetail.job.config import RunConfig, load_config, parse_config
from dovetail.job.questions import QuestionsConfig, questions_of, run_questions
from dovetail.job.rehearse import rehearse, release, write_report
from dovetail.job.stream import run_stream
from dovetail.job.strings import run_strings
from dovetail.ledger.files import check_target
from dovetail.ledger.releases import ReleaseLedger
from dovetail.report.document import PrivacyReport


def run(
    config: str | Path | dict[str, Any] | RunConfig | QuestionsConfig,
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
    config : path of a TOML file, dictionary, RunConfig or QuestionsConfig
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

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"answer": ["no", "yes"] * 50})
    >>> report = run(
    ...     {
    ...         "schema_version": 1,
    ...         "mode": "rehearsal",
    ...         "data": {"private": "answer", "categories": ["no", "yes"]},
    ...         "randomize": {"randomizer": "krr", "epsilon": 1.0},
    ...     },
    ...     table=table,
    ... )
    >>> report.evaluation.local.epsilon
    1.0
    """
    settings = questions_of(config) or settings_of(config)
    if new_release and settings.mode != "release":
        raise ConfigError("`new_release` is for releases; a rehearsal is drawn afresh unless it names a `seed`.")
    target = None if out is None else Path(out)
    private = ReleaseLedger(Path(ledger)) if ledger is not None else ReleaseLedger.default()
    if target is not None:
        check_target(target, force=force)
        keep_apart(target, private)
    rng = fresh(settings)
    if isinstance(settings, QuestionsConfig):
        report = run_questions(settings, rng, private, table=table, new_release=new_release, progress=progress)
    elif settings.strings is not None:
        report = run_strings(settings, rng, private, table=table, new_release=new_release, progress=progress)
    elif settings.data.time is not None:
        report = run_stream(settings, rng, private, table=table, new_release=new_release, progress=progress)
    else:
        report = _run(settings, rng, private, table=table, new_release=new_release, progress=progress)
    return report if target is None else write_report(report, target, force=force, progress=progress)


def _run(
    settings: RunConfig, rng: Entropy, ledger: ReleaseLedger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    progress("read the table", 0, 1)
    collection = build_collection(settings, rng, table=table)
    progress("read the table", 1, 1)
    if settings.mode == "release":
        return release(
            collection, ledger=ledger, estimate=settings.estimate, new_release=new_release, progress=progress
        )
    return rehearse(
        collection,
        compare=[
            fit_of(settings.shuffle, collection.n, name, collection.survey.people)
            for name in _compared(settings, collection)
        ],
        estimate=settings.estimate, attack=settings.attack, rng=rng, progress=progress,
    )  # fmt: skip


def _compared(settings: RunConfig, collection: Collection) -> list[str]:
    """The shufflers to compare: beside order-private ones also the uniform ones, which may be the better choice."""
    section = settings.shuffle
    if not section.compare or section.alpha is None:
        return section.compare
    found = [*section.compare, "uniform"]
    if section.groups is not None and build_groups(section.groups, collection.survey).disjoint:
        found.append("within_groups")
    return list(dict.fromkeys(found))


def settings_of(config: object) -> RunConfig:
    """A configuration however it is given."""
    if isinstance(config, RunConfig):
        return config
    if isinstance(config, dict):
        return parse_config(config)
    if not isinstance(config, str | Path):
        raise ConfigError(f"`config` must be the path of a TOML file or a dictionary, got {type(config).__name__}.")
    return load_config(config)


def keep_apart(target: Path, ledger: ReleaseLedger) -> None:
    """Refuse a ledger inside the output folder."""
    inside, outside = ledger.folder.absolute(), target.absolute()
    if inside == outside or outside in inside.parents:
        raise ConfigError(f"{ledger.folder}: the private ledger must lie outside the output folder {target}.")
