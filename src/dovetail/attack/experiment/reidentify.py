"""The re-identification experiment: recall and precision over repeated releases, tested against chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from dovetail.core.checks import floats, refuse, whole
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.core.progress import Tick, no_tick
from dovetail.core.stages import NumericRandomizer, Shuffler

# The records that a re-identification attack sees: rounds as they are released, and who sent what, for scoring.


Devices = NDArray[np.int64]  # (m,), 0..n-1


@mute
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

    Raises
    ------
    DataError
        For columns, senders or batches of other lengths or types.

    Examples
    --------
    >>> records = Records.of_rounds([[1.0, 5.0], [2.0, 6.0]])
    >>> sorted(records.features), records.devices.tolist()
    (['value'], [0, 1, 0, 1])
    """

    features: Mapping[str, NDArray[np.float64]]
    devices: Devices
    batches: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not self.features:
            raise DataError("`features` must name at least one column.")
        columns = {name: floats(name, column) for name, column in self.features.items()}
        devices, batches = np.asarray(self.devices), np.asarray(self.batches)
        for name, column in {**columns, "devices": devices, "batches": batches}.items():
            if column.shape != devices.shape or column.ndim != 1 or not column.size:
                raise DataError(f"`{name}` must be one number for each record, got shape {column.shape}.")
        if devices.dtype.kind not in "iu" or devices.min() < 0:
            raise DataError(f"`devices` must be whole numbers 0..n-1, got {devices.dtype}.")
        if batches.dtype.kind not in "iu":
            raise DataError(f"`batches` must be whole numbers, got {batches.dtype}.")
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
        table = _rounds(values)
        rounds, n = table.shape
        senders = np.tile(np.arange(n), (rounds, 1)) if devices is None else np.asarray(devices)
        if senders.shape != table.shape:
            raise DataError(f"`devices` must have the shape of `values`, {table.shape}, got {senders.shape}.")
        features: dict[str, Any] = {"value": table.ravel()}
        if time_of_day is not None:
            times = floats("time_of_day", time_of_day)
            if times.shape != (rounds,):
                raise DataError(f"`time_of_day` must be one number for each round, got shape {times.shape}.")
            features["time_of_day"] = np.repeat(times, n)
        if place:
            features["place"] = np.tile(np.arange(n, dtype=np.float64), rounds)
        return cls(features, senders.ravel(), np.repeat(np.arange(rounds), n))

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Features side by side (m, features)."""
        return np.column_stack(list(self.features.values()))


def release_rounds(
    values: ArrayLike, shuffler: Shuffler, *, randomizer: NumericRandomizer | None = None, rng: Entropy | None = None
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

    Raises
    ------
    DataError
        For values that are not a row for each round, with a column for each person of the shuffler.

    Examples
    --------
    >>> from dovetail.shuffle.identity import Identity
    >>> reports, devices = release_rounds([[1.0, 5.0], [2.0, 6.0]], Identity(2))
    >>> reports.tolist(), devices.tolist()
    ([[1.0, 5.0], [2.0, 6.0]], [[0, 1], [0, 1]])
    """
    rng = entropy_or_system(rng)
    table = _rounds(values)
    if table.shape[1] != shuffler.n:
        raise DataError(f"`values` must have {shuffler.n:,} devices, as the shuffler, got {table.shape[1]:,}.")
    orders = np.array([shuffler.permutation(rng) for _ in table])
    noisy = table if randomizer is None else randomizer.decode(randomizer.randomize(table.ravel(), rng))
    return np.take_along_axis(noisy.reshape(table.shape), orders, axis=1), orders


def _rounds(values: ArrayLike) -> NDArray[np.float64]:
    """`values` (rounds, n) as finite floats, at least one of each."""
    table = floats("values", values)
    if table.ndim != 2 or not table.size:
        raise DataError(f"`values` must have a row for each round, got shape {table.shape}.")
    return table


# A random forest that has learned how devices behave and guesses who sent each report.


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

    Raises
    ------
    MissingExtraError
        Without scikit-learn.
    ParameterError
        For records with other features than those that it learned from.

    Notes
    -----
    Needs scikit-learn. Trees grow to the end: memory is about 100 bytes per training record and tree.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> speeds = np.repeat([[10.0, 20.0, 30.0]], 20, axis=0)  # 20 rounds of three devices
    >>> history = Records.of_rounds(speeds)
    >>> ForestAttack.learn(history, trees=5, rng=simulation(1)).guess(history)[:3].tolist()
    [0, 1, 2]

    Source
    ------
    Wang, Tao, Zou, RASE, section V-A; Breiman (2001), Random Forests, Machine Learning 45.
    """

    features: tuple[str, ...]
    n: int
    forest: Any = field(repr=False)

    @classmethod
    def learn(cls, history: Records, *, trees: int = 100, rng: Entropy | None = None) -> ForestAttack:
        """Train on records whose senders are known; `rng` seeds the forest."""
        rng = entropy_or_system(rng)
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


Release = Callable[[Entropy], Records]
Shares = NDArray[np.float64]  # (n,)

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class ReidentificationResult:
    """Recall and precision of the attacker, beside what it would reach without looking.

    Parameters
    ----------
    recall, precision : float
        Means over devices and trials. Recall: share of a device's records that are recognized. Precision: share of
        the guesses that name a device and are right; 0 where it is never named.
    recall_interval, precision_interval : (float, float)
        At `level`, over repeated releases of the same values (Student t over trials).
    chance : float
        One over the number of devices with records: the most that the recall of a guess which does not look can be.
    p_value : float
        Share of relabellings of the devices that have a recall at least as large, counting the observed one: small
        when the history tells who is who.
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


