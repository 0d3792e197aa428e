"""Learned shares: as good as the Bayes guess of who sees the release alone, enumerated by code of its own."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from tests.tiers import tiered

from dovetail.attack.experiment.share_posterior import tables
from dovetail.attack.likelihood import Likelihood
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.stages import Knowledge
from dovetail.randomize.krr import KRR
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace
from dovetail.shuffle.rase import RASE
from dovetail.shuffle.within_groups import WithinGroups

ALPHA, HOUSEHOLDS, RELEASES = 2.0, 12, 8
AAB, AABB, AAABB = (0, 0, 1), (0, 0, 1, 1), (0, 0, 0, 1, 1)


@dataclass(frozen=True, eq=False)
class Release(Knowledge):
    """Classes are public, and the release that is attacked is the one that was seen."""

    kinds: np.ndarray
    reports: np.ndarray

    def places(self, targets: np.ndarray, *, votes: int, rng: Entropy) -> np.ndarray:
        raise NotImplementedError

    def points(self) -> np.ndarray:
        return self.kinds[:, None].astype(float)

    def classes(self) -> np.ndarray:
        return self.kinds.copy()

    def release(self, randomizer: Any, shuffler: Any, rng: Entropy) -> np.ndarray:
        return self.reports


def within(m: int, households: int) -> WithinGroups:
    return WithinGroups(Groups.from_labels(np.repeat(np.arange(households), m)))


def rase(m: int, households: int) -> RASE:
    return RASE.fit(Groups.from_labels(np.repeat(np.arange(households), m)), alpha=ALPHA)


def neighbours(m: int, households: int) -> Groups:
    """Everybody and the next person of the same household."""
    firsts = [household * m + i for household in range(households) for i in range(m - 1)]
    return Groups.from_lists([[one, one + 1] for one in firsts], m * households)


def mallows(m: int, households: int) -> Mallows:
    return Mallows.fit(neighbours(m, households), alpha=ALPHA, reference=np.arange(m * households))


def noisy_sort(m: int, households: int) -> NoisySort:
    return NoisySort.fit(neighbours(m, households), alpha=ALPHA, scores=np.arange(m * households))


def planar(m: int, households: int) -> PlanarLaplace:
    people = np.arange(m * households)
    points = np.column_stack((people + 9.0 * (people // m), people % m % 2))
    return PlanarLaplace.fit(neighbours(m, households), alpha=ALPHA, points=points)


@lru_cache
def orders_of(shuffler: Any, m: int) -> dict[tuple[int, ...], float]:
    """Each order of one household with its probability: published, or how often it came in 20,000 households."""
    if shuffler is not planar:
        one = shuffler(m, 1)
        return {order: float(np.exp(one.log_weight(list(order)))) for order in permutations(range(m))}
    law: dict[tuple[int, ...], float] = {}
    many, rng = planar(m, 2000), simulation(7)
    for _ in range(10):
        for row in (many.permutation(rng).reshape(2000, m) % m).tolist():
            law[tuple(row)] = law.get(tuple(row), 0.0) + 1.0 / 20_000
    return law


def all_shares(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares (draws, classes, 2) and weights that integrate polynomials of degree 39 in each share exactly."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    ones = np.array(list(product((nodes + 1.0) / 2.0, repeat=classes)))
    return np.stack((1.0 - ones, ones), axis=2), np.array(list(product(weights / 2.0, repeat=classes))).prod(axis=1)


def joint(
    shares: np.ndarray, channel: np.ndarray, household: tuple[int, ...], law: dict[tuple[int, ...], float]
) -> dict[tuple[int, ...], np.ndarray]:
    """For each release of a household its chance with each value of each person (draws, people, 2)."""
    people = range(len(household))
    chance = [shares[:, household[j], :, None] * channel for j in people]  # (draws, value, report)
    found: dict[tuple[int, ...], np.ndarray] = {}
    for batch in product(range(2), repeat=len(household)):
        total = np.zeros((len(shares), len(household), 2))
        for order, weight in law.items():
            sent = [
                chance[order[place]][:, :, batch[place]] for place in people
            ]  # (draws, value) of whom stands there
            for place in people:
                others = [sent[other].sum(axis=1) for other in people if other != place]
                total[:, order[place]] += weight * np.prod(others, axis=0)[:, None] * sent[place]
        found[batch] = total
    return found


def missed(shuffler: Any, household: tuple[int, ...], epsilon: float, rng: Entropy) -> float:
    """Success of the Bayes guess that the attack misses, given the releases: no chance but in drawing these."""
    m, krr, law = len(household), KRR(2, epsilon), orders_of(shuffler, len(household))
    shares, weights = all_shares(2)
    chances = joint(shares, np.asarray(krr.channel().matrix()), household, law)
    mixed, kinds, gaps = shuffler(m, HOUSEHOLDS), np.tile(household, HOUSEHOLDS), []
    for _ in range(RELEASES):
        ones = rng.below(1 << 20, 2) / (1 << 20)
        values = (rng.below(1 << 20, len(kinds)) < ones[kinds] * (1 << 20)).astype(np.int64)
        reports = mixed.shuffle(krr.randomize(values, rng), rng)
        rows = [tuple(row) for row in reports.reshape(HOUSEHOLDS, m).tolist()]
        logs = sum(np.log(chances[row][:, 0].sum(axis=1)) for row in rows)
        posterior = weights * np.exp(logs - np.max(logs))
        by_row = {row: chances[row] / chances[row][:, :1].sum(axis=2, keepdims=True) for row in set(rows)}
        told = np.concatenate([np.tensordot(posterior / posterior.sum(), by_row[row], 1) for row in rows])
        everybody = np.arange(len(kinds))
        attack = Likelihood.prepare(Release(kinds, reports), krr, mixed, targets=everybody, rng=rng)
        guesses = attack.guess(reports, rng)
        gaps.append(float((told.max(axis=1) - told[everybody, guesses]).mean()))
    assert min(gaps) > -1e-12, "nobody guesses better than Bayes"
    return float(np.mean(gaps))


def named(part: Any) -> str:
    """A shuffler's name, the letters of a household, or epsilon."""
    return "".join("AB"[c] for c in part) if isinstance(part, tuple) else getattr(part, "__name__", str(part))


