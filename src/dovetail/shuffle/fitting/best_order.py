r"""The best reference order: many candidate orders, each scored by its exact sensitivity.

.. math:: \min_{\sigma_0} \max_{G} \Delta(\sigma_0^{-1}(G))

Finding the optimum is NP-hard (it contains the bandwidth problem on trees), so several cheap orders compete, the best
ones are refined, and the smallest exact sensitivity wins: never one above the paper's own breadth-first order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.compiled import njit
from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError
from dovetail.shuffle.fitting import reference_orders as axes
from dovetail.shuffle.fitting import reference_orders as graph_search
from dovetail.shuffle.fitting.groups import Codes, Groups
from dovetail.shuffle.fitting.neighbours import Points, check_points
from dovetail.shuffle.fitting.ranges import People, Places
from dovetail.shuffle.fitting.reference_orders import (
    PeopleGraph,
    barycenter_sweep,
    block_places,
    check_atoms,
    label_order,
    make_contiguous,
    pairs_within_atoms,
    score_components,
)
from dovetail.shuffle.fitting.reference_orders import breadth_first_order as breadth_first
from dovetail.shuffle.sampling.permutations import inverse

# The exact sensitivity of a reference order in each component, and the best order of every component.


@dataclass(frozen=True, eq=False)
class OrderScorer:
    """Scores orders of the same groups.

    Components are laid out one after the other, people in no group last, and atoms are made contiguous. Moving the
    components apart never raises a sensitivity (removing the others between the members of a group cannot), and it
    lets the best order be chosen for each component by itself.

    Parameters
    ----------
    groups : Groups
    codes : int array (n,)
        Atoms, numbered 0..; everybody alone when atoms are not used.
    part : int array (groups,)
        Component of each group.
    layout : int array (n,)
        Component of each person; the number of components for people in no group.
    within : int array (groups,)
        Pairs of members of a common atom.
    joined : bool
        Whether some atom has more than one member.
    """

    groups: Groups
    codes: Codes
    part: Places
    layout: Places
    within: Places
    joined: bool

    @classmethod
    def of(cls, groups: Groups, codes: Codes) -> OrderScorer:
        """The scorer for these groups and atoms."""
        component = groups.components()
        parts = int(component.max(initial=-1)) + 1
        part = component[groups.rows.people[groups.rows.starts]] if len(groups) else np.empty(0, dtype=np.int64)
        layout = np.where(component < 0, parts, component)
        joined = bool((np.bincount(codes) > 1).any())
        return cls(groups, codes, part, layout, pairs_within_atoms(groups, codes), joined)

    @property
    def parts(self) -> int:
        """Number of components."""
        return int(self.part.max(initial=-1)) + 1

    @property
    def bounds(self) -> Places:
        """Lower bound C(g, 2) - c_G of the sensitivity of any order, for each component (components,)."""
        result = np.zeros(self.parts, dtype=np.int64)
        sizes = self.groups.sizes
        np.maximum.at(result, self.part, sizes * (sizes - 1) // 2 - self.within)
        return result

    def score(self, name: str, order: Permutation) -> ScoredOrder:
        """This order, laid out and scored."""
        line = make_contiguous(order, self.codes) if self.joined else order
        if self.layout.any():
            line = line[np.argsort(self.layout[line], kind="stable")]
        deltas, widths = score_components(
            self.groups.rows, inverse(line), within=self.within, part=self.part, parts=self.parts
        )
        return ScoredOrder(name, line, order, deltas, widths, np.full(self.parts, name, dtype=object))

    def best_by_component(self, one: ScoredOrder, other: ScoredOrder) -> ScoredOrder:
        """Each component from the order with the smaller sensitivity there, then the smaller width; ties stay."""
        swap = (other.deltas < one.deltas) | ((other.deltas == one.deltas) & (other.widths < one.widths))
        if not swap.any():
            return one
        take = np.append(swap, False)[self.layout[one.line]]  # both lines have the same layout
        return ScoredOrder(
            one.first,
            np.where(take, other.line, one.line),
            other.whole if other.sensitivity < one.sensitivity else one.whole,
            np.where(swap, other.deltas, one.deltas),
            np.where(swap, other.widths, one.widths),
            np.where(swap, other.names, one.names),
        )

    def join_components(self, scored: ScoredOrder) -> Permutation:
        """Its line, with components (and people in no group) where they are on average in the order it came from."""
        alone = np.flatnonzero(self.layout == self.parts)
        blocks = self.layout.copy()
        blocks[alone] = self.parts + np.arange(alone.size)
        means, firsts = block_places(inverse(scored.whole), blocks)
        return np.lexsort((inverse(scored.line), firsts[blocks], means[blocks]))


@dataclass(frozen=True, eq=False)
class ScoredOrder:
    """One order, its scores by component, and where they come from.

    Parameters
    ----------
    first : str
        What it is called where there are no components to win.
    line : int array (n,)
        The order as scored: components one after the other, by number.
    whole : int array (n,)
        The order as it was proposed.
    deltas, widths, names : arrays (components,)
        Largest exact sensitivity, largest width, and the name of the order, in each component.
    """

    first: str
    line: Permutation
    whole: Permutation
    deltas: Places
    widths: Places
    names: np.ndarray

    @property
    def sensitivity(self) -> int:
        """Largest over the components."""
        return int(self.deltas.max(initial=0))

    @property
    def width(self) -> int:
        """Largest over the components."""
        return int(self.widths.max(initial=0))

    @property
    def name(self) -> str:
        """Name of the order in the component that decides."""
        return str(self.names[np.argmax(self.deltas)]) if self.names.size else self.first


# What no reference order can go below.


_MOST_LOOKS = 50_000_000


def width_bound(groups: Groups) -> int:
    r"""Lower bound of the largest width of any order.

    .. math:: w \ge \max_G |G| - 1, \qquad w \ge \lceil (|N_2(i)| - 1) / 2 \rceil

    with N_2(i) the union of the groups that contain i: everybody there stands within w of i, on either side.

    Notes
    -----
    Counting N_2 for everybody takes the sum of squared group sizes. Any person gives a valid bound, so the most
    promising ones, with the most fellow members, are counted until 5e7 members were looked at.
    """
    if groups.contiguous or not len(groups):
        return _window_bound(groups)
    rows, around = groups.rows, groups.rows.transpose(groups.n)
    fellows = np.asarray(_fellows(rows.people, rows.starts, rows.stops, groups.n))
    promising = np.argsort(-fellows, kind="stable")
    count = max(1, int(np.searchsorted(np.cumsum(fellows[promising]), _MOST_LOOKS)))
    spread = _widest(
        promising[:count], rows.people, rows.starts, rows.stops, around.people, around.starts, around.stops
    )
    return max(groups.largest - 1, int(spread) // 2)


def _window_bound(groups: Groups) -> int:
    """The same for windows: N_2 reaches from the lowest begin to the highest end of the windows over a place."""
    low, high = np.full(groups.n, groups.n), np.zeros(groups.n, dtype=np.int64)
    if not len(groups):
        return 0
    np.maximum.at(high, groups.rows.starts, groups.rows.stops)
    np.minimum.at(low, groups.rows.stops - 1, groups.rows.starts)
    reach = np.maximum.accumulate(high) - np.minimum.accumulate(low[::-1])[::-1]
    return max(groups.largest - 1, int(reach.max()) // 2)


@njit(cache=True, nogil=True)
def _fellows(people: People, starts: Places, stops: Places, n: int) -> Places:
    """Sizes of the groups of each person (n,), added up."""
    result = np.zeros(n, dtype=np.int64)
    for g in range(starts.size):
        for member in people[starts[g] : stops[g]]:
            result[member] += stops[g] - starts[g]
    return result


@njit(cache=True, nogil=True)
def _widest(
    persons: Places,
    people: People, starts: Places, stops: Places, around: People, around_starts: Places, around_stops: Places,
) -> int:  # fmt: skip
    """Largest number of people who meet one person, the person included."""
    seen = np.full(around_starts.size, -1, dtype=np.int64)
    most = 1
    for i in persons:
        count = 0
        for g in around[around_starts[i] : around_stops[i]]:
            for j in people[starts[g] : stops[g]]:
                if seen[j] != i:
                    seen[j] = i
                    count += 1
        most = max(most, count)
    return most


BASELINE = "breadth first"

_MOST_AXES = 8
_MOST_LISTED = 100_000_000  # members of windows, listed to score a search that the label order beats anyway
_STARTS = 12  # candidates that are refined, the best first
_SWEEPS = 30  # of each kind, for each start and each graph
_PATIENCE = 12  # sweeps without an improvement
_VISITS = 500_000_000  # looks at a member while refining
_MOST_SEARCHED = 20_000_000  # members, beyond which only the quickest searches are done

_ATTAINED = "the lower bound is attained already"

Report = tuple[dict[str, Any], ...]


class SkippedOrder(NamedTuple):
    """A candidate that was not tried, and why."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class Candidate:
    """One order that was tried, its largest exact sensitivity and its largest width."""

    name: str
    order: Permutation
    sensitivity: int
    width: int


