"""All benchmarks one after the other: `python -m benchmarks`."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run every benchmark in a process of its own, so that none warms up another."""
    for path in sorted(HERE.glob("*.py")):
        if not path.name.startswith("__"):
            print(f"\n=== {path.stem} ===", flush=True)
            subprocess.run([sys.executable, str(path)], check=True)


if __name__ == "__main__":
    main()
