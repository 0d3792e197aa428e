"""Rounds of permanent answers: one row for each person, and what is promised of all rounds together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from dovetail.account.closed_form.memoization import PATTERN, SOURCE
from dovetail.core.checks import nearest
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.files.table import as_text, table_of
from dovetail.report.document import Evaluation, PrivacyReport
from dovetail.report.number_format import upward


def permanent_rows(settings: RunConfig, table: Any) -> tuple[pl.DataFrame, int]:
    """A row for each person, and the number of rounds that everybody took part in.

    Raises
    ------
    DataError
        For a column that is not there, and a person who stands in a round twice.
    UnsupportedError
        Where a value or a public column changes, and where somebody is missing in a round.
    """
    asked, data = settings.memoize, settings.data
    assert asked is not None and data.person is not None  # checked by the caller, and by the section
    frame = table_of(data, table)
    for name in (asked.time, data.person, data.private, *data.public):
        if name not in frame.columns:
            raise DataError(f"the table has no column {name!r}{nearest(name, frame.columns)}.")
    held = [data.private, *data.public]
    plain = frame.select(as_text(frame[name]).alias(name) for name in (data.person, asked.time, *held))
    twice = plain.select(data.person, asked.time).is_duplicated()
    if twice.any():
        row = plain.row(int(twice.arg_true()[0]), named=True)
        raise DataError(f"{row[data.person]!r} stands in round {row[asked.time]!r} more than once.")
    people = plain.group_by(data.person, maintain_order=True).agg(
        pl.len().alias("_rounds"), *(pl.col(name).n_unique().alias(f"_{name}") for name in held)
    )
    for name in held:
        _refuse_changes(name, people.filter(pl.col(f"_{name}") > 1)[data.person], private=name == data.private)
    rounds = plain[asked.time].n_unique()
    absent = people.filter(pl.col("_rounds") < rounds)[data.person]
    if len(absent):
        raise UnsupportedError(
            f"[memoize] {len(absent):,} of {people.height:,} people are not in all {rounds:,} rounds, such as "
            f"{absent[0]!r}: each is hidden only among those who take part in the same rounds. Run each such set of "
            "people by itself, or leave these people out by a rule that does not depend on values."
        )
    return frame.unique(subset=[data.person], keep="first", maintain_order=True).drop(asked.time), rounds


def _refuse_changes(name: str, who: pl.Series, *, private: bool) -> None:
    if not len(who):
        return
    what = f"[memoize] column {name!r} changes over rounds for {len(who):,} people, such as {who[0]!r}"
    if private:
        raise UnsupportedError(
            f"{what}: memoized answers promise nothing then. {PATTERN} Freeze the first value, or run the rounds "
            "without [memoize], with fresh noise whose budgets compose."
        )
    raise UnsupportedError(f"{what}: who is grouped with whom must be the same in every round.")


def promise_all_rounds(report: PrivacyReport, rounds: int) -> PrivacyReport:
    """The report of the permanent answers as one of all their rounds."""
    return replace(
        report,
        evaluation=_of_all_rounds(report.evaluation, rounds),
        assumptions=(
            *report.assumptions,
            f"Everybody sends one permanent answer in each of {rounds:,} rounds, and what is promised holds for all "
            "of them together and for any further ones, if values never change: that is the word of whoever wrote "
            f"`constant_values`. {PATTERN}",
            "Who takes part in a round must not depend on values. A device that loses its memory draws a second "
            f"answer: its owner is then promised {upward(2 * report.evaluation.local.epsilon)} locally, and nothing "
            "centrally.",
            "Errors do not fall with the number of rounds, because the noise of each is the same.",
        ),
    )


def _of_all_rounds(evaluation: Evaluation, rounds: int) -> Evaluation:
    local = replace(evaluation.local, source=f"{evaluation.local.source}; {SOURCE}")
    central = evaluation.central
    if isinstance(central, CentralDP):
        whom = f"replace one person's value in all {rounds:,} rounds"
        central = replace(central, source=f"{central.source}; {SOURCE}", neighbours=whom)
    return replace(evaluation, local=local, central=central)
