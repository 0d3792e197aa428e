"""The page about accuracy runs."""

import re
from pathlib import Path

import pytest
from tests.tiers import EXHAUST

PAGE = (Path(__file__).parent.parent / "docs" / "accuracy.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


SLOW = re.compile("amplify_mixture|memoized_guarantee")
CASES = [
    pytest.param(block, marks=EXHAUST if SLOW.search(block) else (), id=str(at)) for at, block in enumerate(BLOCKS)
]


@pytest.mark.parametrize("block", CASES)
def test_every_block_runs_and_its_figures_hold(block: str) -> None:
    assert "assert" in block
    exec(compile(block, "accuracy.md", "exec"), {})
