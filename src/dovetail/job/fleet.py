"""Streams: a fleet of devices reports round after round; each round is randomized, shuffled and estimated."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import not_negative_or_infinite, real, refuse, whole
from dovetail.core.display import counted, mute
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.extras import pl
from dovetail.core.guarantee import LocalDP
from dovetail.core.progress import Tick, no_tick
from dovetail.core.stages import NumericRandomizer, Reports, Shuffler
from dovetail.estimate.mean import estimate_mean
from dovetail.ledger.releases import LedgerEntry, ReleaseLedger, ReleaseRequest
from dovetail.shuffle.fitting.fitted_shuffler import Present, sort_to_roster
from dovetail.table.reader import as_frame
from dovetail.table.released import to_columns
from dovetail_protocol.budget import NOTHING, affordable, cost, decimal_at_least, round_up_to_double

# A fleet: who reports what, with how much noise, in which order, and for how long.


MOST_SPREAD = 1 << 31


@mute
@dataclass(frozen=True)
class Fleet:
    """Who reports what, with how much noise, for how long.

    Parameters
    ----------
    roster : sequence of names, or of whole numbers, each once
        The public list of devices: their places in every round.
    randomizer : NumericRandomizer
        Runs on the device; the same for all of them.
    shuffler : fitted for the roster, such as `RASE.fit(groups)`
    cap : float, nats
        A device stops reporting before its epsilons, as decimals, add up to more than this. `math.inf` is no cap.
    estimate : function of (randomizer, reports)
        The fusion center's estimator of the mean.
    spread : int, rounds, optional
        Rounds over which a device spreads the reports that its cap pays for, instead of falling silent with all
        others when it is spent: it answers in a public random subset of them, see `turns`.

    Raises
    ------
    ParameterError
        For a cap or spread outside its range.
    DataError
        For a name that occurs twice, and for a shuffler fitted for another number of devices.

    Examples
    --------
    >>> from dovetail.randomize.laplace import Laplace
    >>> from dovetail.shuffle.uniform import Uniform
    >>> laplace = Laplace(lower=0.0, upper=1.0, epsilon=0.5)
    >>> Fleet(roster=("a", "b", "c"), randomizer=laplace, shuffler=Uniform(3), cap=5.0).cap
    5.0
    """

    roster: tuple[str, ...] | tuple[int, ...]
    randomizer: NumericRandomizer
    shuffler: Shuffler
    cap: float
    estimate: Callable[[Any, Reports], Estimate] = estimate_mean
    spread: int | None = None

    def __post_init__(self) -> None:
        given: Any = self.roster
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise DataError(f"`roster` must be a sequence of names, got {type(given).__name__}.")
        roster: tuple[Any, ...] = tuple(each.item() if isinstance(each, np.generic) else each for each in given)
        kinds = {type(each) for each in roster}
        if kinds not in ({str}, {int}):
            got = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nobody"
            raise DataError(f"`roster` must name devices by text, or all of them by whole numbers, got {got}.")
        if len(set(roster)) != len(roster):
            raise DataError(f"`roster` must name each device once; {len(roster) - len(set(roster)):,} are repeated.")
        if self.shuffler.n != len(roster):
            raise DataError(f"`shuffler` must be fitted for the {len(roster):,} devices, got {self.shuffler.n:,}.")
        cap, epsilon = not_negative_or_infinite("cap", self.cap), self.randomizer.guarantee.epsilon
        if cap < epsilon:
            raise refuse("cap", f"at least the {epsilon:g} nats of one report", self.cap)
        if self.spread is not None:
            whole("spread", self.spread, least=1, most=MOST_SPREAD)
        object.__setattr__(self, "roster", roster)
        object.__setattr__(self, "cap", cap)

    @cached_property
    def places(self) -> dict[Any, int]:
        """The place of each device on the roster."""
        return {device: place for place, device in enumerate(self.roster)}

    @property
    def most_reports(self) -> float:
        """Reports that one device may send: cap / epsilon, rounded down exactly, as devices of a campaign count."""
        return math.inf if math.isinf(self.cap) else affordable(self.cap, self.randomizer.guarantee.epsilon)

    def turns(self, places: ArrayLike, stamps: ArrayLike) -> NDArray[np.bool_]:
        r"""True where the device at each of these places answers in the round with the stamp beside it.

        .. math:: ((t - 1)\, m + o_i) \bmod T < m

        for the m reports that the cap pays for, T = `spread` and a start o_i below T that is read off the SHA-256 of
        the device's name: exactly m of any T rounds in a row, as evenly as can be, and as many devices in each round
        as in any other but for chance. It is public, so that it hides nobody and nothing is claimed for it.
        """
        place, t = np.asarray(places, np.int64), np.asarray(stamps, np.int64)
        if self.spread is None or self.most_reports >= self.spread:
            return np.ones(np.broadcast(place, t).shape, dtype=np.bool_)
        most = int(self.most_reports)
        turn: NDArray[np.bool_] = ((t - 1) % self.spread * most + self._starts[place]) % self.spread < most
        return turn

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where each device begins, from its name alone."""
        assert self.spread is not None
        digests = (sha256(f"dovetail turn\0{device}".encode()).digest()[:16] for device in self.roster)
        return np.array([int.from_bytes(digest, "big") % self.spread for digest in digests], dtype=np.int64)


