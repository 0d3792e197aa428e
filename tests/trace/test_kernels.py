"""Kernels are correlation functions, their slopes are right, and they survive a file."""

import numpy as np
import pytest
from tests.trace.priors import KERNELS

from dovetail.core.errors import DataError, ParameterError
from dovetail.trace.kernels import (
    RBF,
    Kernel,
    Matern32,
    Matern52,
    Periodic,
    Product,
    Sum,
    kernel_from_dict,
    kernel_of,
    sorted_times,
    with_nugget,
)

ALL = [
    *KERNELS,
    with_nugget(Matern32(length=4.0), 0.1),
    Product((RBF(length=20.0), Periodic(length=1.0, period=6.0))),
    Sum((RBF(length=2.0), Matern52(length=9.0)), (1.0, 3.0)),
]
each_kernel = pytest.mark.parametrize("kernel", ALL, ids=repr)
IRREGULAR = np.array([0.0, 0.7, 1.0, 2.5, 4.0, 4.1, 9.0])


@each_kernel
def test_a_kernel_is_one_at_zero_and_positive_semidefinite_at_any_times(kernel: Kernel) -> None:
    matrix = kernel.matrix(IRREGULAR)
    assert np.allclose(np.diag(matrix), 1.0)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-12 and matrix.max() <= 1.0 + 1e-12


@each_kernel
def test_slopes_are_those_of_the_logarithm_of_each_parameter(kernel: Kernel) -> None:
    gaps = np.array([0.0, 0.3, 1.0, 2.0, 5.0])
    for place, slope in enumerate(kernel.gradients(gaps)):
        step = [p * np.exp(1e-6 * (i == place)) for i, p in enumerate(kernel.parameters)]
        back = [p * np.exp(-1e-6 * (i == place)) for i, p in enumerate(kernel.parameters)]
        ends = [kernel.with_parameters(tuple(each)).correlation(gaps) for each in (step, back)]
        assert np.allclose(slope, (ends[0] - ends[1]) / 2e-6, atol=1e-8)  # central differences: error of order 1e-12


@each_kernel
def test_a_stretched_kernel_looks_at_slower_time(kernel: Kernel) -> None:
    stretched = kernel.stretched(2.0)
    assert kernel.stretched(1.0) == kernel
    if not any(kind in repr(kernel) for kind in ("Periodic", "White")):
        assert np.allclose(stretched.correlation(2.0 * IRREGULAR), kernel.correlation(IRREGULAR))


@each_kernel
def test_a_kernel_survives_a_file(kernel: Kernel) -> None:
    assert kernel_from_dict(kernel.as_dict()) == kernel


def test_names_make_sums_and_products() -> None:
    assert kernel_of("matern52", length=3.0) == Matern52(length=3.0)
    made = kernel_of("rbf*periodic + white", length=30.0, period=24.0)
    assert made == Sum((Product((RBF(30.0), Periodic(1.0, 24.0))), kernel_of("white", length=1.0)), (1.0, 1.0))


@pytest.mark.parametrize(
    ("name", "word"),
    [("matern3", "did you mean 'matern32'"), ("periodic", "`period` must be"), ("", "must be made of")],
)
def test_a_name_that_is_none_is_refused_in_one_line(name: str, word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        kernel_of(name, length=1.0)


def test_a_damaged_form_is_refused() -> None:
    with pytest.raises(DataError, match="`kernel` must be as"):
        kernel_from_dict({"kind": "rbf"})


@pytest.mark.parametrize(
    ("times", "word"),
    [
        ([3.0], "one point has no trace"),
        ([0.0, 1.0, 1.0], "point 3 repeats the stamp"),
        ([0.0, 2.0, 1.0], "point 3 is earlier"),
        ([0.0, np.nan], "finite seconds; 1 are not"),
    ],
)
def test_stamps_that_make_no_trace_are_refused(times: list[float], word: str) -> None:
    with pytest.raises(DataError, match=word):
        sorted_times(times)


@each_kernel
def test_what_is_left_beyond_a_gap_is_at_least_every_correlation_there_and_at_most_one(kernel: Kernel) -> None:
    for gap in (0.1, 1.0, 7.0):
        later = np.abs(kernel.correlation(gap + np.linspace(0.0, 60.0, 2001)))
        assert later.max() <= kernel.beyond(gap) * (1.0 + 1e-12) and kernel.beyond(gap) <= 1.0 + 1e-12


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5])
def test_a_nugget_leaves_something_of_the_movement(share: float) -> None:
    with pytest.raises(ParameterError, match="`nugget` must lie in"):
        with_nugget(RBF(length=2.0), share)
