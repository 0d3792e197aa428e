"""Numbers as people read them: a promise is rounded up, what nothing can beat down, an interval outwards."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, NamedTuple

from dovetail.core import display
from dovetail.core.display import quantize, strip
from dovetail.core.errors import DovetailError
from dovetail.core.registry import Registry

Document = dict[str, Any]  # report.json as loaded

ABSENT = "–"


def upward(value: Any) -> str:
    """A privacy loss, to be read as "at most": three significant digits, rounded up."""
    return ABSENT if missing_reason(value) is not None else display.upward(value)


def downward(value: Any) -> str:
    """Format a lower bound: three significant digits, rounded down."""
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
    """Reason why a part of the document does not apply; None where it does."""
    if block is None:
        return "not stated"
    if isinstance(block, dict) and "value" in block and block["value"] is None:
        return str(block.get("reason") or "not stated")
    return None


class Unit(NamedTuple):
    """Format of estimates: shares in percent, means as they are; the error decides the decimals."""

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


def label_of(kind: Registry[Any], name: str) -> str:
    """The label of a mechanism, for sentences; its name as words where it is not installed here."""
    try:
        return str(kind[name].label)
    except DovetailError:
        return display_name(name)


def plain_number(text: Any) -> str:
    """A group as people write it: 22 for 22.0.

    >>> plain_number("22.0"), plain_number("17.5"), plain_number("v2.0")
    ('22', '17.5', 'v2.0')
    """
    whole = str(text).removesuffix(".0")
    return whole if whole.lstrip("-").isdigit() else str(text)
