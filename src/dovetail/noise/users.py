"""Noise of people together: each sends a dummy by chance, and everybody hides among those of the honest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from dovetail.account.dummies import user_dummies_guarantee
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate, Tally, sum_reach
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import People, Weights
from dovetail.core.special import binomial_law
from dovetail.core.stages import Labels, Reports, Shuffler
from dovetail.estimate.dummies import shares_of_people
from dovetail.leak.linkage import Linkage, linkage_bound
from dovetail.noise.shuffler import DummyNoise
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers
from dovetail.shuffle.sampling.dummies import UserDummies


@final
@dataclass(frozen=True)
class UserNoise(DummyNoise):
    """People send dummies beside their open answers; the promise counts on the honest ones.

    Parameters
    ----------
    dummies : UserDummies
    own : OpenAnswers or OpenNumbers
        What devices send of their answer.

    Raises
    ------
    ParameterError
        For a randomizer that adds noise of its own, of which nothing is promised, and for dummies of other symbols.
    """

    dummies: UserDummies
    name: ClassVar[str] = "users"
    label: ClassVar[str] = "noise of people together"
    trust: ClassVar[str] = "users"
    hidden: ClassVar[Missing | None] = Missing("people send dummies, whose promise holds against any knowledge")
    several: ClassVar[bool] = True
    mixes: ClassVar[str] = " It takes at most one message of a person beside her answers."

    def __post_init__(self) -> None:
        if not isinstance(self.own, OpenAnswers | OpenNumbers):
            raise ParameterError("`dummies` that people send go without local noise: nothing is promised of both.")
        super().__post_init__()

    def _sending(self, people: People) -> int:
        """How many people send dummies beside the answers of these."""
        return self.dummies.senders or people.n

    def beside(self, count: int, rng: Entropy) -> tuple[Labels, Reports]:
        return self.dummies.sent(count, rng)

    def explained(self, counts: NDArray[np.int64], sent: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.symbols > 1:
            raise UnsupportedError(f"{self.label}: who sent which of several symbols is not weighed")
        dummies = counts - sent  # how many they are together is known: they are as Poisson ones of any rate
        rate = counts.sum() * self.dummies.rate / (1.0 + self.dummies.rate) / self.dummies.k
        return np.where(dummies >= 0, xlogy(dummies, rate) - gammaln(np.maximum(dummies, 0) + 1.0), -np.inf)

    def _central(self, people: People, delta: float) -> CentralDP | Missing:
        return user_dummies_guarantee(
            self.dummies, n=people.n, delta=delta, honest=people.honest, symbols=self.symbols
        )

    def expected(self, shares: NDArray[np.float64], people: People) -> Tally:
        dummies = self._sending(people) * self.dummies.share
        return Tally(people.n * shares + dummies, round(people.n * self.symbols + self.dummies.k * dummies))

    def _counts(self, tally: Tally, people: People) -> NDArray[np.float64]:
        most = self.symbols * people.n + self._sending(people)
        if int(tally.n) > most:
            raise DataError(f"{people.n:,} people send at most {most:,} messages, got {int(tally.n):,}.")
        if not self.dummies.senders:  # of all messages together it is asked elsewhere
            self.dummies.require_messages(int(tally.n), honest=people.trusted, symbols=self.symbols)
        return np.asarray(tally.counts, dtype=np.float64) - self._sending(people) * self.dummies.share

    def _variance(self, people: People) -> float:
        return self.dummies.share * self._sending(people) / people.n**2

    def shares(self, tally: Tally, people: People) -> Estimate:
        return shares_of_people(self.dummies, self._counts(tally, people), n=people.n, senders=self._sending(people))

    def moments(self, tally: Tally, weights: Weights, people: People) -> tuple[NDArray[Any], NDArray[Any]]:
        counts, share = self._counts(tally, people), self.dummies.share
        total = weights.sum(axis=1)  # a person sends one dummy at most: counts of different answers vary against
        spread = share * weights @ weights.T - share**2 * np.outer(total, total)
        return weights @ counts / people.n, spread * self._sending(people) / people.n**2

    def deviation(self, weights: Weights, sizes: Weights, people: People) -> NDArray[np.float64]:
        share = self.dummies.share  # each person: one of the symbols, or none
        mean = share * (sizes * weights).sum(axis=1)
        each = share * (sizes * weights**2).sum(axis=1) - mean**2
        return np.asarray(np.sqrt(each * self._sending(people)) / people.n)

    def reach(
        self, weights: Weights, sizes: Weights, held: NDArray[np.int64], people: People, *, tail: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        share = self.dummies.share
        steps, mean = weights / people.n, share * (sizes * weights).sum(axis=1)

        def error(times: NDArray[np.float64]) -> NDArray[np.complex128]:
            one = np.full(times.shape, 1.0 - share * sizes.sum(axis=1, keepdims=True), dtype=np.complex128)
            for step, many in zip(steps.T, sizes.T, strict=True):
                one += share * many[:, None] * np.exp(1j * times * step[:, None])
            return np.asarray((one * np.exp(-1j * times * mean[:, None] / people.n)) ** self._sending(people))

        return sum_reach(error, self.deviation(weights, sizes, people), tail)

    def null_law(self, people: People) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        share = self.dummies.rate / self.dummies.k
        sent, masses = binomial_law(people.n, share)
        return sent - people.n * share, masses

    def off(self, held: NDArray[np.int64], people: People, rng: Entropy) -> NDArray[np.float64]:
        drawn = np.bincount(self.beside(people.n, rng)[1], minlength=self.dummies.k)
        return np.asarray(drawn - people.n * self.dummies.share)

    def most_added(self, people: People) -> int:
        return self.symbols * people.n

    def linkage(self, shuffler: Shuffler, people: People, shares: NDArray[np.float64] | None) -> Linkage | Missing:
        """By the dummies of the others: each sends one that says what she does with this chance."""
        return linkage_bound(-math.log(self.dummies.share), n=people.trusted)

    def described(self, people: People) -> dict[str, Any]:
        return {"user_dummies": {"rate": self.dummies.rate, "people": people.n, "honest": people.honest}}

    def assumptions(self, people: People, *, delta: float, central: CentralDP | Missing) -> tuple[str, ...]:
        return (
            f"Each person sends exactly {'one answer' if self.symbols == 1 else f'{self.symbols} answers'}, and a "
            "dummy beside by chance alone.",
            "People are trusted with the noise together: the promise counts on "
            f"{people.honest or people.n:,} honest ones whose answers and dummies arrive, each by itself; "
            "with fewer of them it is weaker. The shuffler takes at most one message more of a person, mixes them, "
            "and tells nobody whose they are.",
        )
