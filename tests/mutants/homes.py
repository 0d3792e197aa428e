"""Mutants made from the page of statements: each home is broken once, and the test named beside it must fail.

A broken function raises when it is called while a test runs; not before, when examples are made to test with. Of a
broken class no attribute of an instance can be read while a test runs, whenever the instance was made.
"""

import ast
import textwrap
import tomllib
from functools import cache
from pathlib import Path

from tests.mutants.catalogue import REPOSITORY, Mutant
from tests.trees import statements, tree_of

PAGE = Path("docs") / "_ext" / "statements.toml"
TESTED = '"PYTEST_CURRENT_TEST" in __import__("os").environ'
OF_A_CLASS = f"""
def __getattribute__(self, name):
    if {TESTED}:
        raise RuntimeError({{said!r}})
    return super().__getattribute__(name)
"""
OF_A_FUNCTION = f"""
if {TESTED}:
    raise RuntimeError({{said!r}})
"""


def load_homes(root: Path = REPOSITORY) -> list[Mutant]:
    """One mutant for each home and test that stand together in a row, named after the rows."""
    rows: dict[tuple[str, str], list[str]] = {}
    for paper in tomllib.loads((root / PAGE).read_text())["paper"]:
        for where, _, home, test in paper["statements"]:
            if home:
                rows.setdefault((home, test), []).append(f"{where} of {paper['name'].partition(',')[0]}")
    return [_broken(home, test, "; ".join(where), root) for (home, test), where in rows.items()]


def _broken(home: str, test: str, where: str, root: Path) -> Mutant:
    file, _, name = home.partition("::")
    path = f"src/dovetail/{file}"
    text, defined = _read(root / path)
    (node,) = (one for one in defined if one.name == name)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    lines = text.splitlines(keepends=True)
    end = _start(body[0]) - 1 if body else node.end_lineno or node.lineno
    line = "".join(lines[node.lineno - 1 : end])
    template = OF_A_CLASS if isinstance(node, ast.ClassDef) else OF_A_FUNCTION
    added = textwrap.indent(template.format(said=where), " " * node.body[0].col_offset)
    return Mutant(
        "statements", f"{where} has a test that does not look at its home.", path, line, line + added,
        (f"tests/{test}",), f"{name} raises, seen by {test.partition('::')[2]}",
    )  # fmt: skip


@cache
def _read(path: Path) -> tuple[str, list[ast.ClassDef | ast.FunctionDef]]:
    """A file, and the classes and functions in it."""
    nodes = statements(tree_of(path))
    return path.read_text(), [node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)]


def _start(node: ast.stmt) -> int:
    """The first line of a statement, its decorators included."""
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
