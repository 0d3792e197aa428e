"""Sources as trees, each file parsed once in a process: several tests look at all of them."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """The tree of a file; to look for garbage among so many nodes, all of which stay, takes longer than to parse."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        if was_on:
            gc.enable()


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """A tree and every statement in it, however deep; expressions, which are most of a tree, are not looked into."""
    found = [tree]
    while found:
        yield (node := found.pop(0))
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            found += getattr(node, name, ())
