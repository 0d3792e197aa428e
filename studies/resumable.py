"""Long studies in cells: what is finished is on disk, one line for each cell, and a restart goes on from there."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dovetail.cli.progress import each
from dovetail.core.errors import DataError

Cell = dict[str, Any]  # what is measured: plain values
Row = dict[str, Any]  # the cell, and what was found


def resumed(path: Path, cells: Iterable[Cell], measure: Callable[[Cell], Row], *, parameters: Cell) -> list[Row]:
    """The rows of all cells, in order; those that `path` holds already are not measured again.

    The first line of the file holds the parameters. A last line without an end was cut off by an interruption and is
    dropped.

    Raises
    ------
    DataError
        When the file was written with other parameters: rows of two studies must not mix.
    """
    done = {_key(row["cell"]): row["found"] for row in _finished(path, parameters)}
    rows = []
    with path.open("a") as file:
        for cell in each(cells, "measure"):
            if _key(cell) not in done:
                done[_key(cell)] = measure(cell)
                file.write(json.dumps({"cell": cell, "found": done[_key(cell)]}) + "\n")
                file.flush()
            rows.append({**cell, **done[_key(cell)]})
    return rows


def _finished(path: Path, parameters: Cell) -> list[dict[str, Any]]:
    """The whole lines after the first; the file is left with these."""
    head = json.dumps({"parameters": parameters}, sort_keys=True) + "\n"
    text = path.read_text() if path.exists() else ""
    whole = text[: text.rfind("\n") + 1] or head
    if not whole.startswith(head):
        raise DataError(f"{path} was written with other parameters; name another folder, or delete it.")
    path.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()[1:]]


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)
