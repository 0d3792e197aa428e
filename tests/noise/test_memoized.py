"""Answers that are sent again: tallies are those of one round, and all rounds tell together what one block does."""

from itertools import permutations, product

import numpy as np
import pytest

from dovetail.core.noise import People
from dovetail.core.stages import Shuffler
from dovetail.noise.local import Local
from dovetail.noise.memoized import Memoized
from dovetail.randomize.krr import KRR
from dovetail.shuffle.rase import RASE
from dovetail.shuffle.uniform import Uniform

KRR2 = KRR(2, 1.5)
EPSILONS = (0.0, 0.1, 0.3, 0.7, 1.2)


def told(values: tuple[int, ...], shuffler: Shuffler, rounds: int) -> dict[tuple[tuple[int, ...], ...], float]:
    """The law of everything that is released: one draw of everybody's answer, and an order of it for each round."""
    every = [(order, shuffler.log_weight(order)) for order in permutations(range(len(values)))]
    orders = [(order, float(np.exp(weight))) for order, weight in every if weight > -np.inf]
    channel, found = KRR2.channel().matrix(), dict[tuple[tuple[int, ...], ...], float]()
    for answers in product(range(2), repeat=len(values)):
        drawn = float(np.prod([channel[x, y] for x, y in zip(values, answers, strict=True)]))
        once = dict[tuple[int, ...], float]()
        for order, chance in orders:
            batch = tuple(answers[person] for person in order)
            once[batch] = once.get(batch, 0.0) + chance
        for batches in product(once, repeat=rounds):
            found[batches] = found.get(batches, 0.0) + drawn * float(np.prod([once[one] for one in batches]))
    return found


def deltas(values: tuple[int, ...], other: tuple[int, ...], shuffler: Shuffler, rounds: int) -> np.ndarray:
    """The least delta at each epsilon by which two tables are told apart."""
    one, two = told(values, shuffler, rounds), told(other, shuffler, rounds)
    assert sum(one.values()) == pytest.approx(1.0)
    return np.array(
        [sum(max(0.0, one[all_] - np.exp(epsilon) * two.get(all_, 0.0)) for all_ in one) for epsilon in EPSILONS]
    )


@pytest.mark.parametrize("others", [(0, 0), (0, 1), (1, 1)], ids=str)
def test_two_rounds_in_fresh_orders_tell_what_one_does(others: tuple[int, int]) -> None:
    once = deltas((0, *others), (1, *others), Uniform(3), 1)
    np.testing.assert_allclose(deltas((0, *others), (1, *others), Uniform(3), 2), once, atol=1e-12)
    assert once[0] > 0.01  # something to be told


@pytest.mark.parametrize("others", [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)], ids=str)
def test_an_order_of_groups_hides_a_person_in_all_rounds_as_her_group_alone_does(
    others: tuple[int, int, int],
) -> None:
    """People 0 and 1 are mixed in every round anew, and 2 and 3 are."""
    shuffler = RASE.fit([[0, 1], [2, 3]])
    blocks = shuffler.exchangeable_blocks()
    assert blocks is not None and blocks[0] == blocks[1] != blocks[2]
    block = deltas((0, others[0]), (1, others[0]), Uniform(2), 1)
    np.testing.assert_allclose(deltas((0, *others), (1, *others), shuffler, 2), block, atol=1e-12)


def test_tallies_errors_and_promises_are_those_of_one_round() -> None:
    once, people = Local(KRR2), People(100)
    noise = Memoized(once, 7)
    reports = np.arange(100) % 2
    whole, parts = noise.tally(reports), [noise.tally(part) for part in np.split(reports[::-1], [1, 30])]
    assert whole.n == sum(part.n for part in parts) == once.tally(reports).n
    assert np.array_equal(whole.counts, sum(part.counts for part in parts))
    assert noise.shares(whole, people).value.tolist() == once.shares(whole, people).value.tolist()
    assert noise.error(people) == once.error(people)
    mine, own = (one.central(Uniform(100), people, delta=1e-6) for one in (noise, once))
    assert (mine.all, mine.honest, mine.colluding) == (own.all, own.honest, own.colluding)  # type: ignore[union-attr]
    assert mine.neighbours == "replace one person's value in all 7 rounds"  # type: ignore[union-attr]
