"""Documents as lists of sentences; public and private ones are different types, so that no fit sees a private one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dovetail.core.checks import whole
from dovetail.core.display.display import mute
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.extras import require

MOST_CHARACTERS = 2000  # of one sentence; what is beyond is cut, whatever the sentence
MOST_SENTENCES = 10_000


def split_sentences(text: str, *, language: str = "en") -> tuple[str, ...]:
    """Sentences of a text, by the segmenter of the Wikimedia Foundation (sentencex), each at most 2,000 characters.

    Parameters
    ----------
    text : str
    language : str
        ISO code, public.

    Raises
    ------
    MissingExtraError
        Without the extra `text`.
    DataError
        Where the text holds characters that no text has (zero bytes).

    Notes
    -----
    Sentence privacy speaks of lists of sentences. A replacement that moves boundaries changes several of them and
    costs epsilon for each; whoever has sentences already passes them as a list.
    """
    if "\0" in text:
        raise DataError("the text holds zero bytes; it is no text: name its file's right format.")
    found = require("sentencex", extra="text").segment(language, writable(text))
    return clean(found)


def clean(sentences: Iterable[str]) -> tuple[str, ...]:
    """Blanks as one, no empty sentences, none longer than 2,000 characters, no halves of characters."""
    tidy = (" ".join(writable(one).split())[:MOST_CHARACTERS] for one in sentences)
    return tuple(one for one in tidy if one)


def writable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class Document:
    """A document of whoever wrote it.

    Parameters
    ----------
    name : str
        Public: what the release calls it.
    sentences : tuple of str
        Private unless the document is public.
    label : str, optional
        A class, where it is known; of private documents it serves evaluation only.
    """

    name: str
    sentences: tuple[str, ...] = field(repr=False)
    label: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name != writable(self.name):
            raise ParameterError(f"`name` must be a text without halves of characters, got {self.name!r}.")
        if not isinstance(self.sentences, tuple) or not all(isinstance(one, str) for one in self.sentences):
            raise ParameterError("`sentences` must be a tuple of texts.")
        if len(self.sentences) > MOST_SENTENCES:
            raise DataError(
                f"document {self.name!r}: must have at most {MOST_SENTENCES:,} sentences, got "
                f"{len(self.sentences):,}; split it into several documents, each with a guarantee of its own."
            )

    def first(self, most: int | None) -> Document:
        """The document cut to its first `most` sentences, a public number; None for all of them."""
        if most is None:
            return self
        return Document(self.name, self.sentences[: whole("most", most, least=1)], self.label)


@mute
@dataclass(frozen=True)
class PublicDocuments:
    """Documents that anybody may read: the only ones that encoders, candidates and classifiers are fitted to.

    Parameters
    ----------
    documents : sequence of Document
    """

    documents: Sequence[Document]

    @property
    def labels(self) -> list[str]:
        """The class of each; DataError where one has none."""
        found = [one.label for one in self.documents]
        if any(one is None for one in found):
            raise DataError("every public document must have a label; name their column.")
        return [str(one) for one in found]

    @property
    def sentences(self) -> list[str]:
        """All sentences of all documents."""
        return [sentence for one in self.documents for sentence in one.sentences]


def refuse_private(documents: object) -> PublicDocuments:
    """`documents` where they are declared public; anything else is refused, because a fit would tell of it."""
    if not isinstance(documents, PublicDocuments):
        raise ParameterError(
            "`documents` must be PublicDocuments: what is fitted is public and would carry private sentences out; "
            f"got {type(documents).__name__}."
        )
    return documents
