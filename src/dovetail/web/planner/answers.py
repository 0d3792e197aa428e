"""Answers to questions: computed once, kept, and worked out ahead where a person is likely to go next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

from dovetail.account.clones.binomial_tail import without_compiled_loops
from dovetail.core.errors import DovetailError
from dovetail.plan.planner import CollectionPlan, plan_collection
from dovetail.report.sections.plan_document import plan_document

Answer = TypeVar("Answer")

MOST_KEPT = 512


class Kept(Generic[Answer]):
    """Results by their question, the latest of them; a question that is being answered is answered once."""

    def __init__(self, work: Callable[..., Answer], most: int = MOST_KEPT) -> None:
        self._work, self._most = work, most
        self._found: OrderedDict[Hashable, Answer | DovetailError] = OrderedDict()
        self._busy: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def __call__(self, **asked: Any) -> Answer:
        """The answer, or the error that the question deserves."""
        key = tuple(sorted(asked.items()))
        with self._lock:
            busy = self._busy.setdefault(key, Lock())
        with busy:
            found = self._kept(key)
            if found is None:
                found = self._answer(asked)
                with self._lock:
                    self._found[key] = found
                    while len(self._found) > self._most:
                        self._found.popitem(last=False)
            with self._lock:
                self._busy.pop(key, None)
        if isinstance(found, DovetailError):
            raise found.with_traceback(None)
        return found

    def knows(self, **asked: Any) -> bool:
        """Whether the answer costs nothing."""
        return tuple(sorted(asked.items())) in self._found

    def _kept(self, key: Hashable) -> Answer | DovetailError | None:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def _answer(self, asked: dict[str, Any]) -> Answer | DovetailError:
        try:
            return self._work(**asked)
        except DovetailError as error:
            return error


def plans() -> Kept[CollectionPlan]:
    """Plans by their question."""
    return Kept(_plan)


def _plan(**asked: Any) -> CollectionPlan:
    """A plan summed as `dovetail plan` sums, to the last digit."""
    with without_compiled_loops():
        plan = plan_collection(**asked)
        plan_document(plan)  # keeps the trade-off and the alternatives
    return plan
