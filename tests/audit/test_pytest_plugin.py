"""The pytest plugin in somebody else's project, the samples that show it, and our own randomizers under it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import dovetail as dt
from dovetail.audit.pytest_plugin import Auditor
from dovetail.cli.main import invoke

SAMPLES = Path(__file__).parents[2] / "docs" / "samples" / "audit"
OURS: dict[str, tuple[Callable[[float], Any], list[Any]]] = {
    "krr": (lambda epsilon: dt.KRR(k=3, epsilon=epsilon), [0, 1, 2]),
    "unary": (lambda epsilon: dt.Unary(k=3, epsilon=epsilon), [0, 1, 2]),
    "hadamard": (lambda epsilon: dt.Hadamard(k=3, epsilon=epsilon), [0, 1, 2]),
    "subset selection": (lambda epsilon: dt.SubsetSelection(k=4, epsilon=epsilon), [0, 1, 2, 3]),
    "local hashing": (lambda epsilon: dt.LocalHashing(k=3, epsilon=epsilon), [0, 1, 2]),
    "laplace": (lambda epsilon: dt.Laplace(lower=0.0, upper=1.0, epsilon=epsilon), [0.0, 1.0]),
    "window": (lambda epsilon: dt.Window(lower=0.0, upper=1.0, epsilon=epsilon), [0.0, 1.0]),
}


@pytest.mark.parametrize(("made", "inputs"), OURS.values(), ids=list(OURS))
def test_our_randomizers_keep_their_epsilon_and_larger_ones_are_caught(
    made: Callable[[float], Any], inputs: list[Any], dovetail_audit: Auditor
) -> None:
    """A correct one raises an alarm with probability below 1e-9; five times the epsilon shows."""
    assert dovetail_audit(made(1.0), inputs, epsilon=1.0, calls=2_000).lower <= 1.0
    with pytest.raises(pytest.fail.Exception, match="alarm: at least "):
        dovetail_audit(made(5.0), inputs, epsilon=1.0, calls=2_000)


def in_project(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    (folder / "my_project.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "dovetail.audit.pytest_plugin", "-p", "no:cacheprovider"]
    (folder / "test_audit.py").write_text((SAMPLES / "test_audit.py").read_text())
    return subprocess.run([*command, "test_audit.py"], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("value if random.random() < .73 else 1 - value", 0, "2 passed"),
        ("value", 1, "alarm: at least "),
        ("0", 1, "At least 0.5 of the claim was to show"),
    ],
)
def test_the_sample_audits_the_randomizer_of_a_project(body: str, status: int, words: str, tmp_path: Path) -> None:
    done = in_project(tmp_path, f"import random\n\n\ndef randomize(value):\n    return {body}\n")
    assert done.returncode == status and words in done.stdout, done.stdout + done.stderr


def test_a_claim_that_is_not_proved_fails(dovetail_audit: Auditor) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"proved was expected\. impossible: "):
        dovetail_audit.claim(epsilon0=8, n=1000, delta=1e-5, epsilon=0.86)
    assert dovetail_audit.claim(epsilon0=8, n=1000, delta=1e-5, epsilon=0.86, expect="impossible").lower


def test_the_workflow_and_the_claims_that_are_shown_work(capsys: pytest.CaptureFixture[str]) -> None:
    steps = yaml.safe_load((SAMPLES / "workflow.yml").read_text())["jobs"]["audit"]["steps"]
    runs = [step["run"] for step in steps if "run" in step]
    assert runs[1:] == ["pytest test_audit.py", "dovetail audit claims claims.toml"]
    assert all((SAMPLES / run.split()[-1]).is_file() for run in runs[1:])
    assert invoke(["audit", "claims", str(SAMPLES / "claims.toml"), "--strict"]) == 0
