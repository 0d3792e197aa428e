"""Loops in plain Python, where numba is not installed, do what machine code does, to the last bit."""

import os
import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest

from dovetail.core.compiled import hint, is_compiled
from dovetail.core.entropy import simulation
from dovetail.core.stages import RANDOMIZERS, FrequencyRandomizer
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.within_groups import WithinGroups


def digests() -> list[str]:
    """Of what every randomizer, its estimate, and shufflers with groups make of one seed."""
    found: list[bytes] = []
    values = np.arange(120)
    for kind in RANDOMIZERS:
        for one in kind.examples()[:2]:
            if isinstance(one, FrequencyRandomizer):
                reports = one.randomize(values % one.k, rng=simulation(1))
                found += [np.asarray(reports).tobytes(), estimate_frequencies(one, reports).value.tobytes()]
    ages = Groups.from_labels(np.arange(300) // 7 % 9)
    points = np.linspace(0.0, 1.0, 300)[:, None] ** 2
    near = Groups.within_radius(points, 0.02)
    for shuffler in (WithinGroups(ages), Mallows.fit(near, alpha=3.0, points=points)):
        found.append(shuffler.permutation(simulation(2)).tobytes())
    return [sha256(each).hexdigest() for each in found]


def run(program: str, **environment: str) -> str:
    words = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(
        words, capture_output=True, text=True, check=True, env={**os.environ, **environment}
    ).stdout.strip()


@pytest.mark.exhaust
def test_plain_loops_draw_and_estimate_the_same() -> None:
    program = "from tests.core.test_compiled import digests; print(*digests())"
    assert run(program, NUMBA_DISABLE_JIT="1").split() == digests()


@pytest.mark.exhaust
def test_without_numba_the_loops_run_and_a_hint_says_what_is_faster() -> None:
    program = (
        "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'numba' else real(name, *rest)\n"
        "import dovetail as dt; from dovetail.cli.progress import faster\n"
        "assert faster() == ''\n"
        "reports = dt.KRR(k=3, epsilon=1.0).randomize([0, 1, 2] * 50)\n"
        "assert set(reports.tolist()) <= {0, 1, 2}\n"
        "print(faster())"
    )
    assert run(program) == hint()


def test_the_switch_of_numba_is_ours_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not is_compiled()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert is_compiled()


@pytest.mark.exhaust
@pytest.mark.parametrize("part", ["tests/randomize", "tests/laws/test_estimators.py", "tests/shuffle/test_groups.py"])
def test_the_tests_of_the_loops_pass_without_machine_code(part: str) -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-m", "not exhaust", "-p", "no:cacheprovider", part]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}
    )
    assert done.returncode == 0, done.stdout[-3000:]
