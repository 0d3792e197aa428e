"""RASE's robust shuffler for fleets of devices in disjoint groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from dovetail.core.checks import not_negative_or_infinite, refuse, whole
from dovetail.core.display import upward
from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.settings import Count, StreamFile
from dovetail.core.stages import PublicData, Shuffler
from dovetail.shuffle.fitting.components import FitProvenance, agglomerate, cut_into_groups, equal_blocks
from dovetail.shuffle.fitting.fitted_shuffler import check_present, restrict_groups
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.neighbours import check_edges
from dovetail.shuffle.fitting.reference_orders import reference_order
from dovetail.shuffle.fitting.sensitivity import kendall_by_group
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.sampling.permutations import (
    Labels,
    Mixing,
    check_labels,
    check_permutation,
    inverse,
    normalize_rows,
)
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

# Sattolo's cyclic shuffle, which protects no one: what the RASE paper's auxiliary shuffler does.


UNPROTECTED = (
    "Sattolo's loop never leaves anybody in place: some orders are possible before a reordering and impossible after "
    "it, so alpha is infinite (Theorem 3 of the RASE paper does not hold); two people always swap"
)


@dataclass(frozen=True)
class Sattolo(Shuffler):
    r"""For reproducing the RASE paper only: a uniform cyclic permutation, without any order privacy.

    .. math:: \Pr[\sigma] = \frac{1}{(n - 1)!} \quad \text{for } \sigma \text{ with a single cycle, otherwise } 0

    The auxiliary shuffler as printed swaps i = 1..n-1 with a uniform j in {i+1..n}, which is Sattolo's algorithm.
    With j in {i..n} it is Fisher and Yates', which `Uniform` draws. Use that one.

    Parameters
    ----------
    n : int, at least 2

    Examples
    --------
    >>> from dovetail.core.entropy import system_entropy
    >>> Sattolo(2).permutation(system_entropy())
    array([1, 0])
    >>> Sattolo(2).guarantee.protects
    False

    Source
    ------
    Wang, Tao, Zou, RASE, Algorithm 2, lines 12-15; Sattolo (1986), An Algorithm to Generate a Random Cyclic
    Permutation, Information Processing Letters 22(6).
    """

    name: ClassVar[str] = "sattolo"
    n: int

    def __post_init__(self) -> None:
        whole("n", self.n, least=2)

    @classmethod
    def from_public(cls, public: PublicData, *, alpha: float | None = None, **settings: Any) -> Self:
        return cls(public.n)

    @property
    def guarantee(self) -> OrderPrivacy:
        return OrderPrivacy(math.inf, None, source="nothing is promised", caveats=(UNPROTECTED,))

    def _permutation(self, rng: Entropy) -> Permutation:
        around = rng.permutation(self.n)  # each cycle is written in n ways, so cycles stay equally likely
        result = np.empty(self.n, dtype=np.int64)
        result[around] = np.roll(around, -1)
        return result

    def restrict(self, present: ArrayLike) -> Self:
        """The cyclic shuffle of the people that are `present` (n,)."""
        return type(self)(int(check_present(present, self.n).sum()))

    def log_weight(self, permutation: ArrayLike) -> float:
        given = check_permutation(permutation, self.n)
        person, steps = int(given[0]), 1
        while person != 0:
            person, steps = int(given[person]), steps + 1
        return -float(gammaln(self.n)) if steps == self.n else -math.inf

    def mixing(self, labels: Labels) -> Mixing:
        counts = np.bincount(check_labels(labels, self.n)).astype(np.float64)
        return normalize_rows(np.outer(counts, counts) - np.diag(counts))

    def summary(self) -> dict[str, Any]:
        return {"shuffler": self.name, "n": self.n, "alpha": math.inf, "warning": UNPROTECTED}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(2), cls(4))


Refinement = Literal["blocks", "agglomerative"]

_REFINE = {"blocks": equal_blocks, "agglomerative": agglomerate}


@dataclass(frozen=True)
class RASE(Shuffler):
    r"""The robust shuffler RS: the order of a fleet's reports tells nothing inside the contributors' groups.

    Without refinement reports are shuffled uniformly inside each contributor's own group: alpha = 0, and no report
    leaves its group. Nothing is better on either side, so this is the default.

    `refine="agglomerative"` is the published mechanism with exact sensitivities and a uniform auxiliary shuffler,
    `refine="blocks"` the same with the best partition; both are baselines. The reference order is cut into k groups
    of sensitivity Delta_k. With Delta_0 that of the contributors' own groups (the paper puts w (w + 1) / 2, which is
    larger for groups with gaps)

    .. math:: \sigma \sim \mathrm{Mallows}(\theta), \quad \theta = \alpha / \Delta_k
              \qquad \text{if } \alpha \le \Delta_0 \le 10 \alpha \text{ and } \Delta_k > 0,
              \qquad \text{otherwise } \sigma \text{ uniform.}

    Refinement changes who is protected: alpha holds for the refined groups, which `guarantee` names; the
    contributors' own groups hold with the exact alpha' = theta Delta_0 of `own_alpha`, which is larger when they
    are wider than the refined ones.

    Parameters
    ----------
    groups : Groups, disjoint
        The contributors' own groups, from public data only.
    mechanism : WithinGroups, Mallows or Uniform
        What shuffles; `fit` chooses it.
    refine : "blocks", "agglomerative" or None
    k : int or None
        Number of refined groups; None where a restricted fleet is shuffled uniformly and has none.
    reason : str
        How the branch rule was decided: for the whole fleet, also where some are missing.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    DataError
        From `fit` for relationships that are none, and from `shuffle` for another number of reports.

    Notes
    -----
    Places are those of the public roster 0..n-1, whatever the order of arrival. A fitted `mechanism` can be
    saved by itself.

    Examples
    --------
    The groups of a home and of an office, shuffled each by itself:

    >>> shuffler = RASE.fit(Groups.from_lists([[0, 3, 1], [2, 4]], 5))
    >>> shuffler.guarantee.alpha, shuffler.guarantee.groups
    (0.0, Groups(n=5, groups=2, largest=3))

    Example 1 of the paper: what may flow to the subscriber David is the sanitized batch of Alice and Bob, here two
    people in one group, whose order then tells nothing.

    >>> RASE.fit([[0, 1]]).log_weight([1, 0]) == RASE.fit([[0, 1]]).log_weight([0, 1])
    True

    Example 2: along the reference order (1 4 5 6 3 2) the groups {1, 4, 5, 6, 3}, {2} have sensitivity 10, and the
    refined ones {1, 4, 5}, {6, 3, 2} have 3 (the paper prints 15 and 10, from labels instead of positions).

    >>> groups = Groups.from_lists([[0, 3, 4, 5, 2], [1]], 6)
    >>> shuffler = RASE.fit(groups, k=2, alpha=6.0, refine="blocks", reference=[0, 3, 4, 5, 2, 1])
    >>> shuffler.summary()["own_sensitivity"], shuffler.summary()["sensitivity"]
    (10, 3)
    >>> shuffler.guarantee.alpha, shuffler.own_alpha
    (6.0, 20.0)

    Example 3: groups of one contributor each (k = n) need no protection, and with one group of everybody (k = 1) the
    sensitivity is beyond 10 alpha; in both cases Algorithm 2 turns to its auxiliary shuffler.

    >>> RASE.fit(Groups.from_lists([], 6), k=3, alpha=1.0, refine="blocks").mechanism
    Uniform(n=6)
    >>> RASE.fit(Groups.from_lists([range(6)], 6), k=3, alpha=1.0, refine="blocks").mechanism
    Uniform(n=6)

    Source
    ------
    Wang, Tao, Zou, RASE: Efficient Privacy-preserving Data Aggregation against Disclosure Attacks for IoTs,
    Algorithm 2. The uniform default, the blocks and the exact sensitivities are ours.
    """

    name: ClassVar[str] = "rase"
    label: ClassVar[str] = "RASE"
    needs_groups: ClassVar[bool] = False  # a graph does as well
    needs_alpha: ClassVar[bool] = False  # only where groups are refined

    @dataclass(frozen=True)
    class Settings:
        """Settings of how the contributors' groups are refined.

        Parameters
        ----------
        graph : path of a table, optional
            Public edge list of people, two columns; instead of groups, for streams.
        refine : "blocks" or "agglomerative", optional
            Refine the groups, as published.
        k : int, at least 1
            Number of refined groups.
        """

        graph: StreamFile | None = None
        refine: Refinement | None = None
        k: Count | None = None

    groups: Groups
    mechanism: WithinGroups | Mallows | Uniform
    refine: Refinement | None = None
    k: int | None = None
    reason: str = field(default="", repr=False)

    @classmethod
    def objection(cls, *, alpha: float | None, coordinates: int | None, settings: dict[str, Any]) -> str:
        if settings["graph"] is not None and coordinates is not None:
            return "give either `groups` or `graph`, an edge list of people, not both"
        if (settings["refine"] is None) != (settings["k"] is None):
            return "`refine` and `k`, the number of refined groups, go together"
        if settings["graph"] is None and coordinates is None:
            return f"shuffler {cls.name!r} needs `groups` or `graph`"
        return f"shuffler {cls.name!r} needs `alpha`" if settings["refine"] is not None and alpha is None else ""

    @classmethod
    def from_public(
        cls, public: PublicData, *, alpha: float | None = None, refine: Refinement | None = None,
        k: int | None = None, **settings: Any,
    ) -> Self:  # fmt: skip
        groups = public.graph if public.groups is None else public.groups
        return cls.fit(groups, alpha=alpha or 0.0, refine=refine, k=k)

    @property
    def acting(self) -> Shuffler:
        return self.mechanism

    @property
    def keeps_places(self) -> bool:
        return self.mechanism.keeps_places

    def uniform_blocks(self) -> Labels | None:
        return self.mechanism.uniform_blocks()

    def exchangeable_blocks(self) -> Labels | None:
        return self.mechanism.exchangeable_blocks()

    def facts(self) -> dict[str, Any]:
        return {"own_alpha": self.own_alpha}

    @classmethod
    def fit(
        cls,
        groups: Any,
        *,
        k: int | None = None,
        alpha: float = 0.0,
        auxiliary: str = "fisher-yates",
        refine: Refinement | None = None,
        reference: ArrayLike | None = None,
    ) -> Self:
        """The shuffler for disjoint `groups`, or for the connected components of a relationship graph.

        Parameters
        ----------
        groups : Groups, or a graph
            A graph is pairs of people (m, 2), a square scipy sparse matrix or a networkx graph with nodes 0..n-1.
        k : int, 1 to n
            Number of refined groups; only with `refine`.
        alpha : float, at least 0, nats
            What the order may tell inside a refined group. Without refinement alpha = 0 is kept whatever is asked.
        auxiliary : "fisher-yates"
            The uniform shuffle outside of the branch rule. "sattolo" is refused: see `Sattolo`.
        refine : "blocks", "agglomerative" or None
        reference : int array (n,)
            Public reference order of the refined groups; `range(n)` is the roster. By default people of a group
            stand together, and neighbours in a graph stand near each other.

        Raises
        ------
        UnsupportedError
            For groups that overlap.
        """
        own, grown = _check_fleet(groups)
        alpha = not_negative_or_infinite("alpha", alpha)
        _check_options(own.n, k, auxiliary, refine, reference)
        if refine is None:
            return cls(own, WithinGroups(own))
        order = reference_order(grown) if reference is None else check_permutation(reference, own.n, "reference")
        before = int(kendall_by_group(own, inverse(order)).max(initial=0))
        refined = cut_into_groups(order, _REFINE[refine](own.n, cast(int, k)))
        rule = f"alpha = {alpha:g} <= {before:,} <= 10 alpha, and a refined group has two members"
        if alpha <= before <= 10.0 * alpha and len(refined):
            return cls(own, Mallows.single(refined, alpha=alpha, reference=order), refine, k, f"Mallows: {rule}")
        return cls(own, Uniform(own.n), refine, k, f"auxiliary: not ({rule})")

    def __post_init__(self) -> None:
        _check_disjoint(self.groups)
        _check_covers(self.mechanism, self.groups)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of contributors."""
        return self.groups.n

    @property
    def guarantee(self) -> OrderPrivacy:
        """Guarantee for the groups that are shuffled: the refined ones, if there are any."""
        promise = self.mechanism.guarantee
        if not isinstance(self.mechanism, Mallows):
            return promise
        beside = f"alpha' = {upward(self.own_alpha)} for the contributors' own groups ({self.groups!r})"
        return replace(promise, source=f"{promise.source}; holds for the {self.refine} of {self.k:,}; {beside}")

    def exact_alpha(self, groups: Groups) -> float:
        """Of what shuffles: `Mallows` for refined groups, else a uniform shuffle inside groups or of everybody."""
        return self.mechanism.exact_alpha(groups)

    @property
    def own_alpha(self) -> float:
        """alpha' = theta * exact sensitivity of the contributors' own groups, rounded up; 0 for uniform shuffles."""
        return self.exact_alpha(self.groups)

    def restrict(self, present: ArrayLike) -> Self:
        """This shuffler for the contributors that are `present` (n,), in roster order, with the same theta."""
        here = check_present(present, self.n)
        fewer = self.mechanism.restrict(here)
        own = (
            fewer.groups
            if isinstance(fewer, WithinGroups)
            else restrict_groups(self.groups, here, FitProvenance())[0]
        )
        if self.refine is None:
            return replace(self, groups=own, mechanism=fewer)
        reason = f"{self.reason.partition(':')[0]}: as fitted for the whole fleet"
        return replace(self, groups=own, mechanism=fewer, k=_blocks_left(fewer), reason=reason)

    def _permutation(self, rng: Entropy) -> Permutation:
        return self.mechanism.permutation(rng)

    def log_weight(self, permutation: ArrayLike) -> float:
        return self.mechanism.log_weight(permutation)

    def mixing(self, labels: Labels) -> Mixing:
        return self.mechanism.mixing(labels)

    def summary(self) -> dict[str, Any]:
        found = self.mechanism.summary() | {"shuffler": self.name, "mechanism": self.mechanism.name}
        if self.refine is None:
            return found
        found |= {"refine": self.refine, "k": self.k, "reason": self.reason, "own_alpha": self.own_alpha}
        if isinstance(self.mechanism, Mallows):
            spread = kendall_by_group(self.groups, self.mechanism.line.places)
            found |= {"own_groups": len(self.groups), "own_sensitivity": int(spread.max(initial=0))}
        return found

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        own = Groups.from_lists([[4, 0, 2], [1, 3]], 5)
        return (
            cls.fit(own),
            cls.fit([[0, 2], [1, 3]]),
            cls.fit(own, k=2, alpha=1.0, refine="blocks"),
            cls.fit(own, k=2, alpha=3.0, refine="blocks", reference=[2, 4, 0, 1, 3]),
            cls.fit(own, k=3, alpha=2.0, refine="agglomerative", reference=[1, 2, 4, 3, 0]),
            cls.fit(own, k=2, alpha=50.0, refine="blocks"),
        )