# What devices say in their rounds, checked: known devices, once a round, numbers in the range, forward in time.


Values = NDArray[np.float64]  # (n,)
Places = NDArray[np.int64]  # (n,), on the roster
RoundValues = tuple[int, Places, Values]  # stamp, who has a value, and the values, in roster order

_LAST = (1 << 63) - 1  # a stamp is an int64 in tables


def next_stamp(t: int, last: int) -> int:
    """`t` as the stamp of a round after the round `last`."""
    t = whole("t", t, least=1, most=_LAST)
    if t <= last:
        raise DataError(f"`t` must be above {last:,}, the last round, got {t:,}: time goes forward.")
    return t


def values_on_roster(fleet: Fleet, values: Mapping[Any, float]) -> tuple[Present, Values]:
    """Who has a value, and the values in roster order."""
    unknown = [device for device in values if device not in fleet.places]
    if unknown:
        raise DataError(
            f"{counted(len(unknown), 'device is', 'devices are')} not on the roster, first {unknown[0]!r}."
        )
    x = np.array([_number(value) for value in values.values()], dtype=np.float64)
    _refuse_outside(fleet, "values", x, list(values))
    places = np.array([fleet.places[device] for device in values], np.int64)
    return sort_to_roster(places, x, n=len(fleet.roster))


def split_rounds(
    fleet: Fleet, frame: pl.DataFrame, *, device: str, time: str, value: str, last: int
) -> list[RoundValues]:
    """The rounds of a table with these columns, all after the round `last`; every row is checked first."""
    for name in (device, time, value):
        _refuse_empty(frame, name)
    stamps, x = _stamps(frame[time], last), _values(fleet, frame[value], frame[device])
    rows = pl.DataFrame({"t": stamps, "place": _places(fleet, frame[device]), "x": x}).sort("t", "place")
    times, places, values = (column.to_numpy() for column in rows)
    _refuse_repeated(fleet, times, places)
    bounds = [0, *(1 + np.flatnonzero(np.diff(times))).tolist(), times.size]
    return [(int(times[start]), places[start:stop], values[start:stop]) for start, stop in pairwise(bounds)]


def _refuse_empty(frame: pl.DataFrame, name: str) -> None:
    if name not in frame.columns:
        raise DataError(f"the table has no column {name!r}.")
    empty = frame[name].null_count()
    if empty:
        raise DataError(f"column {name!r} must have no empty cells, got {empty:,}.")


