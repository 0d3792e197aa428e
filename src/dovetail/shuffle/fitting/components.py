"""Independent shufflers side by side: a line of everybody, cut into components, cut into atoms.

A group lies in one component, so components may be shuffled independently and each as little as its own groups
allow. A group holds whole atoms, so people of one atom may be exchanged freely: the order inside an atom is uniform.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from dovetail.core.checks import whole
from dovetail.core.compiled import njit
from dovetail.core.entropy import Entropy, Permutation, simulation
from dovetail.core.errors import DataError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.shuffle.fitting.best_order import ReferenceOrder, best_order
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.ranges import People, Places
from dovetail.shuffle.fitting.reference_orders import make_contiguous
from dovetail.shuffle.sampling.lehmer_code import BlockStarts, Thetas, decode_lehmer_code, draw_lehmer_code
from dovetail.shuffle.sampling.mallows import inversions, log_normalizer
from dovetail.shuffle.sampling.permutations import (
    Labels,
    Mixing,
    Plane,
    check_permutation,
    inverse,
    normalize_rows,
    permute_within_blocks,
)

# How a shuffler came about, in public words and numbers: for summaries and saved files, never for the law.


EMPTY_GUARANTEE = "nobody is in a group with anybody else: nothing is shuffled, the promise is empty"


@dataclass(frozen=True)
class FitProvenance:
    """Provenance of a fit: why this shuffler, where its reference order comes from, and for whom it was fitted.

    Parameters
    ----------
    reason : str
        Why `best_shuffler` chose it; empty when the user did.
    reference : str
        Name of the reference order.
    sensitivity_bound, width_bound : int or None
        No reference order can be below these.
    baseline : int or None
        Sensitivity of the paper's breadth-first order.
    candidates : tuple of dict
        One row for each reference order that was tried: name, sensitivity, width, note.
    fitted : int or None
        People that it was fitted for, when some of them are missing.
    shrunken, dissolved : int
        Groups that lost members, and those of them with fewer than two left.
    """

    reason: str = ""
    reference: str = ""
    sensitivity_bound: int | None = None
    width_bound: int | None = None
    baseline: int | None = None
    candidates: tuple[dict[str, Any], ...] = ()
    fitted: int | None = None
    shrunken: int = 0
    dissolved: int = 0

    @classmethod
    def of(cls, reference: ReferenceOrder) -> FitProvenance:
        """Provenance of a search for a reference order."""
        return cls(
            reference=reference.name,
            sensitivity_bound=reference.sensitivity_bound,
            width_bound=reference.width_bound,
            baseline=reference.baseline,
            candidates=reference.candidates,
        )

    def with_reason(self, reason: str) -> FitProvenance:
        """This provenance with a reason."""
        return replace(self, reason=reason)

    def guarantee(self, alpha: float, groups: Groups, theorem: str) -> OrderPrivacy:
        """The guarantee of a fitted shuffler; it says so when it protects nobody."""
        if math.isinf(alpha):
            return OrderPrivacy(math.inf, groups, source="alpha is infinite: nothing is promised")
        if not len(groups):
            source = "no group has two members: holds vacuously, the order is released as it is"
            return OrderPrivacy(alpha, groups, source=self.source(source), caveats=(EMPTY_GUARANTEE,))
        return OrderPrivacy(alpha, groups, source=self.source(theorem))

    def source(self, theorem: str) -> str:
        """The theorem behind a guarantee, and the condition that missing people add."""
        if self.fitted is None:
            return theorem
        lost = f"{self.shrunken:,} groups lost members, {self.dissolved:,} of them have fewer than two left"
        return f"{theorem}; fitted for {self.fitted:,} people, some are missing: {lost}; holds when presence does not depend on values"  # noqa: E501

    def summary(self) -> dict[str, Any]:
        """Summary of the provenance, without candidates."""
        known = {
            "reference": self.reference or None,
            "sensitivity_bound": self.sensitivity_bound,
            "width_bound": self.width_bound,
            "breadth_first_sensitivity": self.baseline,
            "reason": self.reason or None,
        }
        if self.fitted is not None:
            known |= {
                "fitted_n": self.fitted,
                "shrunken_groups": self.shrunken,
                "dissolved_groups": self.dissolved,
            }
        return {key: value for key, value in known.items() if value is not None}


@dataclass(frozen=True, eq=False)
class PartitionedOrder:
    """Everybody in reference order, in components of atoms.

    Parameters
    ----------
    order : int array (n,)
        order[k] is the person at place k.
    component_starts : int array (components + 1,)
        Component c stands at places component_starts[c]..component_starts[c + 1] - 1. People in no group are
        components of their own.
    atom_starts : int array (atoms + 1,)
        The same for atoms; every component is made of whole atoms.
    """

    order: Permutation
    component_starts: BlockStarts
    atom_starts: BlockStarts

    def __post_init__(self) -> None:
        order = check_permutation(self.order, np.size(self.order), "order")
        parts, cells = (
            _check_starts(name, getattr(self, name), order.size) for name in ("component_starts", "atom_starts")
        )
        if not np.isin(parts, cells, assume_unique=True).all():
            raise DataError("`component_starts` must begin where `atom_starts` begin.")
        for name, array in (("order", order), ("component_starts", parts), ("atom_starts", cells)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def single_component(cls, order: ArrayLike) -> PartitionedOrder:
        """One component of everybody, without atoms."""
        line = np.asarray(order)
        return cls(line, np.array([0, line.size]), np.arange(line.size + 1))

    @classmethod
    def singletons(cls, n: int) -> PartitionedOrder:
        """Everybody a component of their own: nobody moves."""
        return cls(np.arange(n), np.arange(n + 1), np.arange(n + 1))

    @property
    def n(self) -> int:
        """Number of people."""
        return self.order.size

    @cached_property
    def places(self) -> Permutation:
        """Place of each person (n,)."""
        return inverse(self.order)

    @property
    def components(self) -> int:
        """Number of components."""
        return self.component_starts.size - 1

    @property
    def sizes(self) -> Places:
        """People in each component (components,)."""
        return np.diff(self.component_starts)

    @cached_property
    def component(self) -> Places:
        """Component of each place (n,)."""
        return np.repeat(np.arange(self.component_starts.size - 1), self.sizes)

    @cached_property
    def atom(self) -> Places:
        """Atom of each place (n,)."""
        return np.repeat(np.arange(self.atom_starts.size - 1), np.diff(self.atom_starts))

    @property
    def has_several_atoms(self) -> NDArray[np.bool_]:
        """Mark the components with several atoms (components,)."""
        return np.diff(np.searchsorted(self.atom_starts, self.component_starts)) > 1

    def component_of(self, groups: Groups) -> Places:
        """Component of the first member of each group (groups,)."""
        return self.component[self.places[groups.rows.people[groups.rows.starts]]]

    def restrict(self, present: NDArray[np.bool_]) -> tuple[PartitionedOrder, NDArray[np.bool_]]:
        """The line of the people that are present, renumbered, and which components are left."""
        here = present[self.order]
        before = np.concatenate(([0], np.cumsum(here)))
        number = np.cumsum(present) - 1
        parts, cells = before[self.component_starts], before[self.atom_starts]
        left = np.diff(parts) > 0
        return PartitionedOrder(number[self.order[here]], np.unique(parts), np.unique(cells)), left


def partition_reference_order(
    groups: Groups, *, points: ArrayLike | None = None, reference: ArrayLike | None = None
) -> tuple[PartitionedOrder, FitProvenance]:
    """Components and atoms of the groups, each component in the best of the candidate orders for it.

    With `reference` (n,) people keep that public order as far as components and atoms can stand together.
    """
    codes, component = groups.atoms(), _components(groups)
    if reference is None:
        best = best_order(groups, points=points, atoms=codes)
        order, provenance = best.order, FitProvenance.of(best)
    else:
        given = check_permutation(reference, groups.n, "reference")
        order, provenance = (
            make_contiguous(make_contiguous(given, codes), component),
            FitProvenance(reference="given"),
        )
    return PartitionedOrder(order, _begins(component[order]), _begins(codes[order])), provenance


def partition_order(groups: Groups, order: ArrayLike) -> PartitionedOrder:
    """Components of the groups, people in the given order inside each of them, without atoms."""
    component = _components(groups)
    line = make_contiguous(order, component)
    return PartitionedOrder(line, _begins(component[line]), np.arange(groups.n + 1))


def crosses(groups: Groups, line: PartitionedOrder) -> NDArray[np.bool_]:
    """Mark the groups that meet more than one component (groups,)."""
    rows, part = groups.rows, line.component[line.places]
    if groups.contiguous:
        along = part[rows.people]
        changes = np.concatenate(([0], np.cumsum(along[1:] != along[:-1])))
        return np.asarray(changes[rows.starts] != changes[rows.stops - 1])
    return np.asarray(_crossing(part, rows.people, rows.starts, rows.stops))


def check_groups(groups: Groups, line: PartitionedOrder) -> None:
    """DataError unless the groups speak of as many people as the line holds."""
    if groups.n != line.n:
        raise DataError(f"`groups` must speak of {line.n:,} people, as the reference order does, got {groups.n:,}.")


def largest_by_component(values: Places, groups: Groups, line: PartitionedOrder) -> Places:
    """Largest value over the groups of each component (components,)."""
    result = np.zeros(line.component_starts.size - 1, dtype=np.int64)
    np.maximum.at(result, line.component_of(groups), values)
    return result


def refuse_crossing(groups: Groups, line: PartitionedOrder) -> None:
    """DataError when a group meets two components."""
    crossing = crosses(groups, line)
    if crossing.any():
        raise DataError(f"`line` must hold each group in one component; {int(crossing.sum()):,} groups cross.")


def _components(groups: Groups) -> Places:
    """Connected component of each person (n,); people in no group have one of their own."""
    component = groups.components().copy()
    alone = np.flatnonzero(component < 0)
    component[alone] = component.max(initial=-1) + 1 + np.arange(alone.size)
    return component


def _begins(codes: Places) -> BlockStarts:
    """Places where a new code begins along the line, and the end."""
    return np.concatenate(([0], 1 + np.flatnonzero(np.diff(codes)), [codes.size]))


def _check_starts(name: str, starts: ArrayLike, n: int) -> BlockStarts:
    given = np.asarray(starts)
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.size < 2:
        raise DataError(f"`{name}` must be whole numbers 0, .., {n:,}, got shape {given.shape} of {given.dtype}.")
    if given[0] != 0 or given[-1] != n or (np.diff(given) <= 0).any():
        raise DataError(f"`{name}` must increase from 0 to {n:,}, got {given[:8].tolist()} ..")
    return given.astype(np.int64)


@njit(cache=True, nogil=True)
def _crossing(part: Places, people: People, starts: Places, stops: Places) -> NDArray[np.bool_]:
    result = np.zeros(starts.size, dtype=np.bool_)
    for g in range(starts.size):
        first = part[people[starts[g]]]
        for person in people[starts[g] : stops[g]]:
            result[g] |= part[person] != first
    return result


# Partitions of a line into k groups: equal blocks, which are optimal, and the paper's agglomerative clustering.
#
# The width of a group depends on places in the reference order alone, so once the order is fixed the least
# sensitivity of k groups is reached by k contiguous blocks of nearly equal size:
#
# .. math:: w = \lceil n / k \rceil - 1, \qquad \Delta = w (w + 1) / 2
#
# because some group has at least ceil(n / k) members. The paper states that this problem is NP-hard (Theorem 2).


Sizes = NDArray[np.int64]  # (k,)


def equal_blocks(n: int, k: int) -> Sizes:
    """Sizes of k contiguous blocks of n places, the larger ones first; no k groups have a smaller width. O(k).

    >>> equal_blocks(8, 3)
    array([3, 3, 2])
    """
    n = whole("n", n, least=1)
    k = whole("k", k, least=1, most=n)
    return n // k + (np.arange(k) < n % k).astype(np.int64)


def agglomerate(n: int, k: int) -> Sizes:
    """Sizes of the k blocks that agglomerative clustering ends with: the paper's heuristic, for comparison.

    Everybody begins alone; again and again the two groups are merged whose union has the smallest width, the first
    such pair where several are equal (the paper does not say).

    Notes
    -----
    The best pair always stands side by side: the union of two groups with others between them is wider than the
    union of one of them and its neighbour. So only neighbours are searched, O(n (n - k)) in all: .01 s, .1 s and 5 s
    at n = 1e3, 1e4 and 1e5 with groups of 20. The merges are those of the paper's O(n^3) search of all pairs, which
    takes 1.6 s at n = 200. The result is up to about twice as wide as equal blocks.

    >>> agglomerate(8, 3)
    array([4, 2, 2])

    Source
    ------
    Wang, Tao, Zou, RASE, section IV-B and Algorithm 2.
    """
    n = whole("n", n, least=1)
    k = whole("k", k, least=1, most=n)
    sizes = np.ones(n, dtype=np.int64)
    for left in range(n, k, -1):
        first = int(np.argmin(sizes[1:left] + sizes[: left - 1]))
        sizes[first] += sizes[first + 1]
        sizes[first + 1 : left - 1] = sizes[first + 2 : left]
    return sizes[:k].copy()


def cut_into_groups(order: Permutation, sizes: Sizes) -> Groups:
    """The groups of people that stand in contiguous blocks of these sizes along `order` (n,)."""
    block = np.empty(order.size, dtype=np.int64)
    block[order] = np.repeat(np.arange(sizes.size), sizes)
    return Groups.from_labels(block)


# Where the reports at the places of a label come from, under a random permutation of a line of people.


Marginals = NDArray[np.float64]  # (n, n)

STANDARD_ERROR = 1e-3
_FEWEST = 16  # draws before the spread between them is looked at


def mallows_marginals(n: int, theta: float) -> Marginals:
    r"""P[i, j] = Pr[kappa(i) = j] for Mallows, exactly, by taking off the first digit; O(n^3).

    .. math:: P_n[i, j] = \Pr[c < j]\, P_{n-1}[i-1, j-1] + \Pr[c > j]\, P_{n-1}[i-1, j], \qquad P_n[0, j] = \Pr[c = j]
    """
    if math.isinf(theta):
        return np.eye(n)
    result = np.ones((1, 1))
    for m in range(2, n + 1):
        weights = np.exp(-theta * np.arange(m))
        digit = weights / weights.sum()
        before = np.cumsum(digit) - digit
        after = np.cumsum(digit[::-1])[::-1] - digit
        rest, result = result, np.zeros((m, m))
        result[0] = digit
        result[1:, 1:] += before[1:] * rest
        result[1:, :-1] += after[:-1] * rest
    return result


def exact_mixing(line: Labels, law: Marginals) -> Mixing:
    """Expected shares (g, g) for the labels along the line, from the marginals of the law."""
    member = np.eye(int(line.max()) + 1)[line]
    return normalize_rows(member.T @ law @ member)


def average_mixing(line: Labels, draw: Callable[[Entropy], Permutation]) -> Mixing:
    r"""The same as a mean over draws with a fixed seed.

    Drawing goes on until no entry of the row of a label with N people has a standard error above

    .. math:: \max\bigl(10^{-3}, \tfrac{1}{10} \cdot \tfrac{1}{2 \sqrt{N}}\bigr)

    a tenth of the sampling error of a share among N people; about a hundred draws are always enough.
    """
    size = int(line.max()) + 1
    people = np.maximum(np.bincount(line), 1)[:, None]
    goal = np.maximum(STANDARD_ERROR, 0.05 / np.sqrt(people))
    rng = simulation(0)
    total, squares, draws = np.zeros((size, size)), np.zeros((size, size)), 0
    while draws < _FEWEST or (_errors(total, squares, draws) > goal).any():
        pairs = line * size + line[draw(rng)]
        seen = normalize_rows(np.bincount(pairs, minlength=size * size).reshape(size, size).astype(np.float64))
        total, squares, draws = total + seen, squares + seen**2, draws + 1
    return total / draws


def _errors(total: Mixing, squares: Mixing, draws: int) -> Mixing:
    """Standard errors of the means so far."""
    return np.sqrt(np.maximum(squares - total**2 / draws, 0.0) / (draws - 1) / draws)


# The Mallows law on a line of components of atoms.
#
# .. math:: \Pr[\kappa] = \prod_c \frac{e^{-\theta_c\, \mathrm{inv}_c(w)}}{\psi_{n_c}(\theta_c)}
#           \prod_{a \subseteq c} \frac{\psi_{m_a}(\theta_c)}{m_a!}, \qquad w_k = \text{atom of } \kappa(k)
#
# The word w of atoms decides: inv(kappa) counts the inversions of w plus those inside atoms, so a Mallows permutation
# whose values are then permuted uniformly inside each atom has this law. A component with theta = 0 is shuffled
# uniformly.


def draw(line: PartitionedOrder, thetas: Thetas, rng: Entropy) -> Permutation:
    """kappa (n,): the place from which each place of the line receives its report."""
    kappa = decode_lehmer_code(draw_lehmer_code(line.component_starts, thetas, rng), line.component_starts, thetas)
    free = exchangeable(line, thetas)
    return kappa if free.size == line.n + 1 else permute_within_blocks(free, rng)[kappa]


def exchangeable(line: PartitionedOrder, thetas: Thetas) -> BlockStarts:
    """Blocks inside which the order is uniform: atoms, and whole components with theta = 0."""
    apart = np.append(thetas > 0.0, True)[np.append(line.component[line.atom_starts[:-1]], thetas.size)]
    return np.asarray(line.atom_starts[apart | np.isin(line.atom_starts, line.component_starts, assume_unique=True)])


def log_weight(line: PartitionedOrder, thetas: Thetas, kappa: Permutation) -> float:
    """Log probability of kappa; minus infinity when somebody leaves their component."""
    if (line.component[kappa] != line.component).any():
        return -math.inf
    total, word = 0.0, line.atom[kappa]
    cells = np.searchsorted(line.atom_starts, line.component_starts)
    for part in np.flatnonzero(line.sizes > 1):
        theta, here = float(thetas[part]), slice(line.component_starts[part], line.component_starts[part + 1])
        total -= theta * inversions(word[here]) + log_normalizer(int(line.sizes[part]), theta)
        for m in np.diff(line.atom_starts[cells[part] : cells[part + 1] + 1]).tolist():
            total += log_normalizer(m, theta) - float(gammaln(m + 1.0)) if m > 1 else 0.0
    return total


def marginals_on_components(line: PartitionedOrder, thetas: Thetas) -> Marginals:
    """P[i, j] = Pr[kappa(i) = j], exactly, with the mean over each atom in place of its columns; O(sum of n_c^3)."""
    result = np.zeros((line.n, line.n))
    for part, theta in enumerate(thetas):
        here = slice(line.component_starts[part], line.component_starts[part + 1])
        result[here, here] = mallows_marginals(int(line.sizes[part]), float(theta))
    sizes = np.diff(line.atom_starts)
    return np.repeat(np.add.reduceat(result, line.atom_starts[:-1], axis=1) / sizes, sizes, axis=1)


# The k-d order of points in the plane: cut into equal parts along one axis after the other.


_PIECES = 8


def kd_order(points: Plane, line: PartitionedOrder, mixed: Permutation) -> Permutation:
    """Places cut by component, then into eight equal parts along one axis after the other, until each is alone.

    Equal coordinates go by the place in `mixed` (n,), which must be a uniform permutation where places are secret.
    The number of points on each side of a cut fluctuates by a square root; eight parts make the sum over all levels
    as small as two parts do, in a third of the sorts.
    """
    order, starts, axis = mixed[np.argsort(line.component[mixed], kind="stable")], line.component_starts, 0
    while (sizes := np.diff(starts)).max() > 1:
        cell = np.repeat(np.arange(sizes.size), sizes)
        order = order[np.lexsort((points[order, axis], cell))]
        piece = (np.arange(line.n) - starts[cell]) * np.minimum(sizes, _PIECES)[cell] // sizes[cell]
        begins = np.append(True, (np.diff(cell) != 0) | (np.diff(piece) != 0))
        starts, axis = np.append(np.flatnonzero(begins), line.n), 1 - axis
    return order
