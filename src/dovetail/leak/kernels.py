"""Sums over histograms and maximum loads, compiled: imported when they are computed with."""

from __future__ import annotations

import numpy as np

from dovetail.core.channel import Matrix
from dovetail.core.compiled import njit
from dovetail.core.special import Reals
from dovetail.leak.dft_inversion import Waves

# Sums over histograms, compiled: imported when they are computed with.


@njit(cache=True, nogil=True)
def depth_first_sum(advantage: Matrix, tables: Reals, n: int) -> float:
    """Depth first; tables[i, N, z]: chance that z of N reports that are of kinds i.. are of kind i."""
    actions, kinds = advantage.shape
    last = kinds - 2
    count, left, weight = np.zeros(last + 1, np.int64), np.zeros(last + 1, np.int64), np.ones(last + 1)
    gain = np.zeros((last + 1, actions))
    left[0], count[0], level, total = n, -1, 0, 0.0
    while level >= 0:
        if level == last:  # the last two kinds share what is left: one row of the table
            row, balls = 0.0, left[level]
            for z in range(balls + 1):
                best = 0.0
                for a in range(actions):
                    value = gain[level, a] + advantage[a, last] * z + advantage[a, last + 1] * (balls - z)
                    best = max(best, value)
                row += tables[last, balls, z] * best
            total += weight[level] * row
            level -= 1
            continue
        count[level] += 1  # one report more of this kind; back up where there is none
        z = count[level]
        if z > left[level]:
            level -= 1
            continue
        # go down: the weight, the reports and the gains that the next kind begins with
        weight[level + 1] = weight[level] * tables[level, left[level], z]
        left[level + 1] = left[level] - z
        for a in range(actions):
            gain[level + 1, a] = gain[level, a] + advantage[a, level] * z
        level += 1
        count[level] = -1
    return total


@njit(cache=True, nogil=True)
def row_sums(
    base: Matrix, slope: Reals, rest: Reals, start: Reals, weight: Reals, odds: float, least: float, upward: bool
) -> Reals:
    """For each row the sum of weight (max_a base_a + slope_a z)^+ from its start on, while weight >= least."""
    sums = np.zeros(rest.size)
    for row in range(rest.size):
        balls, z, chance, total = rest[row], start[row], weight[row], 0.0
        while chance >= least and 0.0 <= z <= balls:
            best = 0.0
            for a in range(slope.size):
                best = max(best, base[row, a] + slope[a] * z)
            total += chance * best
            if upward:
                chance *= (balls - z) / (z + 1.0) * odds
                z += 1.0
            else:
                chance *= z / ((balls - z + 1.0) * odds)
                z -= 1.0
        sums[row] = total
    return sums


# The double sum of the maximum load for few bins, compiled: imported when it is computed with.


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
        # the rotations of this node, as products of two
        for i in range(width):
            fine[i] = np.exp(1j * theta[j] * i)
        for i in range(coarse.size):
            coarse[i] = np.exp(1j * theta[j] * (offset + width * i))
        psi, full, missing = np.exp(exponent[j]), terms[0] * np.exp(k * exponent[j]).real, 0j
        for high in range(coarse.size - 1, -1, -1):
            for low in range(min(width, pmf.size - high * width) - 1, -1, -1):
                place = high * width + low
                missing += pmf[place] * (coarse[high] * fine[low])  # t_m, the terms from `place` on
                if place < count:
                    # the polynomial in psi_m and t_m by Horner's rule, then psi_m to the power that is left
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
