"""How a number is distributed: its quantiles, and the share of people below every bin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from dovetail.core.checks import range_between, refuse, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Z95, Estimate, Tally
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.estimate.distribution import (
    MOST_BINS,
    MOST_LEVELS,
    Crossings,
    Tree,
    monotone,
    of_rounds,
    quantiles,
)
from dovetail_protocol.asked import Part, Symbol

FIVE = "0.05, 0.25, 0.5, 0.75, 0.95"
_NAMES = {0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile"}
_ONE = 1.0  # standard deviation: what half an interval is called a standard error of
AT_ONCE = 256  # sums whose laws are worked out together
MOST_SHOWN = 256  # points of a curve
MOST_SHARE = 1e15  # of people below an end, as noisy counts say it of one person at most; larger ones have no digits
PARTS = 8  # of the interval of a quantile in the next round: an error grows with the root of all bins
BESIDE = (0.25, 1.0, 4.0)  # ends of bins beside an interval, in its lengths

Ends = tuple[NDArray[np.float64], NDArray[np.float64]]
Told = tuple[int, tuple[tuple[float, float], ...]]  # people of a round, and what it said of the share below each end


@final
@dataclass(frozen=True)
class Distribution(Question):
    r"""The distribution of a number by even bins: a person says her bin, or her node on each level of a tree of bins.

    .. math:: F(v) = \frac{1}{n} \#\{\text{people in bins } 0 .. v\}, \qquad
              \min\{v : F(v) \ge q\} \text{ is the bin of the } q\text{-quantile}

    Intervals of quantiles are for exactly these people, from lower to upper end of bins, and cover by proof: they use
    the law of the noise in each point, and no normal approximation. Those for a population add one of the sampling.

    Parameters
    ----------
    lower, upper : float, lower < upper
        A bin holds its lower end; the last one both.
    bins : int, 2 to 65,536
    levels : int, 1 to 4
        Of the tree, each a symbol of its own; more than one go with dummies, and `bins` is their product. `dovetail
        plan` chooses them: errors of long ranges of bins get smaller, and every level shares the budget.
    quantiles : tuple of float, above 0, at most 1
    ends : tuple of float, ascending from `lower` to `upper`
        Of bins that are not even, with one level; `bins` is then their number. `after` chooses them from what a round
        has published: a domain of 2^30 takes eight rounds of some sixty bins each.
    earlier : tuple of rounds
        What earlier rounds have published about the same people: how many they were, and the unbiased share of them
        below each inner end of its bins. Estimates are least squares of all rounds of as many people. Intervals are
        of this round's counts alone, because its bins follow from the errors of earlier ones, and hold the estimates.

    Raises
    ------
    ParameterError
        For an empty range, quantiles outside theirs, and bins that have no such tree.

    Examples
    --------
    >>> asked = Distribution(0.0, 100.0, bins=128, levels=2, quantiles=(0.5, 0.9))
    >>> asked.tree.branching, asked.domain, asked.labels
    ((16, 8), {'k': 144}, ['median', '90 % quantile'])

    Source
    ------
    docs/theory/distributions.md.
    """

    lower: float
    upper: float
    bins: int = 128
    levels: int = 1
    quantiles: tuple[float, ...] = (0.05, 0.25, 0.5, 0.75, 0.95)
    ends: tuple[float, ...] = ()
    earlier: tuple[Told, ...] = ()
    name: ClassVar[str] = "distribution"
    label: ClassVar[str] = "the distribution of a number"
    measure: ClassVar[str] = "quantile"
    needs = "frequency"
    hidden: ClassVar[Missing | None] = Missing("guesses are measured of one answer of a list; here a number is asked")
    planned: ClassVar[Mapping[str, Sequence[Any]]] = {"levels": range(1, MOST_LEVELS + 1)}
    planned_gain: ClassVar[float] = 0.03  # a level takes half as many dummies again
    planned_measure: ClassVar[str] = "share"
    planned_of: ClassVar[str] = "of the share of people below any one number, whatever they hold"
    needs_names: ClassVar[bool] = True
    bounds_sums: ClassVar[bool] = True

    @dataclass
    class Settings:
        """Of a configuration.

        Parameters
        ----------
        bins
            Even bins of the range; how near a quantile can be told.
        levels
            Levels of a tree of bins; a plan chooses them. Several go with dummies.
        quantiles
            Shares of people, separated by commas.
        ends
            Ends of uneven bins, separated by commas, instead of `bins`, as `dovetail refine` writes them.
        earlier
            What earlier rounds published, as `dovetail refine` writes it.
        """

        bins: Annotated[int, Ge(2), Le(MOST_BINS)] = 128
        levels: Annotated[int, Ge(1), Le(MOST_LEVELS)] = 1
        quantiles: str = FIVE
        ends: str = ""
        earlier: str = ""

    def __post_init__(self) -> None:
        range_between(self.lower, self.upper)
        whole("levels", self.levels, least=1, most=MOST_LEVELS)
        object.__setattr__(self, "ends", self._told_ends())
        if self.ends:
            object.__setattr__(self, "bins", len(self.ends) - 1)
        Tree.of(self.bins, levels=self.levels)
        object.__setattr__(self, "quantiles", _shares(self.quantiles))
        object.__setattr__(self, "earlier", self._told_earlier())

    def _told_ends(self) -> tuple[float, ...]:
        """Ends of uneven bins as numbers, from a text with commas or a sequence; none of even ones."""
        given: Any = self.ends
        try:
            parts = [one for one in given.split(",") if one.strip()] if isinstance(given, str) else list(given)
            found = tuple(float(one) for one in parts)
        except (TypeError, ValueError):
            raise refuse("ends", "numbers, separated by commas", given) from None
        rising = all(one < other for one, other in pairwise(found))
        if found and not (len(found) > 2 and rising and found[0] == self.lower and found[-1] == self.upper):
            raise refuse("ends", f"ascending, three or more, from {self.lower:g} to {self.upper:g}", given)
        if found and self.levels > 1:
            raise refuse("levels", "1 for bins with `ends` of their own", self.levels)
        return found

    def _told_earlier(self) -> tuple[Told, ...]:
        """Estimates of earlier rounds, from a text such as "900: 16 .25, 64 .5; 900: ..." or from tuples."""
        given: Any = self.earlier
        if not isinstance(given, str):
            return tuple(given)
        found = []
        try:
            for people, told in (one.split(":") for one in given.split(";") if one.strip()):
                pairs = tuple((float(end), float(share)) for end, share in (one.split() for one in told.split(",")))
                found.append((int(people), pairs))
        except ValueError:
            raise refuse("earlier", "rounds as `dovetail refine` writes them", given) from None
        for _, pairs in found:
            ends = (self.lower, *(end for end, _ in pairs), self.upper)
            counted = np.abs([share for _, share in pairs]) <= MOST_SHARE  # False for what is no number
            if not (all(one < other for one, other in pairwise(ends)) and counted.all()):
                raise refuse("earlier", f"about ascending ends between {self.lower:g} and {self.upper:g}", given)
        return tuple(found)

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        if not data.numeric:
            raise ParameterError("a distribution is of a number: declare `lower` and `upper` in [data]")
        return cls(float(data.lower), float(data.upper), **settings)

    @property
    def tree(self) -> Tree:
        """The tree of the bins."""
        return Tree.of(self.bins, levels=self.levels)

    @property
    def symbols(self) -> int:
        return self.levels

    @property
    def column(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper}

    @property
    def domain(self) -> dict[str, Any]:
        return {"k": self.tree.size}

    @property
    def edges(self) -> NDArray[np.float64]:
        """Ends of the bins (bins + 1,)."""
        return np.array(self.ends) if self.ends else np.linspace(self.lower, self.upper, self.bins + 1)

    @property
    def names(self) -> list[str] | None:
        found = []
        for nodes in self.tree.nodes:
            ends = [f"{end:.12g}" for end in self.edges[:: self.bins // nodes]]
            found += [f"{low} to {high}" for low, high in pairwise(ends)]
        return found

    @property
    def labels(self) -> list[str]:
        return [_NAMES.get(share, f"{100.0 * share:.10g} % quantile") for share in self.quantiles]

    @property
    def span(self) -> tuple[float, float] | None:
        return self.lower, self.upper

    def answer(self, values: Values, rng: Entropy) -> Values:
        bins = np.clip(np.searchsorted(self.edges, values, side="right") - 1, 0, self.bins - 1)
        found = self.tree.symbols(bins.astype(np.int64))
        return found[:, 0] if self.levels == 1 else found

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        if self.ends:
            return (Symbol((Part((names[0],), "ends", self.bins, ends=self.ends),)),)
        return tuple(Symbol((Part((names[0],), "bins", nodes, self.bins),)) for nodes in self.tree.nodes)

    def function(self, noise: Noise, tally: Tally, people: People) -> NDArray[np.float64]:
        """Unbiased shares of people in the first 1 .. bins - 1 bins, by least squares."""
        counts = noise.shares(tally, people).value * people.n
        return np.asarray(np.cumsum(self.tree.fitted(counts, people.n))[:-1] / people.n)

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        function, shares = self.function(noise, tally, people), np.array(self.quantiles)
        away = np.abs(function[:, None] - shares).min(axis=1, initial=1.0) - 1.0 / people.n

        @cache  # the same for people and for their population
        def known(tail: float, *held: int) -> Ends:
            crude = self._crude(noise, people, tail)  # enough where the function is far from all quantiles
            return self._reach(noise, people, np.flatnonzero(away <= crude), np.array(held), tail)

        def reach(held: NDArray[np.int64], tail: float) -> Ends:
            return known(tail, *held.tolist())

        crossings = Crossings(function, self.edges, shares, people.n, reach)
        value = quantiles(*of_rounds([(function, self.edges), *self._rounds(people.n)]), shares)
        errors = [np.ptp(one.interval(value, _ONE), axis=0) / 2.0 for one in (crossings, crossings.drawn(None))]
        return Estimate(value, errors[0], people.n, errors[1], spread=crossings)

    def _rounds(self, n: int) -> list[Ends]:
        """Functions and edges of earlier rounds of as many people: of others, or of a group, they say nothing."""
        found = []
        for people, pairs in self.earlier:
            if people == n:
                inner, function = np.array(pairs).T
                found.append((function, np.array([self.lower, *inner, self.upper])))
        return found

    def _crude(self, noise: Noise, people: People, tail: float) -> NDArray[np.float64]:
        """How far estimates may lie from the truth by Chebyshev's inequality (bins - 1,)."""
        return noise.deviation(*self.tree.classes, people) / math.sqrt(tail)

    def _reach(
        self, noise: Noise, people: People, rows: NDArray[np.int64], held: NDArray[np.int64], tail: float
    ) -> Ends:
        """How far they may lie by the law of the noise at these `rows`, and by Chebyshev's inequality elsewhere."""
        weights, sizes = self.tree.classes
        ends = [self._crude(noise, people, tail) for _ in range(2)]
        for part in np.array_split(rows, -(-rows.size // AT_ONCE)) if rows.size else []:
            found = noise.reach(weights[part], sizes[part], held, people, tail=tail)
            for place, one in enumerate(found):
                if ends[place].ndim < one.ndim:
                    ends[place] = np.tile(ends[place], (len(held), 1))
                ends[place][..., part] = one
        return ends[0], ends[1]

    def after(
        self, low: NDArray[np.float64], high: NDArray[np.float64], n: int, curve: Any
    ) -> Mapping[str, Any] | Missing:
        """Intervals are cut into even parts, those that overlap together; of the rest of the range little is asked.

        Beside an interval lie bins that get wider, so that one that turns out to reach further ends there.
        """
        found: list[list[float]] = []  # low, high, quantiles
        for start, stop in sorted(zip(low.tolist(), high.tolist(), strict=True)):
            if found and start < found[-1][1]:
                found[-1][1:] = [max(stop, found[-1][1]), found[-1][2] + 1]
            else:
                found.append([start, stop, 1])
        ends = {self.lower, self.upper}
        for start, stop, many in found:
            far = (stop - start) * np.array(BESIDE)
            parts = np.concatenate([start - far, np.linspace(start, stop, PARTS * int(many) + 1), stop + far])
            ends |= set(np.clip(parts, self.lower, self.upper).tolist())
        told = ", ".join(f"{quantile:.10g}" for quantile in self.quantiles)
        return {
            "ends": ", ".join(repr(end) for end in sorted(ends)),
            "quantiles": told,
            "earlier": "; ".join(_written(one) for one in (*self.earlier, *self._published(n, curve))),
        }

    def _published(self, n: int, curve: Any) -> tuple[Told, ...]:
        """The unbiased share below each inner end of bins, if the report of this round shows all of them."""
        try:
            pairs = tuple(zip(map(float, curve["place"]), map(float, curve["unbiased"]), strict=True))
        except (KeyError, TypeError, ValueError):
            return ()
        known = [end for end, _ in pairs] == self.edges[1:-1].tolist() and np.isfinite(
            [one for _, one in pairs]
        ).all()
        return ((n, pairs),) if known else ()

    def curve(self, noise: Noise, tally: Tally, people: People) -> dict[str, Any]:
        function = self.function(noise, tally, people)
        shown = np.unique(np.linspace(0, self.bins - 2, min(MOST_SHOWN, self.bins - 1)).round().astype(np.int64))
        held = np.linspace(0, people.n, 5).astype(np.int64)  # errors are largest at an end, or near one half
        ends = self._reach(noise, people, shown, held, 0.025)
        below, above = (np.atleast_2d(one).max(axis=0)[shown] for one in ends)
        columns = {
            "place": self.edges[shown + 1],
            "share": monotone(function)[shown],
            "unbiased": function[shown],
            "low": np.clip(function[shown] - above, 0.0, 1.0),
            "high": np.clip(function[shown] + below, 0.0, 1.0),
        }
        return {name: [float(one) for one in column] for name, column in columns.items()}

    def error(self, noise: Noise, people: People) -> float:
        """Of the share of people below the end of a bin, the largest of all bins."""
        return float(noise.deviation(*self.tree.classes, people).max())

    def noise_ratio(self, noise: Noise, people: People) -> float:
        """Of the share below a bin, over that with which the interval of every quantile is the whole range."""
        return Z95 * self.error(noise, people) / max(max(share, 1.0 - share) for share in self.quantiles)

    def truth(self, values: Values) -> list[float]:
        return [float(one) for one in np.quantile(values, self.quantiles, method="inverted_cdf")]

    def notes(self, beside: Mapping[str, Any], *, n: int, mode: str) -> tuple[str, ...]:
        rounds = len(self._rounds(n))
        if not self.earlier:
            return ()
        if not rounds:
            return (f"Earlier rounds are left out: they were about other numbers of people than {n:,}.",)
        return (
            f"Quantiles are estimated from this round and {rounds} earlier of the same {n:,} people. Intervals and "
            "curve are of this round alone: its bins follow from the errors of earlier ones.",
        )

    @property
    def is_chosen(self) -> bool:
        return bool(self.ends)

    def described(self, private: str) -> dict[str, Any]:
        domain = f"a number between {self.lower:g} and {self.upper:g}, in {self.bins:,} bins"
        return {
            "kind": "distribution", "domain": domain, "lower": self.lower, "upper": self.upper, "bins": self.bins,
            "tree": list(self.tree.branching),
        }  # fmt: skip

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.0, 10.0, bins=6), cls(0.0, 10.0, bins=6, levels=2))


def _shares(given: Any) -> tuple[float, ...]:
    """Quantiles as numbers, from a text with commas or a sequence."""
    try:
        parts = [one for one in given.split(",") if one.strip()] if isinstance(given, str) else list(given)
        found = tuple(float(one) for one in parts)
    except (TypeError, ValueError):
        raise refuse("quantiles", "numbers above 0, at most 1, separated by commas", given) from None
    if not found or not all(0.0 < one <= 1.0 for one in found) or len(set(found)) < len(found):
        raise refuse("quantiles", "different numbers above 0, at most 1", given)
    return found


def _written(told: Told) -> str:
    """One round as a text, shares to a billionth."""
    people, pairs = told
    return f"{people}: " + ", ".join(f"{end!r} {share:.9g}" for end, share in pairs)