def _stamps(time: pl.Series, last: int) -> pl.Series:
    if not time.dtype.is_integer():
        raise DataError(f"column {time.name!r} must hold whole-number stamps 1, 2, .. of rounds, got {time.dtype}.")
    if not len(time):
        raise DataError("the table has no rows.")
    next_stamp(int(time.min()), last)  # type: ignore[arg-type]
    next_stamp(int(time.max()), last)  # type: ignore[arg-type]
    return time.cast(pl.Int64)


def _values(fleet: Fleet, value: pl.Series, device: pl.Series) -> pl.Series:
    if not value.dtype.is_numeric():
        raise DataError(f"column {value.name!r} must hold numbers, got {value.dtype}.")
    x = value.cast(pl.Float64)
    _refuse_outside(fleet, value.name, x.to_numpy(), device)
    return x


def _places(fleet: Fleet, device: pl.Series) -> pl.Series:
    roster = pl.Series(fleet.roster)
    try:
        if device.dtype == pl.Boolean:  # polars would compare with 0 and 1
            raise pl.exceptions.SchemaError
        places = device.replace_strict(roster, range(len(roster)), default=None, return_dtype=pl.Int64)
    except pl.exceptions.PolarsError:
        raise DataError(f"devices must be {roster.dtype} as on the roster, got {device.dtype}.") from None
    unknown = device.filter(places.is_null())
    if len(unknown):
        raise DataError(
            f"{counted(len(unknown), 'row names', 'rows name')} devices that are not on the roster, first "
            f"{unknown[0]!r}."
        )
    return places


def _refuse_outside(fleet: Fleet, name: str, x: Values, devices: Any) -> None:
    """Values outside the range are refused by the names of their devices: an error tells nobody's value."""
    lower, upper = fleet.randomizer.lower, fleet.randomizer.upper
    bad = np.flatnonzero(~((x >= lower) & (x <= upper)))  # NaN too
    if bad.size:
        raise DataError(
            f"`{name}` must be numbers in [{lower!r}, {upper!r}]; {bad.size:,} of {x.size:,} are not, the first "
            f"of device {devices[int(bad[0])]!r}."
        )


def _refuse_repeated(fleet: Fleet, times: Places, places: Places) -> None:
    """Stamps and places, sorted, of which no pair may stand twice."""
    twice = (np.diff(times) == 0) & (np.diff(places) == 0)
    if twice.any():
        first = int(np.flatnonzero(twice)[0])
        raise DataError(
            f"a device must report once a round; {counted(int(twice.sum()), 'row repeats', 'rows repeat')} one, "
            "the first "
            f"{fleet.roster[places[first]]!r} in round {times[first]}."
        )


def _number(value: Any) -> float:
    """`value` as a finite float; NaN for anything else."""
    try:
        return real("value", value)
    except (ParameterError, OverflowError):
        return math.nan


# The budgets of a fleet: what each device has spent, and which of its values it may still report.


MOST_REPORTS = (1 << 63) - 1  # of a device without a cap


