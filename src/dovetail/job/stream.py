"""The main job on a stream: rounds of a fleet go in; estimates, window queries and their cost come out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from dovetail.account.amplify import amplify
from dovetail.account.compose import Composition, compose_upper
from dovetail.account.rounds import ShuffledRound
from dovetail.core.certified import Bracket
from dovetail.core.display import counted, mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, DataError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.missing import Missing
from dovetail.core.progress import Progress
from dovetail.core.stages import SHUFFLERS, Randomizer, Reports, Shuffler
from dovetail.estimate.mean import in_range
from dovetail.job.build import UNPUBLISHED, build_shuffler, public_data, randomizer_of_data, terms
from dovetail.job.config import RunConfig, files_of
from dovetail.job.evaluate import (
    LEVEL,
    chosen_mean,
    mean_estimator,
    order_evaluation,
    randomizer_document,
    shares_of,
    span_of,
)
from dovetail.job.fleet import Fleet, FleetBudget, FleetRun, round_names
from dovetail.job.rehearse import ReleasedTable, refuse_identity_shuffle, report_of
from dovetail.ledger.releases import LedgerEntry, ReleaseLedger, ReleaseRequest
from dovetail.noise.local import smallest_batch
from dovetail.report.document import Estimates, Evaluation, OrderEvaluation, PrivacyReport, central_document
from dovetail.report.number_format import label_of, upward
from dovetail.table.data_section import DataSection
from dovetail.table.reader import (
    Survey,
    bounded,
    canonical,
    columns_of,
    numeric,
    read_pairs,
    refuse_missing,
    table_of,
)
from dovetail.table.released import describe_reports, from_columns, to_columns
from dovetail.table.spelling import at_rows, names_of
from dovetail_protocol.budget import cost, round_up_to_double

# From a table with stamps to a stream: a public roster of devices, and their values round by round.


@mute
@dataclass(frozen=True, eq=False)
class Stream:
    """Checked rows of a fleet, with the public facts about its devices.

    Parameters
    ----------
    rows : data frame with the columns device (text), time (whole numbers, at least 1) and value
        In order of time and device; each device at most once a round.
    roster : tuple of str
        All devices, by name: their places in every round have nothing to do with the order of the table.
    public : data frame (n, public columns)
        Of the devices, in roster order.
    edges : data frame of two text columns, or None
        Public relationships of devices.
    """

    rows: pl.DataFrame
    roster: tuple[str, ...]
    public: pl.DataFrame
    edges: pl.DataFrame | None

    def fleet(self, settings: RunConfig) -> Fleet:
        """Who reports what, with how much noise, in which order, and for how long."""
        section, survey = settings.shuffle, Survey.of(self.public)
        shuffler: Any = build_shuffler(section, public_data(section, survey, n=len(self.roster), graph=self._graph()))
        randomizer: Any = randomizer_of_data(settings.randomize, settings.data, None)
        cap = math.inf if settings.promise.cap is None else settings.promise.cap
        estimate, spread = mean_estimator(settings.estimate), settings.promise.spread
        return Fleet(self.roster, randomizer, shuffler, cap, estimate, spread)

    def _graph(self) -> coo_array | None:
        """The relationships as a square matrix, so that devices without any count too."""
        if self.edges is None:
            return None
        n, place = len(self.roster), range(len(self.roster))
        ends = [column.replace_strict(self.roster, place, return_dtype=pl.Int64).to_numpy() for column in self.edges]
        return coo_array((np.ones(self.edges.height), tuple(ends)), shape=(n, n))


def read_stream(settings: RunConfig, *, table: Any = None) -> Stream:
    """Read and check a table with one row for each device and round.

    Raises
    ------
    DataError
        A missing or undeclared value, a stamp that is none or goes back, a device that stands in a round twice or
        changes a public column, a graph of other devices: counted, with the first places.
    """
    data = settings.data
    frame, _ = columns_of(table_of(data, table), data, numbers=settings.numbers)
    if frame.height == 0:
        raise DataError("the table has no rows.")
    assert data.person is not None and data.time is not None  # the configuration has been checked
    refuse_missing(frame[data.person], f"person column {data.person!r}")
    for name in data.public:
        refuse_missing(frame[name], f"public column {name!r}")
    values, _ = bounded(frame[data.private], float(data.lower or 0.0), float(data.upper or 0.0), clip=data.clip)
    device, time = frame[data.person].cast(pl.String).alias("device"), _stamps(frame[data.time])
    rows = pl.DataFrame([device, time, pl.Series("value", values)])
    _refuse_twice(rows, data)
    _refuse_backwards(rows, data)
    devices = pl.DataFrame([device, *frame.select(data.public)]).unique().sort("device")
    _refuse_changes(devices, data)
    roster = tuple(devices["device"].to_list())
    if (twice := names_of(devices["device"]).is_duplicated()).any():
        first = devices["device"].filter(twice)[0]
        raise DataError(f"person column {data.person!r} spells a device in two ways, such as {first!r}; use one.")
    graph = getattr(settings.shuffle, "graph", None)
    edges = None if graph is None else _edges(graph, roster)
    return Stream(rows.sort("time", "device"), roster, devices.select(data.public), edges)


def _stamps(column: pl.Series) -> pl.Series:
    refuse_missing(column, f"time column {column.name!r}")
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise DataError(
            f"time column {column.name!r} has type {column.dtype}; number the rounds 1, 2, .. (a step of a day "
            "or a minute each)."
        )
    numbers = pl.Series(numeric(column))
    wrong = (numbers != numbers.floor()) | (numbers < 1) | (numbers > 2**53)
    if wrong.any():
        rows = wrong.arg_true()
        raise DataError(
            f"time column {column.name!r}: "
            f"{counted(len(rows), 'stamp is no whole number', 'stamps are not whole numbers')} "
            f"1, 2, .. of rounds ({at_rows(rows)}: {numbers[rows[0]]:g})."
        )
    return numbers.cast(pl.Int64).alias("time")


def _refuse_twice(rows: pl.DataFrame, data: DataSection) -> None:
    repeated = rows.select("device", "time").is_duplicated()
    if repeated.any():
        first = repeated.arg_true()
        raise DataError(
            f"{counted(len(first), 'row gives', 'rows give')} a device of {data.person!r} more than one value in a "
            "round "
            f"({at_rows(first)}: {rows['device'][first[0]]!r} in round {rows['time'][first[0]]}); keep one row each."
        )


def _refuse_backwards(rows: pl.DataFrame, data: DataSection) -> None:
    """A device whose clock was set back would be put into rounds that are not its own."""
    back = rows.select((pl.col("time").diff() < 0).over("device").fill_null(value=False)).to_series()
    if back.any():
        first = back.arg_true()
        raise DataError(
            f"time column {data.time!r} goes back in {counted(len(first), 'row')} of a device "
            f"({at_rows(first)}: {rows['device'][first[0]]!r}, to {rows['time'][first[0]]}); if the stamps are "
            "right, "
            "sort the table by time."
        )


def _refuse_changes(devices: pl.DataFrame, data: DataSection) -> None:
    changing = devices["device"].is_duplicated()
    if changing.any():
        names = devices["device"].filter(changing)
        raise DataError(
            f"{counted(names.n_unique(), 'device changes', 'devices change')} a public column "
            f"({', '.join(data.public)}) from row to row, first "
            f"{names[0]!r}; public facts about a device stay the same in a stream."
        )


def _edges(path: str, roster: tuple[str, ...]) -> pl.DataFrame:
    """The first two columns of an edge list, as names on the roster."""
    edges = read_pairs(path)
    for column in edges:
        unknown = column.filter(~column.is_in(list(roster)))
        if len(unknown):
            raise DataError(
                f"{path}: {counted(unknown.n_unique(), 'device of the graph is', 'devices of the graph are')} not in "
                f"the table, first "
                f"{unknown[0]!r}."
            )
    return edges


# How many reports were shuffled together in each round, and what all rounds together promise after shuffling.


ALONE = "in some round somebody is shuffled with nobody else: there the local guarantee is all there is"


@dataclass(frozen=True, eq=False)
class Batches:
    """Sizes of the uniformly shuffled batches of all rounds.

    Parameters
    ----------
    sizes : data frame with the columns group, time, n
        One row for each group and round with at least one report.
    n, honest : int
        People on the roster, and how many of them are assumed honest; the others may sit in any batch.
    """

    sizes: pl.DataFrame
    n: int
    honest: int

    @classmethod
    def of(cls, shuffler: Shuffler, sent: pl.DataFrame, *, honest: int | None) -> Batches | Missing:
        """Batches of the reports `sent` (place, time), where the shuffler is uniform inside disjoint groups."""
        size = smallest_batch(shuffler)
        if isinstance(size, Missing):
            return size
        label = shuffler.exchangeable_blocks()
        assert label is not None  # there is a smallest batch
        group = pl.Series("group", label[sent["place"].to_numpy()])
        sizes = sent.with_columns(group).group_by("group", "time").agg(n=pl.len())
        return cls(sizes, shuffler.n, shuffler.n if honest is None else honest)

    @property
    def absent(self) -> int:
        """People that are not assumed honest."""
        return self.n - self.honest

    @property
    def smallest(self) -> int:
        """Reports in the smallest batch of any round."""
        return int(self.sizes["n"].min())  # type: ignore[arg-type]

    @property
    def alone(self) -> int:
        """Reports that were shuffled with no other."""
        return int((self.sizes["n"] == 1).sum())

    @property
    def counted(self) -> dict[int, int]:
        """The n of the central guarantee in each round: honest reports in its smallest batch, really sent."""
        least = self.sizes.group_by("time").agg(pl.col("n").min())
        return {t: max(1, n - self.absent) for t, n in least.select("time", "n").iter_rows()}

    def of_a_round(self, randomizer: Randomizer, *, delta: float) -> CentralDP | Missing:
        """(epsilon, delta) of a round, quoted at the smallest batch of any."""
        if self.smallest == 1:
            return Missing(ALONE)
        return amplify(randomizer, n=self.smallest, delta=delta, honest=max(1, self.smallest - self.absent))

    def of_all_rounds(self, randomizer: Randomizer, *, most: int, delta: float) -> CentralDP | Missing:
        """(epsilon, delta) about all values of one device that sent at most `most` reports: the rounds compose."""
        one, profile = randomizer.guarantee, self._profile(most)
        everybody = _composed(randomizer, profile, delta)
        honest = _composed(randomizer, np.maximum(1, profile - self.absent), delta) if self.absent else everybody
        if everybody.epsilon is None or honest.epsilon is None:
            return Missing(honest.reason or everybody.reason)
        return CentralDP(
            all=min(everybody.epsilon, honest.epsilon),
            honest=honest.epsilon,
            colluding=most * one.epsilon,
            delta=delta,
            n=self.n,
            honest_n=self.honest,
            method=honest.method,
            source=honest.source,
            numeric=Bracket(honest.lower or 0.0, honest.epsilon),
            attack_lower=0.0,
            neighbours="replace all values of one device",
        )

    def _profile(self, most: int) -> NDArray[np.int64]:
        """Sizes (at most `most`,) of batches that are no larger than those of any device, smallest first.

        Place by place the smallest over the groups, each with its own batches in ascending order: fewer people and
        more rounds only weaken the promise. Rounded down to powers of two, so that few different rounds compose.
        """
        ordered = self.sizes.sort("group", "n").with_columns(rank=pl.int_range(pl.len()).over("group"))
        worst = ordered.filter(pl.col("rank") < most).group_by("rank").agg(pl.col("n").min()).sort("rank")
        sizes = np.minimum.accumulate(worst["n"].to_numpy()[::-1])[::-1]
        return 2 ** np.floor(np.log2(sizes)).astype(np.int64)


def _composed(randomizer: Randomizer, sizes: NDArray[np.int64], delta: float) -> Composition:
    def rounds(n: int, times: int) -> ShuffledRound:
        return ShuffledRound.of(randomizer, n, times=times)

    try:
        return compose_upper([rounds(n, times) for n, times in Counter(sizes.tolist()).items()], delta=delta)
    except UnsupportedError:  # too different for one grid: all of them like the smallest
        return compose_upper([rounds(int(sizes.min()), len(sizes))], delta=delta)


# The rounds of a stream as the report tells them: the series of estimates, the windows, and what they cost.


NO_CAP = "no cap was set: a device may report in every round"
NO_SPREAD = "a device answers in every round until its cap is reached"
SILENT = "every device that had a value has spent its budget"


def sent_of(stream: Stream, budget: FleetBudget) -> pl.DataFrame:
    """Who reports in which round (place, time, value), given turns and budgets: public but for the value."""
    place = stream.rows["device"].replace_strict(stream.roster, range(len(stream.roster)), return_dtype=pl.Int64)
    due = budget.due(place.to_numpy(), stream.rows["time"].to_numpy())
    return stream.rows.with_columns(place=place).filter(pl.Series(due)).drop("device")


def most_sent(sent: pl.DataFrame) -> int:
    """Reports of the device that sends the most."""
    return int(sent["place"].value_counts()["count"].max())  # type: ignore[arg-type]


def true_means(sent: pl.DataFrame) -> dict[int, float]:
    """Mean of the values behind the reports of each round, for rehearsals."""
    means = sent.group_by("time").agg(pl.col("value").mean())
    return dict(zip(means["time"].to_list(), means["value"].to_list(), strict=True))


def rounds_document(
    settings: RunConfig, run: FleetRun, sent: pl.DataFrame, truth: dict[int, float] | None, *, provenance: str
) -> dict[str, Any]:
    """The series of estimates, and what a round and all of them cost."""
    fleet, facts = run.fleet, run.summary()
    batches = Batches.of(fleet.shuffler, sent, honest=settings.promise.honest)
    once = fleet.randomizer.guarantee.drawn_from(provenance)
    central: Any = batches
    if isinstance(batches, Batches):
        central = batches.of_a_round(fleet.randomizer, delta=settings.promise.delta)
        central = central if isinstance(central, Missing) else central.drawn_from(provenance)
    first, last = run.rounds[0].t, run.last
    own = {f"{name}_of_a_round": value for name, value in fleet.shuffler.facts().items()}
    return {
        **facts,
        **own,
        "first": first,
        "last": last,
        "missing": last - first + 1 - len(run.rounds),
        "silent": sum(each.estimate is None for each in run.rounds),
        "alone": batches.alone if isinstance(batches, Batches) else batches,
        "smallest_batch": batches.smallest if isinstance(batches, Batches) else batches,
        "cap": Missing(NO_CAP) if math.isinf(fleet.cap) else fleet.cap,
        "local_of_a_round": {"epsilon": once.epsilon, "delta": once.delta, "source": once.source},
        "central_of_a_round": central_document(central),
        "spread": Missing(NO_SPREAD) if fleet.spread is None else fleet.spread,
        "series": _series(run, truth, batches),
    }


def _series(run: FleetRun, truth: dict[int, float] | None, batches: Batches | Missing) -> dict[str, list[Any]]:
    """Column by column; null where no device had budget left, and for the n of a central promise where there is none.

    `value` and `unbiased_interval` are unbiased and may lie outside the public range; `possible` and `interval` are
    what lies in it.
    A local promise counts reports of one device; the central one counts those it hides among.
    """
    table = run.estimates()
    found = [each.estimate for each in run.rounds if each.estimate is not None]
    estimates = Estimate(
        value=np.array([float(each.value) for each in found]),
        standard_error=np.array([float(each.standard_error) for each in found]),
        n=None,
        population_error=np.array([float(each.population_error) for each in found]),
        bias_bound=np.array([float(each.bias_bound) for each in found]),
    )
    ends = iter(np.column_stack(estimates.interval(LEVEL)).tolist())
    columns: dict[str, list[Any]] = {name: table[name].to_list() for name in table.columns}
    columns["unbiased_interval"] = [None if value is None else next(ends) for value in columns["value"]]
    inside = [
        None if value is None else _shown(run, value, ends)
        for value, ends in zip(columns["value"], columns["unbiased_interval"], strict=True)
    ]
    columns["possible"] = [None if each is None else each[0] for each in inside]
    columns["interval"] = [None if each is None else each[1] for each in inside]
    columns["bias_bound"] = [None if each.estimate is None else float(each.estimate.bias_bound)
                             for each in run.rounds]  # fmt: skip
    counted = {} if isinstance(batches, Missing) else batches.counted
    columns["central_n"] = [counted.get(t) for t in columns["t"]]
    return columns if truth is None else columns | {"truth": [truth.get(t) for t in columns["t"]]}


def _shown(run: FleetRun, value: float, ends: list[float]) -> tuple[float, list[float]]:
    """The nearest mean that is possible, and what of the interval is."""
    span = (run.fleet.randomizer.lower, run.fleet.randomizer.upper)
    possible, interval = in_range(value, (ends[0], ends[1]), span)
    return possible, list(interval)


def windows_document(run: FleetRun, width: int | None, truth: dict[int, float] | None) -> dict[str, Any] | Missing:
    """Windows side by side, counted back from the last round.

    Raises
    ------
    ConfigError
        For a window that is longer than the stream.
    """
    if width is None:
        return Missing("no window was asked for: [estimate] window is the number of rounds in one")
    first, last = run.rounds[0].t, run.last
    if width > last - first + 1:
        raise ConfigError(
            f"`estimate.window` must be at most the {last - first + 1:,} rounds from {first:,} to {last:,}, "
            f"got {width:,}."
        )
    ends = range(last, first + width - 2, -width)
    have = {each.t for each in run.rounds if each.estimate is not None}
    return {
        "width": width,
        "level": LEVEL,
        "rows": [_window(run, end, width, have, truth) for end in reversed(ends)],
    }


def _window(run: FleetRun, end: int, width: int, have: set[int], truth: dict[int, float] | None) -> dict[str, Any]:
    stamps = range(end - width + 1, end + 1)
    row: dict[str, Any] = {"from": stamps[0], "to": end}
    inside = [t for t in stamps if t in have]
    if not inside:
        none = Missing("no round of this window has an estimate")
        numbers = ("value", "possible", "standard_error", "interval", "unbiased_interval")
        return {**row, **dict.fromkeys(numbers, none), "n": 0, "missing": list(stamps)}
    answer = run.time_window(end, width=width)
    ends = [float(end) for end in answer.estimate.interval(LEVEL)]
    possible, inside_range = _shown(run, float(answer.estimate.value), ends)
    row |= {
        "value": float(answer.estimate.value),
        "possible": possible,
        "standard_error": float(answer.estimate.standard_error),
        "population_error": float(answer.estimate.population_error),
        "interval": inside_range,
        "unbiased_interval": ends,
        "n": answer.estimate.n,
        "missing": list(answer.missing),
    }
    return row if truth is None else row | {"truth": float(np.mean([truth[t] for t in inside]))}


# A stream as a release: what its devices spent before, which rounds left already, and what the ledger says of it.


@dataclass(frozen=True, eq=False)
class StreamRelease:
    """All rounds of a table as one release."""

    settings: RunConfig
    stream: Stream
    fleet: Fleet
    ledger: ReleaseLedger

    @cached_property
    def _entries(self) -> list[LedgerEntry]:
        """All releases until now; later ones make this one void."""
        return self.ledger.entries()

    @cached_property
    def _people(self) -> list[str]:
        return names_of(pl.Series(self.stream.roster)).to_list()

    @cached_property
    def _public(self) -> bytes:
        stream = self.stream
        edges = b"" if stream.edges is None else canonical(stream.edges)
        return canonical(pl.DataFrame([pl.Series("device", stream.roster), *stream.public])) + edges

    @cached_property
    def _table(self) -> bytes:
        return canonical(self.stream.rows)

    @cached_property
    def _terms(self) -> bytes:
        return terms(self.settings) + self._public

    def spent_before(self, *, new_release: bool) -> list[Fraction]:
        """Nats of each device in all releases before this one, which may have been made already."""
        made = None if new_release else self.ledger.find(self._table, self._terms, self._entries)
        earlier = [entry for entry in self._entries if made is None or entry.number < made.number]
        return self.ledger.spent(self._people, earlier)

    def due(self, budget: FleetBudget) -> pl.DataFrame:
        """Who reports in which round, which must be somebody."""
        sent = sent_of(self.stream, budget)
        if not sent.height:
            raise UnsupportedError(
                f"every device of this stream has spent its cap of {self.fleet.cap:g} nats in earlier releases, or "
                "has no turn here: nothing is left to release. A larger `promise.cap` is a weaker promise."
            )
        return sent

    def draw(self, sent: pl.DataFrame, draw: Callable[[], pl.DataFrame], *, new_release: bool) -> ReleasedTable:
        """The recorded release of this stream, or a fresh one of rounds that never left before."""
        answer = self.ledger.answer(self._request(sent), new_release=new_release, draw=draw)
        reports = from_columns(self.fleet.randomizer, answer.reports, None)
        spent = max(self.ledger.spent(self._people, self.ledger.entries()))
        total = LocalDP(
            round_up_to_double(spent),
            source=f"{len(answer.history):,} releases: what the device that spent most sent in all of them adds up",
        )
        return ReleasedTable.of(answer, reports, public=self.stream.public.clear(), total=total)

    def _request(self, sent: pl.DataFrame) -> ReleaseRequest:
        section, epsilon = self.settings.shuffle.groups, self.fleet.randomizer.guarantee.epsilon
        place, alpha = sent["place"].to_numpy(), self.fleet.shuffler.guarantee.alpha
        times = self.stream.rows["time"].n_unique()
        return ReleaseRequest(
            table=self._table,
            terms=self._terms,
            groups=(b"" if section is None else section.model_dump_json().encode()) + self._public,
            people=self._people,
            epsilon=round_up_to_double(cost(most_sent(sent), epsilon)),
            alpha=alpha if np.isinf(alpha) else round_up_to_double(times * Fraction(alpha)),
            n=sent.height,
            shuffler=self.settings.shuffle.shuffler,
            unit=epsilon,
            sent=np.bincount(place, minlength=len(self._people)),
            rounds=round_names(
                self.settings.data.private,
                ((self._people[who], t) for who, t in zip(place.tolist(), sent["time"].to_list(), strict=True)),
            ),
            after=max((entry.number for entry in self._entries), default=0),
        )


# Every metric of a stream: what all rounds together promise and teach, and what does not apply.


_ATTACK = "re-identification needs a history of known senders: see `dovetail attack reidentify`"
_LEAKAGE = "exact leakage is for categories, and the private column of a stream is a number"
_NO_GROUPS = "a stream is estimated round by round, not by public group"


def evaluate_stream(
    settings: RunConfig,
    run: FleetRun,
    batches: dict[int, Reports],
    sent: pl.DataFrame,
    truth: dict[int, float] | None,
    rng: Entropy,
) -> Evaluation:
    """Evaluate all rounds together: what they promise, leak and teach."""
    first = run.rounds[0].t
    whole = run.time_window(run.last, width=run.last - first + 1).estimate
    known = None if truth is None else [float(np.mean(list(truth.values())))]
    chosen = chosen_mean(run.fleet.randomizer, max(batches.values(), key=len), settings.estimate)
    return Evaluation(
        shuffler=settings.shuffle.shuffler,
        local=run.guarantee,
        central=_central(settings, run.fleet, sent, rng),
        order=_order(run, rng),
        leakage=Missing(_LEAKAGE),
        estimates=Estimates(
            measure="mean",
            level=LEVEL,
            overall=shares_of(whole, ["mean"], known, span=span_of(run.fleet.randomizer)),
            groups=Missing(_NO_GROUPS),
            withheld=[],
            estimator=chosen | {"reason": f"in the largest round: {chosen['reason']}"},
        ),
        attacks=Missing(_ATTACK),
        learnability=Missing(_NO_GROUPS),
    )


def _central(settings: RunConfig, fleet: Fleet, sent: pl.DataFrame, rng: Entropy) -> CentralDP | Missing:
    """The guarantee of all rounds together for a device's values, where the shuffler is uniform inside groups."""
    batches = Batches.of(fleet.shuffler, sent, honest=settings.promise.honest)
    if isinstance(batches, Missing):
        return batches
    found = batches.of_all_rounds(fleet.randomizer, most=most_sent(sent), delta=settings.promise.delta)
    return found if isinstance(found, Missing) else found.drawn_from(rng.provenance)


