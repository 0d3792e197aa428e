"""Checks of a built site, `python -m tests.site FOLDER`: nothing comes from elsewhere, every link leads somewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = dict.fromkeys(("script", "img", "iframe", "source", "audio", "video", "embed"), "src")
LOADS |= {"object": "data", "link": "href", "use": "href"}
_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"')\s]+)""")
_NAVIGATES = {"canonical", "next", "prev", "search", "index", "author", "help", "license"}


class _Page(HTMLParser):
    """What a page loads, where it leads and which places it has."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        rel = set(given.get("rel", "").split())
        if tag in LOADS and LOADS[tag] in given and not (tag == "link" and rel and rel <= _NAVIGATES):
            self.loads.append(given[LOADS[tag]])
        self.loads += re.findall(r"\S+", given.get("srcset", "")) if "srcset" in given else []
        self.loads += _STYLE.findall(given.get("style", ""))
        if tag == "a" and "href" in given:
            self.leads.append(given["href"])


@cache
def parsed(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def foreign(address: str) -> bool:
    """Whether an address is on another machine."""
    return bool(re.match(r"(?:https?:|wss?:|ftp:)?//", address.strip(), re.I))


def loads_from_elsewhere(folder: Path) -> Iterator[str]:
    """Scripts, styles, fonts and pictures that a reader's browser would fetch from another machine."""
    for path in sorted(folder.rglob("*.html")):
        yield from (f"{path.relative_to(folder)}: {one}" for one in parsed(path).loads if foreign(one))
    for path in sorted(folder.rglob("*.css")):
        yield from (f"{path.relative_to(folder)}: {one}" for one in _STYLE.findall(path.read_text(encoding="utf-8")))


def dead_links(folder: Path) -> Iterator[str]:
    """Links inside the site that lead nowhere."""
    for path in sorted(folder.rglob("*.html")):
        for lead in dict.fromkeys(parsed(path).leads + parsed(path).loads):
            parts = urlsplit(lead)
            if parts.scheme or parts.netloc or path.name in ("search.html", "genindex.html"):
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if not target.is_file() or (
                parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in parsed(target).places
            ):
                yield f"{path.relative_to(folder)}: {lead}"


def faults(folder: Path) -> list[str]:
    """All that is wrong with a built site."""
    if not (folder / "index.html").is_file():
        return [f"{folder}: holds no index.html; run `make docs`"]
    return [
        *(f"loads from elsewhere: {one}" for one in loads_from_elsewhere(folder)),
        *(f"dead link: {one}" for one in dead_links(folder)),
    ]


if __name__ == "__main__":
    found = faults(Path(sys.argv[1]))
    print("\n".join(found) or "the site loads nothing from elsewhere, and its links lead somewhere")
    sys.exit(bool(found))
