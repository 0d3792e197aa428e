"""Claim: an attack on 33,000 people with 50 randomizations takes about a second, once neighbours are known.

Run: python benchmarks/attack_speed.py

Times the search for neighbours, the fit and one mounted attack for every attack, and the success beside chance, on
planted data: eight values in a plane, which depend on the place, as the paper's synthetic data do.
"""

import platform
import subprocess
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from dovetail.attack.experiment.run_attack import Attacker, run_attack
from dovetail.attack.experiment.sender_model import Regression, seats_of
from dovetail.attack.experiment.subset_search import SubsetSearch, reidentify_subset, subset_bound
from dovetail.attack.experiment.voter_selection import select_voters
from dovetail.attack.likelihood import Likelihood
from dovetail.attack.majority import MajorityVote
from dovetail.core.entropy import simulation
from dovetail.core.stages import Shuffler
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

SEED, N, EPSILON = 1, 33_000, 2.5
RNG = simulation(SEED)
EVERYBODY = np.arange(N)
PLANE = np.random.default_rng(SEED).random((N, 2))
VALUES = (np.floor(PLANE * 4) @ [1, 2]).astype(np.int64) % 8
CELLS = np.floor(PLANE * 25).astype(np.int64) @ [25, 1]
INSIDE = WithinGroups(Groups.from_labels(CELLS))


def timed(name: str, run: Callable[[], Any]) -> Any:
    """Print and pass on; compiled kernels are warm, because everything runs once on few people before."""
    start = perf_counter()
    result = run()
    print(f"  {name:<44} {perf_counter() - start:8.2f} s", flush=True)
    return result


def attack(name: str, attacker: Attacker, randomizer: Any, shuffler: Shuffler, *, randomizations: int) -> None:
    """One attack: two orders, half of the randomizations in each."""
    found = timed(
        f"{name}, {randomizer.name}, {shuffler.name}",
        lambda: run_attack(
            attacker, randomizer, VALUES, shuffler, shuffles=2, randomizations=randomizations // 2, rng=RNG
        ),
    )
    print(f"  {'':<44} success {found.success:.3f}, chance {found.chance:.3f}, vulnerable {found.vulnerable:.3f}")


def household(shuffler: Shuffler) -> None:
    """Five people of one cell, and what Theorem 4.2 allows."""
    randomizer, group = KRR(8, 0.1), np.flatnonzero(CELLS[0] == CELLS)
    search = timed(
        f"learn 500 orders, {shuffler.name}",
        lambda: SubsetSearch.learn(randomizer, VALUES, shuffler, subset=group[:5], rng=RNG),
    )
    found = reidentify_subset(search, VALUES, shuffler, trials=100, rng=RNG)
    bound = subset_bound(randomizer, shuffler, subset=group[:5], group=group)
    print(f"  {'':<44} success {found.success:.3f} to {found.interval[1]:.3f}, Theorem 4.2 {bound:.3f}")


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, seed {SEED}, n {N:,}")
    krr = KRR(8, EPSILON)
    shufflers = (Identity(N), INSIDE, Mallows.fit(Groups.from_labels(CELLS, radius=1), alpha=100.0), Uniform(N))

    print("majority vote, 25 votes, 50 randomizations")
    select_voters(EVERYBODY[:5], within=(PLANE, 0.02), similar=PLANE, rng=RNG)
    timed("tree, nearest of all", lambda: select_voters(EVERYBODY, within=None, similar=PLANE, rng=RNG))
    similar = RNG.below(7, N)
    places = timed(
        "nearest of those within .04, ties at random",
        lambda: select_voters(EVERYBODY, within=(PLANE, 0.04), similar=similar, rng=RNG),
    )
    for randomizer in (krr, Hadamard(8, EPSILON), Unary(8, EPSILON), LocalHashing(8, EPSILON)):
        attacker = MajorityVote(randomizer, EVERYBODY, places)
        attacker.guess(randomizer.randomize(VALUES, RNG), RNG)
        for shuffler in shufflers if randomizer is krr else shufflers[:1]:
            attack("vote", attacker, randomizer, shuffler, randomizations=50)

    print("likelihood, 100 draws where the law is not known, 100 classes, 50 randomizations")
    traits = np.eye(100)[np.floor(PLANE * 10).astype(np.int64) @ [10, 1]]
    for shuffler in shufflers:
        seats = timed(f"law, {shuffler.name}", partial(seats_of, shuffler, EVERYBODY, draws=100, rng=RNG))
        known = Likelihood(krr, EVERYBODY, seats, traits, Regression.on(seats.at_places(traits)))
        attack("likelihood", known, krr, shuffler, randomizations=50)

    print("re-identification of a household of 5 in its cell, 100 releases, epsilon 0.1")
    for shuffler in shufflers:
        household(shuffler)


if __name__ == "__main__":
    main()