def _check_fleet(groups: Any) -> tuple[Groups, Groups]:
    """The contributors' disjoint groups, and the groups from which a reference order is grown."""
    if isinstance(groups, Groups):
        _check_disjoint(groups)
        return groups, groups
    pairs, n = check_edges(groups, None)
    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(n, n))
    return Groups.from_labels(connected_components(graph, directed=False)[1]), Groups.from_graph(pairs, n=n)


def _blocks_left(mechanism: WithinGroups | Mallows | Uniform) -> int | None:
    """Refined groups that have a member, those of one member among them."""
    if not isinstance(mechanism, Mallows):
        return None
    groups = mechanism.groups
    return len(groups) + groups.n - int(np.count_nonzero(groups.grouped))


def _check_disjoint(groups: Groups) -> None:
    if not groups.disjoint:
        twice = groups.rows.entries - int(groups.grouped.sum())
        raise UnsupportedError(
            f"RASE needs disjoint groups, as its system model has them; these overlap ({twice:,} memberships too "
            "many). Use best_shuffler or Mallows, which bound what the order tells inside overlapping groups."
        )


def _check_covers(mechanism: Shuffler, own: Groups) -> None:
    """Refuse a shuffler without a law for these people, or of unknown alpha for their groups."""
    if not isinstance(mechanism, WithinGroups | Mallows | Uniform):
        raise refuse("mechanism", "a WithinGroups, Mallows or Uniform, whose promise is known", mechanism)
    if mechanism.n != own.n:
        raise ParameterError(f"`mechanism` must be for the {own.n:,} people of the groups, got {mechanism.n:,}.")
    blocks = mechanism.uniform_blocks()
    if blocks is None:
        return
    pairs = np.column_stack((WithinGroups(own).uniform_blocks(), blocks))[own.grouped]
    if len(np.unique(pairs, axis=0)) > len(own):
        raise ParameterError("`mechanism` must keep every contributors' group together; a group is split in two.")


def _check_options(n: int, k: int | None, auxiliary: str, refine: str | None, reference: ArrayLike | None) -> None:
    if auxiliary == "sattolo":
        raise UnsupportedError(f"`auxiliary` must be 'fisher-yates': {UNPROTECTED}. Sattolo(n) reproduces it.")
    if auxiliary != "fisher-yates":
        raise refuse("auxiliary", "'fisher-yates'", auxiliary)
    if refine is None:
        if k is not None or reference is not None:
            raise ParameterError(
                "`k` and `reference` need `refine`: contributors' own groups are shuffled uniformly."
            )
        return
    if refine not in get_args(Refinement):
        raise refuse("refine", "'blocks', 'agglomerative' or None", refine)
    whole("k", k, least=1, most=n)
