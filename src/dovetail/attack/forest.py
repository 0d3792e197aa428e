"""The re-identification attack: a random forest that knows how devices behave guesses who sent each report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from dovetail.core.checks import refuse, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.core.stages import NumericRandomizer, Shuffler
from dovetail.shuffle.inside import uniform_inside

Features = Mapping[str, ArrayLike]  # name -> number of each record (m,)
Devices = NDArray[np.int64]  # (m,), 0..n-1
Shares = NDArray[np.float64]  # (n,)

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Records:
    """Reports as an attacker gets them: one record for each, and who sent it, for scoring.

    Parameters
    ----------
    features : name -> float array (m,)
        All that the attacker looks at.
    devices : int array (m,), 0..n-1
        The sender.
    batches : int array (m,)
        The batch that holds the record.
    """

    features: Mapping[str, NDArray[np.float64]]
    devices: Devices
    batches: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not self.features:
            raise DataError("`features` must name at least one column.")
        columns = {name: np.asarray(column, dtype=np.float64) for name, column in self.features.items()}
        devices, batches = np.asarray(self.devices), np.asarray(self.batches)
        for name, column in {**columns, "devices": devices, "batches": batches}.items():
            if column.shape != devices.shape or column.ndim != 1 or not column.size or not np.isfinite(column).all():
                raise DataError(f"{name!r} must be one finite number for each record, got shape {column.shape}.")
        if devices.dtype.kind not in "iu" or devices.min() < 0:
            raise DataError(f"`devices` must be whole numbers 0..n-1, got {devices.dtype}.")
        object.__setattr__(self, "features", columns)

    @classmethod
    def of_rounds(
        cls, values: ArrayLike, *, devices: ArrayLike | None = None, time_of_day: ArrayLike | None = None,
        place: bool = False,
    ) -> Records:  # fmt: skip
        """Records of whole rounds: `value`, and on request `time_of_day` and `place`.

        Parameters
        ----------
        values : float array (rounds, n)
            Row by row what was released, in the order of release.
        devices : int array (rounds, n)
            Who sent it; the device of each column if absent: nothing was shuffled.
        time_of_day : float array (rounds,), optional
        place : bool
            Whether the attacker sees the place in the batch. Without it a shuffle cannot make a difference.
        """
        table = np.asarray(values, dtype=np.float64)
        if table.ndim != 2:
            raise DataError(f"`values` must have a row for each round, got shape {table.shape}.")
        rounds, n = table.shape
        seats = np.tile(np.arange(n), rounds)
        features: dict[str, Any] = {"value": table.ravel()}
        if time_of_day is not None:
            features["time_of_day"] = np.repeat(np.asarray(time_of_day, dtype=np.float64), n)
        if place:
            features["place"] = seats.astype(np.float64)
        return cls(features, seats if devices is None else np.ravel(devices), np.repeat(np.arange(rounds), n))

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Features side by side (m, features)."""
        return np.column_stack(list(self.features.values()))


