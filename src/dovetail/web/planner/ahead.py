"""Works out, while nobody waits, what is likely to be asked next: the neighbours of what was just changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Thread, current_thread

from dovetail.web.planner.answers import Plans
from dovetail.web.planner.question import START, Question
from dovetail.web.planner.sliders import neighbours

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
        except Exception:  # refusals are kept; whoever asks for it hears of a fault
            return


def likely(last: Question, question: Question) -> list[Question]:
    """The question at the next stops of the one field that was changed, first in the direction of the change.

    At the beginning nothing was changed: then the stops beside each wish.
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
