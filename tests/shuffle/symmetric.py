"""The symmetric group on few people, listed: the ground truth for everything about orders."""

from functools import cache
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.groups import Groups

Table = NDArray[np.int64]


@cache
def everything(n: int) -> Table:
    """All permutations of 0..n-1 (n!, n), in lexicographic order."""
    return np.array(list(permutations(range(n))), dtype=np.int64).reshape(-1, n)


def index(perms: Table) -> NDArray[np.int64]:
    """Lexicographic numbers of permutations (.., n)."""
    n = perms.shape[-1]
    result = np.zeros(perms.shape[:-1], dtype=np.int64)
    for i in range(n):
        smaller = (perms[..., i + 1 :] < perms[..., i : i + 1]).sum(axis=-1)
        result = result * (n - i) + smaller
    return result


def groups_of(n: int, least: int = 2) -> list[tuple[int, ...]]:
    """Every set of at least `least` people."""
    return [group for size in range(least, n + 1) for group in combinations(range(n), size)]


def reorderings(group: tuple[int, ...], n: int) -> Table:
    """Sym(group) as permutations of 0..n-1."""
    result = np.tile(np.arange(n), (len(list(permutations(group))), 1))
    result[:, list(group)] = list(permutations(group))
    return result


@cache
def moved(group: tuple[int, ...], n: int) -> Table:
    """Index of tau pi for each tau in Sym(group) and each pi: (taus, n!)."""
    return index(reorderings(group, n)[:, everything(n)])


def largest_change(values: NDArray[np.float64], group: tuple[int, ...], n: int) -> float:
    """max over pi and tau in Sym(group) of values(pi) - values(tau pi); the true alpha for log weights."""
    other = values[moved(group, n)]
    with np.errstate(invalid="ignore"):
        change = values - other
    return float(np.nan_to_num(change, nan=0.0, posinf=np.inf).max())  # -inf on both sides: no difference


def log_law(shuffler: Shuffler) -> NDArray[np.float64]:
    """log_weight of every permutation (n!,)."""
    return np.array([shuffler.log_weight(pi) for pi in everything(shuffler.n)])


def everybody(n: int) -> Groups:
    """One group of all n people."""
    return Groups.from_lists([range(n)], n)


def naive_inversions(perm: NDArray[np.int64]) -> int:
    """Inversions by their definition."""
    return sum(int(perm[i] > perm[j]) for i, j in combinations(range(len(perm)), 2))


def naive_decode(digits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Decoding by its definition: delete from the list of unused values."""
    unused = list(range(len(digits)))
    return np.array([unused.pop(c) for c in digits.tolist()], dtype=np.int64)
