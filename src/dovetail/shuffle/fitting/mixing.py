"""Where the reports at the places of a label come from, under a random permutation of a line of people."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, Permutation, simulation
from dovetail.shuffle.sampling.permutations import Labels, Mixing, normalize_rows

Marginals = NDArray[np.float64]  # (n, n)

STANDARD_ERROR = 1e-3
_FEWEST = 16  # draws before the spread between them is looked at


def mallows_marginals(n: int, theta: float) -> Marginals:
    r"""P[i, j] = Pr[kappa(i) = j] for Mallows, exactly, by taking off the first digit; O(n^3).

    .. math:: P_n[i, j] = \Pr[c < j]\, P_{n-1}[i-1, j-1] + \Pr[c > j]\, P_{n-1}[i-1, j], \qquad P_n[0, j] = \Pr[c = j]
    """
    if math.isinf(theta):
        return np.eye(n)
    result = np.ones((1, 1))
    for m in range(2, n + 1):
        weights = np.exp(-theta * np.arange(m))
        digit = weights / weights.sum()
        before = np.cumsum(digit) - digit
        after = np.cumsum(digit[::-1])[::-1] - digit
        rest, result = result, np.zeros((m, m))
        result[0] = digit
        result[1:, 1:] += before[1:] * rest
        result[1:, :-1] += after[:-1] * rest
    return result


def exact_mixing(line: Labels, law: Marginals) -> Mixing:
    """Expected shares (g, g) for the labels along the line, from the marginals of the law."""
    member = np.eye(int(line.max()) + 1)[line]
    return normalize_rows(member.T @ law @ member)


def average_mixing(line: Labels, draw: Callable[[Entropy], Permutation]) -> Mixing:
    r"""The same as a mean over draws with a fixed seed.

    Drawing goes on until no entry of the row of a label with N people has a standard error above

    .. math:: \max\bigl(10^{-3}, \tfrac{1}{10} \cdot \tfrac{1}{2 \sqrt{N}}\bigr)

    a tenth of the sampling error of a share among N people; about a hundred draws are always enough.
    """
    size = int(line.max()) + 1
    people = np.maximum(np.bincount(line), 1)[:, None]
    goal = np.maximum(STANDARD_ERROR, 0.05 / np.sqrt(people))
    rng = simulation(0)
    total, squares, draws = np.zeros((size, size)), np.zeros((size, size)), 0
    while draws < _FEWEST or (_errors(total, squares, draws) > goal).any():
        pairs = line * size + line[draw(rng)]
        seen = normalize_rows(np.bincount(pairs, minlength=size * size).reshape(size, size).astype(np.float64))
        total, squares, draws = total + seen, squares + seen**2, draws + 1
    return total / draws


def _errors(total: Mixing, squares: Mixing, draws: int) -> Mixing:
    """Standard errors of the means so far."""
    return np.sqrt(np.maximum(squares - total**2 / draws, 0.0) / (draws - 1) / draws)
