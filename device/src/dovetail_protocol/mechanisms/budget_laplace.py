"""The budget-aware mechanism of RASE for one number: clamped Laplace noise where the budget cannot be precise."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, ClassVar, Literal, final, get_args

from dovetail_protocol.checks import number_grid, probability, refuse
from dovetail_protocol.errors import DataError, UnsupportedError
from dovetail_protocol.exact_thresholds import Words, exp_bracket
from dovetail_protocol.mechanism import Mechanism
from dovetail_protocol.mechanisms.laplace import Laplace

DEFAULT_STEPS = 1024

Precision = Literal["guaranteed", "published"]


@final
@dataclass(frozen=True)
class BudgetLaplace(Mechanism):
    """The device's side of `dovetail.BudgetLaplace`: `Laplace`, clamped to the range unless epsilon is precise.

    Parameters
    ----------
    lower, upper, epsilon
        As for `Laplace`, whose noise this is.
    grid : float, optional
        As for `Laplace`, but the default is m = 1024, and values are rounded to the nearest grid point: rounding at
        random moves a value by up to a whole step, which few precision intervals have room for.
    beta : float strictly between 0 and 1
        Relative half-width of the precision interval.
    rho : float strictly between 0 and 1
        Probability with which a report must lie in it.
    precision : "guaranteed" or "published"
        Whether it must hold for every value of the range, or as printed in the paper, which is for the value farthest
        from zero.

    Raises
    ------
    UnsupportedError
        "guaranteed" for a range that touches or crosses zero, or for a grid too coarse to hold the interval.

    Notes
    -----
    A report is an int: 0..m if `clamps`, any whole number of grid steps otherwise; 8 bytes in both cases.

    Examples
    --------
    >>> BudgetLaplace(lower=3.9, upper=178.3, epsilon=4.5, beta=0.5, rho=0.9).clamps
    True
    """

    lower: float
    upper: float
    epsilon: float
    beta: float
    rho: float
    precision: Precision = "guaranteed"
    grid: float | None = None
    name: ClassVar[str] = "budget_laplace"

    def __post_init__(self) -> None:
        _, _, grid = number_grid(self.lower, self.upper, self.grid, steps=DEFAULT_STEPS)
        object.__setattr__(self, "grid", grid)
        noise = self.noise
        for name in ("lower", "upper", "epsilon", "grid"):
            object.__setattr__(self, name, getattr(noise, name))
        object.__setattr__(self, "beta", probability("beta", self.beta))
        object.__setattr__(self, "rho", probability("rho", self.rho))
        if not isinstance(self.precision, str) or self.precision not in get_args(Precision):
            raise refuse("precision", '"guaranteed" or "published"', self.precision)
        if self.precision == "guaranteed":
            self._refuse_what_no_budget_guarantees()

    def _refuse_what_no_budget_guarantees(self) -> None:
        if self.lower <= 0.0 <= self.upper:
            raise UnsupportedError(
                f"No epsilon guarantees a relative precision on [{self.lower!r}, {self.upper!r}]: the interval "
                'shrinks to a point at 0. Move the range away from zero, or ask for precision="published".'
            )
        if self.reach < 0:
            raise UnsupportedError(
                f"This precision cannot be guaranteed by our bound on a grid of {self.noise.steps:,} steps: rounding "
                "alone may leave the interval. Use a grid of at most "
                f"{2 * self.beta * min(abs(self.lower), abs(self.upper)):.4g}."
            )

    @property
    def noise(self) -> Laplace:
        """The mechanism without clamping."""
        return Laplace(lower=self.lower, upper=self.upper, epsilon=self.epsilon, grid=self.grid)

    @property
    def reach(self) -> int:
        r"""k, whole steps of noise that stay in every value's interval even after rounding; negative if none do.

        .. math:: k = \Bigl\lfloor \frac{\beta\, x_{\min}}{\mathrm{step}} - \frac12 \Bigr\rfloor
        """
        nearest = 0.0 if self.lower <= 0.0 <= self.upper else min(abs(self.lower), abs(self.upper))
        step = (Fraction(self.upper) - Fraction(self.lower)) / self.noise.steps
        return floor(Fraction(self.beta) * Fraction(nearest) / step - Fraction(1, 2))

    @property
    def clamps(self) -> bool:
        r"""True if reports are clamped to the range: epsilon does not certainly meet the precision, which needs

        .. math:: \frac{2 t^{k+1}}{1 + t} \le 1 - \rho, \quad t = e^{-\epsilon / m} \text{ (guaranteed)}, \qquad
                  e^{-\epsilon \beta x_{\max} / \Delta} \le 1 - \rho \text{ (published)}

        Decided in fractions, rounded against meeting it, so that device and analyst always agree.
        """
        budget, beta, missed = Fraction(self.epsilon), Fraction(self.beta), 1 - Fraction(self.rho)
        if self.precision == "published":
            farthest = Fraction(max(abs(self.lower), abs(self.upper)))
            return _decay(budget * beta * farthest / (Fraction(self.upper) - Fraction(self.lower))) > missed
        rate = self.noise.rate
        return 2 * _decay((self.reach + 1) * rate) > missed * (1 + exp_bracket(-rate)[0])

    @property
    def report_bytes(self) -> int:
        return self.noise.report_bytes

    def check(self, value: Any) -> float:
        return self.noise.check(value)

    def nearest(self, value: Any) -> int:
        """Grid point i(x) in 0..m of a value in [lower, upper]; ties go to the even one."""
        return round((self.check(value) - self.lower) / (self.upper - self.lower) * self.noise.steps)

    def randomize(self, value: Any, words: Words) -> int:
        report = self.nearest(value) + self.noise.noise(words)
        return min(max(report, 0), self.noise.steps) if self.clamps else report

    def encode(self, report: Any) -> bytes:
        data = self.noise.encode(report)
        self._refuse_outside(report)
        return data

    def decode(self, data: bytes) -> int:
        report = self.noise.decode(data)
        self._refuse_outside(report)
        return report

    def _refuse_outside(self, report: int) -> None:
        if self.clamps and not 0 <= report <= self.noise.steps:
            raise DataError(f"`report` must be a whole number in 0..{self.noise.steps}.")


def _decay(exponent: Fraction) -> Fraction:
    """An upper bound of e^-exponent, hardly larger; beyond 64, where it is below every 1 - rho, that of e^-64."""
    return exp_bracket(-min(exponent, Fraction(64)))[1]
