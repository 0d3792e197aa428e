"""The fullest bins: each cut stays inside its bound, and the relations between the sums hold."""

import math
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from scipy import stats
from tests.tiers import EXHAUST

from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.leak import max_load
from dovetail.leak import max_load as truncation
from dovetail.leak import max_load_unequal as max_load_unequal_module
from dovetail.leak import max_load_unequal as top_t_load
from dovetail.leak.dft_inversion import aliasing_error
from dovetail.leak.max_load import Tolerances, max_load_gap
from dovetail.leak.max_load_unequal import Bins, max_load_unequal, top_t_load_gap

CASES = [(200, 3), (1_000, 40), (50, 400), (31, 31)]
SIGNS = {"nodes": 1, "dropped": 0, "beyond": -1, "below": 1, "window": -1}  # of computed - true


@pytest.mark.parametrize("cut", Tolerances._fields)
@pytest.mark.parametrize("tol", [1e-9, 1e-5, 1e-2])
def test_a_coarser_cut_still_holds_the_truth_and_errs_to_its_side(
    cut: str, tol: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    truths = [max_load_gap(n, k).value for n, k in CASES]
    monkeypatch.setattr(truncation, "TOLERANCES", Tolerances()._replace(**{cut: tol}))
    for (n, k), truth in zip(CASES, truths, strict=True):
        found = max_load_gap(n, k)
        assert abs(found.value - truth) <= found.error_bound
        rounding = 2 * max_load.ROUNDING * truth
        assert SIGNS[cut] * (found.value - truth) >= -rounding


@pytest.mark.parametrize("cut", ["nodes", "dropped", "beyond", "below"])  # the window never ends before the last m
def test_every_cut_really_cuts(cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fine = [max_load_gap(n, k) for n, k in CASES]
    monkeypatch.setattr(truncation, "TOLERANCES", Tolerances()._replace(**{cut: 1e-3}))
    coarse = [max_load_gap(n, k) for n, k in CASES]
    assert any(b.error_bound > 1e3 * a.error_bound and a.value != b.value for a, b in zip(fine, coarse, strict=True))


@pytest.mark.parametrize(
    ("n", "k"), [(10**12, 2), (10**6, 3), (10**6, 10), (10**6, 100), (10**8, 100), (10**6, 10**6), (2, 10**6)]
)
def test_big_collections_finish_with_a_small_error(n: int, k: int) -> None:
    found = max_load_gap(n, k)
    assert 0.0 < found.value < n
    assert found.error_bound <= 3e-14 * found.value


def test_two_people_among_a_million_values_share_one_with_the_right_chance() -> None:
    # E[max] = 1 + 1/k: a case that numpy's complex log1p gets wrong in the twelfth digit
    k = 10**6
    assert max_load_gap(2, k).value == pytest.approx(1.0 + 1.0 / k - 2.0 / k, rel=1e-15)


def test_compiled_and_array_powers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    for n, k, t in ((500, 3, 1), (3_000, 20, 1), (500, 3, 2), (3_000, 20, 4)):
        compiled = top_t_load_gap(n, k, t)
        with monkeypatch.context() as patched:
            patched.setattr(max_load, "MOST_COMPILED_BINS", 1)
            patched.setattr(top_t_load, "MOST_COMPILED_BINS", 1)
            arrays = top_t_load_gap(n, k, t)
        assert compiled.value == pytest.approx(arrays.value, rel=1e-13)


@pytest.mark.parametrize(
    ("n", "k", "many", "cost"),
    [(20_000, 4, 1 << 12, 1e-2), (20_000, 3, 1 << 14, 1e-2), (5_000, 5, 1 << 12, 1e-4),
     pytest.param(30_000_000, 4, truncation.MANY, truncation.SHORTENED, marks=EXHAUST)],
)  # fmt: skip
def test_a_sum_of_fewer_nodes_holds_the_whole_one(
    n: int, k: int, many: int, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(truncation, "MANY", many)
    monkeypatch.setattr(truncation, "SHORTENED", cost)
    short, fewer = max_load_gap(n, k), truncation.truncate_sum(n, k)
    monkeypatch.setattr(truncation, "MANY", 10**12)
    whole, every = max_load_gap(n, k), truncation.truncate_sum(n, k)
    assert fewer.kept < every.kept, "less work"
    assert whole.error_bound < 1e-13 * whole.value
    assert abs(short.value - whole.value) <= short.error_bound + whole.error_bound <= 1.5 * cost * whole.value
    if n < 10**6:
        assert abs(short.value - whole.value) > 3 * whole.error_bound, "what is left out is seen"


@pytest.mark.parametrize("n", [50, 1000, 100_000])
def test_the_aliasing_error_holds_what_both_tails_fold_back(n: int) -> None:
    r"""A sum over N nodes counts every count :math:`n + jN` as n: the share of these beside that of n."""
    for nodes in range(math.isqrt(n) + 1, 6 * math.isqrt(n), math.isqrt(n)):
        aliases = np.arange(n % nodes, n + 40 * math.isqrt(n), nodes)
        chances = stats.poisson.pmf(aliases[aliases != n], n)
        folded = float(chances.sum() / stats.poisson.pmf(n, n))
        assert folded <= aliasing_error(n, nodes) <= 3.0 * folded


@EXHAUST
def test_a_sum_that_takes_too_long_is_refused_with_its_cost() -> None:
    for n, k in ((10**9, 3), (10**12, 3), (10**9, 4)):
        with pytest.raises(UnsupportedError, match="terms; the limit is"):
            max_load_gap(n, k)
    with pytest.raises(UnsupportedError, match="too large to sum"):
        top_t_load_gap(1_000, 200, 100)


@pytest.mark.parametrize(("n", "k"), [(1, 4), (3, 5), (50, 4), (400, 9), (60, 80)])
def test_each_further_bin_adds_less_and_all_bins_hold_everything(n: int, k: int) -> None:
    gains = [top_t_load_gap(n, k, t).value + t * n / k for t in range(min(k, 10) + 1)]
    steps = [b - a for a, b in pairwise(gains)]
    assert all(a >= b - 1e-12 * n for a, b in pairwise(steps))
    assert top_t_load_gap(n, k, k).value == 0.0
    assert top_t_load_gap(n, k, 1) == max_load_gap(n, k)


def test_the_emptiest_of_two_and_three_bins_mirrors_the_fullest() -> None:
    for n in (1, 2, 7, 100):
        assert top_t_load_gap(n, 2, 1).value == pytest.approx(n * comb(n - 1, (n - 1) // 2) / 2**n, rel=1e-13)
    # two balls in three bins: the emptiest holds none, so the others have 2/3 in excess
    assert top_t_load_gap(2, 3, 2).value == pytest.approx(2 / 3, rel=1e-15)


@pytest.mark.parametrize(("n", "k"), [(2, 3), (30, 3), (200, 12), (1_000, 100)])
def test_unequal_bins_that_are_equal_are_the_fullest_bin(n: int, k: int) -> None:
    found, plain = max_load_unequal(n, (Bins(k, 1 / k),)), max_load_gap(n, k)
    assert abs(found.value - n / k - plain.value) <= found.error_bound + plain.error_bound
    split = max_load_unequal(n, (Bins(1, 1 / k), Bins(k - 1, 1 / k)))
    assert abs(found.value - split.value) <= found.error_bound + split.error_bound


def test_parameters_out_of_range_are_refused() -> None:
    for bad in ((0, 3, 1), (3, 1, 1), (3, 3, 4), (3, 3, True)):
        with pytest.raises(ParameterError, match="must be"):
            top_t_load_gap(*bad)


@pytest.mark.exhaust
def test_crowds_that_are_too_large_for_several_tries_are_refused_before_any_work() -> None:
    with pytest.raises(UnsupportedError, match="terms; the limit is"):
        top_t_load_gap(10**9, 5, 2)


@pytest.mark.parametrize("tol", [1e-3, 0.1, 0.5])
def test_a_coarser_cut_of_unequal_bins_still_holds_the_truth(tol: float, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (Bins(2, 0.2), Bins(6, 0.1))
    for n in (3, 10, 30, 200):
        monkeypatch.setattr(max_load_unequal_module, "TOL", 1e-18)
        truth = max_load_unequal(n, kinds).value
        monkeypatch.setattr(max_load_unequal_module, "TOL", tol)
        found = max_load_unequal(n, kinds)
        assert abs(found.value - truth) <= found.error_bound
