"""Several messages of each person in one shuffle: against all datasets and all messages, and what is refused."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest

from dovetail.core.channel import DenseChannel, KRRChannel
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.leak.several_messages import message_vulnerability
from dovetail.leak.vulnerability import vulnerability


def by_enumeration(rows: list[list[Fraction]], n: int, messages: int, prior: list[Fraction]) -> tuple[float, float]:
    """Unshuffled and shuffled, from every dataset and every sequence of messages, in fractions."""
    values, kinds = range(len(rows)), range(len(rows[0]))
    alone: dict[tuple[int, ...], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * len(rows))
    mixed: dict[tuple[int, ...], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * len(rows))
    for people in product(values, repeat=n):
        chance = prod(prior[x] for x in people)
        for sent in product(kinds, repeat=n * messages):
            told = chance * prod(rows[people[i // messages]][y] for i, y in enumerate(sent))
            alone[tuple(sorted(sent[:messages]))][people[0]] += told
            mixed[tuple(sorted(sent))][people[0]] += told
    return tuple(float(sum(max(each) for each in table.values())) for table in (alone, mixed))  # type: ignore[return-value]


CASES = [
    ([[3, 1], [1, 3]], 3, 2, [1, 1]),
    ([[3, 1], [1, 7]], 2, 3, [1, 2]),
    ([[5, 1], [1, 1], [1, 5]], 2, 2, [1, 1, 1]),
    ([[2, 1, 1], [1, 1, 2]], 2, 2, [3, 2]),
]


@pytest.mark.parametrize(("masses", "n", "messages", "weights"), CASES)
def test_all_datasets_and_messages_give_the_same(
    masses: list[list[int]], n: int, messages: int, weights: list[int]
) -> None:
    rows = [[Fraction(one, sum(row)) for one in row] for row in masses]
    prior = [Fraction(one, sum(weights)) for one in weights]
    found = message_vulnerability(
        DenseChannel(np.array(rows, dtype=float)), n=n, messages=messages, prior=np.array(prior, dtype=float)
    )
    unshuffled, shuffled = by_enumeration(rows, n, messages, prior)
    assert found.prior == pytest.approx(float(max(prior))) and found.unshuffled == pytest.approx(unshuffled)
    assert shuffled <= found.shuffled + 1e-15 and found.shuffled == pytest.approx(shuffled, rel=1e-12)


@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 40), (3, 12)])
def test_one_message_is_the_usual_vulnerability(k: int, n: int) -> None:
    channel = KRRChannel.of(k, 0.7)
    found, usual = message_vulnerability(channel, n=n, messages=1), vulnerability(channel, n=n)
    assert found.shuffled == pytest.approx(usual.randomized_shuffled, rel=1e-11)
    assert found.unshuffled == pytest.approx(usual.randomized, rel=1e-12)


def test_more_messages_at_the_same_epsilon_each_tell_more_and_a_shuffle_tells_no_more_than_none() -> None:
    channel = KRRChannel.of(2, 0.6)
    found = [message_vulnerability(channel, n=30, messages=m) for m in (1, 3, 9)]
    assert [one.shuffled for one in found] == sorted(one.shuffled for one in found)
    assert all(one.prior < one.shuffled < one.unshuffled for one in found)


def test_too_many_histograms_and_another_prior_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="more histograms than are summed"):
        message_vulnerability(KRRChannel.of(4, 0.7), n=20, messages=2)
    with pytest.raises(ParameterError, match="`prior` must be 2 probabilities"):
        message_vulnerability(KRRChannel.of(2, 0.7), n=20, messages=2, prior=[0.5, 0.25, 0.25])
