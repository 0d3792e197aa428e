"""One writer for all senders: whatever has arrived while the last transaction was written goes into the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread

from dovetail.collect.shuffler.report_intake import CheckedReport, Reply

Commit = Callable[[Sequence[CheckedReport]], list[Reply]]
PendingReply = Future[Reply]
_MOST = 2000  # reports in one transaction


class GroupCommit:
    """A thread that commits groups of reports; the future of each is done when its transaction is durable."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._queue: SimpleQueue[tuple[CheckedReport, PendingReply] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def submit(self, report: CheckedReport) -> PendingReply:
        """The answer for this report, once it is durable."""
        answer = PendingReply()
        self._queue.put((report, answer))
        return answer

    def stop(self) -> None:
        """Commit what was submitted before, then end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group, last = [first], False
            while len(group) < _MOST and not last:
                try:
                    found = self._queue.get_nowait()
                except Empty:
                    break
                if found is None:
                    last = True
                else:
                    group.append(found)
            self._write(group)
            if last:
                return

    def _write(self, group: Sequence[tuple[CheckedReport, PendingReply]]) -> None:
        try:
            answers = self._commit([report for report, _ in group])
        except Exception as error:
            for _, waiting in group:
                waiting.set_exception(error)
            return
        for answer, (_, waiting) in zip(answers, group, strict=True):
            waiting.set_result(answer)
