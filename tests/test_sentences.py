"""A linter for sentences: patterns that no message, report, docstring's first line or page of the documentation has.

A riddle has a plain form: "whoever sees it" is "no matter who sees it" or "somebody who sees it", "what is none" is
"other text", and a mechanism has its label instead of its name in the code.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.documents import numeric, rehearsal, release, stream
from tests.report.test_renderings import text_of
from tests.trees import statements, tree_of

from dovetail.core.stages import RANDOMIZERS, SHUFFLERS
from dovetail.report.html import render_html

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "device" / "src").rglob("*.py")])
PAGES = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions")]
CODE = "|".join(sorted(name for registry in (RANDOMIZERS, SHUFFLERS) for name in registry.names() if "_" in name))
REFUSED = {
    "whoever": r"\b(?:whoever|whomever|whosoever)\b",
    "what is none": r"\b(?:what is none|where there is none of)\b",
    "two negations": r"\b(?:nobody|nothing|never|cannot) (?:\w+ ){0,2}?(?:not|nobody|nothing|none)\b",
    "a name of the code": rf"(?<![\w`./\"'=-])(?:{CODE})(?![\w`\"'=(]|\.\w)",
}


def refused(text: str) -> set[str]:
    """The patterns that a sentence has; what stands in backticks is code."""
    prose = re.sub(r"`[^`]*`", "", text)
    return {name for name, pattern in REFUSED.items() if re.search(pattern, prose, re.I)}


def messages(tree: ast.Module) -> Iterator[str]:
    """The texts of exceptions that are raised."""
    for node in statements(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield "".join(
                part.value
                for part in ast.walk(node.exc)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def first_lines(tree: ast.Module) -> Iterator[str]:
    """The first lines of docstrings."""
    for node in statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield (ast.get_docstring(node) or "").partition("\n")[0]


@pytest.mark.parametrize("read", [messages, first_lines])
def test_messages_and_docstrings_are_plain(read: Callable[[ast.Module], Iterator[str]]) -> None:
    found = {source: [*read(tree_of(source))] for source in SOURCES}
    assert sum(len(texts) for texts in found.values()) > 500
    assert [(str(source), text) for source, texts in found.items() for text in texts if refused(text)] == []


def test_pages_are_plain() -> None:
    prose = {page: re.sub(r"^```.*?^```|\]\([^)]*\)", "", page.read_text(), flags=re.S | re.M) for page in PAGES}
    parts = [(page.name, part) for page, text in prose.items() for part in re.split(r"(?<=[.:;|])\s+", text)]
    assert len(parts) > 2000
    assert [(page, part) for page, part in parts if refused(part)] == []


@pytest.mark.parametrize("make", [rehearsal, release, numeric, stream])
def test_reports_are_plain(make: Callable[[], dict[str, Any]]) -> None:
    shown = re.sub(r"<pre.*?</pre>", "", render_html(make()), flags=re.S)
    assert [part for part in re.split(r"(?<=[.:;])\s+", text_of(shown)) if refused(part)] == []


def test_a_riddle_would_be_found() -> None:
    assert refused("It holds, whoever looks.") == {"whoever"}
    assert refused("The caller refuses what is none.") == {"what is none"}
    assert refused("Nobody is not promised less.") == refused("It never says nothing.") == {"two negations"}
    assert refused("Take within_groups.") == {"a name of the code"} and refused("Take `within_groups`.") == set()
    assert refused("Nobody sees it. It does not matter; without noise there is no promise.") == set()
