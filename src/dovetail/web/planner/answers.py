"""Answers to questions: computed once, kept, and worked out ahead where a person is likely to go next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import Enum
from threading import Lock
from typing import Any, Generic, TypeVar

from dovetail.account.clones.binomial_tail import without_compiled_loops
from dovetail.core.errors import DovetailError
from dovetail.plan.planner import CollectionPlan, complete_plan, recommend_collection
from dovetail.plan.recommendation import WHAT_IT_TAKES, Recommendation
from dovetail.plan.with_dummies import DummiesPlan
from dovetail.plan.with_user_dummies import UserDummiesPlan, plan_trusting
from dovetail.report.sections.plans.plan_document import plan_document

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


class Refused(Enum):
    """What is known of wishes that cannot be met, before it is known what would do instead."""

    SOON = "soon"


class _Unmet(Exception):
    """Stops a search that goes on to say what would do instead."""


Planned = CollectionPlan | DummiesPlan | UserDummiesPlan
First = Recommendation | DummiesPlan | UserDummiesPlan | Refused


class Plans:
    """Answers in the order in which they are known: what is recommended, the plan, and what it costs to be better.

    Summed as `dovetail plan` sums, to the last digit.
    """

    def __init__(self) -> None:
        self._first, self._plans = Kept(self._recommend), Kept(self._complete)
        self.between: Callable[[], None] = lambda: None  # called between steps of a computation

    def first(self, **asked: Any) -> First:
        """What is recommended, with an upper bound on its epsilon."""
        return self._first(**asked)

    def plan(self, **asked: Any) -> Planned:
        """The plan."""
        return self._plans(**asked)

    def whole(self, **asked: Any) -> Planned:
        """The plan that knows its trade-off and the other mechanisms."""
        plan = self._plans(**asked)
        if isinstance(plan, CollectionPlan):
            with without_compiled_loops():
                plan_document(plan)
        return plan

    def knows(self, **asked: Any) -> bool:
        """Whether the plan costs nothing."""
        return self._plans.knows(**asked)

    def _recommend(self, **asked: Any) -> First:
        if "trust" in asked:
            return plan_trusting(**asked)
        try:
            with without_compiled_loops():
                return recommend_collection(**asked, progress=self._until_unmet)
        except _Unmet:
            return Refused.SOON

    def _complete(self, **asked: Any) -> Planned:
        found = self._first(**asked)
        if isinstance(found, DummiesPlan | UserDummiesPlan):
            return found
        with without_compiled_loops():
            if isinstance(found, Refused):
                found = recommend_collection(**asked, progress=self._step)
            return complete_plan(found, self._step)

    def _until_unmet(self, step: str, done: int, total: int) -> None:
        self.between()
        if step == WHAT_IT_TAKES:
            raise _Unmet

    def _step(self, step: str, done: int, total: int) -> None:
        self.between()
