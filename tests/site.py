"""Checks of a built site, `python -m tests.site FOLDER`: nothing comes from elsewhere, every link leads somewhere.

With DOVETAIL_AXE, the place of an axe.min.js, every page is also opened in Chromium, wide and narrow, light and dark.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.browser import AXE, PHONE

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


def faults_in_a_browser(folder: Path) -> Iterator[str]:
    """What axe-core finds, what reaches beyond the edge, and what scripts complain about, page by page."""
    from playwright.sync_api import sync_playwright

    axe = Path(os.environ[AXE]).read_text()
    found = "axe.run().then(r => r.violations.map(v => v.id + ' ' + v.nodes[0].html.slice(0, 120)))"
    beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with sync_playwright() as program:
        browser = program.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page, said = browser.new_context(color_scheme=scheme).new_page(), list[str]()
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            for path in sorted(folder.rglob("*.html")):
                page.goto(path.resolve().as_uri())
                for width in (1280, PHONE):
                    page.set_viewport_size({"width": width, "height": 900})
                    page.evaluate(axe)
                    said += page.evaluate(found)
                    said += [f"{more} pixels beyond the edge"] if (more := page.evaluate(beyond)) else []
                    yield from (f"{path.relative_to(folder)}, {scheme}, {width} px: {one}" for one in said)
                    said.clear()
        browser.close()


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
    found += faults_in_a_browser(Path(sys.argv[1])) if AXE in os.environ and not found else []
    print("\n".join(found) or "the site loads nothing from elsewhere, and its links lead somewhere")
    sys.exit(bool(found))
