"""Release and attack again and again, or attack what has been released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.attack.experiment.arrays import Guesses, People, check_people, check_values
from dovetail.attack.experiment.result import VULNERABLE_AT, AttackResult
from dovetail.core.attack import Attack
from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.stages import FrequencyRandomizer, Reports, Shuffler

Progress = Callable[[int, int], None]


class Attacker(Protocol):
    """Guesses values from a released batch and public data.

    Raises
    ------
    UnsupportedError
        Nowhere by itself; an attack of your own is any object with these two members.

    Examples
    --------
    >>> class Commonest:
    ...     label, targets = "the commonest value", np.arange(3)
    ...     def guess(self, reports, rng):
    ...         return np.full(3, np.bincount(reports).argmax())
    >>> Commonest().guess(np.array([0, 1, 1]), None)
    array([1, 1, 1])
    """

    @property
    def label(self) -> str:
        """What the result is called."""
        ...

    @property
    def targets(self) -> People:
        """The people whose values are guessed."""
        ...

    def guess(self, reports: Reports, rng: Entropy) -> Guesses:
        """The value of each target, from the reports in their released order; `rng` breaks ties."""
        ...


def run_attack(
    attacker: Attacker,
    randomizer: FrequencyRandomizer,
    values: ArrayLike,
    shuffler: Shuffler,
    *,
    shuffles: int = 10,
    randomizations: int = 50,
    rng: Entropy | None = None,
    progress: Progress = lambda done, total: None,
) -> AttackResult:
    """Draw `shuffles` orders; release `randomizations` batches in each of them; attack every one.

    Parameters
    ----------
    attacker : Attacker
        `MajorityVote`, `Correlation`, `DeFinetti`, or your own.
    values : int array (n,), codes 0..k-1
        The truth.
    shuffles : int, at least 2
    randomizations : int, at least 1

    Returns
    -------
    AttackResult
        Its `chance` is the share of targets that hold the commonest value among them.

    Raises
    ------
    DataError
        For values that are not codes of the randomizer, one for each person of the shuffler.

    Examples
    --------
    >>> from dovetail.attack.majority import MajorityVote
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> from dovetail.shuffle.identity import Identity
    >>> krr, values = KRR(k=2, epsilon=2.0), np.array([0, 1] * 50)
    >>> own = MajorityVote(krr, np.arange(100), np.arange(100)[:, None])  # her own report alone
    >>> found = run_attack(own, krr, values, Identity(100), shuffles=2, randomizations=20, rng=simulation(1))
    >>> found.success > 0.85, found.chance
    (True, 0.5)

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 5: one order for
    50 randomizations, ten times.
    """
    rng = entropy_or_system(rng)
    whole("shuffles", shuffles, least=2)
    whole("randomizations", randomizations, least=1)
    held = check_values(values, randomizer.k, shuffler)
    truth = held[check_people("targets", attacker.targets, n=held.size)]
    right = np.zeros((shuffles, truth.size))
    for row in range(shuffles):
        order = shuffler.permutation(rng)
        for column in range(randomizations):
            reports = randomizer.randomize(held, rng)[order]
            right[row] += attacker.guess(reports, rng) == truth
            progress(row * randomizations + column + 1, shuffles * randomizations)
    found = AttackResult.of(
        attacker.label, right / randomizations, chance=largest_share(truth), randomizations=randomizations
    )
    return replace(found, remark=attacker.remark(reports, rng) if isinstance(attacker, Attack) else "")


def attack_released(
    attacker: Attacker, values: ArrayLike, batches: Sequence[Reports], *, rng: Entropy | None = None
) -> AttackResult:
    """Attack batches that have been released, each in an order of its own.

    Parameters
    ----------
    attacker : Attacker
    values : int array (n,)
        The truth, for scoring alone; at the places of the batches.
    batches : sequence of reports, at least one

    Returns
    -------
    AttackResult
        `vulnerable` is the share of targets guessed right in at least `vulnerable_at` of the batches. One batch tells
        nothing about others: the interval is then [0, 1].

    Raises
    ------
    DataError
        For targets that are not people among the values.

    Examples
    --------
    >>> from dovetail.attack.majority import MajorityVote
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> krr, values = KRR(k=2, epsilon=8.0), np.array([0, 1] * 50)
    >>> own = MajorityVote(krr, np.arange(100), np.arange(100)[:, None])
    >>> attack_released(own, values, [krr.randomize(values, rng=simulation(1))]).success > 0.9
    True
    """
    rng = entropy_or_system(rng)
    whole("batches", len(batches), least=1)
    truth = np.asarray(values)[check_people("targets", attacker.targets, n=np.size(values))]
    right = np.array([attacker.guess(batch, rng) == truth for batch in batches], dtype=np.float64)
    found = AttackResult.of(attacker.label, right, chance=largest_share(truth), randomizations=1)
    return replace(found, vulnerable=float((found.by_person >= VULNERABLE_AT).mean()))


def largest_share(values: NDArray[np.int64]) -> float:
    """The share of the commonest value: what naming it for everybody reaches."""
    return float(np.bincount(values).max() / values.size)
