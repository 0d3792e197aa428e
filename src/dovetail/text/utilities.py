"""Utilities of candidates for a document: whole-number scores, and how far one sentence can move them apart."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import nearest, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.text.candidates import Candidates
from dovetail.text.encoders import UNIT, Rows, inner_products
from dovetail.text.sampler import Exponential, IntegerBudget, PermuteAndFlip, Selection, Utilities

_BLOCK = 32  # sentences


@dataclass(frozen=True, eq=False)
class Utility(ABC):
    """Scores the choices among public candidates for one document.

    Laws: replacing one sentence changes the scores by amounts that differ by at most `spread`, adding or removing
    one by amounts that differ by at most `spread` / 2; the order of sentences does not matter.
    """

    name: ClassVar[str]
    label: ClassVar[str]

    scale: ClassVar[int] = 1  # units of a score in 1

    candidates: Candidates

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        """This utility with its public parameters for these candidates."""
        return cls(candidates)

    @property
    @abstractmethod
    def spread(self) -> int:
        """C, at least 1."""

    @property
    def sensitivity(self) -> float:
        """C/2 in natural units: the most that one replaced sentence moves one score."""
        return self.spread / (2 * self.scale)

    @abstractmethod
    def scores(self, sentences: Rows) -> Utilities:
        """The score of each choice for a document of these sentences (k, d); zeros where there are none."""

    def variants(self) -> Iterable[Utility]:
        """This utility with other public parameters, from which public documents choose; itself among them."""
        return (self,)

    def members(self, choice: int, rng: Entropy) -> int:
        """The candidate that stands for a choice: the choice itself, unless choices are clusters."""
        return choice


def add_up(sentences: Rows, width: int, contributions: Callable[[Rows], NDArray[Any]]) -> Utilities:
    """The sum (m,) over sentences of their contributions (k, m), a block at a time: memory does not grow with k."""
    total = np.zeros(width, dtype=np.int64)
    for start in range(0, len(sentences), _BLOCK):
        total += contributions(sentences[start : start + _BLOCK]).sum(axis=0)
    return total


# Approval votes: each sentence approves of the candidates nearest to it.


_QUARTERS = (1, 2, 4, 8)


@dataclass(frozen=True, eq=False)
class Approval(Utility):
    """Utility: sentences that have a candidate among their `approved` nearest ones; a replacement moves it by 2.

    Parameters
    ----------
    candidates : Candidates
    approved : int, from 1 to m
        How many candidates each sentence approves of; chosen on public data. Ties go to the earlier candidate.
    """

    name = "approval"
    label = "approval votes"

    approved: int

    def __post_init__(self) -> None:
        whole("approved", self.approved, least=1, most=self.candidates.m)

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        return cls(candidates, candidates.approved)

    def variants(self) -> Iterable[Approval]:
        """Fewer and more candidates for each sentence."""
        sizes = {min(self.candidates.m, max(1, self.approved * part // 4)) for part in _QUARTERS}
        return [replace(self, approved=size) for size in sorted(sizes)]

    spread = 2

    def scores(self, sentences: Rows) -> Utilities:
        return add_up(sentences, self.candidates.m, self._approvals)

    def _approvals(self, sentences: Rows) -> NDArray[np.bool_]:
        products = inner_products(sentences, self.candidates.doubles)
        last = np.partition(products, -self.approved, axis=1)[:, -self.approved, None]
        nearer, tied = products > last, products == last
        left = self.approved - nearer.sum(axis=1, keepdims=True)
        return np.asarray(nearer | (tied & (tied.cumsum(axis=1) <= left)))


# Clipped scores: how much each sentence agrees with a candidate, within public limits.


_TWENTIETHS = (20, 14, 10, 7, 5, 3)


@dataclass(frozen=True, eq=False)
class ClippedScores(Utility):
    r"""Each sentence's inner products with the candidates, centred and clipped.

    .. math:: U_i = \sum_{s} \mathrm{clip}\bigl(2 \langle s, f_i \rangle
              - \max_j \langle s, f_j \rangle - \min_j \langle s, f_j \rangle,\ -B,\ B\bigr), \qquad C = 4B

    The default: one sentence's scores spread far less than the candidates' diameter allows, and the limit B says so.

    Parameters
    ----------
    candidates : Candidates
    limit : int, at least 1
        B, in halves of 4096^-2: the median half-range of public sentences; public, like the candidates.

    Notes
    -----
    A sentence's part of U lies in [-B, B] for every candidate, so that a replacement changes U by amounts in
    [-2B, 2B], which differ by at most 4B.
    """

    name = "clipped"
    label = "clipped scores"
    scale = 2 * UNIT * UNIT

    limit: int

    def __post_init__(self) -> None:
        whole("limit", self.limit, least=1)

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        return cls(candidates, candidates.half_range)

    def variants(self) -> Iterable[ClippedScores]:
        """Smaller limits: one sentence says less, and its noise shrinks with it."""
        return [replace(self, limit=max(1, self.limit * part // 20)) for part in _TWENTIETHS]

    @property
    def spread(self) -> int:
        return 4 * self.limit

    def scores(self, sentences: Rows) -> Utilities:
        return add_up(sentences, self.candidates.m, self._clipped)

    def _clipped(self, sentences: Rows) -> NDArray[np.int64]:
        products = 2 * inner_products(sentences, self.candidates.doubles)
        middle = (products.max(axis=1, keepdims=True) + products.min(axis=1, keepdims=True)) // 2
        return np.asarray((products - middle).clip(-self.limit, self.limit))


# Cluster votes: each sentence votes for one public cluster, and any candidate of the winner is released.


class ClusterVotes(Utility):
    """Utility: sentences that are nearest to each cluster's centre; a replacement moves it by 2.

    The selection is among clusters; the candidate is drawn uniformly from the selected one, which tells nothing.
    """

    name = "votes"
    label = "cluster votes"

    spread = 2

    def scores(self, sentences: Rows) -> Utilities:
        centres = self.candidates.centres
        votes = inner_products(sentences, centres).argmax(axis=1) if len(sentences) else np.zeros(0, dtype=np.int64)
        return np.bincount(votes, minlength=len(centres)).astype(np.int64)

    def members(self, choice: int, rng: Entropy) -> int:
        inside = np.flatnonzero(self.candidates.clusters == choice)
        return int(inside[rng.below(inside.size, 1)[0]])


# Depth of a candidate among the sentences, by public projections; and the maximum that the paper prints.


def counts(sentences: NDArray[np.int64], candidates: NDArray[np.int64]) -> tuple[Utilities, Utilities]:
    """Count the sentences at or above, and at or below, each candidate on one projection."""
    line = np.sort(sentences)
    below = np.searchsorted(line, candidates, side="right")
    return line.size - np.searchsorted(line, candidates, side="left"), below


class Depth(Utility):
    r"""The least depth of a candidate over public projections: approximate Tukey depth, from above.

    .. math:: U_i = \min_j \min\bigl(\#\{s : \langle s, v_j \rangle \ge \langle f_i, v_j \rangle\},\
              \#\{s : \langle s, v_j \rangle \le \langle f_i, v_j \rangle\}\bigr), \qquad C = 2

    Notes
    -----
    Each count changes by at most 1 when a sentence is replaced, and minima are 1-Lipschitz. O(p (m + k) log k) time,
    O(m) memory besides the candidates' projections (m, p).

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Algorithm 3, with the minimum that its text describes where its line 15 prints
    a maximum, and both counts, so that ties do not depend on the sign of a projection.
    """

    name = "depth"
    label = "depth over public projections"

    spread = 2

    def scores(self, sentences: Rows) -> Utilities:
        lines = inner_products(self.candidates.projections, sentences)  # (p, k)
        least = np.full(self.candidates.m, len(sentences), dtype=np.int64)
        for line, places in zip(lines, self.candidates.projected, strict=True):
            above, below = counts(line, places)
            np.minimum(least, np.minimum(above, below), out=least)
        return least


class PublishedDepth(Utility):
    r"""The utility that the paper prints: the best projection instead of the worst. As private, and useless.

    .. math:: U_i = \max_j -|2 h_{ij} - k|, \qquad h_{ij} = \#\{s : \langle s, v_j \rangle \ge \langle f_i, v_j
              \rangle\}, \qquad C = 4

    Almost all candidates tie at the top, so that the selection is nearly uniform. For comparison only.

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Algorithm 3, line 15, in halves.
    """

    name = "published"
    label = "the published maximum over projections, which hardly selects"

    spread = 4

    def scores(self, sentences: Rows) -> Utilities:
        lines = inner_products(self.candidates.projections, sentences)
        best = np.full(self.candidates.m, -len(sentences), dtype=np.int64)
        for line, places in zip(lines, self.candidates.projected, strict=True):
            above, _ = counts(line, places)
            np.maximum(best, -np.abs(2 * above - len(sentences)), out=best)
        return best


# The sum of inner products, whose spread is the diameter of the candidates.


_INNER_PRODUCT_BLOCK = 1024


class InnerProduct(Utility):
    r"""The sum of inner products of the sentences with a candidate.

    .. math:: U_i = \sum_{s} \langle s, f_i \rangle, \qquad C = 2 \max_{i,j} |f_i - f_j|

    Notes
    -----
    The change :math:`\langle s - s', f_i \rangle` differs over i by at most :math:`|s - s'| |f_i - f_j|`, and
    sentences have norm at most 1.
    """

    name = "inner"
    label = "inner products, by the diameter of the candidates"
    scale = UNIT * UNIT

    @cached_property
    def spread(self) -> int:
        rows = self.candidates.rows
        squares = (rows.astype(np.int64) ** 2).sum(axis=1)
        farthest = 0
        for start in range(0, len(rows), _INNER_PRODUCT_BLOCK):
            block = slice(start, start + _INNER_PRODUCT_BLOCK)
            apart = squares[block, None] + squares[None, :] - 2 * inner_products(rows[block], rows)
            farthest = max(farthest, int(apart.max()))
        return max(1, 1 + math.isqrt(4 * UNIT * UNIT * farthest))  # rounded up

    def scores(self, sentences: Rows) -> Utilities:
        rows = self.candidates.doubles
        return add_up(sentences, self.candidates.m, lambda block: inner_products(block, rows))


# Utilities and selection rules by name.


UTILITIES: dict[str, type[Utility]] = {
    one.name: one for one in (ClippedScores, Approval, ClusterVotes, InnerProduct, Depth, PublishedDepth)
}
SELECTIONS: dict[str, type[Selection]] = {one.name: one for one in (PermuteAndFlip, Exponential)}

Kind = TypeVar("Kind")


def choose(what: str, name: str, known: dict[str, type[Kind]]) -> type[Kind]:
    """The class of a name, or one line with the nearest known one."""
    if name not in known:
        raise ParameterError(f"`{what}` must be one of {', '.join(known)}, got {name!r}{nearest(name, known)}.")
    return known[name]


# Public parameters of a utility, chosen by a rehearsal on public documents alone.


def best_variant(utility: Utility, budget: IntegerBudget) -> Utility:
    """The variant whose released candidates agree best with the public documents they stand for.

    Agreement is sharing the class, where candidates have labels, and the inner product with the document's own
    candidate otherwise; that candidate itself does not count. Reads nothing private.
    """
    variants = list(utility.variants())
    if len(variants) == 1 or not len(utility.candidates.samples):
        return utility
    return max(variants, key=lambda one: public_agreement(one, budget))


def public_agreement(utility: Utility, budget: IntegerBudget) -> float:
    """Expected agreement of the exponential mechanism's candidate with sampled public documents."""
    candidates, rule = utility.candidates, Exponential()
    total, owners = 0.0, np.unique(candidates.owners)
    for owner in owners:
        sentences = candidates.samples[candidates.owners == owner]
        law = rule.probabilities(budget.levels(utility.scores(sentences), utility.spread), budget)
        law[owner] = 0.0
        total += float(law @ _agreement(candidates, int(owner)) / max(law.sum(), 1e-300))
    return total / len(owners)


def _agreement(candidates: Candidates, owner: int) -> NDArray[np.float64]:
    if candidates.labels is not None:
        return np.array([one == candidates.labels[owner] for one in candidates.labels], dtype=np.float64)
    own = candidates.rows[owner : owner + 1]
    return np.asarray(inner_products(own, candidates.rows)[0], dtype=np.float64)
