"""Works out, while nobody waits, what is likely to be asked next: the neighbours of what was just changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Thread
from typing import Any

from dovetail.web.planner.answers import Kept
from dovetail.web.planner.question import Question
from dovetail.web.planner.sliders import neighbours

QUIET = 0.5  # seconds without a question before anything is worked out: two plans at once take twice as long


class Ahead:
    """One thread with the least to say: it stops between two questions when a person asks."""

    def __init__(self, kept: Kept[Any]) -> None:
        self._kept, self._last = kept, Question({})
        self._next: list[Question] = []
        self._asking, self._over = 0, False
        self._changed = Condition()
        self._thread = Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin; until then nothing is worked out."""
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
            self._asking += 1
            if question != self._last:
                self._next, self._last = likely(self._last, question), question
        try:
            yield
        finally:
            with self._changed:
                self._asking -= 1
                self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or (self._next and not self._asking))
                while not self._over and self._changed.wait(QUIET):
                    pass  # somebody asked meanwhile
                if self._over:
                    return
                if self._asking or not self._next:
                    continue
                question = self._next.pop(0)
            try:
                self._kept(**question.arguments())
            except Exception:  # refusals are kept; whoever asks for it hears of a fault
                continue


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
