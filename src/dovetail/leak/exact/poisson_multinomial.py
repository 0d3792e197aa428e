"""The distribution of a histogram of reports that are independent but not alike, on a window of the lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.core.errors import UnsupportedError
from dovetail.core.numeric.special import Reals, bernstein_reach
from dovetail.leak.qif.arithmetic import scientific

MOST_CELLS = 12_000_000
TAIL = 1e-18


@dataclass(frozen=True, eq=False)
class IndependentReports:
    """`count` people whose reports each follow `law`."""

    count: int
    pmf: Reals  # (kinds,)


@dataclass(frozen=True, eq=False)
class TruncatedPmf:
    """Chances of histograms by the counts of all kinds but the last; `outside` bounds what was left out.

    The grid is shifted: its first cell stands for counts that do not matter to a sum over all histograms.
    """

    chances: Reals  # (width, ..) for kinds - 1 axes
    outside: float


def window_sizes(groups: list[IndependentReports]) -> tuple[list[int], list[int], float]:
    """Lowest counts and numbers of counts that hold all but `outside` of the mass (Bernstein per coordinate)."""
    from scipy.fft import next_fast_len

    people = sum(group.count for group in groups)
    mean = sum(group.count * group.pmf for group in groups)
    spread = sum(group.count * group.pmf * (1.0 - group.pmf) for group in groups)
    level = math.log(2.0 / TAIL)
    lows, sizes, outside = [], [], 0.0
    for m, v in zip(np.atleast_1d(mean)[:-1], np.atleast_1d(spread)[:-1], strict=True):
        reach = bernstein_reach(float(v), level)
        low, high = max(0, math.floor(m - reach)), min(people, math.ceil(m + reach))
        outside += 0.0 if (low, high) == (0, people) else TAIL
        lows.append(low)
        sizes.append(next_fast_len(high - low + 1, real=True))
    return lows, sizes, outside


def cell_count(groups: list[IndependentReports]) -> int:
    """How many cells `poisson_multinomial` would hold."""
    return math.prod(window_sizes(groups)[1])


def poisson_multinomial(groups: list[IndependentReports]) -> TruncatedPmf:
    r"""Distribution of the histogram of all these reports.

    .. math:: \hat T(\theta) = \prod_{\text{groups}} \Big( \sum_v W_v e^{-I \theta_v} \Big)^{h}, \qquad
              \theta_v = 2 \pi m_v / N_v

    What lies outside the window wraps around: the masses change by at most twice its tail, in total.

    Raises
    ------
    UnsupportedError
        More than 1.2e7 cells.
    """
    from scipy.fft import irfftn

    lows, sizes, outside = window_sizes(groups)
    if math.prod(sizes) > MOST_CELLS:
        raise UnsupportedError(
            f"Distribution of the other reports too large: {scientific(math.prod(sizes))} cells, the limit is "
            f"{MOST_CELLS:.0e}."
        )
    turns = [np.exp(-2j * np.pi * np.arange(size) / size) for size in sizes]
    turns[-1] = turns[-1][: sizes[-1] // 2 + 1]
    total = np.zeros([turn.size for turn in turns], dtype=np.complex128)
    for group in groups:
        if group.count == 0:
            continue
        wave = np.full(total.shape, group.pmf[-1], dtype=np.complex128)
        for axis, turn in enumerate(turns):
            shape = [1] * len(turns)
            shape[axis] = turn.size
            wave += group.pmf[axis] * turn.reshape(shape)
        wave[wave == 0.0] = 1e-300
        np.log(wave, out=wave)
        total += group.count * wave
    chances = irfftn(np.exp(total), s=sizes)
    chances = np.roll(chances, [-low for low in lows], axis=tuple(range(len(sizes))))
    return TruncatedPmf(np.maximum(chances, 0.0), outside)
