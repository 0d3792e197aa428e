"""The expected positive part of a sum of independent copies of a discrete variable, between certified ends.

Few copies, or few off one common value, are summed by their counts (`count_sum`), many copies of a variable with few
values over a line in the complex plane (`contour_sum`): both sharply and soon. Otherwise, and where those leave the
ends apart, the law of the sum is computed on grids, by three devices. *Tilting* moves the bulk of the law to where
the sum changes sign, so that a probability of 1e-18 is as easy as one of 0.1. *Gridding* splits each value onto its
two neighbours on a grid with the mean kept; it grows the convex order, so the gridded sum S' has the larger expected
positive part. *Levels* in base r of n keep the grid at the scale of the sum: r blocks are added by one Fourier
transform, and the grid is made coarser before the next level.

The lower end of the grids comes from the event {S' > 0}: with h(x) = E[S; S' = x] carried along, E[S; S' > 0] <=
E[S_+]. Where copies off one common value are so rare that the transforms round them away, it comes from the cases
with one of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.core.certified import Bracket
from dovetail.core.special import Reals, bernstein_reach, binomial_pmf

# The expected positive part of a sum of independent copies, by a sum over a line in the complex plane.
#
# With N normal of variance eta^2, h a step and L = 2 pi / h, Poisson's summation formula says, for every theta > 0,
#
# .. math:: \frac{h}{2 \pi} \sum_{j} \frac{M(z_j)^n e^{\eta^2 z_j^2 / 2}}{z_j^2}
#           = \sum_k e^{\theta k L}\, E[(S + N - k L)_+], \qquad z_j = \theta + i j h, \quad M(z) = E[e^{z G}]
#
# Every term on the right is at least 0, and noise only adds to the one at k = 0: so the sum is above E[S_+] whatever
# the step is. And s_+ is at least E[(s + N)_+] less eta^2 times the density of N at s: the same sum with 1/z^2 -
# eta^2 instead of 1/z^2, less what stands at the other k, is below it.


NOISE_SHARES = (4e-6, 4e-8)  # eta^2 as a share of the variance of the tilted sum: the first that is sharp enough
SHARP = 1e-5  # relative gap in epsilon, about
ALIAS = 1e-7  # share of the answer that other k may add
REACH = 5.5  # the nodes end where the noise is e^(-REACH^2 / 2)
STEEPEST_TILT = 30.0  # largest exponent of a tilt
MOST_WORK = 1 << 19  # nodes times atoms
ALONE = 1 << 17  # multiplications in a product of real matrices for which BLAS calls no threads: those mostly wait
CONTOUR_ULP = 2.0**-48  # the rounding of a sum over 32 atoms, and more than that of a few operations
_SHARES = np.array([0.5, 0.8, 0.95])  # of theta, by which the tilt is lessened to bound what stands at k < 0


class _Tilted(NamedTuple):
    """Masses p of the values that are not 0, tilted by theta; log M(theta)."""

    theta: float
    values: Reals
    p: Reals
    kappa: float
    doubt: float  # of kappa


def contour_sum(values: Reals, masses: Reals, n: int, theta: float, *, uncertain: Reals) -> Bracket | None:
    r"""Ends of E[(G_1 + .. + G_n)_+], or None where they would be far apart or take long.

    Parameters
    ----------
    values, masses : float arrays (atoms,)
        Masses sum to 1.
    n : int, at least 2
    theta : float, above 0
        Near the saddle point; every one is valid.
    uncertain : float array (atoms,), at least 0
        The lower end holds also for values that are smaller by so much.

    Notes
    -----
    The time does not depend on n. Roundings of M are charged as n times what a sum of atoms may be off, which grows
    with sqrt(n) only: 1e-8 of the answer at n = 1e12.
    """
    found = _tilted(values, masses, theta)
    if found is None:
        return None
    mean = float(found.p @ found.values)
    variance = float(found.p @ found.values**2) - mean**2
    if not variance > 0.0:
        return None
    spread = math.sqrt(n * variance)
    about = 1.0 / (theta * (1.0 + theta * spread * 2.5))  # of the sum over nodes: E_theta[S_+ e^(-theta S)]
    period = _period(found, n, spread, ALIAS * about)
    if period is None:
        return None
    for share in NOISE_SHARES:
        ends = _ends(found, n, math.sqrt(share) * spread, *period)
        if ends is None:
            return None
        gathered = n * float(masses @ (uncertain * np.exp(theta * values))) * math.exp(-found.kappa)
        low = max(
            0.0, ends[0] - gathered * (1.0 + CONTOUR_ULP)
        )  # E[D; S > 0] <= E[D e^(theta S)], D what is uncertain
        if ends[1] - low <= SHARP * (1.0 + (theta * spread) ** 2) * ends[1]:
            scale, off = n * found.kappa, n * found.doubt + CONTOUR_ULP
            return Bracket(low * math.exp(scale - off), ends[1] * math.exp(scale + off))
    return None


def _ends(found: _Tilted, n: int, eta: float, period: float, aliased: float) -> tuple[float, float] | None:
    """Ends of E_theta[S_+ e^(-theta S)] with noise of this standard deviation; None where that takes long."""
    step, theta = 2.0 * math.pi / period, found.theta
    count = math.ceil(REACH / (eta * step)) + 1
    if count * found.values.size > MOST_WORK:
        return None
    u, logs, doubt = _transform(found, n, step, count)
    square = theta**2 - u**2 + 2j * theta * u  # z^2
    size = np.exp(logs.real + 0.5 * eta**2 * square.real)
    turned = np.exp(1j * (logs.imag + 0.5 * eta**2 * square.imag)) * size
    weight = np.full(count, step / math.pi)
    weight[0] *= 0.5
    inverse = 1.0 / square
    high = float(weight @ (turned * inverse).real)
    low = high - eta**2 * float(weight @ turned.real)
    charge = weight * size * (doubt + CONTOUR_ULP)
    end = float(u[-1])
    left = math.exp(0.5 * eta**2 * (theta**2 - end**2)) / (math.pi * end * eta**2)  # of the nodes beyond the last
    far = np.abs(inverse)
    high += float(charge @ far) + left / end**2
    low -= float(charge @ (far + eta**2)) + left * (1.0 / end**2 + eta**2) + aliased
    return low, high


def _tilted(values: Reals, masses: Reals, theta: float) -> _Tilted | None:
    """The tilted law; None where the tilt is too steep."""
    used = (values != 0.0) & (masses > 0.0)
    x, m = theta * values[used], masses[used]
    if not np.abs(x).max() <= STEEPEST_TILT:
        return None
    less, mass = m * np.expm1(x), m * np.exp(x)
    total = 1.0 + float(less.sum())
    if not total > 1e-3:
        return None
    doubt = CONTOUR_ULP * float(np.abs(less).sum() + mass @ np.abs(x)) / total
    return _Tilted(theta, values[used], mass / total, math.log1p(float(less.sum())), doubt)


def _period(law: _Tilted, n: int, spread: float, most: float) -> tuple[float, float] | None:
    """L, and what all k but 0 add at most, tilted; as a rule at most `most`.

    From Chernoff's bound, for every t > 0: e^(theta x) E[(S - x)_+] <= M(t)^n e^((theta - t) x) / (e t).
    """
    period = 0.0
    found = []
    for sign, shifts in ((1.0, np.array([4.0, 8.0]) / spread), (-1.0, _SHARES * law.theta)):
        tilts = sign * shifts
        if np.abs(tilts[:, None] * law.values).max() > 2.0 * STEEPEST_TILT:
            return None
        grown = n * np.log1p((law.p * np.expm1(tilts[:, None] * law.values)).sum(axis=1))
        logs = grown - np.log(math.e * (law.theta + tilts)) + 1e-6
        found.append((shifts, logs))
        period = max(period, float(np.min((logs - math.log(0.5 * most)) / shifts)))
    if not 0.0 < period < math.inf:
        return None
    far = [float(np.min(logs - shifts * period - np.log(-np.expm1(-shifts * period)))) for shifts, logs in found]
    return period, math.fsum(math.exp(min(log, 700.0)) for log in far)


def _transform(law: _Tilted, n: int, step: float, count: int) -> tuple[Reals, NDArray[np.complex128], Reals]:
    """The nodes u_j = j h, n log(M(z_j) / M(theta)), and by which share M(z_j)^n may be off, (count,).

    Angles are sums of a coarse and a fine one: (1 + a)(1 + b) - 1 = a + b + a b keeps what is small.
    """
    fine = 1 << max(1, math.ceil(0.5 * math.log2(count)))
    rows = -(-count // fine)
    few = min(rows, max(2, ALONE // (4 * fine * law.values.size)))  # in one product
    rows = few * -(-rows // few)
    one = _turns(step * np.arange(fine)[:, None] * law.values)
    many = _turns(step * fine * np.arange(rows)[:, None] * law.values)
    weighted = law.p * (1.0 + many)
    turned = np.hstack([weighted.real, weighted.imag]).reshape(-1, few, 2 * law.values.size)
    real, imaginary = (turned @ np.hstack(part).T for part in ((one.real, -one.imag), (one.imag, one.real)))
    both = (real + 1j * imaginary).reshape(rows, fine)
    total = ((law.p * many).sum(axis=1)[:, None] + both).ravel()[:count]  # sum of p (e^(i u v) - 1)
    u = step * np.arange(count)
    excess = 2.0 * total.real + total.real**2 + total.imag**2
    real = 0.5 * np.log1p(np.maximum(excess, -1.0 + 1e-300))
    imaginary = np.arctan2(total.imag, 1.0 + total.real)
    rough = CONTOUR_ULP * float(law.p @ (np.abs(law.values) * (1.0 + law.theta * np.abs(law.values)))) * u
    share = n * (rough / np.exp(real) + CONTOUR_ULP * (np.abs(real) + np.abs(imaginary)))
    return np.asarray(u), n * (real + 1j * imaginary), np.asarray(np.expm1(np.minimum(share, 700.0)))


def _turns(angles: Reals) -> NDArray[np.complex128]:
    """e^(i angle) - 1."""
    half = np.sin(0.5 * angles)
    return np.asarray(-2.0 * half**2 + 1j * np.sin(angles))


# The expected positive part of a sum of independent copies, by how many copies take each value.
#
# The counts of all values but the two heaviest are listed. Given those, r copies are left, and the lighter of the two
# has B of them:
#
# .. math:: E[S_+] = \sum_{c} \Pr[c]\, E\left[(s_c + (x - y) B)_+\right], \qquad
#           B \sim \mathrm{Bin}\left(r, \tfrac{m_x}{m_x + m_y}\right), \qquad s_c = \sum_i c_i v_i + r y
#
# from tables of Pr[B >= k] and E[B; B >= k]. For few copies, or few off one heavy value, those are few terms.


TAIL = 80.0  # e^-80 of the law of each count is left out
FEW_TERMS, MOST_TERMS = 1 << 11, 1 << 14  # counts of the light values: sooner than any other way, and soon
ERROR = 2e-12  # relative, of a term: a few binomial probabilities to 4e-13 each
COUNT_ULP = 2.0**-48  # of where the sum changes sign: a few roundings


class _Counts(NamedTuple):
    """Counts of the light values, and the law of the heavier two given those."""

    order: NDArray[np.int64]  # atoms by mass, the heaviest last
    light: Reals  # (terms, atoms - 2): how many copies take each light value
    chances: Reals  # (terms,)
    left: Reals  # (terms,): how many copies are left, r
    rows: NDArray[np.int64]  # (terms,): their row in the tables
    first: int  # B in the first column of the tables
    upper: Reals  # (2, rows, columns + 1): Pr[B >= b] and E[B; B >= b]
    lower: Reals  # the same for B < b
    cut: float  # what is left out of the law of all counts


def count_sum(values: Reals, masses: Reals, n: int, *, true: Reals, most_terms: int = MOST_TERMS) -> Bracket | None:
    """Ends of E[(G_1 + .. + G_n)_+], or None where they would be more terms or far apart.

    Parameters
    ----------
    values, masses : float arrays (atoms,)
        Masses are above 0 and sum to 1.
    n : int, at least 2
    true : float array (atoms,)
        Values that the lower end uses instead, at most `values`.

    Examples
    --------
    >>> values = np.array([1.0, -1.0, -2.0])
    >>> count_sum(values, np.array([0.25, 0.25, 0.5]), 2, true=values).contains(0.125)  # above 0 only as 1 + 1
    True
    """
    most_atoms = most_terms.bit_length() + 1  # each light value has two counts or more
    if not 2 <= masses.size <= most_atoms or _terms(masses, n) > most_terms:
        return None
    counts = _counts(tuple(masses.tolist()), n)
    low, high = _positive_part(counts, true, -ERROR), _positive_part(counts, values, ERROR)
    high += n * max(0.0, float(values.max())) * counts.cut
    return Bracket(max(0.0, low), high) if high - low <= SHARP * high else None


def _positive_part(counts: _Counts, values: Reals, error: float) -> float:
    """The sum over counts of the light values, moved by the rounding of its terms."""
    *light, x, y = values[counts.order].tolist()
    start, slope = counts.light @ np.array(light) + counts.left * y, x - y
    table, step = (counts.upper, -1) if slope > 0.0 else (counts.lower, 1)
    last = table.shape[2] - 1
    if slope == 0.0:
        places = np.where(start > 0.0, last, 0)
    else:
        turn = -start / slope
        places = (np.floor(turn) + 1.0 if slope > 0.0 else np.ceil(turn)) - counts.first
    places = np.clip(places, 0, last).astype(np.int64)
    chance, mean = table[:, counts.rows, places]
    around, mean_around = table[:, counts.rows, np.clip(places + step, 0, last)]  # should the threshold be one off
    doubt = error * (np.abs(start) * chance + abs(slope) * mean)
    doubt += math.copysign(COUNT_ULP, error) * (np.abs(start) * around + abs(slope) * mean_around)
    return float(counts.chances @ (start * chance + slope * mean + doubt))


def _terms(masses: Reals, n: int) -> int:
    """At most so many counts of the light values are listed, and four times as many entries of a table."""
    *light, x, y = np.sort(masses).tolist()
    ranges = [_window(np.array([float(n)]), mass) for mass in light]
    widths = [high - low + 1 for low, high in ranges]
    low, high = _window(np.array([max(0.0, n - sum(high for _, high in ranges)), float(n)]), x / (x + y))
    return max(math.prod(widths), (1 + sum(widths)) * (high - low + 1) // 4)


@lru_cache(maxsize=8)
def _counts(masses: tuple[float, ...], n: int) -> _Counts:
    """What does not depend on the values."""
    order = np.argsort(masses, kind="stable")
    *light, x, y = (masses[atom] for atom in order)
    ranges = [_window(np.array([float(n)]), mass) for mass in light]
    axes = [np.arange(low, high + 1, dtype=np.float64) for low, high in ranges]
    listed = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1) if axes else np.zeros((1, 0))
    listed = listed[listed.sum(axis=1) <= n]
    chances, left, rest = np.ones(len(listed)), np.full(len(listed), float(n)), 1.0
    for column, mass in zip(listed.T, light, strict=True):
        chances *= binomial_pmf(column, left, mass / rest, (rest - mass) / rest)
        left, rest = left - column, rest - mass
    rests, rows = np.unique(left, return_inverse=True)
    share, complement = x / (x + y), y / (x + y)
    first, last = _window(rests, share)
    b = np.arange(first, last + 1, dtype=np.float64)
    law = binomial_pmf(b, rests[:, None], share, complement)
    both = np.pad(np.array([law, law * b]), ((0, 0), (0, 0), (1, 1)))
    upper, lower = np.cumsum(both[:, :, :0:-1], axis=2)[:, :, ::-1], np.cumsum(both[:, :, :-1], axis=2)
    cut = 2.0 * (len(light) + 1) * math.exp(-TAIL)
    return _Counts(order, listed, chances, left, rows.ravel(), first, upper, lower, cut)


def _window(copies: Reals, share: float) -> tuple[int, int]:
    """Where Bernstein's bound leaves anything of a binomial law, for any of these numbers of copies."""
    reach = np.array([bernstein_reach(m * share * (1.0 - share), TAIL) for m in copies.tolist()])
    low, high = np.floor(copies * share - reach).min(), np.ceil(copies * share + reach).max()
    return max(0, int(low)), min(int(copies.max()), int(high))


