"""What a job in many files can do, and the reason for everything that it refuses."""

from __future__ import annotations

import math

from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.engine.fitted_orders import arrangement_of
from dovetail.estimate.grouped import GroupedFrequencyEstimator, GroupedMeanEstimator
from dovetail.job.config import RunConfig
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups
from dovetail.table.released import Analyst

MOST_CELLS = 50_000_000  # of a tally, one for each group and kind of report, held by every worker
MOST_GROUPS = 1_000_000
MOST_HASHES = 10**13  # that a tally of local hashing may take

_IN_MEMORY = "leave out --engine, or draw a sample of the table"


def refuse_unsupported(config: RunConfig) -> None:
    """UnsupportedError with the reason, for what no engine draws."""
    data, shuffle, groups = config.data, config.shuffle, config.shuffle.groups
    fitted = arrangement_of(shuffle.shuffler) is not None
    label = None if groups is None else groups.labels
    columns = [] if groups is None else groups.columns
    reasons = {
        "a rehearsal needs the truth beside the reports, which are never together here": config.mode != "release",
        "a stream of rounds has an order of its own": data.time is not None,
        "[memoize] follows people over rounds": config.memoize is not None,
        "vectors are read as one column of arrays": config.vector is not None,
        "strings without a list of candidates are asked for level by level": config.strings is not None,
        "randomness is keyed by person, so [data] `person` must name a column": data.person is None,
        '`duplicates` must be "refuse": which row comes first depends on the order of the files': (
            data.duplicates != "refuse"
        ),
        f"shuffler {shuffle.shuffler!r} needs everybody's place in one memory; others do not": (
            not fitted and shuffle.shuffler not in {Uniform.name, WithinGroups.name}
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
        f"only the column of groups can stand beside the reports, so [data] `public` must be [{label!r}]": (
            shuffle.shuffler == WithinGroups.name and data.public != [label]
        ),
        f'dummies (trust = "{config.promise.trust}") are drawn for the batch as a whole': (
            config.promise.trust != "local"
        ),
        "epsilons that a column sets, [randomize] `by`, are not drawn by tasks": (
            config.randomize is not None and config.randomize.by is not None
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
    if not isinstance(randomizer, FrequencyRandomizer):
        return
    cells = randomizer.tally(randomizer.randomize([0])).size * max(1, groups)
    if cells > MOST_CELLS:
        raise UnsupportedError(
            f"--engine: the tally would have {cells:,} cells, above {MOST_CELLS:,}; join values or groups."
        )
    if randomizer.burden(randomizer.k, n) and n * randomizer.k > MOST_HASHES:
        raise UnsupportedError(f"--engine: {randomizer.burden(randomizer.k, n)}; use hadamard.")


def estimator_of(randomizer: Analyst, groups: int) -> GroupedFrequencyEstimator | GroupedMeanEstimator:
    """The estimator within each public group."""
    if isinstance(randomizer, FrequencyRandomizer):
        return GroupedFrequencyEstimator(randomizer, groups)
    return GroupedMeanEstimator(randomizer, groups)
