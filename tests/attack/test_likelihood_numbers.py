"""The likelihood attack on numbers: the Bayes guess where orders can be listed, by code of its own."""

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from dovetail.attack.experiment.report_law import MOST_KINDS, POINTS, NumberLaw
from dovetail.attack.experiment.run_attack import run_attack
from dovetail.attack.experiment.sender_model import Regression, seats_of
from dovetail.attack.likelihood import Likelihood
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.stages import Knowledge
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.window import Window
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

PEOPLE, PARTS = 4, 2
LAPLACE = Laplace(lower=0.0, upper=8.0, epsilon=3.0, grid=1.0)
ORDERS: dict[str, Any] = {
    "identity": Identity(PEOPLE),
    "uniform": Uniform(PEOPLE),
    "pairs": WithinGroups(Groups.from_labels(["a", "b", "b", "a"])),
    "mallows": Mallows.fit(Groups.from_labels([1, 2, 3, 4], radius=1), alpha=2.0),
    "one line": Mallows.single(Groups.from_labels([1, 2, 3, 4], radius=1), alpha=3.0),
    "noisy sort": NoisySort.fit(Groups.from_labels([1, 2, 3, 4], radius=1), alpha=3.0),
}


def mass(report: int, value: float) -> float:
    """Of geometric noise at epsilon 3 on nine points, after random rounding, as the paper writes it."""
    t = math.exp(-3.0 / 8.0)
    below, up = math.floor(value), value - math.floor(value)
    return (1 - t) / (1 + t) * ((1 - up) * t ** abs(report - below) + up * t ** abs(report - below - 1))


def bayes(shuffler: Any, laws: np.ndarray, batch: list[int]) -> np.ndarray:
    """Posterior (people, parts): the sum over all orders, each with its published probability."""
    width = 8.0 / (PARTS * POINTS)
    found = np.zeros((PEOPLE, PARTS))
    told = [[[laws[j][x] * mass(z, (x + 0.5) * width) for x in range(PARTS * POINTS)] for z in batch]
            for j in range(PEOPLE)]  # fmt: skip
    for order in permutations(range(PEOPLE)):
        weight = math.exp(shuffler.log_weight(list(order)))
        for j in range(PEOPLE):
            rest = weight
            for place, sender in enumerate(order):
                if sender != j:
                    rest *= sum(told[sender][place])
            for x in range(PARTS * POINTS):
                found[j, x // POINTS] += rest * told[j][order.index(j)][x]
    return np.asarray(found / found.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", [
    "identity", "uniform", "pairs", *(pytest.param(one, marks=pytest.mark.exhaust) for one in list(ORDERS)[3:])
])  # fmt: skip
def test_with_known_shares_the_guess_is_that_of_bayes_in_every_order(name: str, rng: Entropy) -> None:
    shuffler, everybody, traits = ORDERS[name], np.arange(PEOPLE), np.eye(PEOPLE)
    laws = np.exp(2.0 * rng.words(PEOPLE * 8).reshape(PEOPLE, 8) / 2.0**63)
    laws /= laws.sum(axis=1, keepdims=True)
    seats = seats_of(shuffler, everybody, draws=4000, rng=rng)
    model = Regression.on(seats.at_places(traits))
    attack = Likelihood(LAPLACE, everybody, seats, traits, model, laws, known=True, parts=PARTS)
    best = gained = 0.0
    for _ in range(20):
        batch = (rng.words(PEOPLE) % np.uint64(15)).astype(np.int64) - 3
        exact = bayes(shuffler, laws, batch.tolist())
        guessed = attack.guess(batch, rng)
        best += exact.max(axis=1).mean() / 20
        gained += exact[np.arange(PEOPLE), guessed].mean() / 20
        if name in ("identity", "uniform", "pairs"):
            scores = attack.law.guessed(attack.posterior(batch))
            assert np.allclose(scores, exact, atol=1e-9)
    assert gained <= best + 1e-12 and gained > best - 0.01


