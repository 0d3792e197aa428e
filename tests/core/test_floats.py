"""Numbers that are no numbers are refused with one clear line, whatever form they come in."""

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from dovetail.core.checks import floats
from dovetail.core.errors import DataError


@pytest.mark.parametrize("good", [[], 1, [1, 2], [[1.5], [2]], np.array([1], np.uint64), pl.Series([1, 2])], ids=repr)
def test_numbers_of_any_shape_become_floats(good: Any) -> None:
    found = floats("x", good)
    assert found.dtype == np.float64 and found.shape == np.shape(good)
    np.testing.assert_array_equal(found, np.asarray(good))


@pytest.mark.parametrize(
    ("bad", "wanted"),
    [
        (["a"], "got values of type"),
        (b"a", "got values of type"),
        ([True], "got values of type bool"),
        ([None, 1.0], "got values of type object"),
        ([Fraction(1, 2)], "got values of type object"),
        ([1j], "got values of type complex"),
        ([[1.0], [1.0, 2.0]], "got rows of different lengths"),
        ([np.nan, 1.0, np.inf], "2 of 3 are not"),
        (np.nan, "1 of 1 are not"),
    ],
    ids=repr,
)
def test_everything_else_is_refused_by_name_and_without_its_values(bad: Any, wanted: str) -> None:
    with pytest.raises(DataError, match=f"^`x` must be finite numbers.*{wanted}"):
        floats("x", bad)
