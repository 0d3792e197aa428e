"""The page about means of vectors runs, and its sample and its table are right."""

import re
import tomllib
from pathlib import Path

from dovetail.job.build import build_question, build_randomizer
from dovetail.job.config import load_config, parse_config
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail.randomize.vectors.closest_direction import ClosestDirection

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "vectors.md").read_text()


def test_every_block_runs_and_its_figures_hold() -> None:
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        assert "assert" in block
        exec(compile(block, "vectors.md", "exec"), {})


def test_the_configurations_are_read() -> None:
    [shown] = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    page, sample = parse_config(tomllib.loads(shown)), load_config(DOCS / "samples" / "vectors.toml")
    made = [build_randomizer(one.randomize, build_question(one, None)) for one in (page, sample) if one.randomize]
    assert made[0] == made[1] == ClosestDirection(1000, 1.0, 4.0)


def test_the_errors_of_the_table_are_computed() -> None:
    rows = re.findall(r"^\| error, `(\w+)`.*?\| (.*) \|$", PAGE, re.M)
    assert [name for name, _ in rows] == ["closest_direction", "rotated_blocks", "gaussian"]
    assert {name for name, _ in rows} == set(VECTOR_RANDOMIZERS.names())
    for name, cells in rows:
        for epsilon, cell in zip((1.0, 2.0, 4.0, 8.0), cells.split(" | "), strict=True):
            error = VECTOR_RANDOMIZERS[name](d=1000, radius=1.0, epsilon=epsilon).error(100_000)  # type: ignore[call-arg]
            assert error <= float(cell) * (1 + 1e-9) and float(cell) < 1.01 * error, (name, epsilon, error)