@dataclass(frozen=True, eq=False)
class ReferenceOrder:
    r"""The chosen reference order, and what it was chosen from.

    .. math:: w \ge \max_G |G| - 1, \qquad w \ge (|N_2(i)| - 1) / 2, \qquad \Delta \ge \binom{\max |G|}{2}

    with N_2(i) the union of the groups that contain i. With atoms, pairs inside an atom are taken off the last bound.

    Parameters
    ----------
    order : int array (n,)
        order[k] is the person at place k. Components are contiguous, and so are atoms when they were given.
    name : str
        The candidate that was taken for the component with the largest sensitivity.
    sensitivity, width : int
        Largest exact Kendall sensitivity (between atoms, when they were given) and largest width over the groups.
    sensitivity_bound, width_bound : int
        No order can be below these.
    baseline : int or None
        Sensitivity of the paper's breadth-first order in the same layout; None where it was not computed.
    candidates : tuple of dict
        One row per candidate: `name`, `sensitivity`, `width`, `note`; the numbers are None where it was skipped.
    """

    order: Permutation
    name: str
    sensitivity: int
    width: int
    sensitivity_bound: int
    width_bound: int
    baseline: int | None
    candidates: Report

    @property
    def optimal(self) -> bool:
        """True if the lower bound is attained."""
        return self.sensitivity == self.sensitivity_bound


