"""One named bound on the central epsilon: its value with the theorem behind it, or why it says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dovetail.core.bracket import Bracket
from dovetail.core.checks import refuse


@dataclass(frozen=True)
class Bound:
    """What one theorem promises for one question.

    Parameters
    ----------
    name : str
        Short and stable, such as "stronger clones" or "Bennett (k-RR)".
    epsilon : float or None, nats
        An upper bound on the central epsilon; None where the theorem says nothing.
    source : str
        The theorem.
    reason : str
        Why there is no value: out of regime, or not below the local epsilon.
    lower : float or None, nats
        Numerical lower end of the same theorem's own value, where it is a numerical bound.
    """

    name: str
    epsilon: float | None
    source: str
    reason: str = ""
    lower: float | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "lower"):
            value = getattr(self, name)
            if value is not None and not value >= 0.0:
                raise refuse(name, "at least 0", value)

    @classmethod
    def inapplicable(cls, name: str, reason: str, *, source: str) -> Bound:
        """The bound that does not apply."""
        return cls(name, None, source, reason)


class DominatingPair(Protocol):
    """A pair or law with n built in that dominates a shuffled collection.

    Laws: delta falls in epsilon; `epsilon(delta).upper` is a point at which the upper end of delta was evaluated and
    found at most `delta`; both ends of a bracket enclose this law's own value.
    """

    def delta(self, epsilon: float, /) -> Bracket:
        """Ends of delta(epsilon)."""
        ...

    def epsilon(self, delta: float, /) -> Bracket:
        """Ends of the smallest epsilon with delta(epsilon) <= delta."""
        ...
