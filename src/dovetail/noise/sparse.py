"""Sparse noise of the shuffler: few dummies for long lists of answers, and no delta; reports are kept by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dovetail.account.dummies import sparse_guarantee
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import People, Weights
from dovetail.core.stages import Labels, Reports, Shuffler
from dovetail.estimate.dummies import shares_of_kept
from dovetail.leak.linkage import Linkage
from dovetail.noise.shuffler import HIDDEN, TRUSTED, DummyNoise
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import SparseDummies


@final
@dataclass(frozen=True)
class SparseNoise(DummyNoise):
    """The shuffler keeps each report by chance, and adds dummies of few answers.

    Parameters
    ----------
    dummies : SparseDummies
    own : OpenAnswers

    Raises
    ------
    ParameterError
        For a randomizer that adds noise of its own, and for dummies of other answers.
    """

    dummies: SparseDummies
    name: ClassVar[str] = "sparse"
    label: ClassVar[str] = "sparse noise of the shuffler"
    trust: ClassVar[str] = "shuffler"
    hidden: ClassVar[Missing | None] = HIDDEN
    lacks: ClassVar[Mapping[str, str]] = {
        "mean": "sparse dummies go with answers of a list: reports that are kept by chance are a sample of a mean",
    }
    mixes: ClassVar[str] = " It drops reports by chance, and adds dummies of few answers."

    def __post_init__(self) -> None:
        if not isinstance(self.own, OpenAnswers):
            raise ParameterError("sparse `dummies` go without local noise: nothing is promised of both.")
        super().__post_init__()

    def messages(self, reports: Reports, rng: Entropy) -> Sequence[tuple[Labels, Reports]]:
        kept = self.dummies.places(len(reports), rng)
        return ((kept, reports[kept]),)

    def added(self, rng: Entropy) -> Reports:
        return self.dummies.drawn(rng)

    @property
    def kept(self) -> float:
        return float(self.dummies.kept)

    def explained(self, counts: NDArray[np.int64], sent: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(sent <= counts, -sent * np.log(float(self.dummies.more)), -np.inf)  # q^(c - h)

    @property
    def counts_on_people(self) -> bool:
        return False

    def central(self, shuffler: Shuffler, people: People, *, delta: float) -> CentralDP | Missing:
        return sparse_guarantee(self.dummies, n=people.n)

    def expected(self, shares: NDArray[np.float64], people: People) -> Tally:
        kept = people.n * float(self.dummies.kept)
        return Tally(kept * shares + self.dummies.mean, round(kept + self.dummies.k * self.dummies.mean))

    def _counts(self, tally: Tally, people: People) -> NDArray[np.float64]:
        self.dummies.people(int(tally.n), people.n)
        return self.dummies.counts_of(tally.counts)

    def _variance(self, people: People) -> float:
        return float(self.dummies.variance(people.n)) / people.n**2  # of an answer that everybody gives

    def shares(self, tally: Tally, people: People) -> Estimate:
        self._counts(tally, people)
        return shares_of_kept(self.dummies, tally.counts, n=people.n)

    def moments(self, tally: Tally, weights: Weights, people: People) -> tuple[NDArray[Any], NDArray[Any]]:
        counts = self._counts(tally, people)
        spread = self.dummies.variance(np.maximum(counts, 0.0)) / people.n**2
        return weights @ counts / people.n, np.asarray((weights * spread) @ weights.T)

    def most_added(self, people: People) -> int:
        return people.n + 64 * self.dummies.k  # far beyond what comes

    def most_dropped(self, people: People) -> int:
        return people.n

    def linkage(self, shuffler: Shuffler, people: People, shares: NDArray[np.float64] | None) -> Linkage | Missing:
        return Missing("a report that is dropped has no place")

    def described(self, people: People) -> dict[str, Any]:
        return {"dummies": {"epsilon": self.dummies.epsilon, "sparse": True, "people": people.n}}

    def assumptions(self, people: People, *, delta: float, central: CentralDP | Missing) -> tuple[str, ...]:
        return (
            "Each person sends exactly one report.",
            TRUSTED,
            f"The shuffler keeps each report with probability {float(self.dummies.kept):.3g} by a fresh coin, and "
            "tells nobody how many it has kept. An answer that does not occur may have been given: its reports were "
            "dropped.",
            "Frequent answers pay: of an answer that c people give, the count varies by "
            f"{(1.0 - float(self.dummies.kept)) / float(self.dummies.kept):.3g} c more than behind other dummies.",
        )
