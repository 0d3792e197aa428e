"""-log(w / 2^64) with a proven error, in arithmetic that compilers turn into vector instructions."""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

ERROR = 2e-15  # |minus_log(w) - L| <= ERROR (1 + L) for L = -log(w / 2^64)

_LOG2 = 0.6931471805599453
_SQRT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # bits of the double


@intrinsic
def _bits_of(typing: Any, number: Any) -> Any:
    """The bits of a double."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@intrinsic
def _double_of(typing: Any, bits: Any) -> Any:
    """The double with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate


_bits: Any = _bits_of
_double: Any = _double_of


@njit(cache=True, nogil=True, inline="always")
def minus_log(word: np.uint64) -> float:
    r"""-log(w / 2^64) for w >= 1.

    .. math:: w = 2^e m, \quad \sqrt{1/2} \le m < \sqrt2, \quad
              \log m = 2 \sum_{i \ge 0} \frac{s^{2i+1}}{2i+1}, \quad s = \frac{m-1}{m+1}

    Notes
    -----
    Rounding w to a double moves the logarithm by at most 2^-53. As s^2 < 0.0295, the terms left out are below 3e-17
    of the sum; a dozen roundings of at most 2^-53 each make the rest. Where e = 64 nothing cancels.
    """
    bits = _bits(np.float64(word))
    exponent = np.int64(bits - _SQRT_HALF) >> np.int64(52)
    m = _double(bits - np.uint64(exponent << 52))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = 1 / 19.0
    series = series * z + 1 / 17.0
    series = series * z + 1 / 15.0
    series = series * z + 1 / 13.0
    series = series * z + 1 / 11.0
    series = series * z + 1 / 9.0
    series = series * z + 1 / 7.0
    series = series * z + 1 / 5.0
    series = series * z + 1 / 3.0
    result: float = (64 - np.float64(exponent)) * _LOG2 - 2.0 * (s + s * z * series)
    return result
