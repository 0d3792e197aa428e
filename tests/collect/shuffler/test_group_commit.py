"""One thread for all senders: everybody gets the answers to their own reports, and only once they are durable."""

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Event
from typing import Any

import pytest
from tests.waiting import PATIENCE

from dovetail.collect.shuffler import intake
from dovetail.collect.shuffler.intake import GroupCommit, Reply


class Disk:
    """A store that writes when it may, and says what was written together."""

    def __init__(self) -> None:
        self.asked, self.may_write, self.written = Event(), Event(), list[list[str]]()
        self.thread: Any = GroupCommit(self.check, self.commit)  # type: ignore[arg-type]

    def check(self, message: str, quiet: bool) -> str | Reply:
        if message == "broken":
            raise ValueError("a fault")
        return Reply("seal") if message == "junk" else message

    def commit(self, reports: Sequence[Any]) -> list[Any]:
        self.asked.set()
        self.may_write.wait()
        if "full" in reports:
            raise OSError("no space")
        self.written.append(list(reports))
        return [f"has {report}" for report in reports]

    def submit(self, message: str) -> Future[Any]:
        told = Future[Any]()
        self.thread.submit(message, told)
        return told


def test_everybody_gets_the_answers_to_their_own_reports() -> None:
    disk = Disk()
    waiting = [disk.submit(report) for report in "abcdefg"]
    assert not any(one.done() for one in waiting), "nobody is told before it is durable"
    disk.may_write.set()
    disk.thread.stop()
    assert [one.result(PATIENCE) for one in waiting] == [f"has {report}" for report in "abcdefg"]
    assert [report for group in disk.written for report in group] == list("abcdefg")
    assert len(disk.written) <= 2, "what came while the first was written is one transaction"


def test_whose_transaction_failed_is_told_so_and_the_next_one_is_written() -> None:
    disk = Disk()
    lost = [disk.submit(report) for report in ("full", "full")]
    disk.may_write.set()
    for one in lost:
        with pytest.raises(OSError, match="no space"):
            one.result(PATIENCE)
    kept = disk.submit("later")
    disk.thread.stop()
    assert kept.result(PATIENCE) == "has later"


def test_who_is_refused_waits_for_no_disk_and_one_fault_is_nobody_elses() -> None:
    disk = Disk()
    disk.submit("first")
    told = [disk.submit(each) for each in ("a", "broken", "junk", "b")]
    disk.may_write.set()
    disk.thread.stop()
    assert [told[0].result(PATIENCE), told[3].result(PATIENCE)] == ["has a", "has b"]
    with pytest.raises(ValueError, match="a fault"):
        told[1].result(PATIENCE)
    assert told[2].result(PATIENCE) == Reply("seal")
    assert [report for group in disk.written for report in group] == ["first", "a", "b"]


class Clock:
    """Stands still; says how long a thread would have waited for enough messages, and lets it go at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, disk: Disk) -> None:
        self.slept, self.early = list[float](), 0
        monkeypatch.setattr(intake, "monotonic", lambda: 100.0)
        disk.thread._enough = self

    def wait(self, seconds: float) -> None:
        self.slept.append(seconds)

    def set(self) -> None:
        self.early += 1

    def clear(self) -> None:
        pass


def written_together(disk: Disk, first: str, others: Sequence[str]) -> None:
    """Have these reports written, the others in one transaction after the first."""
    disk.asked.clear()
    disk.may_write.clear()
    waiting = [disk.submit(first)]
    assert disk.asked.wait(PATIENCE)
    waiting += [disk.submit(each) for each in others]
    disk.may_write.set()
    for each in waiting:
        each.result(PATIENCE)


def test_where_many_send_transactions_begin_at_a_pace_and_where_one_sends_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, disk := Disk())
    disk.may_write.set()
    for _ in range(3):
        disk.submit("alone").result(PATIENCE)
    assert clock.slept == [0.0] * 3
    written_together(disk, "a", "bc")
    disk.submit("later").result(PATIENCE)
    disk.thread.stop()
    assert clock.slept == [0.0] * 5 + [pytest.approx(intake._PACE)], "no time has passed since the group of two began"


def test_a_transaction_for_which_enough_messages_wait_begins_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, disk := Disk())
    many = [str(each) for each in range(intake._MOST + intake._ENOUGH + 1)]
    written_together(disk, "first", many)
    disk.thread.stop()
    assert [len(group) for group in disk.written] == [1, intake._MOST, intake._ENOUGH + 1]
    assert clock.slept == [0.0], "the first alone looked at the clock"
    assert clock.early == len(many) - intake._ENOUGH + 1, "whoever is one of enough wakes the thread"
