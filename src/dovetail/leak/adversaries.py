"""Leakage to each adversary: one who knows no other value, one who knows some or all; and the formulas for both."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import lru_cache
from itertools import combinations

import numpy as np

from dovetail.core.channel import KRRChannel, Matrix
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals, bernstein_reach, binomial_cdf, binomial_pmf
from dovetail.leak.additive_leakage import (
    NO_LEAKAGE,
    ULP,
    AdditiveLeakage,
    chernoff_bound,
    monte_carlo_leakage,
    weakest_method,
)
from dovetail.leak.exact import (
    MOST_CELLS,
    MOST_SUMS,
    IndependentReports,
    cell_count,
    enumerate_histograms,
    histogram_count,
    is_enumerable,
    poisson_multinomial,
    sum_window,
)
from dovetail.leak.max_load import max_load_gap
from dovetail.leak.max_load_unequal import Bins, max_load_unequal, top_t_load_gap
from dovetail.leak.qif.inputs import scientific
from dovetail.leak.query import Query

# Additive leakage of shuffled reports under an i.i.d. prior: any randomizer, any gain.


MOST_PEOPLE = 10**9  # beyond, the window of three kinds of report takes minutes
SMALLEST_LEAKAGE = 1e-270  # leakage below is only known to be below
SMALLEST_CELL = 1e-307
_TINY = 1e-8  # a leakage below it is bounded, not sampled
_MOST_SEARCHED = 500  # actions, a search for each


def iid_leakage(joint: Matrix, *, n: int, rng: Entropy | None = None) -> AdditiveLeakage:
    r"""Leakage of n shuffled reports: what they add to the expected gain on one person.

    .. math:: V_g - V_g(\pi) = E_{z \sim \mathrm{Mult}(n, q)} \left( \max_a \langle G_a - G_{a_0}, z / n \rangle
              \right)^+, \qquad G_{a v} = J_{a v} / q_v, \quad J = g \, \mathrm{diag}(\pi) \, R, \quad q = \pi R

    Every term is at least 0, so tiny leakage keeps its relative accuracy; a0 is the best action without reports.

    Parameters
    ----------
    joint : float array (actions + 1, kinds of report)
        J, and q in its last row.
    n : int, at least 1
    rng : Entropy, optional
        Allows sampling where nothing exact is in reach.

    Raises
    ------
    UnsupportedError
        More than 4e8 histograms times actions with at least four kinds of report, no `rng`, and more than 1e-8 by
        Chernoff's inequality.

    Notes
    -----
    Kinds of report that say the same are merged. One sum over a window for two kinds, two for three (1e6 people:
    about a second); otherwise all histograms are enumerated, and beyond 4e8 of them times actions bounded by
    Chernoff's inequality where that leaves below 1e-8, else sampled. The window widens until what lies outside is
    negligible beside the leakage, however small that is down to 1e-270.

    Source
    ------
    Definition 2 of Jurado, Gonze, Alvim, Palamidessi (2023), CSF: given z, the target sent v with
    probability z_v / n.
    """
    advantage, pmf, moved = _advantages(joint)
    if advantage.size == 0:
        return NO_LEAKAGE
    kinds = pmf.size
    if n == 1:
        value = float((pmf * np.maximum(advantage.max(axis=0), 0.0)).sum())
        return AdditiveLeakage.from_error(value, moved + 8.0 * ULP * max(1.0, float(advantage.max())), "closed form")
    if kinds <= 3 and n <= MOST_PEOPLE:
        return _sum_until_negligible(advantage, pmf, n, moved)
    if is_enumerable(n, kinds, actions=len(advantage)):
        return _with_rounding(enumerate_histograms(advantage, pmf, n) / n, moved, n, "enumerated")
    if len(advantage) <= _MOST_SEARCHED and (most := chernoff_bound(advantage, pmf, n)) <= _TINY:
        return AdditiveLeakage.from_bracket(0.0, most + moved)
    if rng is not None:
        return monte_carlo_leakage(advantage, pmf, n=n, rng=rng)
    raise UnsupportedError(
        f"Too many histograms to enumerate: n = {n:,} people with {kinds} distinct kinds of report have "
        f"{scientific(histogram_count(n, kinds))} histograms, times {len(advantage):,} actions; the limit is "
        f"{MOST_SUMS:.0e} (two or three kinds of report: n up to {MOST_PEOPLE:.0e}). Pass `rng` to sample, or a "
        "smaller n for an upper bound: vulnerability falls in n."
    )


def _advantages(joint: Matrix) -> tuple[Matrix, Reals, float]:
    """Advantage (actions, kinds) of every useful action over the best prior one, and the distribution of the kinds.

    Kinds that say the same up to rounding are merged; the last number is how much that moved any advantage.
    """
    gains, pmf = joint[:-1], joint[-1]
    seen = pmf > 0.0
    gains, pmf = gains[:, seen], pmf[seen]
    best = int(np.argmax(gains.sum(axis=1)))
    advantage = (gains - gains[best]) / pmf
    advantage = np.unique(advantage[advantage.max(axis=1) > 0.0], axis=0)
    if advantage.size == 0:
        return advantage, pmf, 0.0
    _, kind = np.unique(np.round(advantage / np.abs(advantage).max(), 14), axis=1, return_inverse=True)
    kind = kind.ravel()
    merged: Reals = np.bincount(kind, weights=pmf).astype(np.float64)
    means = np.stack([np.bincount(kind, weights=pmf * row) / merged for row in advantage])
    return means, merged, float(np.abs(advantage - means[:, kind]).max())


def _sum_until_negligible(advantage: Matrix, pmf: Reals, n: int, moved: float) -> AdditiveLeakage:
    """Cells below `least` are left out; it falls until they are negligible beside the sum."""
    cells, ceiling = float(histogram_count(n, pmf.size)) * float(advantage.max()), chernoff_bound(advantage, pmf, n)
    if ceiling < SMALLEST_LEAKAGE:
        return AdditiveLeakage(0.0, 0.0, SMALLEST_LEAKAGE + moved, "exact sum")
    least = 1e-19 * ceiling / cells
    while True:
        least = max(least, SMALLEST_CELL)
        inside, outside = sum_window(advantage, pmf, n, least) / n, cells * least
        if outside <= 1e-16 * inside or least == SMALLEST_CELL:
            return _with_rounding(inside, outside + moved, n, "exact sum")
        least = min(1e-17 * inside / cells, 1e-6 * least)


def _with_rounding(value: float, outside: float, n: int, method: str) -> AdditiveLeakage:
    # n q and z/n are rounded once: sqrt(n) z ulps at z standard deviations, and z^2 is about -2 log(value)
    depth = 1.0 - math.log(max(1e-300, min(1.0, value)))
    error = value * (2e-14 + 4.0 * ULP * math.sqrt(n * depth))
    return AdditiveLeakage(value, max(0.0, value - error - outside), value + error + outside, method)


# Additive leakage under the distance gain: k ordered values, k-ary randomized response, uniform prior.


MOST_VALUES = 10_000


def distance_leakage(k: int, contrast: float, *, n: int) -> AdditiveLeakage:
    r"""Leakage of n shuffled reports, uniform prior.

    .. math:: V = 1 - \frac{1}{k-1} \sum_{c=0}^{k-2} E \min(P_c, 1 - P_c), \qquad
              P_c = \frac{c+1}{k} + (p - s) \left( \frac Xn - \frac{c+1}{k} \right), \quad
              X \sim \mathrm{Bin}(n, (c+1)/k)

    E min(P, 1 - P) falls below min(E P, 1 - E P) by E(2 P - 1)^+ (for E P up to 1/2): one binomial sum per value,
    mirror images counted twice.

    Parameters
    ----------
    k : int
    contrast : float
        p - s; its sign does not matter, since only its product with a centred count enters.
    n : int

    Examples
    --------
    >>> round(distance_leakage(2, 1.0, n=2).value, 12)  # two values: the same as naming the right one
    0.25

    Source
    ------
    E|a - x| is the sum of P_c below a and of 1 - P_c from a on; the median takes the smaller term at every c.
    """
    if contrast == 0.0:
        return NO_LEAKAGE
    if k > MOST_VALUES or n > MOST_PEOPLE:
        raise UnsupportedError(
            f"The distance gain is summed for at most {MOST_VALUES:,} values and {MOST_PEOPLE:.0e} people, got "
            f"k = {k:,} and n = {n:,}. Vulnerability falls in n: a smaller n gives an upper bound."
        )
    parts = []
    for c in range(k // 2):
        share = (c + 1.0) / k
        lean = np.array([share, 1.0 - share])  # distribution of "at most c" and "above c"
        advantage = np.array([2.0 * (share + contrast * (1.0 - share)) - 1.0, 2.0 * (share - contrast * share) - 1.0])
        joint = np.vstack([np.zeros(2), advantage * lean, lean])
        twice = 1.0 if 2 * (c + 1) == k else 2.0
        parts.append(iid_leakage(joint, n=n).scale(twice / (k - 1)))
    return AdditiveLeakage(
        sum(part.value for part in parts),
        sum(part.lower for part in parts),
        sum(part.upper for part in parts),
        weakest_method(*parts),
    )


# The uninformed adversary, who knows the prior and nobody's value: which formula answers.


MOST_GROUPS = 200  # distinct prior probabilities


def uninformed_leakage(query: Query, *, rng: Entropy | None) -> tuple[AdditiveLeakage, AdditiveLeakage]:
    """Leakage of shuffled values, and of shuffled randomized reports."""
    krr = query.krr
    if krr is not None and query.uniform and (query.is_tries_gain or query.is_distance_gain):
        return _uniform_prior_leakage(query, krr)
    return shuffled_leakage(query, n=query.n, rng=rng), iid_leakage(query.joint(), n=query.n, rng=rng)


def _uniform_prior_leakage(query: Query, krr: KRRChannel) -> tuple[AdditiveLeakage, AdditiveLeakage]:
    """Propositions 20 and 21, also for tries and distance; below 1/k the least reported values are guessed."""
    k, n, contrast = krr.k, query.n, abs(krr.contrast)
    if query.is_distance_gain:
        return distance_leakage(k, 1.0, n=n), distance_leakage(k, krr.contrast, n=n)
    alone = top_t_leakage(n, k, query.tries)
    if krr.keep >= krr.lie:
        return alone, alone.scale(contrast)
    return alone, _least_loaded_leakage(query).scale(contrast)


def _least_loaded_leakage(query: Query) -> AdditiveLeakage:
    """Leakage of the least loaded bins: what the others hold beyond their share."""
    try:
        return top_t_leakage(query.n, query.k, query.k - query.tries)
    except UnsupportedError as error:
        raise UnsupportedError(f"p is below 1/k, so the least loaded bins decide. {error}") from None


@lru_cache(maxsize=256)
def top_t_leakage(n: int, k: int, tries: int) -> AdditiveLeakage:
    """Additive leakage of shuffled values in t tries, uniform prior; cached, since a plan asks again and again."""
    load = top_t_load_gap(n, k, tries)
    return AdditiveLeakage.from_error(load.value / n, load.error_bound / n, load.method)


def shuffled_leakage(query: Query, *, n: int, rng: Entropy | None) -> AdditiveLeakage:
    """Shuffling alone, n people with the prior: the identity as channel, or the maximum load of unequal bins."""
    if query.uniform and query.is_distance_gain:
        return distance_leakage(query.k, 1.0, n=n)
    if query.uniform and query.is_tries_gain:
        return top_t_leakage(n, query.k, query.tries)
    kinds = int(np.count_nonzero(query.prior))
    if query.is_bayes and n > 1 and kinds > 3 and not is_enumerable(n, kinds, actions=kinds):
        shares, counts = np.unique(query.prior[query.prior > 0.0], return_counts=True)
        if shares.size <= MOST_GROUPS:
            try:
                load = max_load_unequal(n, tuple(Bins(int(c), float(p)) for p, c in zip(shares, counts, strict=True)))
            except UnsupportedError:  # too many terms: as a channel
                return iid_leakage(query.identity_joint(), n=n, rng=rng)
            return AdditiveLeakage.from_error(
                max(0.0, load.value / n - float(shares[-1])), load.error_bound / n, load.method
            )
    return iid_leakage(query.identity_joint(), n=n, rng=rng)


def single_report_leakage(query: Query) -> float:
    """Additive leakage of one's own randomized report: the others say nothing about her (Proposition 15)."""
    krr = query.krr
    if krr is not None and query.uniform and query.is_tries_gain:
        k, t = krr.k, query.tries
        if krr.keep >= krr.lie:
            return krr.contrast * ((k - t) / k)
        return -krr.contrast * (t / k) if t < k else 0.0
    if krr is not None and query.uniform and query.is_distance_gain:
        return distance_leakage(krr.k, krr.contrast, n=1).value
    try:
        return iid_leakage(query.joint(), n=1).value
    except UnsupportedError as error:
        raise UnsupportedError(f"One report by itself is already too large: {error}") from None


