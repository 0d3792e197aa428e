"""Range checks for parameters, with one form of message; free of numpy."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from dovetail_protocol.errors import ParameterError


def refuse(name: str, wanted: str, got: object, *, hint: str = "") -> ParameterError:
    """The error for a parameter outside its range, ready to be raised."""
    shown = " ".join(line.strip() for line in repr(got).splitlines())  # a table has several
    return ParameterError(f"`{name}` must be {wanted}, got {shown}{hint}{'' if hint.endswith('?') else '.'}")


def nearest(name: object, known: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest known one, or what is known.

    >>> nearest("kr", ["krr", "unary"])
    "; did you mean 'krr'?"
    """
    names = list(known)
    close = get_close_matches(str(name), names, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"; known: {', '.join(names[:12])}{more}" if names else ""


def whole(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """`value` as an int in [least, most]; booleans and fractions are refused.

    >>> whole("k", 4, least=2)
    4
    """
    wanted = f"a whole number, at least {least}" + ("" if most is None else f" and at most {most}")
    if isinstance(value, bool) or not isinstance(value, Real):
        raise refuse(name, wanted, value)
    if not isinstance(value, Integral) and not float(value).is_integer():
        raise refuse(name, wanted, value)  # but 1e6 is a whole number to everybody who types it
    number = int(value) if isinstance(value, Integral) else int(float(value))
    if number < least or (most is not None and number > most):
        raise refuse(name, wanted, number)
    return number


def real(name: str, value: Any, *, wanted: str = "a finite number") -> float:
    """`value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise refuse(name, wanted, value)
    try:
        result = float(value)
    except OverflowError:  # a whole number beyond the doubles
        raise refuse(name, wanted, value) from None
    if not math.isfinite(result):
        raise refuse(name, wanted, value)
    return result


def positive(name: str, value: Any) -> float:
    """`value` as a finite float above 0."""
    result = real(name, value, wanted="a finite number above 0")
    if result <= 0.0:
        raise refuse(name, "a finite number above 0", value)
    return result


def not_negative(name: str, value: Any) -> float:
    """`value` as a finite float, at least 0."""
    result = real(name, value, wanted="a finite number, at least 0")
    if result < 0.0:
        raise refuse(name, "a finite number, at least 0", value)
    return result


def probability(name: str, value: Any) -> float:
    """`value` as a float strictly between 0 and 1."""
    result = real(name, value, wanted="a number strictly between 0 and 1")
    if not 0.0 < result < 1.0:
        raise refuse(name, "a number strictly between 0 and 1", value)
    return result


def share(name: str, value: Any) -> float:
    """`value` as a float, at least 0 and below 1."""
    result = real(name, value, wanted="at least 0 and below 1")
    if not 0.0 <= result < 1.0:
        raise refuse(name, "at least 0 and below 1", value)
    return result


def privacy_budget(name: str, value: Any, *, most: float = 700.0) -> float:
    """A local epsilon: above 0 and at most `most` nats (e^700 is about the largest double)."""
    wanted = f"a number above 0 and at most {most:g} (nats)"
    result = real(name, value, wanted=wanted)
    if not 0.0 < result <= most:
        raise refuse(name, wanted, value)
    return result


MOST_STEPS = 1 << 31  # of a grid of numbers
LEAST_RANGE, MOST_RANGE = 1e-75, 1e75  # whose fourth powers, in errors of variances, are numbers still


def range_between(low: float, high: float, *, lower: str = "lower", upper: str = "upper") -> float:
    """How wide a public range of numbers is, which errors of variances can be told for.

    >>> range_between(0.0, 25.0)
    25.0
    """
    if not LEAST_RANGE <= high - low <= MOST_RANGE:
        end = f"`{lower}` = {low!r}" if lower else repr(low)
        raise refuse(upper, f"above {end} by {LEAST_RANGE:g} to {MOST_RANGE:g}", high)
    return high - low


def number_range(lower: Any, upper: Any, grid: Any) -> tuple[float, float, float | None]:
    """A public range of numbers, and the width of a step of its grid: a whole fraction of it, or None.

    >>> number_range(0, 10, 0.5)
    (0.0, 10.0, 0.5)
    """
    low, high = real("lower", lower), real("upper", upper)
    range_between(low, high)
    if grid is None:
        return low, high, None
    step = positive("grid", grid)
    steps = (high - low) / step
    if not (0.5 < steps < MOST_STEPS + 0.5) or abs(steps - round(steps)) > 1e-9 * steps:
        raise refuse("grid", f"a whole fraction 1/m of the range {high - low!r}, m at most {MOST_STEPS:,}", step)
    return low, high, step


def number_grid(lower: Any, upper: Any, grid: Any, *, steps: int) -> tuple[float, float, float]:
    """A public range of numbers and the width of a step of its grid; without one, so that it has so many `steps`."""
    low, high, step = number_range(lower, upper, grid)
    return (low, high, step) if step is not None else number_grid(low, high, (high - low) / steps, steps=steps)
