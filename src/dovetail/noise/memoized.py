"""A permanent answer: everybody draws one report and sends it in every round, for values that never change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dovetail.account.compose import PATTERN, SOURCE
from dovetail.core.display import upward
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People, Promise, Telling, Weights
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler


@final
@dataclass(frozen=True)
class Memoized(Noise):
    """Reports that are drawn once and sent again in every round: all rounds promise together what one does.

    Every round is post-processing of the first shuffled batch, in each block of people who are exchangeable in the
    order. Values must be constant, everybody takes part in the same rounds, and no device loses its memory.

    Parameters
    ----------
    once : Noise
        What everybody adds on the device: `Local` or `EpsilonClasses`.
    rounds : int, optional
        How many there are, where that is known.

    Raises
    ------
    ParameterError
        For noise that somebody adds anew in each round, such as dummies.

    Source
    ------
    docs/theory/accuracy.md, section E.
    """

    once: Noise
    rounds: int | None = None
    name: ClassVar[str] = "memoized"
    label: ClassVar[str] = "every person's own noise, drawn once for all rounds"
    trust: ClassVar[str] = "local"
    estimator: ClassVar[dict[str, str] | Missing] = Missing("shares have one estimator")
    unfit: ClassVar[Mapping[str, str]] = {}
    fresh_orders: ClassVar[str] = "each round draws one, and what orders tell of the same people adds"
    unsearched: ClassVar[str] = "a search asks each group of people once, and nothing is sent again"
    by_devices: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.once.trust != "local" or isinstance(self.once, Memoized):
            raise ParameterError("`once` must be noise that devices draw by themselves, and can draw once.")
        for told in ("hidden", "estimator", "unattacked"):  # of this instance: those of what is sent
            object.__setattr__(self, told, getattr(self.once, told))

    @property
    def randomizer(self) -> FrequencyRandomizer | NumericRandomizer:
        return self.once.randomizer

    @property
    def accounted(self) -> FrequencyRandomizer | NumericRandomizer | None:
        return self.once.accounted

    def of_all_rounds(self, promise: Promise) -> Promise:
        told = replace(promise, source=f"{promise.source}; {SOURCE}")
        if not isinstance(told, CentralDP):
            return told
        return replace(told, neighbours=f"{told.neighbours} in {self._all_rounds}")

    @property
    def _all_rounds(self) -> str:
        return "all rounds" if self.rounds is None else f"all {self.rounds:,} rounds"

    def central(self, shuffler: Shuffler, people: People, *, delta: float) -> CentralDP | Missing:
        found = self.once.central(shuffler, people, delta=delta)
        return found if isinstance(found, Missing) else self.of_all_rounds(found)

    def randomize(self, values: NDArray[Any], people: People, rng: Entropy) -> Reports:
        return self.once.randomize(values, people, rng)

    def runs(self, people: People) -> tuple[tuple[FrequencyRandomizer | NumericRandomizer, NDArray[np.int64]], ...]:
        return self.once.runs(people)

    def explained(self, counts: NDArray[np.int64], sent: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.once.explained(counts, sent)

    def tally(self, reports: Reports) -> Tally:
        return self.once.tally(reports)

    def expected(self, shares: NDArray[np.float64], people: People) -> Tally:
        return self.once.expected(shares, people)

    def error(self, people: People) -> float:
        return self.once.error(people)

    def shares(self, tally: Tally, people: People) -> Estimate:
        return self.once.shares(tally, people)

    def mean(self, tally: Tally, people: People) -> Estimate:
        return self.once.mean(tally, people)

    def moments(self, tally: Tally, weights: Weights, people: People) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.once.moments(tally, weights, people)

    def deviation(self, weights: Weights, sizes: Weights, people: People) -> NDArray[np.float64]:
        return self.once.deviation(weights, sizes, people)

    def reach(
        self, weights: Weights, sizes: Weights, held: NDArray[np.int64], people: People, *, tail: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.once.reach(weights, sizes, held, people, tail=tail)

    def telling(self, people: People, *, delta: float) -> tuple[Telling, ...]:
        return self.once.telling(people, delta=delta)

    def linkage(self, shuffler: Shuffler, people: People, shares: NDArray[np.float64] | None) -> Any:
        return self.once.linkage(shuffler, people, shares)

    def more(self, people: People, n: int) -> People:
        return self.once.more(people, n)

    def fewest(self, people: People, chance: float, doubt: float) -> People:
        return self.once.fewest(people, chance, doubt)

    def check(self, people: People) -> None:
        self.once.check(people)

    def refuse_shuffler(self, shuffler: Shuffler) -> None:
        self.once.refuse_shuffler(shuffler)

    def assumptions(self, people: People, *, delta: float, central: CentralDP | Missing) -> tuple[str, ...]:
        return self.once.assumptions(people, delta=delta, central=central)

    def repeated(self, local: LocalDP) -> tuple[str, ...]:
        each = "" if self.rounds is None else f" in each of {self.rounds:,} rounds"
        return (
            f"Everybody sends one permanent answer{each}, and what is promised holds for all rounds together and for "
            "any further ones, if values never change: that is the word of the collection's author. "
            f"{PATTERN}",
            "Who takes part in a round must not depend on values. A device that loses its memory draws a second "
            f"answer: its owner is then promised {upward(2 * local.epsilon)} locally, and nothing centrally.",
            "Errors do not fall with the number of rounds, because the noise of each is the same.",
        )
