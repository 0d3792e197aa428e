"""How easily pages and reports read: `python -m tests.reading_ease`, with textstat of the extra `bench`.

Flesch's reading ease of prose, without code, tables and headings: 60 to 70 is plain English, 70 to 80 fairly easy.
"""

import re
from html import unescape
from pathlib import Path

from tests.report.documents import numeric, rehearsal, release

from dovetail.report.html import render_html

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "docs/index.md", *sorted((ROOT / "docs/tutorials").glob("*.md"))]
OUTSIDE = (
    r"\A---\n.*?^---\n", r"^```.*?^```", r"^\|.*$", r"^#+ .*$", r"<[^>]+>", r"\*+", r"^[-\d.]+ ", r"^!\[.*$",
    r"^\(\S+\)=$",
)  # fmt: skip


def prose(page: str) -> str:
    """The sentences of a page; what stands in backticks is one word."""
    for pattern in OUTSIDE:
        page = re.sub(pattern, "", page, flags=re.S | re.M if ".*?" in pattern else re.M)
    page = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "x", page))
    return re.sub(r":$", ".", page, flags=re.M)


def paragraphs(page: str) -> str:
    """The sentences of a report, the folded ones too."""
    found = re.findall(r"<(?:p|li|figcaption|summary)\b[^>]*>(.*?)</(?:p|li|figcaption|summary)>", page, re.S)
    return "\n".join(unescape(re.sub(r"<[^>]+>", "", one)).strip().rstrip(".:") + "." for one in found)


def main() -> None:
    """Print a line for each text."""
    import textstat  # type: ignore[import-not-found]

    texts = {str(page.relative_to(ROOT)): prose(page.read_text(encoding="utf-8")) for page in PAGES}
    for make in (rehearsal, release, numeric):
        texts[f"report of a {make.__name__}"] = paragraphs(render_html(make()))
    for name, text in texts.items():
        print(f"{textstat.flesch_reading_ease(text):5.0f}  {name}, {len(text.split()):,} words")


if __name__ == "__main__":
    main()
