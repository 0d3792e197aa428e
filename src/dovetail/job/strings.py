"""A run on texts without a list of categories: the strings that many people hold, and the privacy report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, sqrt
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dovetail.account.accountant import Accountant
from dovetail.account.amplify import amplify
from dovetail.account.calibrate import max_epsilon
from dovetail.account.dummies import dummies_for_rounds, dummies_guarantee
from dovetail.core.checks import privacy_budget, share, whole, word
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import ConfigError, DataError, DovetailError, ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.keyed_hash import hashes_of
from dovetail.core.missing import Missing
from dovetail.core.progress import Progress
from dovetail.job.config import RunConfig, StringsSection
from dovetail.job.evaluate import LEVEL, gaps_and_outliers, order_evaluation, shares_of
from dovetail.job.rehearse import ReleasedTable, report_of
from dovetail.ledger.releases import ReleaseLedger, ReleaseRequest, everybody
from dovetail.randomize.krr import KRR
from dovetail.report.document import Estimates, Evaluation, PrivacyReport
from dovetail.report.number_format import percent, upward
from dovetail.shuffle.sampling.dummies import Dummies, GaussianDummies
from dovetail.shuffle.uniform import Uniform
from dovetail.table.reader import Survey, canonical, read_survey
from dovetail.table.spelling import names_of

# Which strings many people hold, without a list of candidates: a tree of prefixes over disjoint groups of people.


END = 256  # the symbol after the last byte of a string
MOST_EPSILON0 = 30.0
_PUBLIC = b"dovetail level"  # key of a hash that anybody can compute
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
        Among the people who were asked for all of it; biased upwards, as only large estimates are kept. The error is
        that of the noise.
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


@final
@dataclass(frozen=True)
class Level:
    """Question to one group of people: the next byte of the beginnings that are left, or which string ended before.

    A fold: tallies of parts of the group add, in any order; the noise of the shuffler is added to the sum, once.

    Parameters
    ----------
    number : int
        Bytes of each beginning.
    n : int
        People of the group.
    open, ended : tuples of bytes
        Beginnings, and strings that ended before.
    noise : Dummies, GaussianDummies or KRR
    """

    number: int
    n: int
    open: tuple[bytes, ...]
    ended: tuple[bytes, ...]
    noise: Dummies | GaussianDummies | KRR

    def tally(self, texts: Sequence[str], rng: Entropy) -> Tally:
        """How often these people send each symbol."""
        places = {prefix: place for place, prefix in enumerate(self.open)}
        ends = {text: 257 * len(self.open) + place for place, text in enumerate(self.ended)}
        other = 257 * len(self.open) + len(self.ended)
        held = [_symbol(text.encode(), self.number, places, ends, other) for text in texts]
        sent = np.array(held, dtype=np.int64)
        if isinstance(self.noise, KRR) and held:
            sent = self.noise.randomize(sent, rng)
        return np.bincount(sent, minlength=other + 1).astype(np.float64)

    def complete(self, tally: Tally, rng: Entropy) -> Tally:
        """The tally of the whole batch, with what the shuffler adds."""
        return tally if isinstance(self.noise, KRR) else tally + self.noise.tally(self.noise.drawn(rng))

    def counts(self, tally: Tally) -> Tally:
        """Unbiased numbers of people behind each symbol of the whole batch."""
        if isinstance(self.noise, KRR):
            return np.asarray(self.n * self.noise.invert(tally, self.n))
        return self.noise.counts_of(tally)

    def key(self, symbol: int) -> tuple[bytes, bool]:
        """The beginning or, with True, the whole string that a symbol stands for."""
        if symbol >= 257 * len(self.open):
            return self.ended[symbol - 257 * len(self.open)], True
        prefix, byte = self.open[symbol // 257], symbol % 257
        return (prefix, True) if byte == END else (prefix + bytes([byte]), False)

    @property
    def error(self) -> float:
        """Standard deviation of the count of a symbol that nobody holds."""
        if isinstance(self.noise, KRR):
            return sqrt(self.n * float(self.noise.variance(np.eye(1, self.noise.k, 1)[0])[0]))
        return sqrt(self.noise.variance)

    @property
    def threshold(self) -> float:
        """Dummies: what nobody's symbol can reach. Local noise: rarely reached."""
        if isinstance(self.noise, KRR):
            return float(-ndtri(FALSE_ALARMS / self.noise.k)) * self.error
        return self.noise.reach + 1.0


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
    trust: Literal["shuffler", "local"] = "shuffler",
    dummies: Literal["geometric", "gaussian"] = "geometric",
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
    dummies : "geometric" or "gaussian"
        Of the shuffler. A search is one release, of which geometric ones hide less: Gaussian ones have a larger s.
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
    word("trust", trust, ("shuffler", "local"), '"shuffler" or "local"')
    word("dummies", dummies, ("geometric", "gaussian"), '"geometric" or "gaussian"')
    if trust == "local" and dummies != "geometric":
        raise ParameterError('`dummies` go with `trust` = "shuffler", which adds them.')
    groups = _groups(people, depth)

    def ask(level: Level) -> Tally:
        return level.complete(level.tally(groups[level.number], rng), rng)

    sizes = [len(group) for group in groups]
    return search_levels(sizes, ask, epsilon=wanted, delta=delta, trust=trust, dummies=dummies, keep=most)


