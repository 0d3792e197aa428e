"""The chance of naming a person's report equals the enumeration, and no data set exceeds its bound."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

import dovetail as dt
from dovetail.core.channel import DenseChannel
from dovetail.core.display import chance_in_words
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.leak.linkage import Linkage, linkage, linkage_among_dummies, linkage_bound


def named(laws: NDArray[np.float64]) -> float:
    """The best guess of where the report of the first person stands, over every batch and every order."""
    n, kinds = laws.shape
    total = 0.0
    for batch in product(range(kinds), repeat=n):
        place = np.zeros(n)
        for order in permutations(range(n)):  # place s holds the report of order[s]
            place[order.index(0)] += math.prod(laws[order[s], batch[s]] for s in range(n))
        total += place.max()
    return total / math.factorial(n)


def channels() -> list[NDArray[np.float64]]:
    draw = np.random.default_rng(5)
    found = [draw.dirichlet(np.ones(kinds), size=k) for k, kinds in ((2, 2), (2, 3), (3, 2), (3, 3))]
    empty = found[1].copy()
    empty[0, 0] = 0.0
    return [*found, empty / empty.sum(axis=1, keepdims=True), np.eye(3)]


@pytest.mark.parametrize("law", channels())
@pytest.mark.parametrize("n", [1, 2, 3])
def test_what_is_named_equals_the_enumeration_and_no_data_set_exceeds_the_bound(
    law: NDArray[np.float64], n: int
) -> None:
    k = len(law)
    prior = np.arange(1.0, k + 1.0) / (k * (k + 1) / 2)
    found = linkage(DenseChannel(law), n=n, prior=prior)
    others = np.tile(prior @ law, (n - 1, 1))
    exact = sum(prior[x] * named(np.vstack([law[x : x + 1], others])) for x in range(k))
    assert found.shares_known == pytest.approx(exact, abs=1e-12) and found.method == "exact sum"
    one_value = max(named(np.vstack([law[x], *[law[b]] * (n - 1)])) for x in range(k) for b in range(k))
    assert found.values_known_lower == pytest.approx(one_value, abs=1e-12)
    most = max(named(law[list(held)]) for held in product(range(k), repeat=n))
    assert found.values_known_lower - 1e-12 <= most <= found.values_known + 1e-12


@pytest.mark.parametrize("k", [2, 3, 10, 100])
@pytest.mark.parametrize("n", [1, 5, 1000])
def test_randomized_response_equals_its_matrix(k: int, n: int) -> None:
    channel = dt.KRR(k=k, epsilon=2.0).channel()
    short, dense = linkage(channel, n=n), linkage(DenseChannel(channel.matrix()), n=n)
    for name in ("shares_known", "values_known", "values_known_lower"):
        assert getattr(short, name) == pytest.approx(getattr(dense, name), rel=1e-9)


def test_a_million_people_hide_a_report_as_the_closed_form_says() -> None:
    # p - (p - 1) (1 - q)^n - (1 - 1/p) (1 - p q)^n with p = e^4, q = 1 / (p + 9): p to twelve digits
    found = linkage(dt.KRR(k=10, epsilon=4.0), n=10**6)
    assert found.values_known * 1e6 == pytest.approx(math.exp(4.0), rel=1e-9)
    assert found.values_known_lower * 1e6 == pytest.approx(math.exp(4.0), rel=1e-9)
    p = math.exp(4.0) / (math.exp(4.0) + 9.0)
    assert found.shares_known * 1e6 == pytest.approx(10.0 * p, rel=1e-9)  # a tenth share her answer


def test_a_channel_that_says_nothing_names_nobody() -> None:
    found = linkage(DenseChannel([[0.3, 0.7], [0.3, 0.7]]), n=7)
    assert [found.blind, found.shares_known, found.values_known, found.values_known_lower] == pytest.approx(
        [1 / 7] * 4
    )


def test_reports_that_cannot_be_listed_and_numbers_have_the_bound() -> None:
    bound = linkage_bound(2.0, n=1000)
    assert bound.values_known == pytest.approx(math.exp(2.0) / 1000 * (1 - (1 - math.exp(-2.0)) ** 1000))
    number, hashed = linkage(dt.Laplace(0.0, 1.0, epsilon=2.0), n=1000), linkage(dt.Unary(k=40, epsilon=2.0), n=1000)
    assert number.method == hashed.method == "bound"
    assert number.values_known == pytest.approx(bound.values_known) == hashed.shares_known
    assert linkage_bound(math.inf, n=1000).values_known == 1.0 > linkage_bound(20.0, n=1000).values_known


def test_without_a_pure_guarantee_no_bound_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dt.KRR, "guarantee", LocalDP(1.0, delta=1e-3, source="made up"))
    with pytest.raises(UnsupportedError, match="pure local guarantee"):
        linkage(dt.KRR(k=3, epsilon=1.0), n=100)


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_dummies_that_others_send_hide_a_raw_answer_as_the_enumeration_says(rate: float) -> None:
    honest, k = 4, 2
    r, total = rate / k, 0.0
    for many in range(honest):  # of the others' dummies that equal her answer, which nobody else holds
        total += math.comb(honest - 1, many) * r**many * (1 - r) ** (honest - 1 - many) / (1 + many)
    assert linkage_bound(-math.log(r), n=honest).values_known == pytest.approx(total, rel=1e-9)


def test_a_shufflers_dummies_hide_by_their_number_or_by_local_noise() -> None:
    law = np.array([0.2, 0.5, 0.3])
    assert linkage_among_dummies(law, n=50).values_known == pytest.approx(0.2 + 0.5 / 2 + 0.3 / 3)
    among: Linkage = linkage_among_dummies(law, n=5000, epsilon=1.0)
    assert among.values_known == pytest.approx(linkage_bound(1.0, n=5000).values_known)


def test_chances_are_shown_rounded_up() -> None:
    assert [chance_in_words(one) for one in (1 / 985, 0.0099999, 0.01, 0.123401, 1.0, 1 / 98765)] == [
        "1 in 985", "1 in 100", "1%", "12.4%", "100%", "1 in 98,700",
    ]  # fmt: skip
