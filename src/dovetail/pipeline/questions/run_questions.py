"""A run about several columns: one collection, one guarantee for a person, and a section for each question."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import polars as pl

from dovetail import __version__
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.pipeline.evaluate.estimates import LEVEL
from dovetail.pipeline.evaluate.guarantees import order_evaluation
from dovetail.pipeline.files.table import canonical
from dovetail.pipeline.progress import Progress
from dovetail.pipeline.questions.collection import QuestionsCollection
from dovetail.pipeline.questions.config import QuestionsConfig
from dovetail.pipeline.questions.describe import (
    assumptions_of,
    collection_of,
    config_of,
    questions_document,
    randomizer_of,
    sanitized_of,
    steps_of,
)
from dovetail.pipeline.questions.evaluate import NOT_ATTACKED, Answered, Beside, evaluate_question
from dovetail.pipeline.rehearse import NO_TABLE, NOTHING
from dovetail.pipeline.release import ReleasedTable, refuse_still
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.report.document import NO_DIGEST, NO_TRUTH, Estimates, Evaluation, Missing, PrivacyReport

BY_QUESTION: Any = Missing("each question has its own, which stands with it")


def run_questions(
    asked: QuestionsConfig, rng: Entropy, ledger: ReleaseLedger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    """The report; a rehearsal beside the truth, a release recorded in the ledger."""
    progress("read the table", 0, 1)
    collection = QuestionsCollection.of(asked, rng, table=table)
    if asked.mode == "release":
        refuse_still(collection.shuffler)
    progress("read the table", 1, 1)
    if collection.n < 2:
        raise UnsupportedError("one person is shuffled with nobody: her local guarantee is all there is.")
    progress("what it promises", 0, 1)
    central = collection.central()
    progress("what it promises", 1, 1)
    progress("draw the reports", 0, 1)
    drawn, released = _drawn(collection, rng, ledger, new_release=new_release)
    progress("draw the reports", 1, 1)
    known = asked.mode == "rehearsal"
    answered = tuple(
        evaluate_question(part, reports, known=known, provenance=rng.provenance, beside=_beside(collection, q, drawn))
        for q, (part, reports) in enumerate(zip(collection.parts, collection.reports(drawn), strict=True))
    )
    return _report(collection, central, answered, released, rng)


def _beside(collection: QuestionsCollection, q: int, drawn: pl.DataFrame) -> Beside | None:
    """What stands beside the reports; the recorded rows of a release have an order of their own."""
    if not collection.shuffler.keeps_places:
        return None
    public = drawn.select(collection.public.columns)
    return Beside(collection.shuffler, public, collection.answered(q, drawn), collection.asked.head.estimate)


def _drawn(
    collection: QuestionsCollection, rng: Entropy, ledger: ReleaseLedger, *, new_release: bool
) -> tuple[pl.DataFrame, ReleasedTable | None]:
    """What is released: of a release the recorded reports of this table under these terms, or fresh ones."""
    if collection.asked.mode == "rehearsal":
        return collection.release(rng), None
    answer = ledger.answer(collection.request(), new_release=new_release, draw=lambda: collection.release(rng))
    released = ReleasedTable(
        table=answer.reports, reports=np.zeros(0), public=pl.DataFrame(), history=answer.history,
        number=answer.number, reproduced=answer.reproduced,
    )  # fmt: skip
    return answer.reports, released


def _report(
    collection: QuestionsCollection,
    central: CentralDP | Missing,
    answered: tuple[Answered, ...],
    released: ReleasedTable | None,
    rng: Entropy,
) -> PrivacyReport:
    asked, provenance = collection.asked, rng.provenance
    local = collection.local.drawn_from(provenance)
    evaluation = Evaluation(
        shuffler=collection.shuffler.name,
        local=local,
        central=central if isinstance(central, Missing) else central.drawn_from(provenance),
        order=order_evaluation(collection.shuffler, provenance=provenance),
        leakage=BY_QUESTION,
        estimates=Estimates("share", LEVEL, BY_QUESTION, BY_QUESTION, withheld=[], better=BY_QUESTION),
        attacks=NO_TRUTH if released is not None else NOT_ATTACKED,
        learnability=NOT_ATTACKED, copying=NOT_ATTACKED, label_inference=NOT_ATTACKED,
    )  # fmt: skip
    if released is not None:
        evaluation = released.compose(evaluation)
        if isinstance(evaluation.central, Missing):  # one of several releases about these people
            answered = tuple(replace(one, leakage=evaluation.central) for one in answered)
    return PrivacyReport(
        title=asked.head.title or f"Collection of {', '.join(collection.columns)}",
        mode=asked.mode,
        entropy=provenance,
        seed=asked.seed,
        version=__version__,
        collection=collection_of(collection),
        randomizer=randomizer_of(collection),
        evaluation=evaluation,
        comparison=(),
        assumptions=assumptions_of(collection, mode=asked.mode),
        steps=steps_of(collection, local, central),
        config=config_of(asked),
        table=sha256(canonical(collection.identity())).hexdigest() if released is None else NO_DIGEST,
        release=NOTHING if released is None else released.document(),
        sanitized=NO_TABLE if released is None else released.table,
        sanitized_description=sanitized_of(collection, provenance),
        questions=questions_document(collection, answered),
    )
