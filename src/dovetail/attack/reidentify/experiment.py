"""The re-identification experiment: recall and precision over repeated releases, tested against chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from dovetail.attack.reidentify.forest import ForestAttack
from dovetail.attack.reidentify.records import Devices, Records
from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError

Progress = Callable[[int, int], None]
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
    progress: Progress = lambda done, total: None,
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
    >>> from dovetail.attack.reidentify.records import Records
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
    attack: ForestAttack, release: Release, trials: int, rng: Entropy, progress: Progress
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
