"""A run on texts without a list of categories: the strings that many people hold, and the privacy report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf, sqrt
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from dovetail.account.accountant import Accountant
from dovetail.account.calibrate import max_epsilon
from dovetail.account.dummies import most_values
from dovetail.core.checks import privacy_budget, refuse, share, whole, word
from dovetail.core.display import counted
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import ConfigError, DataError, DovetailError, ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.estimate import Tally as Counted
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.keyed_hash import hashes_of
from dovetail.core.missing import Missing
from dovetail.core.noise import NOISES, Noise, People
from dovetail.core.progress import Progress
from dovetail.job.build import list_dummies
from dovetail.job.collection import noise_of
from dovetail.job.config import RunConfig, StringsSection
from dovetail.job.evaluate import LEVEL, gaps_and_outliers, order_evaluation, shares_of
from dovetail.job.rehearse import ReleasedTable, report_of
from dovetail.ledger.releases import ReleaseLedger, ReleaseRequest, everybody
from dovetail.noise.local import Local
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.report.document import Estimates, Evaluation, PrivacyReport
from dovetail.report.number_format import percent, upward
from dovetail.shuffle.uniform import Uniform
from dovetail.table.reader import Survey, canonical, read_survey
from dovetail.table.spelling import names_of

# Which strings many people hold, without a list of candidates: a tree of prefixes over disjoint groups of people.


END = 256  # the symbol after the last byte of a string
MOST_EPSILON0 = 30.0
_PUBLIC = b"dovetail level"  # key of a hash that anybody can compute
TRUSTED = ("shuffler", "users", "local")
LAWS = ("geometric", "gaussian", "sparse")
FALSE_ALARMS = 0.05  # a level, on average at most, where the noise is not bounded


@dataclass(frozen=True)
class FrequentString:
    """A string that was found.

    Parameters
    ----------
    text : str
        In full, or its beginning where `complete` is False: the string is longer than the tree is deep.
    complete : bool
    share, standard_error : float
        Among the people who were asked for all of it; biased upwards, as only large estimates are kept. The error is
        that of the noise, at the count that was found.
    asked : int
        These people: of all groups that are asked for as many bytes as the string has, and its end.
    """

    text: str
    complete: bool
    share: float
    standard_error: float
    asked: int


@final
@dataclass(frozen=True)
class FrequentStrings:
    """The strings that were found, most frequent first, and the guarantee of the whole search."""

    found: tuple[FrequentString, ...]
    guarantee: CentralDP
    groups: tuple[int, ...]
    thresholds: tuple[float, ...]


Tally = NDArray[np.float64]  # (symbols,), whole numbers


def symbols_of(open_: int, ended: int = 0) -> int:
    """Answers of a level with so many beginnings, and strings that ended before."""
    return 257 * open_ + ended + 1


def threshold_of(noise: Noise, symbols: int, n: int) -> float:
    """The least count that goes on: with an end of the noise what nobody's symbol can reach, else rarely reaches.

    Of all symbols that none of n people holds, `FALSE_ALARMS` reach it on average, at most.
    """
    counts, masses = noise.null_law(People(n))
    if noise.bounded:
        return float(counts[-1]) + 1.0
    beyond = np.append(np.cumsum(masses[::-1])[::-1], 0.0)  # the chance of each count, or more
    step = float(counts[1] - counts[0])
    return float(counts[0]) + step * int(np.argmax(beyond * symbols <= FALSE_ALARMS))


@final
@dataclass(frozen=True)
class Level:
    """Question to one group of people: the next byte of the beginnings that are left, or which string ended before.

    A fold: tallies of parts of the group add, in any order; what the shuffler adds comes to the sum, once.

    Parameters
    ----------
    number : int
        Bytes of each beginning.
    n : int
        People of the group.
    open, ended : tuples of bytes
        Beginnings, and strings that ended before.
    noise : Noise
        Of an answer to the question: a child of each beginning, a string that ended, or any other one.
    """

    number: int
    n: int
    open: tuple[bytes, ...]
    ended: tuple[bytes, ...]
    noise: Noise

    @property
    def symbols(self) -> int:
        """Answers that may be given."""
        return symbols_of(len(self.open), len(self.ended))

    def tally(self, texts: Sequence[str], rng: Entropy) -> Tally:
        """How often each symbol comes from these people, as the shuffler hands it on."""
        if not texts:
            return np.zeros(self.symbols)
        places = {prefix: place for place, prefix in enumerate(self.open)}
        ends = {text: 257 * len(self.open) + place for place, text in enumerate(self.ended)}
        other = 257 * len(self.open) + len(self.ended)
        held = [_symbol(text.encode(), self.number, places, ends, other) for text in texts]
        reports = self.noise.randomize(np.array(held, dtype=np.int64), People(len(texts)), rng)
        own = [kept for _, kept in self.noise.messages(reports, rng)]
        return self._count(np.concatenate([*own, self.noise.beside(len(texts), rng)[1]]))

    def complete(self, tally: Tally, rng: Entropy) -> Tally:
        """The tally of the whole batch, with what the shuffler adds."""
        return tally + self._count(self.noise.added(rng))

    def _count(self, symbols: NDArray[Any]) -> Tally:
        return np.bincount(symbols, minlength=self.symbols).astype(np.float64)

    def counts(self, tally: Tally) -> tuple[Tally, NDArray[np.float64]]:
        """Unbiased numbers of people behind each symbol of the whole batch, and their standard deviations."""
        found = self.noise.shares(Counted(tally, round(tally.sum())), People(self.n))
        return self.n * found.value, self.n * found.standard_error

    def key(self, symbol: int) -> tuple[bytes, bool]:
        """The beginning or, with True, the whole string that a symbol stands for."""
        if symbol >= 257 * len(self.open):
            return self.ended[symbol - 257 * len(self.open)], True
        prefix, byte = self.open[symbol // 257], symbol % 257
        return (prefix, True) if byte == END else (prefix + bytes([byte]), False)

    @property
    def threshold(self) -> float:
        """As `threshold_of`."""
        return threshold_of(self.noise, self.symbols, self.n)


@dataclass(frozen=True)
class _Count:
    """Counts of the groups that were asked for all of a string, of how many people, with which variance."""

    counted: float = 0.0
    asked: int = 0
    variance: float = 0.0

    def plus(self, counted: float, asked: int, error: float) -> _Count:
        return _Count(self.counted + counted, self.asked + asked, self.variance + error**2)

    @property
    def share(self) -> float:
        return self.counted / self.asked

    @property
    def error(self) -> float:
        """Of the share, by the noise."""
        return sqrt(self.variance) / self.asked


def find_frequent_strings(
    people: Sequence[tuple[str, str]],
    *,
    epsilon: float,
    delta: float = 1e-6,
    trust: Literal["shuffler", "local", "users"] = "shuffler",
    dummies: Literal["geometric", "gaussian", "sparse"] = "geometric",
    levels: int = 8,
    keep: int = 64,
    rng: Entropy | None = None,
) -> FrequentStrings:
    r"""Strings that many people hold, byte by byte: each group of people is asked about one more byte.

    A public hash of a person's name puts her into one of `levels` groups. Group l is asked for the first l bytes of
    her string (UTF-8, and a mark after the last one); the candidates are the children of the at most `keep` prefixes
    that group l - 1 has left over, all others count as "other". With dummies of the shuffler that have an end a
    prefix is kept from tau = s + 1 people on, which the noise alone never reaches: **no string is found that nobody
    holds.** Behind other noise tau is reached, by its law, for at most .05 of all symbols that nobody holds.

    The promise is that of one level, not the sum of all: a person is in one group, whatever she holds; earlier levels
    do not depend on her, later ones see her through the prefixes that were kept.

    Parameters
    ----------
    people : several (name, string)
        Names must not depend on strings, and each person has one.
    epsilon, delta : float
        Of the whole transcript, about one person's string.
    trust : "shuffler", "users" or "local"
        Dummies of the shuffler, dummies of people, or k-ary randomized response by everybody. The latter two find a
        false string in one search of twenty at most, and need far more people.
    dummies : "geometric", "gaussian" or "sparse"
        Of the shuffler. A search is one release, of which geometric ones hide less: Gaussian ones have a larger s.
        Sparse ones have no end and no delta: false strings are found as behind those of people.
    levels : int, 1 to 64
        Bytes that a string is asked for; longer ones are found as their beginning.
    keep : int, 1 to 1024
        Prefixes that go on to the next level; with dummies of people no more than those of the next group hide.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    DataError
        For a name that occurs twice, and for what are no pairs of texts.
    UnsupportedError
        For a group of fewer than two people, or of too few to hide a byte among a dummy each.

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
    rng = entropy_or_system(rng)
    asked = section_of(epsilon=epsilon, delta=delta, trust=trust, dummies=dummies, levels=levels, keep=keep)
    groups = _groups(people, asked.levels)

    def ask(level: Level) -> Tally:
        return level.complete(level.tally(groups[level.number], rng), rng)

    return search_levels([len(group) for group in groups], ask, asked)


