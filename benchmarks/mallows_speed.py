"""Claim: an exact Mallows permutation of a million people costs a few ordinary permutations, for every theta.

Prints the time of one draw (digits and decoding) as a ratio to `numpy.random.Generator.permutation(n)` on the same
machine, best of five after a warm-up that compiles kernels and builds threshold tables.

    python benchmarks/mallows_speed.py            # n = 1e5 and 1e6, seconds
    python benchmarks/mallows_speed.py --huge     # also n = 1e7
"""

import argparse
import os
import platform
import subprocess
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np

from dovetail.core.entropy import Entropy, simulation, system_entropy
from dovetail.shuffle.sampling import lehmer_code
from dovetail.shuffle.sampling.lehmer_code import decode_lehmer_code, draw_lehmer_code
from dovetail.shuffle.sampling.mallows import draw_mallows
from dovetail.shuffle.sampling.prefix_counts import LANES16, LANES32, Counts16, Counts32

SEED = 1
REPEATS = 5  # best of


def ratio(action: Callable[[], object], n: int) -> float:
    """Fastest call in units of the fastest numpy permutation, taken in turns so that both meet the same machine."""
    generator = np.random.default_rng(SEED)
    action()
    times = [(seconds(action), seconds(lambda: generator.permutation(n))) for _ in range(REPEATS)]
    mine, numpys = np.min(times, axis=0)
    return float(mine / numpys)


def seconds(action: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def naive(n: int, theta: float, rng: Entropy) -> list[int]:
    """Decode by deleting from the list of unused values, the textbook method."""
    unused = list(range(n))
    return [unused.pop(c) for c in draw_lehmer_code(np.array([0, n]), np.array([theta]), rng).tolist()]


def components(n: int, theta: float, rng: Entropy) -> object:
    """n / 30 components of 30 people, each with a theta of its own."""
    starts = np.arange(0, n + 1, 30)
    thetas = theta * np.linspace(1.0, 2.0, starts.size - 1)
    return decode_lehmer_code(draw_lehmer_code(starts, thetas, rng), starts, thetas)


@numba.njit(nogil=True)
def plain_take(counts: Counts16, first: int, rank: int) -> Any:
    """`simd_prefix_counts.take` without instructions written by hand."""
    row, least, above = counts[first : first + LANES16], np.uint16(rank), np.int64(0)
    for lane in range(LANES16):
        larger = np.uint16(row[lane] > least)
        above += larger
        row[lane] -= larger
    child = np.int64(LANES16 - 1 - above)
    return (child << 16) | np.int64(row[child])


@numba.njit(nogil=True)
def plain_lower(counts: Counts32, first: int, rank: int) -> Any:
    """`simd_prefix_counts.lower` without instructions written by hand."""
    row, least, above = counts[first : first + LANES32], np.uint32(rank), np.int64(0)
    for lane in range(LANES32):
        larger = np.uint32(row[lane] > least)
        above += larger
        row[lane] -= larger
    return above


def compile_plain(name: str) -> Callable[..., Any]:
    """The function of `lehmer_code` by this name, compiled with the plain loops in place of the instructions."""
    replaced = vars(lehmer_code) | {"take": plain_take, "lower": plain_lower}
    for kernel in ("_window_block", "_windows_kernel", "_tiers_kernel"):
        code = vars(lehmer_code)[kernel].py_func.__code__
        replaced[kernel] = numba.njit(nogil=True)(FunctionType(code, replaced))
    for function in ("_decode_windows", "_decode_tiers", name):
        replaced[function] = FunctionType(vars(lehmer_code)[function].__code__, replaced)
    plain: Callable[..., Any] = replaced[name]
    return plain


def instructions(n: int) -> None:
    """What the hand-written vector instructions are worth for a whole permutation, measured in turns."""
    plain, starts, rng = compile_plain("decode_lehmer_code"), np.array([0, n]), simulation(SEED)
    print(f"\nn = {n:,}: a permutation without hand-written vector instructions, in units of one with them")
    for theta in (1.0, 0.1, 0.01, 1e-3, 1e-5):
        thetas = np.array([theta])

        def whole(decode: Callable[..., Any], thetas: Any = thetas) -> object:
            return decode(draw_lehmer_code(starts, thetas, rng), starts, thetas)

        code = draw_lehmer_code(starts, thetas, rng)
        if (plain(code, starts, thetas) != decode_lehmer_code(code, starts, thetas)).any():
            raise SystemExit("the plain decoder disagrees")
        pairs = [
            (seconds(partial(whole, plain)), seconds(partial(whole, decode_lehmer_code))) for _ in range(2 * REPEATS)
        ]
        slow, fast = np.min(pairs, axis=0)
        print(f"theta = {theta:<8g}{slow / fast:12.2f}")


def provenance() -> str:
    """Commit, machine and seed, so that a figure can be traced."""
    here = Path(__file__).parent
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=False
    )
    commit = done.stdout.strip() or "unknown"
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}"
    return f"commit {commit}, seed {SEED}, {platform.machine()} with {os.cpu_count()} cores, {versions}"


def table(n: int) -> None:
    """One block: every theta with both kinds of entropy, then the uniform permutation."""
    generator = np.random.default_rng(SEED)
    base = min(seconds(lambda: generator.permutation(n)) for _ in range(REPEATS))
    print(f"\nn = {n:,}: numpy permutation {1e3 * base:.2f} ms = 1.0\n{'':16}{'simulation':>12}{'device':>12}")
    doors = (simulation(SEED), system_entropy())
    for name, theta in (
        ("1", 1.0),
        ("0.1", 0.1),
        ("0.01", 0.01),
        ("1e-3", 1e-3),
        ("1e-5", 1e-5),
        ("1/n", 1 / n),
        ("0", 0.0),
    ):
        ratios = [ratio(partial(draw_mallows, n, theta, rng), n) for rng in doors]
        print(f"theta = {name:8}{ratios[0]:12.1f}{ratios[1]:12.1f}")
    ratios = [ratio(partial(components, n, 0.1, rng), n) for rng in doors]
    print(f"components      {ratios[0]:12.1f}{ratios[1]:12.1f}")
    ratios = [ratio(partial(rng.permutation, n), n) for rng in doors]
    print(f"{'uniform':16}{ratios[0]:12.1f}{ratios[1]:12.1f}")


def peers(n: int) -> None:
    """What there is otherwise, at a size that it can bear."""
    rng, generator = simulation(SEED), np.random.default_rng(SEED)
    print(f"\nn = {n:,}, theta = 0.01")
    print(f"dovetail        {ratio(partial(draw_mallows, n, 0.01, rng), n):12.1f}")
    slow = ratio(partial(naive, n, 1e-5, rng), n)
    print(f"naive deletion  {slow:12.1f}   (theta = 1e-5; quadratic: about {100 * slow:,.0f} at n = {100 * n:,})")
    if find_spec("prefsampling") is None:
        print("prefsampling         skipped: not installed (pip install prefsampling)")
        return
    peer = import_module("prefsampling.ordinal").mallows
    once = seconds(partial(peer, 1, n, float(np.exp(-0.01)), seed=SEED))
    base = min(seconds(lambda: generator.permutation(n)) for _ in range(REPEATS))
    print(f"prefsampling    {once / base:12.1f}   (one call, {once:.1f} s)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--huge", action="store_true", help="also n = 10,000,000")
    arguments = parser.parse_args()
    print(provenance())
    for size in (100_000, 1_000_000, *((10_000_000,) if arguments.huge else ())):
        table(size)
    instructions(1_000_000)
    peers(10_000)
