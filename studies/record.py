"""What every study leaves next to its table: seed, commit, machine, and a picture where matplotlib is installed."""

import argparse
import ast
import inspect
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.errors import MissingExtraError
from dovetail.report.pictures import save_figure

HOME = Path(__file__).parent


def record(out: Path, *, seed: int, full: bool) -> None:
    """Write out/record.json: enough to trace every figure of the table.

    `code` is the digest of the code of the study that calls, by which a test finds results of other code; `commit`
    ends in "-dirty" where the checkout had changes of its own.
    """
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=HOME,
        capture_output=True,
        text=True,
        check=False,
    )
    facts = {
        "seed": seed,
        "size": "full" if full else "toy",
        "code": digest(_calling()),
        "commit": done.stdout.strip() or "unknown",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    (out / "record.json").write_text(json.dumps(facts, indent=2) + "\n")


def _calling() -> str:
    """The study that is running: the innermost caller whose file lies in a folder of studies."""
    frame = inspect.currentframe()
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.parent.parent == HOME:
            return file.parent.name
        frame = frame.f_back
    raise RuntimeError("`record` must be called by a study.")


def digest(study: str, home: Path = HOME) -> str:
    """What makes the table of a study: the meaning of its code, of the code of studies that it imports, its settings.

    Remarks, layout, imports, pictures and verdicts do not count: they leave the table as it is.
    """
    found, todo = set[Path](), [path for path in (home / study).rglob("*") if path.suffix in (".py", ".toml")]
    while todo:
        path = todo.pop()
        if path in found or path in (home / "record.py", home / study / "expected.toml"):
            continue
        found.add(path)
        if path.suffix == ".py":
            todo += _imported(path, home)
    whole = sha256()
    for path in sorted(found):
        said = path.read_text()
        whole.update(path.relative_to(home).as_posix().encode() + b"\n")
        whole.update((meaning(said) if path.suffix == ".py" else said).encode() + b"\n")
    return whole.hexdigest()[:16]


def _imported(path: Path, home: Path) -> list[Path]:
    """Files of studies that a file imports from."""
    sought = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "studies":
            place = home.joinpath(*str(node.module).split(".")[1:])
            sought += [place.with_suffix(".py"), *(place / f"{name.name}.py" for name in node.names)]
    return [file for file in sought if file.is_file()]


AFTERWARDS = {"verdict", "drawn", "picture"}  # what is said of a table and drawn from it


def meaning(text: str) -> str:
    """A program as one line, equal for programs that make the same table, under every version of Python."""
    tree = ast.parse(text)
    return _plain([node for node in tree.body if getattr(node, "name", "") not in AFTERWARDS])


def _plain(node: Any) -> str:
    if isinstance(node, list):
        return "[" + " ".join(part for one in node if (part := _plain(one))) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Expr) and _says_or_draws(node.value)):
        return ""
    fields = (
        f"{name}={_plain(value)}"
        for name, value in ast.iter_fields(node)
        if value not in (None, []) and name not in ("ctx", "kind", "type_comment", "annotation", "returns")
    )
    return f"({type(node).__name__} {' '.join(fields)})"


def _says_or_draws(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in AFTERWARDS
    return isinstance(value, ast.Constant)  # a docstring


def picture(path: Path, draw: Callable[[Any], Any]) -> bool:
    """Save the figure that draw(pyplot) returns; False, and a line that says so, without matplotlib."""
    try:
        save_figure(path, draw)
    except MissingExtraError as missing:
        print(f"{path.name}: no picture. {missing}", file=sys.stderr)
        return False
    return True


def command(main: Callable[[bool, Path], object], description: str | None) -> None:
    """The command line of a study: --full, --out."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the size of the claim instead of a toy")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the results (default: out)")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    main(arguments.full, arguments.out)
