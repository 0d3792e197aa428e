"""Bayes' rule where the shares of values in a few classes are unknown: drawn from their posterior, and averaged."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, permutations
from math import comb
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln, ndtri

from dovetail.core.display import mute
from dovetail.core.entropy import Entropy

Rows = NDArray[np.float64]  # (rows, kinds of report or values)
Codes = NDArray[np.int64]
Drawn = NDArray[np.float64]  # (draws, classes, k)

DRAWS = 400
ALIKE = 0.25  # chance that classes do not differ, before the batch
MOST_NUMBERS = 12  # free shares that are drawn; of more the likeliest are taken
MOST_TABLES, MOST_CELLS = 4_000, 20_000  # of one block; of terms, classes and kinds in all blocks
_MOVES = (1.0, 0.5, 0.25)  # sizes of steps, in the best one for a normal law
_LEAST = 1e-9  # added to variances of draws, so that none is 0
_KEPT = 0.5  # of the draws count between two steps of temperature
_HALVINGS = 20
_MOST_EXCHANGED = 3  # classes whose every exchange is weighed


@mute
@dataclass(frozen=True, eq=False)
class Compositions:
    r"""How many people of each class can have sent each kind, block by block, with the chance of the order alone.

    .. math:: \Pr[z_b \mid \theta] = \sum_{N \in b} w_N \prod_{c y} q_{cy}^{N_{cy}}, \qquad
              q_{cy} = \sum_v \theta_{cv} W(y \mid v)

    Parameters
    ----------
    exponents : float array (terms, classes, kinds)
        N, term by term, block by block.
    logs : float array (terms,)
        Logarithms of w.
    starts : int array (blocks,)
        The first term of each block.
    weight : float array (blocks,)
        How often a block is there.
    sends : sparse array (rows * kinds, terms)
        Chance that a person of a row sent a kind, given the term; 0 for terms of other blocks.
    who : int array (rows,)
        The class of a row.
    """

    exponents: NDArray[np.float64]
    logs: NDArray[np.float64]
    starts: Codes
    weight: NDArray[np.float64]
    sends: csr_array
    who: Codes

    def likelihoods(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log likelihood (draws,) of the batch, with the law (draws, classes, kinds) of the report of each class."""
        return np.asarray(self._blocks(chances)[1] @ self.weight)

    def told(self, shares: Drawn, weights: NDArray[np.float64], law: Rows) -> Rows:
        """Probability (rows, k) of the values of a person of each row, the mean over weighed draws of shares."""
        chances = shares @ law
        terms, _ = self._blocks(chances)
        draws, classes, k = shares.shape
        explained = (weights[:, None, None] * shares)[..., None] * law / chances[:, :, None, :]  # (.., k, kinds)
        of_terms = terms.T @ explained.reshape(draws, -1)
        of_rows = (self.sends @ of_terms).reshape(len(self.who), -1, classes, k, law.shape[1])
        found = np.einsum("ryvy->rv", of_rows[np.arange(len(self.who)), :, self.who])
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    @property
    def of_one_class(self) -> Compositions:
        """The batch where all classes have the same shares: who sent what then makes no difference."""
        counts = self.weight @ self.exponents[self.starts].sum(axis=1)
        ways = self.weight @ np.logaddexp.reduceat(self.logs, self.starts)
        one = np.zeros(1, dtype=np.int64)
        return Compositions(counts[None, None], np.array([ways]), one, np.ones(1), self.sends, one)

    def _blocks(self, chances: NDArray[np.float64]) -> tuple[Rows, Rows]:
        """Chance (draws, terms) of each term in its block, and the log likelihood (draws, blocks) of each block."""
        logs = np.log(np.maximum(chances, 1e-300)).reshape(len(chances), -1)
        terms = logs @ self.exponents.reshape(len(self.exponents), -1).T + self.logs
        sizes = np.diff(self.starts, append=len(self.logs))
        most = np.maximum.reduceat(terms, self.starts, axis=1)
        terms = np.exp(terms - np.repeat(most, sizes, axis=1))
        sums = np.add.reduceat(terms, self.starts, axis=1)
        return terms / np.repeat(sums, sizes, axis=1), most + np.log(sums)


@dataclass(frozen=True, eq=False)
class SharePosterior:
    r"""Shares of values in each class, drawn from their posterior.

    Before, they are uniform in each class, independently, or with one chance in four the same in all classes: who
    learns nothing of the classes then names the commonest value.

    Parameters
    ----------
    shares : float array (draws, classes, k)
    weights : float array (draws,)
    evidence : float
        Logarithm of the mean likelihood before.
    """

    shares: Drawn = field(repr=False)
    weights: NDArray[np.float64] = field(repr=False)
    evidence: float

    @classmethod
    def of(cls, batch: Compositions, law: Rows, *, rng: Entropy) -> Self:
        """Given a batch, with the law (k, kinds) of its reports."""
        mine, logs, evidence = _temper(batch, law, rng)
        mine, weights = _exchanged(mine, logs, batch, law)
        same, _, other = _temper(batch.of_one_class, law, rng)
        both = np.array([evidence + np.log1p(-ALIKE), other + np.log(ALIKE)])
        whole = np.logaddexp(*both)
        chance = np.exp(both - whole)
        same = np.repeat(same, batch.exponents.shape[1], axis=1)
        weights = np.concatenate((chance[0] * weights, np.full(DRAWS, chance[1] / DRAWS)))
        return cls(np.concatenate((mine, same)), weights, float(whole))


