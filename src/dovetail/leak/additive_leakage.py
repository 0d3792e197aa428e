"""Additive leakage, the posterior less the prior vulnerability: a value between two ends, and its method."""

from __future__ import annotations

from dataclasses import dataclass

ULP = 2.0**-52
METHODS = ("closed form", "exact sum", "enumerated", "sampled", "bracket")  # from the firmest to the loosest


@dataclass(frozen=True)
class AdditiveLeakage:
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
    def from_error(cls, value: float, error: float, method: str) -> AdditiveLeakage:
        """A leakage of `value`, known to within `error`.

        >>> AdditiveLeakage.from_error(0.5, 0.25, "exact sum").lower
        0.25
        """
        return cls(value, max(0.0, value - error), value + error, method)

    @classmethod
    def from_bracket(cls, lower: float, upper: float) -> AdditiveLeakage:
        """Only two ends are known; the value to quote is the upper one."""
        return cls(upper, lower, upper, "bracket")

    def scale(self, factor: float) -> AdditiveLeakage:
        """The same in other units; `factor` is at least 0.

        >>> AdditiveLeakage.from_error(0.5, 0.25, "exact sum").scale(2.0).value
        1.0
        """
        return AdditiveLeakage(factor * self.value, factor * self.lower, factor * self.upper, self.method)

    @property
    def error(self) -> float:
        """Distance from `value` to the farther end."""
        return max(self.upper - self.value, self.value - self.lower)


NO_LEAKAGE = AdditiveLeakage(0.0, 0.0, 0.0, "closed form")


def weakest_method(*parts: AdditiveLeakage) -> str:
    """The least firm of the methods of `parts`.

    >>> weakest_method(NO_LEAKAGE, AdditiveLeakage.from_bracket(0.0, 0.5))
    'bracket'
    """
    return max((part.method for part in parts), key=METHODS.index)
