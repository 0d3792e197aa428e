"""Links from a page to files that are no pages lead to the repository; without an address of it they are paths."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer

REPOSITORY = os.environ.get("DOVETAIL_REPOSITORY", "")  # such as https://HOST/OWNER/NAME/blob/main/, when it is ours
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def redirect(text: str, docname: str, root: Path) -> str:
    """The text of a page of the folder docs, its links to other folders and to samples made absolute."""

    def lead(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join("docs", posixpath.dirname(docname), link[2]))
        inside = place.startswith("docs/") and not place.startswith("docs/samples")
        if inside or not (root / place).exists():
            return link[0]
        if not REPOSITORY:
            return link[1] if f"`{place.rpartition('/')[2]}`" in link[1] else f"{link[1]} (`{place}`)"
        return f"[{link[1]}]({REPOSITORY}{place}{link[3] or ''})"

    return _LINK.sub(lead, text)


def _read(app: Any, docname: str, source: list[str]) -> None:
    source[0] = redirect(source[0], docname, Path(app.srcdir).parent)


def setup(app: Any) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("source-read", _read, priority=900)
    app.add_lexer("mermaid", TextLexer)  # diagrams that the repository's pages draw and this site shows as text
    return {"parallel_read_safe": True}