def section_of(*, epsilon: float, delta: float, trust: str, dummies: str, levels: int, keep: int) -> StringsSection:
    """The section [strings] of these terms; ParameterError for any that are outside their ranges."""
    if not share("delta", delta) > 0.0:
        raise refuse("delta", "above 0", delta)
    if word("trust", trust, TRUSTED, '"shuffler", "users" or "local"') != "shuffler" and dummies != "geometric":
        raise ParameterError('`dummies` go with `trust` = "shuffler", which adds them.')
    return StringsSection(
        epsilon=privacy_budget("epsilon", epsilon),
        delta=delta,
        trust=trust,  # type: ignore[arg-type]
        dummies=word("dummies", dummies, LAWS, '"geometric", "gaussian" or "sparse"'),  # type: ignore[arg-type]
        levels=whole("levels", levels, least=1, most=64),
        keep=whole("keep", keep, least=1, most=1024),
    )


def search_levels(sizes: Sequence[int], ask: Callable[[Level], Tally], asked: StringsSection) -> FrequentStrings:
    """The search of `find_frequent_strings` over groups of so many people.

    `ask` is called for one level after the other and returns the tally of its whole batch, wherever that is drawn.
    """
    refuse_small(sizes, asked)
    thresholds, promises = list[float](), list[CentralDP]()
    kept: dict[tuple[bytes, bool], _Count] = {(b"", False): _Count()}
    for number, n in enumerate(sizes):
        if not kept:
            break  # nothing is left to ask for
        open_ = tuple(prefix for prefix, complete in kept if not complete)
        ended = tuple(prefix for prefix, complete in kept if complete)
        noise = noise_at(asked, symbols_of(len(open_), len(ended)), n)
        level = Level(number, n, open_, ended, noise)
        (counts, errors), tau = level.counts(ask(level)), level.threshold
        most = asked.keep if number + 1 == len(sizes) else beginnings_at(asked, sizes[number + 1])
        best = np.argsort(-counts[:-1], kind="stable")[:most]
        before, kept = kept, {}
        for symbol in best[counts[best] >= tau - 0.5].tolist():  # counts are whole steps of 1 or more apart
            key = level.key(symbol)
            kept[key] = before.get(key, _Count()).plus(float(counts[symbol]), n, float(errors[symbol]))
        thresholds.append(tau)
        promises.append(promise_at(asked, noise, n))
    found = tuple(
        FrequentString(prefix.decode("utf-8", errors="replace"), complete, count.share, count.error, count.asked)
        for (prefix, complete), count in sorted(kept.items(), key=lambda item: -item[1].share)
    )
    worst = max(promises, key=lambda one: one.epsilon)
    worst = replace(worst, colluding=max(one.colluding for one in promises))  # levels spend different local epsilons
    return FrequentStrings(found, worst, tuple(sizes), tuple(thresholds))