# Exponential tilting of a discrete law, and what splitting onto grids adds to its moment generating function.


MOST_STEPS, NEAR = 60, 0.01  # of a search for a tilt; any tilt is valid
_FACTORS = np.exp2(np.arange(-3.0, 2.5, 0.5))


@dataclass(frozen=True, eq=False)
class ExponentialTilt:
    r"""A law of values with masses, and the tilted law that is summed instead.

    .. math:: \kappa = \log E[e^{\theta G}], \qquad
              E[f(S)] = e^{n \kappa}\, E_\theta[f(S)\, e^{-\theta S}], \qquad
              s_+ e^{-\theta s} \le \frac{1}{e\, \theta}
    """

    values: Reals
    weights: Reals  # untilted
    theta: float

    def cumulants(self, tilts: Reals) -> tuple[Reals, Reals]:
        """log E exp(t G) at each t, and the share of it that values other than 0 have."""
        powers = tilts[:, None] * self.values + np.log(self.weights)
        top = powers.max(axis=1)
        parts = np.exp(powers - top[:, None])
        total = parts.sum(axis=1)
        return np.asarray(top + np.log(total)), np.asarray(parts[:, self.values != 0.0].sum(axis=1) / total)

    @cached_property
    def kappa(self) -> float:
        return float(self.cumulants(np.array([self.theta]))[0][0])

    @cached_property
    def masses(self) -> Reals:
        """The tilted masses."""
        return self.weights * np.exp(self.theta * self.values - self.kappa)

    def reach(self, copies: int, log_tail: float, splits: GridSteps) -> tuple[float, float]:
        r"""An interval that a gridded sum of `copies` leaves, on each side, with tilted mass at most e^-log_tail.

        .. math:: \log \Pr_\theta[S' \ge t] \le m(\kappa(\theta + \lambda) - \kappa(\theta))
                  + \mathrm{growth}(\theta + \lambda) - \lambda t
        """
        if copies == 0:
            return 0.0, 0.0
        spread, width = self._spread
        noise = 2.0 * self.growth(copies, splits) / self.theta**2
        scales = [  # any lambda gives a bound; these are the natural sizes
            math.sqrt(2.0 * log_tail / (copies * max(spread, 1e-30 * width**2) + noise)),
            log_tail / width,
            self.theta,
        ]
        lambdas = np.outer(scales, _FACTORS).ravel()
        ends = []
        for sign in (-1.0, 1.0):
            tilts = self.theta + sign * lambdas
            kappas, moved = self.cumulants(tilts)
            rounding = 2.0**-48 * (np.abs(kappas) + abs(self.kappa))
            exponent = copies * (kappas - self.kappa + rounding) + splits.growth(copies, tilts, moved)
            ends.append(sign * float(np.min((exponent + log_tail) / lambdas)))
        return ends[0], ends[1]

    @cached_property
    def _spread(self) -> tuple[float, float]:
        """Variance of the tilted law, and the width of its range."""
        variance = float(self.masses @ (self.values - self.masses @ self.values) ** 2)
        return variance, float(np.ptp(self.values))

    def growth(self, copies: int, splits: GridSteps) -> float:
        """log of the tilted mass that the splits of so many copies may have made of 1."""
        tilts, moved = self._here
        return float(splits.growth(copies, tilts, moved)[0])

    @cached_property
    def _here(self) -> tuple[Reals, Reals]:
        """theta, and the share that values other than 0 have there."""
        tilts = np.array([self.theta])
        return tilts, self.cumulants(tilts)[1]


