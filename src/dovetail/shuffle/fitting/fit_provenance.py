"""How a shuffler came about, in public words and numbers: for summaries and saved files, never for the law."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dovetail.core.guarantee import OrderPrivacy
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.reference_order.candidates import ReferenceOrder

EMPTY_GUARANTEE = "nobody is in a group with anybody else: nothing is shuffled, the promise is empty"


@dataclass(frozen=True)
class FitProvenance:
    """Why this shuffler, where its reference order comes from, and for whom it was fitted.

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
        """What the search for a reference order found."""
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
        """What is known, for a summary; candidates stay out of it."""
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
