"""Randomizers of one kind at every epsilon0, and what the planner has to know about the kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from dovetail.core.checks import nearest, refuse
from dovetail.core.registries import RANDOMIZERS
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Randomizer
from dovetail.plan.requirements import Wish

Maker = Callable[[float, int], FrequencyRandomizer | NumericRandomizer]  # (epsilon0, n)

FINEST = 1 << 31  # steps of a numeric randomizer's grid
COARSEST = 1024


@dataclass(frozen=True)
class Family:
    """One kind of randomizer.

    Parameters
    ----------
    name : str
    make : function of epsilon0 and n
        Refuses, with ParameterError, what the kind cannot do.
    most : float
        Largest epsilon0, nats.
    breaks : tuple of float
        Ascending epsilon0 after which the kind changes its shape and the error jumps up; it falls in between.
    burden : str
        Why it is not recommended for this many people and values, although it would do.
    """

    name: str
    make: Maker
    most: float = 700.0
    breaks: tuple[float, ...] = ()
    burden: str = ""

    @classmethod
    def of(cls, kind: type[Randomizer], wish: Wish) -> Family:
        """What a declared randomizer is for these values and people."""
        build: Any = kind
        if wish.k is None or not issubclass(kind, FrequencyRandomizer):
            return cls(kind.name, lambda epsilon0, n: _numeric(build, wish, epsilon0, n), kind.largest_epsilon)
        k = wish.k
        return cls(
            kind.name,
            lambda epsilon0, n: build(k=k, epsilon=epsilon0),
            most=kind.largest_epsilon,
            breaks=kind.breaks(k),
            burden=kind.burden(k, wish.n),
        )


def families(wish: Wish) -> tuple[Family, ...]:
    """The kinds that can answer the question, whichever of them was asked for.

    Those that need settings of their own are left out: nobody has said what they are to be.
    """
    kinds = [kind for kind in RANDOMIZERS if kind.question == wish.question]
    return tuple(Family.of(kind, wish) for kind in kinds if not any(one.required for one in kind.settings()))


def wanted(wish: Wish) -> tuple[Family, ...]:
    """All kinds without a burden, or the one that was asked for."""
    every = families(wish)
    if wish.randomizer is None:
        return tuple(family for family in every if not family.burden)
    chosen = tuple(family for family in every if family.name == wish.randomizer)
    if not chosen:
        names = [family.name for family in every]
        listed = ", ".join(f'"{name}"' for name in names)
        hint = nearest(wish.randomizer, names)
        wanted = f"one of {listed} for the question {wish.question}"
        raise refuse("randomizer", wanted, wish.randomizer, hint=hint if hint.endswith("?") else "")
    return chosen


def _numeric(build: Any, wish: Wish, epsilon0: float, n: int) -> NumericRandomizer:
    """On the grid that was asked for, else on one so fine that rounding adds a twentieth to the error at most."""
    assert wish.lower is not None and wish.upper is not None
    grid, steps = wish.grid, COARSEST
    if grid is None:
        while steps < min(FINEST, 10.0 * epsilon0 * sqrt(n) / (1.96 * sqrt(2.0))):
            steps *= 2
        grid = wish.span / steps
    randomizer: NumericRandomizer = build(lower=wish.lower, upper=wish.upper, epsilon=epsilon0, grid=grid)
    return randomizer