CASES = [
    (shuffler, household, epsilon)
    for shuffler in (within, mallows, noisy_sort, planar, rase)
    for household in (AAB, AABB, AAABB)
    for epsilon in (0.5, 4.0)
]


@pytest.mark.parametrize(
    ("shuffler", "household", "epsilon"),
    tiered(CASES, first=lambda case: case in ((within, AAB, 4.0), (mallows, AABB, 0.5))),
    ids=named,
)
def test_what_is_learned_from_the_release_alone_is_within_a_hundredth_of_bayes(
    shuffler: Any, household: tuple[int, ...], epsilon: float, rng: Entropy
) -> None:
    """Mostly below .002, and up to .02 where EM alone learned. A class sends 36 reports at most: degree 37."""
    assert missed(shuffler, household, epsilon, rng) < 0.01


@pytest.mark.parametrize(
    ("many", "counts"), [((2, 1), (2, 1)), ((3, 2), (2, 2, 1)), ((1, 2, 2), (0, 3, 2)), ((4,), (1, 3))]
)
def test_all_tables_with_given_margins_are_listed_with_the_ways_to_each(
    many: tuple[int, ...], counts: tuple[int, ...]
) -> None:
    """Counted over all orders of the reports among the people."""
    people = np.repeat(np.arange(len(many)), many)
    reports = np.repeat(np.arange(len(counts)), counts)
    seen: dict[bytes, int] = {}
    for order in set(permutations(reports.tolist())):
        table = np.zeros((len(many), len(counts)), dtype=np.int64)
        np.add.at(table, (people, np.array(order)), 1)
        seen[table.tobytes()] = seen.get(table.tobytes(), 0) + 1
    found = tables(many, counts)
    assert found is not None
    assert {table.tobytes(): round(float(np.exp(log))) for table, log in zip(*found, strict=True)} == seen
