"""The Mallows shuffler: nearby orders are likelier, and no group's order tells more than alpha."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import Shuffler
from dovetail.shuffle import sensitivity
from dovetail.shuffle.checks import not_negative
from dovetail.shuffle.groups import Groups
from dovetail.shuffle.kendall import inversions, log_normalizer, mallows
from dovetail.shuffle.mixing import average_mixing, exact_mixing
from dovetail.shuffle.permutations import Labels, Mixing, checked, checked_labels, inverse
from dovetail.shuffle.reference import reference_order

_PAPER = (
    "Meehan et al. (2022), Privacy Implications of Shuffling, Theorem 4.3 with the exact Kendall sensitivity "
    "(convention and proof in docs/errata.md)"
)
_EXACT_MIXING = 512


@dataclass(frozen=True, eq=False)
class Mallows(Shuffler):
    r"""A random order around a reference order s, with exactly the promised alpha.

    .. math:: \Pr[\sigma] = e^{-\theta\, \mathrm{inv}(s^{-1} \sigma s)} / \psi_n(\theta), \qquad
              \theta = \alpha / \Delta

    Reports are lined up in the order s, the line is disturbed by a Mallows permutation kappa, and everybody goes
    back: sigma(s(k)) = s(kappa(k)). Delta is the exact Kendall sensitivity, the maximum over the groups. For groups
    that overlap; for disjoint ones `WithinGroups` is better in every respect.

    Parameters
    ----------
    groups : Groups
        From public data only.
    alpha : float, at least 0, nats
        What the order inside a group may tell. 0 shuffles uniformly, infinity leaves the order alone.
    order : int array (n,)
        The reference order: order[k] is the person at place k of the line.

    Notes
    -----
    `theta` is rounded down so that theta * sensitivity <= alpha in exact arithmetic, and digits are drawn exactly.
    Without a group of two people alpha holds vacuously and the order is released as it is.

    Examples
    --------
    >>> shuffler = Mallows.fit(Groups.from_labels([30, 31, 32, 33], radius=1), alpha=2.0)
    >>> shuffler.width, shuffler.sensitivity, round(shuffler.theta, 4)
    (2, 3, 0.6667)

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, Algorithm 1 and Theorem
    4.3, in the one reading of its line 8 that keeps the promise.
    """

    name: ClassVar[str] = "mallows"
    groups: Groups
    alpha: float
    order: Permutation = field(repr=False)
    theta: float = field(init=False)
    sensitivity: int = field(init=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        alpha = not_negative("alpha", self.alpha)
        order = checked(self.order, self.groups.n, "order")
        order.setflags(write=False)
        positions = inverse(order)
        largest = int(sensitivity.kendall_by_group(self.groups, positions).max(initial=0))
        still = largest == 0 or math.isinf(alpha)
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "theta", math.inf if still else sensitivity.theta_for(alpha, largest))
        object.__setattr__(self, "sensitivity", largest)
        object.__setattr__(self, "width", int(sensitivity.width_by_group(self.groups, positions).max(initial=0)))

    @classmethod
    def fit(cls, groups: Groups, *, alpha: float, reference: ArrayLike | None = None) -> Self:
        """The shuffler that promises alpha for these groups; `reference` (n,) is a public order, grown if absent."""
        order = reference_order(groups) if reference is None else checked(reference, groups.n, "reference")
        return cls(groups, alpha, order)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of people."""
        return self.groups.n

    @property
    def guarantee(self) -> OrderPrivacy:
        if math.isinf(self.alpha):
            return OrderPrivacy(math.inf, self.groups, source="alpha is infinite: nothing is promised")
        if self.sensitivity == 0:
            source = "no group has two members: holds vacuously, the order is released as it is"
            return OrderPrivacy(self.alpha, self.groups, source=source)
        return OrderPrivacy(self.alpha, self.groups, source=_PAPER)

    def permutation(self, rng: Entropy) -> Permutation:
        kappa = mallows(self.n, self.theta, rng)
        result = np.empty(self.n, dtype=np.int64)
        result[self.order] = self.order[kappa]
        return result

    def log_weight(self, permutation: ArrayLike) -> float:
        kappa = inverse(self.order)[checked(permutation, self.n)[self.order]]
        distance = inversions(kappa)
        if math.isinf(self.theta):
            return 0.0 if distance == 0 else -math.inf
        return -self.theta * distance - log_normalizer(self.n, self.theta)

    def mixing(self, labels: Labels) -> Mixing:
        """As in `Shuffler.mixing`: exact up to 512 people, otherwise the mean of seeded draws from the public law.

        Standard errors are at most 1e-3, or a tenth of a label's own sampling error where that is larger (see
        `average_mixing`). No report is touched, and memory is O(n).
        """
        line = checked_labels(labels, self.n)[self.order]
        if self.n <= _EXACT_MIXING:
            return exact_mixing(line, self.theta)
        return average_mixing(line, self.theta)

    def summary(self) -> dict[str, Any]:
        still = math.isinf(self.theta)
        theta_n = self.theta * self.n
        shift = 0.0 if still else self.n / 3
        facts = {
            "shuffler": self.name,
            "n": self.n,
            "alpha": self.alpha,
            "width": self.width,
            "sensitivity": self.sensitivity,
            "paper_sensitivity": sensitivity.paper(self.width),
            "theta": self.theta,
            "theta_n": theta_n,
            "components": int(self.groups.components().max()) + 1,
            "largest_group": self.groups.largest,
            "groups": len(self.groups),
            "ungrouped": int((~self.groups.grouped).sum()),
            "mean_displacement": min(2 * math.log(2) / self.theta, shift) if self.theta > 0 else shift,
            "near_uniform": theta_n < 1.0,
        }
        if theta_n < 1.0:
            facts["warning"] = (
                f"theta * n = {theta_n:.2g} is below 1: the shuffle is nearly uniform and little can be learned "
                "about places. Use smaller groups, a larger alpha, or Uniform, which amplifies differential privacy."
            )
        return facts

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        chain = Groups.from_lists([[0, 1], [1, 2, 3]], 4)
        return (
            cls(chain, 4.0, np.array([1, 2, 3, 0])),
            cls(chain, 0.0, np.array([0, 2, 3, 1])),
            cls(chain, math.inf, np.array([1, 2, 3, 0])),
            cls(Groups.from_labels([4, 3, 3, 2, 1], radius=1), 1.0, np.array([2, 0, 1, 4, 3])),
            cls(Groups.from_lists([[2]], 3), 1.0, np.array([1, 2, 0])),
        )