class GridSteps(NamedTuple):
    r"""The grid steps s_i of the levels so far; on level i a block is the sum of r^i copies.

    A split onto neighbours at distance s multiplies E[exp(t S)] by at most exp(t^2 s^2 / 8) (Hoeffding's lemma). The
    value 0 lies on every grid and is not split, so a block whose share a of E[exp(t S)] belongs to 0 grows less:

    .. math:: \log\left(a + (1 - a)\, e^{t^2 s^2 / 8}\right)
              \le \min\left(\tfrac18 t^2 s^2, \; (1 - a)(e^{t^2 s^2 / 8} - 1)\right), \qquad
              a \ge (1 - f)^{r^i} e^{-c}

    with f the share of the values other than 0 in one copy, c what the block grew by on the levels before.
    """

    base: int
    steps: tuple[float, ...]

    def growth(self, copies: int, tilts: Reals, moved: Reals) -> Reals:
        """What log E[exp(t S)] of a sum of `copies` grew by, at most, at each t; `moved` is f there."""
        still = np.log1p(-np.minimum(moved, 1.0 - 2.0**-53))
        total, block = np.zeros_like(tilts), np.zeros_like(tilts)
        for level, step in enumerate(self.steps):
            whole = 0.125 * (tilts * step) ** 2
            part = -np.expm1(self.base**level * still - block)
            grown = np.minimum(whole, part * np.expm1(np.minimum(whole, 700.0)))
            total += copies / self.base**level * grown + whole  # all blocks, and the copies that make up no block
            block = self.base * (block + grown)
        return total


