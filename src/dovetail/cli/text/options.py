"""Options that the verbs on documents share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.core.errors import OutputError, ParameterError

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


Epsilons = Annotated[str, typer.Option("--epsilon", help="One or more epsilons, separated by commas.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="HTML file with all tables and a picture.")]


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


def numbers(name: str, text: str) -> list[float]:
    """Numbers of an option, or a ParameterError that names it."""
    try:
        return [float(one) for one in text.split(",")]
    except ValueError:
        raise ParameterError(f"--{name} must be numbers separated by commas, got {text!r}.") from None


def check_report(place: Path | None, *, force: bool) -> None:
    """Refuse a report that could not be written, before the work."""
    if place is None:
        return
    if place.exists() and not force:
        raise OutputError(f"{place}: exists already; use --force to replace it, or name another place.")
    if not place.parent.is_dir():
        raise OutputError(f"{place}: its folder is missing.")


def write_report(place: Path | None, document: dict[str, Any], *, force: bool) -> None:
    """The HTML page of a document, where one is asked for; the document then names it."""
    if place is None:
        return
    from dovetail.cli.console.output import write_whole
    from dovetail.report.render.text_html import render_text

    page = render_text(document)

    def write(scratch: Path) -> None:
        scratch.write_text(page, encoding="utf-8")

    write_whole(place, write, force=force)
    document["files"] = {**document.get("files", {}), "report": str(place)}
