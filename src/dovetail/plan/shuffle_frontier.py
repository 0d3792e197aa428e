"""Gain and cost of a shuffle before anything is collected: the frontier of alpha, and ranges of a public column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.account.amplify import amplify
from dovetail.attack.experiment.run_attack import AttackResult, run_attack
from dovetail.attack.likelihood import Likelihood
from dovetail.core.checks import not_negative_or_infinite, positive
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.extras import pl
from dovetail.core.stages import SHUFFLERS, FrequencyRandomizer, Knowledge, Labels, PublicData, Reports, Shuffler
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.randomize.krr import KRR
from dovetail.shuffle.fitting.components import partition_reference_order
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups
from dovetail.table.data_section import Spellings
from dovetail.table.spelling import in_ranges

Places = NDArray[np.float64]  # (n, d), public

REGIONS = 16  # a power of two
MOST_TOWNS = 64  # disjoint groups up to so many are the regions
LEAST = 32  # people: below, a region holds hardly anybody
MOST = 200_000
NOTHING, EVERYTHING = 0.1, 0.9  # share of what could be learned, and of what an attack could gain
TOLD = 0.99  # chance to tell two people of a group apart, from which a promise is none
_TARGETS, _ORDERS, _RELEASES, _DRAWS = 500, 4, 4, 48


@dataclass(frozen=True)
class FrontierPoint:
    """One shuffler on the frontier.

    Parameters
    ----------
    asked : float or None
        alpha that was asked for; None for a shuffler that stands beside for comparison.
    alpha : float
        What it keeps, nats.
    told_apart : float
        Bound: who of two people of a group sent a report is guessed right with at most this probability.
    lost : float
        lambda, the share of the differences between regions that the order takes away: 0 none, 1 all.
    error : float
        Root mean square error of a region's share, noise included.
    attack : float
        Success of the likelihood attack on simulated values, or of the blind guess where that is better.
    interval : (float, float)
    verdict : str
        Between a uniform shuffle and none: what it keeps of the differences between regions, and how much of what an
        attack can gain it exposes.
    """

    shuffler: str
    asked: float | None
    alpha: float
    told_apart: float
    lost: float
    error: float
    attack: float
    interval: tuple[float, float]
    verdict: str = ""


@dataclass(frozen=True)
class Frontier:
    """The points in order of the alpha that was asked for, between a uniform shuffle and none.

    Parameters
    ----------
    regions : int
        Crowds of neighbours whose shares are to be learned.
    agree : float
        Share of a region that holds its value, in the simulation.
    chance : float
        Success of the blind guess.
    """

    n: int
    epsilon: float
    regions: int
    agree: float
    chance: float
    points: tuple[FrontierPoint, ...]

    def document(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """Say in one sentence where alpha buys something."""
        asked = [each for each in self.points if each.asked is not None]
        vain = [each for each in asked if each.lost > 1.0 - NOTHING]
        bare = [each for each in asked if each not in vain and each.told_apart > TOLD]
        said = []
        if vain:
            said.append(f"up to alpha = {max(each.asked or 0.0 for each in vain):g} alpha buys nothing")
        if bare:
            said.append(f"from alpha = {min(each.asked or 0.0 for each in bare):g} on the promise allows any guess")
        between = [f"{each.asked:g}" for each in asked if each not in vain and each not in bare]
        said.append(f"look at alpha = {', '.join(between)}" if between else "no alpha asked keeps both")
        return f"{'; '.join(said)}."


def shuffle_frontier(
    groups: Groups,
    alphas: Sequence[float],
    *,
    epsilon: float,
    points: Places | None = None,
    shuffler: str = "best",
    agree: float = 0.8,
    rng: Entropy | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Frontier:
    r"""Error and attack success against alpha, from public data alone.

    The values are simulated: of the people of each region of neighbours (or of each disjoint group, where they are
    few) a share `agree` holds one of two values, the same share of half of all regions each. What the order takes
    from the shares p of the regions is computed from the shuffler's public mixing M,

    .. math:: \lambda = \frac{\sum_r |(M p)_r - p_r|}{\sum_r |\bar p - p_r|}, \qquad
              \mathrm{error}^2 = \frac1R \sum_r \Bigl(((M p)_r - p_r)^2 + \frac{V(p_r)}{n_r}\Bigr)

    with the variance V of a report under k-ary randomized response at `epsilon`; attacks are simulated. About two
    people of one group, whatever they hold, order privacy bounds the guess who of them sent a report by

    .. math:: e^\alpha / (1 + e^\alpha)

    Beside the alphas stand a uniform shuffle of everybody, a uniform shuffle inside each group (of each component
    where groups overlap), and none.

    Parameters
    ----------
    groups : Groups
    alphas : floats, at least 0, nats
    epsilon : float, nats
        Local epsilon of the reports.
    points : float array (n, d), optional
        Public coordinates; without, people stand along the reference order.
    shuffler : str
        Which is fitted to each alpha.
    agree : float in (0.5, 1]
    rng : Entropy, optional
        For the simulation; default a fixed seed.

    Raises
    ------
    UnsupportedError
        For fewer than 32 people, and more than 200,000.
    """
    wanted = sorted({not_negative_or_infinite("alphas", alpha) for alpha in alphas})
    if not wanted:
        raise ParameterError("`alphas` must be at least one number, at least 0, got none.")
    if not 0.5 < agree <= 1.0:
        raise ParameterError(f"`agree` must be in (0.5, 1], got {agree:g}.")
    if not LEAST <= groups.n <= MOST:
        raise UnsupportedError(f"the frontier is simulated for {LEAST} to {MOST:,} people, got {groups.n:,}.")
    rng, randomizer = simulation(1) if rng is None else rng, KRR(k=2, epsilon=epsilon)
    where = _places(groups, points)
    study = _Study.of(randomizer, where, _regions(groups, where), agree, rng)
    public = PublicData(groups.n, groups, points)
    progress("a uniform shuffle, and none")
    ends = study.point(Uniform(groups.n)), study.point(Identity(groups.n))
    found = [*ends]
    if not (_one_crowd(groups)):
        progress("a uniform shuffle inside each crowd")
        found.insert(1, study.point(_inside(groups)))
    for alpha in wanted:
        progress(f"alpha = {alpha:g}")
        found.append(study.point(SHUFFLERS[shuffler].from_public(public, alpha=alpha), asked=alpha))
    judged = tuple(_judged(each, *ends) for each in found)
    return Frontier(groups.n, epsilon, study.regions, agree, study.chance, judged)


@dataclass(frozen=True, eq=False)
class _Study:
    """Simulated values of people in regions, and how a shuffler fares with them."""

    randomizer: FrequencyRandomizer
    known: _Neighbours
    labels: Labels  # (n,), regions
    values: Labels  # (n,)
    targets: Labels
    rng: Entropy

    @classmethod
    def of(cls, randomizer: FrequencyRandomizer, where: Places, labels: Labels, agree: float, rng: Entropy) -> _Study:
        regions = int(labels.max()) + 1
        kind = (rng.permutation(regions) % 2)[labels]
        follows = rng.permutation(len(labels)) < agree * len(labels)
        values = np.where(follows, kind, 1 - kind).astype(np.int64)
        return cls(
            randomizer,
            _Neighbours(where, labels, values),
            labels,
            values,
            rng.permutation(len(labels))[:_TARGETS],
            rng,
        )

    @property
    def regions(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def chance(self) -> float:
        return float(np.bincount(self.values[self.targets]).max() / len(self.targets))

    def point(self, shuffler: Shuffler, *, asked: float | None = None) -> FrontierPoint:
        sizes = np.bincount(self.labels)
        shares = np.bincount(self.labels, self.values) / sizes
        mixing = np.eye(len(sizes)) if isinstance(shuffler, Identity) else shuffler.mixing(self.labels)
        moved, apart = mixing @ shares - shares, np.abs(shares - self.values.mean())
        noise = self.randomizer.variance(np.column_stack((1.0 - shares, shares)))[:, 1] / sizes
        attacked = self._attack(shuffler).better
        alpha = shuffler.guarantee.alpha
        return FrontierPoint(
            shuffler=shuffler.acting.name,
            asked=asked,
            alpha=alpha,
            told_apart=told_apart(alpha),
            lost=min(1.0, float(np.abs(moved).sum() / apart.sum())),
            error=float(np.sqrt(np.mean(moved**2 + noise))),
            attack=attacked.success,
            interval=attacked.interval,
        )

    def _attack(self, shuffler: Shuffler) -> AttackResult:
        attacker = Likelihood.prepare(
            self.known, self.randomizer, shuffler, targets=self.targets, rng=self.rng, draws=_DRAWS
        )
        return run_attack(
            attacker, self.randomizer, self.values, shuffler, shuffles=_ORDERS, randomizations=_RELEASES, rng=self.rng
        )


@dataclass(frozen=True, eq=False)
class _Neighbours(Knowledge):
    """Knowledge of a simulation's attacker: where people are."""

    where: Places
    labels: Labels
    values: Labels

    def places(self, targets: Labels, *, votes: int, rng: Entropy) -> Labels:
        raise UnsupportedError("nobody votes here")

    def points(self) -> Places:
        spread = self.where.std(axis=0)
        return np.asarray(self.where / np.where(spread > 0.0, spread, 1.0))

    def classes(self) -> Labels:
        return self.labels

    def release(self, randomizer: FrequencyRandomizer, shuffler: Shuffler, rng: Entropy) -> Reports:
        return shuffler.shuffle(randomizer.randomize(self.values, rng), rng)