def _temper(batch: Compositions, law: Rows, rng: Entropy) -> tuple[Drawn, NDArray[np.float64], float]:
    r"""Draws (draws, classes, k) of equal weight from the posterior of uniform shares, their log likelihoods, and

    the logarithm of the mean likelihood: from the prior by steps of temperature,

    .. math:: \pi_s(\theta) \propto \Pr[z \mid \theta]^{\beta_s}, \qquad 0 = \beta_0 < \beta_1 < \dots = 1

    Each step is as large as leaves half of the draws' weight; then they are drawn anew by weight, and moved by
    Metropolis steps in logarithms of ratios, under which pi_s stays as it is.

    Source
    ------
    Del Moral, Doucet, Jasra (2006), Sequential Monte Carlo samplers, J. R. Stat. Soc. B 68, section 3.
    """
    classes, k = batch.exponents.shape[1], len(law)
    free = classes * (k - 1)
    gamma = -np.log(_uniform(rng, DRAWS * classes * k)).reshape(DRAWS, classes, k)
    points = np.log(gamma[..., :-1] / gamma[..., -1:])
    shares = _shares(points)
    logs, heat, evidence = batch.likelihoods(shares @ law), 0.0, 0.0
    while heat < 1.0:
        step = _step(logs, 1.0 - heat)
        weights = np.exp(step * (logs - logs.max()))
        heat, evidence = heat + step, evidence + float(step * logs.max() + np.log(weights.mean()))
        even = (np.arange(DRAWS) + _uniform(rng, 1)) / DRAWS
        kept = np.minimum(np.searchsorted(weights.cumsum() / weights.sum(), even), DRAWS - 1)
        points, shares, logs = points[kept], shares[kept], logs[kept]
        spread = np.cov(points.reshape(DRAWS, free).T).reshape(free, free) + _LEAST * np.eye(free)
        root = np.linalg.cholesky(spread) * (2.38 / free**0.5)
        for size in _MOVES:
            normal = ndtri(_uniform(rng, DRAWS * free)).reshape(DRAWS, free)
            moved = points + size * (normal @ root.T).reshape(points.shape)
            theirs = _shares(moved)
            found = batch.likelihoods(theirs @ law)
            prior = (np.log(theirs) - np.log(shares)).sum(axis=(1, 2))  # uniform shares, in logarithms of ratios
            taken = np.log(_uniform(rng, DRAWS)) < heat * (found - logs) + prior
            points[taken], shares[taken], logs[taken] = moved[taken], theirs[taken], found[taken]
    return shares, logs, evidence


def _exchanged(shares: Drawn, logs: NDArray[np.float64], batch: Compositions, law: Rows) -> tuple[Drawn, Rows]:
    """Every exchange of the classes of each draw, by its likelihood, so that of classes that nothing tells apart

    neither wins.
    """
    classes = shares.shape[1]
    if classes > _MOST_EXCHANGED:
        return shares, np.full(len(shares), 1.0 / len(shares))
    orders = list(permutations(range(classes)))
    theirs = [shares[:, order] for order in orders]
    likely = np.array([logs, *(batch.likelihoods(each @ law) for each in theirs[1:])])
    weights = np.exp(likely - likely.max(axis=0))
    weights /= weights.sum(axis=0) * len(shares)
    return np.concatenate(theirs), weights.ravel()


def _step(logs: NDArray[np.float64], most: float) -> float:
    """The largest step of temperature, at most `most`, that leaves `_KEPT` of the draws' weight."""
    low, high = 0.0, most
    for tried in range(_HALVINGS):
        step = high if tried == 0 else (low + high) / 2.0
        weights = np.exp(step * (logs - logs.max()))
        if weights.sum() ** 2 >= _KEPT * len(logs) * (weights**2).sum():
            if tried == 0:
                return most
            low = step
        else:
            high = step
    return high


def _shares(points: NDArray[np.float64]) -> Drawn:
    """Shares (draws, classes, k) from logarithms of their ratios to the last one (draws, classes, k - 1)."""
    logs = np.concatenate((points, np.zeros((*points.shape[:2], 1))), axis=2)
    found = np.exp(logs - logs.max(axis=2, keepdims=True))
    return np.asarray(np.maximum(found / found.sum(axis=2, keepdims=True), 1e-300))


def _uniform(rng: Entropy, count: int) -> NDArray[np.float64]:
    """Numbers between 0 and 1, neither of them."""
    return np.asarray(((rng.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


@lru_cache(maxsize=10_000)
def tables(many: tuple[int, ...], counts: tuple[int, ...]) -> tuple[Codes, NDArray[np.float64]] | None:
    """All tables (tables, classes, kinds) of whole numbers with these margins, and the log of the ways to each.

    None beyond `MOST_TABLES`.
    """
    found = np.zeros((1, 0, len(counts)), dtype=np.int64)
    left = np.array([counts], dtype=np.int64)
    for people in many[:-1]:
        if comb(people + len(counts) - 1, people) > MOST_TABLES:
            return None
        rows = _ways(people, len(counts))
        if len(rows) * len(left) > 100 * MOST_TABLES:
            return None
        table, row = np.nonzero((rows[None] <= left[:, None]).all(axis=2))
        if len(table) > MOST_TABLES:
            return None
        found = np.concatenate((found[table], rows[row][:, None]), axis=1)
        left = left[table] - rows[row]
    found = np.concatenate((found, left[:, None]), axis=1)
    return found, gammaln(np.array(many) + 1.0).sum() - gammaln(found + 1.0).sum(axis=(1, 2))


def _ways(people: int, kinds: int) -> Codes:
    """All numbers (ways, kinds) of reports of each kind that so many people can send."""
    bars = np.array(list(combinations(range(people + kinds - 1), kinds - 1)), dtype=np.int64)
    ends = np.full((len(bars), 1), people + kinds - 1)
    return np.asarray(np.diff(np.concatenate((np.full_like(ends, -1), bars, ends), axis=1), axis=1) - 1)
