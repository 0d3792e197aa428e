"""Samplers of one sentence: the exponential mechanism and permute-and-flip, exact, with their distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import privacy_budget
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError

# Epsilon as whole numbers: selection weights are exact powers of a fraction, so no floating-point number decides.
#
# The weight of a candidate is (b/(b+1))^{n} with a whole number n, its level below the best. Changing one
# sentence moves levels apart by at most q, the largest even number with ((b+1)/b)^q \le e^\epsilon.


Levels = NDArray[np.int64]  # (m,), at least 0, and 0 for the best
Utilities = NDArray[np.int64]  # (m,), whole numbers, larger is better

_BASES = [1 << power for power in range(4, 21)]
_FINE = 128  # steps of epsilon that make rounding cost less than a fiftieth
_FAR = 256  # levels beyond 256 b weigh less than 2^-369 and are cut there


@dataclass(frozen=True)
class IntegerBudget:
    r"""The grid on which a selection spends epsilon.

    .. math:: q = \max \{ 2j : ((b+1)/b)^{2j} \le e^\epsilon \}, \qquad
              r_i = \lfloor U_i (q-2)/C \rfloor, \qquad n_i = \min(\max r - r_i,\ 256 b)

    Parameters
    ----------
    epsilon : float in (0, 700], nats
    base : int
        b, a power of two; the smallest that leaves at least 128 steps.
    steps : int
        q, even.

    Notes
    -----
    If replacing a sentence changes the utilities U by amounts that differ by at most C, the r change by amounts that
    differ by at most q (rounding adds less than two to q - 2, and q is whole), hence weights by at most
    :math:`((b+1)/b)^q \le e^\epsilon`. Adding or removing a sentence changes U by at most C/2, r by at most q/2.
    Cutting far levels is a maximum with a level that moves with the best one, so it moves nothing further apart.
    """

    epsilon: float
    base: int
    steps: int

    def __post_init__(self) -> None:
        most = _steps(privacy_budget("epsilon", self.epsilon), self.base)
        if self.steps % 2 or not 2 <= self.steps <= most:
            raise ParameterError(f"`steps` must be even and from 2 to {most}, got {self.steps!r}.")

    @classmethod
    def of(cls, epsilon: float) -> IntegerBudget:
        """The budget for this epsilon.

        >>> IntegerBudget.of(10.0)
        IntegerBudget(epsilon=10.0, base=16, steps=164)
        """
        epsilon = privacy_budget("epsilon", epsilon)
        for base in _BASES:
            steps = _steps(epsilon, base)
            if steps >= _FINE:
                return cls(epsilon, base, steps)
        if steps < 2:
            raise ParameterError(f"`epsilon` must be at least 2e-6, got {epsilon!r}.")
        return cls(epsilon, base, steps)

    @property
    def spent(self) -> float:
        """Epsilon that the integer weights cost, rounded up; at most epsilon."""
        with localcontext() as context:
            context.prec, context.rounding = 50, ROUND_CEILING
            return min(self.epsilon, float(np.nextafter(float(self.steps * _step(self.base)), np.inf)))

    def levels(self, utilities: Utilities, spread: int) -> Levels:
        """Steps by which each candidate lies below the best.

        Parameters
        ----------
        utilities : int array (m,)
        spread : int, at least 1
            C: replacing one sentence changes utilities by amounts that differ by at most this.
        """
        steps = self.steps - 2
        if int(np.abs(utilities).max(initial=0)) < (1 << 62) // self.steps:
            ranks = utilities * steps // spread
        else:  # beyond 64 bits
            ranks = np.array([int(one) * steps // spread for one in utilities], dtype=object)
        far = np.minimum(ranks.max() - ranks, _FAR * self.base)
        return np.asarray(far, dtype=np.int64)


def _step(base: int) -> Decimal:
    """log((base + 1)/base), rounded up: `ln` is correctly rounded, and one unit is added."""
    exact = (Decimal(base + 1) / Decimal(base)).ln()  # the quotient is finite: base is a power of two
    return exact.next_plus()


def _steps(epsilon: float, base: int) -> int:
    with localcontext() as context:
        context.prec, context.rounding = 50, ROUND_FLOOR
        return int(Decimal(epsilon) / _step(base)) // 2 * 2


class Selection(ABC):
    """Draws one of m candidates, likelier the fewer levels it lies below the best.

    Laws: adding a constant to all utilities changes nothing; if levels move apart by at most `budget.steps`, every
    candidate's probability changes by a factor of at most e^epsilon.
    """

    name: ClassVar[str]
    source: ClassVar[str]

    @abstractmethod
    def draw(self, levels: Levels, budget: IntegerBudget, rng: Entropy) -> int:
        """The index of the selected candidate; exact, by whole numbers."""

    @abstractmethod
    def probabilities(self, levels: Levels, budget: IntegerBudget) -> NDArray[np.float64]:
        """The law (m,) of `draw`, in floating point, for tests and plans."""


# Coins whose probability of heads is a power of a fraction, exactly.


_DOUBT = 2.0**-38  # far above the relative error of a power in floating point, 2^-43
_GUARD = 64  # bits of a power beyond those that are compared


def flip(levels: Levels, base: int, rng: Entropy) -> NDArray[np.bool_]:
    r"""One coin (m,) for each level, independent.

    .. math:: \Pr[\text{heads of } i] = (b/(b+1))^{n_i}

    64 bits decide in fixed point; where they cannot, once in 2^37 flips, whole numbers of as many bits as it takes.
    """
    drawn = rng.words(levels.size)
    chance = np.exp(-levels * np.log1p(1.0 / base))
    low, high = (np.floor(np.ldexp(chance * (1.0 + side * _DOUBT), 64)) for side in (-1.0, 1.0))
    places = drawn.astype(np.float64)  # off by at most 2^-53 of itself, which the doubt holds as well
    heads = (places < low) | (levels == 0)
    for unsure in np.flatnonzero((places >= low) & (places <= high) & (levels > 0)):
        heads[unsure] = _exact_heads(int(drawn[unsure]), int(levels[unsure]), base, rng)
    return np.asarray(heads, dtype=np.bool_)


def _exact_heads(drawn: int, level: int, base: int, rng: Entropy) -> bool:
    """True if a uniform number with these first 64 bits lies below (b/(b+1))^n: more bits until it is certain."""
    bits = 64
    while True:
        low, high = power_bounds(base, level, bits + _GUARD)
        if (drawn + 1) << _GUARD <= low:
            return True
        if drawn << _GUARD >= high:
            return False
        drawn, bits = drawn << 64 | int(rng.words(1)[0]), bits + 64


def power_bounds(base: int, level: int, bits: int) -> tuple[int, int]:
    r"""Whole numbers with :math:`low \le 2^{bits} (b/(b+1))^n \le high`, by squaring with directed rounding.

    >>> power_bounds(1, 3, 6)  # 64/8
    (8, 8)
    """
    low = high = 1 << bits
    for bit in f"{level:b}":
        low, high = low * low >> bits, -(-high * high >> bits)
        if bit == "1":
            low, high = low * base // (base + 1), -(-high * base // (base + 1))
    return low, high


# The exponential mechanism on whole levels.


_SPARE = 64  # proposals beyond one for each candidate


class Exponential(Selection):
    r"""Selects each candidate with probability proportional to its weight.

    .. math:: \Pr[i] \propto (b/(b+1))^{n_i}

    Several releases of one document compose well (bounded range), which is why it is the rule for repeated releases.
    Its running time tells how many proposals were refused: with m candidates a round of m + 64 is enough with
    probability .63 at least, and nearly surely where many are good.

    Source
    ------
    McSherry, Talwar (2007), Mechanism Design via Differential Privacy, Theorem 6; constants by the spread of the
    change: Durfee, Rogers (2019), Practical Differentially Private Top-k Selection, Lemma 3.2.
    """

    name = "exponential"
    source = "exponential mechanism (McSherry, Talwar 2007; by the spread: Durfee, Rogers 2019, Lemma 3.2)"

    def draw(self, levels: Levels, budget: IntegerBudget, rng: Entropy) -> int:
        """Propose uniform candidates and take the first whose coin shows heads; the best one's always does."""
        while True:
            proposed = rng.below(levels.size, levels.size + _SPARE)
            heads = flip(levels[proposed], budget.base, rng)
            if heads.any():
                return int(proposed[heads.argmax()])

    def probabilities(self, levels: Levels, budget: IntegerBudget) -> NDArray[np.float64]:
        """Weights over their sum."""
        weights = np.exp(-levels * np.log1p(1.0 / budget.base))
        return np.asarray(weights / weights.sum())


