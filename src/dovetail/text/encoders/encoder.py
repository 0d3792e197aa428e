"""What every sentence encoder obeys: a row is a function of its own sentence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError, DovetailError, ParameterError, UnsupportedError
from dovetail.text.documents import writable
from dovetail.text.integer_rows import Rows, integer_row, stack


class SentenceEncoder(ABC):
    """A public map from one sentence to a unit vector.

    Law: a row depends on its own sentence alone, bit for bit. A last bit that depends on the other sentences of a
    document can move one sentence's effect to all of them, so encoders never see two sentences at once: no batches,
    no padding, no statistics of the document.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d."""

    @abstractmethod
    def vector(self, sentence: str) -> ArrayLike:
        """The embedding (d,) of one sentence, of any length; what is not finite counts as no direction."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs: texts, numbers and arrays."""

    @classmethod
    @abstractmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The encoder of a state."""

    @final
    def encode(self, sentences: Iterable[str]) -> Rows:
        """Whole-number unit rows (k, d), sentence by sentence; zero where an encoder has no direction."""
        return stack((self._row(one) for one in sentences), self.dimension)

    def _row(self, sentence: str) -> NDArray[np.int16]:
        try:
            given = self.vector(writable(sentence))
        except DovetailError:
            raise
        except Exception as error:  # whose words may quote the sentence
            raise DataError(
                f"the encoder failed on a sentence ({type(error).__name__}); try it on public ones."
            ) from None
        try:
            found = np.asarray(given, dtype=np.float64)
        except (ValueError, TypeError):  # whose words may quote the sentence
            raise DataError(
                f"the encoder must return {self.dimension} numbers for a sentence, got something else."
            ) from None
        if found.shape != (self.dimension,):
            raise DataError(f"the encoder must return vectors ({self.dimension},), got {found.shape}.")
        return integer_row(found, unit_norm=True)


@dataclass(frozen=True)
class CallableEncoder(SentenceEncoder):
    """Any function from one sentence to a vector of `width` numbers; it must be deterministic and public.

    Parameters
    ----------
    function : callable, str -> array (width,)
    width : int
    """

    name = "callable"

    function: Callable[[str], ArrayLike]
    width: int

    @property
    def dimension(self) -> int:
        return self.width

    def vector(self, sentence: str) -> ArrayLike:
        return self.function(sentence)

    def state(self) -> dict[str, Any]:
        raise UnsupportedError("A function cannot be saved in a file; keep it in your program.")

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        raise UnsupportedError("A function cannot be restored from a file; build the candidates in your program.")


def check_deterministic(encoder: SentenceEncoder, sentences: Iterable[str]) -> None:
    """ParameterError for an encoder that gives one sentence two vectors, shown on a few public ones.

    It looks at few sentences, twice, in this process: what changes seldom, with the time, between machines or with
    the sentences before is not found. That an encoder is a function of its sentence is for its author to promise.
    """
    for sentence in sentences:
        if not np.array_equal(encoder.encode([sentence]), encoder.encode([sentence])):
            raise ParameterError(
                "`encoder` must give a sentence the same vector each time; switch off its dropout and sampling."
            )