def candidates(groups: Groups, points: ArrayLike | None = None, refine: bool = True) -> list[Candidate]:
    """Every candidate that is not skipped, scored without atoms; `refine=False` leaves out the slow refinements."""
    start, scorer, given = _prepare(groups, points, np.arange(groups.n))
    found = _score_candidates(scorer, given, rounds=_STARTS if refine else 0)
    scored = [result for result in found if isinstance(result, ScoredOrder)]
    return [
        Candidate(each.name, start[scorer.join_components(each)], each.sensitivity, each.width) for each in scored
    ]


def best_order(groups: Groups, *, points: ArrayLike | None = None, atoms: ArrayLike | None = None) -> ReferenceOrder:
    """The order of smallest exact sensitivity among the candidates, component by component; deterministic.

    Parameters
    ----------
    groups : Groups
    points : float array (n,) or (n, d), optional
        Public coordinates of the people, if there are any: sorts along axes are often the best orders.
    atoms : int array (n,), optional
        `groups.atoms()` or finer. Then every atom is contiguous and sensitivities count only pairs of different
        atoms: for a shuffler that permutes uniformly inside atoms, and for no other.

    Raises
    ------
    DataError
        For `points` that are no finite numbers, one row per person.

    Notes
    -----
    A few passes over the members for each candidate; refinement is limited to about 5e8 looks at a member. What is
    skipped is in the table of candidates with the reason.

    Examples
    --------
    >>> path = Groups.from_graph([[0, 3], [3, 1], [1, 4], [4, 2]])
    >>> best = best_order(path)
    >>> best.order, best.sensitivity, best.sensitivity_bound
    (array([0, 3, 1, 4, 2]), 3, 3)
    """
    codes = np.arange(groups.n) if atoms is None else check_atoms(atoms, groups)
    start, scorer, given = _prepare(groups, points, codes)
    rows: list[dict[str, Any]] = []
    best = baseline = None
    for result in _score_candidates(scorer, given, rounds=_STARTS):
        rows.append(_row(result))
        if isinstance(result, ScoredOrder):
            baseline = result.sensitivity if result.name == BASELINE else baseline
            best = result if best is None else scorer.best_by_component(best, result)
    if best is None:
        raise DataError("No candidate order could be computed for these groups.")
    return ReferenceOrder(
        order=start[scorer.join_components(best)],
        name=best.name,
        sensitivity=best.sensitivity,
        width=best.width,
        sensitivity_bound=int(scorer.bounds.max(initial=0)),
        width_bound=width_bound(scorer.groups),
        baseline=baseline,
        candidates=tuple(rows),
    )


def _prepare(
    groups: Groups, points: ArrayLike | None, codes: Codes
) -> tuple[Permutation, OrderScorer, Points | None]:
    """The baseline order, and everything else with people called by their place in it.

    Members of a group then lie close together in memory, which makes every pass several times faster. Ties "by
    index" in later candidates are therefore ties by place in the baseline.
    """
    given = _check_points(points, groups.n)
    if groups.contiguous:
        return np.arange(groups.n), OrderScorer.of(groups, codes), given
    start = breadth_first(groups)
    where = None if given is None else given[start]
    return start, OrderScorer.of(groups.relabel(start), codes[start]), where


