"""The main job: a table goes in; a sanitized table, estimates with errors and a privacy report come out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dovetail import __version__
from dovetail.attack.majority import AttackResult, majority_vote, voters
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, StorageError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.pipeline.build import build_groups, build_randomizer, build_shuffler, fresh, public_points
from dovetail.pipeline.columns import describe_reports
from dovetail.pipeline.config import RunConfig, load_config, parse_config
from dovetail.pipeline.describe import assumptions, collection, randomizer_document, steps
from dovetail.pipeline.ledger import Ledger
from dovetail.pipeline.lenses import central_lens, leakage_lens, order_lens
from dovetail.pipeline.publish import check_target, publish
from dovetail.pipeline.release import Released, release
from dovetail.pipeline.table import Survey, read_survey
from dovetail.pipeline.utility import estimates
from dovetail.report.document import Lenses, Missing, PrivacyReport
from dovetail.report.html import render_html
from dovetail.shuffle.uniform import Uniform

Progress = Callable[[str, int, int], None]  # step, done, total
Plan = FrequencyRandomizer | NumericRandomizer

_NO_TRUTH = "the attack needs the truth, which a release does not look at"


def _silent(step: str, done: int, total: int) -> None:
    """Nobody watches."""


def run(
    config: str | Path | dict[str, Any] | RunConfig,
    *,
    table: Any = None,
    out: str | Path | None = None,
    force: bool = False,
    new_release: bool = False,
    ledger: str | Path | None = None,
    progress: Progress = _silent,
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
    target = None if out is None else Path(out)
    book = Ledger(Path(ledger)) if ledger is not None else Ledger.default()
    if target is not None:
        check_target(target, force=force)
        _keep_apart(target, book)
    rng = fresh(settings)
    progress("read the table", 0, 1)
    survey = read_survey(settings.data, rng, table=table, numbers=settings.numbers)
    progress("read the table", 1, 1)
    if settings.promise.honest is not None and settings.promise.honest > survey.n:
        raise ConfigError(f"`promise.honest` must be at most the {survey.n:,} people of the table, got "
                          f"{settings.promise.honest:,}.")  # fmt: skip
    if settings.mode == "release":
        report = _release(settings, survey, rng, book, new_release=new_release, progress=progress)
    else:
        report = _rehearse(settings, survey, rng, progress)
    return report if target is None else _write(report, target, force=force, progress=progress)


def _settings(config: str | Path | dict[str, Any] | RunConfig) -> RunConfig:
    if isinstance(config, RunConfig):
        return config
    return parse_config(config) if isinstance(config, dict) else load_config(config)


def _keep_apart(target: Path, book: Ledger) -> None:
    inside, outside = book.folder.absolute(), target.absolute()
    if inside == outside or outside in inside.parents:
        raise ConfigError(f"{book.folder}: the private ledger must lie outside the output folder {target}.")


def _rehearse(settings: RunConfig, survey: Survey, rng: Entropy, progress: Progress) -> PrivacyReport:
    """Truth is known: every shuffler that is compared gets the same reports, the estimates stand beside the truth."""
    randomizer = build_randomizer(settings, survey.categories)
    reports = randomizer.randomize(survey.values, rng)
    every = [
        _rehearse_one(name, settings, survey, randomizer, reports, rng, progress)
        for name in dict.fromkeys([settings.shuffle.shuffler, *settings.shuffle.compare])
    ]
    comparison = {lenses.shuffler: lenses for lenses in every[1:] + every[:1]}
    ordered = tuple(comparison.values()) if settings.shuffle.compare else ()
    return _report(settings, survey, randomizer, every[0], rng, comparison=ordered)


def _rehearse_one(
    name: str,
    settings: RunConfig,
    survey: Survey,
    randomizer: Plan,
    reports: Reports,
    rng: Entropy,
    progress: Progress,
) -> Lenses:
    shuffler = _shuffler(name, settings, survey)
    progress(f"shuffle: {shuffler.name}", 0, 1)
    batch = shuffler.shuffle(reports, rng)
    progress(f"shuffle: {shuffler.name}", 1, 1)
    lenses = _look(settings, randomizer, shuffler, batch, _beside(survey.public, shuffler), survey.categories,
                   truth=survey.values, provenance=rng.provenance)  # fmt: skip
    return replace(lenses, attack=_attack(settings, survey, randomizer, shuffler, rng, progress))


def _release(
    settings: RunConfig, survey: Survey, rng: Entropy, book: Ledger, *, new_release: bool, progress: Progress
) -> PrivacyReport:
    """What leaves the house: from the reports on, nothing looks at the private column any more."""
    randomizer = build_randomizer(settings, survey.categories)
    shuffler = _shuffler(settings.shuffle.shuffler, settings, survey)
    _refuse_still(shuffler)
    progress("draw the release", 0, 1)
    released = release(settings, survey, randomizer, shuffler, rng, book, new_release=new_release)
    progress("draw the release", 1, 1)
    if not isinstance(shuffler, Uniform):  # the recorded rows have their own order: fit to that
        shuffler = _shuffler(settings.shuffle.shuffler, settings, replace(survey, public=released.public))
    lenses = _look(settings, randomizer, shuffler, released.reports, _beside(released.public, shuffler),
                   survey.categories, truth=None, provenance=rng.provenance)  # fmt: skip
    lenses = released.compose(lenses)
    return _report(settings, survey, randomizer, lenses, rng, released=released)


def _refuse_still(shuffler: Shuffler) -> None:
    """A release shuffles: what leaves everybody at their places publishes who sent what."""
    if not shuffler.guarantee.protects:
        raise UnsupportedError(
            "nobody would be shuffled with anybody else, so this release would publish who sent what: use larger "
            'groups, a finite alpha, or shuffler = "uniform".'
        )


def _shuffler(name: str, settings: RunConfig, survey: Survey) -> Shuffler:
    section = settings.shuffle
    groups = None if section.groups is None else build_groups(section.groups, survey)
    points = public_points(section.groups, survey)
    return build_shuffler(name, n=survey.n, groups=groups, alpha=section.alpha, points=points)


def _beside(public: pl.DataFrame, shuffler: Shuffler) -> pl.DataFrame | Missing:
    """Public columns, where the shuffler keeps enough order for them to stand beside the reports."""
    if isinstance(shuffler, Uniform):
        return Missing("a uniform shuffle keeps no order, so no report belongs to a group")
    return public


def _look(
    settings: RunConfig,
    randomizer: Plan,
    shuffler: Shuffler,
    reports: Reports,
    public: pl.DataFrame | Missing,
    categories: tuple[str, ...] | None,
    *,
    truth: Any,
    provenance: str,
) -> Lenses:
    """All lenses but the attack, from released reports and public data."""
    promise = settings.promise
    return Lenses(
        shuffler=shuffler.name,
        local=randomizer.guarantee.drawn_from(provenance),
        central=central_lens(
            randomizer, shuffler, delta=promise.delta, honest=promise.honest, provenance=provenance
        ),
        order=order_lens(shuffler, provenance=provenance),
        leakage=leakage_lens(randomizer, shuffler),
        attack=Missing(_NO_TRUTH),
        estimates=estimates(
            randomizer, reports, public, shuffler, wanted=settings.estimate,
            labels=list(categories or ["mean"]), truth=truth,
        ),
    )  # fmt: skip


def _attack(
    settings: RunConfig, survey: Survey, randomizer: Plan, shuffler: Shuffler, rng: Entropy, progress: Progress
) -> AttackResult | Missing:
    """The majority vote on a random sample of people, if there is anything to vote by."""
    wanted, groups = settings.attack, settings.shuffle.groups
    if not isinstance(randomizer, FrequencyRandomizer):
        return Missing("the majority vote guesses categories; the private column is a number")
    if groups is None and not wanted.similar:
        return Missing("the majority vote needs public columns: [shuffle] groups or [attack] similar")
    targets = rng.permutation(survey.n)[: wanted.targets]
    try:
        places = voters(
            targets,
            **_neighbourhood(settings, survey),
            votes=min(wanted.votes, survey.n),
            rng=rng,
        )
        return majority_vote(
            randomizer, survey.values, places, shuffler, targets=targets, trials=wanted.trials, rng=rng,
            progress=lambda done, total: progress(f"attack: {shuffler.name}", done, total),
        )  # fmt: skip
    except UnsupportedError as error:
        return Missing(str(error))


def _neighbourhood(settings: RunConfig, survey: Survey) -> dict[str, Any]:
    """Who is near (r* in the paper: as near as the shuffler's groups reach), and what the attacker knows besides."""
    groups = settings.shuffle.groups
    similar = survey.numbers(settings.attack.similar) if settings.attack.similar else None
    if groups is None:
        return {"within": None, "similar": similar}
    if groups.nearest is not None:  # the nearest of all are near
        return {"within": None, "similar": survey.numbers(groups.columns)}
    if groups.labels is not None and not groups.radius:
        codes = survey.public[groups.labels].cast(pl.String).rank("dense").to_numpy()
        return {"within": (codes.astype(np.float64)[:, None], 0.0), "similar": similar}
    return {"within": (survey.numbers(groups.columns), groups.radius), "similar": similar}


def _report(
    settings: RunConfig,
    survey: Survey,
    randomizer: Plan,
    lenses: Lenses,
    rng: Entropy,
    *,
    comparison: tuple[Lenses, ...] = (),
    released: Released | None = None,
) -> PrivacyReport:
    none = 'a rehearsal knows the truth and gives no table away; use mode = "release"'
    return PrivacyReport(
        title=settings.title or f"Collection of {settings.data.private}",
        mode=settings.mode,
        entropy=rng.provenance,
        seed=settings.seed,
        version=__version__,
        collection=collection(settings, survey),
        randomizer=randomizer_document(randomizer),
        lenses=lenses,
        comparison=comparison,
        assumptions=assumptions(settings, survey, lenses),
        steps=steps(lenses, randomizer),
        config=settings.model_dump(mode="json", exclude={"data": {"path"}, "seed": True}),
        release=Missing("a rehearsal releases nothing") if released is None else released.document(),
        sanitized=Missing(none) if released is None else released.table,
        sanitized_description=describe_reports(
            randomizer,
            None if survey.categories is None else list(survey.categories),
            rng.provenance,
            shuffle=settings.shuffle.model_dump(mode="json"),
        ),
    )


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
