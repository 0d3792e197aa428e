"""The privacy blanket: a victim hidden among reports that say nothing about their senders.

If mu <= R_x for every value x, each other person's report is a draw of mu with probability |mu|, whatever she holds.
Revealing who did not draw from mu, and those reports, leaves the victim among the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dovetail.account.bound import DominatingPair, bracket_root, first_point, is_zero, largest_exceeding, log_ratio
from dovetail.account.clones import normal_threshold
from dovetail.account.expected_positive_part import POINTS, expected_positive_part, tilted_positive_part
from dovetail.core.certified import Bracket
from dovetail.core.checks import MOST_PEOPLE, real, refuse, share, whole
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.special import Reals

SLACK = 1e-9  # how far the data of a law may be off their sums
LARGEST = 100.0  # squares of likelihood ratios stay far inside the range of doubles
SEARCH = 1e-6  # relative width to which a threshold is searched
CLOSE = 1e-5  # and where fewer steps are worth more
FLAT = 1e-200  # epsilon below which delta(0) has to be looked at
ROUNDING = 2.0**-48  # share by which e^epsilon is moved against us: the rounding of the atoms
FOREMOST = 16  # types among which a tilt is sought


@dataclass(frozen=True, eq=False)
class BlanketLaw:
    r"""Distribution of two likelihood ratios of one report, for two neighbouring values.

    .. math:: (Z_0, Z_1) = \left( \frac{dR_0}{d\mu}, \frac{dR_1}{d\mu} \right) \text{ under } \mu, \qquad
              (0, 0) \text{ with probability } 1 - |\mu|

    Parameters
    ----------
    z0, z1 : float arrays (atoms,), above 0
    mass : float array (atoms,), at least 0
        Sums to at most 1; the rest is the atom (0, 0). Both means are 1.

    Examples
    --------
    >>> law = BlanketLaw([3.0, 1.0], [1.0, 3.0], [0.25, 0.25])  # stronger clones at e^epsilon0 = 3
    >>> round(law.epsilon0, 4), law.remainder
    (1.0986, 0.5)

    Source
    ------
    docs/theory/mechanism-laws.md; Balle, Bell, Gascon, Nissim (2019), The Privacy Blanket of the Shuffle Model,
    CRYPTO, Lemma 5.3.
    """

    z0: Any
    z1: Any
    mass: Any

    def __post_init__(self) -> None:
        z0, z1, mass = (np.array(field, dtype=np.float64).ravel() for field in (self.z0, self.z1, self.mass))
        if not z0.size == z1.size == mass.size > 0:
            raise DataError(f"`z0`, `z1` and `mass` must be equally long, got {z0.size}, {z1.size}, {mass.size}.")
        z0, z1, mass = z0[mass != 0.0], z1[mass != 0.0], mass[mass != 0.0]
        if not (np.all(mass > 0.0) and mass.sum() <= 1.0 + SLACK):
            raise DataError(f"`mass` must be probabilities with sum at most 1, got sum {mass.sum()!r}.")
        if not np.all((z0 > 0.0) & (z1 > 0.0) & np.isfinite(z0) & np.isfinite(z1)):
            raise DataError(
                "`z0` and `z1` must be finite and above 0: a ratio of 0 or infinity is not local privacy."
            )
        for name, z in (("z0", z0), ("z1", z1)):
            if abs(float(mass @ z) - 1.0) > SLACK:
                raise DataError(f"`{name}` must have mean 1, got {float(mass @ z)!r}.")
        for name, field in (("z0", z0), ("z1", z1), ("mass", mass)):
            field.setflags(write=False)
            object.__setattr__(self, name, field)

    @property
    def remainder(self) -> float:
        """Mass of (0, 0)."""
        return max(0.0, 1.0 - float(self.mass.sum()))

    @property
    def epsilon0(self) -> float:
        """Largest log ratio of an atom; nats."""
        return float(np.abs(np.log(self.z0 / self.z1)).max())

    @property
    def spread(self) -> float:
        r"""E[(Z0 - Z1)^2]: for large n the victim is about as exposed as by a normal shift of sqrt(spread / n)."""
        return float(np.sum((np.sqrt(self.mass) * (self.z0 - self.z1)) ** 2))  # no square leaves the doubles

    @property
    def mirrored(self) -> BlanketLaw:
        """The law with the two values exchanged."""
        return BlanketLaw(self.z1, self.z0, self.mass)

    @property
    def symmetric(self) -> bool:
        """True if exchanging the two values changes nothing."""
        ways = [np.lexsort(pair) for pair in ((self.z1, self.z0), (self.z0, self.z1))]
        fields = ((self.z0, self.z1), (self.z1, self.z0), (self.mass, self.mass))
        return all(np.array_equal(one[ways[0]], other[ways[1]]) for one, other in fields)


@dataclass(frozen=True, eq=False)
class ShuffledLaw:
    r"""A blanket law among n honest reports: dominates the shuffled collection, in both directions.

    .. math:: \delta(\epsilon) \le \frac1n E\left[ \left( \sum_{i=1}^n (Z_0 - e^{\epsilon} Z_1)_i \right)_+ \right]

    With everybody else's own law as mu it is that collection's exact delta instead, so the lower end is an attack.

    Parameters
    ----------
    law : BlanketLaw
    n : int, 1 .. 1e12
        Honest reports in the batch.
    points : int, a power of two
        Grid points of the convolution; four times as many shrink the gap of delta 16 times.

    Notes
    -----
    Relative gap of epsilon(delta), measured for k-ary response with 3 to 10 000 symbols and epsilon0 up to 20: as a
    rule about 2e-5, at most 7e-4 up to n = 1e9; up to 2e-2 at n = 1e12. About 15 ms per evaluation at n = 1e6.

    Examples
    --------
    >>> law = BlanketLaw([3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [0.2, 0.2, 0.2])  # three-way randomized response
    >>> round(ShuffledLaw(law, 1000).epsilon(1e-6).upper, 3)
    0.149
    """

    law: BlanketLaw
    n: int
    points: int = POINTS

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", whole("n", self.n, least=1, most=MOST_PEOPLE))
        if self.law.epsilon0 > LARGEST:
            raise UnsupportedError(
                f"The law of a report is summed up to epsilon0 = {LARGEST:g}, got {self.law.epsilon0:g}; "
                "stronger clones hold."
            )

    @cached_property
    def _directions(self) -> tuple[BlanketLaw, ...]:
        return (self.law,) if self.law.symmetric else (self.law, self.law.mirrored)

    def delta(self, epsilon: float) -> Bracket:
        """Ends of the larger delta of the two directions; every real epsilon."""
        if real("epsilon", epsilon) < 0.0:  # D_E(P || Q) = 1 - E + E D_{1/E}(Q || P)
            other, factor = self.delta(-epsilon), math.exp(epsilon)
            low, high = (-math.expm1(epsilon) + factor * end for end in (other.lower, other.upper))
            return Bracket(low * (1.0 - ROUNDING), min(1.0, high * (1.0 + ROUNDING)))
        if epsilon >= self.law.epsilon0:
            return Bracket(0.0, 0.0)
        ends = [self._one_way(law, epsilon) for law in self._directions]
        return Bracket(max(end.lower for end in ends), max(end.upper for end in ends))

    def tilted_bound(self, epsilon: float) -> float:
        """At least delta(epsilon), epsilon at least 0, by one exponential: to tell soon which of many laws counts."""
        if epsilon >= self.law.epsilon0:
            return 0.0
        found = 0.0
        for law in self._directions:
            z0, z1, mass = (np.append(law.z0, 0.0), np.append(law.z1, 0.0), np.append(law.mass, law.remainder))
            found = max(found, tilted_positive_part(z0 - math.exp(epsilon) * (1.0 - ROUNDING) * z1, mass, self.n))
        return found * (1.0 + ROUNDING) + 1e-300

    def one_way(self, epsilon: float, *, mirrored: bool = False) -> Bracket:
        """Ends of delta at epsilon >= 0 of the first value against the second alone, or `mirrored`."""
        if not real("epsilon", epsilon) >= 0.0:
            raise refuse("epsilon", "at least 0", epsilon)
        if epsilon >= self.law.epsilon0:
            return Bracket(0.0, 0.0)
        return self._one_way(self.law.mirrored if mirrored else self.law, epsilon)

    def epsilon(self, delta: float) -> Bracket:
        """Ends of the smallest epsilon with delta(epsilon) <= delta, for 0 <= delta < 1."""
        high = self.epsilon_upper(delta)
        if delta == 0.0 or high == 0.0:
            return Bracket(high, high)
        return Bracket(min(self.epsilon_lower(delta, guess=high), high), high)

    def epsilon_upper(self, delta: float) -> float:
        """The upper end of `epsilon`, at most the law's epsilon0: delta(upper) <= delta was evaluated there."""
        most, delta = self.law.epsilon0, share("delta", delta)
        if delta == 0.0 or most == 0.0:
            return most
        value = cache(lambda e: self.delta(e).upper)
        guess, steepness = self._guess(delta)
        start = first_point(guess, most)
        if is_zero(value, delta, start, steepness=steepness, tolerance=SEARCH):
            return 0.0
        return bracket_root(
            lambda e: log_ratio(value(e), delta), start, steepness=steepness, most=most, tolerance=SEARCH
        )[1]

    def epsilon_below(self, delta: float, known: float) -> float:
        """The smaller of `epsilon_upper` and what another theorem allows, larger by 1e-4 at most: for searches.

        One or two evaluations show where this law is not the smaller one.
        """
        known = min(known, self.law.epsilon0)
        close = known * (1.0 - CLOSE)
        guess, steepness = self._guess(delta)
        here = min(guess, close)
        short = log_ratio(self.delta(here).upper, delta)
        if short > 0.0 and (here == close or self.delta(close).upper > delta):
            return known
        found = bracket_root(
            lambda e: log_ratio(self.delta(e).upper, delta),
            here * math.exp(min(max(short / steepness, -1.0), 1.0)),
            steepness=steepness,
            most=close if short > 0.0 else here,
            tolerance=CLOSE,
        )[1]
        return found if found > FLAT else self.epsilon_upper(delta)

    def epsilon_lower(self, delta: float, *, guess: float | None = None) -> float:
        """The largest epsilon found at which the lower end of delta exceeds `delta`; `guess` only saves time."""
        usual, steepness = self._guess(share("delta", delta))
        return largest_exceeding(
            lambda e: self.delta(e).lower,
            delta,
            most=self.law.epsilon0,
            guess=guess or usual,
            steepness=steepness,
            tolerance=CLOSE,
        )

    def _guess(self, delta: float) -> tuple[float, float]:
        """Log delta of the normal shift, and -d log delta / d log epsilon there."""
        scale = max(math.sqrt(self.law.spread / self.n), 1e-300)
        t, steepness = normal_threshold(delta / scale)
        return scale * t, steepness

    def _one_way(self, law: BlanketLaw, epsilon: float) -> Bracket:
        z0, z1, mass = (np.append(law.z0, 0.0), np.append(law.z1, 0.0), np.append(law.mass, law.remainder))
        larger = z0 - math.exp(epsilon) * (1.0 - ROUNDING) * z1
        smaller = z0 - math.exp(epsilon) * (1.0 + ROUNDING) * z1
        ends = expected_positive_part(larger, mass, self.n, smaller=smaller, points=self.points)
        return Bracket(ends.lower * (1.0 - ROUNDING), min(1.0, ends.upper * (1.0 + ROUNDING) + 1e-300))


# A pair of values, and what each kind of other person sends: all that their exposure depends on.


Type = tuple[Reals, Reals, Reals, Reals]  # mu, R_a, R_c and R_t of one type, or their ratios to mu


@dataclass(frozen=True, eq=False)
class Exposure:
    r"""For one ordered pair of values (a, c): the reports of a, of c and of each type t of the others.

    .. math:: \mu \le R_x \text{ for every } x, \qquad g = |\mu|

    Only the joint law of (dR_a/dmu, dR_c/dmu, dR_t/dmu) counts, type by type: so each type has atoms of its own,
    and reports of one type with the same three ratios are one atom.

    Parameters
    ----------
    mu, first, second, own : float arrays (types, atoms)
        Masses of mu, R_a, R_c and R_t. Atoms without mu have no mass at all.
    most_lost : float
        Types stand for others of them only where (1 - s) E is at most this, at every node s.
    sketch : Exposure, optional
        The same types on fewer reports, each of them exposed no less: it tells sooner which are far from the worst.
    """

    mu: Reals
    first: Reals
    second: Reals
    own: Reals
    most_lost: float = math.inf
    sketch: Exposure | None = None

    def __post_init__(self) -> None:
        fields = [
            np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (self.mu, self.first, self.second, self.own)
        ]
        if len({field.shape for field in fields}) != 1 or fields[0].size == 0:
            raise DataError(f"An exposure must have arrays of one shape, got {[field.shape for field in fields]}.")
        mu, *laws = fields
        if not all(np.all(law >= mu * (1.0 - SLACK)) for law in laws) or not np.all(mu >= 0.0):
            raise DataError("`mu` must be at least 0 and at most each law.")
        if not all(np.all(law[mu == 0.0] == 0.0) for law in laws):
            raise DataError("Laws must have no mass where `mu` has none.")
        if not all(np.all(np.abs(law.sum(axis=1) - 1.0) <= SLACK) for law in laws):
            raise DataError("Laws must sum to 1 for each type of the others.")
        held = mu.sum(axis=1)
        if not np.all(np.abs(held - held[0]) <= SLACK * held[0]):
            raise DataError("`mu` must have one mass for every type.")
        for name, field in zip(("mu", "first", "second", "own"), fields, strict=True):
            object.__setattr__(self, name, field)

    @classmethod
    def of(cls, types: Sequence[Type]) -> Exposure:
        """From mu, R_a, R_c and R_t of each type, of any lengths."""
        longest = max(rows[0].size for rows in types)
        padded = np.array([[np.pad(row, (0, longest - row.size)) for row in rows] for rows in types])
        return cls(*np.swapaxes(padded, 0, 1))

    @classmethod
    def of_ratios(cls, types: Sequence[Sequence[ArrayLike]]) -> Exposure:
        """From mu and the ratios of R_a, R_c and R_t to it, for each type."""
        rows = [[np.asarray(row, dtype=np.float64) for row in kind] for kind in types]
        return cls.of([(mu, mu * a, mu * c, mu * t) for mu, a, c, t in rows])

    @cached_property
    def g(self) -> float:
        """Mass of mu."""
        return float(self.mu[0].sum())

    @cached_property
    def spreads(self) -> Reals:
        r"""The sum of (R_a - R_c)^2 / R_t for each type: n times the exposure of a common value, for large n."""
        ratio = np.divide(self.first - self.second, self.own, out=np.zeros_like(self.own), where=self.own > 0.0)
        return np.asarray(np.sum(ratio * (self.first - self.second), axis=1))

    @cached_property
    def foremost(self) -> Exposure:
        """The first type, whose mu counts, and the most exposed ones."""
        rows = np.unique(np.append(np.argsort(-self.spreads, kind="stable")[:FOREMOST], 0))
        return self if rows.size == len(self.own) else self.among(rows)

    def among(self, types: Any) -> Exposure:
        """Some of the types, without a sketch."""
        mu, first, second, own = (field[types] for field in (self.mu, self.first, self.second, self.own))
        return Exposure(mu, first, second, own, self.most_lost)

    def dataset(self, row: int) -> BlanketLaw:
        """The exact law of the collection in which everybody else is of type `row`."""
        used = self.own[row] > 0.0
        base = self.own[row][used]
        return BlanketLaw(self.first[row][used] / base, self.second[row][used] / base, base)


# What a file of `account/mechanisms` declares: a mechanism, and the laws of its shuffled reports.


@dataclass(frozen=True)
class DeclaredLaw:
    """The laws of one mechanism.

    Parameters
    ----------
    subject : type
        A channel or a randomizer: what `Randomizer.accounted` returns.
    name : str
        Of the bound.
    dataset : function of the subject
        The exact law of one bad collection: no bound can be below it.
    upper : function of the subject
        A law that dominates every collection.
    uppers : function of the subject
        Instead of `upper`: laws of which the largest does, pair by pair of values.
    exposures : function of the subject, optional
        Every kind of ordered pair of values, with every kind of value that others may hold.
    worst : function of the subject, optional
        Fewer of them, which are at least as exposed where a report is of this mechanism alone.
    second : function of the subject, optional
        The exact law where everybody else holds the second value; without it, the exposures say so.
    pair : function of the subject and n, optional
        What dominates n shuffled reports, where that is less than `upper` says.
    """

    subject: type
    name: str
    dataset: Callable[..., BlanketLaw]
    upper: Callable[..., BlanketLaw] | None = None
    uppers: Callable[..., Sequence[BlanketLaw]] | None = None
    exposures: Callable[..., Sequence[Exposure]] | None = None
    worst: Callable[..., Sequence[Exposure]] | None = None
    second: Callable[..., BlanketLaw] | None = None
    pair: Callable[..., DominatingPair] | None = None
