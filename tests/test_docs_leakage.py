"""The page about leakage runs, and what it names exists."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "leakage.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_block_runs_and_its_figures_hold(block: str) -> None:
    assert "assert" in block
    exec(compile(block, "leakage.md", "exec"), {})


def test_every_name_of_the_general_core_exists() -> None:
    table = PAGE.split("| libqif | here |")[1].split("\n\n")[0]
    named = re.findall(r"`leak\.qif\.(\w+)`: (.*?) \|", table)
    assert len(named) == len(table.strip().splitlines()) - 1  # one home in each row below the ruler
    for module, functions in named:
        home = importlib.import_module(f"dovetail.leak.qif.{module}")
        for function in re.findall(r"`(\w+)`", functions):
            assert callable(getattr(home, function)), (module, function)
