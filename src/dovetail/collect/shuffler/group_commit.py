"""One writer for all senders: whatever has arrived while the last transaction was written goes into the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread

from dovetail.collect.shuffler.report_intake import CheckedReport, Reply

Commit = Callable[[Sequence[CheckedReport]], list[Reply]]
PendingReplies = Future[list[Reply]]
_MOST = 2000  # reports in one transaction, about


class GroupCommit:
    """A thread that commits groups of reports; the future of each is done when its transaction is durable."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._queue: SimpleQueue[tuple[Sequence[CheckedReport], PendingReplies] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def submit(self, reports: Sequence[CheckedReport]) -> PendingReplies:
        """Answers for these reports, once they are durable."""
        answers = PendingReplies()
        self._queue.put((reports, answers))
        return answers

    def stop(self) -> None:
        """Commit what was submitted before, then end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group, count, last = [first], len(first[0]), False
            while count < _MOST and not last:
                try:
                    found = self._queue.get_nowait()
                except Empty:
                    break
                if found is None:
                    last = True
                else:
                    group.append(found)
                    count += len(found[0])
            self._write(group)
            if last:
                return

    def _write(self, group: list[tuple[Sequence[CheckedReport], PendingReplies]]) -> None:
        try:
            answers = self._commit([report for reports, _ in group for report in reports])
        except Exception as error:
            for _, waiting in group:
                waiting.set_exception(error)
            return
        start = 0
        for reports, waiting in group:
            waiting.set_result(answers[start : start + len(reports)])
            start += len(reports)
