"""The first tier on other Pythons, or with the oldest libraries allowed: `python -m tests.packaging.versions 3.13`.

The environments are made by uv, in `.venv/versions`; nothing is built from source but this repository.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.packaging.distributions import ROOT
from tests.packaging.interpreters import SUPPORTED, interpreters

HOME = ROOT / ".venv" / "versions"
# Interfaces of libraries that are near their oldest versions: arrays, tables, pages, servers, the command line.
CORE = ("core", "randomize", "estimate", "report", "cli", "leak/test_certified.py", "account/test_interop.py",
        "job/test_table.py", "collect/store", "collect/test_web.py", "collect/device/test_mqtt.py")  # fmt: skip
EXTRAS = ("demo", "studies", "serve", "certified", "interop", "data", "test", "mqtt")


def main() -> int:
    """Make each environment, run the tests there, say what ran; 1 where any of them fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.packaging.versions", description=__doc__)
    parser.add_argument("python", nargs="*", choices=SUPPORTED, default=[], help="default: all that are here")
    parser.add_argument("--lowest", action="store_true", help="oldest direct dependencies; the tests near them only")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="only these tests")
    options = parser.parse_args()
    found, failed = interpreters(), []
    for version in options.python or found:
        if version not in found:
            print(f"Python {version}: not on this machine", flush=True)
            failed += [version]
            continue
        python = environment(found[version], version, lowest=options.lowest)
        chosen = options.tests or ([f"tests/{part}" for part in CORE] if options.lowest else [])
        command = [python, "-m", "pytest", "--numprocesses", "2", "--dist", "worksteal", "-m", "not exhaust", *chosen]
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        print(f"Python {version}{' with the lowest versions' if options.lowest else ''}: exit {status}", flush=True)
        failed += [version] if status else []
    return bool(failed)


def environment(interpreter: Path, version: str, *, lowest: bool) -> Path:
    """The Python of an environment with both distributions, editable, and what they need."""
    folder = HOME / f"{version}{'-lowest' if lowest else ''}"
    pins = HOME / f"{folder.name}.txt"
    HOME.mkdir(parents=True, exist_ok=True)
    uv("venv", "--clear", "--python", interpreter, folder)
    resolve(EXTRAS, version, pins, "--resolution", "lowest-direct" if lowest else "highest", "--only-binary", ":all:",
            "--no-binary", "dovetail-device")  # fmt: skip
    python = folder / "bin" / "python"  # named, because uv takes the Python that runs it for the one that is meant
    uv("pip", "install", "--python", python, "--no-deps", "-r", pins, "-e", ROOT / "device", "-e", ROOT)
    return python


def resolve(extras: Iterable[str], version: str, out: Path, *options: str | Path) -> None:
    """Pin all that both distributions and these extras need, without hosts, paths or comments."""
    own = HOME / "own.txt"
    HOME.mkdir(parents=True, exist_ok=True)
    own.write_text(f"dovetail-device @ {(ROOT / 'device').as_uri()}\n")
    words: list[str | Path] = ["pip", "compile", ROOT / "pyproject.toml", ROOT / "device" / "pyproject.toml"]
    words += [word for extra in extras for word in ("--extra", extra)]
    words += ["--override", own, "--no-emit-package", "dovetail-device", "--no-header", "--no-annotate"]
    uv(*words, "--no-emit-index-url", "--python-version", version, "--output-file", out, *options)


def uv(*words: str | Path) -> None:
    """Run uv, quietly."""
    command: Sequence[str | Path] = [sys.executable, "-m", "uv", *words, "--quiet"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
