"""Pages made from the sources: a line `<!-- made from: NAME ARGUMENT -->` is replaced by what `NAME` returns."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import from_cli
import from_modules
import from_papers
import from_settings
import from_sources
import from_studies

GENERATORS: dict[str, Callable[..., str]] = {
    "api": from_modules.api,
    "errors": from_modules.errors,
    "cli": from_cli.verbs,
    "settings": from_settings.run_sections,
    "mechanisms": from_settings.mechanisms,
    "messages": from_modules.messages,
    "statements": from_papers.table,
    "theorems": from_sources.theorems,
    "gallery": from_studies.gallery,
}
_MARK = re.compile(r"^<!-- made from: (\S+) ?(.*?) -->$", re.M)


def fill(text: str, root: Path) -> str:
    """The text of a page with its marks replaced, and with links to the tests that it names."""
    made = _MARK.sub(lambda mark: GENERATORS[mark[1]](root, *mark[2].split()), text)
    return from_sources.linked_tests(made)


# a page for each verb and each public name: there while the site is built


def _write(app: Any) -> None:
    source = Path(app.srcdir)
    for place, text in {**from_cli.pages(), **from_modules.pages(source.parent)}.items():
        (source / place).parent.mkdir(exist_ok=True)
        (source / place).write_text(text, encoding="utf-8")


def _remove(app: Any, exception: Exception | None) -> None:
    for folder in ("reference/cli", "reference/api/names"):
        rmtree(Path(app.srcdir, folder), ignore_errors=True)


def _read(app: Any, docname: str, source: list[str]) -> None:
    source[0] = fill(source[0], Path(app.srcdir).parent)


def _source_section(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Show the section Source of a docstring, which numpydoc does not know, as References."""
    for place, line in enumerate(lines[1:], start=1):
        if re.fullmatch(r"-+", line.strip()) and lines[place - 1].strip() == "Source":
            lines[place - 1] = lines[place - 1].replace("Source", "References")
            lines[place] = line.replace("------", "----------")


def _bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Bars are absolute values and conditions here, never substitutions."""
    formula: int | None = None  # how far the directive of a formula is indented, inside one
    for place, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if ".. math::" in line:
            formula = indent
        elif formula is not None and line.strip() and indent <= formula:
            formula = None
        if formula is None and not line.lstrip().startswith((">>>", "...")):
            lines[place] = line.replace("|", "\\|")


def setup(app: Any) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("builder-inited", _write)
    app.connect("build-finished", _remove)
    app.connect("source-read", _read, priority=100)
    app.connect("autodoc-process-docstring", _source_section, priority=100)
    app.connect("autodoc-process-docstring", _bars, priority=900)  # after numpydoc
    return {"parallel_read_safe": True}
