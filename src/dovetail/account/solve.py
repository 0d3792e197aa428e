"""Bracketing a threshold by evaluated points only."""

import math
from collections.abc import Callable


def straddle(
    excess: Callable[[float], float], guess: float, *, steepness: float, most: float, tolerance: float
) -> tuple[float, float]:
    """Two points low < high with excess(low) > 0 >= excess(high), both evaluated, apart by at most `tolerance` high.

    `excess` does not grow, up to rounding; excess(0) > 0 >= excess(most) is the caller's word, and those two points
    are returned unevaluated where nothing better is found. From `guess` a Newton step across the threshold, then
    growing steps until both sides are seen, then false position (Illinois), with bisection every fourth turn, and
    from turn 20 on always.

    Parameters
    ----------
    guess, most : float, above 0
    steepness : float, above 0
        About -d excess / d log x near the threshold; a wrong one costs time only.
    tolerance : float
        Relative width of the answer.
    """
    low, high, low_value, high_value = 0.0, most, math.inf, -math.inf
    x, stride = min(max(guess, 1e-300), most * (1.0 - 1e-12)), 0.0
    for turn in range(120):
        value = excess(x)
        if value > 0.0:
            low, low_value, high_value = x, value, 0.5 * high_value
        else:
            high, high_value, low_value = x, value, 0.5 * low_value
        if high - low <= tolerance * high:
            break
        if low == 0.0 or high == most:  # one side is still unseen
            stride = 2.0 * stride if stride else min(1.001 * abs(value) / steepness, 1.0) + 0.5 * tolerance
            x *= math.exp(min(stride, 30.0) if value > 0.0 else -min(stride, 30.0))
            x = x if x < most else 0.5 * (low + most)
        else:
            x = _between(low, high, low_value, high_value, 0.4 * tolerance * high, halve=turn % 4 == 3 or turn > 20)
    return low, high


def _between(low: float, high: float, low_value: float, high_value: float, edge: float, *, halve: bool) -> float:
    """False position kept `edge` away from both ends, or the middle (geometric while the ends are far apart)."""
    fall = low_value - high_value
    if halve or not math.isfinite(fall) or fall <= 0.0:
        return math.sqrt(low) * math.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)
    return min(max(low + (high - low) * low_value / fall, low + edge), high - edge)
