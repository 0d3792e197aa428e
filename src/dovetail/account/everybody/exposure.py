"""A pair of values, and what each kind of other person sends: all that their exposure depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dovetail.account.blanket.privacy_blanket import SLACK, BlanketLaw
from dovetail.core.errors import DataError
from dovetail.core.numeric.special import Reals

Type = tuple[Reals, Reals, Reals, Reals]  # mu, R_a, R_c and R_t of one type, or their ratios to mu


@dataclass(frozen=True, eq=False)
class Exposure:
    r"""For one ordered pair of values (a, c): the reports of a, of c and of each type t of the others.

    .. math:: \mu \le R_x \text{ for every } x, \qquad g = |\mu|

    Only the joint law of (dR_a/dmu, dR_c/dmu, dR_t/dmu) counts, type by type: so each type has atoms of its own,
    and reports of one type with the same three ratios are one atom.

    Parameters
    ----------
    mu, first, second, own : float arrays (types, atoms)
        Masses of mu, R_a, R_c and R_t. Atoms without mu have no mass at all.
    """

    mu: Reals
    first: Reals
    second: Reals
    own: Reals

    def __post_init__(self) -> None:
        fields = [
            np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (self.mu, self.first, self.second, self.own)
        ]
        if len({field.shape for field in fields}) != 1 or fields[0].size == 0:
            raise DataError(f"An exposure must have arrays of one shape, got {[field.shape for field in fields]}.")
        mu, *laws = fields
        if not all(np.all(law >= mu * (1.0 - SLACK)) for law in laws) or not np.all(mu >= 0.0):
            raise DataError("`mu` must be at least 0 and at most each law.")
        if not all(np.all(law[mu == 0.0] == 0.0) for law in laws):
            raise DataError("Laws must have no mass where `mu` has none.")
        if not all(np.all(np.abs(law.sum(axis=1) - 1.0) <= SLACK) for law in laws):
            raise DataError("Laws must sum to 1 for each type of the others.")
        held = mu.sum(axis=1)
        if not np.all(np.abs(held - held[0]) <= SLACK * held[0]):
            raise DataError("`mu` must have one mass for every type.")
        for name, field in zip(("mu", "first", "second", "own"), fields, strict=True):
            object.__setattr__(self, name, field)

    @classmethod
    def of(cls, types: Sequence[Type]) -> Exposure:
        """From mu, R_a, R_c and R_t of each type, of any lengths."""
        longest = max(rows[0].size for rows in types)
        padded = np.array([[np.pad(row, (0, longest - row.size)) for row in rows] for rows in types])
        return cls(*np.swapaxes(padded, 0, 1))

    @classmethod
    def of_ratios(cls, types: Sequence[Sequence[ArrayLike]]) -> Exposure:
        """From mu and the ratios of R_a, R_c and R_t to it, for each type."""
        rows = [[np.asarray(row, dtype=np.float64) for row in kind] for kind in types]
        return cls.of([(mu, mu * a, mu * c, mu * t) for mu, a, c, t in rows])

    @property
    def g(self) -> float:
        """Mass of mu."""
        return float(self.mu[0].sum())

    @property
    def spreads(self) -> Reals:
        r"""The sum of (R_a - R_c)^2 / R_t for each type: n times the exposure of a common value, for large n."""
        ratio = np.divide(self.first - self.second, self.own, out=np.zeros_like(self.own), where=self.own > 0.0)
        return np.asarray(np.sum(ratio * (self.first - self.second), axis=1))

    def dataset(self, row: int) -> BlanketLaw:
        """The exact law of the collection in which everybody else is of type `row`."""
        used = self.own[row] > 0.0
        base = self.own[row][used]
        return BlanketLaw(self.first[row][used] / base, self.second[row][used] / base, base)
