"""The table of theorems, from the sections Source of docstrings, the mutants and the tests."""

from __future__ import annotations

import ast
import inspect
import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = os.environ.get("DOVETAIL_REPOSITORY", "")  # such as https://HOST/OWNER/NAME/blob/main/, when it is ours
SOURCE = re.compile(r"^ *Source\n *-+\n", re.M)
OURS = re.compile(r"docs/theory/[\w-]+\.md")
STAGES = {
    "randomize": "Randomizers",
    "account": "Accounting",
    "shuffle": "Shufflers and order privacy",
    "estimate": "Estimates",
    "leak": "Leakage",
    "attack": "Attacks",
    "question": "Questions",
    "noise": "Noise",
    "plan": "Planning",
    "datasets": "Data sets",
    "table": "Tables",
    "job": "The main job",
    "trace": "Location traces",
    "text": "Documents",
    "memorize": "Memorization",
    "audit": "Claims",
    "core": "Core",
}


@dataclass(frozen=True)
class Theorem:
    """A claim with its home."""

    claim: str
    source: str
    file: str
    name: str

    @property
    def stage(self) -> str:
        return self.file.split("/")[2]


def _paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def source_of(docstring: str) -> str | None:
    """What stands below the heading Source."""
    found = re.search(r"^Source\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", docstring, re.M | re.S)
    return None if found is None else " ".join(found[1].split())


def _documented(path: Path) -> Iterator[tuple[str, str]]:
    """Every docstring of a file that names a source somewhere, with the name of what it belongs to."""
    source = path.read_text()
    nodes: list[ast.AST] = [ast.parse(source)] if SOURCE.search(source) else []
    while nodes:
        node = nodes.pop(0)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            nodes += node.body
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", ""), inspect.cleandoc(text)


@cache
def collect(root: Path) -> list[Theorem]:
    """Every docstring that names a source."""
    found = []
    for path in sorted((root / "src" / "dovetail").rglob("*.py")):
        for name, text in _documented(path):
            if (source := source_of(text)) is not None:
                found.append(Theorem(_paragraph(text), source, str(path.relative_to(root)), name))
    return found


def tests_of(root: Path) -> dict[str, list[str]]:
    """Which tests must fail when a line of a file is changed, as the mutants name them."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "tests" / "mutants").glob("*.toml")):
        for mutant in tomllib.loads(path.read_text())["mutant"]:
            found[mutant["file"]] += [test.split("[")[0] for test in mutant["tests"]]
    return found


@cache
def importers(root: Path, folder: str) -> dict[str, list[str]]:
    """Which files of a folder import from a module of ours, or name what it exports."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((root / folder).rglob("*.py")):
        text = path.read_text()
        for module in set(re.findall(r"^\s*(?:from|import) (dovetail[\w.]*)", text, re.M)):
            found[module].append(str(path.relative_to(root)))
        for name in set(re.findall(r"\bdt\.(\w+)", text)):
            found[f"dt.{name}"].append(str(path.relative_to(root)))
    return found


def _module(file: str) -> str:
    return file.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def breakable(path: str) -> str:
    """A path or a name that a narrow column breaks between its words."""
    return re.sub(r"([/_])(?=\w)", r"\1<wbr>", path)


def link(path: str, label: str = "") -> str:
    """A link to a file of the repository, by default under its name; without an address of it the path."""
    if not REPOSITORY:
        return f"{label} (`{path}`)" if label else f"`{path}`"
    return f"[{label or breakable(path.rsplit('/', 1)[-1])}]({REPOSITORY}{path})"


def sentence(test: str) -> str:
    """The name of a test as the sentence that it is."""
    return test.removeprefix("test_").replace("_", " ")


def linked_tests(text: str) -> str:
    """Tests that a page names, as links that read as sentences."""
    return re.sub(r"`(tests/[\w/]+\.py)::(test_\w+)`", lambda found: link(found[1], sentence(found[2])), text)


def _evidence(theorem: Theorem, root: Path, mutants: dict[str, list[str]]) -> str:
    named = dict.fromkeys(mutants.get(theorem.file, []))
    if named:
        first = list(named)[:2]
        shown = [link(test.split("::")[0], sentence(test.split("::")[1])) for test in first]
        more = f" and {len(named) - len(first)} more" if len(named) > len(first) else ""
        return "; ".join(shown) + more
    files = importers(root, "tests").get(_module(theorem.file), [])
    files = files or importers(root, "tests").get(f"dt.{theorem.name}", [])
    return ", ".join(link(file) for file in files[:2]) or "its doctest"


def _benchmark(theorem: Theorem, root: Path) -> str:
    found = importers(root, "benchmarks")
    files = found.get(_module(theorem.file), []) or found.get(f"dt.{theorem.name}", [])
    return ", ".join(link(file) for file in files[:2])


def _proved(source: str) -> str:
    text = source.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")
    ours = OURS.findall(source)
    for page in dict.fromkeys(ours):
        stem = page.rsplit("/", 1)[-1]
        text = re.sub(rf"`?{re.escape(page)}`?", f"[{stem}](../theory/{stem})", text)
    return f"**ours**: {text}" if ours else text


def theorems(root: Path) -> str:
    """The table, one for each stage."""
    mutants, by_stage = tests_of(root), defaultdict(list)
    for theorem in collect(root):
        by_stage[theorem.stage].append(theorem)
    parts = []
    for stage in sorted(by_stage, key=lambda one: [*STAGES, one].index(one)):
        parts += [f"## {STAGES.get(stage, stage)}", ""]
        parts += ["| claim | where proved | home | tests | benchmark |"]
        parts += ["| --- | --- | --- | --- | --- |"]
        for one in by_stage[stage]:
            home = link(one.file, breakable(one.file.removeprefix("src/dovetail/")))
            claim = one.claim.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")
            cells = [claim, _proved(one.source), home, _evidence(one, root, mutants), _benchmark(one, root)]
            parts.append(f"| {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)
