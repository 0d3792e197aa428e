"""The chance that each person sent each kind of report, by the public law of the shuffle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from dovetail.attack.experiment.sender_model import DrawnOrders, EvenBlocks
from dovetail.attack.experiment.share_posterior import MOST_CELLS, Compositions, tables
from dovetail.core.compiled import COMPILED, njit
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.stages import Labels

Rows = NDArray[np.float64]  # (classes or people, kinds of report)
Codes = NDArray[np.int64]

WORK = 3_000_000 if COMPILED else 30_000  # steps of the exact sum over all compositions, for one pass
MOST_TOGETHER = 7  # people of a component whose joint order is weighed, not place by place
_SCALINGS, _CENTRINGS = 50, 5


class Batch(ABC):
    """Who can have sent each report of one batch."""

    @abstractmethod
    def expected(self, chances: Rows) -> tuple[Rows, float, Rows]:
        """Expected reports (classes, kinds) of each class, the log likelihood up to a constant, and what people sent.

        `chances` is the law (classes, kinds) of the report of a person of each class, each kind up to a factor. What
        people sent has a row for each of `rows`.
        """

    @property
    @abstractmethod
    def rows(self) -> Codes:
        """The row (n,) of each person."""

    @abstractmethod
    def halves(self, rng: Entropy) -> tuple[Batch, Batch]:
        """A random half of the blocks, and the others."""

    @abstractmethod
    def compositions(self, classes: int) -> Compositions | None:
        """The same as a sum over compositions, for many draws of shares at once; None where there are too many."""


class Senders(ABC):
    """Who can stand where, for any batch."""

    classes: Codes  # (n,), 0..c-1

    @abstractmethod
    def batch(self, kinds: Codes) -> Batch:
        """Of reports of these kinds (n,), place by place."""

    @property
    @abstractmethod
    def remark(self) -> str:
        """How well the law of the order is known, as half a sentence."""


@mute
@dataclass(frozen=True, eq=False)
class BlockSenders(Senders):
    r"""Places that are mixed evenly inside blocks.

    .. math:: \Pr[h] = \sum_{N} \prod_c n_c! \prod_y \frac{q_{c y}^{N_{c y}}}{N_{c y}!}, \qquad
              \sum_y N_{c y} = n_c, \; \sum_c N_{c y} = h_y

    The sum over compositions N runs person by person over the reports that are left. Larger blocks take the single
    composition that weighs most, N = a_c n_c q_cy t_y with the right margins (Sinkhorn): what a person sent is then
    off by the order of 1 / (people in the block).

    Parameters
    ----------
    classes : int array (n,)
    blocks : int array (n,)
    order : int array (n,)
        People sorted by block, inside by class.
    starts : int array (blocks + 1,)
    composition : int array (blocks,)
        Blocks of the same classes have the same number.
    """

    classes: Codes
    blocks: Labels
    order: Codes
    starts: Codes
    composition: Codes

    @classmethod
    def of(cls, classes: Codes, seats: EvenBlocks) -> Self:
        """Of people in blocks."""
        blocks = seats.blocks
        order = np.lexsort((classes, blocks))
        starts = np.concatenate(([0], np.cumsum(np.bincount(blocks))))
        line = classes[order]
        known: dict[bytes, int] = {}
        composition = [known.setdefault(line[low:high].tobytes(), len(known)) for low, high in pairwise(starts)]
        return cls(classes, blocks, order, starts, np.array(composition))

    def batch(self, kinds: Codes) -> Batch:
        count = int(kinds.max()) + 1
        cells = np.bincount(self.blocks * count + kinds, minlength=len(self.composition) * count)
        table = np.column_stack((self.composition, cells.reshape(-1, count)))
        counts, first, pattern = np.unique(table, axis=0, return_index=True, return_inverse=True)
        line = self.classes[self.order]
        new = np.ones(len(line), dtype=bool)  # the first of her class in her block
        new[1:] = (line[1:] != line[:-1]) | (np.diff(self.blocks[self.order]) > 0)
        heads = np.flatnonzero(new)
        block = self.blocks[self.order][heads]
        low = np.searchsorted(block, np.arange(len(self.composition) + 1))
        kept = np.concatenate([np.arange(low[b], low[b + 1]) for b in first])
        ends = np.concatenate(([0], np.cumsum((low[1:] - low[:-1])[first])))
        number = np.cumsum(new) - 1  # of the class in all blocks
        place = np.empty(len(line), dtype=np.int64)
        place[self.order] = ends[pattern.ravel()][self.blocks[self.order]] + number - low[self.blocks[self.order]]
        return _BlockBatch(
            counts=counts[:, 1:],
            pattern=pattern.ravel(),
            weight=np.bincount(pattern.ravel()).astype(np.float64),
            who=line[heads][kept],
            many=np.diff(np.append(heads, len(line)))[kept],
            ends=ends,
            exact=_affordable(counts[:, 1:]),
            people=place,
        )

    @property
    def remark(self) -> str:
        return "it knows the law of the order exactly"


@mute
@dataclass(frozen=True, eq=False)
class _BlockBatch(Batch):
    """Blocks of the same classes that hold the same reports are one pattern; its classes `who` have `many` people."""

    counts: NDArray[np.int64]  # (patterns, kinds)
    pattern: Codes  # (blocks,)
    weight: NDArray[np.float64]  # (patterns,), blocks
    who: Codes
    many: Codes
    ends: Codes  # (patterns + 1,)
    exact: NDArray[np.bool_]  # (patterns,)
    people: Codes  # (n,)

    @property
    def rows(self) -> Codes:
        return self.people

    def halves(self, rng: Entropy) -> tuple[Batch, Batch]:
        one = rng.permutation(len(self.pattern)) < len(self.pattern) // 2
        first = np.bincount(self.pattern, one).astype(np.float64)
        return replace(self, weight=first), replace(self, weight=self.weight - first)

    def compositions(self, classes: int) -> Compositions | None:
        kinds, before = self.counts.shape[1], 0
        terms, logs, rows, columns, shares = [], [], [], [], []
        for counts, (low, high) in zip(self.counts, pairwise(self.ends.tolist()), strict=True):
            seen, many = np.flatnonzero(counts), self.many[low:high]
            found = tables(tuple(many.tolist()), tuple(counts[seen].tolist()))
            if found is None or (before + len(found[0])) * classes * kinds > MOST_CELLS:
                return None
            table = np.zeros((len(found[0]), high - low, kinds))
            table[:, :, seen] = found[0]
            wide = np.zeros((len(table), classes, kinds))
            wide[:, self.who[low:high]] = table
            terms.append(wide)
            logs.append(found[1])
            term, row, kind = np.nonzero(table)
            rows.append((low + row) * kinds + kind)
            columns.append(before + term)
            shares.append(table[term, row, kind] / many[row])
            before += len(table)
        sizes = np.array([len(each) for each in logs])
        where = (np.concatenate(rows), np.concatenate(columns))
        sends = csr_array((np.concatenate(shares), where), shape=(len(self.who) * kinds, before))
        return Compositions(
            np.concatenate(terms), np.concatenate(logs), np.cumsum(sizes) - sizes, self.weight, sends, self.who
        )

    def expected(self, chances: Rows) -> tuple[Rows, float, Rows]:
        told, likelihood = chances[self.who], 0.0
        sizes = np.diff(self.ends)
        for one in np.flatnonzero(self.exact & (self.weight > 0.0)):
            here, seen = slice(self.ends[one], self.ends[one + 1]), np.flatnonzero(self.counts[one])
            seen = seen[np.argsort(self.counts[one][seen], kind="stable")]  # the commonest last: it is implied
            people = np.repeat(np.arange(sizes[one]), self.many[here])
            margins = self.counts[one][seen]
            chances_here, scaled = _centred(told[here][people][:, seen], margins)
            last = np.zeros(int(np.prod(margins[:-1] + 1)))
            last[-1] = 1.0  # all reports are taken
            sent, log = compositions(chances_here, margins, last)
            told[here] = 0.0
            told[here, seen] = sent[np.searchsorted(people, np.arange(sizes[one]))]
            likelihood += self.weight[one] * (scaled + log)
        rest = np.repeat(~self.exact, sizes)
        if rest.any():
            of = np.repeat(np.arange(len(sizes)), sizes)[rest]
            told[rest], log = _scaled(told[rest], self.many[rest], of, self.counts, self.weight)
            likelihood += log
        people = np.repeat(self.weight, sizes) * self.many
        return _summed(self.who, people[:, None] * told, len(chances)), float(likelihood), told


@mute
@dataclass(frozen=True, eq=False)
class ComponentSenders(Senders):
    """Small components of an order: each drawn order of a component is weighed by what its people would have sent.

    Parameters
    ----------
    classes : int array (n,)
    senders : int array (draws, n)
        Whose report stands at each place.
    order, starts : int arrays
        Places sorted by component, and where each component starts.
    """

    classes: Codes
    senders: NDArray[np.int32]
    order: Codes
    starts: Codes

    @classmethod
    def of(cls, classes: Codes, seats: DrawnOrders) -> Self | None:
        """Of people in small components; None if one is large."""
        component = components_of(seats.senders)
        sizes = np.bincount(component)
        if sizes.max() > MOST_TOGETHER:
            return None
        return cls(
            classes, seats.senders, np.argsort(component, kind="stable"), np.concatenate(([0], np.cumsum(sizes)))
        )

    @cached_property
    def distinct(self) -> tuple[Codes, Codes, Codes, Codes, NDArray[np.float64]]:
        """The different orders of each component.

        The number of the order, a sender and her place, one by one; then the component of each order, and how often
        it was drawn.
        """
        found: list[tuple[Codes, Codes, Codes, Codes, NDArray[np.float64]]] = []
        before = 0
        for number, (low, high) in enumerate(pairwise(self.starts)):
            here = self.order[low:high]
            rows, often = np.unique(self.senders[:, here], axis=0, return_counts=True)
            orders = np.repeat(before + np.arange(len(rows)), len(here))
            component = np.full(len(rows), number)
            found.append(
                (orders, rows.ravel().astype(np.int64), np.tile(here, len(rows)), component, often.astype(np.float64))
            )
            before += len(rows)
        order, sender, place, of, drawn = (np.concatenate(part) for part in zip(*found, strict=True))
        return order, sender, place, of, drawn

    def batch(self, kinds: Codes) -> Batch:
        return _ComponentBatch(self, kinds, np.arange(len(self.starts) - 1))

    @property
    def remark(self) -> str:
        return f"it weighed {len(self.senders):,} drawn orders of each component as a whole"


@mute
@dataclass(frozen=True, eq=False)
class _ComponentBatch(Batch):
    law: ComponentSenders
    kinds: Codes
    among: Codes  # components that count

    @property
    def rows(self) -> Codes:
        return np.arange(len(self.kinds))

    def halves(self, rng: Entropy) -> tuple[Batch, Batch]:
        line, half = rng.permutation(len(self.among)), len(self.among) // 2
        return replace(self, among=self.among[line[:half]]), replace(self, among=self.among[line[half:]])

    def compositions(self, classes: int) -> Compositions | None:
        law, kinds = self.law, int(self.kinds.max()) + 1
        if (len(law.starts) - 1) * classes * kinds > MOST_CELLS:
            return None
        order, senders, places, component, drawn = law.distinct
        sent = law.classes[senders] * kinds + self.kinds[places]
        cells = np.bincount(order * (classes * kinds) + sent, minlength=len(drawn) * classes * kinds)
        found, term = np.unique(
            np.column_stack((component, cells.reshape(len(drawn), -1))), axis=0, return_inverse=True
        )
        if found.size > MOST_CELLS:
            return None
        weights = np.bincount(term.ravel(), drawn)
        shares = (drawn / weights[term.ravel()])[order]
        rows = senders * kinds + self.kinds[places]
        sends = csr_array((shares, (rows, term.ravel()[order])), shape=(len(self.kinds) * kinds, len(found)))
        starts = np.searchsorted(found[:, 0], np.arange(len(law.starts) - 1))
        weight = np.bincount(self.among, minlength=len(starts)).astype(np.float64)
        exponents = found[:, 1:].reshape(-1, classes, kinds).astype(np.float64)
        return Compositions(exponents, np.log(weights), starts, weight, sends, law.classes)

    def expected(self, chances: Rows) -> tuple[Rows, float, Rows]:
        law = self.law
        told, likelihood = _joint(chances[law.classes], self.kinds, law.senders, law.order, law.starts, self.among)
        return _summed(law.classes, told, len(chances)), float(likelihood), told


def components_of(senders: NDArray[np.int32]) -> Codes:
    """Number (n,) of the component of each person: people whose reports never stand at each other's places differ."""
    draws, n = senders.shape
    places = np.tile(np.arange(n), draws)
    links = csr_array((np.ones(draws * n, dtype=np.int8), (places, senders.ravel())), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


def _affordable(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The patterns (patterns,) that are summed exactly: those of the least work, as many as `WORK` allows."""
    people, kinds = counts.sum(axis=1), (counts > 0).sum(axis=1)
    states = np.prod(counts + 1.0, axis=1) / (counts.max(axis=1) + 1.0)
    work = people * kinds * states
    cheap = np.argsort(work, kind="stable")
    found = np.zeros(len(counts), dtype=bool)
    found[cheap[np.cumsum(work[cheap]) <= WORK]] = True
    return found


def _summed(classes: Codes, rows: Rows, count: int) -> Rows:
    return np.array([np.bincount(classes, column, minlength=count) for column in rows.T]).T


def _scaled(
    chances: Rows, many: Codes, of: Codes, counts: NDArray[np.int64], weight: NDArray[np.float64]
) -> tuple[Rows, float]:
    """The law of what each person of a class of some patterns sent, with the pattern's margins; log likelihood."""
    patterns = len(counts)
    person = np.ones(len(chances))
    for _ in range(_SCALINGS):
        sums = _summed(of, (many * person)[:, None] * chances, patterns)
        report = np.divide(counts, sums, out=np.zeros(counts.shape), where=sums > 0.0)
        before, person = person, 1.0 / (chances * report[of]).sum(axis=1)
        if np.abs(before / person - 1.0).max() < 1e-6:
            break
    logs = np.log(np.where(report > 0.0, report, 1.0))
    likelihood = -(weight[of] * many * np.log(person)).sum() - (weight[:, None] * counts * logs).sum()
    return person[:, None] * chances * report[of], float(likelihood)


@njit(cache=True, nogil=True)
def _centred(chances: Rows, counts: NDArray[np.int64]) -> tuple[Rows, float]:
    """Chances (m, kinds) whose columns sum to the counts, and the log of all factors taken out.

    Factors of people and kinds change no law, and keep the mass where the reports are.
    """
    m, kinds = chances.shape
    log = 0.0
    chances = chances.copy()
    for _ in range(_CENTRINGS):
        for y in range(kinds):
            whole = 0.0
            for i in range(m):
                whole += chances[i, y]
            for i in range(m):
                chances[i, y] *= counts[y] / whole
            log += counts[y] * np.log(whole / counts[y])
        for i in range(m):
            whole = 0.0
            for y in range(kinds):
                whole += chances[i, y]
            for y in range(kinds):
                chances[i, y] /= whole
            log += np.log(whole)
    return chances, log


@njit(cache=True, nogil=True)
def compositions(chances: Rows, most: NDArray[np.int64], last: NDArray[np.float64]) -> tuple[Rows, float]:
    """The law of what each person (m, kinds) of a block sent, and the log likelihood: forwards and backwards.

    A state holds how many reports of each kind are taken, at most so many, the last kind implied by the number of
    people; `last` (states,) is how likely what was released is, where a state is all that people sent.
    """
    m, kinds = chances.shape
    free = kinds - 1
    log = 0.0
    strides = np.ones(kinds, dtype=np.int64)
    for y in range(1, kinds):
        strides[y] = strides[y - 1] * (most[y - 1] + 1)
    # what each state has taken, of each kind and in all
    states = strides[free]
    taken = np.zeros((states, kinds), dtype=np.int64)
    total = np.zeros(states, dtype=np.int64)
    for s in range(states):
        for y in range(free):
            taken[s, y] = (s // strides[y]) % (most[y] + 1)
            total[s] += taken[s, y]
    # forwards: how likely the first i people sent what a state holds, scaled at each step to stay in range
    forward = np.zeros((m + 1, states))
    forward[0, 0] = 1.0
    for i in range(m):
        largest = 0.0
        for s in range(states):
            mass = forward[i, s]
            if mass > 0.0:
                for y in range(free):
                    if taken[s, y] < most[y]:
                        forward[i + 1, s + strides[y]] += mass * chances[i, y]
                if i - total[s] < most[free]:
                    forward[i + 1, s] += mass * chances[i, free]
        for s in range(states):
            largest = max(largest, forward[i + 1, s])
        log += np.log(largest)
        for s in range(states):
            forward[i + 1, s] /= largest
    log += np.log((forward[m] * last).sum())
    # backwards: how likely the others sent the rest; both together say what person i sent
    sent = np.zeros((m, kinds))
    after = last.copy()
    before = np.zeros(states)
    for i in range(m - 1, -1, -1):
        largest, whole = 0.0, 0.0
        for s in range(states):
            mass, back = forward[i, s], 0.0
            if i >= total[s]:
                for y in range(free):
                    if taken[s, y] < most[y]:
                        part = chances[i, y] * after[s + strides[y]]
                        sent[i, y] += mass * part
                        back += part
                if i - total[s] < most[free]:
                    part = chances[i, free] * after[s]
                    sent[i, free] += mass * part
                    back += part
            before[s] = back
            largest = max(largest, back)
        for y in range(kinds):
            whole += sent[i, y]
        for y in range(kinds):
            sent[i, y] /= whole
        for s in range(states):
            after[s] = before[s] / largest
    return sent, log


@njit(cache=True, nogil=True)
def _joint(
    chances: Rows, kinds: Codes, senders: NDArray[np.int32], order: Codes, starts: Codes, among: Codes
) -> tuple[Rows, float]:
    """The law of what each person (n, kinds) sent, and the log likelihood: each drawn order by its weight."""
    draws = len(senders)
    told = np.zeros(chances.shape)
    log = 0.0
    for one in among:
        whole = 0.0
        for s in range(draws):
            weight = 1.0
            for at in range(starts[one], starts[one + 1]):
                weight *= chances[senders[s, order[at]], kinds[order[at]]]
            whole += weight
            for at in range(starts[one], starts[one + 1]):
                told[senders[s, order[at]], kinds[order[at]]] += weight
        log += np.log(whole / draws)
        for at in range(starts[one], starts[one + 1]):  # a component's places are its people's
            for y in range(chances.shape[1]):
                told[order[at], y] /= whole
    return told, log
