"""Which strings many people hold, without a list of candidates: a tree of prefixes over disjoint groups of people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import sqrt
from typing import Literal, final

import numpy as np
from scipy.special import ndtri

from dovetail.account.amplify import amplify, central_epsilon
from dovetail.account.calibrate import max_epsilon
from dovetail.account.closed_form.dummies import dummies_guarantee
from dovetail.core.checks import privacy_budget, refuse, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.randomize.krr import KRR
from dovetail.shuffle.dummies.dummies import Dummies

END = 256  # the symbol after the last byte of a string
MOST_EPSILON0 = 30.0
FALSE_ALARMS = 0.05  # a level, on average, where the noise is not bounded


@dataclass(frozen=True)
class FrequentString:
    """A string that was found.

    Parameters
    ----------
    text : str
        In full, or its beginning where `complete` is False: the string is longer than the tree is deep.
    complete : bool
    share, standard_error : float
        Among the people of the last group; biased upwards, as only large estimates are kept.
    """

    text: str
    complete: bool
    share: float
    standard_error: float


@final
@dataclass(frozen=True)
class FrequentStrings:
    """What `find_frequent_strings` answers: the strings, most frequent first, and what all of it promises."""

    found: tuple[FrequentString, ...]
    guarantee: CentralDP
    groups: tuple[int, ...]
    thresholds: tuple[float, ...]


@dataclass(frozen=True)
class _Counter:
    """One level's counts of `symbols` among the people of one group, and how large one has to be."""

    symbols: int
    n: int
    noise: Dummies | KRR

    def counts(self, held: np.ndarray, rng: Entropy) -> np.ndarray:
        if isinstance(self.noise, Dummies):
            return self.noise.counts(self.noise.add(held, rng))
        return np.asarray(self.n * self.noise.invert(self.noise.tally(self.noise.randomize(held, rng)), self.n))

    @property
    def error(self) -> float:
        """Standard deviation of the count of a symbol that nobody holds."""
        if isinstance(self.noise, Dummies):
            return sqrt(self.noise.variance)
        return sqrt(self.n * float(self.noise.variance(np.eye(1, self.symbols, 1)[0])[0]))

    @property
    def threshold(self) -> float:
        """Dummies: what nobody's symbol can reach. Local noise: rarely reached."""
        if isinstance(self.noise, Dummies):
            return self.noise.reach + 1.0
        return float(-ndtri(FALSE_ALARMS / self.symbols)) * self.error


