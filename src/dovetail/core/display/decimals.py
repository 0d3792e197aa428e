"""How many decimals an error leaves to a number, and which way a number is rounded to them."""

from decimal import Context, Decimal
from math import isfinite
from typing import Any

_MOST = 12
_UNKNOWN = 6
_EXACT = Context(prec=800)  # holds every double


def decimals_of(error: Any) -> int:
    """How many decimals show two digits of an error; 6 where it is none.

    >>> [decimals_of(error) for error in (0.012, 3.4, 0.0, 250.0)]
    [3, 1, 6, 0]
    """
    size = abs(float(error))
    if not (isfinite(size) and size):
        return _UNKNOWN
    return min(_MOST, max(0, 1 - Decimal(repr(size)).adjusted()))


def toward(value: Any, digits: int, rounding: str) -> str:
    """`value` with so many decimals, rounded as `decimal` names it: ends of intervals outwards, losses up.

    >>> toward(0.1234, 3, "ROUND_CEILING"), toward(-0.1234, 3, "ROUND_FLOOR"), toward(float("inf"), 3, "ROUND_UP")
    ('0.124', '-0.124', '∞')
    """
    number = float(value)
    if not isfinite(number):
        return {"inf": "∞", "-inf": "-∞"}.get(str(number), "–")
    rounded = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=_EXACT)
    return f"{rounded if rounded else abs(rounded):,f}"
