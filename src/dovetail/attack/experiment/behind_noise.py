"""The likelihood attack on a batch that is mixed evenly and holds dummies, or reports of several randomizers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from dovetail.attack.experiment.report_law import ReportLaw
from dovetail.attack.experiment.run_attack import Guesses, People, argmax_random_ties
from dovetail.attack.experiment.who_sent import WORK, compositions
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import UnsupportedError
from dovetail.core.noise import Noise
from dovetail.core.noise import People as Crowd
from dovetail.core.stages import Reports

Rows = NDArray[np.float64]  # (classes, k or kinds)
Codes = NDArray[np.int64]
Rates = NDArray[np.float64]  # (kinds,) or (classes,)

MOST_CELLS = 5_000_000  # numbers of reports that are weighed, over all kinds
_ROUNDS, _STEPS, _CLOSE, _LEARNED = 200, 200, 1e-9, 1e-5
_UNLIKELY = 60.0  # nats
_LEAST_TILT = 1e-9


@mute
@dataclass(frozen=True, eq=False)
class BehindNoise:
    r"""Guesses by Bayes' rule from the counts of a batch, in which the reports of people are among others.

    Person j sends kind y, and it is kept, with probability q_jy = kept sum_v W_j(y | v) theta_jv. People send h
    together; Pr[c | h], which the noise states, is a product over kinds. Summed over all that they can have sent,

    .. math:: \Pr[j \text{ sent } y \mid c] \propto
              q_{jy} \sum_{h} \Pr[\text{the others sent } h - e_y] \prod_u \Pr[c_u \mid h_u]

    exactly, person by person, where that takes at most `who_sent.WORK` steps. Beyond, the number of reports of each
    kind is taken as Poisson with rates r_y = sum_j a_j q_jy whose a_j make everybody send one report: Sinkhorn's
    scaling, with what is expected of a count in place of the count.

    Parameters
    ----------
    law : ReportLaw
    noise : Noise
    people : core.noise.People
    targets : int array (m,)
    shares : float array (n, k), optional
        Everybody's, where they are known. Without, those of everybody together are learned from the batch: one
        histogram tells nothing of classes.

    Raises
    ------
    UnsupportedError
        Where the noise does not say how many reports are people's, and for so many people and kinds that not all
        numbers of reports can be weighed.

    Source
    ------
    docs/theory/bounds-on-attacks.md, attacks behind dummies.
    """

    law: ReportLaw
    noise: Noise
    people: Crowd
    targets: People
    shares: Rows | None = None
    label: ClassVar[str] = "likelihood"
    _row: Codes = field(init=False, repr=False)  # (n,), of people with the same shares and randomizer
    _own: Codes = field(init=False, repr=False)  # (classes,), which randomizer
    _priors: Rows = field(init=False, repr=False)  # (classes, k)
    _many: Codes = field(init=False, repr=False)  # (classes,)
    _laws: NDArray[np.float64] = field(init=False, repr=False)  # (randomizers, k, kinds)

    def __post_init__(self) -> None:
        runs, n, k = self.noise.runs(self.people), self.people.n, self.law.k
        whose = np.zeros(n, dtype=np.int64)
        for number, (_, who) in enumerate(runs):
            whose[who] = number
        self._refuse(k)  # of answers these are the kinds
        held = np.empty((n, 0)) if self.shares is None else self.shares
        rows, row, many = np.unique(np.column_stack((whose, held)), axis=0, return_inverse=True, return_counts=True)
        priors = np.full((len(rows), k), 1.0 / k) if self.shares is None else rows[:, 1:]
        laws = np.array([self.law.symbols(randomizer) for randomizer, _ in runs])
        kept = self.noise.kept
        if kept < 1.0:  # what is dropped is a kind of its own, of which any number may be
            laws = np.concatenate((kept * laws, np.full((*laws.shape[:2], 1), 1.0 - kept)), axis=2)
        self._refuse(laws.shape[2])
        for name, value in (
            ("_row", row.ravel()), ("_own", rows[:, 0].astype(np.int64)), ("_priors", priors),
            ("_many", many), ("_laws", laws),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def _refuse(self, kinds: int) -> None:
        if (self.people.n + self.law.k) * kinds > MOST_CELLS:
            raise UnsupportedError(
                f"behind {self.noise.label} at most {MOST_CELLS:,} numbers of reports are weighed, here "
                f"{self.people.n:,} of each of {kinds:,} kinds"
            )

    def guess(self, reports: Reports, rng: Entropy) -> Guesses:
        """The likeliest value of each target."""
        scores = self.law.guessed(self.posterior(reports))
        return argmax_random_ties(scores / scores.max(axis=1, keepdims=True), entropy_or_system(rng))

    def remark(self, reports: Reports, rng: Entropy) -> str:
        """How the batch was read."""
        what = f"{self.law.remark}; " if self.law.remark else ""
        return f"{what}it weighed how many of each count are reports of people, by the law of {self.noise.label}"

    def posterior(self, reports: Reports) -> Rows:
        """Probability (m, k) of each value of each target, given the batch."""
        weights = self._weights(np.bincount(reports, minlength=self._kinds))
        counted = _Counted.of(weights[: self._kinds])
        priors = self._priors if self.shares is not None else self._learned(counted)
        chances = self._chances(priors)
        told = self._told(chances, weights, counted)
        scores = priors * self._explained(told, chances)
        return np.asarray((scores / scores.sum(axis=1, keepdims=True))[self._row[self.targets]])

    @property
    def _kinds(self) -> int:
        """Kinds of reports that a batch can hold."""
        return int(self._laws.shape[2]) - (self.noise.kept < 1.0)

    def _weights(self, counts: Codes) -> Rows:
        """Log of how likely the count of each kind is (kinds, n + 1), by how many reports of it people have sent."""
        sent = np.arange(self.people.n + 1)
        found = np.zeros((self._laws.shape[2], sent.size))
        found[: self._kinds] = self.noise.explained(counts, np.tile(sent[:, None], (1, self._kinds))).T
        return found

    def _chances(self, priors: Rows) -> Rows:
        """Law (classes, kinds) of the report of a person of each class."""
        found = np.zeros((len(priors), self._laws.shape[2]))
        for number, law in enumerate(self._laws):
            found[self._own == number] = priors[self._own == number] @ law
        return found

    def _explained(self, told: Rows, chances: Rows) -> Rows:
        """How much likelier each value (classes, k) is than before."""
        ratio = np.divide(told, chances, out=np.zeros_like(told), where=chances > 0.0)
        found = np.zeros((len(told), self._laws.shape[1]))
        for number, law in enumerate(self._laws):
            found[self._own == number] = ratio[self._own == number] @ law.T
        return found

    def _learned(self, counted: _Counted) -> Rows:
        """Everybody's shares, the same in each class, by EM from equal ones."""
        shares, person = self._priors[:1], np.ones(len(self._priors))
        for _ in range(_STEPS):
            priors = np.tile(shares, (len(self._priors), 1))
            chances = self._chances(priors)
            told, person = self._scaled(chances, counted, person, rounds=2)
            grown = self._many @ (priors * self._explained(told, chances)) + shares[0]
            found = self.law.smoothed((grown / grown.sum())[None, :])
            if np.abs(found - shares).max() < _LEARNED:
                break
            shares = found
        return np.tile(shares, (len(self._priors), 1))

    def _told(self, chances: Rows, weights: Rows, counted: _Counted) -> Rows:
        """Probability (classes, kinds) that a person of each class sent each kind."""
        n = self.people.n
        most = np.array([np.flatnonzero(row > -np.inf).max(initial=0) for row in weights])
        line = np.argsort(most, kind="stable")  # the one of the most is implied by the others
        if n * most.size * np.prod(most[line[:-1]] + 1.0) > WORK:
            return self._scaled(chances, counted, np.ones(len(chances)), rounds=_ROUNDS)[0]
        rates = self._many @ chances
        tilt = np.maximum(self._tilt(rates, counted), _LEAST_TILT)  # factors of kinds, as in `who_sent`
        held = np.indices((most[line[:-1]] + 1).tolist()).reshape(most.size - 1, -1, order="F")
        rest = n - held.sum(axis=0)
        logs = np.where((rest >= 0) & (rest <= most[line[-1]]), 0.0, -np.inf)
        for kind, sent in zip(line, (*held, np.clip(rest, 0, n)), strict=True):
            logs = logs + weights[kind][sent] - sent * np.log(tilt[kind])
        people = np.repeat(np.arange(len(chances)), self._many)
        sent, _ = compositions((chances * tilt)[people][:, line], most[line], np.exp(logs - logs.max()))
        told = np.zeros_like(chances)
        told[:, line] = sent[np.searchsorted(people, np.arange(len(chances)))]
        return told

    def _scaled(self, chances: Rows, counted: _Counted, person: Rates, *, rounds: int) -> tuple[Rows, Rates]:
        """The same where numbers of reports are taken as Poisson, and the factor of each class; from given ones."""
        for _ in range(rounds):
            tilt = self._tilt((self._many * person) @ chances, counted)
            before, person = person, 1.0 / (chances @ tilt)
            if np.abs(before / person - 1.0).max() < _CLOSE:
                break
        return person[:, None] * chances * tilt, person

    def _tilt(self, rates: Rates, counted: _Counted) -> Rates:
        """How many more reports of each kind (kinds,) are expected of these rates with the batch than without."""
        found = np.ones(len(rates))  # of what is dropped the batch says nothing
        kinds = np.flatnonzero(rates[: self._kinds] > 0.0)
        found[: self._kinds] = 0.0
        found[kinds] = counted.expected(rates[: self._kinds])[kinds] / rates[kinds]
        return found


