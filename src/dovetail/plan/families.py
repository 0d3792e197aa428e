"""Randomizers of one kind at every epsilon0, and what the planner has to know about the kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from dovetail.core.checks import nearest, refuse
from dovetail.core.registries import RANDOMIZERS
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Randomizer
from dovetail.plan.requirements import Requirements

Maker = Callable[[float, int], FrequencyRandomizer | NumericRandomizer]  # (epsilon0, n)

MOST_GRID_STEPS = 1 << 31  # steps of a numeric randomizer's grid
LEAST_GRID_STEPS = 1024


@dataclass(frozen=True)
class RandomizerFamily:
    """Randomizers of one kind, one for each epsilon0.

    Parameters
    ----------
    name : str
    make : function of epsilon0 and n
        Refuses, with ParameterError, what the kind cannot do.
    largest_epsilon0 : float, nats
    breaks : tuple of float
        Ascending epsilon0 after which the kind changes its shape and the error jumps up; it falls in between.
    burden : str
        Why it is not recommended for this many people and values, although it would do.
    others : tuple of RandomizerFamily
        The same kind with other settings: each is calibrated, and the best is taken.
    """

    name: str
    make: Maker
    largest_epsilon0: float = 700.0
    breaks: tuple[float, ...] = ()
    burden: str = ""
    others: tuple[RandomizerFamily, ...] = ()

    @classmethod
    def of(cls, kind: type[Randomizer], requirements: Requirements) -> RandomizerFamily:
        """What a declared randomizer is for these values and people."""
        build: Any = kind
        shapes = _shapes(build, requirements)
        if shapes:
            first, *others = (cls(kind.name, shape, kind.largest_epsilon) for shape in shapes)
            return replace(first, others=tuple(others))
        if requirements.k is None or not issubclass(kind, FrequencyRandomizer):
            return cls(
                kind.name, lambda epsilon0, n: _numeric(build, requirements, epsilon0, n), kind.largest_epsilon
            )
        k = requirements.k
        return cls(
            kind.name,
            lambda epsilon0, n: build(k=k, epsilon=epsilon0),
            largest_epsilon0=kind.largest_epsilon,
            breaks=kind.breaks(k),
            burden=kind.burden(k, requirements.n),
        )


def families(requirements: Requirements) -> tuple[RandomizerFamily, ...]:
    """The kinds that can answer the question, whichever of them was asked for.

    Those that need settings of their own are left out: nobody has said what they are to be.
    """
    kinds = [kind for kind in RANDOMIZERS if kind.question == requirements.question]
    return tuple(
        RandomizerFamily.of(kind, requirements) for kind in kinds if not any(one.required for one in kind.settings())
    )


def shapes_of(name: str, requirements: Requirements) -> tuple[RandomizerFamily, ...]:
    """Every way to make the kind of this name."""
    [family] = (family for family in families(requirements) if family.name == name)
    return (family, *family.others)


def select_families(requirements: Requirements) -> tuple[RandomizerFamily, ...]:
    """All kinds without a burden, or the one that the requirements name."""
    every = families(requirements)
    if requirements.randomizer is None:
        return tuple(family for family in every if not family.burden)
    chosen = tuple(family for family in every if family.name == requirements.randomizer)
    if not chosen:
        names = [family.name for family in every]
        listed = ", ".join(f'"{name}"' for name in names)
        hint = nearest(requirements.randomizer, names)
        admissible = f"one of {listed} for the question {requirements.question}"
        raise refuse("randomizer", admissible, requirements.randomizer, hint=hint if hint.endswith("?") else "")
    return chosen


def _shapes(build: Any, requirements: Requirements) -> tuple[Maker, ...]:
    """Ways to make a numeric randomizer of an epsilon0 that the kind itself declares."""
    if not issubclass(build, NumericRandomizer):
        return ()
    assert requirements.lower is not None and requirements.upper is not None

    def maker(shape: Callable[[float], NumericRandomizer]) -> Maker:
        return lambda epsilon0, n: shape(epsilon0)

    every = build.shapes(lower=requirements.lower, upper=requirements.upper, grid=requirements.grid)
    return tuple(maker(shape) for shape in every)


def _numeric(build: Any, requirements: Requirements, epsilon0: float, n: int) -> NumericRandomizer:
    """On the grid that was asked for, else on one so fine that rounding adds a twentieth to the error at most."""
    assert requirements.lower is not None and requirements.upper is not None
    grid, steps = requirements.grid, LEAST_GRID_STEPS
    if grid is None:
        while steps < min(MOST_GRID_STEPS, 10.0 * epsilon0 * sqrt(n) / (1.96 * sqrt(2.0))):
            steps *= 2
        grid = requirements.span / steps
    randomizer: NumericRandomizer = build(
        lower=requirements.lower, upper=requirements.upper, epsilon=epsilon0, grid=grid
    )
    return randomizer
