"""The question as it stands in an address: texts of a form to the arguments of the planner, and back."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from threading import Condition, Lock, Thread, current_thread
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from dovetail.account.clones import without_compiled_loops
from dovetail.core.checks import refuse
from dovetail.core.errors import DovetailError, ParameterError
from dovetail.core.question import QUESTIONS
from dovetail.core.settings import plain_type
from dovetail.job.question_plan import QuestionPlan, data_of, plan_question
from dovetail.plan.dummies import DummiesPlan, UserDummiesPlan, plan_trusting
from dovetail.plan.planner import WHAT_IT_TAKES, CollectionPlan, Recommendation, complete_plan, recommend_collection
from dovetail.plan.requirements import SAME
from dovetail.report.plans import plan_document

WHOLE = ("n", "k", "groups", "smallest_group", "rounds")
REAL = ("error", "epsilon", "epsilon0", "delta", "honest", "lower", "upper", "grid")
WORDS = ("question", "randomizer", "shares", "trust", "dummies")
OTHERS = tuple(kind for kind in QUESTIONS if kind.name not in ("shares", "number"))  # planned by their own error
SETTINGS = {one.name: one for kind in OTHERS for one in kind.settings()}
FIELDS = (*WORDS[:1], *WHOLE, *REAL, *WORDS[1:], *SETTINGS)
ONLY = {"frequency": ("k", "shares"), "mean": ("lower", "upper", "grid")}  # fields of one kind of question
USUAL = {"shares": "any", "trust": "local"}  # what is not said
OF_SHUFFLER = ("dummies", "rounds")
NOT_WITH = {  # fields that a plan with this noise does not have
    "local": OF_SHUFFLER,
    "shuffler": ("epsilon0", "groups", "smallest_group", "randomizer", "shares", "honest"),
    "users": ("epsilon0", "groups", "smallest_group", "randomizer", "shares", *OF_SHUFFLER),
}
TAKEN = ("question", "n", "trust", "error", "epsilon", "epsilon0", "delta", "honest", "randomizer", *OF_SHUFFLER)
START = {"question": "frequency", "k": "4", "n": "10000", "error": "0.03"}
LONGEST, LONGEST_LIST = 40, 2000  # letters of a field, and of one that lists columns
MOST_WHOLE = 1e16  # what is larger is beyond every range, and would be hundreds of digits in a message
_GROUPED = re.compile(r"[0-9]{1,3}([, _\u202f\u00a0][0-9]{3})+")
_POINTS = re.compile(r"[0-9]{1,3}\.[0-9]{3}")
_COMMA = re.compile(r"[+-]?(0?,[0-9]+|[1-9][0-9]*,([0-9]{1,2}|[0-9]{4,}))")  # no comma of thousands
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Question:
    """Question field by field, as it was written; empty fields are left out."""

    texts: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Question:
        """From the query of an address; what it does not name is not asked, and an empty address asks the first."""
        most = {name: LONGEST_LIST if name in SETTINGS else LONGEST for name in FIELDS}
        texts = {name: given.get(name, "").strip()[: most[name] + 1] for name in FIELDS}
        mine = texts["question"] = SAME.get(texts["question"], texts["question"]) or "frequency"
        others = _foreign(mine, texts["trust"])
        kept = {
            name: text for name, text in texts.items() if name not in others and text not in ("", USUAL.get(name))
        }
        return cls(kept if any(name in given for name in FIELDS) else dict(START))

    @property
    def query(self) -> str:
        """The part of an address that holds this question."""
        return urlencode(self.texts)

    def with_value(self, name: str, value: float) -> Question:
        """The same question with one field changed."""
        return Question({**self.texts, name: f"{value:.15g}"})

    def arguments(self) -> dict[str, Any]:
        """Arguments of `plan_collection`, of `plan_trusting`, or of `plan_question` with its settings beside them.

        Raises
        ------
        ParameterError
            For what is no number.
        """
        found: dict[str, Any] = {name: self.texts[name] for name in WORDS if name in self.texts}
        found |= {name: whole_of(name, self.texts[name]) for name in WHOLE if name in self.texts}
        found |= {name: number_of(name, self.texts[name]) for name in REAL if name in self.texts}
        if found["question"] != "frequency" and "%" in self.texts.get("error", ""):
            raise ParameterError(
                f"`error` of this question must be a number, not a percentage, got {self.texts['error']}."
            )
        if "honest" in found and "%" in self.texts["honest"]:
            found |= _share_of_people(found.pop("honest"), self.texts["honest"])
        elif "honest" in found and not 0.0 < found["honest"] < 1.0:
            found["honest"] = whole_of("honest", self.texts["honest"])
        known = (*ONLY, *(kind.name for kind in OTHERS))
        if found["question"] not in known:
            raise refuse("question", f"one of {', '.join(known)}", found["question"])
        return found | {name: _setting(name, self.texts[name]) for name in SETTINGS if name in self.texts}


def _foreign(mine: str, trust: str) -> list[str]:
    """The fields that a question behind this noise does not have."""
    if mine in ONLY:
        own = [name for kind, names in ONLY.items() if kind != mine for name in names]
        return [*own, *NOT_WITH.get(trust or "local", ()), *SETTINGS]
    kind = next((kind for kind in OTHERS if kind.name == mine), None)
    own = [] if kind is None else [one.name for one in kind.settings()]
    taken = {*TAKEN, *own, *(("lower", "upper") if kind is None or kind.of_numbers else ("k",))}
    taken -= set() if trust in ("", "local") else {"epsilon0", "randomizer"}
    taken -= set() if trust == "shuffler" else {*OF_SHUFFLER}
    return [name for name in FIELDS if name not in taken]


def _setting(name: str, text: str) -> Any:
    kind = plain_type(SETTINGS[name].annotation)
    return text if kind is str else whole_of(name, text) if kind is int else number_of(name, text)


def _share_of_people(share: float, text: str) -> dict[str, float]:
    """The honest people as a share: 100 % are all of them, and need not be said."""
    if not 0.0 < share <= 1.0:
        raise refuse("honest", "above 0 % and at most 100 %", text)
    return {} if share == 1.0 else {"honest": share}


def whole_of(name: str, text: str) -> Any:
    """1e6 and 1,000,000 as the whole number that they are; other text is refused by the caller.

    A point before three digits may stand for thousands, so that 10.000 is refused and not read as ten.
    """
    value = number_of(name, text)
    if _POINTS.fullmatch(text):
        raise ParameterError(f"`{name}` must be a whole number without points, such as 10000 or 10,000, got {text}.")
    return int(value) if value.is_integer() and abs(value) < MOST_WHOLE else value


def number_of(name: str, text: str) -> float:
    """A number as people write it: 0,03 is read as 0.03, and 1,234 as a thousand and more."""
    bare, percent = text.removesuffix("%").strip(), text.endswith("%")
    if _COMMA.fullmatch(bare):
        bare = bare.replace(",", ".")
    if _GROUPED.fullmatch(bare):
        bare = re.sub(r"[^0-9]", "", bare)
    if len(text) > LONGEST or not _NUMBER.fullmatch(bare):
        raise refuse(name, "a number such as 0.03 or 1e6", text[:LONGEST])
    if percent and name not in ("error", "honest"):
        raise ParameterError(f"`{name}` must be a number, not a percentage, got {text}.")
    return float(bare) / (100.0 if percent else 1.0)


# Answers to questions: computed once, kept, and worked out ahead where a person is likely to go next.


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
        """True if the answer costs nothing."""
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
    """Refusal of requirements that cannot be met, before it is known what would do instead."""

    SOON = "soon"


class _Unmet(Exception):
    """Stops a search that goes on to say what would do instead."""


Planned = CollectionPlan | DummiesPlan | UserDummiesPlan | QuestionPlan
First = Recommendation | DummiesPlan | UserDummiesPlan | QuestionPlan | Refused


class Plans:
    """Answers in the order in which they are known: what is recommended, the plan, and what it costs to be better.

    Summed as `dovetail plan` sums, to the last digit.
    """

    def __init__(self) -> None:
        self._first, self._plans = Kept(self._recommend), Kept(self._complete)
        self.between: Callable[[], None] = lambda: None  # called between steps of a computation

    def first(self, **asked: Any) -> First:
        """Recommendation, with an upper bound on its epsilon."""
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
        """True if the plan costs nothing."""
        return self._plans.knows(**asked)

    def _recommend(self, **asked: Any) -> First:
        if asked["question"] not in ONLY:
            settings = {name: asked.pop(name) for name in SETTINGS if name in asked}
            data: dict[str, Any] = {name: asked.pop(name) for name in ("lower", "upper", "k") if name in asked}
            return plan_question(asked.pop("question"), settings=settings, data=data_of(data), **asked)
        if "trust" in asked:
            return plan_trusting(**asked)
        try:
            with without_compiled_loops():
                return recommend_collection(**asked, progress=self._until_unmet)
        except _Unmet:
            return Refused.SOON

    def _complete(self, **asked: Any) -> Planned:
        found = self._first(**asked)
        if isinstance(found, DummiesPlan | UserDummiesPlan | QuestionPlan):
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


# Where sliders stop: round numbers, the same for the page that shows them and the server that works ahead.


STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # of each power of ten


def stops(low: int, high: int) -> tuple[str, ...]:
    """Round numbers from 10^low to 10^high."""
    found = [f"{step * 10.0**power:.12g}" for power in range(low, high) for step in STEPS]
    return (*found, f"{10.0**high:.12g}")


def _whole(low: int, high: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{round(float(text)):d}" for text in stops(low, high)))


SLIDERS: dict[str, tuple[str, ...]] = {
    "n": _whole(2, 9),
    "k": tuple(map(str, [*range(2, 21), 25, 30, 40, 50, 60, 80, 100, 125, 160, 200, 250, 300, 400, 500])),
    "error": stops(-4, 0)[:-4],
    "epsilon": stops(-3, 1),
    "epsilon0": stops(-2, 1),
    "honest": tuple(f"{percent / 100:g}" for percent in range(5, 100, 5)),
    "groups": _whole(0, 4)[1:],
}


def neighbours(name: str, text: str, *, after: str | None = None) -> tuple[str, ...]:
    """The stops beside a value, those first that lie on from the value before it."""
    values = SLIDERS.get(name, ())
    try:
        numbers, value = [float(stop) for stop in values], float(text)
        down = after is not None and value < float(after)
    except ValueError:
        return ()
    above, below = values[bisect_right(numbers, value) :][:2], values[: bisect_left(numbers, value)][-2:][::-1]
    ahead, behind = (below, above) if down else (above, below)
    return (*ahead[:1], *behind[:1], *ahead[1:], *behind[1:]) if after is None else (*ahead, *behind)


# Works out, while nobody waits, what is likely to be asked next: the neighbours of what was just changed.


QUIET = 0.5  # seconds without a question before anything is worked out: two plans at once take twice as long


class Ahead:
    """One thread with the least to say: it stops between two steps while a person asks something else.

    It begins with the question that the first page asks, so that nobody waits for what a process does once.
    """

    def __init__(self, plans: Plans) -> None:
        self._plans, self._last = plans, Question({})
        self._next: list[Question] = []
        self._hand = Question({})
        self._asked: list[Question] = []
        self._over = False
        self._changed = Condition()
        self._thread = Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin; until then nothing is worked out."""
        self._plans.between = self._give_way
        self._thread.start()

    def stop(self) -> None:
        """End after the question at hand."""
        with self._changed:
            self._over, self._next = True, []
            self._changed.notify()

    @contextmanager
    def while_asking(self, question: Question) -> Iterator[None]:
        """Keep out of the way while a person waits, then go on from this question, if it is another one."""
        with self._changed:
            self._asked.append(question)
            if question != self._last:
                self._next, self._last = likely(self._last, question), question
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._asked.remove(question)
                self._changed.notify()

    def _give_way(self) -> None:
        """Wait, in this thread alone, until nobody asks; but work out what somebody is waiting for."""
        if current_thread() is self._thread:
            with self._changed:
                self._changed.wait_for(lambda: self._over or not self._asked or self._hand in self._asked)

    def _work(self) -> None:
        self._answer(Question(START))
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or (self._next and not self._asked))
                while not self._over and self._changed.wait(QUIET):
                    pass  # somebody asked meanwhile
                if self._over:
                    return
                if self._asked or not self._next:
                    continue
                question = self._next.pop(0)
            self._answer(question)

    def _answer(self, question: Question) -> None:
        with self._changed:
            self._hand = question
        try:
            self._plans.whole(**question.arguments())
        except Exception:  # refusals are kept; anybody who asks for it hears of a fault
            return


def likely(last: Question, question: Question) -> list[Question]:
    """The question at the next stops of the one field that was changed, first in the direction of the change.

    At the beginning nothing was changed: then the stops beside each requirement.
    """
    changed = [name for name, text in question.texts.items() if last.texts.get(name) != text]
    if not last.texts:
        return [one for name in changed for one in _moved(question, name, neighbours(name, question.texts[name])[:2])]
    if len(changed) != 1:
        return []
    (name,) = changed
    return _moved(question, name, neighbours(name, question.texts[name], after=last.texts.get(name)))


def _moved(question: Question, name: str, texts: tuple[str, ...]) -> list[Question]:
    return [Question({**question.texts, name: text}) for text in texts]
