"""A rehearsal: the truth is known, so shufflers are compared on the same reports, attacked and scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dovetail.core.entropy import Entropy, entropy_or_system, simulation
from dovetail.core.errors import ParameterError
from dovetail.core.stages import Reports
from dovetail.pipeline.collection import Collection, Fit, need_collection
from dovetail.pipeline.config.sections import AttackSection, EstimateSection
from dovetail.pipeline.evaluate.attacks import attacks
from dovetail.pipeline.evaluate.evaluate import evaluate, privacy_report, unmeasured_of
from dovetail.pipeline.evaluate.learnability import learnability
from dovetail.pipeline.progress import Progress, silent
from dovetail.report.document import Evaluation, Missing, PrivacyReport

NOTHING = Missing("a rehearsal releases nothing")
NO_TABLE = Missing('a rehearsal knows the truth and gives no table away; use mode = "release"')


def rehearse(
    collection: Collection,
    *,
    compare: Sequence[Fit] = (),
    estimate: EstimateSection | None = None,
    attack: AttackSection | None = None,
    seed: int | None = None,
    rng: Entropy | None = None,
    progress: Progress = silent,
) -> PrivacyReport:
    """Truth is known: every shuffler that is compared gets the same reports, the estimates stand beside the truth.

    Parameters
    ----------
    compare : functions of the public columns
        Further shufflers, as `Collection.of` takes one.
    estimate, attack : sections of a configuration, optional
        What the analyst wants, and which attacks are mounted.
    seed : int, optional
        Draw from `dt.simulation(seed)`: the same rehearsal of the same collection again.

    Raises
    ------
    ParameterError
        For what is no `Collection`, and for a seed beside an `rng`.
    UnsupportedError, DataError
        Where an attack or an estimate that was asked for does not apply.

    Examples
    --------
    >>> import dovetail as dt
    >>> import polars as pl
    >>> table = pl.DataFrame({"answer": ["no", "yes"] * 50})
    >>> krr = dt.KRR(k=2, epsilon=1.0)
    >>> asked = Collection.of(table, private="answer", randomizer=krr, rng=dt.simulation(1))
    >>> rehearse(asked, rng=dt.simulation(2)).evaluation.central.epsilon < 1.0
    True
    """
    need_collection(collection)
    if seed is not None and rng is not None:
        raise ParameterError("give `seed` or `rng`, not both: `seed` stands for rng=dt.simulation(seed).")
    rng, wanted = entropy_or_system(rng) if seed is None else simulation(seed), estimate or EstimateSection()
    reports = collection.randomized(rng)
    every = {one.shuffler.name: one for one in (collection, *(collection.through(fit) for fit in compare))}
    unmeasured = unmeasured_of(collection)
    learned: dict[str, Any] = dict.fromkeys(every, unmeasured)
    if unmeasured is None:
        learned = learnability(
            wanted, collection.survey, collection.randomizer, [one.shuffler for one in every.values()], rng
        )
    found = [
        replace(
            _one(one, reports, wanted, attack or AttackSection.choose({}), rng, progress),
            learnability=learned[one.shuffler.name],
        )
        for one in every.values()
    ]
    from dovetail.pipeline.evaluate.copying import released_copies  # half a second
    from dovetail.pipeline.evaluate.label_inference import released_labels

    progress("copying", 0, 2)
    copying = unmeasured or released_copies(collection, rng)
    progress("copying", 1, 2)
    labels = unmeasured or released_labels(collection, rng)
    found[0] = replace(found[0], copying=copying, label_inference=labels)
    progress("copying", 2, 2)
    comparison = {evaluation.shuffler: evaluation for evaluation in found[1:] + found[:1]}
    return privacy_report(
        collection, found[0], mode="rehearsal", provenance=rng.provenance, seed=rng.seed, release=NOTHING,
        sanitized=NO_TABLE, comparison=tuple(comparison.values()) if compare else (),
    )  # fmt: skip


def _one(
    collection: Collection,
    reports: Reports,
    estimate: EstimateSection,
    attack: AttackSection,
    rng: Entropy,
    progress: Progress,
) -> Evaluation:
    shuffler = collection.shuffler
    progress(f"shuffle: {shuffler.name}", 0, 1)
    batch = shuffler.shuffle(reports, rng)
    if collection.dummies is not None:
        batch = collection.dummies.add(batch, rng)
    progress(f"shuffle: {shuffler.name}", 1, 1)
    evaluation = evaluate(
        collection, batch, estimate=estimate, truth=collection.survey.values, provenance=rng.provenance
    )
    return replace(evaluation, attacks=unmeasured_of(collection) or attacks(collection, attack, rng, progress))