@mute
@dataclass(frozen=True, eq=False)
class _Counted:
    """Numbers of people's reports of each kind, from `first` (kinds,) on, with logs (kinds, width) of their weights.

    Weights are Pr[c | h] / h!; numbers that are less likely than the likeliest by `_UNLIKELY` nats are left out.
    """

    first: Codes
    logs: Rows

    @classmethod
    def of(cls, weights: Rows) -> Self:
        kept = weights > weights.max(axis=1, keepdims=True) - _UNLIKELY
        first = kept.argmax(axis=1)
        width = int((kept.shape[1] - kept[:, ::-1].argmax(axis=1) - first).max())
        sent = np.minimum(first[:, None] + np.arange(width), kept.shape[1] - 1)
        logs = np.take_along_axis(weights, sent, axis=1) - gammaln(sent + 1.0)
        logs[first[:, None] + np.arange(width) >= kept.shape[1]] = -np.inf
        return cls(first, logs)

    def expected(self, rates: Rates) -> Rates:
        """Mean number of reports of each kind (kinds,), of Poisson ones with these rates."""
        sent = self.first[:, None] + np.arange(self.logs.shape[1])
        with np.errstate(divide="ignore"):
            logs = self.logs + xlogy(sent, rates[:, None])
        chance = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray((chance * sent).sum(axis=1) / chance.sum(axis=1))
