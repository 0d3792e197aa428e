"""Four devices in two houses, and a randomizer without noise."""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from dovetail.core.entropy import Entropy, simulation
from dovetail.core.estimate import Estimate
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.job.fleet import Fleet, FleetRun
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.sampling.domain import numbers
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.rase import RASE

ROSTER = ("kettle", "oven", "lamp", "fridge")


OWN = Groups.from_lists([[0, 1], [2, 3]], 4)


VALUES = {"kettle": 10.0, "oven": 60.0, "lamp": 5.0, "fridge": 25.0}


@dataclass(frozen=True)
class Truth(NumericRandomizer):
    """The value itself: epsilon is infinite, whatever it `claims`."""

    lower: float = 0.0
    upper: float = 1024.0
    claims: LocalDP = field(default_factory=lambda: LocalDP(math.inf))
    name = "truth"

    @property
    def guarantee(self) -> LocalDP:
        return self.claims

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        return (numbers(values, self.lower, self.upper) * 64).astype(np.int64)

    def log_density(self, report: ArrayLike, value: ArrayLike) -> NDArray[np.float64]:
        return np.where(np.asarray(report) == 64 * np.asarray(value), 0.0, -np.inf)

    def disagreement(self) -> str:
        """What it claims is what tests are about."""
        return ""

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(reports, dtype=np.float64) / 64

    @property
    def noise_variance(self) -> float:
        return 0.0

    @property
    def rounding(self) -> float:
        return 1 / 128

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(),)


def exact(randomizer: Truth, reports: Reports) -> Estimate:
    """The mean of reports without noise."""
    nothing = np.zeros(())
    return Estimate(randomizer.decode(reports).mean(), nothing, len(reports), nothing)


def fleet_run(cap: float = math.inf, epsilon: float = 1.0) -> FleetRun:
    laplace = Laplace(lower=0.0, upper=100.0, epsilon=epsilon, grid=0.25)
    return FleetRun(Fleet(ROSTER, laplace, RASE.fit(OWN), cap))


def long(values: NDArray[np.float64], first: int = 1) -> pl.DataFrame:
    """Values (rounds, 4) as rows in a random order."""
    rounds, n = values.shape
    table = {
        "device": ROSTER * rounds,
        "time": np.repeat(np.arange(first, first + rounds), n),
        "value": values.ravel(),
    }
    return pl.DataFrame(table)[simulation(4).permutation(values.size)]
