"""Time that never runs back and never jumps: a clock that somebody has set wrong closes no round.

What the system's clock says is believed while it agrees with the seconds that have passed since it was believed last:
counted by the machine since its boot, which nobody can set, or over another boot, by the record in the store. What it
adds or lacks may be `step` seconds at most, and an outage may last `outage` days. Beyond that nothing is accepted,
opened, closed or released until the clock is right again, or an operator confirms that it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from dovetail.collect.clock import Clock
from dovetail.collect.http import Refusal
from dovetail.collect.logs import Log
from dovetail.collect.store.interfaces import Moment, ShufflerStore

_LOG = Log("shuffler.clock")
_DAY = 86_400.0
_MINUTE = 60.0  # the record's times are whole ones
_SLEW = 0.01  # of the seconds that pass: how fast a step that was believed becomes the measure of the next one
_LATER = 60.0  # seconds until a device asks again
_PAUSE = 0.5  # seconds between looks at a clock that is not believed


@dataclass(frozen=True)
class ClockLimits:
    """Limits on a clock: its step against the seconds that passed, and days that the service may be away."""

    step: float = 300.0  # seconds
    outage: float = 7.0  # days


@dataclass(frozen=True)
class Reading:
    """Time of a clock, and the seconds since the boot of its machine."""

    wall: float
    steady: float
    boot: str


def agrees(reading: Reading, record: Moment, limits: ClockLimits) -> bool:
    """True if a clock agrees with a record: to the second on the same boot, by a plausible outage otherwise."""
    slack = limits.step + _MINUTE
    if record.boot and record.boot == reading.boot:
        return abs(reading.wall - reading.steady - record.booted) <= slack
    return not record.halted and -slack <= reading.wall - record.time <= limits.outage * _DAY


def confirm(reading: Reading, store: ShufflerStore) -> None:
    """An operator says that this clock is right; a shuffler that halted goes on by itself."""
    before = store.moment()
    store.record_moment(_moment(reading, confirmed=1 if before is None else before.confirmed + 1))


def _moment(reading: Reading, *, confirmed: int, halted: bool = False) -> Moment:
    return Moment(reading.wall, reading.boot, reading.wall - reading.steady, halted, confirmed)


def read(clock: Clock) -> Reading:
    """Read the clock."""
    return Reading(clock.now(), clock.steady(), clock.boot())


class TrustedClock:
    """A clock for rounds; safe between threads. `halted` says that it is not believed now."""

    def __init__(self, clock: Clock, store: ShufflerStore, limits: ClockLimits) -> None:
        self._clock, self._store, self._limits = clock, store, limits
        self._lock = Lock()
        self._believed: Reading | None = None  # the last reading, its wall time slewed
        self._last, self._looked, self._noted = 0.0, 0.0, 0.0
        self._confirmed = 0  # how often an operator has confirmed the time, as far as we know
        self.halted = False

    def now(self) -> float:
        """Seconds since 1970, never less than before; Refusal while the clock is not believed."""
        with self._lock:
            self._look(read(self._clock))
            if self.halted:
                said = "the shuffler does not believe its clock; come back later."
                raise Refusal("unavailable", said, retry_after=_LATER)
            return self._last

    def last(self) -> float:
        """The last time that was believed, to show something while the clock is not."""
        with self._lock:
            self._look(read(self._clock))
            return self._last

    def note(self) -> None:
        """Keep the record in the store up to date; called now and then."""
        with self._lock:
            if not self.halted and self._last - self._noted >= _MINUTE:
                self._record()

    def _look(self, reading: Reading) -> None:
        if self.halted and 0.0 <= reading.steady - self._looked < _PAUSE:
            return
        self._looked = reading.steady
        if self._believed is None:
            self._begin(reading)
        elif self._passes(self._believed, reading):
            self._believe(self._slew(self._believed, reading), reading.wall)
        elif not self._is_confirmed(reading):
            self._halt(reading)

    def _begin(self, reading: Reading) -> None:
        """By the record of the process before this one, or by an operator's word."""
        record = self._store.moment()
        if record is not None:
            self._last, self._confirmed = record.time, record.confirmed
        if record is None or agrees(reading, record, self._limits):
            self._believe(reading, reading.wall)
        else:
            self._halt(reading)

    def _passes(self, before: Reading, reading: Reading) -> bool:
        elapsed = reading.steady - before.steady
        drift = reading.wall - before.wall - elapsed
        return abs(drift) <= self._limits.step and elapsed <= self._limits.outage * _DAY

    def _slew(self, before: Reading, reading: Reading) -> Reading:
        elapsed = reading.steady - before.steady
        most = max(0.0, elapsed) * _SLEW
        drift = min(max(reading.wall - before.wall - elapsed, -most), most)
        return Reading(before.wall + elapsed + drift, reading.steady, reading.boot)

    def _is_confirmed(self, reading: Reading) -> bool:
        """True if an operator has said since that the clock is right; time may then be earlier than it was."""
        record = self._store.moment()
        if record is None or record.confirmed <= self._confirmed or not agrees(reading, record, self._limits):
            return False
        self._last, self._confirmed = record.time, record.confirmed
        self._believe(reading, reading.wall)
        return True

    def _believe(self, reading: Reading, wall: float) -> None:
        first, self._believed = self._believed is None, reading
        self._last = max(self._last, wall)
        if self.halted:
            self.halted = False
            _LOG.warning("the clock is believed again")
            self._record()
        elif first:
            self._record()

    def _halt(self, reading: Reading) -> None:
        """The record says so too, unless it is all that speaks against the clock: the next start sees that again."""
        if not self.halted:
            seconds = int(reading.wall - self._last)
            _LOG.warning("the clock is not believed, nothing is released", seconds=seconds)
            self.halted = True
            if self._believed is not None:
                self._record()

    def _record(self) -> None:
        if self._believed is not None:
            latest = Reading(self._last, self._believed.steady, self._believed.boot)
            booted = self._believed.wall - self._believed.steady
            self._store.record_moment(Moment(latest.wall, latest.boot, booted, self.halted, self._confirmed))
            self._noted = self._last