def refuse_small(sizes: Sequence[int], asked: StringsSection) -> None:
    """UnsupportedError for a group that hides nobody."""
    least = min(sizes)
    if least < 2:
        raise UnsupportedError(f"a group has {least} people, who are hidden by nobody: ask for fewer levels.")
    if beginnings_at(asked, least) < 1:
        raise UnsupportedError(
            f"a group has {least:,} people, whose dummies hide fewer than the {symbols_of(1)} answers of a byte: ask "
            "more people, for fewer levels, or with a larger epsilon."
        )


def sizes_of(names: pl.Series, levels: int) -> list[int]:
    """People of each group."""
    return [int(size) for size in np.bincount(levels_of(names, levels), minlength=levels)]


def promise_of_dummies(sizes: Sequence[int], asked: StringsSection) -> CentralDP:
    """The guarantee of a search with dummies for each person: that of her one group, at worst."""
    promises = [promise_at(asked, noise_at(asked, symbols_of(1), size), size) for size in sizes]
    return max(promises, key=lambda one: one.epsilon)


def levels_of(names: pl.Series, levels: int) -> NDArray[np.int64]:
    """The group of each person, from her name alone: public, and the same in every round and place."""
    digests = hashes_of(names, _PUBLIC, 8).view("<u8").reshape(-1)
    return (digests % np.uint64(levels)).astype(np.int64)


