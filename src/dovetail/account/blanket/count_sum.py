r"""The expected positive part of a sum of independent copies, by how many copies take each value.

The counts of all values but the two heaviest are listed. Given those, r copies are left, and the lighter of the two
has B of them:

.. math:: E[S_+] = \sum_{c} \Pr[c]\, E\left[(s_c + (x - y) B)_+\right], \qquad
          B \sim \mathrm{Bin}\left(r, \tfrac{m_x}{m_x + m_y}\right), \qquad s_c = \sum_i c_i v_i + r y

from tables of Pr[B >= k] and E[B; B >= k]. For few copies, or few off one heavy value, those are few terms.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.core.bracket import Bracket
from dovetail.core.numeric.special import Reals, bernstein_reach, binomial_pmf

TAIL = 80.0  # e^-80 of the law of each count is left out
FEW_TERMS, MOST_TERMS = 1 << 11, 1 << 14  # counts of the light values: sooner than any other way, and soon
ERROR = 2e-12  # relative, of a term: a few binomial probabilities to 4e-13 each
ULP = 2.0**-48  # of where the sum changes sign: a few roundings
SHARP = 1e-5  # relative gap above which others do better


class _Counts(NamedTuple):
    """Counts of the light values, and the law of the heavier two given those."""

    order: NDArray[np.int64]  # atoms by mass, the heaviest last
    light: Reals  # (terms, atoms - 2): how many copies take each light value
    chances: Reals  # (terms,)
    left: Reals  # (terms,): how many copies are left, r
    rows: NDArray[np.int64]  # (terms,): their row in the tables
    first: int  # B in the first column of the tables
    upper: Reals  # (2, rows, columns + 1): Pr[B >= b] and E[B; B >= b]
    lower: Reals  # the same for B < b
    cut: float  # what is left out of the law of all counts


def count_sum(values: Reals, masses: Reals, n: int, *, true: Reals, most_terms: int = MOST_TERMS) -> Bracket | None:
    """Ends of E[(G_1 + .. + G_n)_+], or None where they would be more terms or far apart.

    Parameters
    ----------
    values, masses : float arrays (atoms,)
        Masses are above 0 and sum to 1.
    n : int, at least 2
    true : float array (atoms,)
        Values that the lower end uses instead, at most `values`.

    Examples
    --------
    >>> values = np.array([1.0, -1.0, -2.0])
    >>> count_sum(values, np.array([0.25, 0.25, 0.5]), 2, true=values).contains(0.125)  # above 0 only as 1 + 1
    True
    """
    most_atoms = most_terms.bit_length() + 1  # each light value has two counts or more
    if not 2 <= masses.size <= most_atoms or _terms(masses, n) > most_terms:
        return None
    counts = _counts(tuple(masses.tolist()), n)
    low, high = _positive_part(counts, true, -ERROR), _positive_part(counts, values, ERROR)
    high += n * max(0.0, float(values.max())) * counts.cut
    return Bracket(max(0.0, low), high) if high - low <= SHARP * high else None


def _positive_part(counts: _Counts, values: Reals, error: float) -> float:
    """The sum over counts of the light values, moved by the rounding of its terms."""
    *light, x, y = values[counts.order].tolist()
    start, slope = counts.light @ np.array(light) + counts.left * y, x - y
    table, step = (counts.upper, -1) if slope > 0.0 else (counts.lower, 1)
    last = table.shape[2] - 1
    if slope == 0.0:
        places = np.where(start > 0.0, last, 0)
    else:
        turn = -start / slope
        places = (np.floor(turn) + 1.0 if slope > 0.0 else np.ceil(turn)) - counts.first
    places = np.clip(places, 0, last).astype(np.int64)
    chance, mean = table[:, counts.rows, places]
    around, mean_around = table[:, counts.rows, np.clip(places + step, 0, last)]  # should the threshold be one off
    doubt = error * (np.abs(start) * chance + abs(slope) * mean)
    doubt += math.copysign(ULP, error) * (np.abs(start) * around + abs(slope) * mean_around)
    return float(counts.chances @ (start * chance + slope * mean + doubt))


def _terms(masses: Reals, n: int) -> int:
    """At most so many counts of the light values are listed, and four times as many entries of a table."""
    *light, x, y = np.sort(masses).tolist()
    ranges = [_window(np.array([float(n)]), mass) for mass in light]
    widths = [high - low + 1 for low, high in ranges]
    low, high = _window(np.array([max(0.0, n - sum(high for _, high in ranges)), float(n)]), x / (x + y))
    return max(math.prod(widths), sum(widths) * (high - low + 1) // 4)


@lru_cache(maxsize=8)
def _counts(masses: tuple[float, ...], n: int) -> _Counts:
    """What does not depend on the values."""
    order = np.argsort(masses, kind="stable")
    *light, x, y = (masses[atom] for atom in order)
    ranges = [_window(np.array([float(n)]), mass) for mass in light]
    axes = [np.arange(low, high + 1, dtype=np.float64) for low, high in ranges]
    listed = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1) if axes else np.zeros((1, 0))
    listed = listed[listed.sum(axis=1) <= n]
    chances, left, rest = np.ones(len(listed)), np.full(len(listed), float(n)), 1.0
    for column, mass in zip(listed.T, light, strict=True):
        chances *= binomial_pmf(column, left, mass / rest, (rest - mass) / rest)
        left, rest = left - column, rest - mass
    rests, rows = np.unique(left, return_inverse=True)
    share, complement = x / (x + y), y / (x + y)
    first, last = _window(rests, share)
    b = np.arange(first, last + 1, dtype=np.float64)
    law = binomial_pmf(b, rests[:, None], share, complement)
    both = np.pad(np.array([law, law * b]), ((0, 0), (0, 0), (1, 1)))
    upper, lower = np.cumsum(both[:, :, :0:-1], axis=2)[:, :, ::-1], np.cumsum(both[:, :, :-1], axis=2)
    cut = 2.0 * (len(light) + 1) * math.exp(-TAIL)
    return _Counts(order, listed, chances, left, rows.ravel(), first, upper, lower, cut)


def _window(copies: Reals, share: float) -> tuple[int, int]:
    """Where Bernstein's bound leaves anything of a binomial law, for any of these numbers of copies."""
    reach = np.array([bernstein_reach(m * share * (1.0 - share), TAIL) for m in copies.tolist()])
    low, high = np.floor(copies * share - reach).min(), np.ceil(copies * share + reach).max()
    return max(0, int(low)), min(int(copies.max()), int(high))
