"""Refusals of a job in many files, each with its reason."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import SHUFFLERS, NumericRandomizer
from dovetail.engine.fitted_orders import arrangement_of
from dovetail.job.config import RunConfig
from dovetail.job.questions import QuestionsConfig
from dovetail.job.together import PROCESSES, choices_of
from dovetail.randomize.sampling.vector_randomizer import VectorRandomizer
from dovetail.shuffle.within_groups import WithinGroups
from dovetail.table.released import Analyst

MOST_CELLS = 50_000_000  # of a tally, one for each group and kind of report, held by every worker
MOST_GROUPS = 1_000_000
MOST_HASHES = 10**13  # that a tally of local hashing may take

_IN_MEMORY = "leave out --engine, or draw a sample of the table"


def refuse_unsupported(asked: RunConfig | QuestionsConfig) -> None:
    """UnsupportedError with the reason, for what no engine draws."""
    each = asked.each if isinstance(asked, QuestionsConfig) else (asked,)
    config = each[0]
    data, shuffle, groups = config.data, config.shuffle, config.shuffle.groups
    fitted = arrangement_of(shuffle.shuffler) is not None
    label = None if groups is None else groups.labels
    columns = [] if groups is None else groups.columns
    apart = choices_of(asked, engine=PROCESSES).refusal if config.data.time is None else None
    texts = config.strings is not None
    reasons = {
        apart: apart is not None,
        "a stream of rounds has an order of its own": data.time is not None,
        "tasks encode answers before all of them are seen, so [data] `categories` must be declared": any(
            not one.data.numeric and one.data.categories is None and not (one.question_kind.of_arrays or texts)
            for one in each
        ),
        "[shuffle] compare draws several orders of the same reports, which takes them in one memory": bool(
            shuffle.compare
        ),
        "tasks see one row of each person, so the table must have that, and [memoize] no `time`": (
            config.memoize is not None and config.memoize.time is not None
        ),
        "randomness is keyed by person, so [data] `person` must name a column": data.person is None,
        '`duplicates` must be "refuse": which row comes first depends on the order of the files': (
            data.duplicates != "refuse"
        ),
        "groups of a list, of a network or of several kinds take everybody in one memory": (
            groups is not None and not groups.by_values
        ),
        f"the settings of shuffler {shuffle.shuffler!r} take everybody's place in one memory": (
            fitted and any(one.name in shuffle.model_fields_set for one in SHUFFLERS[shuffle.shuffler].settings())
        ),
        "groups must be equal labels of one column": (
            shuffle.shuffler == WithinGroups.name and (label is None or bool(groups and groups.radius))
        ),
        "the `nearest` people differ from person to person, and tasks know labels alone; use `radius`": (
            fitted and groups is not None and groups.nearest is not None
        ),
        "alpha = inf leaves every report with its sender": fitted and shuffle.alpha == math.inf,
        f"only the columns of groups can stand beside the reports, so [data] `public` must be {columns!r}": (
            fitted and sorted(data.public) != sorted(columns)
        ),
        "estimates by group are of groups of `labels`, so [estimate] `by` must be []": (
            fitted and label is None and bool(config.estimate.by)
        ),
        "without a shuffle estimates by group are of the only public column, so [data] `public` must name one": (
            not SHUFFLERS[shuffle.shuffler].moves_reports and len(data.public) > 1 and bool(config.estimate.by)
        ),
        f"only the column of groups can stand beside the reports, so [data] `public` must be [{label!r}]": (
            shuffle.shuffler == WithinGroups.name and data.public != [label]
        ),
        'estimator = "best" looks at every report at once; use "rao-blackwell"': config.estimate.estimator == "best",
    }
    for reason, holds in reasons.items():
        if holds:
            raise UnsupportedError(f"--engine: {reason}; {_IN_MEMORY}.")


def refuse_large(randomizer: Analyst, *, n: int, groups: int, labels: int = 0) -> None:
    """UnsupportedError for tallies that no worker could hold or finish; `labels` are public and not counted apart."""
    if max(groups, labels) > MOST_GROUPS:
        raise UnsupportedError(
            f"--engine: {max(groups, labels):,} public groups are more than {MOST_GROUPS:,}; use a coarser column."
        )
    if isinstance(randomizer, NumericRandomizer):
        return
    nobody = np.zeros((1, randomizer.d)) if isinstance(randomizer, VectorRandomizer) else [0]
    cells = randomizer.tally(randomizer.randomize(nobody)).size * max(1, groups)
    if cells > MOST_CELLS:
        raise UnsupportedError(
            f"--engine: the tally would have {cells:,} cells, above {MOST_CELLS:,}; join values or groups."
        )
    if isinstance(randomizer, VectorRandomizer):
        return
    if randomizer.burden(randomizer.k, n) and n * randomizer.k > MOST_HASHES:
        raise UnsupportedError(f"--engine: {randomizer.burden(randomizer.k, n)}; use hadamard.")
