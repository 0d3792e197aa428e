"""The shuffler's threads: some check messages, one writes, one turns rounds, one delivers."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

from dovetail.collect.clock import Clock
from dovetail.collect.http import Health, Refusal
from dovetail.collect.logs import Log
from dovetail.collect.shuffler.intake import AdmissionControl, CheckedReport, GroupCommit, PendingReply
from dovetail.collect.shuffler.shuffler import ShufflerRole
from dovetail.collect.shuffler.trusted_clock import ClockLimits, TrustedClock

_LOG = Log("shuffler.service")
_BEAT = 0.5  # seconds
_UNDER_WAY = 64 << 20  # bytes of messages


class ShufflerService:
    """A shuffler under a server: `start` it, `submit` messages, `stop` it."""

    def __init__(
        self,
        shuffler: ShufflerRole,
        clock: Clock,
        *,
        limits: ClockLimits | None = None,
        under_way: int = _UNDER_WAY,
    ) -> None:
        self.shuffler, self.gate = shuffler, AdmissionControl(under_way)
        self.clock = TrustedClock(clock, shuffler.rounds.store, limits or ClockLimits())
        self._stopping, self._failing = Event(), set[str]()  # what has failed and not worked since
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Recover, then begin."""
        self.shuffler.start(self.clock.last())
        self._checkers = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="checker")
        self._writer = GroupCommit(lambda reports: self.shuffler.commit(reports, self.clock.now()))
        for name, work in (("rounds", self._turn), ("delivery", self.shuffler.deliver)):
            thread = Thread(target=self._beat, args=(name, work), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def submit(self, message: bytes) -> PendingReply:
        """What is told about a message, once its report is durable."""
        told = PendingReply()
        told.set_running_or_notify_cancel()  # a sender that has gone cancels nothing
        self._checkers.submit(self._check, message, told)
        return told

    def stop(self) -> None:
        """Finish what was submitted, and nothing else."""
        self._stopping.set()
        self._checkers.shutdown(wait=True)
        self._writer.stop()
        for thread in self._threads:
            thread.join()
        self.shuffler.stop()

    def health(self) -> Health:
        """Whether a report could be stored and a round released now, and what is wrong with single rounds."""
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

    def _check(self, message: bytes, told: PendingReply) -> None:
        try:
            found = self.shuffler.check(message, self.clock.now())
        except Exception as error:
            told.set_exception(error)
            return
        if isinstance(found, CheckedReport):
            self._writer.submit(found).add_done_callback(lambda written: _pass_on(written, told))
        else:
            told.set_result(found)

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


def _pass_on(written: PendingReply, told: PendingReply) -> None:
    error = written.exception()
    if error is None:
        told.set_result(written.result())
    else:
        told.set_exception(error)