def find_frequent_strings(
    people: Sequence[tuple[str, str]],
    *,
    epsilon: float,
    delta: float = 1e-6,
    trust: Literal["shuffler", "local"] = "shuffler",
    levels: int = 8,
    keep: int = 64,
    rng: Entropy | None = None,
) -> FrequentStrings:
    r"""Strings that many people hold, byte by byte: each group of people is asked about one more byte.

    A public hash of a person's name puts her into one of `levels` groups. Group l is asked for the first l bytes of
    her string (UTF-8, and a mark after the last one); the candidates are the children of the at most `keep` prefixes
    that group l - 1 has left over, all others count as "other". With dummies of the shuffler a prefix is kept from
    tau = s + 1 people on, which the noise alone never reaches: **no string is found that nobody holds.**

    The promise is that of one level, not the sum of all: a person is in one group, whatever she holds; earlier levels
    do not depend on her, later ones see her through the prefixes that were kept.

    Parameters
    ----------
    people : several (name, string)
        Names must not depend on strings, and each person has one.
    epsilon, delta : float
        Of the whole transcript, about one person's string.
    trust : "shuffler" or "local"
        Dummies of the shuffler, or k-ary randomized response by everybody. Local noise finds false strings, about one
        prefix in twenty levels, and needs far more people.
    levels : int, 1 to 64
        Bytes that a string is asked for; longer ones are found as their beginning.
    keep : int, 1 to 1024
        Prefixes that go on to the next level.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    DataError
        For a name that occurs twice, and for what are no pairs of texts.
    UnsupportedError
        For a group of fewer than two people.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> people = [(f"device {i}", ("home", "work", "gym")[i % 3] if i % 10 else f"rare {i}") for i in range(6000)]
    >>> found = find_frequent_strings(people, epsilon=1.0, levels=6, rng=simulation(1)).found
    >>> sorted((one.text, one.complete) for one in found)
    [('gym', True), ('home', True), ('work', True)]

    Source
    ------
    docs/theory/accuracy.md, section D.
    """
    rng, wanted = entropy_or_system(rng), privacy_budget("epsilon", epsilon)
    depth, most = whole("levels", levels, least=1, most=64), whole("keep", keep, least=1, most=1024)
    if trust not in ("shuffler", "local"):
        raise refuse("trust", '"shuffler" or "local"', trust)
    groups = _groups(people, depth)
    open_, done = [b""], list[bytes]()
    thresholds, promises = list[float](), list[CentralDP]()
    kept: dict[tuple[bytes, bool], float] = {}
    last, error = 1, 0.0
    for level, group in enumerate(groups):
        if not open_ and not done:
            break  # nothing is left to ask for
        places = {prefix: place for place, prefix in enumerate(open_)}
        ends = {text: 257 * len(open_) + place for place, text in enumerate(done)}
        other = 257 * len(open_) + len(done)
        held = np.array([_symbol(text, level, places, ends, other) for text in group], dtype=np.int64)
        counter, promise = _counter(other + 1, len(group), wanted, delta, trust)
        counts, tau = counter.counts(held, rng), counter.threshold
        best = np.argsort(-counts[:other], kind="stable")[:most]
        kept = {}
        for symbol in best[counts[best] >= tau].tolist():
            if symbol >= 257 * len(open_):
                kept[done[symbol - 257 * len(open_)], True] = float(counts[symbol])
            else:
                prefix, byte = open_[symbol // 257], symbol % 257
                kept[(prefix, True) if byte == END else (prefix + bytes([byte]), False)] = float(counts[symbol])
        open_ = [prefix for prefix, complete in kept if not complete]
        done = [prefix for prefix, complete in kept if complete]
        thresholds.append(tau)
        promises.append(promise)
        last, error = len(group), counter.error / len(group)
    found = tuple(
        FrequentString(prefix.decode("utf-8", errors="replace"), complete, count / last, error)
        for (prefix, complete), count in kept.items()
    )
    worst = max(promises, key=lambda one: one.epsilon)
    worst = replace(worst, colluding=max(one.colluding for one in promises))  # levels spend different local epsilons
    return FrequentStrings(found, worst, tuple(map(len, groups)), tuple(thresholds))


def group_sizes(names: Sequence[str], levels: int) -> tuple[int, ...]:
    """People in the group of each level: public, as it depends on names alone."""
    counts = np.bincount([level_of(name, levels) for name in names], minlength=levels)
    return tuple(int(count) for count in counts)


def promise_of_dummies(sizes: Sequence[int], *, epsilon: float, delta: float) -> CentralDP:
    """What a search with dummies promises to each person: the promise of her one group, at worst."""
    promises = [dummies_guarantee(Dummies(2, epsilon, delta), n=size) for size in sizes]
    return max(promises, key=lambda one: one.epsilon)


def level_of(name: str, levels: int) -> int:
    """The group of a person, from her name alone: public, and the same in every round."""
    digest = sha256(b"dovetail level\0" + name.encode()).digest()
    return int.from_bytes(digest[:16], "big") % levels


def _groups(people: Sequence[tuple[str, str]], levels: int) -> list[list[bytes]]:
    """Strings of each group, as bytes."""
    groups: list[list[bytes]] = [[] for _ in range(levels)]
    names = set[str]()
    for pair in people:
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise DataError("`people` must be pairs of two texts, a name and a string.")
        names.add(pair[0])
        groups[level_of(pair[0], levels)].append(pair[1].encode())
    if len(names) < len(people):
        raise DataError(f"`people` must name everybody once; {len(people) - len(names):,} names are repeated.")
    small = min(len(group) for group in groups)
    if small < 2:
        raise UnsupportedError(f"a group has {small} people, who are hidden by nobody: ask for fewer levels.")
    return groups


def _symbol(text: bytes, level: int, places: dict[bytes, int], ends: dict[bytes, int], other: int) -> int:
    """What a person answers at a level: the child of a candidate, a string that ended before, or "other"."""
    if text in ends and len(text) < level:
        return ends[text]
    place = places.get(text[:level])
    if place is None or len(text) < level:
        return other
    return 257 * place + (END if len(text) == level else text[level])


def _counter(symbols: int, n: int, epsilon: float, delta: float, trust: str) -> tuple[_Counter, CentralDP]:
    """The noise of one level, and what it promises."""
    if trust == "shuffler":
        dummies = Dummies(symbols, epsilon, delta)
        return _Counter(symbols, n, dummies), dummies_guarantee(dummies, n=n)
    low, high = max_epsilon(epsilon=epsilon, n=n, delta=delta), MOST_EPSILON0
    while high - low > 1e-3 * high:  # the largest epsilon0 that the group hides
        middle = 0.5 * (low + high)
        enough = central_epsilon(KRR(symbols, middle), n=n, delta=delta) <= epsilon
        low, high = (middle, high) if enough else (low, middle)
    krr = KRR(symbols, low)
    return _Counter(symbols, n, krr), amplify(krr, n=n, delta=delta)
