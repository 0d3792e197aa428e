"""What each person is promised, and what all are: groups, atoms or questions of different sizes, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.account.amplify import Subject, amplify
from dovetail.core.checks import refuse
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP


@dataclass(frozen=True)
class ShuffledGroup:
    """People whose reports are shuffled uniformly among themselves.

    Which group a person is in must be public and must not depend on private values: a class of a shuffle within
    groups, an atom of an order-private shuffle (whose places are public), or who was asked which question.

    Parameters
    ----------
    mechanism : Randomizer, Channel, several questions, or epsilon0 as a float
        What everybody in the group runs.
    n : int, 1 .. 1e12
        Reports of the group.
    honest : int, optional
        How many of their senders are assumed honest; default all. In a group of one the local promise is left.
    """

    mechanism: Subject
    n: int
    honest: int | None = None


@dataclass(frozen=True)
class PersonalGuarantees:
    """One guarantee for each group: whoever is in it has it.

    Parameters
    ----------
    each : mapping from the name of a group to its CentralDP
    """

    each: Mapping[str, CentralDP]

    @property
    def weakest(self) -> str:
        """The group with the largest epsilon."""
        return max(self.each, key=lambda name: self.each[name].epsilon)

    @property
    def worst(self) -> CentralDP:
        """What everybody is promised, whatever her group."""
        return self.each[self.weakest]

    def of(self, group: str) -> CentralDP:
        """What a person of this group is promised."""
        if group not in self.each:
            raise refuse("group", f"one of {', '.join(sorted(self.each))}", group)
        return self.each[group]


def personal_guarantees(groups: Mapping[str, ShuffledGroup], *, delta: float) -> PersonalGuarantees:
    """The central guarantee of every group at one delta.

    Whoever looks may know which places of the released order belong to which group, and everything about the other
    groups: that is free of the values of this one. What is left is a uniform shuffle of the group.

    Raises
    ------
    UnsupportedError
        Where a group has no guarantee at this delta; the message names it.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> krr = KRR(k=4, epsilon=1.0)
    >>> groups = {"town": ShuffledGroup(krr, 20_000), "village": ShuffledGroup(krr, 90)}
    >>> found = personal_guarantees(groups, delta=1e-6)
    >>> found.weakest, round(found.worst.epsilon, 3), round(found.of("town").epsilon, 3)
    ('village', 0.416, 0.024)

    Source
    ------
    docs/theory/several-questions.md.
    """
    if not groups or not all(isinstance(group, ShuffledGroup) for group in groups.values()):
        raise refuse("groups", "a mapping from names to `ShuffledGroup`", groups)
    found = {}
    for name, group in groups.items():
        try:
            found[name] = amplify(group.mechanism, n=group.n, delta=delta, honest=group.honest)
        except UnsupportedError as error:
            raise UnsupportedError(f"group {name!r}: {error}") from error
    return PersonalGuarantees(found)