def _score_candidates(
    scorer: OrderScorer, points: Points | None, *, rounds: int
) -> Iterator[ScoredOrder | SkippedOrder]:
    """Every candidate in turn, scored; once the lower bound is attained the rest are skipped."""
    best: ScoredOrder | None = None
    scored: list[ScoredOrder] = []
    for name, compute, reason in _candidate_orders(scorer, points):
        done = best is not None and bool((best.deltas == scorer.bounds).all())
        if done or reason:
            yield SkippedOrder(name, reason or _ATTAINED)
            continue
        order = scorer.score(name, compute())
        yield order
        scored.append(order)
        best = order if best is None else scorer.best_by_component(best, order)
    if best is not None and rounds and not (best.deltas == scorer.bounds).all():
        yield from _refinements(scorer, scored, best, rounds)


def _candidate_orders(
    scorer: OrderScorer, points: Points | None
) -> Iterator[tuple[str, Callable[[], Permutation], str]]:
    """Name, computation, and the reason to skip it ('' for none) of each candidate that is not a refinement."""
    groups = scorer.groups
    if groups.contiguous:
        # the search itself lists nothing, its score does
        heavy = _above(groups.rows.entries, _MOST_LISTED, "members")
        yield BASELINE, partial(breadth_first, groups), heavy
        yield "label order", partial(label_order, groups), ""
        return
    star, clique = graph_search.group_graphs(groups)
    roots = graph_search.owners_by_group_size(groups)
    yield BASELINE, lambda: np.arange(groups.n), ""
    if points is not None:
        for axis in range(min(points.shape[1], _MOST_AXES)):
            yield f"axis {axis}", partial(axes.sort_along_axis, points, axis), ""
        if points.shape[1] > 1:
            yield "principal axis", partial(axes.sort_along_principal_axis, points), ""
    yield "breadth first, meetings", partial(graph_search.breadth_first, clique, roots), ""
    far = _above(groups.rows.entries, _MOST_SEARCHED, "members")
    for name, graph in (("", star), (", meetings", clique)):
        yield (
            f"Cuthill-McKee{name}",
            partial(graph_search.cuthill_mckee, graph, peripheral=False),
            far * (graph is clique),
        )
        yield f"Cuthill-McKee{name}, peripheral", partial(graph_search.cuthill_mckee, graph, peripheral=True), far
    slow = _above(int(groups.grouped.sum()), axes.MOST_FIEDLER, "people in groups")
    yield "Fiedler", lambda: axes.fiedler_order(groups, groups.components()), slow


def _refinements(
    scorer: OrderScorer, scored: list[ScoredOrder], best: ScoredOrder, rounds: int
) -> Iterator[ScoredOrder | SkippedOrder]:
    """The best starts refined on both graphs, until the budget of looks is used up or the bound is attained."""
    starts = sorted(scored, key=lambda order: order.sensitivity)[:rounds]
    left = _VISITS
    graphs = graph_search.group_graphs(scorer.groups)
    for start in starts:
        for graph, suffix in ((graphs.clique, ", meetings"), (graphs.star, "")):
            name = f"{start.name}, refined{suffix}"
            if left <= 0 or (best.deltas == scorer.bounds).all():
                yield SkippedOrder("further refinements", "as many looks as allowed" if left <= 0 else _ATTAINED)
                return
            result, sweeps = _refine(scorer, start, graph, name, left)
            left -= sweeps * graph_search.member_visits(graph)
            best = scorer.best_by_component(best, result)
            yield result


def _refine(
    scorer: OrderScorer, start: ScoredOrder, graph: PeopleGraph, name: str, visits: int
) -> tuple[ScoredOrder, int]:
    """The best of the orders that sweeps lead to, at each component, and how many sweeps there were."""
    best = replace(start, first=name, names=np.full(scorer.parts, name, dtype=object))
    line, most, used = start.line, max(1, visits // max(1, graph_search.member_visits(graph))), 0
    for mean in (False, True):
        idle = sweeps = 0
        while idle < _PATIENCE and sweeps < _SWEEPS and used < most:
            line = barycenter_sweep(graph, line, mean=mean)
            swept = replace(scorer.score(name, line), whole=start.whole)
            better = scorer.best_by_component(best, swept)
            idle = 0 if better is not best else idle + 1
            best, sweeps, used = better, sweeps + 1, used + 1
    return best, used


def _above(count: int, most: int, what: str) -> str:
    return f"{count:,} {what}, above {most:,}" if count > most else ""


def _row(result: ScoredOrder | SkippedOrder) -> dict[str, Any]:
    if isinstance(result, SkippedOrder):
        return {"name": result.name, "sensitivity": None, "width": None, "note": f"skipped: {result.reason}"}
    return {"name": result.name, "sensitivity": result.sensitivity, "width": result.width, "note": ""}


def _check_points(points: ArrayLike | None, n: int) -> Points | None:
    if points is None:
        return None
    given = check_points(points)
    if len(given) != n:
        raise DataError(f"`points` must be coordinates of {n:,} people, got {len(given):,}.")
    return given
