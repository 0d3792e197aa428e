"""The command lines of the pages that are no tutorials are run as they stand, on small made-up files.

Where chromium and axe-core are at hand, no page that they write breaks a rule of axe-core.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.browser import AXE, PHONE, violations

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
session: Any = import_module("session")

NOT_RUN = {  # the page, a part of the line, and why it is not run here
    ("collect.md", ""): "tests/collect/test_guide.py runs the guide, on all databases and through a broker",
    ("runbook.md", ""): "tests/collect/test_runbook.py runs them beside a shuffler",
    ("web.md", "web"): "a server: tests/web starts it and opens it in a browser",
    ("scale.md", "--engine spark"): "needs Java; tests/engine runs it where that is",
}


def _survey(folder: Path) -> None:
    rows = "".join(f"p{i},{'yes' if i % 4 else 'no'},{i % 90}\n" for i in range(800))
    (folder / "survey.csv").write_text(f"id,smoker,hours\n{rows}")


def _table(folder: Path) -> None:
    import polars as pl

    rows = {"id": [f"p{i}" for i in range(800)], "answer": ["yes" if i % 4 else "no" for i in range(800)]}
    pl.DataFrame(rows).write_parquet(folder / "table.parquet")
    toml = re.findall(r"```toml\n(.*?)```", (DOCS / "scale.md").read_text(), re.S)[0]
    (folder / "survey.toml").write_text(toml.replace('"table/"', '"table.parquet"'))  # one file suits every engine


def _documents(folder: Path) -> None:
    rng, words = (
        np.random.default_rng(5),
        {"sea": "sail tide deck rope storm", "bread": "oven flour yeast crust"},
    )

    def sentences(topic: str) -> list[str]:
        chosen = rng.choice(words[topic].split(), size=(8, 3))
        return [f"The {a} and the {b} near the {c}." for a, b, c in chosen]

    for name, many in (("public", 80), ("labelled", 40)):
        lines = [
            json.dumps({"id": f"{name}{i}", "abstract": sentences(topic), "archive": topic})
            for i in range(many)
            for topic in [list(words)[i % 2]]
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    letters = "".join(f'{i},"{" ".join(sentences("sea"))}"\n' for i in range(3))
    (folder / "letters.csv").write_text(f"id,text\n{letters}")


def _traces(folder: Path) -> None:
    rng, times = np.random.default_rng(3), np.arange(24) * 15.0
    root = np.linalg.cholesky(160_000.0 * np.exp(-((times[:, None] - times) ** 2) / (2 * 240.0**2)) + 25 * np.eye(24))

    def rows(name: str) -> str:
        x, y = root @ rng.standard_normal(24), root @ rng.standard_normal(24)
        return "".join(f"{name},{name},{t},{a},{b}\n" for t, a, b in zip(times, x, y, strict=True))

    for name, many in (("public", 8), ("mine", 1), ("many", 6)):
        lines = "".join(rows(f"{name}{i}") for i in range(many))
        (folder / f"{name}.csv").write_text(f"trace,person,time,x,y\n{lines}")


def _samples(folder: Path) -> None:
    rng = np.random.default_rng(1)
    for name in ("train", "heldout", "synthetic"):
        np.savetxt(folder / f"{name}.csv", rng.standard_normal((200, 3)), delimiter=",", header="a,b,c", comments="")


def _pairs(folder: Path) -> None:
    from dovetail.memorize.dejavu.pairs import Planted, write_pair

    for name in ("pair", "pair1", "pair2", "pair3"):
        write_pair(Planted(images=400, remembered="1/4", accuracy="1/5").pair(), folder / f"{name}.npz")


def _nothing(folder: Path) -> None:
    """Pages whose lines need no file."""


FILES: dict[str, Callable[[Path], None]] = {
    "check.md": _survey, "scale.md": _table, "text.md": _documents, "trace.md": _traces, "memorize.md": _samples,
    "dejavu.md": _pairs, "vectors.md": _nothing,
}  # fmt: skip
NEEDS = {"text.md": ["sentencex", "sklearn"], "trace.md": ["cvxpy"], "memorize.md": ["sklearn"]}
ALTERNATIVES = {"scale.md"}  # pages whose lines do the same in several ways: each begins anew


def lines_of(page: str) -> list[str]:
    """The command lines of a page in fenced blocks, their comments cut off."""
    fenced = "\n".join(re.findall(r"^```(?!\{)[^\n]*\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S))
    return [line.split(" #")[0].strip() for line in re.findall(r"^(?:\$ )?(dovetail [a-z].*)$", fenced, re.M)]


def reason(page: str, line: str) -> str:
    """Why a line is not run here; empty where it is."""
    return next((why for (where, part), why in NOT_RUN.items() if where == page and part in line), "")


def test_every_command_of_these_pages_is_run_or_says_why_not() -> None:
    for path in DOCS.glob("*.md"):
        for line in lines_of(path.name):
            assert path.name in FILES or reason(path.name, line), f"{path.name}: {line}"
    assert sum(len(lines_of(page)) for page in FILES) >= 18


@pytest.mark.exhaust
@pytest.mark.parametrize("page", FILES)
def test_the_commands_of_a_page_run_one_after_the_other(page: str, tmp_path: Path) -> None:
    for name in NEEDS.get(page, []):
        pytest.importorskip(name)
    lines = [line for line in lines_of(page) if not reason(page, line)]
    for number, group in enumerate([[line] for line in lines] if page in ALTERNATIVES else [lines]):
        folder = tmp_path / str(number)
        folder.mkdir()
        FILES[page](folder)
        shell = session.Session(folder, ledger=str(folder / "ledger"))
        for line in group:
            shell.command(line)
        if shutil.which("chromium") and AXE in os.environ:
            for made in folder.glob("*.html"):
                for dark, width in ((False, None), (True, PHONE)):
                    assert violations(made.read_text(), folder, dark=dark, width=width) == [], made.name