class FleetBudget:
    """Spending of all devices of a fleet, in exact decimals.

    before : sequence of Fraction (n,), nats, optional
        Spent in earlier releases; default nothing.
    """

    def __init__(self, fleet: Fleet, before: Sequence[Fraction] | None = None) -> None:
        n = len(fleet.roster)
        if before is not None and len(before) != n:
            raise DataError(f"`before` must hold a number for each of the {n:,} devices, got {len(before):,}.")
        self._fleet = fleet
        self.sent: NDArray[np.int64] = np.zeros(n, dtype=np.int64)  # reports of each device in this run
        self._before = [NOTHING] * n
        self.add(self._before if before is None else before)

    def add(self, more: Sequence[Fraction]) -> None:
        """Count what was spent elsewhere."""
        cap, epsilon = self._fleet.cap, self._fleet.randomizer.guarantee.epsilon
        self._before = [before + nats for before, nats in zip(self._before, more, strict=True)]
        most = {
            spent: MOST_REPORTS if math.isinf(cap) else min(MOST_REPORTS, affordable(cap, epsilon, spent=spent))
            for spent in set(self._before)
        }
        self._most = np.array(
            [most[spent] for spent in self._before], dtype=np.int64
        )  # reports that this run may have

    def charge(self, senders: Places) -> None:
        """One report of each of these devices."""
        self.sent[senders] += 1

    def is_spent(self, places: Places) -> NDArray[np.bool_]:
        """Which of these devices have no budget left."""
        spent: NDArray[np.bool_] = self.sent[places] >= self._most[places]
        return spent

    def allows(self, t: int, places: Places) -> NDArray[np.bool_]:
        """Who of these has budget left, and whose turn it is in round t."""
        return ~self.is_spent(places) & self._fleet.turns(places, t)

    def due(self, places: Places, stamps: Places) -> NDArray[np.bool_]:
        """Which of all values from now on, in order of time, will be reported."""
        turn = self._fleet.turns(places, stamps)
        mine = pl.DataFrame({"place": places[turn]})
        rank = mine.select(pl.int_range(pl.len()).over("place")).to_series().to_numpy()
        due = np.zeros(turn.size, dtype=np.bool_)
        due[turn] = self.sent[places[turn]] + rank < self._most[places[turn]]
        return due

    @property
    def largest_before(self) -> float:
        """Nats of the device that had spent the most elsewhere, rounded up."""
        return decimal_at_least(max(self._before))

    @property
    def promised(self) -> float:
        """Nats of the device that has spent the most, here and elsewhere, as the double of a promise: rounded up."""
        spent, largest = self._exact(), self._fleet.randomizer.guarantee.epsilon
        return largest if spent is None else round_up_to_double(max(spent))

    def totals(self) -> list[float]:
        """Nats of each device, here and elsewhere, in decimals as budgets are written."""
        spent, infinite = self._exact(), self._fleet.randomizer.guarantee.epsilon
        if spent is None:
            return [infinite if sent else 0.0 for sent in self.sent.tolist()]
        decimal = {nats: decimal_at_least(nats) for nats in set(spent)}
        return [decimal[nats] for nats in spent]

    def _exact(self) -> list[Fraction] | None:
        """Nats of each device; None where somebody has reported without noise."""
        epsilon = self._fleet.randomizer.guarantee.epsilon
        if math.isinf(epsilon):
            return None if self.sent.any() else list(self._before)
        return [before + cost(sent, epsilon) for before, sent in zip(self._before, self.sent.tolist(), strict=True)]


# The rounds of a fleet in the private release ledger: what was spent elsewhere, and what must not be drawn twice.


class FleetLedger:
    """One run's view of a ledger; every round that it adds is a release of its own."""

    def __init__(self, fleet: Fleet, ledger: ReleaseLedger, about: str) -> None:
        self._fleet, self._ledger, self._about = fleet, ledger, about
        self._people = [str(device) for device in fleet.roster]
        self._seen = 0  # number of the last release that is counted
        self._others: list[LedgerEntry] = []  # releases of other runs, whose rounds are not drawn again

    def news(self) -> list[Fraction]:
        """Nats that each device spent in releases since this was last asked, less those that were added here."""
        fresh = self._ledger.entries(after=self._seen)
        self._seen = max((entry.number for entry in fresh), default=self._seen)
        self._others += fresh
        return self._ledger.spent(self._people, fresh) if fresh else [NOTHING] * len(self._people)

    def refuse_released(self, t: int, senders: Places) -> None:
        """A round that was released before is not drawn again."""
        known = int(self._ledger.known(self._rounds(t, senders), self._others).sum())
        if known:
            raise UnsupportedError(
                f"round {t} was released before, with {known:,} of these devices; the next one has a later stamp."
            )

    def add(self, t: int, senders: Places, batch: Reports) -> None:
        """Record a round, before anybody sees its reports.

        Raises
        ------
        StorageError
            When it cannot be recorded, or somebody else has just recorded a release; then nothing leaves.
        """
        fleet, people = self._fleet, [self._people[place] for place in senders]
        self._seen = self._ledger.record(
            ReleaseRequest(
                table=json.dumps(["round", self._about, t, people]).encode(),
                terms=repr((fleet.randomizer, fleet.shuffler.name, fleet.cap, fleet.spread)).encode(),
                groups=json.dumps([fleet.shuffler.name, self._people]).encode(),
                people=people,
                epsilon=fleet.randomizer.guarantee.epsilon,
                alpha=fleet.shuffler.guarantee.alpha,
                n=len(batch),
                shuffler=fleet.shuffler.name,
                rounds=self._rounds(t, senders),
                after=self._seen,
            ),
            draw=lambda: to_columns(fleet.randomizer, np.asarray(batch), None),
        )

    def _rounds(self, t: int, senders: Places) -> list[str]:
        return round_names(self._about, ((self._people[place], t) for place in senders))


