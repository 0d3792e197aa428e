"""Claim: at one central guarantee counts and means are more accurate than what libraries of local protocols offer.

python benchmarks/peers_accuracy.py [--peers DIR], where DIR is the site-packages folder of another environment that
has multi-freq-ldpy and pure-ldp; missing ones are skipped. Everything is (1, 1e-6)-private after a uniform shuffle
of n people; peers get the epsilon0 that k-ary randomized response may use. Counts of 16 symbols: root mean squared
error over symbols and collections. The naive version of a mean is one bit per person in four lines of NumPy; the
limit is central noise, added by somebody who has all values.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from math import exp
from time import perf_counter

import numpy as np

from dovetail.account.amplify import amplify
from dovetail.account.dummies import user_dummies_for
from dovetail.core.entropy import system_entropy
from dovetail.estimate.dummies import (
    estimate_with_dummies,
    estimate_with_user_dummies,
    mean_with_dummies,
    mean_with_user_dummies,
    round_to_grid,
)
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.estimate.mean import estimate_mean
from dovetail.plan.dummies import mean_dummies
from dovetail.plan.planner import plan_collection
from dovetail.randomize.krr import KRR
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies
from peers_frequency import peers
from randomize_speed import machine

K, EPSILON, DELTA = 16, 1.0, 1e-6


def measured(name: str, estimate: Callable[[], np.ndarray], truth: np.ndarray, times: int, limit: float) -> None:
    """One line: error, seconds for one collection, and the error in units of the limit's."""
    start = perf_counter()
    errors = np.array([estimate() - truth for _ in range(times)])
    seconds = (perf_counter() - start) / times
    rmse = float(np.sqrt(np.mean(errors**2)))
    print(f"{name:44} {rmse:11.4g} {rmse / limit:8.2f} {seconds:10.4f}")


def counts(n: int, times: int, generator: np.random.Generator) -> None:
    law = 1.0 / np.arange(1, K + 1)
    values, rng = generator.choice(K, size=n, p=law / law.sum()), system_entropy()
    truth = np.bincount(values, minlength=K).astype(np.float64)
    plan = plan_collection(question="frequency", k=K, n=n, epsilon=EPSILON, delta=DELTA, randomizer="krr")
    krr, dummies = KRR(K, plan.epsilon0), Dummies(K, EPSILON, DELTA)
    t = exp(-EPSILON / 2.0)  # replacing a person moves two counts by one each
    limit = (2.0 * t) ** 0.5 / (1.0 - t)

    def central() -> np.ndarray:
        return truth + generator.geometric(1.0 - t, K) - generator.geometric(1.0 - t, K)

    print(f"\ncounts of {K} symbols, n = {n:,}\n{'':44} {'error':>11} {'limit':>8} {'seconds':>10}")
    measured("central geometric noise (the limit)", central, truth, 50 * times, limit)
    measured(
        "dummies of the shuffler", lambda: n * estimate_with_dummies(dummies, dummies.add(values, rng), n=n).value,
        truth, times, limit,
    )  # fmt: skip
    people = user_dummies_for(k=K, epsilon=EPSILON, delta=DELTA, honest=n)
    measured(
        "dummies of people", lambda: n * estimate_with_user_dummies(people, people.add(values, rng), n=n).value,
        truth, times, limit,
    )  # fmt: skip
    measured(
        "k-ary randomized response", lambda: n * estimate_frequencies(krr, krr.randomize(values, rng)).value, truth,
        times, limit,
    )  # fmt: skip
    for peer in peers(K, krr.epsilon):
        try:
            measured(
                f"{peer.library} {peer.protocol}",
                lambda run=peer.run: n * run(values),
                truth,
                max(1, times // 5),
                limit,
            )  # type: ignore[misc]
        except Exception as error:  # other people's code against newer versions of what it needs
            print(f"{peer.library} {peer.protocol} is skipped: {type(error).__name__}: {error}")


def means(n: int, times: int, generator: np.random.Generator) -> None:
    values, rng = generator.beta(2.0, 5.0, n), system_entropy()
    truth, limit = np.array(values.mean()), 2.0**0.5 / (EPSILON * n)
    print(f"\nmean of a number in [0, 1], n = {n:,}\n{'':44} {'error':>11} {'limit':>8} {'seconds':>10}")
    measured(
        "central Laplace noise (the limit)", lambda: truth + generator.laplace(0.0, 1.0 / (EPSILON * n)), truth,
        50 * times, limit,
    )  # fmt: skip
    for name in ("window", "laplace"):
        plan = plan_collection(
            question="mean", n=n, lower=0.0, upper=1.0, epsilon=EPSILON, delta=DELTA, randomizer=name
        )
        chosen = plan.randomizer
        measured(name, lambda r=chosen: estimate_mean(r, r.randomize(values, rng)).value, truth, times, limit)  # type: ignore[misc]
    for trust in ("shuffler", "users"):
        dummies = mean_dummies(trust, n=n, honest=n, span=(0.0, 1.0), grid=None, epsilon=EPSILON, delta=DELTA)

        def with_dummies(dummies: Dummies | UserDummies = dummies) -> np.ndarray:
            batch = dummies.add(round_to_grid(values, lower=0.0, upper=1.0, points=dummies.k, rng=rng), rng)
            if isinstance(dummies, Dummies):
                return mean_with_dummies(dummies, batch, lower=0.0, upper=1.0, n=n).value
            return mean_with_user_dummies(dummies, batch, lower=0.0, upper=1.0, n=n).value

        measured(f"dummies of {'people' if trust == 'users' else 'the shuffler'}", with_dummies, truth, times, limit)
    epsilon0 = plan_collection(
        question="frequency", k=2, n=n, epsilon=EPSILON, delta=DELTA, randomizer="krr"
    ).epsilon0
    assert amplify(KRR(2, epsilon0), n=n, delta=DELTA).epsilon <= EPSILON
    lie = 1.0 / (exp(epsilon0) + 1.0)

    def one_bit() -> np.ndarray:
        bits = generator.random(n) < values
        sent = bits ^ (generator.random(n) < lie)
        return np.asarray((sent.mean() - lie) / (1.0 - 2.0 * lie))

    measured("one bit per person in NumPy (naive)", one_bit, truth, times, limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="people")
    parser.add_argument("--times", type=int, default=30, help="collections of each protocol")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the values; our reports come from system_entropy()"
    )
    parser.add_argument("--peers", default=None, help="site-packages folder that has the peers")
    options = parser.parse_args()
    if options.peers:
        sys.path.append(options.peers)
    warnings.simplefilter("ignore")
    np.random.seed(options.seed)  # noqa: NPY002  the peers draw from the global generator
    print(f"{machine()}\nseed {options.seed}; everything ({EPSILON:g}, {DELTA:g})-private after shuffling")
    generator = np.random.default_rng(options.seed)
    means(options.n, options.times, generator)
    counts(options.n, options.times, generator)


if __name__ == "__main__":
    main()
