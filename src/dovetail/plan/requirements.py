"""The requirements on a collection, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dovetail.core.checks import MOST_PEOPLE, positive, privacy_budget, real, refuse, share, whole, word
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.stages import SHUFFLERS, FrequencyRandomizer, NumericRandomizer
from dovetail.estimate.accuracy import PopulationShape
from dovetail.leak.linkage import Linkage, linkage
from dovetail.leak.vulnerability import Vulnerability, vulnerability

SAME = {"shares": "frequency", "number": "mean"}  # names in a configuration of what has a search of its own
MOST_SYMBOLS = 1 << 24
WIDEST = 1e100


@dataclass(frozen=True)
class Requirements:
    """A question to n people and the accuracy or privacy required of it; see `plan_collection` for the fields.

    Exactly one of `error`, `epsilon` and `epsilon0` is given, or `error` with `epsilon` as its ceiling.
    """

    question: Literal["frequency", "mean"]
    n: int
    honest: int
    delta: float
    k: int | None = None
    lower: float | None = None
    upper: float | None = None
    grid: float | None = None
    error: float | None = None
    epsilon: float | None = None
    epsilon0: float | None = None
    randomizer: str | None = None
    shares: PopulationShape = "any"
    smallest_group: int | None = None

    def __post_init__(self) -> None:
        n = whole("n", self.n, least=1, most=MOST_PEOPLE)
        honest = whole("honest", self.honest, least=1, most=n)
        share("delta", self.delta)
        word("question", self.question, ("frequency", "mean"), '"frequency" or "mean"')
        word("shares", self.shares, ("any", "flat"), '"any" or "flat"')
        if self.smallest_group is not None:
            object.__setattr__(self, "smallest_group", whole("smallest_group", self.smallest_group, least=2, most=n))
        checked = self._frequency() if self.question == "frequency" else self._mean()
        for name, value in {**checked, **self._targets(), "n": n, "honest": honest}.items():
            object.__setattr__(self, name, value)

    @property
    def span(self) -> float:
        """Width of the range that the answer lies in: 1 for shares."""
        return 1.0 if self.lower is None or self.upper is None else self.upper - self.lower

    def honest_with_anyone(self, n: int) -> int:
        """The fewest honest people, of n in the same proportions, whose reports are shuffled with one person's own.

        All others are assumed to sit in the smallest group, as `run` assumes.
        """
        mixed = n if self.smallest_group is None else n * self.smallest_group // self.n
        return max(1, mixed - n + max(1, n * self.honest // self.n))

    def _frequency(self) -> dict[str, Any]:
        if self.lower is not None or self.upper is not None or self.grid is not None:
            raise ParameterError(
                "`lower`, `upper` and `grid` belong to the question mean; a frequency has `k` values."
            )
        if self.k is None:
            raise ParameterError("`k` must be given for the question frequency, the number of values.")
        return {"k": whole("k", self.k, least=2, most=MOST_SYMBOLS)}

    def _mean(self) -> dict[str, Any]:
        if self.k is not None or self.shares != "any":
            raise ParameterError("`k` and `shares` belong to the question frequency; a mean has `lower` and `upper`.")
        if self.lower is None or self.upper is None:
            raise ParameterError(
                "`lower` must be given for the question mean, with `upper`: the range of the number."
            )
        lower, upper = real("lower", self.lower), real("upper", self.upper)
        if not 1.0 / WIDEST <= upper - lower <= WIDEST:  # so that variances are doubles
            raise refuse("upper", f"above `lower` = {lower!r} by {1.0 / WIDEST:g} to {WIDEST:g}", upper)
        return {"lower": lower, "upper": upper}

    def _targets(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in ("error", "epsilon", "epsilon0")}
        given = {name: value for name, value in given.items() if value is not None}
        if set(given) not in ({"error"}, {"epsilon"}, {"epsilon0"}, {"error", "epsilon"}):
            raise ParameterError(
                "give one of `error`, `epsilon` and `epsilon0`, or `error` with `epsilon` as its ceiling; "
                f"got {', '.join(given) or 'none of them'}."
            )
        for name, value in given.items():
            if isinstance(value, (list, tuple, dict, set, np.ndarray)):
                raise UnsupportedError(
                    f"`{name}` must be one number for everybody: where people bring randomizers of their own (model "
                    "H) a report can name its sender and no amplification theorem holds; plan each group of people "
                    "with equal `epsilon0` as a collection of its own."
                )
            if name == "error":
                given[name] = error_below(self.span, value, question=self.question)
            else:
                given[name] = privacy_budget(name, value)
        return given


def error_below(span: float, value: Any, *, question: str) -> float:
    """`value` as an error that is wanted of a share, or of a mean in a range of this width."""
    error = positive("error", value)
    if error >= span:
        what = "a share lies" if question == "frequency" else "the mean lies"
        raise refuse("error", f"below {span:g}, because {what} in a range of that width anyway", error)
    return error


# What an attacker can guess, for the randomizers whose leakage is known exactly.


@dataclass(frozen=True)
class Risk:
    """Exact Bayes vulnerability, or why there is none.

    Parameters
    ----------
    exact : Vulnerability or None
    linkage : Linkage
        How often somebody names which report is a given person's.
    reason : str
        Why `exact` is None.
    """

    exact: Vulnerability | None
    linkage: Linkage
    reason: str = ""

    @property
    def vulnerability(self) -> float | None:
        """Chance of naming one person's value in one try, from the shuffled reports."""
        return None if self.exact is None else self.exact.randomized_shuffled

    @property
    def gain(self) -> float | None:
        """Multiplicative leakage: the factor by which that exceeds a guess without any data."""
        return None if self.exact is None else self.exact.randomized_shuffled / self.exact.prior


