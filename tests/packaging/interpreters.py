"""Which Pythons this machine has: on the path, from pyenv, from uv."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13")
_SAY = "import sys, venv; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"


def interpreters() -> dict[str, Path]:
    """The first interpreter found of each supported version that can make a virtual environment."""
    found: dict[str, Path] = {}
    for candidate in _candidates():
        version = version_of(candidate)
        if version in SUPPORTED:
            found.setdefault(version, candidate)
    return dict(sorted(found.items()))


def version_of(candidate: Path) -> str | None:
    """`3.11` for a CPython that runs and has all that an environment needs; None for anything else."""
    try:
        said = subprocess.run([candidate, "-c", _SAY], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version, _, kind = said.stdout.strip().partition(" ")
    return version if said.returncode == 0 and kind == "cpython" else None


def _candidates() -> Iterator[Path]:
    for version in SUPPORTED:
        if (on_path := shutil.which(f"python{version}")) is not None:
            yield Path(on_path)
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        yield from sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True)
        if (uv := shutil.which("uv")) is not None:
            words = [uv, "python", "find", "--no-python-downloads", version]
            said = subprocess.run(words, capture_output=True, text=True, check=False)
            yield from [Path(said.stdout.strip())] if said.returncode == 0 else []
