"""A number that is only known to lie between two others."""

from dataclasses import dataclass

from dovetail.core.errors import ParameterError


@dataclass(frozen=True)
class Bracket:
    """lower <= true value <= upper.

    Parameters
    ----------
    lower, upper : float
        Both ends are rounded outwards by whoever makes the bracket.

    Raises
    ------
    ParameterError
        For a lower end above the upper one.

    Examples
    --------
    >>> Bracket(0.25, 0.5).gap
    1.0
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ParameterError(f"`lower` must be at most `upper`, got {self.lower!r} and {self.upper!r}.")

    @property
    def gap(self) -> float:
        """Relative gap upper / lower - 1; 0 when both ends agree, infinite when only the lower end is 0."""
        if self.upper == self.lower:
            return 0.0
        return self.upper / self.lower - 1.0 if self.lower > 0.0 else float("inf")

    def contains(self, value: float) -> bool:
        """Whether `value` lies in the closed interval."""
        return self.lower <= value <= self.upper
