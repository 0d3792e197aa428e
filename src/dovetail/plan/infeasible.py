"""Wishes that cannot be granted together, and how far each of them has to give way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, exp, isfinite, log

from dovetail.account.clones.stronger_clones import MOST_PEOPLE
from dovetail.core.errors import ParameterError
from dovetail.plan.candidates import Candidate, candidate
from dovetail.plan.families import Family
from dovetail.plan.requirements import Wish
from dovetail.plan.search import error_at, smallest_people


def unreachable(kinds: Sequence[Family], reasons: Sequence[str], wish: Wish) -> ParameterError:
    """No kind grants the wish, whatever it would cost."""
    if wish.error is None:
        return ParameterError(
            "; ".join(f"{kind.name} cannot do this: {why}" for kind, why in zip(kinds, reasons, strict=True))
        )
    ends = [(error_at(kind, end, wish, n=wish.n), end) for kind in kinds for end in (*kind.breaks, kind.most)]
    floor, epsilon0 = min(ends)
    if not isfinite(floor):
        return ParameterError("; ".join(f"{kind.name} cannot do this: {refused(kind, wish)}" for kind in kinds))
    needed = log(wish.n) + 2.0 * (log(max(floor, 1e-300)) - log(wish.error))
    people = ceil(1.001 * exp(needed)) if needed < log(MOST_PEOPLE) else MOST_PEOPLE + 1
    enough = people <= MOST_PEOPLE and any(error_at(kind, kind.most, wish, n=people) <= wish.error for kind in kinds)
    more = f", or collect {people:,} people" if enough else ""
    return ParameterError(
        f"`error` must be at least {up(floor)} with n = {wish.n:,}, got {wish.error:g}: even epsilon0 = "
        f"{epsilon0:.3g} leaves that much. Allow an error of {up(floor)}{more}."
    )


def refused(kind: Family, wish: Wish) -> str:
    """Why this kind cannot be built at all."""
    try:
        kind.make(kind.most, wish.n)
    except ParameterError as error:
        return str(error)
    return "no epsilon0 reaches this error"


def contradiction(cheapest: Candidate, kinds: Sequence[Family], wish: Wish) -> ParameterError:
    """The error needs more epsilon than its ceiling allows: three ways out, each of them enough."""
    assert wish.error is not None and wish.epsilon is not None
    ways = [f"allow epsilon {up(cheapest.central.epsilon)}"]
    relaxed = replace(wish, error=None)
    errors = [
        one.accuracy.error95 for one in (candidate(kind, relaxed) for kind in kinds) if not isinstance(one, str)
    ]
    if errors and min(errors) < wish.span:
        ways.insert(0, f"ask for an error of {up(min(errors))}")
    people = smallest_people(cheapest.family, wish, error=wish.error, epsilon=wish.epsilon)
    if people is not None:
        ways.append(f"collect {people:,} people")
    honest = "" if wish.honest == wish.n else f" of whom {wish.honest:,} are honest"
    return ParameterError(
        f"`error` = {wish.error:g} and `epsilon` = {wish.epsilon:g} (delta = {wish.delta:g}) cannot both hold with "
        f"{wish.n:,} people{honest}: {', '.join(ways[:-1])}{' or ' if len(ways) > 1 else ''}{ways[-1]}."
    )


def up(value: float) -> str:
    """Three significant digits, rounded up, so that whoever asks for this gets it."""
    if not isfinite(value) or value <= 0.0:
        return f"{value:g}"
    rounded = f"{value:.3g}"
    return rounded if float(rounded) >= value else f"{value * 1.005:.3g}"
