"""Claim: a million people are planned in under a minute and 4 GB in the plane, in under 10 s and 1 GB by age.

Groups, the candidate reference orders and the exact sensitivity, each case in a process of its own. The yardstick
is scipy alone on the same points: a k-d tree and the list of its pairs (for ages: one sort of the labels).

    python benchmarks/planning.py            # n = 1e6
    python benchmarks/planning.py --n 1e5
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np
from scipy.spatial import cKDTree

SEED = 1


def points(n: int) -> dict[str, float]:
    """The plane, groups of about 30."""
    from dovetail.shuffle.fitting.best_order import best_order
    from dovetail.shuffle.fitting.groups import Groups

    where = np.random.default_rng(SEED).random((n, 2))
    radius = float(np.sqrt(30 / (np.pi * n)))
    begin = time.perf_counter()
    groups = Groups.within_radius(where, radius)
    middle = time.perf_counter()
    best = best_order(groups, points=where)
    end = time.perf_counter()
    cKDTree(where).query_pairs(radius, output_type="ndarray")
    return _facts(begin, middle, end, best.sensitivity, best.baseline or 0, time.perf_counter() - end)


def ages(n: int) -> dict[str, float]:
    """Integer ages, groups of those at most five years apart."""
    from dovetail.shuffle.fitting.best_order import best_order
    from dovetail.shuffle.fitting.groups import Groups

    labels = np.random.default_rng(SEED).integers(17, 91, n)
    begin = time.perf_counter()
    groups = Groups.from_labels(labels, radius=5)
    middle = time.perf_counter()
    best = best_order(groups, atoms=groups.atoms())
    end = time.perf_counter()
    np.argsort(labels, kind="stable")
    return _facts(begin, middle, end, best.sensitivity, best.baseline or 0, time.perf_counter() - end)


CASES = {"points": points, "ages": ages}


def _facts(
    begin: float, middle: float, end: float, sensitivity: int, baseline: int, yardstick: float
) -> dict[str, float]:
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "groups_seconds": middle - begin,
        "order_seconds": end - middle,
        "yardstick_seconds": yardstick,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9,
        "sensitivity": sensitivity,
        "breadth_first": baseline,
    }


def _measured(case: str, n: int) -> dict[str, float]:
    """The facts of one case from a process of its own."""
    command = [sys.executable, __file__, "--case", case, "--n", str(n)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    facts: dict[str, float] = json.loads(done.stdout)
    return facts


def main() -> None:
    """Print seconds, peak memory and the ratio to the yardstick."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=1e6)
    parser.add_argument("--case", choices=sorted(CASES), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    n = int(arguments.n)
    if arguments.case:
        print(json.dumps(CASES[arguments.case](n)))
        return
    print(f"n = {n:,}, seed {SEED}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for case in CASES:
        _measured(case, 2000)  # compiles what is not yet in the cache
        facts = _measured(case, n)
        total = facts["groups_seconds"] + facts["order_seconds"]
        print(
            f"{case:8}{total:7.1f} s (groups {facts['groups_seconds']:.1f}, order {facts['order_seconds']:.1f})"
            f"{total / facts['yardstick_seconds']:9.1f} x  peak {facts['peak_gb']:.2f} GB"
            f"  sensitivity {facts['sensitivity']:,.0f}, breadth first {facts['breadth_first']:,.0f}"
        )


if __name__ == "__main__":
    main()
