"""Any channel with a matrix: the blanket is what every row has in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from dovetail.account.privacy_blanket import BlanketLaw, Exposure, ShuffledLaw
from dovetail.core.certified import Bracket
from dovetail.core.channel import Matrix
from dovetail.core.checks import share
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.special import Reals

MOST_PAIRS = 20_000
MOST_LAWS = 200
MOST_WORK = 10**7  # pairs times the cells of the channel


@dataclass(frozen=True, eq=False)
class FiniteChannelLaw:
    r"""Every pair of rows of one channel, each with the blanket of all rows.

    .. math:: \mu(y) = \min_x W[x, y], \qquad (Z_0, Z_1)(y) = \left( \frac{W[x, y]}{\mu(y)},
              \frac{W[x', y]}{\mu(y)} \right) \text{ with mass } \mu(y)

    It is the largest blanket, so no other choice (such as max(W[x], W[x'])/p where that is one) gives less.

    Parameters
    ----------
    pairs : tuple of ShuffledLaw
        Distinct laws of pairs of rows, the most exposed first.
    """

    pairs: tuple[ShuffledLaw, ...]

    @classmethod
    def of(cls, rows: Matrix, *, n: int) -> FiniteChannelLaw:
        """From a matrix; refused above 20 000 pairs of rows or 200 different laws."""
        return cls.among(_distinct(rows), n=n)

    @classmethod
    def among(cls, laws: Iterable[BlanketLaw], *, n: int) -> FiniteChannelLaw:
        """From the laws of pairs."""
        return cls(tuple(ShuffledLaw(law, n) for law in sorted(laws, key=lambda law: -law.spread)))

    def delta(self, epsilon: float) -> Bracket:
        """Ends of the largest delta over pairs and directions."""
        worst = self.pairs[0].delta(epsilon)
        for pair in self.pairs[1:]:
            if epsilon < 0.0 or pair.tilted_bound(epsilon) > worst.lower:
                ends = pair.delta(epsilon)
                worst = Bracket(max(worst.lower, ends.lower), max(worst.upper, ends.upper))
        return worst

    def epsilon(self, delta: float) -> Bracket:
        """Ends of the largest epsilon(delta) over pairs; a pair is solved only when it exceeds those before."""
        share("delta", delta)
        worst = Bracket(0.0, 0.0)
        for pair in self.pairs:
            if worst.upper > 0.0 and pair.tilted_bound(worst.upper) <= delta:
                continue
            if worst.upper == 0.0 or pair.delta(worst.upper).upper > delta:
                solved = pair.epsilon(delta)
                worst = Bracket(max(worst.lower, solved.lower), max(worst.upper, solved.upper))
        return worst


def base_law(base: Reals, first: Reals, second: Reals) -> BlanketLaw:
    """The law of two rows relative to a base that has mass wherever they have; equal atoms are merged.

    Only atoms that are equal in every bit: merging others moves the law down in convex order.
    """
    used = (first > 0.0) | (second > 0.0)
    z0, z1, mass = first[used] / base[used], second[used] / base[used], base[used]
    order = np.lexsort((mass, z1, z0))  # so that the sum of masses does not depend on the order of the columns
    places, atom = np.unique(np.stack([z0, z1], axis=1)[order], axis=0, return_inverse=True)
    return BlanketLaw(places[:, 0], places[:, 1], np.bincount(atom.ravel(), mass[order]))


def channel_exposures(rows: Matrix, pairs: Iterable[tuple[int, int]] | None = None) -> list[Exposure]:
    """Every ordered pair of rows, or those given, with everybody else on any row.

    Raises
    ------
    UnsupportedError
        Where that is too much work.
    """
    base = blanket(rows)
    used = rows[:, base > 0.0]
    inputs, outputs = used.shape
    chosen = list(permutations(range(inputs), 2) if pairs is None else pairs)
    if len(chosen) * used.size > MOST_WORK:
        raise UnsupportedError(
            f"A channel of {inputs:,} inputs and {outputs:,} outputs has too many pairs and values of the others to "
            "hide among everybody; the bounds by the blanket hold."
        )
    shape = np.ones((inputs, 1))
    return [Exposure(shape * base[base > 0.0], shape * used[a], shape * used[c], used) for a, c in chosen]


def blanket(rows: Matrix) -> Reals:
    """Columnwise minimum over all inputs (outputs,); a zero in a column that another row uses raises DataError."""
    least = rows.min(axis=0)
    torn = np.flatnonzero((least == 0.0) & (rows.max(axis=0) > 0.0))
    if torn.size:
        column = int(torn[0])
        row, other = int(rows[:, column].argmin()), int(rows[:, column].argmax())
        raise DataError(
            f"This channel is not locally private: entry ({row}, {column}) is 0 where row {other} has "
            f"{rows[other, column]:g}, so that report excludes input {row}. Give every row some mass there."
        )
    return np.asarray(least)


def worst_dataset(rows: Matrix) -> BlanketLaw:
    """The exact law of the pair of rows and the common value of the others with the largest spread."""
    blanket(rows)
    used = rows[:, rows.max(axis=0) > 0.0]
    best, choice = -math.inf, (0, 0, 0)
    for base in range(len(used)):
        scaled = used / np.sqrt(used[base])
        squares = np.sum(scaled**2, axis=1)
        spread = squares[:, None] + squares - 2.0 * scaled @ scaled.T
        top = np.unravel_index(int(spread.argmax()), spread.shape)
        if spread[top] > best:
            best, choice = float(spread[top]), (base, int(top[0]), int(top[1]))
    return base_law(*(used[row] for row in choice))


def _distinct(rows: Matrix) -> Iterator[BlanketLaw]:
    """Laws of all pairs, each once; a law and its mirror image count as one."""
    inputs = len(rows)
    if inputs * (inputs - 1) // 2 > MOST_PAIRS:
        raise UnsupportedError(
            f"A channel of {inputs:,} inputs has more than {MOST_PAIRS:,} pairs to compare; "
            "use the bound for every randomizer, stronger clones."
        )
    base = blanket(rows)
    seen = set()
    for one in range(inputs):
        for other in range(one):
            law = base_law(base, rows[one], rows[other])
            key = min(law_key(law), law_key(law.mirrored))
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > MOST_LAWS:
                raise UnsupportedError(
                    f"This channel has more than {MOST_LAWS} different pairs of inputs, each a convolution; "
                    "use the bound for every randomizer, stronger clones."
                )
            yield law


def law_key(law: BlanketLaw) -> bytes:
    """Equal for laws that are equal in every bit, whatever the order of their atoms."""
    atoms = np.stack([law.z0, law.z1, law.mass])
    return atoms[:, np.lexsort(atoms)].tobytes()
