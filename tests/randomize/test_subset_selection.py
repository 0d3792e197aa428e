"""Subset selection lies between k-ary randomized response and unary encoding, and its law is that of its channel."""

import numpy as np
import pytest
from tests.statistics import expect_broken, expect_law

from dovetail.account.finite_channel import FiniteChannelLaw
from dovetail.account.mechanism_law import mechanism_attack, mechanism_law
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.randomize.krr import KRR
from dovetail.randomize.subset_selection import SubsetSelection
from dovetail.randomize.unary import Unary

CASES = [SubsetSelection(k=k, epsilon=epsilon) for k in (2, 3, 5, 9) for epsilon in (0.25, 1.0, 2.5, 21.0)]


@pytest.mark.exhaust
@pytest.mark.parametrize("chosen", CASES, ids=repr)
def test_the_law_for_the_accountant_is_that_of_the_whole_channel(chosen: SubsetSelection) -> None:
    for n, delta in ((20, 1e-3), (2000, 1e-8)):
        whole = FiniteChannelLaw.of(chosen.channel().matrix(), n=n).epsilon(delta)
        own = mechanism_law(chosen, n=n)[1].epsilon(delta)
        assert own.upper == pytest.approx(whole.upper, rel=1e-6, abs=1e-12)
        assert mechanism_attack(chosen, n=n, delta=delta) <= own.upper * (1.0 + 1e-9)


def test_subsets_of_one_are_randomized_response() -> None:
    one, krr = SubsetSelection(k=4, epsilon=3.0), KRR(k=4, epsilon=3.0)
    assert one.size == 1
    np.testing.assert_allclose(one.channel().matrix(), krr.channel().matrix(), rtol=1e-15)
    flat = np.full(4, 0.25)
    np.testing.assert_allclose(one.variance(flat), krr.variance(flat), rtol=1e-12)


@pytest.mark.parametrize(("k", "epsilon"), [(20, 1.0), (100, 2.0), (12, 0.5)])
def test_equal_shares_are_no_harder_than_for_the_encodings_on_either_side(k: int, epsilon: float) -> None:
    flat = np.full(k, 1.0 / k)
    chosen = SubsetSelection(k=k, epsilon=epsilon).variance(flat)[0]
    assert chosen < KRR(k=k, epsilon=epsilon).variance(flat)[0]
    assert chosen < Unary(k=k, epsilon=epsilon).variance(flat)[0]


def test_a_subset_with_a_favourite_is_caught(rng: Entropy) -> None:
    chosen = SubsetSelection(k=5, epsilon=0.5)
    law = chosen.channel().matrix()[0]
    seen = np.bincount(chosen.columns(chosen.randomize(np.zeros(20_000, dtype=int), rng)), minlength=law.size)
    expect_law(seen, law)
    favoured = law.copy()
    favoured[:2] += (0.02, -0.02)
    expect_broken(seen, favoured)


def test_reports_of_the_wrong_size_and_channels_beyond_memory_are_refused() -> None:
    chosen = SubsetSelection(k=9, epsilon=1.0)
    with pytest.raises(DataError, match="packed bits with 2 of 9 set"):
        chosen.check_reports(np.array([[0b11100000, 0]], dtype=np.uint8))
    with pytest.raises(UnsupportedError, match="too many for k = 60"):
        SubsetSelection(k=60, epsilon=0.5).channel()
