"""Discrete Laplace noise on a public grid, for one number."""

from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, ClassVar, final

from dovetail_protocol.checks import number_grid, privacy_budget, refuse
from dovetail_protocol.errors import DataError
from dovetail_protocol.exact_thresholds import Words, geometric_digits
from dovetail_protocol.mechanism import GridMechanism, exactly

FARTHEST = 1 << 62  # an encoded report is cut off there; noise beyond it has probability below e^-700

DEFAULT_STEPS = 32  # few enough for the accountant to compare all pairs of values; rounding adds little noise

_LONGEST = 1 << 52  # grid steps that the noise may typically span, so that int64 never overflows (below e^-2000)


@final
@dataclass(frozen=True)
class Laplace(GridMechanism):
    """The device's side of `dovetail.Laplace`: the geometric mechanism on a grid of m steps.

    Parameters
    ----------
    lower, upper : float, lower < upper
        Public range of the values; values outside raise DataError, nothing is clamped.
    epsilon : float, above 0 and at most 700, nats
    grid : float, optional
        Width of a step; (upper - lower) / grid must be a whole number m, at most 2^31, to within 1e-9. The default
        is m = 32, and `grid` is then the number that this makes of it.

    Notes
    -----
    A report is an int: grid steps above `lower`, not clamped. A value between two grid points is rounded to either of
    them at random, so that the mean is exact. Encoded, a report is cut off at -2^62 and 2^62, which is
    post-processing.

    Examples
    --------
    >>> laplace = Laplace(lower=0.0, upper=10.0, epsilon=1.0, grid=0.5)
    >>> laplace.point(9.75, word=0), laplace.point(9.75, word=1 << 63), laplace.decode(laplace.encode(-3))
    (20, 19, -3)
    >>> Laplace(lower=0.0, upper=8.0, epsilon=1.0).grid
    0.25
    """

    lower: float
    upper: float
    epsilon: float
    grid: float | None = None
    name: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        lower, upper, grid = number_grid(self.lower, self.upper, self.grid, steps=DEFAULT_STEPS)
        for name, value in (("lower", lower), ("upper", upper), ("grid", grid)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "epsilon", privacy_budget("epsilon", self.epsilon))
        if self.steps > self.epsilon * _LONGEST:
            wanted = f"at least {self.steps / _LONGEST:.3g} on a grid of {self.steps:,} steps"
            raise refuse("epsilon", wanted, self.epsilon)

    @property
    def steps(self) -> int:
        assert self.grid is not None
        return round((self.upper - self.lower) / self.grid)

    @property
    def rate(self) -> Fraction:
        """lambda = epsilon / m: log ratio per grid step, exactly."""
        return Fraction(self.epsilon) / self.steps

    @property
    def report_bytes(self) -> int:
        return 8

    def noise(self, words: Words) -> int:
        """Grid steps d that a report is away from its grid point."""
        return geometric(self.rate, words) - geometric(self.rate, words)

    def randomize(self, value: Any, words: Words) -> int:
        return self.point(value, words.word()) + self.noise(words)

    def encode(self, report: Any) -> bytes:
        if isinstance(report, bool) or not isinstance(report, Integral):
            raise DataError("`report` must be a whole number of grid steps.")
        return min(max(int(report), -FARTHEST), FARTHEST).to_bytes(8, signed=True)

    def decode(self, data: bytes) -> int:
        report = int.from_bytes(exactly(data, 8), signed=True)
        if abs(report) > FARTHEST:
            raise DataError("`report` must be a whole number of grid steps from -2^62 to 2^62.")
        return report


def geometric(rate: Fraction, words: Words) -> int:
    """A draw of exactly Pr[c] proportional to e^(-rate c) on all whole numbers; rate above 0."""
    return sum(law.settle(words.word(), words.word) << shift for law, shift in geometric_digits(rate))