def _order(run: FleetRun, rng: Entropy) -> OrderEvaluation:
    """Orders of different rounds are drawn independently, so their alphas add."""
    found, count = order_evaluation(run.fleet.shuffler, provenance=rng.provenance), len(run.rounds)
    one = found.guarantee
    source = f"{count:,} independent rounds add: [{one.source}]"
    return replace(found, guarantee=replace(one, alpha=run.order_cost(count), source=source))


# The sentences of a stream's report: what is assumed over many rounds, and what each step promises.


POST_PROCESSING = "Dwork and Roth (2014), The Algorithmic Foundations of Differential Privacy, Proposition 2.1"


def assumptions(
    settings: RunConfig, run: FleetRun, detail: dict[str, Any], evaluation: Evaluation
) -> tuple[str, ...]:
    """The assumptions under which the numbers mean what they say."""
    lines = [
        "Each device sends at most one report a round, and all use the same randomizer independently.",
        "The roster, the range, the grid and the groups are public knowledge, not read off the private column.",
        "Which devices have a value in which round is no secret: whether one reports depends on that and on how "
        "often it reported before, never on its value.",
        "A device's values are protected by its budget over all rounds; the order of the rows only hides which "
        "report of a round is whose. What stays the same for many rounds is learned a little better in each.",
    ]
    if run.fleet.spread is not None and run.fleet.most_reports < run.fleet.spread:
        lines.append(
            f"Each device answers in {run.fleet.most_reports:,} of every {run.fleet.spread:,} rounds. Which ones is "
            "read off its name: it is public, and nothing is claimed for it. Promises count the reports really sent."
        )
    if detail["spent_before"]:
        lines.append(
            f"Devices had spent up to ε = {upward(detail['spent_before'])} in earlier releases, by the private "
            "release ledger; the cap holds for all of them together, as far as that ledger remembers."
        )
    if isinstance(evaluation.central, CentralDP):
        lines.append(
            f"The shuffler keeps every order to itself, and {evaluation.central.honest_n:,} of the "
            f"{evaluation.central.n:,} devices follow the protocol, the others may sit in any batch; otherwise the "
            "local guarantee is all that remains."
        )
    if not isinstance(detail["alone"], Missing) and detail["alone"]:
        lines.append(
            f"{detail['alone']:,} of {detail['reports']:,} reports were the only ones of their group in their round: "
            "the order hides nothing about those."
        )
    if settings.data.clip:
        lines.append(
            "Numbers outside their bounds count as the nearest bound (`clip` = true), and means are those of the "
            "clipped numbers."
        )
    if settings.mode == "release":
        lines.append("All rounds together are one release; a later one about the same devices adds its budget to it.")
    return tuple(lines)


