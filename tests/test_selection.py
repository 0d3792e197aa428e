"""How a run chooses its tests: tiers, shards, orders, and which skips are failures."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from argparse import ArgumentTypeError
from collections import Counter
from pathlib import Path

import pytest
from tests.plugins.selection import in_shard, ordered, shard
from tests.plugins.skips import summary
from tests.plugins.tiers import EXAMPLES, LONG_EXAMPLES, later
from tests.tiers import EXHAUST, tiered

ROOT = Path(__file__).parent.parent
NAMES = [f"tests/test_{letter}.py::test_it[{number}]" for letter in "abc" for number in range(100)]
SKIPPING = """
import pytest
@pytest.fixture(scope="session")
def server():
    pytest.skip("no-such-server is not installed")
def test_server(server): pass
def test_extra(): pytest.importorskip("no_such_module")
@pytest.mark.skipif(True, reason="needs the public data sets")
def test_data(): pass
@pytest.mark.xfail
def test_known(): assert False
"""


def ran(folder: Path, *options: str, **environment: str) -> tuple[int, str]:
    """Exit status and last line of pytest on the tests in this folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [word for name in ("selection", "skips", "tiers") for word in ("-p", f"tests.plugins.{name}")]
    done = subprocess.run(
        [*command, "--rootdir", folder, folder, *options], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
    )  # fmt: skip
    return done.returncode, done.stdout.strip().splitlines()[-1]


def test_each_test_is_in_exactly_one_shard_and_no_shard_is_much_larger() -> None:
    homes = [[part for part in range(1, 9) if in_shard(name, part, 8)] for name in NAMES]
    assert all(len(home) == 1 for home in homes)
    assert 15 < min(Counter(home[0] for home in homes).values()) <= max(Counter(h[0] for h in homes).values()) < 65
    assert all(in_shard(name, 1, 1) for name in NAMES)


@pytest.mark.parametrize("text", ["0/8", "9/8", "8", "/8", "1/0", "a/b", "-1/8", "²/8"])
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="`--shard` must be i/n"):
        shard(text)
    assert shard("3/8") == (3, 8)


def test_an_order_keeps_modules_together_and_mixes_everything_else() -> None:
    first, second = ordered(NAMES, "1"), ordered(NAMES, "2")
    assert sorted(first) == sorted(NAMES) and NAMES != first != second and ordered(NAMES[::-1], "1") == first
    modules = [name.partition("::")[0] for name in first]
    assert [modules.count(module) for module in dict.fromkeys(modules)] == [100, 100, 100]
    assert sum(modules[place] != modules[place + 1] for place in range(len(modules) - 1)) == 2


def test_what_is_not_for_the_first_tier_is_still_there() -> None:
    rows = tiered([1, (2, 3)], first=lambda case: case == 1)
    assert [row.values for row in rows] == [(1,), (2, 3)]
    assert [list(row.marks) for row in rows] == [[], [EXHAUST]]


MANY = """
import pytest
from hypothesis import given, strategies
@pytest.mark.parametrize("number", range(20))
def test_many(number): pass
@pytest.mark.every_case
@pytest.mark.parametrize("number", range(20))
def test_each(number): pass
examples = []
@given(strategies.integers())
def test_property(number): examples.append(number)
def test_examples():
    assert {bounds}
"""


def test_the_tiers_together_run_every_case_and_every_example(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(MANY.replace("{bounds}", f"0 < len(examples) <= {EXAMPLES}"))
    status, said = ran(tmp_path, "-m", "not exhaust")
    assert status == 0 and said.startswith("23 passed, 19 deselected"), said
    status, said = ran(tmp_path, "-m", "exhaust")
    assert status == 0 and said.startswith("20 passed, 22 deselected"), said
    (tmp_path / "test_it.py").write_text(MANY.replace("{bounds}", f"len(examples) > {EXAMPLES}"))
    assert ran(tmp_path)[1].startswith("42 passed")


def test_the_same_cases_are_left_for_the_second_tier_whichever_others_there_are() -> None:
    assert len(later(NAMES)) == len(NAMES) - 1 and later(NAMES[:1]) == set()
    assert later(NAMES[::-1]) == later(NAMES) and later(sorted(later(NAMES))) < later(NAMES)


@EXHAUST
@pytest.mark.parametrize(
    ("forbidden", "status", "said"),
    [("0", 0, "3 skipped, 1 xfailed"), ("1", 1, "1 failed, 1 skipped, 1 xfailed, 1 error")],
)
def test_a_missing_server_or_module_is_skipped_but_fails_where_skips_are_forbidden(
    tmp_path: Path, forbidden: str, status: int, said: str
) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING)
    found = ran(tmp_path, DOVETAIL_NO_SKIPS=forbidden)
    assert found[0] == status and found[1].startswith(said), found


def test_a_run_ends_with_what_it_skipped_and_what_would_run_it() -> None:
    no_spark = "could not import 'pyspark': No module named 'pyspark'"
    no_flint = "could not import 'flint': No module named 'flint'"
    reasons = [no_spark, no_flint, "mosquitto_pub is not installed", no_spark, "the weather", "could not import 'x'"]
    assert summary(reasons) == [
        "    2 could not import 'pyspark': pip install --editable '.[spark]'",
        "    1 could not import 'flint': pip install --editable '.[certified]'",
        "    1 mosquitto_pub is not installed: apt-get install mosquitto-clients",
        "    1 the weather",
        "    1 could not import 'x'",
    ]


@EXHAUST
def test_a_module_that_skips_as_a_whole_fails_where_skips_are_forbidden(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass\n"
    )
    assert ran(tmp_path, DOVETAIL_NO_SKIPS="1")[0] != 0


@EXHAUST
def test_a_run_without_any_test_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    home = next(part for part in range(1, 9) if in_shard("test_it.py::test_it", part, 8))
    assert ran(tmp_path, "--shard", f"{home}/8")[0] == 0
    assert ran(tmp_path, "--shard", f"{home % 8 + 1}/8")[0] == 5


@pytest.mark.parametrize("name", LONG_EXAMPLES)
def test_long_examples_are_those_of_a_docstring(name: str) -> None:
    assert ">>>" in (pkgutil.resolve_name(name).__doc__ or "")
