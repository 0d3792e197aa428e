"""Randomizers of one kind at every epsilon0, and what the planner has to know about the kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log, log2, sqrt
from typing import Any

from dovetail.core.checks import refuse
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.plan.requirements import Wish
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary

Maker = Callable[[float, int], FrequencyRandomizer | NumericRandomizer]  # (epsilon0, n)

FINEST = 1 << 31  # steps of Laplace's grid
COARSEST = 1024
BUCKETS = 64  # local hashing with more of them loses less than 1 % at a break
MOST_HASHES = 1e12  # an hour of tallying, at about four nanoseconds a hash
MOST_BITS = 1 << 16


@dataclass(frozen=True)
class Family:
    """One kind of randomizer.

    Parameters
    ----------
    name : str
    make : function of epsilon0 and n
        Refuses, with ParameterError, what the kind cannot do.
    bits : function of a randomizer
        Size of one report.
    most : float
        Largest epsilon0, nats.
    breaks : tuple of float
        Ascending epsilon0 after which the kind changes its shape and the error jumps up; it falls in between.
    burden : str
        Why it is not recommended for this many people and values, although it would do.
    """

    name: str
    make: Maker
    bits: Callable[[Any], int]
    most: float = 700.0
    breaks: tuple[float, ...] = ()
    burden: str = ""


def families(wish: Wish) -> tuple[Family, ...]:
    """The kinds that can answer the question, whichever of them was asked for."""
    if wish.k is None:
        return (Family("laplace", lambda epsilon0, n: _laplace(wish, epsilon0, n), lambda laplace: 64),)
    k = wish.k
    octaves = (2 * k - 1).bit_length()
    return (
        Family("krr", lambda epsilon0, n: KRR(k=k, epsilon=epsilon0), lambda krr: (k - 1).bit_length()),
        Family(
            "hadamard",
            lambda epsilon0, n: Hadamard(k=k, epsilon=epsilon0),
            lambda hadamard: int(log2(hadamard.blocks * hadamard.width)),
            breaks=tuple(_before(2.0**power) for power in range(1, octaves)),
        ),
        Family(
            "unary",
            lambda epsilon0, n: Unary(k=k, epsilon=epsilon0),
            lambda unary: 8 * ceil(k / 8),
            burden=f"a report would have {k:,} bits" if k > MOST_BITS else "",
        ),
        Family(
            "local_hashing",
            lambda epsilon0, n: LocalHashing(k=k, epsilon=epsilon0),
            lambda hashing: 128 + (hashing.g - 1).bit_length(),
            most=11.0,
            breaks=tuple(_before(g - 0.5) for g in range(2, BUCKETS)),
            burden=f"the tally would take n k = {wish.n * k:.3g} hashes" if wish.n * k > MOST_HASHES else "",
        ),
    )


def wanted(wish: Wish) -> tuple[Family, ...]:
    """All kinds without a burden, or the one that was asked for."""
    every = families(wish)
    if wish.randomizer is None:
        return tuple(family for family in every if not family.burden)
    chosen = tuple(family for family in every if family.name == wish.randomizer)
    if not chosen:
        names = ", ".join(f'"{family.name}"' for family in every)
        raise refuse("randomizer", f"one of {names} for the question {wish.question}", wish.randomizer)
    return chosen


def _before(odds: float) -> float:
    return log(odds) * (1.0 - 1e-12)


def _laplace(wish: Wish, epsilon0: float, n: int) -> Laplace:
    """On the grid that was asked for, else on one so fine that rounding adds a twentieth to the error at most."""
    assert wish.lower is not None and wish.upper is not None
    grid, steps = wish.grid, COARSEST
    if grid is None:
        while steps < min(FINEST, 10.0 * epsilon0 * sqrt(n) / (1.96 * sqrt(2.0))):
            steps *= 2
        grid = wish.span / steps
    return Laplace(wish.lower, wish.upper, epsilon=epsilon0, grid=grid)
