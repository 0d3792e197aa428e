"""Claim: a named mechanism's central epsilon is certified to half a percent of an attack in milliseconds, where peers
have a plain FFT, a pair written out, or a closed form.

Run: python benchmarks/peers_mechanisms.py

For several mechanisms and numbers of people, in one run: the attack, our value, the best closed form of Balle et al.,
stronger clones, all in epsilon, and the processor time of our answer. Beside k-ary response: the blanket law summed
by one plain FFT (PyPI has no accountant of the shuffle model; values rounded to a grid, no certificate), and for few
people the same pair written out for dp_accounting where that is installed.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from math import exp, log
from time import process_time

import numpy as np
from scipy.stats import binom, multinomial

from dovetail.account.amplify import Subject, amplify, list_bounds
from dovetail.account.questions import ChosenWord, JointReport, SampledBlock
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.subset_selection import SubsetSelection
from dovetail.randomize.unary import Unary
from dovetail.randomize.vectors.gaussian import Gaussian, gaussian_channel
from dovetail.randomize.window import Window
from randomize_speed import machine

CELLS = ((1.0, 1_000, 1e-5), (4.0, 100_000, 1e-6), (6.0, 10**6, 1e-8), (2.0, 10**9, 1e-10))
KINDS: dict[str, Callable[[float], Subject]] = {
    "any randomizer": lambda e: e,
    "binary": lambda e: KRR(2, e),
    "krr, k = 10": lambda e: KRR(10, e),
    "hadamard, k = 100": lambda e: Hadamard(100, e),
    "unary, k = 100": lambda e: Unary(100, e),
    "unary, symmetric": lambda e: Unary(100, e, encoding="symmetric"),
    "hashing, k = 1000": lambda e: LocalHashing(1000, e),
    "subsets, k = 100": lambda e: SubsetSelection(100, e),
    "laplace": lambda e: Laplace(0.0, 1.0, e),
    "chosen word": lambda e: ChosenWord((KRR(18, e),)),
    "rotated block": lambda e: SampledBlock((KRR(16, e),), blocks=256),
    "two questions": lambda e: JointReport((KRR(2, 0.5 * e), KRR(10, 0.5 * e))),
    "gaussian": lambda e: gaussian_channel(steps=8, sigma=float(Gaussian(1, 1.0, e).variance) ** 0.5),
    "window": lambda e: Window(0.0, 1.0, e),
    "budget laplace": lambda e: BudgetLaplace(1.0, 2.0, e, beta=0.5, rho=0.9),
}
POINTS = 1 << 18


def timed(run: Callable[[], object]) -> float:
    """Least processor time of three calls, milliseconds."""
    times = []
    for _ in range(3):
        start = process_time()
        run()
        times.append(1e3 * (process_time() - start))
    return min(times)


def plain_fft(k: int, epsilon0: float, n: int, delta: float) -> float:
    """epsilon of k-ary response by one FFT of the blanket sum for each of 20 bisections; nothing is charged."""
    p = exp(epsilon0)
    b = 1.0 / (p + k - 1.0)
    low, high = 0.0, epsilon0
    for _ in range(20):
        epsilon = 0.5 * (low + high)
        e = exp(epsilon)
        values, masses = np.array([p - e, 1.0 - e * p, 1.0 - e, 0.0]), np.array([b, b, (k - 2) * b, 1.0 - k * b])
        mean = masses @ values
        spread = np.sqrt(n * masses @ (values - mean) ** 2)
        step = 2.0 * (20.0 * spread + abs(n * mean)) / POINTS
        law = np.zeros(POINTS)
        np.add.at(law, np.rint(values / step).astype(int) % POINTS, masses)
        total = np.fft.irfft(np.fft.rfft(law) ** n, POINTS)
        places = step * np.fft.fftfreq(POINTS, 1.0 / POINTS)
        low, high = (low, epsilon) if total @ np.maximum(places, 0.0) / n <= delta else (epsilon, high)
    return high


def written_out(k: int, epsilon0: float, n: int, delta: float) -> float:
    """The blanket pair of k-ary response, outcome by outcome, for dp_accounting."""
    module = import_module("dp_accounting.pld.privacy_loss_distribution")
    p = exp(epsilon0)
    b = 1.0 / (p + k - 1.0)
    up: dict[tuple[int, int, int], float] = {}
    down: dict[tuple[int, int, int], float] = {}
    for m in range(1, n + 1):  # uniform reports, the victim's place among them
        a, c = (grid.ravel() for grid in np.meshgrid(np.arange(m + 1), np.arange(m + 1)))
        a, c = a[a + c <= m], c[a + c <= m]
        chance = multinomial.logpmf(np.stack([a, c, m - a - c], axis=1), m, [1.0 / k, 1.0 / k, 1.0 - 2.0 / k])
        held = log(k * b / m) + binom.logpmf(m - 1, n - 1, k * b) + chance
        first, second = held + np.log(p * a + m - a), held + np.log(p * c + m - c)
        up |= {(m, i, j): value for i, j, value in zip(a.tolist(), c.tolist(), first, strict=True)}
        down |= {(m, i, j): value for i, j, value in zip(a.tolist(), c.tolist(), second, strict=True)}
    law = module.from_two_probability_mass_functions(down, up, value_discretization_interval=1e-4)
    return float(law.get_epsilon_for_delta(delta))


def main() -> None:
    print(machine())
    amplify(KRR(3, 1.0), n=1000, delta=1e-6)  # compiles
    print("mechanism           e0      n     attack       ours   ratio  closed  clones   time")
    for kind, make in KINDS.items():
        for epsilon0, n, delta in CELLS:
            found = amplify(make(epsilon0), n=n, delta=delta)
            bounds = {one.name: one.epsilon for one in list_bounds(make(epsilon0), n=n, delta=delta)}
            closed = min(
                (value for name, value in bounds.items() if name.endswith("(law)") and value), default=float("nan")
            )
            clones = bounds["stronger clones"] or float("nan")
            fresh = iter(range(1, 10))
            time = timed(lambda: amplify(make(epsilon0 * (1.0 + 1e-9 * next(fresh))), n=n, delta=delta))  # noqa: B023
            print(
                f"{kind:18} {epsilon0:3g} {n:6.0e} {found.attack_lower:10.6g} {found.epsilon:10.6g} "
                f"{found.epsilon / found.attack_lower:7.4f} {closed / found.epsilon:7.3f} "
                f"{clones / found.epsilon:7.3f} {time:6.1f} ms"
            )
    print("\nk-ary response, k = 10, beside peers: their epsilon over ours - 1, and times")
    for epsilon0, n, delta in CELLS[:3]:
        ours, start = amplify(KRR(10, epsilon0), n=n, delta=delta).epsilon, process_time()
        value = plain_fft(10, epsilon0, n, delta)
        print(f"plain FFT, {epsilon0:g} {n:.0e}: {value / ours - 1:+.1e}, {1e3 * (process_time() - start):.0f} ms")
    if find_spec("dp_accounting") is None:
        print("dp_accounting is skipped: pip install dp-accounting")
        return
    ours, start = amplify(KRR(10, 1.0), n=60, delta=1e-5).epsilon, process_time()
    value = written_out(10, 1.0, 60, 1e-5)
    print(f"dp_accounting, pair written out, 1 60: {value / ours - 1:+.1e}, {1e3 * (process_time() - start):.0f} ms")


if __name__ == "__main__":
    main()
