"""A run on texts without a list of categories: the strings that many people hold, and the privacy report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import inf, sqrt
from typing import Any, Literal, final

import numpy as np
from scipy.special import ndtri

from dovetail.account.accountant import Accountant
from dovetail.account.amplify import amplify
from dovetail.account.calibrate import max_epsilon
from dovetail.account.dummies import dummies_guarantee
from dovetail.core.checks import privacy_budget, share, whole, word
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import ConfigError, DataError, DovetailError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.missing import Missing
from dovetail.core.progress import Progress
from dovetail.job.config import RunConfig, StringsSection
from dovetail.job.evaluate import LEVEL, gaps_and_outliers, order_evaluation, shares_of
from dovetail.job.rehearse import ReleasedTable, report_of
from dovetail.ledger.releases import ReleaseLedger, ReleaseRequest, everybody
from dovetail.randomize.krr import KRR
from dovetail.report.document import Estimates, Evaluation, PrivacyReport
from dovetail.report.number_format import percent, upward
from dovetail.shuffle.sampling.dummies import Dummies
from dovetail.shuffle.uniform import Uniform
from dovetail.table.reader import Survey, canonical, read_survey
from dovetail.table.spelling import names_of

# Which strings many people hold, without a list of candidates: a tree of prefixes over disjoint groups of people.


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
    word("trust", trust, ("shuffler", "local"), '"shuffler" or "local"')
    groups = _groups(people, depth)
    open_, done = [b""], list[bytes]()
    thresholds, promises = list[float](), list[CentralDP]()
    kept: dict[tuple[bytes, bool], _Count] = {}
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
        before, kept = kept, {}
        for symbol in best[counts[best] >= tau].tolist():
            if symbol >= 257 * len(open_):
                key = (done[symbol - 257 * len(open_)], True)
            else:
                prefix, byte = open_[symbol // 257], symbol % 257
                key = (prefix, True) if byte == END else (prefix + bytes([byte]), False)
            kept[key] = before.get(key, _Count()).plus(float(counts[symbol]), len(group), counter.error)
        open_ = [prefix for prefix, complete in kept if not complete]
        done = [prefix for prefix, complete in kept if complete]
        thresholds.append(tau)
        promises.append(promise)
    found = tuple(
        FrequentString(prefix.decode("utf-8", errors="replace"), complete, count.share, count.error, count.asked)
        for (prefix, complete), count in sorted(kept.items(), key=lambda item: -item[1].share)
    )
    worst = max(promises, key=lambda one: one.epsilon)
    worst = replace(worst, colluding=max(one.colluding for one in promises))  # levels spend different local epsilons
    return FrequentStrings(found, worst, tuple(map(len, groups)), tuple(thresholds))


def group_sizes(names: Sequence[str], levels: int) -> tuple[int, ...]:
    """People in the group of each level: public, as it depends on names alone."""
    counts = np.bincount([level_of(name, levels) for name in names], minlength=levels)
    return tuple(int(count) for count in counts)


def promise_of_dummies(sizes: Sequence[int], *, epsilon: float, delta: float) -> CentralDP:
    """The guarantee of a search with dummies for each person: that of her one group, at worst."""
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
    """The answer of each person at a level: the child of a candidate, a string that ended before, or "other"."""
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
        enough = Accountant(KRR(symbols, middle), n=n).epsilon(delta) <= epsilon
        low, high = (middle, high) if enough else (low, middle)
    krr = KRR(symbols, low)
    return _Counter(symbols, n, krr), amplify(krr, n=n, delta=delta)


# How frequent a string has to be for a search to find it.


_STEPS = 60


def recall_of(held: float, *, n: int, levels: int, dummies: Dummies) -> float:
    r"""Chance that a string which a share of the people hold is found, with dummies of the shuffler.

    .. math:: \prod_{l=1}^{L} \Pr[\mathrm{Bin}(n_l, f) + N \ge s + 1], \qquad n_l = \lfloor n / L \rfloor

    As long as no more than `keep` other beginnings are as frequent. N is the noise of the dummies, at most s.
    """
    total = sum(dummies.noise.weights)  # whole numbers beyond any double
    weights = np.array([(one << 64) // total for one in dummies.noise.weights], dtype=np.float64) / 2.0**64
    noise = np.arange(weights.size) - dummies.reach
    from scipy.stats import binom  # half a second

    found = weights @ binom.sf(dummies.reach - noise, n // levels, held)
    return float(found**levels)


def smallest_share(*, n: int, epsilon: float, delta: float, levels: int, wanted: float = 0.95) -> float:
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
    dummies = Dummies(2, privacy_budget("epsilon", epsilon), share("delta", delta))
    chance = share("wanted", wanted)
    if recall_of(1.0, n=people, levels=depth, dummies=dummies) < chance:
        raise UnsupportedError(
            f"even a string that all {people:,} people hold is found with less than {chance:g}: use fewer levels, a "
            "larger epsilon or more people."
        )
    low, high = math.log(1e-12), 0.0  # of the share
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        enough = recall_of(math.exp(middle), n=people, levels=depth, dummies=dummies) >= chance
        low, high = (low, middle) if enough else (middle, high)
    return math.exp(high)


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

    def is_found(self, one: FrequentString, text: str) -> bool:
        """True if a text is the string that was found, or begins with it."""
        if one.complete:
            return text == one.text
        raw = text.encode()
        return len(raw) >= self.levels and raw[: self.levels].decode("utf-8", errors="replace") == one.text

    @property
    def randomizer(self) -> dict[str, Any]:
        """For the report: what each device does."""
        name, label = (
            ("none", "no local noise") if self.local.epsilon == inf else ("krr", "k-ary randomized response")
        )
        return {"name": name, "label": label, "epsilon": self.local.epsilon, "parameters": {}}


def evaluation_of(search: Search, n: int, truth: list[str] | None, provenance: str) -> Evaluation:
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
    true = None if truth is None else _true_shares(search, truth)
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


def _true_shares(search: Search, truth: list[str]) -> list[float]:
    shares = [sum(search.is_found(one, text) for text in truth) / len(truth) for one in search.found]
    return [*shares, 1.0 - sum(shares)]


def assumptions_of(asked: StringsSection, n: int, search: Search, truth: list[str] | None) -> tuple[str, ...]:
    lines = [
        STRINGS.format(levels=asked.levels),
        "Each person sends exactly one report; names do not depend on strings.",
    ]
    if asked.trust == "shuffler":
        lines.append(NONE_FALSE.format(tau=Dummies(2, asked.epsilon, asked.delta).reach + 1))
        lines.append(
            "The shuffler is trusted with the noise: it draws the dummies of every level once, tells nobody their "
            "numbers, and the analyst sees the shuffled batches alone."
        )
        lines.append(_reach(asked, n))
    else:
        lines.append(SOME_FALSE)
    lines.append(BIASED)
    return tuple(lines + ([] if truth is None else _measured(asked, search, truth)))


def _reach(asked: StringsSection, n: int) -> str:
    """From which share on a string is found."""
    try:
        least = smallest_share(n=n, epsilon=asked.epsilon, delta=asked.delta, levels=asked.levels)
    except UnsupportedError as error:
        return str(error)[0].upper() + str(error)[1:]
    return (
        f"A string that {upward(100 * least)}% of the people hold is found with 95% probability, if its beginnings "
        f"are among the {asked.keep:,} most frequent ones of their length."
    )


def _measured(asked: StringsSection, search: Search, truth: list[str]) -> list[str]:
    """Recall and false strings of this rehearsal."""
    false = sum(not any(search.is_found(one, text) for text in truth) for one in search.found)
    lines = [f"In this rehearsal {len(search.found):,} strings were found, {false:,} of which nobody holds."]
    try:
        least = smallest_share(n=len(truth), epsilon=asked.epsilon, delta=asked.delta, levels=asked.levels)
    except UnsupportedError:
        return lines
    common = [text for text, count in Counter(truth).items() if count >= least * len(truth)]
    hit = sum(any(search.is_found(one, text) for one in search.found) for text in common)
    if common:
        lines.append(
            f"Of {len(common):,} strings that at least {upward(100 * least)}% of the people hold, {hit:,} were found "
            f"({percent(hit / len(common))})."
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
    people = list(zip(names_of(survey.people.to_series()).to_list(), _texts(survey), strict=True))
    progress("read the table", 1, 1)
    progress("find strings", 0, 1)
    try:
        if settings.mode == "release":
            search, released = _released(people, survey, asked, rng, ledger, new_release=new_release)
        else:
            search, released = _search(people, asked, rng), None
    except DovetailError as error:
        raise ConfigError(f"[strings] {error}") from None
    progress("find strings", 1, 1)
    return _report(settings, asked, survey, people, search, released, rng)


def _texts(survey: Survey) -> list[str]:
    return [(survey.categories or ())[code] for code in survey.values.tolist()]


def _search(people: list[tuple[str, str]], asked: StringsSection, rng: Entropy) -> Search:
    answer = find_frequent_strings(people, **asked.model_dump(), rng=rng)
    bare = asked.trust == "shuffler"
    local = LocalDP(inf, source=NOT_LOCAL) if bare else LocalDP(answer.guarantee.colluding, source="one report")
    return Search(list(answer.found), local, answer.guarantee, answer.groups[-1], asked.levels)


def _released(
    people: list[tuple[str, str]], survey: Survey, asked: StringsSection, rng: Entropy, ledger: ReleaseLedger,
    *, new_release: bool,
) -> tuple[Search, ReleasedTable]:  # fmt: skip
    """The recorded search of this table under these terms, or a fresh one. The ledger has a row for each person."""
    columns = {"string": pl.String, "complete": pl.Boolean, "share": pl.Float64, "standard_error": pl.Float64}
    columns["asked"] = pl.Int64

    def draw() -> pl.DataFrame:
        found = _search(people, asked, rng).found
        rows = [(one.text, one.complete, one.share, one.standard_error, one.asked) for one in found]
        return pl.DataFrame([*rows, *[(None,) * 5] * (survey.n - len(rows))], schema=columns, orient="row")

    request = ReleaseRequest(
        table=canonical(survey.identity), terms=b"strings" + asked.model_dump_json().encode(),
        groups=everybody([name for name, _ in people]), people=[name for name, _ in people],
        epsilon=inf, alpha=0.0, n=survey.n, shuffler=Uniform.name,
    )  # fmt: skip
    answer = ledger.answer(request, new_release=new_release, draw=draw)
    table = answer.reports.drop_nulls("string")
    found = [FrequentString(*row) for row in table.iter_rows()]
    sizes = group_sizes([name for name, _ in people], asked.levels)
    central = promise_of_dummies(sizes, epsilon=asked.epsilon, delta=asked.delta)
    released = replace(ReleasedTable.of(answer), table=table)
    return Search(found, LocalDP(inf, source=NOT_LOCAL), central, sizes[-1], asked.levels), released


def _report(
    settings: RunConfig, asked: StringsSection, survey: Survey, people: list[tuple[str, str]], search: Search,
    released: ReleasedTable | None, rng: Entropy,
) -> PrivacyReport:  # fmt: skip
    truth = None if released is not None else [text for _, text in people]
    evaluation = evaluation_of(search, survey.n, truth, rng.provenance)
    config = settings.model_dump(mode="json", include={"schema_version", "mode", "title", "strings"})
    return report_of(
        settings.title or f"Strings of {settings.data.private}",
        evaluation if released is None else released.compose(evaluation), released, rng,
        collection={
            "n": survey.n, "private": settings.data.private, "public": [], "kind": "categorical",
            "categories": evaluation.estimates.overall.labels,
        },
        randomizer=search.randomizer,
        assumptions=(
            *assumptions_of(asked, survey.n, search, truth), *gaps_and_outliers(survey, mode=settings.mode),
        ),
        steps=steps_of(asked, search),
        config=config,
        sanitized_description={"strings": config["strings"], "private": settings.data.private},
    )  # fmt: skip