def steps(evaluation: Evaluation, fleet: Fleet, detail: dict[str, Any]) -> tuple[dict[str, str], ...]:
    """The stages with their guarantees and theorems."""
    once, alpha = fleet.randomizer.guarantee, detail["alpha_of_a_round"]
    local, order = evaluation.local, evaluation.order.guarantee
    return (
        {
            "stage": "randomize",
            "what": f"In each round each device with budget left answers through {fleet.randomizer.label}, "
            "before anything is sent.",
            "guarantee": f"({upward(once.epsilon)}, {upward(once.delta)})-local differential privacy a round, "
            f"({upward(local.epsilon)}, {upward(local.delta)}) over all rounds",
            "theorem": local.source,
        },
        {
            "stage": "shuffle",
            "what": "The shuffler reorders each round's batch "
            f"({label_of(SHUFFLERS, evaluation.shuffler)}) and never looks at the reports.",
            "guarantee": "no order promise"
            if alpha == float("inf")
            else f"order privacy alpha = {upward(alpha)} a round, {upward(order.alpha)} over all",
            "theorem": "; ".join(
                [order.source] + ([evaluation.central.source] if isinstance(evaluation.central, CentralDP) else [])
            ),
        },
        {
            "stage": "estimate",
            "what": "The mean of each round is estimated and stored; a window is the mean of its rounds' estimates.",
            "guarantee": "post-processing: costs no privacy",
            "theorem": POST_PROCESSING,
        },
    )


