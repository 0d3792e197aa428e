"""A comparison of mechanisms: its rows, their ranks by adversary, and where ranks disagree or intervals overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from math import inf, isinf
from typing import Any, Literal, get_args

from dovetail.plan.compare.adversaries import AdversaryLeakage

Adversary = Literal["uninformed", "strong", "colluding"]
ADVERSARIES: tuple[Adversary, ...] = get_args(Adversary)
RANK_TOLERANCE = 2e-6  # relative: epsilon0 is solved to 1e-6, so leaks this close are one rank
ADVERSARY_NAMES = {
    "uninformed": "the uninformed adversary",
    "strong": "the strong one",
    "colluding": "a colluding shuffler",
}


@dataclass(frozen=True)
class ComparedMechanism:
    """One row: a randomizer, a shuffler, and what they leak; a string in place of a number is why there is none.

    Parameters
    ----------
    randomizer : "krr", "hadamard", "unary", "local_hashing" or "none"
    shuffler : "uniform" or "none"
    epsilon0 : float or str, nats
        Local epsilon at which the randomizer reaches the error.
    epsilon : float or str, nats
        Central epsilon of the honest people at delta; infinite without a randomizer.
    error95 : float or str
        Predicted 95 % error of one share.
    uninformed, strong, colluding : AdversaryLeakage or str
        To somebody who knows nothing about anybody; who knows all others, whatever is worst; who sees the order.
    """

    randomizer: str
    shuffler: str
    epsilon0: float | str
    epsilon: float | str
    error95: float | str
    uninformed: AdversaryLeakage | str
    strong: AdversaryLeakage | str
    colluding: AdversaryLeakage | str

    @property
    def name(self) -> str:
        """The row in words."""
        if self.randomizer == "none":
            return "shuffle only"
        return f"{self.randomizer} {'only' if self.shuffler == 'none' else 'and shuffle'}"

    def leak(self, adversary: Adversary) -> AdversaryLeakage | str:
        """What this adversary learns."""
        return {"uninformed": self.uninformed, "strong": self.strong, "colluding": self.colluding}[adversary]


@dataclass(frozen=True)
class MechanismComparison:
    """Mechanisms of equal accuracy; see `compare_mechanisms`, which makes it.

    Raises
    ------
    ParameterError
        Nowhere by itself: `compare_mechanisms` checks what is asked.

    Examples
    --------
    >>> from dovetail.plan.compare.mechanisms import compare_mechanisms
    >>> found = compare_mechanisms(n=100, k=2, error=0.1)
    >>> found.order("strong")[-1].name
    'shuffle only'
    """

    n: int
    k: int
    error: float
    delta: float
    honest: int
    mechanisms: tuple[ComparedMechanism, ...]

    def order(self, adversary: Adversary) -> tuple[ComparedMechanism, ...]:
        """From the smallest leakage to the largest, by upper bound; rows without a number are left out."""
        known = [one for one in self.mechanisms if not isinstance(one.leak(adversary), str)]
        return tuple(sorted(known, key=lambda one: _upper_end(one, adversary)))

    def rank(self, mechanism: ComparedMechanism, adversary: Adversary) -> int | None:
        """Place in that order, 1 for the smallest; equal leaks share it. None without a number."""
        if isinstance(mechanism.leak(adversary), str):
            return None
        own = _upper_end(mechanism, adversary) * (1.0 - RANK_TOLERANCE)
        return 1 + sum(_upper_end(one, adversary) < own for one in self.order(adversary))

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the adversaries disagree on the order, and where an order is not decided."""
        return (*_reversals(self), *_overlaps(self))

    def document(self) -> dict[str, Any]:
        """The comparison as JSON-ready dictionaries; what is not known is null with its reason."""
        question = {name: getattr(self, name) for name in ("n", "k", "error", "delta", "honest")}
        rows = [self._row(one) for one in self.mechanisms]
        orders = {adversary: [one.name for one in self.order(adversary)] for adversary in ADVERSARIES}
        return {"question": question, "mechanisms": rows, "orders": orders, "notes": list(self.notes)}

    def _row(self, one: ComparedMechanism) -> dict[str, Any]:
        numbers = {name: _number(getattr(one, name)) for name in ("epsilon0", "epsilon", "error95")}
        row = {"name": one.name, "randomizer": one.randomizer, "shuffler": one.shuffler, **numbers}
        return row | {adversary: self._leak(one, adversary) for adversary in ADVERSARIES}

    def _leak(self, one: ComparedMechanism, adversary: Adversary) -> dict[str, Any]:
        leak = one.leak(adversary)
        if isinstance(leak, str):
            return {"value": None, "reason": leak}
        return {
            "rank": self.rank(one, adversary),
            "vulnerability": leak.vulnerability,
            "multiplicative": leak.multiplicative,
            **asdict(leak),
        }


def _upper_end(one: ComparedMechanism, adversary: Adversary) -> float:
    leak = one.leak(adversary)
    return inf if isinstance(leak, str) else leak.ends.upper


def _leaks_less(one: ComparedMechanism, other: ComparedMechanism, adversary: Adversary) -> bool:
    """Whether the one certainly leaks less."""
    first, second = one.leak(adversary), other.leak(adversary)
    if isinstance(first, str) or isinstance(second, str):
        return False
    return first.ends.upper < second.ends.lower * (1.0 - RANK_TOLERANCE)


def _reversals(found: MechanismComparison) -> Iterator[str]:
    for here, there in combinations(ADVERSARIES, 2):
        for one in found.mechanisms:
            others = [
                other.name
                for other in found.mechanisms
                if _leaks_less(one, other, here) and _leaks_less(other, one, there)
            ]
            if others:
                first, second = ADVERSARY_NAMES[here], ADVERSARY_NAMES[there]
                yield f"{one.name} leaks less to {first} but more to {second} than {', '.join(others)}"


def _overlaps(found: MechanismComparison) -> Iterator[str]:
    for adversary in ADVERSARIES:
        order = found.order(adversary)
        names = [
            one.name
            for one in order
            if any(
                other is not one
                and _has_bracket(one, other, adversary)
                and not _leaks_less(one, other, adversary)
                and not _leaks_less(other, one, adversary)
                for other in order
            )
        ]
        if names:
            yield (
                f"to {ADVERSARY_NAMES[adversary]} the intervals of these overlap, so they are ranked by upper bound: "
                f"{', '.join(names)}"
            )


def _has_bracket(one: ComparedMechanism, other: ComparedMechanism, adversary: Adversary) -> bool:
    """Whether the leakage of either is known only as an interval."""
    leaks = (one.leak(adversary), other.leak(adversary))
    return any(not isinstance(leak, str) and leak.method in ("sampled", "bracket") for leak in leaks)


def _number(value: float | str) -> Any:
    if isinstance(value, str):
        return {"value": None, "reason": value}
    return "inf" if isinf(value) else value