# Exact additive leakage beside other people whose values are known: the others' reports are independent draws.


SLAB = 65_536  # cells of a distribution that are looked at together
DIRECT_PRODUCTS = 10_000_000  # products of a convolution that is summed term by term


def known_others_leakage(joint: Matrix, others: list[IndependentReports]) -> AdditiveLeakage:
    r"""Leakage of shuffled reports when the others' reports are independent draws of known distributions.

    .. math:: V_g - V_g(\pi) = \sum_z \left( \max_a \sum_v H_{a v} \, T(z - e_v) \right)^+, \qquad
              H = g \, \mathrm{diag}(\pi) \, R - \text{its row of the best prior action}

    with T the distribution of the histogram of the others.

    Parameters
    ----------
    joint : float array (actions, kinds), g diag(pi) R
    others : groups of people with the distribution of one report each

    Raises
    ------
    UnsupportedError
        When the window of T is too large: about n = 1e5 at three kinds, 500 at four, 50 at five.

    Source
    ------
    Definition 2 of Jurado, Gonze, Alvim, Palamidessi (2023), CSF,
    on the (values, histograms) channel of the target.
    """
    advantage = joint - joint[np.argmax(joint.sum(axis=1))]
    advantage = advantage[advantage.max(axis=1) > 0.0]
    if advantage.size == 0:
        return NO_LEAKAGE
    window = poisson_multinomial(others)
    # one cell of padding on each axis takes the target's own report
    pmf = np.pad(window.chances, [(1, 1)] * window.chances.ndim)
    step = max(1, SLAB // math.prod(pmf.shape[1:]))
    slabs = (range(1, pmf.shape[0])[start : start + step] for start in range(0, pmf.shape[0] - 1, step))
    total = math.fsum(gain for places in slabs for gain in _gains(advantage, pmf, places))
    # an error of the distribution costs at most its sum of absolute values times this
    scale = float(np.abs(advantage).max(axis=0).sum())
    # the transform leaves about an ulp of the largest cell in each cell, and phases of n reports are good to n ulps:
    # by Parseval the distribution is off by that share of its root sum of squares, spread over all cells
    people, size = sum(group.count for group in others), window.chances.size
    spread = math.sqrt(size * float((window.chances**2).sum()))
    rounding = scale * ULP * (8.0 + math.sqrt(size) + people * spread) + 1e-13 * total
    return AdditiveLeakage.from_error(total, rounding + 4.0 * scale * window.outside, "exact sum")


def _gains(advantage: Matrix, pmf: Reals, places: range) -> Reals:
    """All histograms with this count of the first kind, for each of these places (places,)."""
    shape = (len(places), *(size - 1 for size in pmf.shape[1:]))
    here, before = pmf[places.start : places.stop], pmf[places.start - 1 : places.stop - 1]
    ends = (slice(None), *(slice(1, None) for _ in pmf.shape[1:]))
    shifted = [before[ends]]
    for axis in range(1, pmf.ndim):
        back = (slice(0, -1) if other == axis else slice(1, None) for other in range(1, pmf.ndim))
        shifted.append(here[slice(None), *back])
    shifted.append(here[ends])
    best: Reals = np.zeros(shape)
    for row in advantage:
        gain = sum(h * cell for h, cell in zip(row, shifted, strict=True))
        np.maximum(best, gain, out=best)
    return np.asarray(best.reshape(len(places), -1).sum(axis=1))


def binary_known_others_leakage(contrast: float, others: list[IndependentReports]) -> AdditiveLeakage:
    r"""Two values, uniform target, any knowledge about each of the others.

    .. math:: V - \frac12 = \frac{|W_{00} - W_{10}|}{2} \max_t \Pr[T = t], \qquad T = \text{others' reports of } 0

    A Poisson binomial sum is unimodal with its mode beside its mean (Darroch): two sums of products.

    Parameters
    ----------
    contrast : float
        W_00 - W_10.
    others : at most three groups

    Source
    ------
    The two rows of the target's channel differ by |W_00 - W_10| times the total variation between T and T + 1,
    which is max T because a Poisson binomial distribution is unimodal.
    """
    groups = [group for group in others if group.count]
    if not groups:
        return AdditiveLeakage.from_error(0.5 * abs(contrast), ULP, "exact sum")
    mode = math.floor(sum(group.count * float(group.pmf[0]) for group in groups))
    last, (low, pmf, wrong) = groups[-1], _binomial_sum(groups[:-1])
    rest = mode + 1 - low - np.arange(pmf.size + 1)
    chances = binomial_pmf(rest, last.count, float(last.pmf[0]), float(last.pmf[1]))
    peak = max(float((pmf * chances[:-1]).sum()), float((pmf * chances[1:]).sum()))
    error = wrong * math.sqrt(float((chances**2).sum()))  # Cauchy-Schwarz
    people = sum(group.count for group in groups)
    error += peak * (2e-14 + 4.0 * ULP * math.sqrt(people))
    return AdditiveLeakage.from_error(0.5 * abs(contrast) * peak, 0.5 * abs(contrast) * error, "exact sum")


def _binomial_sum(groups: list[IndependentReports]) -> tuple[int, Reals, float]:
    """Sum of at most two binomial counts: its start, its chances, root sum of squares of their errors."""
    if not groups:
        return 0, np.ones(1), 0.0
    windows = [_binomial(group) for group in groups]
    start, pmf = windows[0]
    if len(windows) == 1:
        return start, pmf, 0.0
    second, part = windows[1]
    if pmf.size * part.size <= DIRECT_PRODUCTS:
        return start + second, np.convolve(pmf, part), 0.0
    from scipy.fft import irfft, next_fast_len, rfft

    size = next_fast_len(pmf.size + part.size - 1, real=True)
    both = np.maximum(irfft(rfft(pmf, size) * rfft(part, size), size)[: pmf.size + part.size - 1], 0.0)
    wrong = 2.0 * ULP * math.log2(size) * math.sqrt(float((pmf**2).sum() + (part**2).sum()))
    return start + second, both, wrong


def _binomial(group: IndependentReports) -> tuple[int, Reals]:
    """Window of a binomial distribution that misses less than 1e-18: where it starts, and its chances."""
    share, other = float(group.pmf[0]), float(group.pmf[1])
    reach = bernstein_reach(group.count * share * other, math.log(2e18))
    low = max(0, math.floor(group.count * share - reach))
    counts = np.arange(low, min(group.count, math.ceil(group.count * share + reach)) + 1)
    return low, binomial_pmf(counts, group.count, share, other)


def identical_others_leakage(channel: KRRChannel, *, n: int) -> AdditiveLeakage:
    r"""All others hold one and the same known value; k-ary randomized response with p >= 1/k, uniform target.

    .. math:: V - \frac1k = \frac{p - s}{k} \left( \frac1n E \max_w \frac{z_w}{q_w} - 1 \right), \qquad
              z \sim \mathrm{Mult}(n, q), \quad q = (p, s, .., s)

    Source
    ------
    V = s + (p - s)/k sum_z max_w T(z - e_w), and here T(z - e_w) = Mult_n(z) z_w / (n q_w).
    """
    load = max_load_unequal(n, (Bins(1, channel.p, 1.0 / channel.p), Bins(channel.k - 1, channel.s, 1.0 / channel.s)))
    factor = channel.contrast / channel.k
    return AdditiveLeakage.from_error(
        factor * max(0.0, load.value / n - 1.0), factor * load.error_bound / n, load.method
    )


# Bounds for the strong adversary where no exact sum is in reach: privacy blanket above, merged outputs below.


STEPS, MANY = 24, 100_000  # beyond MANY people one step is as tight to within three percent
CHEAP = 1_000_000  # cells


def blanket_upper_bound(channel: KRRChannel, *, n: int) -> float:
    r"""Upper bound on what shuffled reports add, whatever is known about the others; uniform target.

    .. math:: V - \frac1k \le (p - s) \, E_{b \sim \mathrm{Bin}(n - 1, k s)} \left( V_S(b + 1, k) - \frac1k \right)

    k-ary randomized response answers uniformly with probability k s and truthfully otherwise; even an adversary who
    is told which others answered truthfully, and what, is left with b uniform reports around the target's.

    Parameters
    ----------
    channel : KRRChannel, p at least 1/k
    n : int

    Raises
    ------
    UnsupportedError
        For p below 1/k: then k s > 1 and there is no such mixture.

    Notes
    -----
    V_S falls in b, so that each of at most 24 steps (one above 1e5 people) is counted at its left end: still an
    upper bound.

    Examples
    --------
    >>> round(blanket_upper_bound(KRRChannel.of(2, 0.75), n=1), 9)  # alone: p - 1/2
    0.25

    Source
    ------
    Further information never lowers vulnerability; the mixture is the privacy blanket of Balle, Bell, Gascon,
    Nissim (2019), CRYPTO.
    """
    if channel.keep < channel.lie:
        raise UnsupportedError("The bound for every knowledge needs p >= 1/k: below, k s > 1 is no probability.")
    covered = channel.k * channel.s
    spread = math.sqrt(n * covered * (1.0 - covered))
    low = max(0, math.floor((n - 1) * covered - 9.0 * spread))
    high = min(n - 1, math.ceil((n - 1) * covered + 9.0 * spread))
    steps = STEPS if n <= MANY else 1
    starts = np.unique(np.concatenate([[0], np.linspace(low, high, steps, endpoint=False).astype(np.int64)]))
    if high < 4 * STEPS:
        starts = np.arange(high + 1)
    cdf = np.concatenate([binomial_cdf(starts[1:] - 1, n - 1, covered, 1.0 - covered), [1.0]])
    mass = np.diff(np.concatenate([[0.0], cdf]))
    total = 0.0
    for start, chance in zip(starts, mass, strict=True):
        if chance > 0.0:
            load = max_load_gap(int(start) + 1, channel.k)
            total += chance * (load.value + load.error_bound) / (int(start) + 1)
    return float(channel.contrast * total * (1.0 + 1e-12))


def merged_outputs_lower_bound(joint: Matrix, others: list[IndependentReports], *, known: tuple[int, ...]) -> float:
    """Lower end: kinds of report are merged into two or three classes, which never raises vulnerability.

    The classes single out values that are known of different numbers of others; the best choice counts.
    """
    ranked = sorted({count: value for value, count in enumerate(known)}.values(), key=lambda value: known[value])
    singles = sorted({*ranked[:3], *ranked[-3:]})
    pairs = [set(pair) for pair in combinations(singles, 2)]
    best = 0.0
    for alone in [{value} for value in singles] + pairs:
        merge = _merge(joint.shape[1], sorted(alone))
        groups = [IndependentReports(group.count, group.pmf @ merge) for group in others]
        if len(alone) == 1 or cell_count(groups) <= CHEAP:
            best = max(best, known_others_leakage(joint @ merge, groups).lower)
    return best


def _merge(kinds: int, alone: list[int]) -> Matrix:
    """(kinds, classes): each value of `alone` is a class, the others are the last one."""
    merge = np.zeros((kinds, len(alone) + 1))
    merge[:, -1] = 1.0
    for place, value in enumerate(alone):
        merge[value] = 0.0
        merge[value, place] = 1.0
    return merge


# The strong adversary, who knows the values of some or all others: which formula answers.


REACH = "Exact sums for known others reach about n = 1e5 at three kinds of report, 500 at four, 50 at five."
SOURCE_STRONG = (
    "Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Definition 2 and equation 10 (with column maxima), for others of "
    "whom any number is known"
)


def strong_leakage(
    query: Query, known: tuple[int, ...] | None, *, rng: Entropy | None
) -> tuple[AdditiveLeakage, AdditiveLeakage]:
    """Leakage of shuffled values, and of shuffled randomized reports, beside the knowledge."""
    if known is None:
        upper = blanket_upper_bound(_require_uniform_krr(query, "A bracket for every knowledge"), n=query.n)
        lower = uninformed_leakage(query, rng=rng)[1].lower
        alone = shuffled_leakage(query, n=1, rng=rng)
        return alone, AdditiveLeakage.from_bracket(min(lower, upper), upper)
    unknown = query.n - 1 - sum(known)
    # the shuffled values of people she knows are subtracted: what is left is a smaller collection
    return shuffled_leakage(query, n=unknown + 1, rng=rng), _randomized_shuffled(query, known, unknown)


def _randomized_shuffled(query: Query, known: tuple[int, ...], unknown: int) -> AdditiveLeakage:
    if not any(known):
        with suppress(UnsupportedError):  # sums of positive terms, which keep the digits of a tiny leakage
            return uninformed_leakage(query, rng=None)[1]
    krr, plain = query.krr, query.uniform and query.is_bayes
    friendly = krr is not None and krr.keep >= krr.lie
    if krr is not None and friendly and plain and krr.k > 2 and max(known) == query.n - 1 > 0:
        with suppress(UnsupportedError):  # too many people: a bracket is left
            return identical_others_leakage(krr, n=query.n)
    matrix = query.channel.matrix()
    others = [IndependentReports(count, matrix[value]) for value, count in enumerate(known) if count]
    if unknown:
        others.append(IndependentReports(unknown, query.prior @ matrix))
    joint = query.joint()[:-1]
    if matrix.shape == (2, 2) and plain:
        return binary_known_others_leakage(float(matrix[0, 0] - matrix[1, 0]), others)
    if not others:
        others = [IndependentReports(0, matrix[0])]
    if cell_count(others) <= MOST_CELLS:
        return known_others_leakage(joint, others)
    upper = blanket_upper_bound(
        _require_uniform_krr(
            query,
            f"Distribution of the other reports too large ({scientific(cell_count(others))} cells); the bracket",
        ),
        n=query.n,
    )
    return AdditiveLeakage.from_bracket(min(upper, merged_outputs_lower_bound(joint, others, known=known)), upper)


def _require_uniform_krr(query: Query, what: str) -> KRRChannel:
    krr = query.krr
    if krr is None or not query.uniform or not query.is_bayes:
        raise UnsupportedError(f"{what} needs k-ary randomized response, the uniform prior and one try. {REACH}")
    return krr
