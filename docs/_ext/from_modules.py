"""Public names, errors and messages, from the modules that hold them."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any


def _directive(module: str, name: str, found: Any) -> str:
    home = getattr(found, "__module__", module)
    if inspect.isclass(found):
        return f".. autoclass:: {home}.{found.__qualname__}\n   :members:\n   :show-inheritance:\n"
    return f".. autofunction:: {home}.{name}\n"


def _documented(module: str) -> dict[str, Any]:
    """The public names of a module, those that are no modules."""
    names = sorted(import_module(module).__all__, key=str.lower)
    found = {name: getattr(import_module(module), name) for name in names}
    return {name: one for name, one in found.items() if callable(one) and not inspect.ismodule(one) and one.__doc__}


def api(root: Path, module: str) -> str:
    """A line for each public name of a module, and where its page is."""
    rows, pages = ["| name | what it is |", "| --- | --- |"], []
    for name, one in _documented(module).items():
        first = " ".join((inspect.getdoc(one) or "").split("\n\n")[0].split()).replace("|", "\\|")
        rows.append(f"| [{name}](names/{module}.{name}.md) | {first} |")
        pages.append(f"names/{module}.{name}")
    listed, shown = "\n".join(rows), "\n".join(pages)
    return f"{listed}\n\n```{{toctree}}\n:hidden:\n\n{shown}\n```"


def pages(root: Path) -> dict[str, str]:
    """The page of each public name, with its documentation, by its place below `docs`."""
    return {
        f"reference/api/names/{module}.{name}.md": f"# {name}\n\n`{module}.{name}`\n\n"
        f"```{{eval-rst}}\n{_directive(module, name, one)}```\n"
        for module in (path.stem for path in (root / "docs/reference/api").glob("dovetail*.md"))
        for name, one in _documented(module).items()
    }


def errors(root: Path) -> str:
    """The tree of errors, drawn once, where they are defined."""
    from dovetail_protocol import errors as home

    def below(kind: type, depth: int) -> list[str]:
        text = " ".join(inspect.getdoc(kind).split("\n\n")[0].split()) if kind.__doc__ else ""
        line = f"{'  ' * depth}- **{kind.__name__}**: {text}"
        kinds = [one for one in kind.__subclasses__() if one.__module__ == home.__name__]
        return [line, *(inner for one in kinds for inner in below(one, depth + 1))]

    return "\n".join(below(home.DovetailError, 0))


def messages(root: Path) -> str:
    """What travels between device, shuffler and analyzer: one line for each module of the wire format."""
    rows = []
    for path in sorted((root / "device" / "src" / "dovetail_protocol" / "wire").glob("*.py")):
        if path.name == "__init__.py":
            continue
        module = import_module(f"dovetail_protocol.wire.{path.stem}")
        text = " ".join((module.__doc__ or "").split("\n\n")[0].split())
        rows.append(f"| `{module.__name__}` | {text} |")
    return "\n".join(["| module | what it holds |", "| --- | --- |", *rows])