def run_stream(
    settings: RunConfig, rng: Entropy, ledger: ReleaseLedger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    """All rounds of a table: drawn (or, for a release, drawn once and recorded), estimated and accounted for."""
    stream = read_stream(settings, table=table)
    n, honest = len(stream.roster), settings.promise.honest
    if honest is not None and honest > n:
        raise ConfigError(f"`promise.honest` must be at most the {n:,} devices of the table, got {honest:,}.")
    fleet, time = stream.fleet(settings), str(settings.data.time)
    if settings.mode == "release":
        refuse_identity_shuffle(fleet.shuffler)
        asked = StreamRelease(settings, stream, fleet, ledger)
        before = asked.spent_before(new_release=new_release)
        run = FleetRun(fleet, before=before)
        sent = asked.due(run.budget)
        released = asked.draw(
            sent, lambda: _draw(stream, FleetRun(fleet, before=before), time, rng, progress), new_release=new_release
        )
        batches = _batches(fleet, released.table, time)
    else:
        released, run = None, FleetRun(fleet)
        sent = sent_of(stream, run.budget)
        batches = _batches(fleet, _draw(stream, FleetRun(fleet), time, rng, progress), time)
    run.replay_table(stream.rows, batches, simulated=rng.provenance == "simulation")
    return _report(settings, stream, run, batches, sent, rng, released)


def _draw(stream: Stream, run: FleetRun, time: str, rng: Entropy, progress: Progress) -> pl.DataFrame:
    """The reports of all rounds in their released order, beside their stamps."""
    parts: list[tuple[int, Reports]] = []
    run.submit_table(
        stream.rows, rng=rng,
        released=lambda t, batch: parts.append((t, batch)),
        progress=lambda done, total: progress("rounds", done, total),
    )  # fmt: skip
    reports = to_columns(run.fleet.randomizer, np.concatenate([batch for _, batch in parts]), None)
    stamps = np.repeat([t for t, _ in parts], [len(batch) for _, batch in parts])
    return pl.DataFrame([pl.Series(time, stamps, dtype=pl.Int64), *reports])


def _batches(fleet: Fleet, table: pl.DataFrame, time: str) -> dict[int, Reports]:
    """The reports of each round."""
    reports = from_columns(fleet.randomizer, table, None)
    stamps, starts = np.unique(table[time].to_numpy(), return_index=True)
    return dict(zip(stamps.tolist(), np.split(reports, starts[1:]), strict=True))


def _report(
    settings: RunConfig,
    stream: Stream,
    run: FleetRun,
    batches: dict[int, Reports],
    sent: pl.DataFrame,
    rng: Entropy,
    released: ReleasedTable | None,
) -> PrivacyReport:
    fleet, data = run.fleet, settings.data
    truth = None if released is not None else true_means(sent)
    evaluation = evaluate_stream(settings, run, batches, sent, truth, rng)
    detail = rounds_document(settings, run, sent, truth, provenance=rng.provenance)
    windows = windows_document(run, settings.estimate.window, truth)
    if released is not None:
        evaluation = released.compose(evaluation)
    return report_of(
        settings.title or f"Stream of {data.private}", evaluation, released, rng,
        collection={"n": len(stream.roster), "private": data.private, "public": list(data.public), "kind": "numeric",
                    "lower": data.lower, "upper": data.upper},
        randomizer=randomizer_document(fleet.randomizer),
        assumptions=assumptions(settings, run, detail, evaluation),
        steps=steps(evaluation, fleet, detail),
        config=settings.model_dump(
            mode="json", exclude={"data": UNPUBLISHED, "shuffle": set(files_of(settings.shuffle)), "seed": True}
        ),
        sanitized_description=describe_reports(fleet.randomizer, None, rng.provenance),
        rounds=detail,
        windows=windows,
    )  # fmt: skip
