"""One writer for all senders: everybody gets the answers to their own reports, and only once they are durable."""

from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest

from dovetail.collect.shuffler.intake import GroupCommit


class Disk:
    """A store that writes when it may, and says what was written together."""

    def __init__(self) -> None:
        self.may_write, self.written = Event(), list[list[str]]()

    def commit(self, reports: Sequence[Any]) -> list[Any]:
        self.may_write.wait()
        if "full" in reports:
            raise OSError("no space")
        self.written.append(list(reports))
        return [f"has {report}" for report in reports]


def test_everybody_gets_the_answers_to_their_own_reports() -> None:
    disk = Disk()
    writer: Any = GroupCommit(disk.commit)
    waiting = [writer.submit(report) for report in "abcdefg"]
    assert not any(one.done() for one in waiting), "nobody is told before it is durable"
    disk.may_write.set()
    writer.stop()
    assert [one.result() for one in waiting] == [f"has {report}" for report in "abcdefg"]
    assert [report for group in disk.written for report in group] == list("abcdefg")
    assert len(disk.written) <= 2, "what came while the first was written is one transaction"


def test_whose_transaction_failed_is_told_so_and_the_next_one_is_written() -> None:
    disk = Disk()
    writer: Any = GroupCommit(disk.commit)
    lost = [writer.submit(report) for report in ("full", "full")]
    disk.may_write.set()
    for one in lost:
        with pytest.raises(OSError, match="no space"):
            one.result()
    kept = writer.submit("later")
    writer.stop()
    assert kept.result() == "has later"
