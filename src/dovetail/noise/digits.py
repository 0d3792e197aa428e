"""Gaussian noise of the shuffler on the ternary digits of a number, whose mean is then as good as a central one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dovetail.account.dummies import dummies_guarantee
from dovetail.account.gaussian_dummies import Message
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.stages import FrequencyRandomizer, Labels, NumericRandomizer, Reports, Shuffler
from dovetail.estimate.dummies import digits_squared_error
from dovetail.leak.linkage import Linkage
from dovetail.noise.shuffler import EVERYBODY, HIDDEN, TRUSTED, together
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers
from dovetail.shuffle.sampling.dummies import SeveralDummies


@final
@dataclass(frozen=True)
class DigitNoise(Noise):
    r"""A number is rounded at random to 3^J points, and each of its digits travels as a report of its own.

    .. math:: z = \sum_k 3^k z_k, \qquad \hat{\bar z} = \frac{3^J - 1}{2} + \frac1n \sum_k 3^k (h_{k2} - h_{k0}),
              \qquad w_k = 3^k

    In Gaussian limits its error is that of central Gaussian noise on the sum.

    Parameters
    ----------
    dummies : Message
        Of the digits, from the last one on, with weights 1, 3, 9, ..
    own : OpenNumbers
        Of 3^J points.
    rounds : int
        Releases about the same people that keep the promise together.

    Raises
    ------
    ParameterError
        For another number of points, and for other weights.

    Source
    ------
    docs/theory/several-symbols.md.
    """

    dummies: Message
    own: OpenNumbers
    rounds: int = field(default=1, repr=False)
    name: ClassVar[str] = "digits"
    label: ClassVar[str] = "Gaussian noise of the shuffler on the digits of a number"
    trust: ClassVar[str] = "shuffler"
    hidden: ClassVar[Missing | None] = HIDDEN
    everybody: ClassVar[str] = EVERYBODY
    unattacked: ClassVar[str] = "digits are mixed each by itself: who sent which of several messages is not weighed"
    unfit: ClassVar[Mapping[str, str]] = {
        "frequency": "digits carry the mean of a number, and no answer of a list",
        "vector": 'digits are of one number in a range, and a vector is shortened as a whole: `ask = "all"` asks for '
        "the means of several numbers",
    }
    apart: ClassVar[str] = "each digit is mixed by itself, and all answers in one report stay together"
    estimator: ClassVar[dict[str, str] | Missing] = Missing("counts with dummies have one estimator")
    mixes: ClassVar[str] = " It mixes each digit by itself and adds dummies of every one."
    sends: ClassVar[str] = "rounds its number at random to a public grid and sends each digit of its place by itself"

    def __post_init__(self) -> None:
        places = tuple(3**k for k in range(len(self.dummies.weights)))
        if self.dummies.weights != places or self.own.points != 3 ** len(places):
            raise ParameterError(
                f"`dummies` must be of the ternary digits of {self.own.points:,} points, with weights 1, 3, 9, "
                f"27 and on, got {self.dummies.weights}."
            )

    @property
    def digits(self) -> int:
        """J."""
        return len(self.dummies.weights)

    @property
    def added_dummies(self) -> SeveralDummies:
        """Of every digit, numbered through."""
        return SeveralDummies(self.dummies.laws, (3,) * self.digits)

    @property
    def randomizer(self) -> FrequencyRandomizer | NumericRandomizer:
        return OpenAnswers(3 * self.digits)  # what is released: digits, numbered through

    def randomize(self, values: NDArray[Any], people: People, rng: Entropy) -> Reports:
        return self.own.randomize(values, rng)

    def messages(self, reports: Reports, rng: Entropy) -> Sequence[tuple[Labels, Reports]]:
        everybody = np.arange(len(reports))
        return tuple((everybody, 3 * k + reports // 3**k % 3) for k in range(self.digits))

    def added(self, rng: Entropy) -> Reports:
        return self.added_dummies.drawn(rng)

    @property
    def counts_on_people(self) -> bool:
        return False

    def central(self, shuffler: Shuffler, people: People, *, delta: float) -> CentralDP | Missing:
        return dummies_guarantee(self.dummies, n=people.n, delta=delta, rounds=self.rounds)

    def tally(self, reports: Reports) -> Tally:
        return Tally(self.added_dummies.tally(reports), len(reports))

    def expected(self, shares: NDArray[np.float64], people: People) -> Tally:
        held = shares.reshape((3,) * self.digits)  # by digits, the first one first
        each = [held.sum(axis=tuple(np.delete(np.arange(self.digits), -1 - k))) for k in range(self.digits)]
        reaches = np.repeat([float(one) for one in self.dummies.reaches], 3)
        return Tally(people.n * np.concatenate(each) + reaches, self.digits * people.n + self.added_dummies.total)

    def error(self, people: People) -> float:
        width = self.own.upper - self.own.lower
        return width * math.sqrt(digits_squared_error([law.variance for law in self.dummies.laws], n=people.n))

    def shares(self, tally: Tally, people: People) -> Estimate:
        raise UnsupportedError(f"{self.label}: digits tell the mean of a number, not how many people hold which.")

    def mean(self, tally: Tally, people: People) -> Estimate:
        dummies = self.added_dummies
        dummies.people(int(tally.n), people.n)
        counts = dummies.counts_of(tally.counts).reshape(self.digits, 3)
        places = 3.0 ** np.arange(self.digits)
        middle = 0.5 * (self.own.points - 1)
        away = float(places @ (counts[:, 2] - counts[:, 0])) / people.n  # in steps from the middle
        error = self.error(people)
        held = min(abs(away), middle)
        spread = min(math.sqrt((middle - held) * (middle + held)), self._largest_deviation(counts / people.n, people))
        value = 0.5 * self.own.lower + 0.5 * self.own.upper + self.own.step * away
        sampled = math.sqrt(error**2 + self.own.step**2 * spread**2 / people.n)
        return Estimate(np.asarray(value), np.asarray(error), people.n, np.asarray(sampled))

    def _largest_deviation(self, shares: NDArray[np.float64], people: People) -> float:
        r"""The largest standard deviation of places whose digits have these shares (J, 3): all vary together.

        .. math:: \sigma(z) \le \sum_k 3^k \sigma(z_k)

        The variance of each digit counts one standard error of its estimate more, at most that of 5 times a share's.
        """
        mean, squares = shares @ [0.0, 1.0, 2.0], shares @ [0.0, 1.0, 4.0]
        off = 5.0 * np.sqrt([law.variance for law in self.dummies.laws]) / people.n
        each = np.sqrt(np.clip(squares - mean**2, 0.0, 1.0) + off)
        return float(3.0 ** np.arange(self.digits) @ each)

    def most_added(self, people: People) -> int:
        return (self.digits - 1) * people.n + 2 * self.added_dummies.total

    def linkage(self, shuffler: Shuffler, people: People, shares: NDArray[np.float64] | None) -> Linkage | Missing:
        return Missing("a person sends several reports, each mixed by itself")

    def described(self, people: People) -> dict[str, Any]:
        message = {"variance": str(self.dummies.scale), "reaches": list(self.dummies.reaches), "people": people.n}
        return {"lower": self.own.lower, "upper": self.own.upper, "dummies": message}

    def assumptions(self, people: People, *, delta: float, central: CentralDP | Missing) -> tuple[str, ...]:
        return (
            f"Each person sends exactly one report of each of {self.digits} digits, and a device that fails for one "
            "is left out of all before dummies are drawn.",
            TRUSTED,
            "Reports of one person cannot be linked: each digit has a permutation and ids of its own.",
            *together(self.rounds),
        )

    def rounds_note(self) -> str:
        return f"{self.rounds:,} rounds with dummies of the digits {self.dummies!r}" if self.rounds > 1 else ""

    @property
    def releases(self) -> int:
        return self.rounds
