"""Proved brackets contain exact fractions, and the float result lies within its bound of them."""

from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from tests.tiers import one_in

from dovetail.core.certified import Bracket
from dovetail.core.channel import KRRChannel
from dovetail.core.errors import MissingExtraError, ParameterError, UnsupportedError
from dovetail.leak import certified
from dovetail.leak import max_load as truncation
from dovetail.leak.certified import scaled_gap
from dovetail.leak.exact import exact_vulnerability
from dovetail.leak.max_load import max_load_gap
from dovetail.leak.vulnerability import vulnerability

SMALL = [(1, 2), (1, 9), (2, 2), (2, 3), (7, 3), (9, 2), (40, 5), (33, 200), (120, 32), (200, 4)]


def proved_gap(n: int, k: int) -> Bracket:
    """E[fullest of k bins with n balls] - n/k between two proved ends."""
    found = scaled_gap(n, k, Fraction(1))
    return Bracket(found.lower, found.upper)


@pytest.mark.parametrize(("n", "k"), one_in(5, SMALL))
@pytest.mark.parametrize(("keep", "lie"), [(1, 1), (3, 1), (10**9, 1)])
def test_a_certified_bracket_contains_the_exact_fraction(n: int, k: int, keep: int, lie: int) -> None:
    pytest.importorskip("flint")
    channel = KRRChannel(k, keep, lie)
    exact = exact_vulnerability(channel, n=n)
    proved, seen = vulnerability(channel, n=n, certified=True), vulnerability(channel, n=n)
    assert proved.rounding == "proved" and seen.rounding == "estimated"
    for name in ("shuffled", "randomized_shuffled"):
        truth, ends = getattr(exact, name), getattr(proved, f"{name}_bracket")
        assert Fraction(ends.lower) <= truth <= Fraction(ends.upper)
        assert abs(Fraction(getattr(seen, name)) - truth) <= seen.error_bound
        assert ends.upper - ends.lower < 3e-15
    assert abs(Fraction(proved.randomized) - exact.randomized) <= proved.error_bound


@pytest.mark.parametrize(("n", "k"), [(300, 3), (1_000, 12), (10**4, 100), (10**6, 10**4), (10**12, 2)])
def test_the_float_excess_lies_within_its_bound_of_the_proved_one(n: int, k: int) -> None:
    pytest.importorskip("flint")
    proved, found = proved_gap(n, k), max_load_gap(n, k)
    assert proved.gap < 1e-14
    assert proved.lower - found.error_bound <= found.value <= proved.upper + found.error_bound
    assert abs(found.value / proved.lower - 1) < 3e-15  # ten times below what `error_bound` allows for


@pytest.mark.parametrize("cut", truncation.Tolerances._fields)
def test_coarse_cuts_widen_the_bracket_and_never_move_it_off_the_truth(
    cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flint")
    truth = exact_vulnerability(KRRChannel(20, 2, 1), n=100).shuffled * 100 - 5
    fine = proved_gap(100, 20)
    monkeypatch.setattr(truncation, "TOLERANCES", truncation.Tolerances()._replace(**{cut: 1e-3}))
    coarse = proved_gap(100, 20)
    assert Fraction(coarse.lower) <= truth <= Fraction(coarse.upper)
    assert coarse.gap > 1e3 * fine.gap or cut == "window"


def test_without_flint_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, *, extra: str) -> None:
        raise MissingExtraError(f"{module}: pip install 'dovetail-privacy[{extra}]'")

    monkeypatch.setattr(certified, "require", missing)
    with pytest.raises(MissingExtraError, match=r"\[certified\]"):
        vulnerability(KRRChannel(3, 2, 1), n=10, certified=True)


def test_what_takes_too_long_to_prove_is_refused() -> None:
    pytest.importorskip("flint")
    with pytest.raises(UnsupportedError, match="certified maximum load"):
        proved_gap(10**6, 3)


def test_exact_fractions_have_their_range() -> None:
    assert exact_vulnerability(KRRChannel(2, 3, 1), n=2).shuffled == Fraction(3, 4)
    with pytest.raises(ParameterError, match="`n` must be"):
        exact_vulnerability(KRRChannel(2, 3, 1), n=201)
    with pytest.raises(UnsupportedError, match="p >= 1/k"):
        exact_vulnerability(KRRChannel(3, 1, 2), n=3)


def test_reports_that_speak_against_their_value_are_not_certified() -> None:
    with pytest.raises(UnsupportedError, match="Certified mode covers"):
        vulnerability(KRRChannel(3, 1, 2), n=5, certified=True)


@pytest.mark.parametrize(("n", "k"), [(4, 4), (5, 4), (6, 3), (5, 5)])
def test_exact_fractions_are_those_of_all_ways_to_answer(n: int, k: int) -> None:
    fullest = sum(max(Counter(answers).values()) for answers in product(range(k), repeat=n))
    assert exact_vulnerability(KRRChannel(k, 3, 1), n=n).shuffled == Fraction(fullest, n * k**n)
