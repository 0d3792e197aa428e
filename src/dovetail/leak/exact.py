"""Exact sums over histograms of reports: in fractions, and on the window that matters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np

from dovetail.core.channel import KRRChannel, Matrix
from dovetail.core.checks import refuse, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals, bernstein_reach, binomial_log_pmf, binomial_pmf
from dovetail.leak.qif.inputs import scientific

# Exact vulnerability in fractions, for up to 200 people: the reference for every other method.


MOST_PEOPLE = 200


@dataclass(frozen=True)
class ExactVulnerability:
    """The four vulnerabilities of `vulnerability` as fractions.

    Parameters
    ----------
    prior, randomized, shuffled, randomized_shuffled : Fraction
    """

    prior: Fraction
    randomized: Fraction
    shuffled: Fraction
    randomized_shuffled: Fraction


def exact_vulnerability(channel: KRRChannel, *, n: int) -> ExactVulnerability:
    r"""Uniform prior, one try, k-ary randomized response with p at least 1/k, up to 200 people.

    .. math:: V_S = \frac1n \sum_{m \ge 0} \left( 1 - \frac{w_m(n)}{k^n} \right), \qquad
              j \, w_m(j) = \sum_{i=1}^{m} (i (k + 1) - j) \binom ji w_m(j - i)

    with w_m(j) the number of ways to put j labelled balls into k bins, none with more than m.

    Raises
    ------
    UnsupportedError
        For p below 1/k.

    Notes
    -----
    About a second at n = 200.

    Examples
    --------
    >>> exact_vulnerability(KRRChannel(2, 3, 1), n=2).randomized_shuffled  # 1/4 + 1/2 * 3/4
    Fraction(5, 8)

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), CSF, equation 17 and Proposition 20; J. C. P. Miller's recurrence for
    powers of a series.
    """
    n = whole("n", n, least=1, most=MOST_PEOPLE)
    if not isinstance(channel, KRRChannel):
        raise refuse("channel", "k-ary randomized response", channel)
    if channel.keep < channel.lie:
        raise UnsupportedError("Equation 17 needs p >= 1/k; use `vulnerability`, which takes the emptiest bin.")
    k = channel.k
    shuffled = sum((_exceedance(n, k, m) for m in range(n)), Fraction(0)) / n
    lie = Fraction(channel.lie, channel.total)
    both = lie + Fraction(channel.keep - channel.lie, channel.total) * shuffled
    return ExactVulnerability(Fraction(1, k), Fraction(channel.keep, channel.total), shuffled, both)


def _exceedance(n: int, k: int, m: int) -> Fraction:
    """Chance that some bin holds more than m of n balls."""
    if m * k < n:
        return Fraction(1)
    if 2 * (m + 1) > n:  # no two bins can
        return Fraction(sum(comb(n, i) * (k - 1) ** (n - i) for i in range(m + 1, n + 1)), k ** (n - 1))
    ways = [1]
    for j in range(1, n + 1):
        terms = ((i * (k + 1) - j) * comb(j, i) * ways[j - i] for i in range(1, min(m, j) + 1))
        ways.append(sum(terms) // j)
    return 1 - Fraction(ways[n], k**n)


# Sums over histograms of n reports: all of them, or the window that matters for two and three kinds.


MOST_SUMS = 400_000_000  # histograms times actions


def histogram_count(n: int, kinds: int) -> int:
    """Number of histograms of n reports of so many kinds.

    >>> histogram_count(100, 3)
    5151
    """
    return comb(n + kinds - 1, kinds - 1)


def is_enumerable(n: int, kinds: int, *, actions: int) -> bool:
    """True if so many histograms and actions are few enough to go through one by one."""
    return histogram_count(n, kinds) * actions <= MOST_SUMS


def enumerate_histograms(advantage: Matrix, pmf: Reals, n: int) -> float:
    r"""Over every histogram.

    .. math:: \sum_z \mathrm{Mult}(z; n, q) \left( \max_a \langle H_a, z \rangle \right)^+

    Parameters
    ----------
    advantage : float array (actions, kinds), H
    pmf : float array (kinds,), q

    Examples
    --------
    >>> round(enumerate_histograms(np.array([[-1.0, 1.0]]), np.array([0.5, 0.5]), 2), 12)
    0.5
    """
    from dovetail.leak.kernels import depth_first_sum

    tables = np.zeros((pmf.size - 1, n + 1, n + 1))
    count = np.arange(n + 1.0)
    for kind in range(pmf.size - 1):
        rest = float(pmf[kind + 1 :].sum())
        share, other = float(pmf[kind]) / (float(pmf[kind]) + rest), rest / (float(pmf[kind]) + rest)
        tables[kind] = binomial_pmf(count[None, :], count[:, None], share, other)
    return float(depth_first_sum(np.ascontiguousarray(advantage), tables, n))


def sum_window(advantage: Matrix, pmf: Reals, n: int, least: float) -> float:
    """The sum of `enumerate_histograms` over histograms of probability at least `least`; two or three kinds.

    Each row is walked outward from where it starts to count, so that most probabilities are products of short
    ratios, and a gain that sits in the far tail costs no more than one in the middle.
    """
    from dovetail.leak.kernels import row_sums

    if pmf.size == 2:
        advantage, pmf = np.insert(advantage, 0, 0.0, axis=1), np.insert(pmf, 0, 0.0)
        first, heavy = np.zeros(1), np.ones(1)
    else:
        first, heavy = _rows(n, float(pmf[0]), float(pmf[1] + pmf[2]), least)
    share, other = float(pmf[1] / (pmf[1] + pmf[2])), float(pmf[2] / (pmf[1] + pmf[2]))
    rest = n - first
    # <H, z> = base + slope z_1, since z_2 = n - z_0 - z_1
    base = advantage[:, 0] * first[:, None] + advantage[:, 2] * rest[:, None]
    slope = np.ascontiguousarray(advantage[:, 1] - advantage[:, 2])
    total = 0.0
    for upward, start in ((True, _start(base, slope, rest, share, 1)), (False, _start(base, slope, rest, share, -1))):
        weight = heavy * binomial_pmf(start, rest, share, other)
        total += float(row_sums(base, slope, rest, start, weight, share / other, least, upward).sum())
    return total


def _start(base: Matrix, slope: Reals, rest: Reals, share: float, direction: int) -> Reals:
    """The first place of each row at or above its mode (or below it) that can gain; outside the row if none can."""
    mode = np.minimum(np.floor((rest + 1.0) * share), rest)
    helps = slope * direction > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(helps, direction * -base / slope, np.inf).min(axis=1)
    gains_at_mode = (base + slope * mode[:, None]).max(axis=1) > 0.0
    if direction > 0:
        return np.where(gains_at_mode, mode, np.minimum(np.maximum(mode, np.floor(turn)), rest + 1.0))
    return np.where(gains_at_mode, mode - 1.0, np.maximum(np.minimum(mode - 1.0, -np.floor(turn)), -1.0))


def _rows(n: int, share: float, other: float, least: float) -> tuple[Reals, Reals]:
    """Counts of the first kind whose probability is at least `least`, with their probabilities."""
    mode, limit = min(n, int((n + 1) * share)), float(np.log(least))

    def end(direction: int, room: int) -> int:
        low, high = 0, room  # the probability falls away from the mode
        while low < high:
            middle = (low + high + 1) // 2
            inside = binomial_log_pmf(mode + direction * middle, n, share, other) >= limit
            low, high = (middle, high) if inside else (low, middle - 1)
        return mode + direction * low

    counts = np.arange(end(-1, mode), end(1, n - mode) + 1, dtype=np.float64)
    return counts, binomial_pmf(counts, n, share, other)


# The distribution of a histogram of reports that are independent but not alike, on a window of the lattice.


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
    """Number of cells that `poisson_multinomial` would hold."""
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
