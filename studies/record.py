"""What every study leaves next to its table: seed, commit, machine, and a picture where matplotlib is installed."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.errors import MissingExtraError
from dovetail.report.pictures import save_figure

HOME = Path(__file__).parent


def record(out: Path, *, seed: int, full: bool) -> None:
    """Write out/record.json: enough to trace every figure of the table.

    `commit` ends in "-dirty" where the checkout had changes of its own; `studies` is the digest of the code of all
    studies at that time, committed or not.
    """
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=HOME,
        capture_output=True,
        text=True,
        check=False,
    )
    facts = {
        "seed": seed,
        "size": "full" if full else "toy",
        "commit": done.stdout.strip() or "unknown",
        "studies": digest(HOME),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    (out / "record.json").write_text(json.dumps(facts, indent=2) + "\n")


def digest(folder: Path) -> str:
    """Of the names and contents of all code and parameters in a folder: equal where these are equal."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".toml"))
    whole = sha256()
    for path in files:
        whole.update(path.relative_to(folder).as_posix().encode() + b"\n" + sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:16]


def picture(path: Path, draw: Callable[[Any], Any]) -> bool:
    """Save the figure that draw(pyplot) returns; False, and a line that says so, without matplotlib."""
    try:
        save_figure(path, draw)
    except MissingExtraError as missing:
        print(f"{path.name}: no picture. {missing}", file=sys.stderr)
        return False
    return True


def command(main: Callable[[bool, Path], object], description: str | None) -> None:
    """The command line of a study: --full, --out."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the size of the claim instead of a toy")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the results (default: out)")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    main(arguments.full, arguments.out)
