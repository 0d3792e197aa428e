"""The order of a release in many files as its report sees it: by sizes of groups alone, never person by person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.guarantee import OrderPrivacy


@dataclass(frozen=True)
class EqualLabels:
    """Groups of people with equal labels in a public column, known by name and number alone."""

    column: str
    count: int

    def __repr__(self) -> str:
        return f"{self.count:,} groups of equal {self.column}"

    def covers(self, other: object) -> bool:
        """Whether they are the same."""
        return self == other


@dataclass(frozen=True, eq=False)
class StagedOrder:
    """Everybody, or everybody within a public group, in a uniformly random order.

    Parameters
    ----------
    name : of the shuffler
    n : int
    sizes : int array (g,)
        People in each group.
    keeps_places : bool
        Whether the group stands beside the reports.
    column : of the groups
    """

    name: str
    n: int
    sizes: NDArray[np.int64]
    keeps_places: bool
    column: str | None

    moves_reports = True

    @property
    def acting(self) -> StagedOrder:
        """Itself: it has decided for no other."""
        return self

    @property
    def smallest_block(self) -> int:
        """People in the smallest group."""
        return int(self.sizes.min())

    @property
    def guarantee(self) -> OrderPrivacy:
        """What the order promises."""
        where = "over all orders" if self.column is None else f"inside each group of equal {self.column}"
        return OrderPrivacy(
            0.0, None if self.column is None else EqualLabels(self.column, len(self.sizes)),
            source=f"uniform {where}, up to the advantage against AES-256: reports are sorted by keys of a "
            "pseudorandom function",
        )  # fmt: skip

    def summary(self) -> dict[str, Any]:
        """What was fitted, in public numbers."""
        groups = {} if self.column is None else {"groups": len(self.sizes), "largest_group": int(self.sizes.max())}
        return {"shuffler": self.name, "n": self.n, "alpha": 0.0, **groups}
