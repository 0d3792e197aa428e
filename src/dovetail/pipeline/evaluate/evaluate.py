"""A collection through its lenses, from released reports and public data, and the report that holds them."""

from __future__ import annotations

from typing import Any

import polars as pl

from dovetail import __version__
from dovetail.core.entropy import Entropy
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.pipeline.config.build import build_groups, build_shuffler, mechanism_of, public_points
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.evaluate.estimates import estimates
from dovetail.pipeline.evaluate.guarantees import central_lens, order_lens
from dovetail.pipeline.evaluate.leakage import leakage_lens
from dovetail.pipeline.evaluate.sentences import assumptions, collection, randomizer_document, steps
from dovetail.pipeline.files.report_columns import describe_reports
from dovetail.pipeline.files.table import Survey
from dovetail.pipeline.release import Released
from dovetail.report.document import Evaluation, Missing, PrivacyReport
from dovetail.shuffle.uniform import Uniform

Analyst = FrequencyRandomizer | NumericRandomizer


def fitted(name: str, settings: RunConfig, survey: Survey) -> Shuffler:
    """A shuffler by its name, fitted to the public columns of a survey."""
    section = settings.shuffle
    groups = None if section.groups is None else build_groups(section.groups, survey)
    points = public_points(section.groups, survey)
    return build_shuffler(
        name, n=survey.n, groups=groups, alpha=section.alpha, points=points, refine=section.refine, k=section.k
    )


def beside(public: pl.DataFrame, shuffler: Shuffler) -> pl.DataFrame | Missing:
    """Public columns, where the shuffler keeps enough order for them to stand beside the reports."""
    if isinstance(mechanism_of(shuffler), Uniform):
        return Missing("a uniform shuffle keeps no order, so no report belongs to a group")
    return public


def look(
    settings: RunConfig,
    randomizer: Analyst,
    shuffler: Shuffler,
    reports: Reports,
    public: pl.DataFrame | Missing,
    categories: tuple[str, ...] | None,
    *,
    truth: Any,
    provenance: str,
) -> Evaluation:
    """All lenses that do not need the truth; with it, the estimates stand beside it."""
    promise = settings.promise
    return Evaluation(
        shuffler=shuffler.name,
        local=randomizer.guarantee.drawn_from(provenance),
        central=central_lens(
            randomizer, shuffler, delta=promise.delta, honest=promise.honest, provenance=provenance
        ),
        order=order_lens(shuffler, provenance=provenance),
        leakage=leakage_lens(randomizer, shuffler),
        estimates=estimates(
            randomizer, reports, public, shuffler, wanted=settings.estimate,
            labels=list(categories or ["mean"]), truth=truth,
        ),
    )  # fmt: skip


def report_of(
    settings: RunConfig,
    survey: Survey,
    randomizer: Analyst,
    lenses: Evaluation,
    rng: Entropy,
    *,
    comparison: tuple[Evaluation, ...] = (),
    released: Released | None = None,
) -> PrivacyReport:
    """Everything that a report says, from the lenses of the shuffler that was asked for."""
    none = 'a rehearsal knows the truth and gives no table away; use mode = "release"'
    return PrivacyReport(
        title=settings.title or f"Collection of {settings.data.private}",
        mode=settings.mode,
        entropy=rng.provenance,
        seed=settings.seed,
        version=__version__,
        collection=collection(settings, survey),
        randomizer=randomizer_document(randomizer),
        evaluation=lenses,
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