def search_levels(
    sizes: Sequence[int], ask: Callable[[Level], Tally], *, epsilon: float, delta: float, trust: str, dummies: str,
    keep: int,
) -> FrequentStrings:  # fmt: skip
    """The search of `find_frequent_strings` over groups of so many people.

    `ask` is called for one level after the other and returns the tally of its whole batch, wherever that is drawn.
    """
    refuse_small(sizes)
    thresholds, promises = list[float](), list[CentralDP]()
    kept: dict[tuple[bytes, bool], _Count] = {(b"", False): _Count()}
    for number, n in enumerate(sizes):
        if not kept:
            break  # nothing is left to ask for
        open_ = tuple(prefix for prefix, complete in kept if not complete)
        ended = tuple(prefix for prefix, complete in kept if complete)
        noise, promise = _noise(257 * len(open_) + len(ended) + 1, n, epsilon, delta, trust, dummies)
        level = Level(number, n, open_, ended, noise)
        counts, tau = level.counts(ask(level)), level.threshold
        best = np.argsort(-counts[:-1], kind="stable")[:keep]
        before, kept = kept, {}
        for symbol in best[counts[best] >= tau].tolist():
            key = level.key(symbol)
            kept[key] = before.get(key, _Count()).plus(float(counts[symbol]), n, level.error)
        thresholds.append(tau)
        promises.append(promise)
    found = tuple(
        FrequentString(prefix.decode("utf-8", errors="replace"), complete, count.share, count.error, count.asked)
        for (prefix, complete), count in sorted(kept.items(), key=lambda item: -item[1].share)
    )
    worst = max(promises, key=lambda one: one.epsilon)
    worst = replace(worst, colluding=max(one.colluding for one in promises))  # levels spend different local epsilons
    return FrequentStrings(found, worst, tuple(sizes), tuple(thresholds))


def refuse_small(sizes: Sequence[int]) -> None:
    """UnsupportedError for a group that hides nobody."""
    if min(sizes) < 2:
        raise UnsupportedError(f"a group has {min(sizes)} people, who are hidden by nobody: ask for fewer levels.")


def promise_of_dummies(sizes: Sequence[int], asked: StringsSection) -> CentralDP:
    """The guarantee of a search with dummies for each person: that of her one group, at worst."""
    promises = [dummies_guarantee(dummies_of(asked), n=size, delta=asked.delta) for size in sizes]
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


def _noise(
    symbols: int, n: int, epsilon: float, delta: float, trust: str, law: str
) -> tuple[Dummies | GaussianDummies | KRR, CentralDP]:
    """The noise of one level, and what it promises."""
    if trust == "shuffler":
        dummies = dummies_for_rounds(k=symbols, epsilon=epsilon, delta=delta, rounds=1, law=law)
        return dummies, dummies_guarantee(dummies, n=n, delta=delta)
    low, high = max_epsilon(epsilon=epsilon, n=n, delta=delta), MOST_EPSILON0
    while high - low > 1e-3 * high:  # the largest epsilon0 that the group hides
        middle = 0.5 * (low + high)
        enough = Accountant(KRR(symbols, middle), n=n).epsilon(delta) <= epsilon
        low, high = (middle, high) if enough else (low, middle)
    krr = KRR(symbols, low)
    return krr, amplify(krr, n=n, delta=delta)


# How frequent a string has to be for a search to find it.


_STEPS = 60