def told_apart(alpha: float) -> float:
    """Bound on the chance to guess right who of two people of a group sent a report.

    >>> [round(told_apart(alpha), 3) for alpha in (0.0, 1.0, math.inf)]
    [0.5, 0.731, 1.0]
    """
    return 1.0 if math.isinf(alpha) else min(1.0, float(np.nextafter(1.0 / (1.0 + math.exp(-alpha)), 2.0)))


def _judged(point: FrontierPoint, even: FrontierPoint, bare: FrontierPoint) -> FrontierPoint:
    """With a verdict between a uniform shuffle and none."""
    exposed = (point.attack - even.attack) / max(bare.attack - even.attack, 1e-12)
    if point.asked is None:
        verdict = "beside"
    elif 1.0 - point.lost < NOTHING:
        verdict = "buys nothing"
    elif exposed > EVERYTHING:
        verdict = "costs everything"
    else:
        verdict = f"keeps {100.0 * (1.0 - point.lost):.0f}%, exposes {100.0 * max(0.0, exposed):.0f}%"
    if point.asked is not None and point.told_apart > TOLD:
        verdict += ", no promise"
    return FrontierPoint(**{**asdict(point), "verdict": verdict})


def _places(groups: Groups, points: Places | None) -> Places:
    if points is not None:
        return np.asarray(points, dtype=np.float64)
    line = partition_reference_order(groups)[0]
    return np.argsort(line.order).astype(np.float64)[:, None]


