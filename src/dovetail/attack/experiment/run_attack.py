"""Release and attack again and again, or attack what has been released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.noise import Noise
from dovetail.core.noise import People as Crowd
from dovetail.core.progress import Tick, no_tick
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.randomize.sampling.domain import symbols

# Arrays that attacks take, checked, and the guess with the largest score.


People = NDArray[np.int64]  # (m,), 0..n-1
Guesses = NDArray[np.int64]  # (m,), values 0..k-1


def check_values(values: ArrayLike, k: int, shuffler: Shuffler) -> NDArray[np.int64]:
    """Codes 0..k-1 of the people whom the shuffler was fitted for."""
    held = symbols(values, k)
    if held.size != shuffler.n:
        raise DataError(f"`values` must be {shuffler.n:,} codes, as the shuffler was fitted for, got {held.size:,}.")
    return held


def check_people(name: str, given: ArrayLike, *, n: int) -> People:
    """Indices (m,) of at least one of n people."""
    who = np.asarray(given)
    if who.ndim != 1 or not who.size or who.dtype.kind not in "iu" or who.min() < 0 or who.max() >= n:
        raise DataError(f"`{name}` must be indices (m,) of people 0..{n - 1}, got shape {who.shape} of {who.dtype}.")
    return who.astype(np.int64)


def check_columns(name: str, given: ArrayLike, *, n: int | None = None) -> NDArray[np.float64]:
    """Finite numbers (n, d), one row for each person; a list of numbers is one column."""
    table = np.asarray(given)
    if table.dtype.kind not in "iufb" or not np.isfinite(table).all():
        raise DataError(f"`{name}` must be finite numbers, because distances are taken; got {table.dtype}.")
    table = table.astype(np.float64)[:, None] if table.ndim == 1 else table.astype(np.float64)
    if table.ndim != 2 or not table.size or (n is not None and len(table) != n):
        wanted = "one row for each person" if n is None else f"{n:,} rows, one for each person"
        raise DataError(f"`{name}` must have {wanted}, got shape {np.shape(given)}.")
    return table


def argmax_random_ties(scores: NDArray[np.float64], rng: Entropy) -> Guesses:
    """The column with the largest score of each row; scores within 1e-12 tie, and ties are broken at random."""
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-12
    chosen = (rng.words(len(best)) % best.sum(axis=1).astype(np.uint64)).astype(np.int64)
    return np.asarray((best.cumsum(axis=1) > chosen[:, None]).argmax(axis=1))


# The result of an attack: its success beside the chance level, with an interval.


Shares = NDArray[np.float64]  # (m,)

LEVEL = 0.95
VULNERABLE_AT = 0.9
_ROUNDING = 1e-12  # of a mean over many releases
ATTACK, BLIND_GUESS = "attack", "blind guess"


@dataclass(frozen=True, eq=False)
class AttackResult:
    """Success of an attack, beside what it would reach without the reports.

    Parameters
    ----------
    name : str
        The attack.
    success : float
        Mean success over releases and targets.
    chance : float
        What it would reach without looking at the reports.
    interval : (float, float)
        At `level`, for `success` over repeated releases of this population.
    by_person : float array (targets,)
        Success against each target.
    vulnerable : float
        Share of targets against whom it succeeds in at least `vulnerable_at` of the randomizations of one shuffle,
        mean over shuffles (rho in the paper).
    shuffles, randomizations : int
        Orders drawn, and randomizations released in each of them.
    remark : str
        What the attack says of itself, such as how well it knows the order.

    Raises
    ------
    UnsupportedError
        Nowhere by itself: `run_attack` and `attack_released` refuse what cannot be mounted.

    Examples
    --------
    >>> result = AttackResult.of("guess", np.array([[1.0, 0.5], [0.9, 0.4]]), chance=0.5, randomizations=10)
    >>> result.success, result.chance, result.vulnerable
    (0.7, 0.5, 0.5)
    """

    name: str
    success: float
    chance: float
    interval: tuple[float, float]
    by_person: Shares = field(repr=False)
    vulnerable: float
    shuffles: int
    randomizations: int
    level: float = LEVEL
    vulnerable_at: float = VULNERABLE_AT
    remark: str = ""

    @classmethod
    def of(cls, name: str, rates: NDArray[np.float64], *, chance: float, randomizations: int) -> AttackResult:
        """From the shares of right guesses (shuffles, targets): Student's interval over shuffles."""
        shares = rates.mean(axis=1)
        return cls(
            name,
            success=float(shares.mean()),
            chance=chance,
            interval=_over_shuffles(shares),
            by_person=rates.mean(axis=0),
            vulnerable=float((rates >= VULNERABLE_AT).mean()),
            shuffles=len(rates),
            randomizations=randomizations,
        )

    @property
    def mounted(self) -> str:
        """Name what an attacker who knows its success would mount: this attack, or a guess that needs no reports."""
        return ATTACK if self.success >= self.chance - _ROUNDING else BLIND_GUESS

    @property
    def better(self) -> AttackResult:
        """The better of this attack and the blind guess: nobody does worse than who ignores the reports.

        Examples
        --------
        >>> found = AttackResult.of("vote", np.array([[0.0, 1.0], [0.0, 0.0]]), chance=0.75, randomizations=1)
        >>> found.success, found.better.success, found.better.interval
        (0.25, 0.75, (0.75, 1.0))
        """
        low, high = (max(self.chance, end) for end in self.interval)
        return replace(self, success=max(self.success, self.chance), interval=(low, high))

    def summary(self) -> dict[str, Any]:
        """The numbers of the better of the attack and the blind guess, without those of single people."""
        best = self.better
        numbers = {name: getattr(best, name) for name in self.__dataclass_fields__ if name != "by_person"}
        more = {"targets": len(self.by_person), "mounted": self.mounted, "alone": self.success}
        return numbers | {"interval": list(best.interval)} | more