# Permute-and-flip on whole levels.


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)


class PermuteAndFlip(Selection):
    r"""Visits candidates in random order and takes the first whose coin shows heads.

    .. math:: \Pr[\text{heads of } i] = (b/(b+1))^{n_i}, \qquad
              \Pr[i] = p_i \int_0^1 \prod_{j \ne i} (1 - t p_j)\, dt

    Never worse in expectation than the exponential mechanism at the same epsilon: the rule for one release. All
    coins are flipped whatever they show; about one flip in 2^37 takes longer.

    Source
    ------
    McKenna, Sheldon (2020), Permute-and-Flip: A New Mechanism for Differentially Private Selection, Theorem 2.
    """

    name = "permute-and-flip"
    source = "permute-and-flip (McKenna, Sheldon 2020, Theorem 2; by the spread, as it ignores shifts)"

    def draw(self, levels: Levels, budget: IntegerBudget, rng: Entropy) -> int:
        """All coins at once, then the first that shows heads in a random order; the best one always does."""
        heads = flip(levels, budget.base, rng)
        order = rng.permutation(levels.size)
        return int(order[heads[order].argmax()])

    def probabilities(self, levels: Levels, budget: IntegerBudget) -> NDArray[np.float64]:
        """The integral by Gauss-Legendre quadrature of 400 nodes in 1 - exp(-t sum p), in which it is nearly flat."""
        heads = np.exp(-levels * np.log1p(1.0 / budget.base))
        found, at, counts = np.unique(heads, return_inverse=True, return_counts=True)
        t, weights = arrival_times(float(heads.sum()))
        misses = np.log1p(-np.outer(t, found))  # nodes lie inside (0, 1)
        each = found * (np.exp(misses @ counts)[:, None] / np.exp(misses) * weights[:, None]).sum(axis=0)
        return np.asarray(each[at])


def arrival_times(rate: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Nodes t in (0, 1) and weights of an integral whose integrand falls like :math:`e^{-t \cdot rate}`."""
    reach = -np.expm1(-rate)
    s = (_NODES + 1) / 2
    return -np.log1p(-s * reach) / rate, _WEIGHTS / 2 * reach / (rate * (1.0 - s * reach))
