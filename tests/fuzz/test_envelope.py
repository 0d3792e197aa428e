"""A few thousand inputs of coverage-guided fuzzing; run `tests/fuzz/envelope.py` by hand for longer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.exhaust
def test_three_thousand_inputs_of_fuzzing_find_nothing(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this Python")
    found = subprocess.run(
        [sys.executable, str(ROOT / "tests/fuzz/envelope.py"), "-runs=3000", "-max_len=400", "-seed=1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert "Done" in found.stderr and not list(tmp_path.iterdir())  # libFuzzer leaves a file where it finds something
