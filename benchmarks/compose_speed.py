"""Claim: a thousand shuffled rounds are certified from above and below within two seconds, whatever n is.

Run: python benchmarks/compose_speed.py

Times `compose` (tables, both ends and the comparisons) for T = 1000, dp-accounting composing the same privacy loss
distribution (its `self_compose` alone, without a certificate) where it is installed, and as a yardstick one numpy FFT
there and back of the length that the sum needs.
"""

import platform
import subprocess
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter

import numpy as np

from dovetail.account.compose import POINTS, compose
from dovetail.account.privacy_loss import convolve_near, pessimistic_pld
from dovetail.account.renyi import to_dp_accounting
from dovetail.account.rounds import ShuffledRound

SEED, DELTA, ROUNDS, REPEATS = 1, 1e-6, 1000, 3


def best(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Smallest time of one call, milliseconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        times.append(1e3 * (perf_counter() - start))
    return min(times)


def peer(part: ShuffledRound, step: float) -> tuple[float, float] | None:
    """dp-accounting's epsilon and its time to compose, milliseconds."""
    if find_spec("dp_accounting") is None:
        return None
    replace = import_module("dp_accounting").NeighboringRelation.REPLACE_ONE
    single = to_dp_accounting(part, interval=step, neighboring_relation=replace)
    epsilon = single.self_compose(ROUNDS).get_epsilon_for_delta(DELTA)
    return epsilon, best(lambda: single.self_compose(ROUNDS).get_epsilon_for_delta(DELTA))


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(
        f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, {ROUNDS} rounds, delta {DELTA}"
    )
    numbers = np.random.default_rng(SEED)
    compose(2, epsilon0=1.0, n=10, delta=DELTA)  # compiles
    print("epsilon0       n      epsilon      gap    compose   there and back      peer  peer's epsilon / ours - 1")
    for epsilon0, n in ((1.0, 10**3), (1.0, 10**4), (1.0, 10**6), (1.0, 10**9), (4.0, 10**4), (8.0, 10**5)):
        part = ShuffledRound(epsilon0, n)
        found = compose(ROUNDS, epsilon0=epsilon0, n=n, delta=DELTA)
        assert found.epsilon is not None and found.lower is not None
        ours = best(lambda e=epsilon0, n=n: compose(ROUNDS, epsilon0=e, n=n, delta=DELTA))
        step = part.pair.gaussian_scale / POINTS
        terms = [(pessimistic_pld(part.pair, step=step, cut=1e-9 * DELTA / ROUNDS), ROUNDS)]
        data = numbers.random(convolve_near(terms, delta=DELTA).masses.size)
        yardstick = best(lambda data=data: np.fft.irfft(np.fft.rfft(data), data.size), 10)
        theirs = peer(part, step)
        beside = "   skipped: pip install dp-accounting"
        if theirs is not None:
            beside = f"{theirs[1]:7.1f} ms {theirs[0] / found.epsilon - 1:12.1e}"
        print(
            f"{epsilon0:8g} {n:7.0e} {found.epsilon:12.6g} {found.epsilon / found.lower - 1:8.1e} {ours:7.0f} ms "
            f"{yardstick:13.1f} ms {beside}"
        )


if __name__ == "__main__":
    main()
