"""The shuffler's threads: one checks and stores what has come, one turns rounds, one delivers."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread

from dovetail.collect.clock import Clock
from dovetail.collect.http import PAUSE, Health, Refusal
from dovetail.collect.logs import Log
from dovetail.collect.shuffler.intake import AdmissionControl, GroupCommit, PendingReply
from dovetail.collect.shuffler.shuffler import ShufflerRole
from dovetail.collect.shuffler.trusted_clock import ClockLimits, TrustedClock
from dovetail_protocol.ohttp import Gateway

_LOG = Log("shuffler.service")
_BEAT = 0.5  # seconds
UNDER_WAY = 64 << 20  # bytes of messages


class ShufflerService:
    """A shuffler under a server: `start` it, `submit` messages, `stop` it."""

    def __init__(
        self,
        shuffler: ShufflerRole,
        clock: Clock,
        *,
        limits: ClockLimits | None = None,
        under_way: int = UNDER_WAY,
        gateway: Gateway | None = None,
    ) -> None:
        self.gateway = gateway
        self.shuffler, self.gate = shuffler, AdmissionControl(under_way)
        self.clock = TrustedClock(clock, shuffler.rounds.store, limits or ClockLimits())
        self._stopping, self._failing = Event(), set[str]()  # what has failed and not worked since
        self._threads: list[Thread] = []
        self._entry = Lock()

    def start(self) -> None:
        """Recover, then begin."""
        self.shuffler.start(self.clock.last())
        self._intake = GroupCommit(
            lambda message, quiet: self.shuffler.check(message, self.clock.now(), quiet),
            lambda reports: self.shuffler.commit(reports, self.clock.now()),
        )
        for name, work in (("rounds", self._turn), ("delivery", self.shuffler.deliver)):
            thread = Thread(target=self._beat, args=(name, work), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def submit(self, message: bytes, quiet: bool = False) -> PendingReply:
        """Store a message's report, then reply; Refusal once the service is stopped. See `ReportIntake.check`."""
        told = PendingReply()
        told.set_running_or_notify_cancel()  # a sender that has gone cancels nothing
        with self._entry:  # what is put before the end is finished, and nothing is put after it
            stopped = self._stopping.is_set()
            if not stopped:
                self._intake.submit(message, told, quiet)
        if stopped:
            told.set_exception(
                Refusal("unavailable", "the shuffler is being stopped; come back later.", retry_after=PAUSE)
            )
        return told

    def stop(self) -> None:
        """Finish what was submitted, and nothing else."""
        with self._entry:
            self._stopping.set()
        self._intake.stop()
        for thread in self._threads:
            thread.join()
        self.shuffler.stop()

    def health(self) -> Health:
        """Report if a report could be stored and a round released now, and what is wrong with single rounds."""
        self.clock.last()
        if self.clock.halted:
            return Health("the shuffler does not believe its clock; `dovetail collect clock` shows it.")
        if not self.shuffler.ready():
            return Health("the store or the vault cannot be written.")
        if "rounds" in self._failing:
            return Health("rounds cannot go on; the log says why.")
        refused = {id: sorted(rounds) for id, rounds in self.shuffler.refused_batches().items()}
        lost, faulty = self.shuffler.lost_rounds(), self.shuffler.faults.rounds()
        facts = {"lost": lost, "faulty": faulty, "refused": refused, "roster": self.shuffler.roster_fault()}
        return Health(facts=facts)

    def _turn(self, now: float) -> None:
        self.clock.note()
        self.shuffler.turn(now)

    def _beat(self, name: str, work: Callable[[float], None]) -> None:
        failed = ""
        while not self._stopping.is_set():
            try:
                work(self.clock.now())
                failed = ""
                self._failing.discard(name)
            except Refusal:
                pass  # the clock has said so
            except Exception as error:  # the next beat tries again; the log says it once
                if failed != repr(error):
                    _LOG.fault("a step failed", error)
                failed = repr(error)
                self._failing.add(name)
            self._stopping.wait(_BEAT)