def round_names(about: str, reports: Iterable[tuple[str, int]]) -> list[str]:
    """The names by which a ledger knows reports: what they are about, of whom (device), in which round (stamp)."""
    return [json.dumps([about, device, t]) for device, t in reports]


# Window queries: the mean of the stored estimates of the latest rounds, with its standard error.


@dataclass(frozen=True)
class FleetRound:
    """One round as the fusion center keeps it.

    Parameters
    ----------
    t : int, at least 1
        The round's stamp.
    estimate : Estimate or None
        None when nobody could report, or the shuffler or the estimator failed.
    absent : int
        Devices of the roster that sent nothing.
    held_back : int
        Devices that had a value and did not report because their budget is spent.
    simulated : bool
        Whether the randomness came from a seed: such a round protects nobody.
    resting : int
        Devices that had a value and did not report because it was not their turn.
    """

    t: int
    estimate: Estimate | None
    absent: int
    held_back: int
    simulated: bool
    resting: int = 0


@dataclass(frozen=True)
class TimeWindow:
    """The answer to a window query.

    Parameters
    ----------
    t, width : int
        The window is t - width + 1 .. t.
    estimate : Estimate
        Its n counts the reports of all its rounds.
    missing : tuple of int
        Stamps in the window without an estimate; the mean is over the others.
    """

    t: int
    width: int
    estimate: Estimate
    missing: tuple[int, ...]


def time_window(rounds: Iterable[FleetRound], t: int, *, width: int) -> TimeWindow:
    r"""The mean of the estimates of the rounds t - width + 1 .. t.

    .. math:: \mathrm{Win}(t, w) = \frac1w \sum_{s = t-w+1}^{t} \hat\mu_s, \qquad
              \mathrm{se} = \frac1w \sqrt{\sum_s \mathrm{se}_s^2}

    over the w rounds that have an estimate; the others are named in `missing`. The noise of different rounds is
    independent. The people are the same, so the population error is the mean of the rounds' errors: an upper bound,
    reached when everybody's values stay as they are.

    Parameters
    ----------
    rounds : the rounds in the window, in any order, with others or without

    Raises
    ------
    DataError
        When no round in the window has an estimate.

    Source
    ------
    Wang, Tao, Zou, RASE, section III-A, Eq. (4) and below.
    """
    t, width = whole("t", t, least=1), whole("width", width, least=1)
    if width > t:
        raise DataError(f"`width` must be at most t = {t:,}, as rounds begin at 1, got {width:,}.")
    held = {each.t: each.estimate for each in rounds if t - width < each.t <= t and each.estimate is not None}
    if not held:
        raise DataError(f"no round from {t - width + 1:,} to {t:,} has an estimate.")
    parts = [held[s] for s in sorted(held)]
    errors = np.array([part.standard_error for part in parts])
    mean = Estimate(
        value=np.mean([part.value for part in parts], axis=0),
        standard_error=np.sqrt((errors**2).sum(axis=0)) / len(parts),
        n=sum(part.n for part in parts),
        population_error=np.mean([part.population_error for part in parts], axis=0),
        bias_bound=np.mean([part.bias_bound for part in parts], axis=0),
    )
    missing = tuple(s for s in range(t - width + 1, t + 1) if s not in held)
    return TimeWindow(t, width, mean, missing)


