"""Noise of the shuffler: it adds dummies of every answer, below which devices may add a layer of their own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from dovetail.account.dummies import dummies_guarantee
from dovetail.account.gaussian_dummies import Message
from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate, Tally, sum_reach
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People, Telling, Weights
from dovetail.core.question import PUBLIC_LISTS
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.estimate.dummies import mean_of_counts, shares_of_counts
from dovetail.leak.linkage import Linkage, linkage_among_dummies
from dovetail.noise.local import Local, sent_shares
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers
from dovetail.shuffle.sampling.dummies import (
    CountLaw,
    Dummies,
    GaussianDummies,
    MarginalDummies,
    SeveralDummies,
    SparseDummies,
    UserDummies,
)
from dovetail.shuffle.uniform import Uniform

FADED = 1e-10  # of a characteristic function: far below what the tails of its law are known to
EVERYBODY = "a dummy is nobody's report and has no place in an order"
HIDDEN = Missing("the shuffler adds dummies, whose promise holds against any knowledge")
TRUSTED = (
    "The shuffler is trusted with the noise: it draws the dummies once, from the operating system, as specified, "
    "tells nobody their numbers, and the analyst sees the shuffled batch alone. A shuffler that adds none voids the "
    "promise."
)


@dataclass(frozen=True)
class DummyNoise(Noise):
    """Dummies among the reports, of the shuffler or of people: counts, less the mean number of dummies."""

    dummies: Dummies | GaussianDummies | SeveralDummies | MarginalDummies | SparseDummies | UserDummies
    own: FrequencyRandomizer | NumericRandomizer
    symbols: int = 1  # that a person sends, each of another part of the list
    combined: DummyNoise | None = field(default=None, kw_only=True)  # of combinations of answers, this one among them
    everybody: ClassVar[str] = EVERYBODY
    estimator: ClassVar[dict[str, str] | Missing] = Missing("counts with dummies have one estimator")

    def __post_init__(self) -> None:
        whole("symbols", self.symbols, least=1, most=1 << 16)
        symbols = self.own.points if isinstance(self.own, OpenNumbers) else getattr(self.own, "k", 0)
        if symbols != self.dummies.k:
            raise ParameterError(
                f"`dummies` must be of the {symbols:,} answers that are sent, got {self.dummies.k:,}: "
                "an answer without dummies would be seen."
            )

    @property
    def kinds(self) -> int:
        return self.dummies.k

    @property
    def carrier(self) -> Noise:
        return self.combined or self

    def marginal(self, own: OpenAnswers | OpenNumbers) -> Self:
        """The noise of one answer, where reports are combinations of answers.

        The count of an answer is the sum of those of all combinations with it: of kept people, and of all dummies.
        """
        k = own.points if isinstance(own, OpenNumbers) else own.k
        assert not isinstance(self.dummies, SeveralDummies)  # of several symbols, which are not combined
        return replace(self, dummies=self.dummies.marginal(k), own=own, combined=self)

    def central(self, shuffler: Shuffler, people: People, *, delta: float) -> CentralDP | Missing:
        """Of a marginal that of the combinations, which are released: post-processing."""
        return (self.combined or self)._central(people, delta)

    @abstractmethod
    def _central(self, people: People, delta: float) -> CentralDP | Missing:
        """What dummies promise of a batch of reports."""

    @property
    def randomizer(self) -> FrequencyRandomizer | NumericRandomizer:
        return self.own

    def randomize(self, values: NDArray[Any], people: People, rng: Entropy) -> Reports:
        if self.symbols == 1:
            return self.own.randomize(values, rng)
        return np.column_stack([self.own.randomize(one, rng) for one in np.transpose(values)])

    @property
    def _sent(self) -> str:
        """Who sends what, for the report."""
        if self.symbols == 1:
            return "Each person sends exactly one report."
        return (
            f"Each person sends exactly {self.symbols} symbols, one of each list, that nobody can link; who fails "
            "with one of them is left out with all."
        )

    def tally(self, reports: Reports) -> Tally:
        return Tally(self.dummies.tally(reports), len(reports))

    @abstractmethod
    def _counts(self, tally: Tally, people: People) -> NDArray[np.float64]:
        """Unbiased numbers (k,) of people; DataError for a batch that these people cannot have sent."""

    @abstractmethod
    def _variance(self, people: People) -> float:
        """Of a count over n^2; counts of different answers vary independently, or against one another."""

    def error(self, people: People) -> float:
        return self.error_of_one_answer(people, k=self.dummies.k)

    def mean(self, tally: Tally, people: People) -> Estimate:
        assert isinstance(self.own, OpenNumbers)
        return mean_of_counts(self.own, self._counts(tally, people), people.n, noise=self._variance(people))

    def telling(self, people: People, *, delta: float) -> tuple[Telling, ...]:
        promise = self.central(Uniform(people.n), people, delta=delta)
        if not isinstance(self.own, FrequencyRandomizer) or not isinstance(promise, CentralDP):
            return ()
        return (Telling(self.own, people.n, people.trusted, promise, "the batch without its dummies"),)


@dataclass(frozen=True)
class AddedNoise(DummyNoise):
    """The shuffler adds dummies of every answer, and has to be trusted with that.

    Parameters
    ----------
    dummies : Dummies, GaussianDummies, or SeveralDummies of the symbols of a person
    own : FrequencyRandomizer or NumericRandomizer
        What devices run: `OpenAnswers`, `OpenNumbers`, or k-ary randomized response as a second layer.
    rounds : int
        Releases about the same people that keep the promise together.

    Raises
    ------
    ParameterError
        For a randomizer whose reports are no symbols, and for dummies of other symbols.
    """

    dummies: Dummies | GaussianDummies | SeveralDummies | MarginalDummies
    rounds: int = field(default=1, repr=False)  # a promise, read off afterwards: reports have the law of `dummies`
    trust: ClassVar[str] = "shuffler"
    hidden: ClassVar[Missing | None] = HIDDEN
    mixes: ClassVar[str] = " It adds dummies of every answer."
    several: ClassVar[bool] = True
    bounded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.own, KRR | OpenAnswers | OpenNumbers):
            raise ParameterError("`dummies` need reports that are symbols: use dt.KRR, or no local noise.")
        if self.symbols > 1 and self.layer is not None:
            raise ParameterError("several symbols of a person go without local noise: nothing is promised of both.")
        super().__post_init__()

    @property
    def layer(self) -> KRR | None:
        """The noise of devices below the dummies; None without."""
        return self.own if isinstance(self.own, KRR) else None

    def added(self, rng: Entropy) -> Reports:
        return self.dummies.drawn(rng)

    @property
    def counts_on_people(self) -> bool:
        return self.layer is not None

    def explained(self, counts: NDArray[np.int64], sent: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.symbols > 1:
            raise UnsupportedError(f"{self.label}: who sent which of several symbols is not weighed")
        places, masses = self._law.error_law(1.0)
        dummies = counts - sent - self._law.reach - int(places[0])  # of which the law has an end
        with np.errstate(divide="ignore"):
            logs = np.log(masses)[np.clip(dummies, 0, masses.size - 1)]
        return np.where((dummies >= 0) & (dummies < masses.size), logs, -np.inf)

    def _central(self, people: People, delta: float) -> CentralDP | Missing:
        assert not isinstance(self.dummies, MarginalDummies)  # of which the combinations promise
        symbols = 1 if isinstance(self.dummies, SeveralDummies) else self.symbols
        return dummies_guarantee(
            Message.of(self.dummies.noises) if isinstance(self.dummies, SeveralDummies) else self.dummies,
            n=people.n,
            delta=delta,
            randomizer=self.layer,
            honest=people.honest,
            rounds=self.rounds * symbols,
        )

    def expected(self, shares: NDArray[np.float64], people: People) -> Tally:
        sent = shares if self.layer is None else sent_shares(self.layer.channel(), shares)
        return Tally(people.n * sent + self.dummies.means, self.symbols * people.n + self.dummies.total)

    def _counts(self, tally: Tally, people: People) -> NDArray[np.float64]:
        self.dummies.people(int(tally.n), self.symbols // self.dummies.messages * people.n)
        return self.dummies.counts_of(tally.counts)

    def _variance(self, people: People) -> float:
        return self.dummies.variance / people.n**2

    def shares(self, tally: Tally, people: People) -> Estimate:
        return shares_of_counts(self.dummies, self._counts(tally, people), n=people.n, randomizer=self.layer)

    def moments(self, tally: Tally, weights: Weights, people: People) -> tuple[NDArray[Any], NDArray[Any]]:
        counts = self._counts(tally, people)
        if self.layer is None:
            return weights @ counts / people.n, (weights * self.dummies.variances) @ weights.T / people.n**2
        worth = weights @ self.layer.invert(np.eye(self.dummies.k), np.ones(self.dummies.k)).T
        value, local = Local(self.layer).moments(Tally(counts, people.n), weights, people)
        return value, local + worth @ worth.T * self._variance(people)

    def _stretch(self, people: People) -> float:
        """How much a share changes with a dummy."""
        return 1.0 / (people.n if self.layer is None else people.n * self.layer.channel().contrast)

    @property
    def _law(self) -> CountLaw:
        """The law of every dummy; of symbols with laws of their own sums are asked by `part`."""
        if isinstance(self.dummies, SeveralDummies):
            raise UnsupportedError(f"{self.label}: symbols have laws of their own; ask each part by itself.")
        return self.dummies.noise

    def deviation(self, weights: Weights, sizes: Weights, people: People) -> NDArray[np.float64]:
        variance = (sizes * (weights * self._stretch(people)) ** 2).sum(axis=1) * float(self._law.variance)
        if self.layer is not None:
            variance = variance + Local(self.layer).deviation(weights, sizes, people) ** 2
        return np.asarray(np.sqrt(variance))

    def reach(
        self, weights: Weights, sizes: Weights, held: NDArray[np.int64], people: People, *, tail: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # sums with the same weights up to signs have one law, because the law of a dummy is symmetric
        order = np.lexsort((sizes, weights.round(12) ** 2))
        kinds = [np.take_along_axis(one, order, axis=1) for one in (np.abs(weights.round(12)) * (sizes > 0), sizes)]
        _, first, which = np.unique(np.hstack(kinds), axis=0, return_index=True, return_inverse=True)
        if self.layer is None and first.size < len(weights):
            below, above = self.reach(weights[first], sizes[first], held, people, tail=tail)
            return below[which.ravel()], above[which.ravel()]
        law, steps = self._law, weights * self._stretch(people)

        def error(times: NDArray[np.float64]) -> NDArray[np.complex128]:
            found, live = np.ones(times.shape), np.full(times.shape, True)
            for one in np.argsort(-(sizes * steps**2).mean(axis=0)):  # most of them fade at once
                rows, columns = np.nonzero(live)
                angles = times[rows, columns] * steps[rows, one]
                found[rows, columns] *= law.characteristic(angles) ** sizes[rows, one]
                live &= np.abs(found) > FADED
                found[~live] = 0.0
            if self.layer is None:
                return np.asarray(found, dtype=np.complex128)
            return np.asarray(found * Local(self.layer).law(times, weights, sizes, held, people))

        return sum_reach(error, self.deviation(weights, sizes, people), tail)

    def null_law(self, people: People) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.layer is not None:  # whose reports of other answers come on top
            return super().null_law(people)
        return self._law.error_law(1.0)

    def off(self, held: NDArray[np.int64], people: People, rng: Entropy) -> NDArray[np.float64]:
        drawn = np.concatenate([law.sample(many, rng) for law, many in self.dummies.laws])
        return np.asarray(drawn - self.dummies.means, dtype=np.float64)

    def most_added(self, people: People) -> int:
        return 2 * self.dummies.total + (self.symbols - 1) * people.n

    def linkage(self, shuffler: Shuffler, people: People, shares: NDArray[np.float64] | None) -> Linkage | Missing:
        """By the dummies that carry what her own report says, and by the others' local noise."""
        fewest = min((law for law, _ in self.dummies.laws), key=lambda law: law.reach)
        return linkage_among_dummies(fewest.error_law(1.0)[1], n=people.trusted, epsilon=self.local.epsilon)

    def assumptions(self, people: People, *, delta: float, central: CentralDP | Missing) -> tuple[str, ...]:
        return (
            self._sent,
            TRUSTED,
            *([PUBLIC_LISTS] if self.symbols > 1 or self.rounds > 1 else []),
            *together(self.rounds),
        )

    def rounds_note(self) -> str:
        many = f" of {self.symbols:,} symbols" if self.symbols > 1 else ""
        return f"{self.rounds:,} rounds{many} with dummies of the law {self._law!r}" if self.rounds > 1 else ""

    @property
    def releases(self) -> int:
        return self.rounds


def together(rounds: int) -> tuple[str, ...]:
    """A sentence for the report about several releases, where their dummies are paid for."""
    if rounds == 1:
        return ()
    return (
        f"Up to {rounds:,} releases about the same people, each with dummies of its own, cost together what is "
        "promised for one; further ones add theirs.",
    )


@final
@dataclass(frozen=True)
class ShufflerNoise(AddedNoise):
    """Dummies with two-sided geometric numbers: the least noise where each person is asked up to four times."""

    dummies: Dummies | MarginalDummies
    name: ClassVar[str] = "shuffler"
    label: ClassVar[str] = "noise of the shuffler"

    def described(self, people: People) -> dict[str, Any]:
        assert isinstance(self.dummies, Dummies)
        return {"dummies": {"epsilon": self.dummies.epsilon, "delta": self.dummies.delta, "people": people.n}}
