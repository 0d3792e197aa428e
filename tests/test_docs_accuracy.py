"""The page about accuracy runs."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "accuracy.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_block_runs_and_its_figures_hold(block: str) -> None:
    assert "assert" in block
    exec(compile(block, "accuracy.md", "exec"), {})
