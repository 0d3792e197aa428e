"""From a batch to the privacy report: every metric that applies, from released reports and public data."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import polars as pl

from dovetail import __version__
from dovetail.account.closed_form.dummies import dummies_guarantee
from dovetail.account.closed_form.user_dummies import user_dummies_guarantee
from dovetail.core.estimate import Estimate
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import Reports
from dovetail.estimate.mean_with_dummies import mean_with_dummies, mean_with_user_dummies
from dovetail.estimate.mixture import estimate_mixture
from dovetail.estimate.with_dummies import estimate_with_dummies, estimate_with_user_dummies
from dovetail.pipeline.collection import Collection
from dovetail.pipeline.config.epsilon_classes import EpsilonClasses
from dovetail.pipeline.config.sections import EstimateSection
from dovetail.pipeline.evaluate.better_randomizer import better_randomizer
from dovetail.pipeline.evaluate.estimates import LEVEL, estimates, shares_of, span_of
from dovetail.pipeline.evaluate.guarantees import central_guarantee, order_evaluation
from dovetail.pipeline.evaluate.leakage import bayes_leakage
from dovetail.pipeline.evaluate.sentences import assumptions, collection_document, randomizer_document, steps
from dovetail.pipeline.files.report_columns import describe_reports
from dovetail.pipeline.files.table import canonical
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_numbers import OpenNumbers
from dovetail.report.document import NO_DIGEST, Estimates, Evaluation, Missing, PrivacyReport
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail.shuffle.dummies.user_dummies import UserDummies

NOT_WITH_DUMMIES = Missing("the shuffler adds dummies, whose promise holds against any knowledge")
NOT_WITH_USER_DUMMIES = Missing("people send dummies, whose promise holds against any knowledge")
NOT_WITH_CLASSES = Missing("people have different epsilons")
WEIGHTED = {
    "name": "weighted",
    "best": "weighted",
    "reason": "reports carry no class: people with a larger epsilon weigh more, so these are the shares of everybody "
    "only where class and answer are unrelated",
}
ONE_WITH_DUMMIES = Missing("counts with dummies have one estimator")
NO_ORDER = "a uniform shuffle keeps no order, so no report belongs to a group"


def evaluate(
    collection: Collection, batch: Reports, *, estimate: EstimateSection, truth: Any, provenance: str
) -> Evaluation:
    """All metrics that do not need the truth; with it (n,), the estimates stand beside it."""
    randomizer, shuffler = collection.randomizer, collection.shuffler
    public: pl.DataFrame | Missing = collection.survey.public if shuffler.keeps_places else Missing(NO_ORDER)
    if collection.dummies is not None:
        return _with_dummies(collection, collection.dummies, batch, truth=truth, provenance=provenance)
    if collection.classes is not None:
        return _with_classes(collection, collection.classes, batch, truth=truth, provenance=provenance)
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


def unmeasured_of(collection: Collection) -> Missing | None:
    """Why attacks and local estimates are not measured for a collection; None where they are."""
    if isinstance(collection.dummies, UserDummies):
        return NOT_WITH_USER_DUMMIES
    if collection.dummies is not None:
        return NOT_WITH_DUMMIES
    return None if collection.classes is None else NOT_WITH_CLASSES


def _with_classes(
    collection: Collection, classes: EpsilonClasses, batch: Reports, *, truth: Any, provenance: str
) -> Evaluation:
    """Of people with different epsilons: what the most exposed class is promised, and weighted shares."""
    randomizer, public = collection.randomizer, collection.survey.public
    _, _, worst = max(collection.class_promises, key=lambda one: one[2].epsilon)
    shares = estimate_mixture(classes.classes(public), batch)
    true = None if truth is None else [float(one) for one in np.bincount(truth, minlength=classes.k) / len(truth)]
    everybody = shares_of(shares, collection.categories or [], true)
    return Evaluation(
        shuffler=collection.shuffler.name,
        local=randomizer.guarantee.drawn_from(provenance),
        central=worst.drawn_from(provenance),
        order=order_evaluation(collection.shuffler, provenance=provenance),
        leakage=NOT_WITH_CLASSES,
        estimates=Estimates(
            "share", LEVEL, everybody, Missing(NO_ORDER), withheld=[], estimator=WEIGHTED, better=NOT_WITH_CLASSES
        ),
    )


def _described(collection: Collection) -> dict[str, Any]:
    """What a later stage must know of dummies among the released reports."""
    dummies, classes = collection.dummies, collection.classes
    if classes is not None:
        return {"classes": {"by": classes.column, "epsilons": dict(classes.epsilons)}}
    if dummies is None:
        return {}
    if isinstance(dummies, UserDummies):
        return {"user_dummies": {"rate": dummies.rate, "people": collection.n, "honest": collection.honest}}
    return {"dummies": {"epsilon": dummies.epsilon, "delta": dummies.delta, "people": collection.n}}


def _with_dummies(
    collection: Collection, dummies: Dummies | UserDummies, batch: Reports, *, truth: Any, provenance: str
) -> Evaluation:
    """All that is known of a batch with dummies: who has to be trusted differs, and so do errors and promises."""
    promise, found = _dummies_promise(collection, dummies, batch)
    unmeasured = unmeasured_of(collection)
    assert unmeasured is not None
    if isinstance(collection.randomizer, OpenNumbers):
        true = None if truth is None else [float(np.mean(truth))]
        everybody, measure = shares_of(found, ["mean"], true, span=span_of(collection.randomizer)), "mean"
    else:
        true = None if truth is None else [float(one) for one in np.bincount(truth, minlength=dummies.k) / len(truth)]
        everybody, measure = shares_of(found, collection.categories or [], true), "share"
    return Evaluation(
        shuffler=collection.shuffler.name,
        local=collection.randomizer.guarantee.drawn_from(provenance),
        central=promise.drawn_from(provenance),
        order=order_evaluation(collection.shuffler, provenance=provenance),
        leakage=unmeasured,
        estimates=Estimates(
            measure, LEVEL, everybody, Missing(NO_ORDER), withheld=[], estimator=ONE_WITH_DUMMIES, better=unmeasured
        ),
    )


def _dummies_promise(
    collection: Collection, dummies: Dummies | UserDummies, batch: Reports
) -> tuple[CentralDP, Estimate]:
    """What a batch with dummies promises, and the shares or the mean behind it."""
    n, honest, delta = collection.n, collection.honest, collection.delta
    number = collection.randomizer if isinstance(collection.randomizer, OpenNumbers) else None
    if isinstance(dummies, UserDummies):
        promise = user_dummies_guarantee(dummies, n=n, delta=delta, honest=honest)
        if number is not None:
            span = {"lower": number.lower, "upper": number.upper}
            return promise, mean_with_user_dummies(dummies, batch, **span, n=n, honest=honest)
        return promise, estimate_with_user_dummies(dummies, batch, n=n, honest=honest)
    layer = collection.randomizer if isinstance(collection.randomizer, KRR) else None
    promise = dummies_guarantee(dummies, n=n, delta=delta, randomizer=layer, honest=honest)
    if number is not None:
        return promise, mean_with_dummies(dummies, batch, lower=number.lower, upper=number.upper, n=n)
    return promise, estimate_with_dummies(dummies, batch, n=n, randomizer=layer)


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
        table=sha256(canonical(collection.survey.identity)).hexdigest() if mode == "rehearsal" else NO_DIGEST,
        sanitized_description=describe_reports(
            collection.randomizer,
            collection.categories,
            provenance,
            shuffle=collection.asked.get("shuffle", {"shuffler": collection.shuffler.name}),
            **_described(collection),
        ),
        **rest,
    )
