"""What is installed runs: a few commands in a clean environment, in an empty folder outside of the source tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.packaging.lock import pins

MOST_MEGABYTES = 420  # of the base install; docs/packaging.md says what they are

# every public name, and that what is imported is what was installed
_NAMES = """
import sys, {package}
names = [name for name in getattr({package}, "__all__", ())]
assert {package}.__file__.startswith(sys.prefix), {package}.__file__
assert [name for name in names if not hasattr({package}, name)] == []
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment of one interpreter, with nothing in it but what was asked for."""

    folder: Path

    @classmethod
    def of(cls, interpreter: Path, wheels: Sequence[str]) -> Environment:
        """A fresh environment in a temporary folder, with these wheels and the libraries' versions in `lock/`."""
        environment = cls(Path(tempfile.mkdtemp(prefix="dovetail-clean-")))
        _run([interpreter, "-m", "venv", "--without-pip", environment.folder / "venv"], environment.folder)
        (constraints := environment.folder / "constraints.txt").write_text("\n".join(pins()))
        pip = [sys.executable, "-m", "pip", "--python", environment.folder / "venv" / "bin" / "python"]
        install = ["install", "--quiet", "--disable-pip-version-check", "--no-compile", "--constraint", constraints]
        _run([*pip, *install, *wheels], environment.folder)
        return environment

    def megabytes(self) -> float:
        """What lies in the environment, in millions of bytes, before anything was compiled."""
        files = (path for path in (self.folder / "venv").rglob("*") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_size for path in files) / 1e6

    def run(self, program: str, *words: str | Path) -> str:
        """The output of a program of this environment; what it says on failure is in the error."""
        (self.folder / "work").mkdir(exist_ok=True)
        return _run([self.folder / "venv" / "bin" / program, *words], self.folder / "work")

    def document(self, program: str, *words: str | Path) -> Any:
        """What a verb answers in JSON."""
        return json.loads(self.run(program, *words, "--json"))


def both(environment: Environment) -> None:
    """The two distributions together: the demo, a verb of the accountant, and a device's first step."""
    for package in ("dovetail", "dovetail_device", "dovetail_protocol"):
        environment.run("python", "-c", _NAMES.format(package=package))
    told = environment.document("dovetail", "demo", "--out", "report")
    assert told["central"]["epsilon"] > 0.0, told["central"]
    assert (environment.folder / "work" / "report" / "report.html").stat().st_size > 10_000
    bound = environment.document("dovetail", "account", "--epsilon0", "1", "--n", "1000", "--delta", "1e-6")
    assert 0.0 < bound["epsilon"] < 1.0, bound
    device(environment)


def device(environment: Environment) -> None:
    """A device: its help, and its keys, which is the first thing that it does."""
    assert "submit" in environment.run("dovetail-device", "--help")
    assert len(environment.document("dovetail-device", "keys", "device.key")["device"]) > 20


def alone(environment: Environment) -> None:
    """A device without the analyst's package needs neither numpy nor anything else of it."""
    device(environment)
    for absent in ("numpy", "dovetail"):
        environment.run("python", "-c", f"import importlib.util as u, sys; sys.exit(bool(u.find_spec({absent!r})))")


def small(environment: Environment) -> None:
    """The base install is small, needs no compiler, and answers the first questions and runs the main job."""
    environment.run("python", "-c", "import importlib.util as u, sys; sys.exit(bool(u.find_spec('numba')))")
    megabytes = environment.megabytes()
    assert megabytes <= MOST_MEGABYTES, f"the base install takes {megabytes:.0f} MB"
    print(f"base install: {megabytes:.0f} MB")
    asked = ["--question", "frequency", "--k", "2", "--n", "300", "--epsilon", "1", "--randomizer", "krr"]
    plan = environment.document("dovetail", "plan", *asked)
    rows = "".join(f"{'yes' if row % 3 else 'no'}\n" for row in range(300))
    (environment.folder / "work" / "survey.csv").write_text(f"answer\n{rows}")
    environment.run("dovetail", "check", "survey.csv", "--private", "answer", "--epsilon", repr(plan["epsilon0"]))
    for line in ("from dovetail.web.app import web_app", "from dovetail.datasets.people import redbook; redbook()"):
        environment.run("python", "-c", line)
    assert environment.document("dovetail", "run", "survey.toml")["central"]["epsilon"] == plan["epsilon"]


def _run(words: Sequence[str | Path], folder: Path) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        said = f"{' '.join(map(str, words))} failed with {done.returncode}"
        raise RuntimeError(f"{said}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout
