"""Distribution functions and quantiles from counts of bins, or of a tree of bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, sum_reach, two_binomials
from dovetail.randomize.sampling.domain import symbols
from dovetail.randomize.window import Window

Reals = NDArray[np.float64]
Symbols = NDArray[np.int64]

MOST_BINS = 1 << 16
QUARTILES = (0.25, 0.5, 0.75)
MOST_LEVELS = 4  # beyond, other dummies than those of today are worth more


# A tree of bins: everybody says in which node of each level she is.


@final
@dataclass(frozen=True)
class Tree:
    r"""Bins below the nodes of some levels; level l has B_1 .. B_l nodes, the last level is the bins.

    A person sends her node of each level, as a number in the list of all nodes, level after level. The root is not
    asked for: how many people there are is public. With noise of the same variance in every count, least squares is

    .. math:: t_L = 1, \quad t_l = 1 + \frac{t_{l+1}}{B_{l+1}}, \qquad
              z_l = \frac{1}{t_l} \Bigl(h_l + \frac{t_{l+1}}{B_{l+1}} \sum_{\mathrm{children}} z_{l+1}\Bigr)

    upwards; downwards from n the children of a node get z + (parent - sum of z) / B. The variance of the distribution
    function behind v bins, where on level l there are c_l whole siblings and the part f_l of the next, is

    .. math:: \mathrm{Var}\, n\hat F(v) = \sigma^2 \sum_l \frac{c_l + f_l^2 - (c_l + f_l)^2 / B_l}{t_l}

    whatever people hold: between children of one node the contrasts are orthogonal to those of all others, and level
    j >= l tells of them as much as it spreads them over.

    Parameters
    ----------
    branching : tuple of int, each at least 2
        B_1 .. B_L.

    Raises
    ------
    ParameterError
        From `of`, where so many bins have no such tree.

    Examples
    --------
    >>> Tree.of(1024, levels=2), Tree.of(128, levels=2), Tree.of(7, levels=1)
    (Tree(branching=(32, 32)), Tree(branching=(16, 8)), Tree(branching=(7,)))
    >>> tree = Tree((2, 2))
    >>> tree.symbols(np.array([0, 3])).tolist(), tree.fitted(np.array([3.0, 1.0, 2.0, 1.0, 1.0, 0.0]), 4).tolist()
    ([[0, 2], [1, 5]], [2.0, 1.0, 1.0, 0.0])

    Source
    ------
    Hay, Rastogi, Miklau, Suciu (2010), Boosting the Accuracy of Differentially Private Histograms Through
    Consistency, VLDB, section 4, with weights; variance: docs/theory/distributions.md.
    """

    branching: tuple[int, ...]

    @classmethod
    def of(cls, bins: int, *, levels: int) -> Self:
        """The tree of so many levels whose distribution function has the least mean square error over the bins."""
        return cls(_best(whole("bins", bins, least=2, most=MOST_BINS), whole("levels", levels, least=1, most=16)))

    @property
    def nodes(self) -> tuple[int, ...]:
        """How many nodes each level has."""
        return tuple(accumulate(self.branching, lambda above, here: above * here))

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return self.nodes[-1]

    @property
    def size(self) -> int:
        """How many nodes all levels have together: symbols that can be sent."""
        return sum(self.nodes)

    @property
    def starts(self) -> tuple[int, ...]:
        """The number of the first node of each level in the list of all."""
        return tuple(end - here for end, here in zip(accumulate(self.nodes), self.nodes, strict=True))

    def symbols(self, bins: Symbols) -> Symbols:
        """The nodes (n, levels) in which the `bins` (n,) lie, as numbers in the list of all nodes."""
        under = [self.bins // here for here in self.nodes]
        return np.column_stack([start + bins // below for start, below in zip(self.starts, under, strict=True)])

    def fitted(self, counts: ArrayLike, n: float) -> Reals:
        """Least squares of the people in each bin, from a noisy count of each node; they sum to n."""
        levels = np.split(np.asarray(counts, dtype=np.float64), self.starts[1:])
        upward = levels[:]
        for place in range(len(levels) - 2, -1, -1):
            share = self._worth[place + 1] / self.branching[place + 1]
            below = upward[place + 1].reshape(len(levels[place]), -1).sum(axis=1)
            upward[place] = (levels[place] + share * below) / self._worth[place]
        above = np.array([float(n)])
        for z in upward:
            siblings = z.reshape(above.size, -1)
            above = (siblings + ((above - siblings.sum(axis=1)) / siblings.shape[1])[:, None]).ravel()
        return above

    @cached_property
    def _worth(self) -> tuple[float, ...]:
        """t_l of each level, in units of one count."""
        found = [1.0]
        for branches in reversed(self.branching[1:]):
            found.insert(0, 1.0 + found[0] / branches)
        return tuple(found)

    @cached_property
    def _cuts(self) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
        """c_l and f_l of every prefix of 1 .. bins - 1 bins, for each level."""
        rest, cuts = np.arange(1.0, self.bins), []
        for here in self.nodes:
            below = self.bins // here
            whole_, rest = np.divmod(rest, below)
            cuts.append((whole_, rest / below))
        return tuple(cuts)

    def variance(self) -> Reals:
        """Of n times the distribution function behind 1 .. bins - 1 bins (bins - 1,), in units of that of a count."""
        total = np.zeros(self.bins - 1)
        for (c, f), branches, worth in zip(self._cuts, self.branching, self._worth, strict=True):
            total += (c + f**2 - (c + f) ** 2 / branches) / worth
        return np.maximum(total, 0.0)

    @cached_property
    def classes(self) -> tuple[Reals, Reals]:
        """Weights (bins - 1, classes) of the counts in the distribution function, and how many counts have each.

        On level j the nodes fall apart by where their path leaves that of the prefix: before it, behind it, or not.
        """
        weights, sizes = [], []
        below = [1.0] * len(self.branching)
        for place in range(len(self.branching) - 2, -1, -1):
            below[place] = below[place + 1] * self.branching[place + 1]
        level = list(zip(self._cuts, self.branching, self._worth, below, strict=True))
        for place in range(len(level)):
            path = np.zeros(self.bins - 1)
            for (c, f), branches, worth, under in level[: place + 1]:
                spread, many = 1.0 / (worth * under / below[place]), under / below[place]
                mean = (c + f) / branches
                weights += [path + (1.0 - mean) * spread, path - mean * spread]
                sizes += [c * many, (branches - c - 1.0) * many]
                path = path + (f - mean) * spread
            weights.append(path)
            sizes.append(np.ones(self.bins - 1))
        return np.column_stack(weights), np.column_stack(sizes)


def _trees(bins: int, levels: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `bins` as a product of so many numbers, each at least 2."""
    if levels == 1:
        yield (bins,)
        return
    for first in range(2, bins // 2 + 1):
        if bins % first == 0:
            yield from ((first, *rest) for rest in _trees(bins // first, levels - 1))


@cache
def _best(bins: int, levels: int) -> tuple[int, ...]:
    found = list(_trees(bins, levels))
    if not found:
        raise ParameterError(
            f"`levels` must be fewer: {bins:,} bins are no product of {levels} numbers; take bins such as "
            f"{max(2, round(bins ** (1.0 / levels))) ** levels:,}."
        )
    return min(found, key=lambda one: float(Tree(one).variance().sum()))


# Quantiles: point estimates, and intervals that cover by proof.


def monotone(function: ArrayLike) -> Reals:
    """The mean of running maximum and reversed running minimum, in [0, 1]: what a distribution function can be."""
    given = np.clip(np.asarray(function, dtype=np.float64), 0.0, 1.0)
    return np.asarray((np.maximum.accumulate(given) + np.minimum.accumulate(given[::-1])[::-1]) / 2.0)


def people_below(share: float, n: int) -> int:
    """The least number of n people who are the share: persons are whole.

    >>> people_below(0.5, 5), people_below(0.1, 10), people_below(0.0, 10)
    (3, 1, 0)
    """
    near = round(share * n)
    return near if abs(near - share * n) <= 1e-9 * max(1.0, share * n) else math.ceil(share * n)


Reach = Callable[[Symbols, float], tuple[Reals, Reals]]


@final
@dataclass(frozen=True, eq=False)
class Crossings:
    r"""Where an estimated distribution function may cross a share: intervals of quantiles.

    .. math:: L = \min\{v : \hat F(v) + c^-(v) \ge m / n\}, \qquad
              U = \max\{v : \hat F(v - 1) - c^+(v - 1) \le (m - 1) / n\}

    with m = ceil(q n), because persons are whole.

    Where c are such that the error exceeds them on either side with probability alpha / 2 at most, *in each point
    alone*, L > v* or U < v* needs an error that large in one of two fixed points. So Pr[L <= v* <= U] >= 1 - alpha,
    v* the bin of the quantile of these people. Outermost crossings: the first on one side only would not be covered.

    Parameters
    ----------
    function : float array (bins - 1,)
        Estimates of the share of people in the first 1 .. bins - 1 bins.
    edges : float array (bins + 1,)
    shares : float array (quantiles,)
        q.
    n : int
    reach : function of people below (quantiles,) and `tail`
        How far below and above the truth estimates may lie (quantiles, bins - 1), or (bins - 1,) for all alike.
    sampled : bool
        Whether the interval is for the population that people are drawn from: by a normal approximation.

    Source
    ------
    docs/theory/distributions.md.
    """

    function: Reals
    edges: Reals
    shares: Reals
    n: int
    reach: Reach
    sampled: bool = False

    def drawn(self, share: Any) -> Crossings:
        """With sampling added, as in `Spread`."""
        return replace(self, sampled=True)

    def each(self, pick: Callable[[Any], Any]) -> Crossings:
        """One number is no part of another here: the same."""
        return self

    def interval(self, value: Reals, z: float) -> tuple[Reals, Reals]:
        """Quantiles that an error leaves which is as probable as a normal one of z standard deviations."""
        tail = 0.5 * math.erfc(z / math.sqrt(2.0))
        people = np.array([people_below(float(share), self.n) for share in self.shares])
        sampling = z * np.sqrt(self.shares * (1.0 - self.shares) / self.n)[:, None] if self.sampled else 0.0
        below, above = self.reach(np.concatenate([people, np.maximum(people - 1, 0)]), tail)
        each = below.ndim > 1
        least = np.hypot(below[: people.size] if each else below, sampling)
        most = np.hypot(above[people.size :] if each else above, sampling)
        first, last = people[:, None] / self.n, (people[:, None] - 1) / self.n
        reaches = np.pad(self.function + least >= first - 1e-12, ((0, 0), (0, 1)), constant_values=True)
        stays = np.pad(self.function - most <= last + 1e-12, ((0, 0), (1, 0)), constant_values=True)
        lower = np.argmax(reaches, axis=1)
        upper = stays.shape[1] - 1 - np.argmax(stays[:, ::-1], axis=1)
        low, high = self.edges[lower], self.edges[np.maximum(upper, lower) + 1]
        return np.minimum(low, value), np.maximum(high, value)


def of_rounds(rounds: Sequence[tuple[Reals, Reals]]) -> tuple[Reals, Reals]:
    r"""One distribution function of the same people from those of several rounds with different bins.

    .. math:: \min_F \sum_r \sum_b \bigl(F(e_{r,b+1}) - F(e_{r,b}) - y_{r,b}\bigr)^2, \qquad
              F(e_{r,0}) = 0, \; F(e_{r,B_r}) = 1

    Least squares of the shares y of people in each bin: every end of a bin is told of by the rounds that have it, and
    by paths through the others. It is unbiased for bins that were fixed beforehand, and best where all counts have
    the same variance. Bins that follow from the noise of earlier rounds take its proof away: it is for estimates, and
    intervals are of one round.

    Parameters
    ----------
    rounds : pairs of a function (bins - 1,) and its edges (bins + 1,), from the same first to the same last edge

    Examples
    --------
    >>> one, other = (np.array([0.5]), np.array([0.0, 2.0, 4.0])), (np.array([0.4]), np.array([0.0, 2.0, 4.0]))
    >>> [part.round(3).tolist() for part in of_rounds([one, other])]
    [[0.45], [0.0, 2.0, 4.0]]

    Source
    ------
    docs/theory/distributions.md.
    """
    if len(rounds) == 1:
        return rounds[0]
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.linalg import spsolve

    edges = np.unique(np.concatenate([ends for _, ends in rounds]))
    places = [np.searchsorted(edges, ends) for _, ends in rounds]
    start, stop = (np.concatenate([place[part] for place in places]) for part in (np.s_[:-1], np.s_[1:]))
    shares = np.concatenate([np.diff(function, prepend=0.0, append=1.0) for function, _ in rounds])
    size = edges.size  # normal equations: the Laplacian of the graph in which a bin joins its ends
    bins = coo_array((np.ones(start.size), (start, stop)), shape=(size, size)).tocsr()
    joined = bins + bins.T
    laplacian = (diags_array(joined.sum(axis=1)) - joined).tocsc()
    right = np.bincount(stop, shares, size) - np.bincount(start, shares, size)
    inner = laplacian[1:-1, 1:-1]
    return np.atleast_1d(spsolve(inner, right[1:-1] - laplacian[1:-1, [-1]].toarray().ravel())), edges


def quantiles(function: Reals, edges: Reals, shares: Reals) -> Reals:
    """Quantiles of a distribution function (bins - 1,): made monotone, straight lines inside bins."""
    full = np.concatenate([[0.0], monotone(function), [1.0]])
    found = np.empty(len(shares))
    for place, share in enumerate(shares):
        upper = max(1, int(np.searchsorted(full, share, side="left")))
        low, high = full[upper - 1], full[upper]
        part = 1.0 if high <= low else (share - low) / (high - low)
        found[place] = edges[upper - 1] + min(max(part, 0.0), 1.0) * (edges[upper] - edges[upper - 1])
    return found


# From the single report of the window mechanism, which was collected for a mean.


MOST_STEPS = 4096  # of a grid whose distribution is asked


def quantiles_of_window(window: Window, reports: ArrayLike, *, shares: Sequence[float] = QUARTILES) -> Estimate:
    r"""Quantiles of people's numbers on the grid, with intervals that cover, from reports of the window mechanism.

    .. math:: \hat F(v) = \frac{W}{\gamma} \Bigl(\frac{H_v}{n} - a_v\Bigr), \qquad
              H_v = \#\{y \in \{v, v - W, v - 2W, ..\}\}

    is unbiased: the windows of v, v - W, .. tile 0 .. v, so each person is in H_v with probability a_v or
    a_v + gamma / W, and H_v is a sum of two binomials. No bootstrap, no smoothing. Half a step of the grid is added
    on both sides. Ask for `dt.Distribution` where the distribution is all you want: windows are made for means.

    Parameters
    ----------
    reports : int array (n,)
    shares : of people, above 0, at most 1

    Raises
    ------
    DataError
        For reports that are none.
    ParameterError
        For a grid of more than 4,096 steps.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> ages, rng = Window(lower=0.0, upper=100.0, epsilon=6.0, grid=1.0, window=3), simulation(1)
    >>> found = quantiles_of_window(ages, ages.randomize([20.0] * 9000 + [60.0] * 6000, rng), shares=[0.3])
    >>> bool(abs(found.value[0] - 20.0) <= 1.0), bool(found.interval()[0] <= 20.0 <= found.interval()[1])
    (True, True)

    Source
    ------
    docs/theory/distributions.md.
    """
    whole("grid", window.steps, least=2, most=MOST_STEPS)
    sent = symbols(reports, window.outputs, name="reports")
    n, wanted = len(sent), np.asarray(shares, dtype=np.float64)
    counted = np.bincount(sent, minlength=window.outputs)[: window.steps]
    tiles = np.arange(window.steps) // window.width + 1
    hits = counted.astype(np.float64)
    for start in range(window.width, window.steps, window.width):
        part = slice(start, min(start + window.width, window.steps))
        hits[part] += hits[start - window.width : part.stop - window.width]
    gain = window.truthful / window.width
    outside = tiles * (1.0 - window.truthful) / window.outputs
    inside = outside + gain
    function = (hits / n - outside) / gain
    sigma = np.sqrt(np.maximum(outside * (1.0 - outside), inside * (1.0 - inside)) / n) / gain

    def reach(held: Symbols, tail: float) -> tuple[Reals, Reals]:
        ends = [np.tile(sigma / math.sqrt(tail), (held.size, 1)) for _ in range(2)]  # Chebyshev where it is enough
        rows = np.flatnonzero((np.abs(function[:, None] - wanted).min(axis=1) - 1.0 / n) <= ends[0][0])
        for part in np.array_split(rows, -(-rows.size // 128)) if rows.size else []:
            law = lambda times, part=part: two_binomials(  # noqa: E731
                times / (gain * n), outside[part], inside[part], held, n
            )
            for end, found in zip(ends, sum_reach(law, sigma[part], tail), strict=True):
                end[:, part] = found
        return ends[0], ends[1]

    edges = np.asarray(window.lower + window.step * (np.arange(window.steps + 2) - 0.5), dtype=np.float64)
    crossings = Crossings(function, edges, wanted, n, reach)
    value = quantiles(function, edges, wanted)
    errors = [np.ptp(one.interval(value, 1.0), axis=0) / 2.0 for one in (crossings, crossings.drawn(None))]
    return Estimate(value, errors[0], n, errors[1], spread=crossings)
