"""Options that the verbs on documents share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dovetail.text.documents import Document

CandidatesFile = Annotated[Path, typer.Option("--candidates", help="File made by `dovetail text candidates`.")]
Epsilon = Annotated[float, typer.Option(help="For one replaced sentence, nats.")]
UtilityName = Annotated[
    str, typer.Option("--utility", help="clipped, approval, votes, inner, depth, or, to compare, published.")
]
SelectionName = Annotated[
    str, typer.Option("--selection", help="permute-and-flip, or exponential for several releases of a document.")
]
MostSentences = Annotated[
    int | None, typer.Option(help="Public limit on the sentences of a document; the rest is cut.", min=1)
]


@dataclass(frozen=True)
class DocumentOptions:
    """Where a file has its documents."""

    text: Annotated[str, typer.Option(help="Column of texts, or of lists of sentences.")] = "text"
    name: Annotated[str | None, typer.Option(help="Column of public names; default: row numbers.")] = None
    label: Annotated[str | None, typer.Option(help="Column of classes, where they are known.")] = None
    language: Annotated[str, typer.Option(help="ISO code of the language, for the splitter.")] = "en"

    def read(self, place: Path, most_sentences: int | None = None) -> list[Document]:
        """The documents of a file, cut to a public number of sentences."""
        from dovetail.text.document_files import read_documents

        return read_documents(place, text=self.text, name=self.name, label=self.label, language=self.language,
                              most_sentences=most_sentences)  # fmt: skip
