"""The device's packages run where there is nothing but Python and `cryptography`; the protocol does no I/O."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dovetail_device
import dovetail_protocol

DEVICE, PROTOCOL = (Path(str(package.__file__)).parent for package in (dovetail_device, dovetail_protocol))
FILES = sorted([*DEVICE.rglob("*.py"), *PROTOCOL.rglob("*.py")])
ALLOWED = set(sys.stdlib_module_names) | {"cryptography", "dovetail_device", "dovetail_protocol"}
DOORS = {"os", "io", "pathlib", "shutil", "tempfile", "socket", "ssl", "sqlite3", "time", "subprocess"}
OPTIONAL = {"mqtt.py": {"paho"}}  # the extra of the same name

PROGRAM = """
import sys
for name in ("numpy", "scipy", "numba", "polars", "pydantic", "dovetail"):
    sys.modules[name] = None  # importing it raises ImportError
from dovetail_device.entropy import system_entropy
from dovetail_protocol.mechanism import mechanism
for name, parameters in {
    "krr": {"k": 4}, "hadamard": {"k": 100}, "unary": {"k": 20}, "local_hashing": {"k": 9},
    "laplace": {"lower": 0, "upper": 2}, "budget_laplace": {"lower": 1, "upper": 2, "beta": 0.5, "rho": 0.5},
    "closest_direction": {"d": 1, "radius": 2, "axes": 3},
}.items():
    made = mechanism(name, epsilon=1.0, **parameters)
    report = made.randomize([1] if name == "closest_direction" else 1, system_entropy())
    assert made.decode(made.encode(report)) == report
    print(name)
"""


def imported(source: str) -> set[str]:
    """Modules that a file imports, at the top or inside functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names.add(node.module or "")
    return names


def foreign(source: str) -> set[str]:
    """Packages that a file imports from outside the allowed ones."""
    return {name.split(".")[0] for name in imported(source)} - ALLOWED


@pytest.mark.parametrize("path", sorted(PROTOCOL.rglob("*.py")), ids=lambda path: path.name)
def test_the_protocol_opens_no_file_socket_or_clock_and_knows_no_device(path: Path) -> None:
    used = {name.split(".")[0] for name in imported(path.read_text())}
    assert not used & DOORS and "dovetail_device" not in used
    assert not re.search(r"(?<!def )(?<!\.)\bopen\(", path.read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_device_needs_only_the_standard_library_and_cryptography(path: Path) -> None:
    assert foreign(path.read_text()) <= OPTIONAL.get(path.name, set())


def test_a_foreign_import_would_be_found() -> None:
    assert foreign("def f():\n    import numpy.linalg\n    from dovetail.core import channel\n") == {
        "numpy",
        "dovetail",
    }


def test_every_mechanism_runs_without_arrays() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 7
