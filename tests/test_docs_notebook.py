"""The page about notebooks runs cell by cell, what a cell ends with shows itself, and it says what really happens."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt

PAGE = (Path(__file__).parent.parent / "docs" / "notebook.md").read_text()
CELLS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def run(cell: str, names: dict[str, Any]) -> Any:
    """What the last line of a cell is, as a notebook would show it."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "notebook.md", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "notebook.md", "eval"), names)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def notebook() -> tuple[dict[str, Any], list[Any]]:
    """The names at the end of the page, and what each cell shows."""
    pytest.importorskip("matplotlib").use("Agg")
    names: dict[str, Any] = {}
    return names, [run(cell, names) for cell in CELLS]


def test_the_way_from_a_data_frame_to_a_report_takes_ten_statements_at_most() -> None:
    assert len(ast.parse(CELLS[0]).body) <= 10


@pytest.mark.exhaust
def test_every_cell_runs_and_shows_something(notebook: tuple[dict[str, Any], list[Any]]) -> None:
    names, shown = notebook
    assert shown[0] is names["report"] and len(shown) == len(CELLS) >= 5
    for one in shown:
        assert one is None or "<table" in one._repr_html_()


@pytest.mark.exhaust
def test_the_data_frame_has_the_columns_that_the_page_names(notebook: tuple[dict[str, Any], list[Any]]) -> None:
    named = re.findall(r"report\.to_polars\(\)  # (.*)", PAGE)[0].split(", ")
    assert set(named) <= set(notebook[0]["frame"].columns)
    assert notebook[0]["estimate"].to_polars()["label"].to_list() == ["no", "yes"]


def test_a_wrong_pair_says_what_the_page_says(notebook: tuple[dict[str, Any], list[Any]]) -> None:
    names, _ = notebook
    with pytest.raises(dt.DovetailError) as refused:
        dt.estimate_mean(names["krr"], names["batch"])
    assert f"> {refused.value}" in PAGE.splitlines()