@dataclass(frozen=True, eq=False)
class ForestAttack:
    """An attacker who learned from non-anonymous history which device behaves how.

    Parameters
    ----------
    features : tuple of str
        What it looks at.
    n : int
        Devices that it knows.
    forest : fitted scikit-learn classifier

    Notes
    -----
    Needs scikit-learn. Trees grow to the end: memory is about 100 bytes per training record and tree.

    Source
    ------
    Wang, Tao, Zou, RASE, section V-A; Breiman (2001), Random Forests, Machine Learning 45.
    """

    features: tuple[str, ...]
    n: int
    forest: Any = field(repr=False)

    @classmethod
    def learn(cls, history: Records, *, trees: int = 100, rng: Entropy) -> ForestAttack:
        """Train on records whose senders are known; `rng` seeds the forest."""
        ensemble = require("sklearn.ensemble", extra="attack")
        seed = int(rng.below(1 << 31, 1)[0])
        forest = ensemble.RandomForestClassifier(whole("trees", trees, least=1), random_state=seed)
        forest.fit(history.matrix, history.devices)
        return cls(tuple(history.features), int(history.devices.max()) + 1, forest)

    def guess(self, records: Records) -> Devices:
        """The likeliest sender of each record (m,)."""
        if tuple(records.features) != self.features:
            raise refuse("records", f"records with the features {self.features}", tuple(records.features))
        return np.asarray(self.forest.predict(records.matrix), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ReidentificationResult:
    """What the attacker reached, beside what it would reach without looking.

    Parameters
    ----------
    recall, precision : float
        Means over devices and trials. Recall: share of a device's records that are recognized. Precision: share of
        the guesses that name a device and are right; 0 where it is never named.
    recall_interval, precision_interval : (float, float)
        At `level`, over repeated releases of the same values (Student t over trials).
    chance : float
        Share of the commonest sender: what naming it always reaches.
    p_value : float
        Share of reassignments of senders within batches that make the guesses at least as often right (permutation
        test, counting the observed one): small when the features tell something.
    recall_by_device, precision_by_device : float arrays (n,)
    recall_reach_by_device, precision_reach_by_device : float arrays (n,)
        Half widths of their intervals.
    records : int
        Records attacked, over all trials.
    """

    recall: float
    precision: float
    recall_interval: tuple[float, float]
    precision_interval: tuple[float, float]
    chance: float
    p_value: float
    recall_by_device: Shares
    precision_by_device: Shares
    recall_reach_by_device: Shares
    precision_reach_by_device: Shares
    features: tuple[str, ...]
    records: int
    trials: int
    level: float = LEVEL
    name: str = "re-identification by random forest"


def release_rounds(
    values: ArrayLike, shuffler: Shuffler, *, randomizer: NumericRandomizer | None = None, rng: Entropy
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rounds as they are released, and who sent what, for scoring.

    Parameters
    ----------
    values : float array (rounds, n)
    shuffler : Shuffler
        Draws a new order for each round; `Identity` leaves it.
    randomizer : NumericRandomizer, optional
        Without one the values themselves are released.

    Returns
    -------
    reports : float array (rounds, n), devices : int array (rounds, n)
    """
    table = np.asarray(values, dtype=np.float64)
    orders = np.array([shuffler.permutation(rng) for _ in table]).reshape(table.shape)
    noisy = table if randomizer is None else randomizer.decode(randomizer.randomize(table.ravel(), rng))
    return np.take_along_axis(noisy.reshape(table.shape), orders, axis=1), orders


def reidentify(
    attack: ForestAttack,
    release: Callable[[Entropy], Records],
    *,
    trials: int,
    rng: Entropy,
    permutations: int = 999,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ReidentificationResult:
    r"""Release and attack `trials` times.

    .. math:: \mathrm{recall}_d = \frac{TP_d}{TP_d + FN_d}, \qquad \mathrm{precision}_d = \frac{TP_d}{TP_d + FP_d}

    Parameters
    ----------
    release : function of an entropy
        Draws the records of one sanitized release, such as `Records.of_rounds(*release_rounds(..))`.
    trials : int, at least 2
    permutations : int, at least 1
        Reassignments of the test against chance; the smallest p-value is 1 / (permutations + 1).

    Source
    ------
    Wang, Tao, Zou, RASE, section V-B, Eq. (18). Intervals and the test against chance are ours.
    """
    whole("trials", trials, least=2)
    whole("permutations", permutations, least=1)
    scores = np.empty((trials, 2, attack.n))
    hits = np.zeros(permutations + 1, dtype=np.int64)
    sent = np.zeros(attack.n, dtype=np.int64)
    for trial in range(trials):
        records = release(rng)
        if int(records.devices.max()) >= attack.n:
            raise DataError(f"`release` must hold devices 0..{attack.n - 1}, which the attacker knows.")
        guesses = attack.guess(records)
        scores[trial] = recall_precision(guesses, records.devices, n=attack.n)
        hits += _hits(guesses, records, permutations, rng)
        sent += np.bincount(records.devices, minlength=attack.n)
        progress(trial + 1, trials)
    means, reach = _over_trials(scores)
    overall, wide = _over_trials(scores[:, :, sent > 0].mean(axis=2))
    spans = [(max(0.0, float(m - r)), min(1.0, float(m + r))) for m, r in zip(overall, wide, strict=True)]
    return ReidentificationResult(
        recall=float(overall[0]),
        precision=float(overall[1]),
        recall_interval=spans[0],
        precision_interval=spans[1],
        chance=float(sent.max() / sent.sum()),
        p_value=float((hits >= hits[0]).mean()),
        recall_by_device=means[0],
        precision_by_device=means[1],
        recall_reach_by_device=reach[0],
        precision_reach_by_device=reach[1],
        features=attack.features,
        records=int(sent.sum()),
        trials=trials,
    )


def recall_precision(guesses: Devices, devices: Devices, *, n: int) -> NDArray[np.float64]:
    """Recall and precision of each device (2, n); 0 where there is nothing to divide by.

    >>> recall_precision(np.array([0, 0, 1]), np.array([0, 1, 1]), n=3).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0]]
    """
    right = np.bincount(devices[guesses == devices], minlength=n)
    sent, named = np.bincount(devices, minlength=n), np.bincount(guesses, minlength=n)
    return np.stack((right / np.maximum(sent, 1), right / np.maximum(named, 1)))


def _over_trials(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over trials and half width of its interval at LEVEL."""
    trials = len(scores)
    spread = scores.std(axis=0, ddof=1) / trials**0.5
    return scores.mean(axis=0), float(stdtrit(trials - 1, 0.5 + LEVEL / 2)) * spread


def _hits(guesses: Devices, records: Records, permutations: int, rng: Entropy) -> NDArray[np.int64]:
    """Right guesses, and those under each reassignment of the senders within batches."""
    by = np.argsort(records.batches, kind="stable")
    guesses, devices = guesses[by], records.devices[by]
    starts = np.concatenate(([0], np.cumsum(np.unique(records.batches, return_counts=True)[1])))
    result = np.empty(permutations + 1, dtype=np.int64)
    result[0] = (guesses == devices).sum()
    for row in range(1, permutations + 1):
        result[row] = (guesses == devices[uniform_inside(starts, rng)]).sum()
    return result
