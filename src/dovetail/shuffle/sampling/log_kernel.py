"""-log(w / 2^64) of many words with a proven error, in loops that compilers turn into vector instructions."""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.compiled import njit

Numbers = NDArray[np.float64]

ERROR = 2e-15  # |minus_logs(w) - L| <= ERROR (1 + L) for L = -log(w / 2^64)

_LOG2 = 0.6931471805599453
_SQRT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # bits of the double


@njit(cache=True, nogil=True, error_model="numpy")
def minus_logs(numbers: Numbers, exponents: Numbers, count: int) -> None:
    r"""Replace the first `count` numbers w, whole and 1 to 2^64, by -log(w / 2^64).

    .. math:: w = 2^e m, \quad \sqrt{1/2} \le m < \sqrt2, \quad
              \log m = 2 \sum_{i \ge 0} \frac{s^{2i+1}}{2i+1}, \quad s = \frac{m-1}{m+1}

    Parameters
    ----------
    numbers : float array (at least count,), contiguous
    exponents : float array (at least count,)
        Room for the exponents e.

    Notes
    -----
    Rounding a 64-bit word to a double moves the logarithm by at most 2^-53. As s^2 < 0.0295, the terms left out are
    below 3e-17 of the sum; a dozen roundings of at most 2^-53 each make the rest. Where e = 64 nothing cancels. Each
    loop does one kind of step for all numbers, because a loop that changes between integers and doubles is not
    vectorized; the bits of a double are read and written through a view of the same memory.
    """
    bits = numbers.view(np.uint64)
    for i in range(count):
        exponent = np.int64(bits[i] - _SQRT_HALF) >> np.int64(52)
        bits[i] -= np.uint64(exponent << 52)
        exponents[i] = np.float64(exponent)
    for i in range(count):
        m = numbers[i]
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
        numbers[i] = (64 - exponents[i]) * _LOG2 - 2.0 * (s + s * z * series)
