"""Claim: one secret in a trace of 1e5 points takes well under a second, robust noise a tenth of a solver's time.

Run: python benchmarks/trace_speed.py

Processor time. `design_release` gives the noise of a plan with the loss for every adversary, the worst sighting among
them. Naive: the dense matrix and its Cholesky factor, to 4,000 points. Robust noise without sightings, 25
points and three kernels, beside Clarabel on the same semidefinite program (where cvxpy is installed).
"""

import platform
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from time import process_time

import numpy as np

from dovetail.trace.closed_form import full_loss
from dovetail.trace.descent import Budget, Descent, Goal, least_worst_loss, one_thread
from dovetail.trace.kernels import RBF, Matern32
from dovetail.trace.loss import STRETCHES, condition
from dovetail.trace.mechanisms import mixed
from dovetail.trace.plan import TracePlan, TracePrior
from dovetail.trace.regular import RegularPrior, design_regular
from dovetail.trace.release_design import design_release
from dovetail.trace.trace import SecretTimes


def best(run: Callable[[], object], repeats: int) -> float:
    """Smallest processor time of one call, seconds."""
    times = []
    for _ in range(repeats):
        start = process_time()
        run()
        times.append(process_time() - start)
    return min(times)


def naive(n: int) -> float:
    """The same loss from the dense matrix."""
    return full_loss(RBF(6.103).matrix(np.arange(float(n))), n // 2, Budget(n, 1.0 / n, 0.0))


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, RBF 6.103, total budget 1")
    print("      n            J   conjugate gradients, s   dense, s    ratio")
    with one_thread():
        for n in (1000, 4000, 100_000, 1_000_000):
            prior, budget = RegularPrior.of(RBF(6.103), n), Budget(n, 1.0 / n, 0.0)
            loss = design_regular(prior, n // 2, budget, name="full").loss
            ours = best(lambda p=prior, b=budget, n=n: design_regular(p, n // 2, b, name="full"), 3)
            dense = best(lambda n=n: naive(n), 1) if n <= 4000 else float("nan")
            print(f"{n:>7,} {loss.upper:12.8f} {ours:24.4f} {dense:10.3f} {dense / ours:8.0f}")
        prior = TracePrior(Matern32(200.0), np.diag([2.2e6, 4.8e6]))
        one, every = SecretTimes(((750_000.0, 750_000.0),)), SecretTimes()
        for secrets, what in ((one, "one secret"), (every, "every time, in windows")):
            plan = TracePlan(prior, secrets, 100.0, 100.0, step=2.0**-17)
            start = process_time()
            mu = design_release(plan, np.arange(100_000.0) * 15.0).guarantee.mu
            print(f"plan of 100,000 points, two axes, {what}: {process_time() - start:.2f} s, mu {mu:.3f}")
        times, budget = np.arange(25.0), Budget(25, 0.02)
        goals = [Goal.of(condition(RBF(6.103 * factor).matrix(times), [12])) for factor in STRETCHES[:3]]
        start = mixed(RBF(6.103).matrix(times), [(12,)], budget).noise
        found = Descent(goals, budget).run(start)[1]
        ours = best(lambda: Descent(goals, budget).run(start), 3)
        print(f"three kernels, n 25: descent {ours:.2f} s, optimum between {found.lower:.5f} and {found.upper:.5f}")
        if find_spec("cvxpy") is not None:
            solver = best(lambda: least_worst_loss(goals, budget), 1)
            print(f"Clarabel through cvxpy: {solver:.1f} s, {solver / ours:.0f} times as long")


if __name__ == "__main__":
    main()