class Kinds(Knowledge):
    """Two kinds of people in households, and one release that was seen."""

    def __init__(self, kinds: np.ndarray, values: np.ndarray) -> None:
        self.kinds, self.values = kinds, values

    def places(self, targets: np.ndarray, *, votes: int, rng: Entropy) -> np.ndarray:
        raise NotImplementedError

    def points(self) -> np.ndarray:
        return self.kinds[:, None].astype(float)

    def classes(self) -> np.ndarray:
        return self.kinds

    def shares(self, k: int) -> np.ndarray:
        found = np.zeros((2, k))
        np.add.at(found, (self.kinds, NumberLaw(LAPLACE, k // POINTS).codes(self.values)), 1.0)
        return np.asarray((found / found.sum(axis=1, keepdims=True))[self.kinds])

    def release(self, randomizer: Any, shuffler: Any, rng: Entropy) -> np.ndarray:
        return np.asarray(shuffler.shuffle(randomizer.randomize(self.values, rng), rng))


@pytest.mark.exhaust
def test_households_of_two_kinds_are_learned_from_the_release(rng: Entropy) -> None:
    n = 1200
    kinds = np.tile([0, 0, 1], n // 3)
    high = (rng.words(n) % np.uint64(100) < np.where(kinds == 0, 95, 10)).astype(float)
    values = 4.0 * high + 4.0 * (rng.words(n) >> np.uint64(11)) / 2.0**53
    randomizer = Laplace(lower=0.0, upper=8.0, epsilon=8.0, grid=1.0)
    shuffler, known = WithinGroups(Groups.from_labels(np.arange(n) // 3)), Kinds(kinds, values)
    truth = (values >= 4.0).astype(np.int64)
    rates = {}
    for shares in ("learned", "known"):
        attack = Likelihood.prepare(
            known, randomizer, shuffler, targets=np.arange(n), rng=simulation(1), shares=shares, parts=2
        )
        rates[shares] = run_attack(
            attack, randomizer, values, shuffler, truth=truth, shuffles=4, randomizations=1, rng=simulation(2)
        ).success
    blind = max(truth.mean(), 1.0 - truth.mean())
    # the same 4,800 guesses: standard error of the difference below sqrt(2 * .25 / 4800) = .0102
    assert rates["known"] > blind + 0.15 and rates["learned"] > rates["known"] - 6 * 0.0102


@pytest.mark.parametrize("randomizer", [
    Laplace(lower=-1.0, upper=3.0, epsilon=2.0, grid=0.001), Window(lower=-1.0, upper=3.0, epsilon=2.0)
])  # fmt: skip
def test_many_reports_are_joined_without_losing_what_they_say(randomizer: Any, rng: Entropy) -> None:
    law = NumberLaw(randomizer, parts=5)
    values = np.linspace(-1.0, 3.0, 4000)
    reports = randomizer.randomize(values, rng)
    number, likely = law.kinds(reports)
    assert likely.shape == (20, number.max() + 1) and likely.shape[1] <= MOST_KINDS
    own = randomizer.log_density(reports[None, :], law.points[:, None])
    own = np.exp(own - own.max(axis=0))
    # reports of a stretch differ by a 200th of what lies between the outer half per cents: less than a twentieth of
    # the noise's scale, so that a density changes by 2.5 % to its middle; a window's density jumps at two places, and
    # half of the reports of the two stretches there are taken for the other side: one in 200
    assert (np.abs(likely[:, number] - own) > 0.06).mean() < 0.01
    assert np.array_equal(law.codes(np.array([-1.0, -0.81, 2.99, 3.0])), [0, 0, 19, 19])


def test_the_part_of_a_range_is_guessed_and_its_scores_are_sums() -> None:
    law = NumberLaw(LAPLACE, parts=2)
    scores = np.arange(16.0).reshape(2, 8)
    assert law.guessed(scores).tolist() == [[6.0, 22.0], [38.0, 54.0]]
    assert law.remark == "it names which of 2 equal parts of the range a number is in"
