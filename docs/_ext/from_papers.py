"""The numbered statements of the papers, each with its home and a test."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from from_sources import breakable, link, sentence

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Statement:
    """One statement; `home` and `test` are empty where the package has no need of it."""

    paper: str
    where: str
    what: str
    home: str
    test: str


def statements() -> list[Statement]:
    """All of them, in the order of their papers."""
    papers = tomllib.loads((HERE / "statements.toml").read_text())["paper"]
    return [Statement(paper["name"], *row) for paper in papers for row in paper["statements"]]


def missing(one: Statement, root: Path) -> str | None:
    """What a statement names and nobody finds; None where all is there."""
    for place, folder in ((one.home, "src/dovetail"), (one.test, "tests")):
        file, _, name = place.partition("::")
        path = root / folder / file
        if file and not path.is_file():
            return place
        if name and not re.search(rf"^\s*(def|class) {name}\b", path.read_text(), re.M):
            return place
    return None


def _home(one: Statement) -> str:
    file, _, name = one.home.partition("::")
    return link(f"src/dovetail/{file}", f"{breakable(name)}, {breakable(file)}") if file else "none"


def _test(one: Statement) -> str:
    file, _, name = one.test.partition("::")
    return link(f"tests/{file}", sentence(name)) if file else ""


def table(root: Path) -> str:
    """One table for each paper."""
    found = statements()
    parts = []
    for paper in dict.fromkeys(one.paper for one in found):
        parts += [f"## {paper}", "", "| statement | what it says | home | test |", "| --- | --- | --- | --- |"]
        for one in found:
            if one.paper == paper:
                parts += [f"| {one.where} | {one.what} | {_home(one)} | {_test(one)} |"]
        parts += [""]
    return "\n".join(parts)
