"""Claim: at one central guarantee several columns from one collection are more accurate than as many single runs.

python benchmarks/questions_accuracy.py. Columns of 4 answers, everything (1, 1e-6)-private for a person's answers to
all of them. Naive: a run for each column, budgets divided by their number. Errors are of a count, root mean squared
over answers, columns and collections; the limit is central geometric noise with the budget divided, added by somebody
who has all answers.
"""

import argparse
from math import exp, sqrt
from time import perf_counter

import numpy as np

from dovetail.account.compose import Ask, questions_guarantee
from dovetail.core.entropy import Entropy, system_entropy
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.job.messages import draw_questions
from dovetail.plan.planner import plan_collection
from dovetail.randomize.krr import KRR
from randomize_speed import machine

K, EPSILON, DELTA = 4, 1.0, 1e-6


def admitted(ask: Ask, columns: int, n: int) -> float:
    """The largest epsilon0 of an answer, to a hundredth, that keeps the guarantee."""
    low, high = 0.05, 16.0
    while high / low > 1.01:
        middle = sqrt(low * high)
        parts, weights = [KRR(K, middle)] * columns, (1,) * columns if ask == "one" else ()
        kept = questions_guarantee(parts, ask=ask, n=n, delta=DELTA, weights=weights).epsilon <= EPSILON
        low, high = (middle, high) if kept else (low, middle)
    return low


def collected(ask: str, krr: KRR, values: np.ndarray, rng: Entropy) -> np.ndarray:
    """Estimated counts (columns, K) of one collection."""
    columns, n = values.shape
    drawn = draw_questions(n, (1,) * columns, rng)
    mine = [own[drawn == q] if ask == "one" else own for q, own in enumerate(values)]
    return np.array([n * estimate_frequencies(krr, krr.randomize(own, rng)).value for own in mine])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="people")
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--times", type=int, default=20, help="collections of each way")
    parser.add_argument("--seed", type=int, default=1, help="seed of the values; reports come from system_entropy()")
    options = parser.parse_args()
    n, columns = options.n, options.columns
    generator, rng = np.random.default_rng(options.seed), system_entropy()
    values = generator.choice(K, size=(columns, n), p=[0.4, 0.3, 0.2, 0.1])
    truth = np.array([np.bincount(own, minlength=K) for own in values])
    t = exp(-EPSILON / columns / 2.0)
    limit = sqrt(2.0 * t) / (1.0 - t)
    print(f"{machine()}\nseed {options.seed}; {columns} columns, n = {n:,}; ({EPSILON:g}, {DELTA:g}) for all of them")
    print(f"{'':44} {'epsilon0':>9} {'error':>9} {'limit':>7} {'seconds':>9}")
    print(f"{'central geometric noise (the limit)':44} {'':>9} {limit:9.4g} {1:7.2f}")
    single = plan_collection(
        question="frequency", k=K, n=n, epsilon=EPSILON / columns, delta=DELTA / columns, randomizer="krr"
    )
    ways = {"a run for each column (naive)": ("all", single.epsilon0)}
    for ask, words in (("all", "all, shuffled apart"), ("joint", "all in one report"), ("one", "one each, drawn")):
        ways[words] = (ask, admitted(ask, columns, n))  # type: ignore[arg-type]
    for words, (ask, epsilon0) in ways.items():
        start = perf_counter()
        errors = [collected(ask, KRR(K, epsilon0), values, rng) - truth for _ in range(options.times)]
        seconds, rmse = (perf_counter() - start) / options.times, float(np.sqrt(np.mean(np.square(errors))))
        print(f"{words:44} {epsilon0:9.3f} {rmse:9.4g} {rmse / limit:7.2f} {seconds:9.4f}")


if __name__ == "__main__":
    main()