def assess_risk(randomizer: FrequencyRandomizer | NumericRandomizer, *, n: int) -> Risk:
    """The vulnerability of one person among n, uniform prior, an adversary who knows nothing else; and linkage."""
    named = linkage(randomizer, n=n)
    if isinstance(randomizer, NumericRandomizer):
        return Risk(None, named, "guessing a number on a fine grid in one try has no exact vulnerability here")
    try:
        return Risk(vulnerability(randomizer, n=n), named)
    except UnsupportedError as error:
        return Risk(None, named, str(error))


# Which shuffle a plan is for: of everybody, or inside groups; no other has a central guarantee to plan with.


_EVERYBODY = "uniform"  # by name: importing shufflers costs more than planning
_IN_GROUPS = "within_groups"


def name_of_shuffle(*, grouped: bool) -> str:
    """The shuffler whose guarantee is planned."""
    return _IN_GROUPS if grouped else _EVERYBODY


def check_shuffle(name: str, *, grouped: bool) -> None:
    """Refuse a shuffler that a plan's numbers would not hold for.

    Raises
    ------
    UnsupportedError
        Amplification by shuffling is proven for uniform shuffles; `plan-shuffle` plans the others.
    """
    kind = SHUFFLERS[name]
    if kind.name not in (name_of_shuffle(grouped=False), name_of_shuffle(grouped=True)):
        raise UnsupportedError(
            f"`shuffler` {kind.name!r} has no central guarantee to plan with: amplification by shuffling is proven "
            "for uniform shuffles, of everybody or inside groups. `dovetail plan-shuffle` plans its order; about one "
            "person it promises what one report promises."
        )
    if (kind.name == name_of_shuffle(grouped=True)) != grouped:
        raise ParameterError(
            f"`shuffler` {kind.name!r} shuffles everybody together: leave out `groups` and `smallest_group`."
            if grouped
            else f"`shuffler` {kind.name!r} needs `groups` or `smallest_group`: only its people hide each other."
        )