def _groups(people: Sequence[tuple[str, str]], levels: int) -> list[list[str]]:
    """Strings of each group."""
    for pair in people:
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise DataError("`people` must be pairs of two texts, a name and a string.")
    names = pl.Series([name for name, _ in people], dtype=pl.String)
    if names.n_unique() < len(people):
        raise DataError(f"`people` must name everybody once; {len(people) - names.n_unique():,} names are repeated.")
    groups: list[list[str]] = [[] for _ in range(levels)]
    for level, (_, text) in zip(levels_of(names, levels).tolist(), people, strict=True):
        groups[level].append(text)
    return groups


def _symbol(text: bytes, level: int, places: dict[bytes, int], ends: dict[bytes, int], other: int) -> int:
    """The answer of each person at a level: the child of a candidate, a string that ended before, or "other"."""
    if text in ends and len(text) < level:
        return ends[text]
    place = places.get(text[:level])
    if place is None or len(text) < level:
        return other
    return 257 * place + (END if len(text) == level else text[level])


def noise_at(asked: StringsSection, symbols: int, n: int) -> Noise:
    """The noise of a group of n people, each of whom sends one of so many symbols."""
    if asked.trust != "local":
        return noise_of(OpenAnswers(symbols), list_dummies(asked.promise, symbols, honest=n))
    return Local(KRR(symbols, _hidden_epsilon(asked.epsilon, asked.delta, symbols, n)))


@lru_cache(maxsize=256)
def _hidden_epsilon(epsilon: float, delta: float, symbols: int, n: int) -> float:
    """The largest epsilon0 of k-ary randomized response that a group hides."""
    low, high = max_epsilon(epsilon=epsilon, n=n, delta=delta), MOST_EPSILON0
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        enough = Accountant(KRR(symbols, middle), n=n).epsilon(delta) <= epsilon
        low, high = (middle, high) if enough else (low, middle)
    return low


def promise_at(asked: StringsSection, noise: Noise, n: int) -> CentralDP:
    """What the noise of a group of n people promises each of them."""
    promise = noise.central(Uniform(n), People(n), delta=asked.delta)
    assert isinstance(promise, CentralDP)  # two people or more are mixed evenly
    return promise