def _over_shuffles(shares: Shares) -> tuple[float, float]:
    """Student's interval for the mean, cut to [0, 1]; all of it for a single share."""
    if len(shares) == 1:
        return 0.0, 1.0
    reach = float(stdtrit(len(shares) - 1, 0.5 + LEVEL / 2)) * float(shares.std(ddof=1)) / len(shares) ** 0.5
    return (max(0.0, float(shares.mean()) - reach), min(1.0, float(shares.mean()) + reach))


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
        """Name of the result, for people."""
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
    randomizer: FrequencyRandomizer | NumericRandomizer,
    values: ArrayLike,
    shuffler: Shuffler,
    *,
    truth: ArrayLike | None = None,
    noise: Noise | None = None,
    crowd: Crowd | None = None,
    shuffles: int = 10,
    randomizations: int = 50,
    rng: Entropy | None = None,
    progress: Tick = no_tick,
) -> AttackResult:
    """Draw `shuffles` orders; release `randomizations` batches in each of them; attack every one.

    Parameters
    ----------
    attacker : Attacker
        `Likelihood`, `MajorityVote`, or your own.
    values : int array (n,), codes 0..k-1, or numbers
        What is randomized.
    truth : int array (n,), optional
        What is to be guessed of each person, where it is not the values.
    noise, crowd : core.noise.Noise, core.noise.People, optional
        What hides the answers of these people instead of the randomizer alone: dummies, or epsilons by class.
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
    held: Any = np.asarray(values)
    if isinstance(randomizer, FrequencyRandomizer):
        held = check_values(values, randomizer.k, shuffler)
    asked = held if truth is None else np.asarray(truth)
    hers = asked[check_people("targets", attacker.targets, n=held.size)]
    right = np.zeros((shuffles, hers.size))
    for row in range(shuffles):
        order = shuffler.permutation(rng)
        for column in range(randomizations):
            if noise is None or crowd is None:
                reports = randomizer.randomize(held, rng)[order]
            else:
                reports = noise.complete(noise.randomize(held, crowd, rng)[order], rng)
            right[row] += attacker.guess(reports, rng) == hers
            progress(row * randomizations + column + 1, shuffles * randomizations)
    found = AttackResult.of(
        attacker.label, right / randomizations, chance=largest_share(hers), randomizations=randomizations
    )
    remark = getattr(attacker, "remark", None)
    return replace(found, remark="" if remark is None else remark(reports, rng))


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