def recall_of(held: float, *, n: int, levels: int, dummies: Dummies | GaussianDummies) -> float:
    r"""Chance that a string which a share of the people hold is found, with dummies of the shuffler.

    .. math:: \prod_{l=1}^{L} \Pr[\mathrm{Bin}(n_l, f) + N \ge s + 1], \qquad n_l = \lfloor n / L \rfloor

    As long as no more than `keep` other beginnings are as frequent. N is the noise of the dummies, at most s.
    """
    noise, weights = dummies.noise.error_law(1.0)
    from scipy.stats import binom  # half a second

    found = weights @ binom.sf(dummies.reach - noise, n // levels, held)
    return float(found**levels)


def smallest_share(
    *, n: int, epsilon: float, delta: float, levels: int, wanted: float = 0.95, dummies: str = "geometric"
) -> float:
    """Smallest share of the people that is found with chance `wanted`.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    UnsupportedError
        Where even a string that everybody holds is found more rarely.

    Examples
    --------
    >>> 3.4e-4 < smallest_share(n=1_000_000, epsilon=1.0, delta=1e-6, levels=8) < 3.8e-4
    True
    """
    people, depth = whole("n", n, least=2), whole("levels", levels, least=1, most=64)
    added = dummies_for_rounds(k=2, epsilon=epsilon, delta=delta, rounds=1, law=dummies)
    chance = share("wanted", wanted)
    if recall_of(1.0, n=people, levels=depth, dummies=added) < chance:
        raise UnsupportedError(
            f"even a string that all {people:,} people hold is found with less than {chance:g}: use fewer levels, a "
            "larger epsilon or more people."
        )
    low, high = math.log(1e-12), 0.0  # of the share
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        enough = recall_of(math.exp(middle), n=people, levels=depth, dummies=added) >= chance
        low, high = (low, middle) if enough else (middle, high)
    return math.exp(high)


def dummies_of(asked: StringsSection) -> Dummies | GaussianDummies:
    """Those of any two symbols."""
    return dummies_for_rounds(k=2, epsilon=asked.epsilon, delta=asked.delta, rounds=1, law=asked.dummies)


def least_share(asked: StringsSection, n: int) -> float:
    """`smallest_share` of a configuration."""
    terms = asked.model_dump(include={"epsilon", "delta", "levels", "dummies"})
    return smallest_share(n=n, **terms)


# What a report on strings says: shares of those that were found, what is assumed, and what each step promises.


OTHERS = "(all other strings)"
NO_LIST = Missing("answers are strings without a list of categories")
NOT_LOCAL = "no local noise: shuffler and analyst together read every answer"
STRINGS = "Strings are asked for byte by byte: each person is in one of {levels} groups, by a hash of her name."
NONE_FALSE = (
    "A string that is found is held by somebody: a beginning is kept from {tau:g} reports on, which the dummies "
    "alone never reach. (If nobody among those who answer lies.)"
)
SOME_FALSE = "Local noise finds beginnings that nobody holds, about one in twenty levels, and their continuations."
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
    last: int
    levels: int

    @classmethod
    def of(cls, answer: FrequentStrings, asked: StringsSection) -> Search:
        """The strings of a search that has ended."""
        bare = asked.trust == "shuffler"
        local = LocalDP(inf, source=NOT_LOCAL) if bare else LocalDP(answer.guarantee.colluding, source="one report")
        return cls(list(answer.found), local, answer.guarantee, answer.groups[-1], asked.levels)

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


def evaluation_of(search: Search, n: int, truth: Truth | None, provenance: str) -> Evaluation:
    shuffler = Uniform(n)
    lenses = ("attacks", "learnability", "sections")
    unmeasured: dict[str, Any] = {} if truth is None else dict.fromkeys(lenses, NO_LIST)
    noise = [one.standard_error for one in search.found]
    shares = np.array([one.share for one in search.found])
    shares = np.append(shares, 1.0 - shares.sum())
    asked = np.array([one.asked for one in search.found] + [search.last])  # some of everybody
    drawn = np.sqrt(np.clip(shares * (1.0 - shares), 0.0, 0.25) / asked)
    error = np.hypot(np.append(noise, np.sqrt(np.sum(np.square(noise)))), drawn)
    labels = [one.text if one.complete else f"{one.text}..." for one in search.found] + [OTHERS]
    true = None if truth is None else [*(truth.held / n), 1.0 - sum(truth.held / n)]
    estimate = Estimate(shares, error, search.last, error)
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


def assumptions_of(asked: StringsSection, n: int, truth: Truth | None) -> tuple[str, ...]:
    lines = [
        STRINGS.format(levels=asked.levels),
        "Each person sends exactly one report; names do not depend on strings.",
    ]
    if asked.trust == "shuffler":
        lines.append(NONE_FALSE.format(tau=dummies_of(asked).reach + 1))
        lines.append(
            "The shuffler is trusted with the noise: it draws the dummies of every level once, tells nobody their "
            "numbers, and the analyst sees the shuffled batches alone."
        )
        lines.append(_reach(asked, n))
    else:
        lines.append(SOME_FALSE)
    lines.append(BIASED)
    return tuple(lines + ([] if truth is None else _measured(asked, n, truth)))


def _reach(asked: StringsSection, n: int) -> str:
    """From which share on a string is found."""
    try:
        least = least_share(asked, n)
    except UnsupportedError as error:
        return str(error)[0].upper() + str(error)[1:]
    return (
        f"A string that {upward(100 * least)}% of the people hold is found with 95% probability, if its beginnings "
        f"are among the {asked.keep:,} most frequent ones of their length."
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
    bare = asked.trust == "shuffler"
    return (
        {
            "stage": "randomize",
            "what": "Each device sends the byte that it is asked for, under the analyst's key."
            if bare
            else "Each device answers through k-ary randomized response, before anything is sent.",
            "guarantee": "no local promise" if bare else f"{upward(search.local.epsilon)}-local differential privacy",
            "theorem": search.local.source,
        },
        {
            "stage": "shuffle",
            "what": "Each group's batch is shuffled uniformly."
            + (" The shuffler adds dummies of every answer." if bare else ""),
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

    sizes = np.bincount(levels_of(pl.Series(names), asked.levels), minlength=asked.levels).tolist()
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
            *assumptions_of(asked, survey.n, truth), *gaps_and_outliers(survey, mode=settings.mode),
        ),
        steps=steps_of(asked, search),
        config=settings.model_dump(mode="json", include={"schema_version", "mode", "title", "strings"}),
        sanitized_description=describe_search(settings),
        **rest,
    )  # fmt: skip
