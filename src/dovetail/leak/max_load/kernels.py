"""The double sum of the maximum load for few bins, compiled: imported when it is computed with."""

from __future__ import annotations

import numpy as np

from dovetail.core.numeric.compiled import njit
from dovetail.core.numeric.special import Reals
from dovetail.leak.max_load.dft_inversion import Waves


@njit(cache=True, nogil=True)
def sum_few_bins(
    theta: Reals, weights: Reals, exponent: Waves, pmf: Reals, offset: float, count: int, k: int, terms: Reals
) -> Reals:
    """For every m: sum of weight Re[terms_0 psi_inf^k - sum_j terms_j psi_m^(k-j) t_m^j]; terms_0 alone: the maximum.

    One pass per node from the far end of the window; a rotation is a product of two from short tables.
    """
    total = np.zeros(count)
    width = int(np.sqrt(pmf.size)) + 1
    fine, coarse = np.empty(width, np.complex128), np.empty(pmf.size // width + 1, np.complex128)
    for j in range(theta.size):
        for i in range(width):
            fine[i] = np.exp(1j * theta[j] * i)
        for i in range(coarse.size):
            coarse[i] = np.exp(1j * theta[j] * (offset + width * i))
        psi, full, missing = np.exp(exponent[j]), terms[0] * np.exp(k * exponent[j]).real, 0j
        for high in range(coarse.size - 1, -1, -1):
            for low in range(min(width, pmf.size - high * width) - 1, -1, -1):
                place = high * width + low
                missing += pmf[place] * (coarse[high] * fine[low])
                if place < count:
                    base = psi - missing
                    mixed, other = terms[0] + 0j, missing
                    for i in range(1, terms.size):
                        mixed = mixed * base + terms[i] * other
                        other *= missing
                    power, left = mixed, k - terms.size + 1
                    while left:
                        if left & 1:
                            power *= base
                        base *= base
                        left >>= 1
                    total[place] += weights[j] * (full - power.real)
    return total