def saddle_point(values: Reals, masses: Reals, n: int) -> float:
    r"""About the theta at which exp(n kappa) / (e theta), a bound on n times the answer, is least.

    Newton steps for n kappa'(theta) = 1/theta, started from a normal law, kept between the ends of a bracket.
    """
    largest = float(np.abs(values).max())
    values = values / largest  # no power leaves the doubles
    one = float(masses @ values)
    mean, wide = n * one, n * float(masses @ (values - one) ** 2)
    theta = (abs(mean) + math.sqrt(mean**2 + 4.0 * wide)) / (2.0 * wide)
    low, high, stride = 0.0, math.inf, 4.0
    for turn in range(MOST_STEPS):
        powers = theta * values
        tilted = masses * np.exp(powers - powers.max())
        tilted /= tilted.sum()
        first = float(tilted @ values)
        slope, bend = n * first - 1.0 / theta, n * float(tilted @ (values - first) ** 2) + 1.0 / theta / theta
        low, high = (low, theta) if slope > 0.0 else (theta, high)
        if abs(slope) * theta <= NEAR or theta > 1e100:  # without a value above 0, for ever
            break
        newton = theta - slope / bend
        slow = turn > 8 and turn % 2 == 1  # Newton creeps down where masses grow steeply
        if slow or not (low < newton < high and abs(newton - theta) > NEAR * theta):
            if high == math.inf:
                newton, stride = stride * low, min(stride * stride, 1e20)
            else:
                newton = math.sqrt(low) * math.sqrt(high) if low > 0.0 else 0.25 * high
        theta = newton
    return theta / largest


