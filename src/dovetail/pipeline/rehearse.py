"""A rehearsal: the truth is known, so shufflers are compared on the same reports, attacked and scored."""

from __future__ import annotations

from dataclasses import replace

from dovetail.core.entropy import Entropy
from dovetail.core.stages import Reports, Shuffler
from dovetail.pipeline.config.build import build_randomizer
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.evaluate.attacks import attacks
from dovetail.pipeline.evaluate.evaluate import Analyst, beside, fitted, look, report_of
from dovetail.pipeline.evaluate.learnability import learnability
from dovetail.pipeline.files.table import Survey
from dovetail.pipeline.progress import Progress
from dovetail.report.document import Evaluation, PrivacyReport


def rehearse(settings: RunConfig, survey: Survey, rng: Entropy, progress: Progress) -> PrivacyReport:
    """Truth is known: every shuffler that is compared gets the same reports, the estimates stand beside the truth."""
    randomizer = build_randomizer(settings, survey.categories)
    reports = randomizer.randomize(survey.values, rng)
    names = dict.fromkeys([settings.shuffle.shuffler, *settings.shuffle.compare])
    shufflers = [fitted(name, settings, survey) for name in names]
    learned = learnability(settings.estimate, survey, randomizer, shufflers, rng)
    every = [
        replace(
            _one(shuffler, settings, survey, randomizer, reports, rng, progress), learnability=learned[shuffler.name]
        )
        for shuffler in shufflers
    ]
    comparison = {lenses.shuffler: lenses for lenses in every[1:] + every[:1]}
    ordered = tuple(comparison.values()) if settings.shuffle.compare else ()
    return report_of(settings, survey, randomizer, every[0], rng, comparison=ordered)


def _one(
    shuffler: Shuffler,
    settings: RunConfig,
    survey: Survey,
    randomizer: Analyst,
    reports: Reports,
    rng: Entropy,
    progress: Progress,
) -> Evaluation:
    progress(f"shuffle: {shuffler.name}", 0, 1)
    batch = shuffler.shuffle(reports, rng)
    progress(f"shuffle: {shuffler.name}", 1, 1)
    lenses = look(settings, randomizer, shuffler, batch, beside(survey.public, shuffler), survey.categories,
                   truth=survey.values, provenance=rng.provenance)  # fmt: skip
    return replace(lenses, attacks=attacks(settings, survey, randomizer, shuffler, rng, progress))
