"""Sparse noise of the shuffler: few dummies for long lists of answers, and no delta; reports are kept by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dovetail.account.dummies import sparse_guarantee
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate, Tally, sum_reach
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People, Weights
from dovetail.core.question import PUBLIC_LISTS
from dovetail.core.stages import Labels, Reports, Shuffler
from dovetail.estimate.dummies import geometric_sums, mean_of_counts, shares_of_kept
from dovetail.leak.linkage import Linkage
from dovetail.noise.shuffler import HIDDEN, TRUSTED, DummyNoise
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers
from dovetail.shuffle.sampling.dummies import SparseDummies


@final
@dataclass(frozen=True)
class SparseNoise(DummyNoise):
    """The shuffler keeps each report by chance, and adds dummies of few answers.

    Parameters
    ----------
    dummies : SparseDummies
    own : OpenAnswers or OpenNumbers
    symbols : int
        That a person sends: each is kept, or not, by a coin of its own.

    Raises
    ------
    ParameterError
        For a randomizer that adds noise of its own, and for dummies of other answers.
    UnsupportedError
        From `deviation` and `reach`, for sums over the lists of several symbols; ask each `part`.
    """

    dummies: SparseDummies
    name: ClassVar[str] = "sparse"
    label: ClassVar[str] = "sparse noise of the shuffler"
    trust: ClassVar[str] = "shuffler"
    hidden: ClassVar[Missing | None] = HIDDEN
    several: ClassVar[bool] = True
    mixes: ClassVar[str] = " It drops reports by chance, and adds dummies of few answers."

    def __post_init__(self) -> None:
        if not isinstance(self.own, OpenAnswers | OpenNumbers):
            raise ParameterError("sparse `dummies` go without local noise: nothing is promised of both.")
        super().__post_init__()

    def messages(self, reports: Reports, rng: Entropy) -> Sequence[tuple[Labels, Reports]]:
        each = [(self.dummies.places(len(one), rng), one) for _, one in super().messages(reports, rng)]
        return tuple((kept, one[kept]) for kept, one in each)

    def added(self, rng: Entropy) -> Reports:
        return self.dummies.drawn(rng)

    @property
    def kept(self) -> float:
        return float(self.dummies.kept)

    def part(self, symbol: int) -> Noise:
        return replace(self, symbols=1)

    def explained(self, counts: NDArray[np.int64], sent: NDArray[np.int64]) -> NDArray[np.float64]:
        self._of_one_list()
        return np.where(sent <= counts, -sent * np.log(float(self.dummies.more)), -np.inf)  # q^(c - h)

    @property
    def counts_on_people(self) -> bool:
        return False

    def _central(self, people: People, delta: float) -> CentralDP | Missing:
        return sparse_guarantee(self.dummies, n=people.n, rounds=self.symbols, delta=delta)

    def expected(self, shares: NDArray[np.float64], people: People) -> Tally:
        kept = people.n * float(self.dummies.kept)
        return Tally(kept * shares + self.dummies.mean, round(self.symbols * kept + self.dummies.total))

    def _counts(self, tally: Tally, people: People) -> NDArray[np.float64]:
        self.dummies.people(int(tally.n), self.symbols * people.n)
        return self.dummies.counts_of(tally.counts)

    def _variance(self, people: People) -> float:
        return float(self.dummies.variance(people.n)) / people.n**2  # of an answer that everybody gives

    def mean(self, tally: Tally, people: People) -> Estimate:
        assert isinstance(self.own, OpenNumbers)
        counts = self._counts(tally, people)
        away = (np.arange(self.own.points) - 0.5 * (self.own.points - 1)) ** 2  # points far from the middle vary more
        each = self.dummies.variance(np.maximum(counts, 0.0)) / people.n**2
        return mean_of_counts(self.own, counts, people.n, noise=float(away @ each / away.sum()))

    def shares(self, tally: Tally, people: People) -> Estimate:
        self._counts(tally, people)
        return shares_of_kept(self.dummies, tally.counts, n=people.n)

    def moments(self, tally: Tally, weights: Weights, people: People) -> tuple[NDArray[Any], NDArray[Any]]:
        counts = self._counts(tally, people)
        spread = self.dummies.variance(np.maximum(counts, 0.0)) / people.n**2
        return weights @ counts / people.n, np.asarray((weights * spread) @ weights.T)

    def _of_one_list(self) -> None:
        """Refuse what is known of one symbol of a person alone."""
        if self.symbols > 1:
            raise UnsupportedError(
                f"{self.label}: how far sums over several lists lie off is not known; ask with one list (of a "
                "distribution `levels` = 1), or with geometric or Gaussian `dummies`."
            )

    def deviation(self, weights: Weights, sizes: Weights, people: People) -> NDArray[np.float64]:
        self._of_one_list()
        held = np.where(sizes > 0.0, np.abs(weights), 0.0).max(axis=1)  # of the answer that everybody may give
        counts = (sizes * weights**2).sum(axis=1) * float(self.dummies.variance(0.0))
        return np.asarray(np.sqrt(counts + held**2 * people.n * (1.0 / self.kept - 1.0)) / people.n)

    def reach(
        self, weights: Weights, sizes: Weights, held: NDArray[np.int64], people: People, *, tail: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""By the law of kept reports and dummies of answers that weigh alike outside the first class.

        .. math:: \hat F - F = \sum_j \frac{w_j}{\beta n} (K_j - \mathrm{E} K_j + Z_j - \mathrm{E} Z_j), \qquad
                  K_j \sim \mathrm{Bin}(c_j, \beta), \quad \Pr[Z_j = a] = (1 - q) q^a
        """
        self._of_one_list()
        steps = weights / (self.kept * people.n)

        def error(times: NDArray[np.float64]) -> NDArray[np.complex128]:
            angles = 1j * times[:, None, :] * steps[:, :, None]
            turn = np.expm1(angles)
            near, *_, far = np.moveaxis(np.log1p(self.kept * turn) - self.kept * angles, 1, 0)
            mean = self.dummies.mean / self.dummies.times  # q / (1 - q)
            each = -np.log1p(-mean * turn) - mean * angles  # (1 - q) / (1 - q e^angle)
            dummies = self.dummies.times * (sizes[:, :, None] * each).sum(axis=1)
            return np.stack([np.exp(dummies + one * near + (people.n - one) * far) for one in np.atleast_1d(held)])

        return sum_reach(error, self.deviation(weights, sizes, people), tail)

    def null_law(self, people: People) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        self._of_one_list()
        places, masses = geometric_sums(float(self.dummies.more), self.dummies.times)
        return self.dummies.counts_of(places), masses

    def off(self, held: NDArray[np.int64], people: People, rng: Entropy) -> NDArray[np.float64]:
        draws = np.random.default_rng(int(rng.words(1)[0]))
        dummies = draws.geometric(1.0 - float(self.dummies.more), held.shape) - 1
        return self.dummies.counts_of(draws.binomial(held, self.kept) + dummies) - held

    def most_added(self, people: People) -> int:
        return self.symbols * people.n + 64 * self.dummies.times * self.dummies.k  # far beyond what comes

    def most_dropped(self, people: People) -> int:
        return self.symbols * people.n

    def linkage(self, shuffler: Shuffler, people: People, shares: NDArray[np.float64] | None) -> Linkage | Missing:
        return Missing("a report that is dropped has no place")

    def described(self, people: People) -> dict[str, Any]:
        return {"dummies": {"epsilon": self.dummies.epsilon, "sparse": True, "people": people.n}}

    def assumptions(self, people: People, *, delta: float, central: CentralDP | Missing) -> tuple[str, ...]:
        return (
            self._sent,
            TRUSTED,
            *([PUBLIC_LISTS] if self.symbols > 1 else []),
            f"The shuffler keeps each {'report' if self.symbols == 1 else 'symbol'} with probability "
            f"{float(self.dummies.kept):.3g} by a fresh coin, and tells nobody how many it has kept. An answer that "
            "does not occur may have been given: its reports were dropped.",
            "Frequent answers pay: of an answer that c people give, the count varies by "
            f"{(1.0 - float(self.dummies.kept)) / float(self.dummies.kept):.3g} c more than behind other dummies.",
        )
