"""The double sum of the maximum load for few bins: by numpy where it is short, else in a compiled loop."""

from __future__ import annotations

import numpy as np

from dovetail.core.numeric.compiled import COMPILED
from dovetail.core.numeric.special import Reals
from dovetail.leak.max_load.dft_inversion import Waves, phase_factors

SHORT = (
    1 << 20
)  # terms that numpy adds up in a tenth of a second; loading the compiled loop takes three times as long


def sum_few_bins(
    theta: Reals, weights: Reals, exponent: Waves, pmf: Reals, offset: float, count: int, k: int, terms: Reals
) -> Reals:
    """For every m: sum of weight Re[terms_0 psi_inf^k - sum_j terms_j psi_m^(k-j) t_m^j]; terms_0 alone: the maximum.

    Powers are products. Where there is no compiler, numpy adds up one piece of the nodes after the other.
    """
    if theta.size * pmf.size > SHORT and COMPILED:
        from dovetail.leak.max_load import kernels

        return np.asarray(kernels.sum_few_bins(theta, weights, exponent, pmf, offset, count, k, terms))
    total, size = np.zeros(count), max(1, SHORT // pmf.size)
    for piece in (slice(start, start + size) for start in range(0, theta.size, size)):
        total += _sum_arrays(theta[piece], weights[piece], exponent[piece], pmf, offset, count, k, terms)
    return total


def _sum_arrays(
    theta: Reals, weights: Reals, exponent: Waves, pmf: Reals, offset: float, count: int, k: int, terms: Reals
) -> Reals:
    turns = phase_factors(theta, offset, pmf.size) * pmf
    missing = np.cumsum(turns[:, ::-1], axis=1)[:, ::-1][:, :count]  # t_m = sum over i > m
    base = np.exp(exponent)[:, None] - missing
    mixed, other = np.full(missing.shape, terms[0], dtype=np.complex128), missing
    for term in terms[1:]:
        mixed, other = mixed * base + term * other, other * missing
    left = k - terms.size + 1
    while left:
        if left & 1:
            mixed = mixed * base
        base, left = base * base, left >> 1
    full = terms[0] * np.exp(k * exponent).real[:, None]
    return np.asarray((weights[:, None] * (full - mixed.real)).sum(axis=0))
