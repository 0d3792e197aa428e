"""Claim: --help, --version and a mistake cost at most 3 times what `import numpy` costs, account and leak 8, plan 15.

Run: python benchmarks/startup.py

Processor time (user and system) of a child process, the smallest of several runs, as a ratio to
`python -c "import numpy"` in the same run. The targets are printed beside; a first run fills numba's cache.
"""

import platform
import resource
import subprocess
import sys

RUNS = 5
SHARES = ["--question", "frequency", "--n", "10000", "--k", "4", "--epsilon0", "2", "--delta", "1e-6"]
YARDSTICK = ["-c", "import numpy"]
# name, arguments, at most so many times the yardstick
CASES = [
    ("--help", ["--help"], 3.0),
    ("--version", ["--version"], 3.0),
    ("mistyped option", ["--vresion"], 3.0),
    ("mistyped verb", ["acount"], 3.0),
    ("mistyped in account", ["account", "--epsilno", "2"], 3.0),
    ("mistyped in leak", ["leak", "--hel"], 3.0),
    ("account", ["account", "--epsilon0", "2", "--n", "10000", "--delta", "1e-6"], 8.0),
    ("leak", ["leak", "--n", "1000", "--k", "4", "--epsilon0", "2"], 8.0),
    (
        "plan",
        ["plan", *SHARES],
        15.0,
    ),
]


def processor_seconds(arguments: list[str]) -> float:
    """Smallest user and system time of one child that runs python with these arguments."""
    times = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, {RUNS} runs each")
    yardstick = processor_seconds(YARDSTICK)
    print(f"python -c 'import numpy': {yardstick:.3f} s\n")
    print(f"{'command':>20} {'seconds':>8} {'ratio':>6} {'target':>7}")
    for name, arguments, target in CASES:
        seconds = processor_seconds(["-m", "dovetail", *arguments])
        ratio = seconds / yardstick
        verdict = "" if ratio <= target else "  above the target"
        print(f"{name:>20} {seconds:8.3f} {ratio:6.1f} {target:7.0f}{verdict}")


if __name__ == "__main__":
    main()
