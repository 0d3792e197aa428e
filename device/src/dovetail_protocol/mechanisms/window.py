"""The window mechanism for one number: a whole number of grid steps near the value, or anywhere."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, final

from dovetail_protocol.checks import number_range, privacy_budget, whole
from dovetail_protocol.errors import ParameterError
from dovetail_protocol.exact_thresholds import WORD, Words, exp_bracket
from dovetail_protocol.mechanism import GridMechanism, pack, size, unpack

DEFAULT_STEPS = 1 << 16


@final
@dataclass(frozen=True)
class Window(GridMechanism):
    """The device's side of `dovetail.Window`: a report in a window of W outputs at the value, or anywhere.

    Parameters
    ----------
    lower, upper : float, lower < upper
        Public range of the values; values outside raise DataError, nothing is clamped.
    epsilon : float, above 0 and at most 700, nats
    window : int, 1 to m, optional
        W, outputs that the value makes likelier. The default is about m / (e^epsilon / 2)^(1/3), the most accurate.
    grid : float, optional
        Width of a step; (upper - lower) / grid must be a whole number m, at most 2^31, to within 1e-9. The default
        is m = 65536.

    Notes
    -----
    A report is an int in 0..m + W - 1. A value between two grid points is rounded to either of them at random.

    Examples
    --------
    >>> window = Window(lower=0.0, upper=10.0, epsilon=2.0, window=3, grid=1.0)
    >>> window.outputs, window.report_bytes, window.decode(window.encode(12))
    (13, 1, 12)
    """

    lower: float
    upper: float
    epsilon: float
    window: int | None = None
    grid: float | None = None
    name: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        lower, upper, grid = number_range(self.lower, self.upper, self.grid)
        epsilon = privacy_budget("epsilon", self.epsilon)
        for name, value in (("lower", lower), ("upper", upper), ("grid", grid), ("epsilon", epsilon)):
            object.__setattr__(self, name, value)
        if self.window is not None:
            object.__setattr__(self, "window", whole("window", self.window, least=1, most=self.steps))
        inside, low = self.masses
        if inside <= self.width * low:
            raise ParameterError(
                f"`epsilon` = {epsilon!r} with {self.steps:,} grid steps is too small for 64-bit probabilities: "
                "outputs in the window would be no likelier than others. Use a coarser `grid`."
            )

    @property
    def steps(self) -> int:
        return DEFAULT_STEPS if self.grid is None else round((self.upper - self.lower) / self.grid)

    @property
    def width(self) -> int:
        """W, outputs in a window."""
        return best_width(self.steps, self.epsilon) if self.window is None else self.window

    @property
    def outputs(self) -> int:
        """m + W, reports that can be sent."""
        return self.steps + self.width

    @property
    def masses(self) -> tuple[int, int]:
        """(inside, low) out of inside + m low = 2^64: of all W outputs in the window, and of each other one."""
        return window_masses(self.steps, self.width, self.epsilon)

    def stated(self) -> dict[str, Any]:
        return {**super().stated(), "window": self.width, "grid": self.step}

    @property
    def report_bytes(self) -> int:
        return size(self.outputs)

    def randomize(self, value: Any, words: Words) -> int:
        start, (inside, low) = self.point(value, words.word()), self.masses
        word = words.word()
        if word < WORD - inside:  # one of the m outputs behind the window, around the end
            return (start + self.width + word // low) % self.outputs
        return start + words.below(self.width)

    def encode(self, report: Any) -> bytes:
        return pack(report, self.outputs)

    def decode(self, data: bytes) -> int:
        return unpack(data, self.outputs)


@lru_cache(maxsize=256)  # of public parameters only
def window_masses(steps: int, width: int, epsilon: float) -> tuple[int, int]:
    r"""Whole masses (inside, low) with inside + m low = 2^64 and inside / (W low) <= e^epsilon, as near as can be.

    .. math:: \mathrm{low} = \lceil 2^{64} / (W e^{\epsilon} + m) \rceil

    >>> inside, low = window_masses(10, 3, 2.0)
    >>> inside + 10 * low == 1 << 64, round(inside / (3 * low), 9)
    (True, 7.389056099)
    """
    low = int(-(-WORD // (width * exp_bracket(Fraction(epsilon))[0] + steps)))
    return WORD - steps * low, low


@lru_cache(maxsize=256)
def best_width(steps: int, epsilon: float) -> int:
    r"""W of about the least variance at the worst value, of one report and of shuffled ones alike; 1 to m.

    .. math:: 2 r^3 - r = e^{\epsilon}, \quad r = \frac{m}{W}, \quad W \text{ rounded}

    To within 0.03 % of the least standard error on a fine grid, for every epsilon. Decided in fractions, so that
    device and analyst agree.

    >>> best_width(1000, 2.0)
    605
    """
    p = exp_bracket(Fraction(epsilon))[0]
    low, high = 1, steps + 1  # W rounds to at least `low` and to less than `high`
    while high - low > 1:
        middle = (low + high) // 2
        edge = 2 * middle - 1  # twice the width that is rounded up to it
        fits = 16 * steps**3 - 2 * steps * edge**2 >= p * edge**3
        low, high = (middle, high) if fits else (low, middle)
    return low
