"""Local estimates: what values are like at each place, from reports in the order in which they were released.

The place is public: the hospital, the age, the position of the person who owned this row before the shuffle. The
more a shuffle has moved, the less the report in a row has to do with its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import Channel
from dovetail.core.checks import floats, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.extras import require
from dovetail.estimate.frequency import project_shares
from dovetail.randomize.sampling.domain import symbols
from dovetail.shuffle.fitting.groups import Groups

Shares = NDArray[np.float64]  # (m, k), rows sum to 1
Points = NDArray[np.float64]  # (n, d)


class LocalEstimator(ABC):
    """Reads the law of a symbol off at each of m public places; made from public data, before any report is seen.

    Laws: rows of `shares` are at least 0 and sum to 1; equal reports and equal `rng` give equal shares.

    Parameters
    ----------
    k : int, at least 2
        Symbols are coded 0..k-1.

    Raises
    ------
    DataError
        From `shares`, for reports that are no symbols, and for another number of them.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> near = GroupShares(Groups.from_labels(["a", "a", "b", "b"]), k=2)
    >>> isinstance(near, LocalEstimator), near.shares([0, 1, 1, 1], simulation(1)).sum(axis=1).tolist()
    (True, [1.0, 1.0, 1.0, 1.0])
    """

    k: int

    @final
    def shares(self, reports: ArrayLike, rng: Entropy | None = None) -> Shares:
        """Law of the symbol at each place (m, k), from reports (n,) in their released order."""
        return self._shares(reports, entropy_or_system(rng))

    @abstractmethod
    def _shares(self, reports: ArrayLike, rng: Entropy) -> Shares:
        """`shares` with the randomness that it is to use."""


@final
@dataclass(frozen=True, eq=False)
class GroupShares(LocalEstimator):
    """Counts the reports at the places of each person's group; the noisier, the smaller the group.

    Of the values instead of the reports this is the truth E(t_i) against which the paper measures.

    Parameters
    ----------
    groups : Groups
        Of each person, who counts as near: the group that was made for them. People without one count alone.
    k : int, at least 2

    Raises
    ------
    DataError
        From `shares`, for reports that are no symbols, and for another number of them.

    Notes
    -----
    Unbiased for the reports. Needs no randomness: `rng` is not touched. O(k) passes over the members of all groups.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> near = GroupShares(Groups.from_labels(["a", "b", "a", "c"]), k=2)
    >>> near.shares([0, 1, 1, 1], simulation(1)).tolist()
    [[0.5, 0.5], [0.0, 1.0], [0.5, 0.5], [0.0, 1.0]]

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 5 (E(t_i)).
    """

    groups: Groups
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2))
        several = int((self.groups.owners.transpose(self.groups.n).sizes > 1).sum())
        if several:
            raise DataError(f"`groups` must be at most one for each person, got several for {several:,} people.")

    def _shares(self, reports: ArrayLike, rng: Entropy) -> Shares:
        batch = _batch(reports, self.k, self.groups.n)
        rows, mine = self.groups.rows, self.groups.owners.transpose(self.groups.n)
        result = np.eye(self.k)[batch]
        for symbol in range(self.k):
            upto = np.concatenate(([0], np.cumsum(batch[rows.people] == symbol)))
            share = (upto[rows.stops] - upto[rows.starts]) / rows.sizes
            result[mine.sizes > 0, symbol] = share[mine.people]
        return np.asarray(result)


@final
@dataclass(frozen=True, eq=False)
class CalibratedTrees(LocalEstimator):
    r"""Gradient-boosted trees of the place, calibrated by Platt scaling.

    .. math:: \Pr[z = c \mid t] \propto \frac{1}{1 + \exp(a_c f_c(t) + b_c)}

    with scores f_c of trees; a_c, b_c are fitted to scores that trees of the other half of the rows give.

    Parameters
    ----------
    places : float array (n, d)
        Public; where the reports are.
    k : int, at least 2
    at : float array (m, d), optional
        Where the law is wanted; `places` if absent.
    rounds : int, at least 1
        Rounds of boosting, with a step of 0.2 and trees of 8 leaves.
    leaf : int, at least 1
        Reports in a leaf, at least.

    Raises
    ------
    MissingExtraError
        Without scikit-learn.
    DataError
        When a symbol occurs once: it cannot be in both halves.

    Notes
    -----
    One thread: the trees are small, and waiting for threads takes longer than they save. Three fits.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> trees = CalibratedTrees(np.arange(40.0)[:, None], k=2, leaf=5)
    >>> law = trees.shares([0] * 20 + [1] * 20, simulation(1))
    >>> law.shape, bool(law[0, 0] > 0.5), bool(law[-1, 1] > 0.5)
    ((40, 2), True, True)

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 5 (Cal), after
    Friedman (2001), Greedy Function Approximation, and Platt (1999), Probabilistic Outputs. The paper names no
    settings; these are ours.
    """

    places: Points = field(repr=False)
    k: int
    at: Points | None = field(default=None, repr=False)
    rounds: int = 30
    leaf: int = 50

    def __post_init__(self) -> None:
        places = _points("places", self.places)
        at = places if self.at is None else _points("at", self.at)
        if at.shape[1] != places.shape[1]:
            raise DataError(f"`at` must have {places.shape[1]} columns, as `places`, got {at.shape[1]}.")
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "at", at)
        for name, least in (("k", 2), ("rounds", 1), ("leaf", 1)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least=least))

    def _shares(self, reports: ArrayLike, rng: Entropy) -> Shares:
        batch = _batch(reports, self.k, len(self.places))
        seen, counts = np.unique(batch, return_counts=True)
        if counts.min() < 2:
            raise DataError(
                f"`reports` must hold each symbol twice or never, got symbol {seen[counts.argmin()]} once; merge "
                "rare symbols, or use GroupShares."
            )
        result = np.zeros((len(self.at), self.k))  # type: ignore[arg-type]
        result[:, seen] = 1.0 if seen.size == 1 else self._class_probabilities(batch, rng)
        return np.asarray(result / result.sum(axis=1, keepdims=True))

    def _class_probabilities(self, batch: NDArray[np.int64], rng: Entropy) -> Shares:
        ensemble, calibration, selection = (
            require(f"sklearn.{part}", extra="studies") for part in ("ensemble", "calibration", "model_selection")
        )
        seeds = rng.below(1 << 31, 2).tolist()
        trees = ensemble.HistGradientBoostingClassifier(
            max_iter=self.rounds,
            learning_rate=0.2,
            max_leaf_nodes=8,
            min_samples_leaf=self.leaf,
            early_stopping=False,
            random_state=seeds[0],
        )
        halves = selection.StratifiedKFold(2, shuffle=True, random_state=seeds[1])
        model = calibration.CalibratedClassifierCV(trees, method="sigmoid", cv=halves, ensemble=False)
        with require("threadpoolctl", extra="studies").threadpool_limits(1):
            return np.asarray(model.fit(self.places, batch).predict_proba(self.at))


@final
@dataclass(frozen=True, eq=False)
class DebiasedEstimator(LocalEstimator):
    r"""Another estimator's law of the reports, taken back through the randomizer's channel to a law of the values.

    .. math:: \hat p(t) = \text{nearest law to } \hat q(t)\, W^{-1}

    `channel.invert` alone is linear, and unbiased wherever the other estimator is unbiased for the reports. The
    nearest law is biased and never further from the truth. The paper reports what it learns about the noisy values;
    this is what an analyst who knows the channel does with it.

    Parameters
    ----------
    local : LocalEstimator
        Of the reports.
    channel : Channel
        The law of a report given the value.

    Raises
    ------
    DataError
        From `shares`, for reports that the channel never makes.

    Examples
    --------
    >>> from dovetail.core.channel import KRRChannel
    >>> from dovetail.core.entropy import simulation
    >>> local = GroupShares(Groups.from_labels(["a", "a", "a", "a"]), k=2)
    >>> DebiasedEstimator(local, KRRChannel.of(2, 0.75)).shares([0, 0, 0, 1], simulation(1))[0].round(9).tolist()
    [1.0, 0.0]
    """

    local: LocalEstimator
    channel: Channel = field(repr=False)

    def __post_init__(self) -> None:
        if self.channel.shape[1] != self.local.k:
            raise DataError(f"`channel` must have {self.local.k} outputs, got {self.channel.shape[1]}.")

    @property
    def k(self) -> int:  # type: ignore[override]
        return self.channel.shape[0]

    def _shares(self, reports: ArrayLike, rng: Entropy) -> Shares:
        return project_shares(self.channel.invert(self.local.shares(reports, rng)))


def total_variation(one: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    r"""Total variation distance (m,) of laws in rows (m, k).

    .. math:: \mathrm{TV}(p, q) = \tfrac12 \sum_c |p_c - q_c|

    >>> total_variation([[0.5, 0.5]], [[1.0, 0.0]]).tolist()
    [0.5]
    """
    p = _check_distributions("one", one)
    q = _check_distributions("other", other, shape=p.shape)
    return np.asarray(0.5 * np.abs(p - q).sum(axis=1))


def local_error(shares: ArrayLike, truth: ArrayLike) -> float:
    r"""Error of local estimates in units of the uniform guess: 0 is perfect, 1 is no better.

    .. math:: \lambda = \frac{\sum_i \mathrm{TV}(E(t_i), \hat p(t_i))}{\sum_i \mathrm{TV}(E(t_i), (1/k, .., 1/k))}

    Parameters
    ----------
    shares, truth : float arrays (m, k)
        Laws in rows; the truth is `GroupShares` of the values within the attacker's radius.

    Raises
    ------
    UnsupportedError
        When the truth is uniform everywhere: no guess can be better.

    Examples
    --------
    >>> local_error([[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.25, 0.75]])
    1.0

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 5: lambda(r), the
    average error normalized by the error of the uniform guess, read as a ratio of averages.
    """
    laws = _check_distributions("truth", truth)
    guess = total_variation(np.full_like(laws, 1.0 / laws.shape[1]), laws).sum()
    if guess == 0.0:
        raise UnsupportedError("`truth` is uniform at every place: the uniform guess is right, and lambda undefined.")
    return float(total_variation(_check_distributions("shares", shares, shape=laws.shape), laws).sum() / guess)


def hit_rate(shares: ArrayLike, values: ArrayLike) -> float:
    """Share of places where the likeliest symbol is the value; ties go to the first symbol.

    >>> hit_rate([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    0.5

    Raises
    ------
    DataError
        For shares and values that do not go together.
    """
    laws = _check_distributions("shares", shares)
    return float((laws.argmax(axis=1) == _batch(values, laws.shape[1], len(laws), name="values")).mean())


def _batch(reports: ArrayLike, k: int, n: int, *, name: str = "reports") -> NDArray[np.int64]:
    batch = symbols(reports, k, name=name)
    if batch.shape != (n,):
        raise DataError(f"`{name}` must be one symbol for each of {n:,} places, got {batch.size:,}.")
    return batch


def _points(name: str, points: ArrayLike) -> Points:
    given = np.asarray(points, dtype=np.float64)
    if given.ndim != 2 or not given.size or not np.isfinite(given).all():
        raise DataError(f"`{name}` must be finite numbers with a row for each place (n, d), got shape {given.shape}.")
    return given


def _check_distributions(name: str, laws: ArrayLike, *, shape: tuple[int, ...] | None = None) -> Shares:
    given = floats(name, laws)
    if given.ndim != 2 or not given.size or not (np.abs(given.sum(axis=1) - 1.0) <= 1e-9).all():
        raise DataError(f"`{name}` must be laws in rows (m, k) that sum to 1, got shape {given.shape}.")
    if shape is not None and given.shape != shape:
        raise DataError(f"`{name}` must have the shape {shape}, got {given.shape}.")
    return given
