"""What seeing the reports adds to the expected gain: a value between two ends, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass

ULP = 2.0**-52
METHODS = ("closed form", "exact sum", "enumerated", "sampled", "bracket")  # from the firmest to the loosest


@dataclass(frozen=True)
class Excess:
    """Posterior minus prior vulnerability: lower <= truth <= upper.

    Parameters
    ----------
    value, lower, upper : float, at least 0
        For "sampled" the ends hold at the stated confidence, for "bracket" `value` is the upper end.
    method : str
        One of `METHODS`.
    """

    value: float
    lower: float
    upper: float
    method: str

    @classmethod
    def around(cls, value: float, error: float, method: str) -> Excess:
        """The excess `value`, known to within `error`.

        >>> Excess.around(0.5, 0.25, "exact sum").lower
        0.25
        """
        return cls(value, max(0.0, value - error), value + error, method)

    @classmethod
    def between(cls, lower: float, upper: float) -> Excess:
        """Only two ends are known; the value to quote is the upper one."""
        return cls(upper, lower, upper, "bracket")

    def times(self, factor: float) -> Excess:
        """The same in other units; `factor` is at least 0.

        >>> Excess.around(0.5, 0.25, "exact sum").times(2.0).value
        1.0
        """
        return Excess(factor * self.value, factor * self.lower, factor * self.upper, self.method)

    @property
    def error(self) -> float:
        """Distance from `value` to the farther end."""
        return max(self.upper - self.value, self.value - self.lower)


NOTHING = Excess(0.0, 0.0, 0.0, "closed form")


def loosest(*parts: Excess) -> str:
    """The least firm of the methods of `parts`.

    >>> loosest(NOTHING, Excess.between(0.0, 0.5))
    'bracket'
    """
    return max((part.method for part in parts), key=METHODS.index)
