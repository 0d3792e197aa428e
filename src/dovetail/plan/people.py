"""How many people: the least n at which two wishes hold together, and what of the question depends on n."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, log
from typing import Any

from dovetail.account.threshold_search import bracket_root
from dovetail.core.checks import MOST_PEOPLE, real, refuse, whole
from dovetail.core.errors import ParameterError
from dovetail.core.registries import RANDOMIZERS
from dovetail.plan.families import RandomizerFamily, select_families
from dovetail.plan.requirements import Requirements
from dovetail.plan.search import SEARCH_TOLERANCE, log_excess, predict_error95, smallest_epsilon0

Build = Callable[[int], Requirements]
Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much

FIRST_GUESS = 10_000  # people, where the search begins
LARGEST_DELTA = 1e-6


def default_delta(n: int) -> float:
    """A power of ten, at most 1e-6 and at most a hundredth of 1/n.

    A guarantee that fails with this probability for each of n people fails for fewer than one person in a hundred
    collections.
    """
    return min(LARGEST_DELTA, float(f"1e-{len(str(100 * n - 1))}"))


def honest_people(honest: float | None, n: int) -> int:
    """A number of people, or a share of n that lies strictly between 0 and 1; default all."""
    if honest is None:
        return n
    if isinstance(honest, float) and 0.0 < honest < 1.0:
        return max(1, int(n * honest))
    return whole("honest", honest, least=1, most=n)


def smallest_group_of(n: int, *, groups: int | None, smallest_group: int | None) -> int | None:
    """People in the smallest of the groups that are shuffled each by itself; None where everybody is shuffled."""
    if groups is None:
        return smallest_group
    if smallest_group is not None:
        raise ParameterError("give `groups`, which are then equally large, or `smallest_group`, not both.")
    return n // whole("groups", groups, least=1, most=max(1, n // 2))


def silent(step: str, done: int, total: int) -> None:
    """Nobody is told how far it is."""


def least_people(
    wishes: dict[str, Any], build: Build, *, guess: int = FIRST_GUESS, progress: Progress = silent
) -> Requirements:
    r"""The requirements at the least n, to within a thousandth, at which two wishes hold together.

    Parameters
    ----------
    wishes : two of error, epsilon, epsilon0
        With `epsilon0` the device's noise is given and n follows from the other wish.
    build : function of n
        The checked requirements for n people; refuses an n that is too small.
    guess : int
        An n that is large enough to be asked about.

    Raises
    ------
    ParameterError
        When no n up to 1e12 is enough.
    """
    best, name = MOST_PEOPLE + 1, None
    admitted = select_families(build(guess))
    for done, family in enumerate(admitted):
        progress("how many people each randomizer needs", done, len(admitted))
        n = _least_n(_excess(family.name, wishes, build), most=min(best, MOST_PEOPLE))
        if n is not None and n < best:
            best, name = n, family.name
    if name is None:
        listed = " and ".join(f"`{name}` = {value:g}" for name, value in wishes.items())
        raise ParameterError(
            f"{listed} cannot both hold with any number of people up to {MOST_PEOPLE:,}: allow more of one of them."
        )
    return replace(build(best), randomizer=name)


def _excess(name: str, wishes: dict[str, Any], build: Build) -> Callable[[float], float]:
    """The logarithm of what n people reach over what is wished: at most 0 where it is enough."""

    kind = RANDOMIZERS[name]

    def excess(people: float) -> float:
        n = max(1, ceil(people))
        try:
            asked = replace(build(n), randomizer=name)
            return _log_ratio(RandomizerFamily.of(kind, asked), wishes, asked, n)
        except ParameterError:  # too few people for these groups, or for this kind
            return inf

    return excess


def _log_ratio(family: Any, wishes: dict[str, Any], asked: Requirements, n: int) -> float:
    if "epsilon0" not in wishes:
        epsilon0 = smallest_epsilon0(family, asked, error=wishes["error"], n=n)
        return inf if epsilon0 is None else log_excess(family, epsilon0, asked, epsilon=wishes["epsilon"], n=n)
    if "error" in wishes:
        return log(max(predict_error95(family, wishes["epsilon0"], asked, n=n), 1e-300) / wishes["error"])
    return log_excess(family, wishes["epsilon0"], asked, epsilon=wishes["epsilon"], n=n)


def _least_n(excess: Callable[[float], float], *, most: int) -> int | None:
    """The least n up to `most`, which may be what another kind needs."""
    if excess(1) <= 0.0:
        return 1
    if excess(most) > 0.0:
        return None
    guess = min(FIRST_GUESS, 0.95 * most)
    return ceil(bracket_root(excess, guess, steepness=1.0, most=most, tolerance=SEARCH_TOLERANCE)[1])


def check_wishes(wishes: dict[str, Any]) -> dict[str, float]:
    """Exactly two of the three, as numbers."""
    given = {name: value for name, value in wishes.items() if value is not None}
    if len(given) != 2:
        raise ParameterError(
            "without `n`, give two of `error`, `epsilon` and `epsilon0`: n is the least number of people for both; "
            f"got {', '.join(given) or 'none of them'}."
        )
    for name, value in given.items():
        if real(name, value) <= 0.0:
            raise refuse(name, "above 0", value)
    return given
