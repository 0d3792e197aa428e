"""From a batch to the privacy report: every metric that applies, from released reports and public data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from dovetail import __version__
from dovetail.core.stages import Reports
from dovetail.pipeline.collection import Collection
from dovetail.pipeline.config.sections import EstimateSection
from dovetail.pipeline.evaluate.better_randomizer import better_randomizer
from dovetail.pipeline.evaluate.estimates import estimates
from dovetail.pipeline.evaluate.guarantees import central_guarantee, order_evaluation
from dovetail.pipeline.evaluate.leakage import bayes_leakage
from dovetail.pipeline.evaluate.sentences import assumptions, collection_document, randomizer_document, steps
from dovetail.pipeline.files.report_columns import describe_reports
from dovetail.report.document import Evaluation, Missing, PrivacyReport

NO_ORDER = "a uniform shuffle keeps no order, so no report belongs to a group"


def evaluate(
    collection: Collection, batch: Reports, *, estimate: EstimateSection, truth: Any, provenance: str
) -> Evaluation:
    """All metrics that do not need the truth; with it (n,), the estimates stand beside it."""
    randomizer, shuffler = collection.randomizer, collection.shuffler
    public: pl.DataFrame | Missing = collection.survey.public if shuffler.keeps_places else Missing(NO_ORDER)
    found = estimates(
        randomizer, batch, public, shuffler, wanted=estimate, labels=collection.categories or ["mean"], truth=truth
    )
    known = found.overall.truth
    return Evaluation(
        shuffler=shuffler.name,
        local=randomizer.guarantee.drawn_from(provenance),
        central=central_guarantee(
            randomizer, shuffler, delta=collection.delta, honest=collection.honest, provenance=provenance
        ),
        order=order_evaluation(shuffler, provenance=provenance),
        leakage=bayes_leakage(
            randomizer,
            shuffler,
            honest=collection.honest,
            shares=np.asarray(found.overall.possible if known is None else known),
            law="estimated" if known is None else "empirical",
        ),
        estimates=replace(found, better=better_randomizer(randomizer, n=shuffler.n, delta=collection.delta)),
    )


def privacy_report(
    collection: Collection, evaluation: Evaluation, *, mode: str, provenance: str, **rest: Any
) -> PrivacyReport:
    """The report of a collection whose metrics are `evaluation`; `rest` are further fields of it."""
    return PrivacyReport(
        title=collection.title or f"Collection of {collection.private}",
        mode=mode,
        entropy=provenance,
        version=__version__,
        collection=collection_document(collection),
        randomizer=randomizer_document(collection.randomizer),
        evaluation=evaluation,
        assumptions=assumptions(collection, evaluation, mode=mode),
        steps=steps(evaluation, collection.randomizer),
        config=dict(collection.asked),
        sanitized_description=describe_reports(
            collection.randomizer,
            collection.categories,
            provenance,
            shuffle=collection.asked.get("shuffle", {"shuffler": collection.shuffler.name}),
        ),
        **rest,
    )