def beginnings_at(asked: StringsSection, n: int) -> int:
    """How many beginnings go on to a group of n people, whose own dummies hide so many answers at most."""
    if asked.trust != "users":
        return asked.keep
    hidden = most_values(epsilon=asked.epsilon, delta=asked.delta, honest=n)
    return min(asked.keep, (hidden - 1) // (symbols_of(1) - 1))


# How frequent a string has to be for a search to find it.


_STEPS = 60


def recall_of(held: float, *, n: int, levels: int, noise: Noise, symbols: int = 2) -> float:
    r"""Chance that a string which a share of the people hold is found.

    .. math:: \prod_{l=1}^{L} \Pr[\mathrm{Bin}(n_l, \beta f) / \beta + N \ge \tau], \qquad n_l = \lfloor n / L \rfloor

    As long as no more than `keep` other beginnings are as frequent. N is the noise of an answer that nobody gives, of
    `symbols` at most, and beta the chance that a report is kept, and true.
    """
    size = n // levels
    counts, masses = noise.null_law(People(size))
    kept = 1.0 / float(counts[1] - counts[0])  # one report more is so many people more
    needed = np.rint((threshold_of(noise, symbols, size) - counts) * kept)
    from scipy.stats import binom  # half a second

    return float(masses @ binom.sf(needed - 1.0, size, kept * held)) ** levels


def smallest_share(
    *, n: int, epsilon: float, delta: float, levels: int, wanted: float = 0.95, dummies: str = "geometric",
    trust: str = "shuffler", keep: int = 256,
) -> float:  # fmt: skip
    """Smallest share of the people that is found with chance `wanted`, if its beginnings are among those that go on.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    UnsupportedError
        Where even a string that everybody holds is found more rarely, and for groups that hide nobody.

    Examples
    --------
    >>> 3.4e-4 < smallest_share(n=1_000_000, epsilon=1.0, delta=1e-6, levels=8) < 3.8e-4
    True
    """
    people = whole("n", n, least=2)
    asked = section_of(epsilon=epsilon, delta=delta, trust=trust, dummies=dummies, levels=levels, keep=keep)
    return least_share(asked, people, wanted=share("wanted", wanted))


def least_share(asked: StringsSection, n: int, *, wanted: float = 0.95) -> float:
    """`smallest_share` of a configuration."""
    noise, symbols = widest(asked, n)

    def enough(held: float) -> bool:
        return recall_of(held, n=n, levels=asked.levels, noise=noise, symbols=symbols) >= wanted

    if not enough(1.0):
        raise UnsupportedError(
            f"even a string that all {n:,} people hold is found with less than {wanted:g}: use fewer levels, a "
            "larger epsilon or more people."
        )
    low, high = math.log(1e-12), 0.0  # of the share
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


def widest(asked: StringsSection, n: int) -> tuple[Noise, int]:
    """The noise of a group of the n people that is asked of as many beginnings as may be, and its symbols."""
    size = n // asked.levels
    refuse_small([size], asked)
    symbols = symbols_of(beginnings_at(asked, size) if asked.levels > 1 else 1)
    return noise_at(asked, symbols, size), symbols


# What a report on strings says: shares of those that were found, what is assumed, and what each step promises.


OTHERS = "(all other strings)"
NO_LIST = Missing("answers are strings without a list of categories")
NOT_LOCAL = "no local noise: shuffler and analyst together read every answer"
STRINGS = (
    "Strings are asked for byte by byte: each person is in one of {levels} groups, by a hash of her name, which must "
    "not depend on her string. She hides in her group alone; the smallest has {least:,} people."
)
NONE_FALSE = (
    "A string that is found is held by somebody: a beginning is kept from {tau:g} reports on, which the dummies "
    "alone never reach. (If nobody among those who answer lies.)"
)
SOME_FALSE = (
    "{label} can pass for a string: with 5% probability at most a search finds one that nobody holds. A beginning "
    "goes on from a count on that the noise alone reaches for any answer of a level with 5% at most."
)
FEWER = "Dummies of people hide {most} in a group of so many: no more go on, where `keep` allows {keep:,}."
BIASED = (
    "A share is counted in the groups that are asked for all bytes of the string, whose drawing is in its error, and "
    "biased upwards: only large estimates are kept."
)


@dataclass(frozen=True)
class Search:
    """The strings that were found, and the guarantee of the whole search."""

    found: list[FrequentString]
    local: LocalDP
    central: CentralDP
    groups: tuple[int, ...]
    levels: int

    @classmethod
    def of(cls, answer: FrequentStrings, asked: StringsSection) -> Search:
        """The strings of a search that has ended."""
        bare = asked.trust != "local"
        local = LocalDP(inf, source=NOT_LOCAL) if bare else LocalDP(answer.guarantee.colluding, source="one report")
        return cls(list(answer.found), local, answer.guarantee, answer.groups, asked.levels)

    @classmethod
    def recorded(cls, table: pl.DataFrame, sizes: Sequence[int], asked: StringsSection) -> Search:
        """The strings of a recorded release, of groups of so many people."""
        central = promise_of_dummies(sizes, asked)
        found = tuple(FrequentString(*row) for row in table.iter_rows())
        return cls.of(FrequentStrings(found, central, tuple(sizes), ()), asked)

    def places(self, text: str) -> list[int]:
        """Which of the strings that were found a text is, or begins with."""
        raw = text.encode()
        cut = raw[: self.levels].decode("utf-8", errors="replace") if len(raw) >= self.levels else None
        return [place for place, one in enumerate(self.found) if (text if one.complete else cut) == one.text]

    @property
    def randomizer(self) -> dict[str, Any]:
        """For the report: what each device does."""
        name, label = (
            ("none", "no local noise") if self.local.epsilon == inf else ("krr", "k-ary randomized response")
        )
        return {"name": name, "label": label, "epsilon": self.local.epsilon, "parameters": {}}


@dataclass(frozen=True)
class Truth:
    """The truth of a rehearsal about everybody's string; counts of disjoint sets of strings add.

    Parameters
    ----------
    held : int array (found,)
        People who hold each string that was found.
    common, hit : int
        Strings that so many people hold that a search should find them, and how many of them it found.
    """

    held: NDArray[np.int64] = field(repr=False)
    common: int
    hit: int

    @classmethod
    def of(cls, search: Search, counted: Mapping[str, int], least: float) -> Truth:
        """Of strings with the number of people who hold each; common are those of at least so many."""
        held, common = np.zeros(len(search.found), dtype=np.int64), list[bool]()
        for text, count in counted.items():
            places = search.places(text)
            held[places] += count
            if count >= least:
                common.append(bool(places))
        return cls(held, len(common), sum(common))

    def __add__(self, other: Truth) -> Truth:
        return Truth(self.held + other.held, self.common + other.common, self.hit + other.hit)


def common_from(asked: StringsSection, n: int) -> float:
    """People who have to hold a string so that it is found with 95 %; infinite where not even everybody is enough."""
    try:
        return n * least_share(asked, n)
    except UnsupportedError:
        return inf


def _drawn_of_sum(shares: NDArray[np.float64], asked: NDArray[np.int64], groups: tuple[int, ...]) -> float:
    r"""Squared error of the sum of shares by the drawing of groups, of which each is counted in some last ones.

    .. math:: \sum_g n_g \Bigl[\sum_i f_i w_{ig}^2 - \bigl(\sum_i f_i w_{ig}\bigr)^2\Bigr], \qquad
              w_{ig} = [g \text{ is asked for all of } i] / n_i
    """
    held = np.maximum(shares, 0.0)
    held /= max(1.0, held.sum())
    sizes = np.array(groups)
    later = np.cumsum(sizes[::-1])[::-1]  # people of a group and of those that follow
    worth = (later[:, None] <= asked) / asked
    return float(sizes @ (np.square(worth) @ held - np.square(worth @ held)))


def evaluation_of(search: Search, n: int, truth: Truth | None, provenance: str) -> Evaluation:
    shuffler = Uniform(n)
    lenses = ("attacks", "learnability", "sections")
    unmeasured: dict[str, Any] = {} if truth is None else dict.fromkeys(lenses, NO_LIST)
    noise = [one.standard_error for one in search.found]
    shares = np.array([one.share for one in search.found])
    asked, last = np.array([one.asked for one in search.found]), search.groups[-1]  # some of everybody
    drawn = np.append(
        np.clip(shares * (1.0 - shares), 0.0, 0.25) / asked, _drawn_of_sum(shares, asked, search.groups)
    )
    error = np.sqrt(np.append(np.square(noise), np.sum(np.square(noise))) + drawn)
    shares = np.append(shares, 1.0 - shares.sum())
    labels = [one.text if one.complete else f"{one.text}..." for one in search.found] + [OTHERS]
    true = None if truth is None else [*(truth.held / n), 1.0 - sum(truth.held / n)]
    estimate = Estimate(shares, error, last, error)
    return Evaluation(
        shuffler=shuffler.name,
        local=search.local.drawn_from(provenance),
        central=search.central.drawn_from(provenance),
        order=order_evaluation(shuffler, provenance=provenance),
        leakage=NO_LIST,
        estimates=Estimates(
            "share", LEVEL, shares_of(estimate, labels, true), NO_LIST, withheld=[], better=NO_LIST,
        ),
        **unmeasured,
    )  # fmt: skip


def assumptions_of(asked: StringsSection, search: Search, n: int, truth: Truth | None) -> tuple[str, ...]:
    least, noise = min(search.groups), noise_told_of(asked, search)
    lines = [
        STRINGS.format(levels=asked.levels, least=least),
        *noise.assumptions(People(least), delta=asked.delta, central=search.central),
    ]
    if noise.bounded:
        lines.append(NONE_FALSE.format(tau=threshold_of(noise, symbols_of(1), least)))
    else:
        lines.append(SOME_FALSE.format(label=noise.label[0].upper() + noise.label[1:]))
    most = beginnings_at(asked, least)
    if most < asked.keep:
        lines.append(FEWER.format(most=counted(most, "beginning"), keep=asked.keep))
    lines += [_reach(asked, n, most), BIASED]
    return tuple(lines + ([] if truth is None else _measured(asked, n, truth)))


def noise_told_of(asked: StringsSection, search: Search) -> Noise:
    """The noise of the first byte in the smallest group; every person's own that of the level that spends most."""
    if asked.trust == "local":
        return Local(KRR(symbols_of(1), search.local.epsilon))
    return noise_at(asked, symbols_of(1), min(search.groups))


def _reach(asked: StringsSection, n: int, most: int) -> str:
    """From which share on a string is found, of beginnings of which so many go on."""
    try:
        least = least_share(asked, n)
    except UnsupportedError as error:
        return str(error)[0].upper() + str(error)[1:]
    return (
        f"A string that {upward(100 * least)}% of the people hold is found with 95% probability, if its beginnings "
        f"are {f'among the {most:,}' if most > 1 else 'the'} most frequent ones of their length."
    )


def _measured(asked: StringsSection, n: int, truth: Truth) -> list[str]:
    """Recall and false strings of this rehearsal."""
    false = int((truth.held == 0).sum())
    lines = [f"In this rehearsal {len(truth.held):,} strings were found, {false:,} of which nobody holds."]
    if truth.common:
        least = upward(100 * common_from(asked, n) / n)
        lines.append(
            f"Of {truth.common:,} strings that at least {least}% of the people hold, {truth.hit:,} were found "
            f"({percent(truth.hit / truth.common)})."
        )
    return lines


def steps_of(asked: StringsSection, search: Search) -> tuple[dict[str, str], ...]:
    bare, mixes = asked.trust != "local", NOISES[asked.noise].mixes.replace(" It ", " The shuffler ")
    return (
        {
            "stage": "randomize",
            "what": "Each device sends the byte that it is asked for, under the analyst's key"
            + (", and by chance a dummy beside." if asked.trust == "users" else ".")
            if bare
            else "Each device answers through k-ary randomized response, before anything is sent.",
            "guarantee": "no local promise" if bare else f"{upward(search.local.epsilon)}-local differential privacy",
            "theorem": search.local.source,
        },
        {
            "stage": "shuffle",
            "what": f"Each group's batch is shuffled uniformly.{mixes}",
            "guarantee": f"({upward(search.central.epsilon)}, {upward(search.central.delta)}) for the whole search",
            "theorem": search.central.source,
        },
        {
            "stage": "estimate",
            "what": "Beginnings with enough reports go on to the next group; groups asked for all bytes give shares.",
            "guarantee": "post-processing: costs no privacy",
            "theorem": "docs/theory/accuracy.md, section D",
        },
    )  # fmt: skip


def run_strings(
    settings: RunConfig, rng: Entropy, ledger: ReleaseLedger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    """The report of a search; a rehearsal beside the truth, a release recorded in the ledger."""
    asked = settings.strings
    assert asked is not None  # checked by the caller
    progress("read the table", 0, 1)
    survey = read_survey(settings.data, rng, table=table)
    texts = [(survey.categories or ())[code] for code in survey.values.tolist()]
    people = list(zip(names_of(survey.people.to_series()).to_list(), texts, strict=True))
    progress("read the table", 1, 1)
    progress("find strings", 0, 1)
    truth, released = None, None
    try:
        if settings.mode == "release":
            search, released = _released(people, survey, asked, rng, ledger, new_release=new_release)
        else:
            search = Search.of(find_frequent_strings(people, **asked.model_dump(), rng=rng), asked)
            truth = Truth.of(search, Counter(texts), common_from(asked, survey.n))
    except DovetailError as error:
        raise ConfigError(f"[strings] {error}") from None
    progress("find strings", 1, 1)
    return strings_report(settings, survey, search, released, rng, truth=truth)


def _released(
    people: list[tuple[str, str]], survey: Survey, asked: StringsSection, rng: Entropy, ledger: ReleaseLedger,
    *, new_release: bool,
) -> tuple[Search, ReleasedTable]:  # fmt: skip
    """The recorded search of this table under these terms, or a fresh one. The ledger has a row for each person."""
    names = [name for name, _ in people]

    def draw() -> pl.DataFrame:
        found = found_table(find_frequent_strings(people, **asked.model_dump(), rng=rng).found)
        return pl.concat([found, found.clear(survey.n - found.height)])

    sizes = sizes_of(pl.Series(names), asked.levels)
    request = ReleaseRequest(
        table=canonical(survey.identity), terms=strings_terms(asked), groups=everybody(names), people=names,
        epsilon=inf, alpha=0.0, n=survey.n, shuffler=Uniform.name,
        central=promise_of_dummies(sizes, asked),
    )  # fmt: skip
    answer = ledger.answer(request, new_release=new_release, draw=draw)
    table = answer.reports.drop_nulls("string")
    return Search.recorded(table, sizes, asked), replace(ReleasedTable.of(answer), table=table)


def strings_terms(asked: StringsSection) -> bytes:
    """Terms of a release, for the ledger: as before other dummies could be named, where none are."""
    usual = {"dummies"} if asked.dummies == "geometric" else None
    return b"strings" + asked.model_dump_json(exclude=usual).encode()


_COLUMNS = {
    "string": pl.String, "complete": pl.Boolean, "share": pl.Float64, "standard_error": pl.Float64, "asked": pl.Int64,
}  # fmt: skip


def found_table(found: Sequence[FrequentString]) -> pl.DataFrame:
    """The strings as they are released."""
    return pl.DataFrame([tuple(vars(one).values()) for one in found], schema=_COLUMNS, orient="row")


def describe_search(settings: RunConfig) -> dict[str, Any]:
    """Description that a released table of strings carries."""
    return {"strings": settings.model_dump(mode="json")["strings"], "private": settings.data.private}


def strings_report(
    settings: RunConfig, survey: Survey, search: Search, released: ReleasedTable | None, rng: Entropy,
    *, truth: Truth | None = None, **rest: Any,
) -> PrivacyReport:  # fmt: skip
    """The report of a search; of the survey it reads how many people there are, and what was left out."""
    asked = settings.strings
    assert asked is not None  # checked by callers
    evaluation = evaluation_of(search, survey.n, truth, rng.provenance)
    return report_of(
        settings.title or f"Strings of {settings.data.private}",
        evaluation if released is None else released.compose(evaluation), released, rng,
        collection={
            "n": survey.n, "private": settings.data.private, "public": [], "kind": "categorical",
            "categories": evaluation.estimates.overall.labels,
        },
        randomizer=search.randomizer,
        assumptions=(
            *assumptions_of(asked, search, survey.n, truth), *gaps_and_outliers(survey, mode=settings.mode),
        ),
        steps=steps_of(asked, search),
        config=settings.model_dump(mode="json", include={"schema_version", "mode", "title", "strings"}),
        sanitized_description=describe_search(settings),
        **rest,
    )  # fmt: skip
