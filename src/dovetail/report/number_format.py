"""Numbers as people read them: a promise is rounded up, what nothing can beat down, an interval outwards."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, NamedTuple

from dovetail.core import display
from dovetail.core.display import quantize, strip
from dovetail.core.errors import ParameterError

Document = dict[str, Any]  # report.json as loaded

ABSENT = "–"


def round_up(value: float, digits: int) -> float:
    """Smallest number with `digits` decimals that is at least `value`.

    `value` is read as its shortest decimal form, the one in report.json: 0.1 stays 0.1.

    Examples
    --------
    >>> round_up(0.12301, 3), round_up(2.0, 3), round_up(0.1, 1)
    (0.124, 2.0, 0.1)
    """
    if math.isnan(value):
        raise ParameterError("`value` must be a number, got nan.")
    return value if math.isinf(value) else float(quantize(Decimal(repr(float(value))), digits, ROUND_CEILING))


def upward(value: Any) -> str:
    """A privacy loss, to be read as "at most": three significant digits, rounded up."""
    return ABSENT if missing_reason(value) is not None else display.upward(value)


def downward(value: Any) -> str:
    """What nothing can beat, to be read as "at least": three significant digits, rounded down."""
    return ABSENT if missing_reason(value) is not None else display.downward(value)


def percent(value: Any, rounding: str = ROUND_HALF_EVEN) -> str:
    """A probability in percent with at most two decimals."""
    if missing_reason(value) is not None or not math.isfinite(float(value)):
        return ABSENT
    return strip(quantize(Decimal(repr(float(value))).scaleb(2), 2, rounding)) + "%"


def percent_up(value: Any) -> str:
    """A probability that is a loss: rounded up."""
    return percent(value, ROUND_CEILING)


def odds(epsilon: Any) -> str:
    """The factor e^epsilon by which odds may shift, rounded up."""
    loss = float(epsilon)
    return upward(math.exp(loss) if loss < 700.0 else math.inf)


def missing_reason(block: Any) -> str | None:
    """Why a part of the document does not apply; None where it does."""
    if block is None:
        return "not stated"
    if isinstance(block, dict) and "value" in block and block["value"] is None:
        return str(block.get("reason") or "not stated")
    return None


class Unit(NamedTuple):
    """How estimates are written: shares in percent, means as they are; the error decides the decimals."""

    shift: int
    sign: str

    @classmethod
    def of(cls, measure: str) -> "Unit":
        """The unit of a measure."""
        return cls(2, "%") if measure == "share" else cls(0, "")

    def __call__(self, value: Any, error: Any, rounding: str = ROUND_HALF_EVEN) -> str:
        if missing_reason(value) is not None or not math.isfinite(float(value)):
            return ABSENT
        scale = 0.0 if missing_reason(error) is not None else float(error)
        power = Decimal(repr(scale)).adjusted() + self.shift if 0.0 < scale < math.inf else -1
        number = Decimal(repr(float(value))).scaleb(self.shift)
        return f"{quantize(number, max(0, 1 - power), rounding):,f}{self.sign}"

    def interval(self, ends: Any, error: Any) -> str:
        """Both ends, rounded outwards."""
        if missing_reason(ends) is not None:
            return ABSENT
        return f"{self(ends[0], error, ROUND_FLOOR)} to {self(ends[1], error, ROUND_CEILING)}"


def display_name(name: str) -> str:
    """A name of the program as words."""
    return name.replace("_", " ")
