"""The mean of a number among those who answer, and how many do not: no answer is randomized like every number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from dovetail.core.checks import range_between, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import UNIT, Estimate, Tally, exact_sum
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.randomize.sampling.open_reports import OpenNumbers
from dovetail_protocol.asked import Part, Symbol

MOST_POINTS = 1024
CERTAIN = 2.0  # standard errors that the share of answers has to be above 0


@dataclass(frozen=True, eq=False)
class _Ratio:
    r"""Truths that two sums with a known covariance leave: s, the share of answers, and m, that of numbers.

    .. math:: (\hat m - \mu \hat s)^2 \le z^2 \Bigl(g^T \hat\Sigma g + \frac{R}{n}\Bigr), \qquad g = (-\mu, 1)

    Solved for mu (Fieller 1954, Some problems in interval estimation): the left side has mean 0 at the true mu
    whatever s is, so that a ratio's bias plays no part. Where the noise could make s vanish no mu is excluded.

    Parameters
    ----------
    sums : float array (2,), s and m
    sigma : float array (2, 2)
    sampled : float pair
        What drawing people adds to the variance of s and of m - mu s, times n.
    low, width : float
        The range of numbers; m is measured from its middle, in ranges.
    """

    sums: NDArray[np.float64]
    sigma: NDArray[np.float64]
    sampled: tuple[float, float]
    low: float
    width: float
    share: float = 0.0

    def drawn(self, share: Any) -> _Ratio:
        """With the sampling of a population added; share is 1/n."""
        return replace(self, share=float(np.ravel(share)[0]))

    def each(self, pick: Callable[[Any], Any]) -> _Ratio:
        """There is one."""
        return self

    def interval(self, value: Values, z: float) -> tuple[Values, Values]:
        """Ends of the mean and of the share without an answer."""
        (s, m), sigma = self.sums, self.sigma
        of_s, of_m = (self.share * one for one in self.sampled)
        lead, middle = s**2 - z**2 * sigma[0, 0], m * s - z**2 * sigma[0, 1]
        ends = np.array([-0.5, 0.5])
        if s > 0.0 and lead > 0.0:
            inside = middle**2 - lead * (m**2 - z**2 * (sigma[1, 1] + of_m))
            ends = np.clip((middle + np.array([-1.0, 1.0]) * math.sqrt(max(0.0, inside))) / lead, -0.5, 0.5)
        gone = np.clip(1.0 - s + np.array([-1.0, 1.0]) * z * math.sqrt(sigma[0, 0] + of_s), 0.0, 1.0)
        low, high = np.column_stack([self.low + self.width * (ends + 0.5), gone])
        return low, high


@final
@dataclass(frozen=True)
class Nonresponse(Question):
    r"""The mean of a number among those who give one, and the share of people who do not.

    .. math:: \hat\mu = \frac{\hat m}{\hat s} - \frac{\hat\mu \hat\Sigma_{ss} - \hat\Sigma_{sm}}{\hat s^2}, \qquad
              1 - \hat s

    A person answers with a point of an even grid, to which her number is rounded at random, or with one further
    symbol for no answer: nobody learns who left the question out. The share is unbiased; the mean is a ratio, whose
    bias of order 1/n is taken off. Where the noise could be all of the answers, nothing is said of the mean: its
    interval is the whole range.

    Parameters
    ----------
    lower, upper : float, lower < upper
    missing : str
        What no answer is called.
    points : int, 2 to 1,024
        Of the grid. `dovetail plan` chooses them: two for local noise, more where others add it.

    Raises
    ------
    ParameterError
        For an empty range, and for fewer than two points or more than 1,024.

    Examples
    --------
    >>> asked = Nonresponse(0.0, 10.0)
    >>> asked.domain, asked.names
    ({'k': 3}, ['0', '10', 'no answer'])
    >>> asked.truth(np.array([4.0, 8.0, np.nan, 6.0]))
    [6.0, 0.25]

    Source
    ------
    docs/theory/accuracy.md, section H.
    """

    lower: float
    upper: float
    missing: str = "no answer"
    points: int = 2
    name: ClassVar[str] = "nonresponse"
    label: ClassVar[str] = "the mean of a number among those who answer"
    measure: ClassVar[str] = "mean"
    needs = "frequency"
    needs_names: ClassVar[bool] = True
    takes_gaps: ClassVar[bool] = True
    hidden: ClassVar[Missing | None] = Missing(
        "guesses are measured of one answer of a list; here a number is asked, or none"
    )
    planned_of: ClassVar[str] = "of the mean where half of the people answer"
    planned: ClassVar[Mapping[str, Sequence[Any]]] = {"points": (2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 64)}

    @dataclass
    class Settings:
        """Of a configuration.

        Parameters
        ----------
        points
            To which numbers are rounded, without `grid` in [data]; a plan chooses them.
        """

        points: Annotated[int, Ge(2), Le(MOST_POINTS)] = 2

    def __post_init__(self) -> None:
        whole("points", self.points, least=2, most=MOST_POINTS)
        range_between(self.lower, self.upper)

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        if not data.numeric:
            raise ParameterError("answers and numbers are asked: declare `lower` and `upper` in [data]")
        if data.grid is not None:
            settings = {"points": round((data.upper - data.lower) / data.grid) + 1}
        return cls(float(data.lower), float(data.upper), data.missing, **settings)

    @property
    def column(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper, "missing": self.missing}

    @property
    def domain(self) -> dict[str, Any]:
        return {"k": self.points + 1}

    @property
    def names(self) -> list[str] | None:
        return [*(f"{point:.6g}" for point in np.linspace(self.lower, self.upper, self.points)), self.missing]

    @property
    def labels(self) -> list[str]:
        return ["mean", self.missing]

    @property
    def span(self) -> tuple[float, float] | None:
        return self.lower, self.upper

    @property
    def bounds(self) -> tuple[Any, Any]:
        return np.array([self.lower, 0.0]), np.array([self.upper, 1.0])

    def answer(self, values: Values, rng: Entropy) -> Values:
        gone = np.isnan(values)
        rounded = OpenNumbers(self.lower, self.upper, self.points).randomize(np.where(gone, self.lower, values), rng)
        return np.where(gone, self.points, rounded)

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        return (Symbol((Part((names[0],), "gaps", self.points + 1),)),)

    @property
    def sums(self) -> NDArray[np.float64]:
        """The part of each symbol in s - 1 and in m (2, points + 1): n is public, so s has the noise of one count."""
        place = np.append(np.linspace(-0.5, 0.5, self.points), 0.0)
        return np.array([-1.0 * (np.arange(self.points + 1) == self.points), place])

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        (less, m), sigma = noise.moments(tally, self.sums, people)
        s = 1.0 + less
        n, width = people.n, self.upper - self.lower
        held = max(float(s), 0.0)
        certain = s > CERTAIN * math.sqrt(sigma[0, 0])
        ratio = float(m / s) if certain else 0.0
        middle = min(max(ratio, -0.5), 0.5)
        # of a number u in a cell of the grid, at most a quarter of a step squared and at most (u + 1/2)(1/2 - u)
        rounding = held * min(0.25 / (self.points - 1) ** 2, 0.25 - middle**2)
        away = np.where(self.sums[0] < 0.0, 0.0, self.sums[1] - middle) ** 2
        (square,), off = noise.moments(tally, away[None], people)
        # few people far from the mean decide this: taken two of its standard errors up
        apart = min(max(0.0, float(square)) + 2.0 * math.sqrt(float(off[0, 0])), held)
        noisy = sigma + np.diag([0.0, rounding / n])
        sampled = held * max(0.0, 1.0 - held), max(0.0, apart - rounding)
        value, of_mean, beside = 0.5, 0.25, 0.0
        if certain:
            slope = np.array([-ratio, 1.0]) / float(s)
            value += ratio - (ratio * sigma[0, 0] - sigma[0, 1]) / float(s) ** 2
            of_mean, beside = max(0.0, float(slope @ noisy @ slope)), sampled[1] / (n * float(s) ** 2)
        scale = np.array([width, 1.0])
        error = scale * np.sqrt([of_mean, sigma[0, 0]])
        drawn = scale * np.sqrt([of_mean + beside, sigma[0, 0] + sampled[0] / n])
        spread = _Ratio(np.array([s, m]), noisy, sampled, self.lower, width)
        return Estimate(np.array([self.lower + width * value, 1.0 - s]), error, n, drawn, spread=spread)

    def error(self, noise: Noise, people: People) -> float:
        """Of the mean, where half of the people answer, all with a number in the middle of the last step."""
        shares = np.zeros(self.points + 1)
        shares[-3:] = 0.25, 0.25, 0.5
        return float(self.learned(noise, noise.expected(shares, people), people).standard_error[0])

    def truth(self, values: Values) -> list[float]:
        return self.recalled(self.known(values))

    def known(self, values: Values) -> Counter[str]:
        given = values[~np.isnan(values)]
        return Counter({"n": len(values), "answers": len(given), "sum": exact_sum(given)})

    def recalled(self, counted: Mapping[str, int]) -> list[float]:
        n, answers = counted["n"], counted.get("answers", 0)
        mean = float(Fraction(counted.get("sum", 0), answers << UNIT)) if answers else (self.lower + self.upper) / 2.0
        return [mean, 1.0 - answers / n]

    def described(self, private: str) -> dict[str, Any]:
        domain = f"a number between {self.lower:g} and {self.upper:g}, or {self.missing!r}"
        return {
            "kind": "nonresponse", "domain": domain, "lower": self.lower, "upper": self.upper,
            "missing": self.missing, "points": self.points,
        }  # fmt: skip

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.0, 10.0, points=3),)