def _regions(groups: Groups, where: Places) -> Labels:
    """Disjoint groups where they are few; else halves of halves, each cut across its widest side."""
    if groups.disjoint and 2 <= len(groups) <= MOST_TOWNS and groups.grouped.all():
        return groups.components()
    parts = [np.arange(len(where))]
    while len(parts) < min(REGIONS, len(where) // 8):
        parts = [half for part in parts for half in _halves(part, where)]
    labels = np.empty(len(where), dtype=np.int64)
    for number, part in enumerate(parts):
        labels[part] = number
    return labels


def _halves(part: Labels, where: Places) -> tuple[Labels, Labels]:
    here = where[part]
    side = int(np.ptp(here, axis=0).argmax())
    order = part[np.argsort(here[:, side], kind="stable")]
    return order[: len(order) // 2], order[len(order) // 2 :]


def _one_crowd(groups: Groups) -> bool:
    """True if a shuffle inside each component would shuffle everybody together, or nobody."""
    component = groups.components()
    sizes = np.bincount(component[component >= 0])
    return sizes.size == 0 or int(sizes.max()) == groups.n


def _inside(groups: Groups) -> WithinGroups:
    if groups.disjoint:
        return WithinGroups(groups)
    component = groups.components()
    alone = -1 - np.arange(groups.n)
    return WithinGroups(Groups.from_labels(np.where(component < 0, alone, component)))


# The cost of ranges of a public column: fewer groups to tell apart, and more people to hide among in each.


@dataclass(frozen=True)
class Coarser:
    """Groups of one width of range, each shuffled by itself.

    Parameters
    ----------
    width : float
        0 for the column as it is.
    groups, smallest, alone : int
        Groups, people of the smallest one, and people who are the only one of theirs.
    epsilon, median_epsilon : float
        What the shuffled batch promises to people of the smallest group, and of one of median size, of reports with
        two answers; with more answers it is somewhat more.
    error95 : float
        How far off, with probability 95 %, the share of one of two answers may be in a group of median size.
    """

    width: float
    groups: int
    smallest: int
    alone: int
    epsilon: float
    median_epsilon: float
    error95: float

    def document(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def coarser_groups(labels: pl.Series, widths: Sequence[float], *, epsilon: float, delta: float) -> list[Coarser]:
    """Costs of each width, the column as it is first.

    Parameters
    ----------
    labels : series (n,)
        Numbers, as numbers or as texts; what is no number stays a group of its own.
    widths : floats, above 0
    epsilon, delta : float
        Of one report, by k-ary randomized response with two answers; of the promise after shuffling.

    Raises
    ------
    DataError
        For a column without numbers, and for ranges so narrow that their number overflows.
    """
    krr, text = KRR(k=2, epsilon=epsilon), labels.cast(pl.String)
    wanted = [0.0, *sorted({positive("widths", width) for width in widths})]
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.is_not_null().sum() == 0:
        raise DataError(f"column {labels.name!r}: ranges are of numbers, and it has none.")
    for width in wanted[1:]:
        if not (numbers / width).drop_nulls().is_finite().all():
            raise DataError(f"column {labels.name!r}: ranges of width {width:g} are too narrow for its numbers.")
    found = []
    for width in wanted:
        sizes = (in_ranges(labels, width, Spellings()) if width else text).value_counts(sort=True)["count"].to_list()
        smallest, median = (
            amplify(krr, n=size, delta=delta).epsilon if size > 1 else epsilon
            for size in (sizes[-1], sizes[len(sizes) // 2])
        )
        error = predict_accuracy(krr, n=sizes[len(sizes) // 2]).error95
        found.append(Coarser(width, len(sizes), sizes[-1], sizes.count(1), smallest, median, error))
    return found
