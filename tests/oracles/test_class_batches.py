"""Every small batch of people of two classes, as its analyst sees it: no class loses more than the service promises.

What she sees is the signed header, which says how many people of each class there are, and the reports in a uniform
order: their histogram. Who is dishonest tells her everything. Every data set, every choice of who is dishonest or
sends what cannot be read, and every person is listed.
"""

from __future__ import annotations

from itertools import combinations, product
from math import exp

import numpy as np
import pytest
from tests.account.test_mixture import histograms
from tests.collect.test_classes import counted_campaign

from dovetail.collect.campaign.guarantees import ReleasedBatch, batch_guarantee, campaign_guarantees
from dovetail.core.guarantee import CentralDP
from dovetail.randomize.krr import KRR
from dovetail_protocol.campaign import Campaign

EPSILONS = (0.5, 3.0)


def campaign(delta: str, dishonest: int) -> Campaign:
    """Two answers, two classes."""
    return counted_campaign(
        randomizer='name = "krr"\nk = 2\nepsilon = 3.0', delta=delta, promise=f"assumed_dishonest = {dishonest}"
    )


def laws(victim: int, others: tuple[int, ...]) -> list[tuple[dict, dict]]:
    """Both laws of the histogram of these honest people, for every data set and both values of the victim."""
    rows = [KRR(2, epsilon).channel().matrix() for epsilon in EPSILONS]
    found = []
    for held in product(range(2), repeat=len(others)):
        rest = [rows[each][value] for each, value in zip(others, held, strict=True)]
        found.append(tuple(histograms([rows[victim][value], *rest]) for value in (0, 1)))
    return found


def excess(one: dict, two: dict, epsilon: float) -> float:
    """delta(epsilon), in both directions."""
    ways = ((one, two), (two, one))
    return max(sum(max(0.0, mass - exp(epsilon) * q[key]) for key, mass in p.items()) for p, q in ways)


def worst(victim: int, sizes: tuple[int, int], honest: int, epsilon: float) -> float:
    """The largest delta over every choice of the honest others, and every data set."""
    rest = [0] * (sizes[0] - (victim == 0)) + [1] * (sizes[1] - (victim == 1))
    return max(
        excess(one, two, epsilon)
        for others in set(combinations(rest, honest - 1))
        for one, two in laws(victim, others)
    )


@pytest.mark.parametrize(
    ("sizes", "dishonest", "unread"), [((2, 2), 0, 0), ((2, 3), 1, 0), ((3, 2), 2, 0), ((3, 2), 1, 1), ((1, 4), 1, 1)]
)
def test_no_batch_exceeds_what_each_class_is_promised(sizes: tuple[int, int], dishonest: int, unread: int) -> None:
    found, n = campaign("0.1", dishonest), sum(sizes) - unread
    promised = batch_guarantee(found, ReleasedBatch(t=1, sent=sum(sizes), n=n, smallest=n, classes=sizes))
    reached = []
    for victim, promise in enumerate(promised.by_class):
        assert isinstance(promise, CentralDP)
        reached.append(worst(victim, sizes, n - dishonest, promise.epsilon))
        assert promise.epsilon <= EPSILONS[victim]
        assert promise.epsilon == 0.0 or reached[-1] > 0.02  # no promise is idle
    assert max(reached) <= 0.1


@pytest.mark.parametrize("sizes", [((2, 2), (1, 3)), ((3, 1), (2, 2))])
def test_two_batches_together_do_not_exceed_what_each_class_is_promised(
    sizes: tuple[tuple[int, int], tuple[int, int]],
) -> None:
    found = campaign("0.1", 1)
    batches = [
        ReleasedBatch(t=t, sent=sum(each), n=sum(each), smallest=sum(each), classes=each)
        for t, each in enumerate(sizes, 1)
    ]
    for victim, each in enumerate(campaign_guarantees(found, batches).classes):
        assert isinstance(each.composed, CentralDP) and each.most_reports == 2
        lost = []
        for others in product(*(choices(victim, size, sum(size) - 1) for size in sizes)):
            for first, second in product(*(laws(victim, some) for some in others)):
                p, q = (
                    {(a, b): one[a] * two[b] for a in one for b in two}
                    for one, two in zip(first, second, strict=True)
                )
                lost.append(excess(p, q, each.composed.epsilon))
        assert 1e-3 < max(lost) <= 0.1
        assert np.isfinite(each.composed.epsilon) and each.composed.epsilon <= each.all_local


def choices(victim: int, sizes: tuple[int, int], honest: int) -> set[tuple[int, ...]]:
    """Every choice of the honest others, by class."""
    rest = [0] * (sizes[0] - (victim == 0)) + [1] * (sizes[1] - (victim == 1))
    return set(combinations(rest, honest - 1))
