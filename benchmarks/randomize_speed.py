"""Claim: exact, operating-system-keyed randomized response costs at most three times NumPy's plain integers.

One run prints every figure and its ratio to NumPy on the same machine: python benchmarks/randomize_speed.py
"""

import argparse
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from dovetail.core.entropy import system_entropy
from dovetail.core.stages import FrequencyRandomizer
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary

REPEATS = 3


def best_of(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the fastest of `repeats` runs after one warm-up."""
    work()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def machine() -> str:
    """Processor, versions and commit, in one line."""
    info = Path("/proc/cpuinfo")
    models = (
        [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    )
    model = models[0].partition(": ")[2] if models else platform.processor()
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "no commit"
    return f"{model} x {len(models)}, Python {platform.python_version()}, NumPy {np.__version__}, {commit}"


def float_krr(values: np.ndarray, k: int, epsilon: float, generator: np.random.Generator) -> np.ndarray:
    """The textbook sampler: double probabilities and a generator that protects nobody."""
    keep = generator.random(values.size) < np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    lies = generator.integers(0, k - 1, values.size)
    return np.where(keep, values, lies + (lies >= values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000_000, help="values for k-RR and words")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the values; the reports come from system_entropy()"
    )
    options = parser.parse_args()
    n, few = options.n, max(1, options.n // 10)
    generator = np.random.Generator(np.random.PCG64(options.seed))
    values, rng = generator.integers(0, 16, n), system_entropy()
    print(f"{machine()}\nseed {options.seed}, n {n:,}, best of {REPEATS}\n")

    integers = best_of(lambda: generator.integers(0, 16, n)) / n
    raw = best_of(lambda: generator.bit_generator.random_raw(n)) / n
    rows: list[tuple[str, float, float, str]] = [
        ("numpy PCG64 integers(0, 16)", integers, integers, "numpy integers"),
        ("numpy PCG64 raw words", raw, raw, "numpy raw words"),
        ("system_entropy() words", best_of(lambda: rng.words(n)) / n, raw, "numpy raw words"),
        ("KRR k=16 randomize", best_of(lambda: KRR(k=16, epsilon=2.0).randomize(values, rng)) / n, integers, ""),
        ("float k-RR k=16, PCG64", best_of(lambda: float_krr(values, 16, 2.0, generator)) / n, integers, ""),
    ]
    part = values[:few]
    randomizers: list[FrequencyRandomizer] = [
        KRR(k=5000, epsilon=8.0),
        Hadamard(k=16, epsilon=2.0),
        Hadamard(k=1 << 20, epsilon=2.0),
        Unary(k=16, epsilon=2.0),
        LocalHashing(k=16, epsilon=2.0),
    ]
    for randomizer in randomizers:
        label = f"{type(randomizer).__name__} k={randomizer.k}"
        seconds = best_of(lambda r=randomizer: r.randomize(part, rng))  # type: ignore[misc]
        rows.append((f"{label} randomize", seconds / few, integers, ""))
        reports = randomizer.randomize(part, rng)
        seconds = best_of(lambda r=randomizer, y=reports: r.tally(y))  # type: ignore[misc]
        rows.append((f"{label} tally", seconds / few, integers, ""))
    laplace = Laplace(lower=0.0, upper=15.0, epsilon=1.0)
    rows.append(("Laplace m=32 randomize", best_of(lambda: laplace.randomize(part, rng)) / few, integers, ""))

    print(f"{'':32}{'ns per value':>14}{'ratio':>9}  to")
    for label, seconds, base, name in rows:
        print(f"{label:32}{seconds * 1e9:14.2f}{seconds / base:9.2f}  {name or 'numpy integers'}")


if __name__ == "__main__":
    main()
