"""What people lose, in digits: rounded up, the same digits in terminal, notebook, report and plan.

Losses have three significant digits. A guess is shown in percent with as many decimals as two digits of its gain over
the blind guess need, from two to four, so that a gain of a thousandth of a point does not look like none.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import NamedTuple

DIGITS = 3
EXACT = Context(prec=800)  # holds every double
_FEWEST, _MOST = 2, 4


def upward(value: float) -> str:
    """A privacy loss, to be read as "at most": three significant digits, rounded up.

    >>> upward(0.12301), upward(2.0), upward(1e-6), upward(float("inf"))
    ('0.124', '2', '10⁻⁶', '∞')
    """
    return _significant(float(value), ROUND_CEILING)


def downward(value: float) -> str:
    """What nothing can beat, to be read as "at least": three significant digits, rounded down."""
    return _significant(float(value), ROUND_FLOOR)


class Guess(NamedTuple):
    """A guess at one person's value: both chances in percent, the gain in percentage points and as a factor."""

    best: str
    blind: str
    points: str
    times: str


def guess_in_words(best: float, blind: float) -> Guess:
    """The chance of the best guess and its gain, rounded up, beside the chance of the blind guess.

    >>> guess_in_words(0.34528, 1 / 3)
    Guess(best='34.53%', blind='33.33%', points='1.2', times='1.0359')
    >>> guess_in_words(0.2000123, 0.2)
    Guess(best='20.0013%', blind='20%', points='0.0013', times='1.0001')
    """
    high, low = (Decimal(repr(float(chance))).scaleb(2) for chance in (best, blind))
    gain = max(high - low, Decimal(0))
    decimals = min(_MOST, max(_FEWEST, 1 - gain.adjusted())) if gain else _FEWEST
    times = Decimal(repr(float(best) / float(blind))) if low else Decimal(1)
    return Guess(
        strip(quantize(high, decimals, ROUND_CEILING)) + "%",
        strip(quantize(low, decimals, ROUND_HALF_EVEN)) + "%",
        strip(quantize(gain, decimals, ROUND_CEILING)),
        strip(quantize(times, 4, ROUND_CEILING)),
    )


def error_in_words(error: float, *, share: bool) -> str:
    """What an estimate may be off: two significant digits, rounded up; of a share in percent.

    >>> error_in_words(0.0201, share=True), error_in_words(12.31, share=False)
    ('2.1%', '13')
    """
    if not math.isfinite(error):
        return "∞"
    exact = Decimal(repr(float(error))).scaleb(2 if share else 0)
    decimals = max(0, 1 - exact.adjusted()) if exact else 0
    return f"{strip(quantize(exact, decimals, ROUND_CEILING))}{'%' if share else ''}"


def quantize(value: Decimal, digits: int, rounding: str) -> Decimal:
    """`value` with so many decimals."""
    return value.quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=EXACT)


def strip(value: Decimal) -> str:
    """A number with separators and without the zeros at its end."""
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _significant(number: float, rounding: str) -> str:
    if math.isinf(number):
        return "∞"
    exact = Decimal(repr(number))
    if not exact:
        return "0"
    power = exact.adjusted()
    if -4 <= power < 6:
        return strip(quantize(exact, max(0, DIGITS - 1 - power), rounding))
    mantissa = quantize(exact.scaleb(-power), DIGITS - 1, rounding)
    if mantissa == 10:
        mantissa, power = Decimal(1), power + 1
    exponent = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{exponent}" if mantissa == 1 else f"{strip(mantissa)} × 10{exponent}"
