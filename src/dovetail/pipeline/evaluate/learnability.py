"""How much about public groups can be learned from the order of a release: between no shuffle and a full one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.estimate.grouped import GroupedFrequencyEstimator
from dovetail.estimate.local import local_error
from dovetail.estimate.simplex import project_shares
from dovetail.pipeline.config.sections import EstimateSection
from dovetail.pipeline.files.table import Survey
from dovetail.report.document import Learnability, Missing
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform

DRAWS = 10


def learnability(
    wanted: EstimateSection,
    survey: Survey,
    randomizer: FrequencyRandomizer | NumericRandomizer,
    shufflers: Sequence[Shuffler],
    rng: Entropy,
) -> dict[str, list[Learnability] | Missing]:
    r"""For each shuffler the error of local estimates by each column of [estimate] by, in units of the uniform guess.

    .. math:: \lambda = \frac{\sum_i \mathrm{TV}(E(t_i), \hat p(t_i))}{\sum_i \mathrm{TV}(E(t_i), (1/k, .., 1/k))}

    The estimate of a group counts the reports at its places and takes the known noise away; it knows nothing of the
    shuffle. Groups below `min_group_size` are left out. Means over a few releases, the same for every shuffler.

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 5: lambda(r).
    """
    names = [shuffler.name for shuffler in shufflers]
    if not isinstance(randomizer, FrequencyRandomizer):
        return dict.fromkeys(names, Missing("learnability is about shares; the private column is a number"))
    if not wanted.by:
        return dict.fromkeys(names, Missing("no grouping column was asked for: list it in [estimate] by"))
    orders: dict[str, Shuffler] = {"identity": Identity(survey.n), "uniform": Uniform(survey.n)}
    orders |= {shuffler.name: shuffler for shuffler in shufflers}
    found: dict[str, list[Learnability]] = {name: [] for name in names}
    reasons = []
    for by in wanted.by:
        groups = _Groups.of(survey, by, wanted.min_group_size)
        try:
            errors = _errors(groups, survey, randomizer, orders, rng)
        except UnsupportedError as error:
            reasons.append(f"by {by!r}: {error}")
            continue
        ends = {name: errors[name] for name in ("identity", "uniform")}
        for name in names:
            found[name].append(Learnability(by, errors[name], **ends, groups=groups.count, draws=DRAWS))
    return {name: entries or Missing("; ".join(reasons)) for name, entries in found.items()}


@mute
@dataclass(frozen=True, eq=False)
class _Groups:
    """Places that count: those of groups that are large enough."""

    here: NDArray[np.bool_]  # (n,)
    group: NDArray[np.int64]  # (places that count,)
    count: int

    @classmethod
    def of(cls, survey: Survey, by: str, least: int) -> _Groups:
        codes = survey.public[by].cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1
        large = np.bincount(codes) >= least
        here = large[codes]
        return cls(here, (np.cumsum(large) - 1)[codes[here]], int(large.sum()))


def _errors(
    groups: _Groups, survey: Survey, randomizer: FrequencyRandomizer, orders: Mapping[str, Shuffler], rng: Entropy
) -> dict[str, float]:
    if groups.count == 0:
        raise UnsupportedError("no group is as large as min_group_size")
    counts = np.zeros((groups.count, randomizer.k))
    np.add.at(counts, (groups.group, survey.values[groups.here]), 1.0)
    truth = (counts / counts.sum(axis=1, keepdims=True))[groups.group]
    total = dict.fromkeys(orders, 0.0)
    for _ in range(DRAWS):
        reports = randomizer.randomize(survey.values, rng)
        for name, order in orders.items():
            laws = local_shares(randomizer, order.shuffle(reports, rng)[groups.here], groups.group)
            total[name] += local_error(laws, truth)
    return {name: error / DRAWS for name, error in total.items()}


def local_shares(randomizer: FrequencyRandomizer, reports: Reports, groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Law of the value at each place (n, k): of the reports at the places of its group, the noise taken away.

    `Debiased(GroupShares(..))`, for every randomizer.
    """
    tally = GroupedFrequencyEstimator(randomizer, groups=int(groups.max()) + 1).tally(reports, groups)
    return project_shares(randomizer.invert(tally.counts, tally.n))[groups]