class FleetRun:
    r"""The rounds of one fleet, one after the other, and the window queries about them.

    A round is a stamp t = 1, 2, ..: every device with budget left randomizes its value, the shuffler releases the
    batch in an order that tells nothing inside a group, and the estimate is stored. Reports are not kept. Each
    report costs its device epsilon (basic composition):

    .. math:: b_i + \epsilon \cdot \#\{s \le t : i \text{ reported in round } s\} \le \mathrm{cap}

    after b_i in earlier releases. Whether a device reports depends on how often it did before and on its turn, never
    on its value.

    Parameters
    ----------
    fleet : Fleet
    before : sequence of Fraction (n,), nats, optional
        What each device of the roster has spent already; default what the ledger says, or nothing.
    ledger : ReleaseLedger, optional
        Spending begins there, and each round is recorded there before its reports leave: several runs, one after the
        other or at once, keep one cap. What a device said in a round of an earlier run is not drawn again.
    about : str
        What the values are, so that the ledger tells the rounds of one quantity from those of another: the name of
        the private column.

    Raises
    ------
    DataError
        For rounds that do not go forward, and for values and spent budgets that are not those of the fleet's devices.
    UnsupportedError
        For simulated draws into a ledger.

    Notes
    -----
    A refused round changes nothing and may be sent again. Once its reports are drawn a round is charged, and it is
    over even if the ledger, the shuffler or the estimator fails then: its estimate is missing, and the error goes on.
    Stamps may leave gaps; a window says which are missing. Safe between threads, which run one round after the other.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> from dovetail.shuffle.rase import RASE
    >>> watts = Laplace(lower=0.0, upper=100.0, epsilon=2.0)
    >>> fleet = Fleet(("kettle", "oven", "lamp"), watts, RASE.fit([[0, 1], [1, 2]]), cap=4.0)
    >>> run, rng = FleetRun(fleet), simulation(1)
    >>> for t in (1, 2, 4):
    ...     done = run.submit(t, {"oven": 60.0, "lamp": 5.0}, rng=rng)
    >>> done.estimate, done.held_back  # two reports of 2 nats each were allowed
    (None, 2)
    >>> answer = run.time_window(4, width=4)
    >>> answer.missing, answer.estimate.n, run.guarantee.epsilon
    ((3, 4), 4, 4.0)

    Source
    ------
    Wang, Tao, Zou, RASE, Algorithm 3 and section III-A. The budget over rounds is ours.
    """

    def __init__(
        self,
        fleet: Fleet,
        *,
        before: Sequence[Fraction] | None = None,
        ledger: ReleaseLedger | None = None,
        about: str = "value",
    ) -> None:
        if before is not None and ledger is not None:
            raise DataError("`before` is for runs without a ledger, which knows it better.")
        self.fleet, self.budget = fleet, FleetBudget(fleet, before)
        self._rounds: dict[int, FleetRound] = {}
        self._lock, self._running = RLock(), False
        self._record = None if ledger is None else FleetLedger(fleet, ledger, about)

    def submit(self, t: int, values: Mapping[Any, float], *, rng: Entropy | None = None) -> FleetRound:
        """Run round t on the values of the devices that have one."""
        rng = self._entropy(rng)
        with self._alone():
            t = next_stamp(t, self.last)
            try:
                present, batch = values_on_roster(self.fleet, values)
                return self._run(t, np.flatnonzero(present), batch, rng, lambda t, batch: None)
            except DataError as error:
                raise DataError(f"round {t}: {error}") from None

    def submit_table(
        self,
        table: Any,
        *,
        device: str = "device",
        time: str = "time",
        value: str = "value",
        rng: Entropy | None = None,
        released: Callable[[int, Reports], None] = lambda t, batch: None,
        progress: Tick = no_tick,
    ) -> tuple[FleetRound, ...]:
        """Run all rounds of a table with one row per device and round, in order of time.

        Parameters
        ----------
        table : data frame
            Anything that speaks the Arrow interface (polars, pandas, duckdb, pyarrow).
        device, time, value : column names
            Device as on the roster, whole-number stamp, number; no empty cell.
        released : function of (stamp, reports)
            Gets each batch in its released order.
        progress : function of (rounds done, rounds)

        Raises
        ------
        DataError
            Before anything is released, when a row does not fit.
        """
        rng = self._entropy(rng)
        with self._alone():
            given = split_rounds(self.fleet, as_frame(table), device=device, time=time, value=value, last=self.last)
            done = []
            for t, places, values in given:
                done.append(self._run(t, places, values, rng, released))
                progress(len(done), len(given))
            return tuple(done)

    def replay_table(
        self,
        table: Any,
        batches: Mapping[int, Reports],
        *,
        device: str = "device",
        time: str = "time",
        value: str = "value",
        simulated: bool = False,
    ) -> tuple[FleetRound, ...]:
        """The rounds of a table whose batches (by stamp) were drawn before, from a seed if `simulated`.

        Raises
        ------
        DataError
            When a batch does not fit; also for a run with a ledger, which has charged these rounds already.
        """
        if self._record is not None:
            raise DataError("rounds are replayed in a run without a ledger: `before` is what was spent until then.")
        with self._alone():
            given = split_rounds(self.fleet, as_frame(table), device=device, time=time, value=value, last=self.last)
            done = []
            for t, here, _ in given:
                senders, batch = here[self.budget.allows(t, here)], batches.get(t, np.empty(0))
                if len(batch) != senders.size:
                    raise DataError(f"round {t}: {len(batch):,} reports were released, but {senders.size:,} are due.")
                self._charge(t, here, senders, simulated=simulated)
                done.append(self._keep(t, batch))
            return tuple(done)

    def time_window(self, t: int, *, width: int) -> TimeWindow:
        """Mean of the estimates of rounds t - width + 1 .. t; see `time_windows.time_window`."""
        t, width = whole("t", t, least=1), whole("width", width, least=1)
        if t > self.last:
            raise DataError(f"`t` must be at most {self.last:,}, the last round, got {t:,}.")
        stamps = range(max(1, t - width + 1), t + 1)
        return time_window((self._rounds[s] for s in stamps if s in self._rounds), t, width=width)

    @property
    def rounds(self) -> tuple[FleetRound, ...]:
        """All rounds so far."""
        return tuple(self._rounds.values())

    def estimates(self) -> pl.DataFrame:
        """The stored estimates, one row a round: t, value, standard_error, n, absent, held_back, resting."""
        found = [each.estimate for each in self._rounds.values()]
        return pl.DataFrame(
            {
                "t": list(self._rounds),
                "value": [None if each is None else float(each.value) for each in found],
                "standard_error": [None if each is None else float(each.standard_error) for each in found],
                "n": [0 if each is None else each.n for each in found],
                "absent": [each.absent for each in self._rounds.values()],
                "held_back": [each.held_back for each in self._rounds.values()],
                "resting": [each.resting for each in self._rounds.values()],
            }
        )

    @property
    def last(self) -> int:
        """Stamp of the last round; 0 before the first."""
        return next(reversed(self._rounds), 0)

    @property
    def spent(self) -> dict[str | int, float]:
        """Nats that each device has spent, earlier releases included, in decimals as budgets are written."""
        return dict(zip(self.fleet.roster, self.budget.totals(), strict=True))

    @property
    def guarantee(self) -> LocalDP:
        """The guarantee of all reports of the device that spent the most, about all of its values."""
        one, earlier = self.fleet.randomizer.guarantee, self.budget.largest_before
        sent = int(self.budget.sent.max())
        after = f", after at most {earlier:g} nats of a device in earlier releases" if earlier else ""
        both = LocalDP(
            self.budget.promised,
            min(1.0, sent * one.delta),
            source=f"basic composition of {sent:,} reports, each [{one.source}]{after}",
            caveats=one.caveats,
        )
        simulated = any(each.simulated for each in self._rounds.values())
        return both.drawn_from("simulation" if simulated else "device")

    def summary(self) -> dict[str, Any]:
        """Plain facts: rounds, reports, budget, and what the orders of all rounds may tell together."""
        alpha, everybody = self.fleet.shuffler.guarantee.alpha, np.arange(len(self.fleet.roster))
        return {
            "devices": everybody.size,
            "rounds": len(self._rounds),
            "reports": int(self.budget.sent.sum()),
            "held_back": sum(each.held_back for each in self._rounds.values()),
            "resting": sum(each.resting for each in self._rounds.values()),
            "absent": sum(each.absent for each in self._rounds.values()),
            "cap": self.fleet.cap,
            "spread": self.fleet.spread,
            "spent_before": self.budget.largest_before,
            "largest_spent": max(self.budget.totals()),
            "devices_at_cap": int(self.budget.is_spent(everybody).sum()),
            "alpha_of_a_round": alpha,
            "alpha_of_all_rounds": self.order_cost(len(self._rounds)),
        }

    def order_cost(self, rounds: int) -> float:
        """alpha of so many rounds, whose orders are independent, rounded up."""
        alpha = self.fleet.shuffler.guarantee.alpha
        return alpha if math.isinf(alpha) else round_up_to_double(rounds * Fraction(alpha))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; and within it, no round inside another."""
        with self._lock:
            if self._running:
                raise DataError("a round of this fleet is being run; what it calls must not start another.")
            self._running = True
            try:
                yield
            finally:
                self._running = False

    def _entropy(self, rng: Entropy | None) -> Entropy:
        rng = entropy_or_system(rng)
        if self._record is not None and rng.provenance == "simulation":
            raise UnsupportedError("what a ledger records is drawn from the operating system: leave out `rng`.")
        return rng

    def _run(
        self, t: int, places: Places, values: Values, rng: Entropy, released: Callable[[int, Reports], None]
    ) -> FleetRound:
        """One round of devices in roster order."""
        if self._record is not None:
            self.budget.add(self._record.news())
        fleet, allowed = self.fleet, self.budget.allows(t, places)
        senders = places[allowed]
        if self._record is not None:
            self._record.refuse_released(t, senders)
        batch = fleet.randomizer.randomize(values, rng)[allowed]  # also checks the values of those held back
        self._charge(t, places, senders, simulated=rng.provenance == "simulation")
        if senders.size:
            present = np.zeros(len(fleet.roster), dtype=np.bool_)
            present[senders] = True
            here = fleet.shuffler if present.all() else fleet.shuffler.restrict(present)
            batch = here.shuffle(batch, rng)
        if self._record is not None and senders.size:
            self._record.add(t, senders, batch)
        done = self._keep(t, batch)
        released(t, batch)
        return done

    def _charge(self, t: int, places: Places, senders: Places, *, simulated: bool) -> None:
        """Store round t and what it cost its senders, before anybody looks at their reports."""
        turn = self.fleet.turns(places, t)
        held_back, resting = int((turn & self.budget.is_spent(places)).sum()), int((~turn).sum())
        self.budget.charge(senders)
        self._rounds[t] = FleetRound(t, None, len(self.fleet.roster) - places.size, held_back, simulated, resting)

    def _keep(self, t: int, batch: Reports) -> FleetRound:
        """Store the estimate of the batch of round t."""
        if len(batch):
            estimate = self.fleet.estimate(self.fleet.randomizer, batch)
            self._rounds[t] = replace(self._rounds[t], estimate=estimate)
        return self._rounds[t]