# The tilted law of a sum of many independent copies, by Fourier transforms on grids that grow with the sum.


BASE = 128  # most copies that one transform adds
COARSE = 10.0  # splits may multiply the tilted mass by e^10
STEEPEST_STEP = 500.0  # the tilt may change by e^500 from one grid point to the next
TILTED_TAIL = 1e-17  # tilted mass left outside all windows

Spectrum = NDArray[np.complex128]  # (2, points / 2 + 1): of masses and of means


class TiltedSum(NamedTuple):
    """A tilted law of a gridded sum S', with what the sum S itself is there."""

    places: Reals
    masses: Reals
    means: Reals  # tilted E[S; S' = place]


NOBODY: Spectrum = np.array([[1.0 + 0.0j], [0.0j]])  # of the sum of no copies


def convolve_copies(tilt: ExponentialTilt, true: Reals, n: int, points: int) -> tuple[TiltedSum, GridSteps] | None:
    """The sum of n copies and the splits that it went through; None where the grid is too coarse.

    On level i a block is the sum of r^i copies, the rest is the sum of n mod r^i others.
    """
    levels = max(1, math.ceil(math.log(n) / math.log(BASE) - 1e-9))
    base = max(2, math.ceil(n ** (1.0 / levels) - 1e-9))
    block = TiltedSum(tilt.values, tilt.masses, tilt.masses * true)
    rest = TiltedSum(np.zeros(1), np.ones(1), np.zeros(1))
    splits = GridSteps(base, ())
    for level in range(levels):
        held = n % base**level  # copies in the rest so far
        then = n if level == levels - 1 else n % base ** (level + 1)
        sizes = [then] if level == levels - 1 else [then, base ** (level + 1)]
        log_tail = math.log(4.0 * levels * max(1.0, n / base ** (level + 1)) / TILTED_TAIL)
        windows = _grid_windows(tilt, sizes, log_tail, splits, points)
        if windows is None:
            return None
        step, firsts = windows
        splits = GridSteps(base, (*splits.steps, step))
        one = _spectrum(block, step, tilt.theta, points)
        other = _spectrum(rest, step, tilt.theta, points) if level else NOBODY
        rest = _convolve(one, other, (then - held) // base**level, firsts[0], step, points)
        if level < levels - 1:
            block = _convolve(one, NOBODY, base, firsts[1], step, points)
    return rest, splits


def _grid_windows(
    tilt: ExponentialTilt, sizes: list[int], log_tail: float, before: GridSteps, points: int
) -> tuple[float, list[int]] | None:
    """The step at which `points` cover every sum of the level, and the first grid number of each; None if coarse."""
    step = 0.0
    while True:
        guess = 1.01 * step
        splits = GridSteps(before.base, (*before.steps, guess))
        if tilt.growth(max(sizes), splits) > COARSE:
            return None
        spans = [tilt.reach(size, log_tail, splits) for size in sizes]
        step = max(high - low for low, high in spans) / (points - 4)
        if tilt.theta * step > STEEPEST_STEP:
            return None
        if step <= guess:
            return step, [math.floor(low / step) - 1 for low, _ in spans]


def _spectrum(law: TiltedSum, step: float, theta: float, points: int) -> Spectrum:
    """Transforms of masses and means, split onto multiples of the step; number j is in cell j mod points."""
    left = np.floor(law.places / step)
    share = law.places / step - left  # the untilted share that goes right
    cell = np.mod(left, points).astype(np.int64)
    cells = np.concatenate([cell, (cell + 1) % points])
    factors = np.append((1.0 - share) * np.exp(-theta * share * step), share * np.exp(theta * (1.0 - share) * step))
    parts = [np.bincount(cells, factors * np.tile(part, 2), points) for part in (law.masses, law.means)]
    return np.asarray(np.fft.rfft(parts))


def _convolve(one: Spectrum, other: NDArray[Any], copies: int, first: int, step: float, points: int) -> TiltedSum:
    """`copies` of the law `one` and one of the law `other`, from the grid number `first` on."""
    power = one[0] ** max(copies - 1, 0)
    full = power * one[0] if copies else power
    both = np.array([other[0] * full, other[1] * full + copies * other[0] * one[1] * power])
    masses, means = np.roll(np.fft.irfft(both, points), -(first % points), axis=1)
    places = step * (first + np.arange(points, dtype=np.float64))
    return TiltedSum(places, np.maximum(masses, 0.0), means)


POINTS = 1 << 15
NOISE = 2.0**-48  # rounding of the transforms per copy, a share of the tilted mass: four times what was measured
ULP = 2.0**-50  # of each copy's place, and of its tilt


def expected_positive_part(
    values: Reals, masses: Reals, n: int, *, smaller: Reals | None = None, points: int = POINTS
) -> Bracket:
    r"""Ends of (1/n) E[(G_1 + .. + G_n)_+] for independent copies of a discrete G with mean at most about 0.

    Parameters
    ----------
    values, masses : float arrays (atoms,)
        Masses sum to 1.
    n : int, at least 1
    smaller : float array (atoms,), optional
        Values that the lower end uses instead, at most `values`: leaves room for the rounding of the input.
    points : int, a power of two
        Grid points, where grids are needed. The relative gap then falls with their square.

    Examples
    --------
    >>> ends = expected_positive_part(np.array([1.0, -2.0]), np.array([0.5, 0.5]), 2)  # E = 2/4, over 2
    >>> ends.contains(0.25), ends.gap < 1e-6
    (True, True)

    Source
    ------
    docs/theory/mechanism-laws.md; for the blanket sum, Balle, Bell, Gascon, Nissim (2019), The Privacy Blanket of the
    Shuffle Model, CRYPTO, Lemma 5.3.
    """
    used = masses > 0.0
    values, masses = values[used], masses[used]
    true = values if smaller is None else smaller[used]
    alone = Bracket(*(float(np.maximum(part, 0.0) @ masses) for part in (true, values)))
    if n == 1 or alone.upper == 0.0:
        return alone
    theta = saddle_point(values, masses, n)
    summed = (
        count_sum(values, masses, n, true=true, most_terms=FEW_TERMS)
        or contour_sum(values, masses, n, theta, uncertain=values - true)
        or count_sum(values, masses, n, true=true)
    )
    if summed is None:
        return gridded_positive_part(values, masses, n, true=true, alone=alone, theta=theta, points=points)
    upper = min(summed.upper / n, alone.upper)  # more people never help the adversary
    return Bracket(min(summed.lower / n, upper), upper)


def tilted_positive_part(values: Reals, masses: Reals, n: int) -> float:
    r"""At least (1/n) E[(G_1 + .. + G_n)_+], soon: a few times too much.

    .. math:: \frac1n E[(G_1 + .. + G_n)_+] \le \frac{E[e^{\theta G}]^n}{e\, \theta\, n}

    Examples
    --------
    >>> 0.25 < tilted_positive_part(np.array([1.0, -2.0]), np.array([0.5, 0.5]), 2) < 1.0
    True
    """
    if not (values[masses > 0.0] > 0.0).any():
        return 0.0
    theta = saddle_point(values, masses, n)
    found = _tilted(values, masses, theta)
    if found is None:
        return math.inf
    return math.exp(min(n * (found.kappa + found.doubt) - 1.0 + 1e-9, 700.0)) / (theta * n)


def gridded_positive_part(
    values: Reals, masses: Reals, n: int, *, true: Reals, alone: Bracket, theta: float, points: int = POINTS
) -> Bracket:
    """The same by grids alone, for n at least 2 and masses above 0; `alone` are the ends for n = 1.

    Notes
    -----
    Levels = log n / log 128, rounded up. The ends hold up to the rounding of the transforms, for which `NOISE` times
    (n + sqrt(points)) of the tilted mass is charged, and of places and tilts, for which `ULP` of theta n E|G| is;
    that is measured, not proved.
    """
    shift = _atom_near_zero(values, masses, n)  # a heavy atom that lies on the grid is not split
    tilt = ExponentialTilt(values - shift, masses, theta)
    single = min(_one_uncommon_copy(true, masses, values == shift, n), alone.upper)
    summed = convolve_copies(tilt, true - shift, n, points)
    if summed is None:
        return Bracket(single, alone.upper)
    exponent = n * tilt.kappa + theta * n * shift
    if exponent > 700.0:  # a tilt that tells nothing
        return Bracket(single, alone.upper)
    total, splits = summed
    sums = total.places + n * shift
    weight = np.where(sums > 0.0, np.exp(-theta * np.maximum(sums, 0.0)), 0.0)
    rounding = NOISE * (n + math.sqrt(points))
    lost = TILTED_TAIL * math.exp(tilt.growth(n, splits))  # splits add tilted mass
    wide = 2.0 * math.sqrt(np.sum(sums**2 * total.masses)) + n * abs(shift)
    upper = float(np.sum(weight * sums * total.masses)) + (lost + rounding) / (math.e * theta)
    means = total.means + n * shift * total.masses
    noisy = NOISE * (math.sqrt(n) + math.sqrt(points))
    lower = float(np.sum(weight * means)) - 2.0 * rounding / (math.e * theta) - wide * (math.sqrt(lost) + noisy)
    scale = math.exp(exponent) / n
    rounding += ULP * theta * n * float(tilt.masses @ np.abs(tilt.values) + abs(shift))
    upper = min(scale * upper * (1.0 + rounding), alone.upper)  # more people never help the adversary
    lower = max(scale * max(0.0, lower) * max(0.0, 1.0 - rounding), single)
    return Bracket(min(lower, upper), upper)


def _one_uncommon_copy(values: Reals, masses: Reals, common: NDArray[np.bool_], n: int) -> float:
    """What the cases add in which all copies but one take the common value: no transform rounds it away."""
    rare = ~common
    moved = float(masses[rare].sum())
    if not common.any() or moved >= 1.0:
        return 0.0
    others, chance = (n - 1) * float(values[common].min()), math.exp((n - 1) * math.log1p(-moved))
    return chance * (1.0 - 1e-12) * float(np.maximum(values[rare] + others, 0.0) @ masses[rare])


def _atom_near_zero(values: Reals, masses: Reals, n: int) -> float:
    """The heaviest of the values so near 0 that n of them are not far on the scale of the sum; 0 if there is none."""
    spread = math.sqrt(masses @ (values - masses @ values) ** 2)
    near = np.abs(values) * math.sqrt(n) <= 10.0 * spread
    return float(values[near][masses[near].argmax()]) if near.any() else 0.0
