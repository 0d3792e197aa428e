"""Labels become symbols by a declared domain, and what was not declared is refused without being repeated."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dovetail as dt

ANSWERS = dt.Domain(["no", "yes", "naïve 日本"])
GIVEN = ["yes", "no", "naïve 日本", "yes"]
COLUMNS: list[Any] = [
    GIVEN,
    tuple(GIVEN),
    np.array(GIVEN),
    np.array(GIVEN, dtype=object),
    np.array(GIVEN, dtype=np.dtypes.StringDType()),
    pd.Series(GIVEN),
    pd.Series(GIVEN, dtype="string"),
    pd.Categorical(GIVEN),  # its own codes are those of the data: they must not be taken
    pd.Series(GIVEN, dtype="category"),
    pl.Series(GIVEN),
    pl.Series(GIVEN, dtype=pl.Categorical),
    pl.Series(GIVEN, dtype=pl.Enum(["naïve 日本", "yes", "no"])),
]


@pytest.mark.parametrize(
    "column", COLUMNS, ids=lambda column: f"{type(column).__name__} {getattr(column, 'dtype', '')}"
)
def test_a_column_of_any_kind_has_the_codes_of_the_domain(column: Any) -> None:
    found = ANSWERS.encode(column)
    assert found.tolist() == [1, 0, 2, 1] and found.dtype == np.int64
    assert ANSWERS.decode(found) == GIVEN


def test_a_domain_names_the_symbols_of_a_randomizer_and_of_its_estimate() -> None:
    krr = dt.KRR(k=ANSWERS.k, epsilon=3.0)
    batch = krr.randomize(ANSWERS.encode(GIVEN * 50), rng=dt.simulation(1))
    assert dt.estimate_frequencies(krr, batch).label(ANSWERS).to_polars()["label"].to_list() == list(ANSWERS)
    assert len(ANSWERS) == ANSWERS.k == 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["secret"], "1 of 1 are not, at 0."),
        (["no", "secret", "no", "secret", "secret", "secret"], "4 of 6 are not, at 1, 3, 4, .."),
        (["no", None, float("nan"), pd.NA, pd.NaT], "missing: 4"),
        (["No", " yes", "naïve  日本 "], "with other case or blanks: 3"),
        ([1, True, ["no"]], "3 of 3 are not"),
        ("secret", "a column of labels"),
        ([["no"]], "a column of labels"),
    ],
    ids=repr,
)
def test_what_was_not_declared_is_refused_in_one_line_that_does_not_repeat_it(values: Any, words: str) -> None:
    with pytest.raises(dt.DovetailError) as refused:
        ANSWERS.encode(values)
    told = str(refused.value)
    assert words in told and "secret" not in told and "\n" not in told


@pytest.mark.parametrize("labels", ["no", [], ["no"], ["no", "no"], [1, 2], ["no", None], 5, None], ids=repr)
def test_a_domain_is_at_least_two_different_texts(labels: Any) -> None:
    with pytest.raises(dt.DovetailError, match="`labels` must"):
        dt.Domain(labels)


@pytest.mark.parametrize(
    "column", COLUMNS[1:], ids=lambda column: f"{type(column).__name__} {getattr(column, 'dtype', '')}"
)
def test_labels_without_a_domain_are_refused_with_the_remedy(column: Any) -> None:
    with pytest.raises(dt.DovetailError, match=r"dt\.Domain") as refused:
        dt.KRR(k=3, epsilon=1.0).randomize(column)
    assert "yes" not in str(refused.value)
