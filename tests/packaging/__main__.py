"""Build what users get, install it where nothing else is, run it: `python -m tests.packaging [--python 3.12 ..]`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.packaging.distributions import BOTH, faults
from tests.packaging.interpreters import SUPPORTED, interpreters
from tests.packaging.smoke import Environment, alone, both, small


def main() -> int:
    """Build, look inside, install on each interpreter, run; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.packaging", description=__doc__)
    parser.add_argument("--python", nargs="+", choices=SUPPORTED, help="only these versions; each must be there")
    wanted = parser.parse_args().python
    found = interpreters()
    if absent := sorted(set(wanted or ()) - found.keys()):
        return _fail(f"no interpreter of {', '.join(absent)} here")
    with tempfile.TemporaryDirectory(prefix="dovetail-packages-") as folder:
        device, analyst = (distribution.build(Path(folder)) for distribution in BOTH)
        wrong = [line for one, built in zip(BOTH, (device, analyst), strict=True) for line in faults(one, *built)]
        if wrong:
            return _fail("\n".join(wrong))
        print("built and complete:", *(path.name for path in (*device, *analyst)))
        for version in wanted or found:
            _try(found[version], [str(device[1])], alone)
            _try(found[version], [str(device[1]), f"{analyst[1]}[demo]"], both)
            print(f"Python {version}: installed and run ({found[version]})", flush=True)
        newest = found[max(found, key=lambda version: int(version.partition(".")[2]))]
        _try(newest, [str(device[1]), str(analyst[1])], small)
    for version in sorted(set(SUPPORTED) - found.keys()):
        print(f"Python {version}: not on this machine")
    return 0


def _try(interpreter: Path, wheels: list[str], check: Callable[[Environment], None]) -> None:
    environment = Environment.of(interpreter, wheels)
    try:
        check(environment)
    finally:
        shutil.rmtree(environment.folder)


def _fail(text: str) -> int:
    print(f"error: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