def reidentify(
    attack: ForestAttack,
    release: Release,
    *,
    trials: int,
    rng: Entropy | None = None,
    permutations: int = 999,
    progress: Tick = no_tick,
) -> ReidentificationResult:
    r"""Release and attack `trials` times.

    .. math:: \mathrm{recall}_d = \frac{TP_d}{TP_d + FN_d}, \qquad \mathrm{precision}_d = \frac{TP_d}{TP_d + FP_d}

    Parameters
    ----------
    release : function of an entropy
        Draws the records of one sanitized release, such as `Records.of_rounds(*release_rounds(..))`.
    trials : int, at least 2
    permutations : int, at least 1
        Relabellings of the test against chance; the smallest p-value is 1 / (permutations + 1).

    Raises
    ------
    DataError
        For releases of devices that the attacker does not know.
    ParameterError
        For fewer than two trials.

    Notes
    -----
    The test is a permutation test whose null is that the devices are exchangeable: the history tells nothing about
    which of them is which. A relabelling holds for all rounds and trials at once, because a device goes on as it
    began and every trial releases the same values. So k devices have k! relabellings, and with fewer than five of
    them, or with one device alone that is recognized, the p-value cannot be small.

    Examples
    --------
    >>> from dovetail.attack.experiment.reidentify import Records
    >>> from dovetail.core.entropy import simulation
    >>> speeds = np.repeat([[10.0, 20.0, 30.0]], 20, axis=0)
    >>> records = Records.of_rounds(speeds)
    >>> attack = ForestAttack.learn(records, trees=5, rng=simulation(1))
    >>> reidentify(attack, lambda rng: records, trials=2, rng=simulation(2), permutations=9).recall
    1.0

    Source
    ------
    Wang, Tao, Zou, RASE, section V-B, Eq. (18). Intervals and the test against chance are ours.
    """
    rng = entropy_or_system(rng)
    whole("trials", trials, least=2)
    whole("permutations", permutations, least=1)
    scores, guesses, devices = _attack_releases(attack, release, trials, rng, progress)
    sent = np.bincount(devices, minlength=attack.n)
    by_device, reach_by_device = _mean_and_reach(scores)
    means, reach = _mean_and_reach(scores[:, :, sent > 0].mean(axis=2))
    intervals = [(max(0.0, float(m - r)), min(1.0, float(m + r))) for m, r in zip(means, reach, strict=True)]
    return ReidentificationResult(
        recall=float(means[0]),
        precision=float(means[1]),
        recall_interval=intervals[0],
        precision_interval=intervals[1],
        chance=1.0 / np.count_nonzero(sent),
        p_value=_permutation_p_value(guesses, devices, permutations, rng),
        recall_by_device=by_device[0],
        precision_by_device=by_device[1],
        recall_reach_by_device=reach_by_device[0],
        precision_reach_by_device=reach_by_device[1],
        features=attack.features,
        records=int(sent.sum()),
        trials=trials,
    )


def _attack_releases(
    attack: ForestAttack, release: Release, trials: int, rng: Entropy, progress: Tick
) -> tuple[NDArray[np.float64], Devices, Devices]:
    """Recall and precision (trials, 2, n) of each release; guesses and senders of all their records."""
    scores = np.empty((trials, 2, attack.n))
    pairs = []
    for trial in range(trials):
        records = release(rng)
        if int(records.devices.max()) >= attack.n:
            raise DataError(f"`release` must hold devices 0..{attack.n - 1}, which the attacker knows.")
        guesses = attack.guess(records)
        scores[trial] = recall_precision(guesses, records.devices, n=attack.n)
        pairs.append((guesses, records.devices))
        progress(trial + 1, trials)
    guesses, devices = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return scores, guesses, devices


def recall_precision(guesses: Devices, devices: Devices, *, n: int) -> NDArray[np.float64]:
    """Recall and precision of each device (2, n); 0 where there is nothing to divide by.

    >>> recall_precision(np.array([0, 0, 1]), np.array([0, 1, 1]), n=3).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0]]
    """
    right = np.bincount(devices[guesses == devices], minlength=n)
    sent, named = np.bincount(devices, minlength=n), np.bincount(guesses, minlength=n)
    return np.stack((right / np.maximum(sent, 1), right / np.maximum(named, 1)))


def _mean_and_reach(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over trials and half width of its interval at LEVEL."""
    trials = len(scores)
    spread = scores.std(axis=0, ddof=1) / trials**0.5
    return scores.mean(axis=0), float(stdtrit(trials - 1, 0.5 + LEVEL / 2)) * spread


def _permutation_p_value(guesses: Devices, devices: Devices, permutations: int, rng: Entropy) -> float:
    """Share of relabellings of the devices, the observed one among them, whose recall is at least the observed."""
    names, who, sent = np.unique(devices, return_inverse=True, return_counts=True)
    weights = 1.0 / sent[who]

    def reached(labels: Devices) -> float:
        return float(weights[guesses == labels[who]].sum())

    least = reached(names) * (1.0 - 1e-9)  # ties count, whatever the sums round to
    as_large = [reached(names[rng.permutation(names.size)]) >= least for _ in range(permutations)]
    return (1 + sum(as_large)) / (permutations + 1)
