"""Tables are checked before anything is drawn, and their order is forgotten."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.job.surveys import survey

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.table.data_section import DataSection
from dovetail.table.reader import read_survey


def section(**changes: object) -> DataSection:
    return DataSection(
        **{"person": "id", "private": "secret", "public": ["age"], "categories": ["no", "yes"], **changes}
    )


def test_rows_come_in_a_random_order_and_stay_whole(rng: Entropy) -> None:
    table = pl.DataFrame({"secret": ["no"] * 300 + ["yes"] * 300, "age": list(range(600))})
    read = read_survey(section(person=None), rng, table=table)
    ages = read.public["age"].to_numpy()
    assert np.array_equal(read.values, (ages >= 300).astype(int))
    assert not np.array_equal(ages, np.sort(ages))
    # the place of a row tells nothing about the secret: rank sum within 6.1 standard deviations (1e-9)
    places = np.flatnonzero(read.values == 1)
    assert abs(places.mean() - 299.5) < 6.1 * np.sqrt(600 * 601 / 12 / 600)


def test_csv_parquet_pandas_and_polars_agree(tmp_path: Path, rng: Entropy) -> None:
    table = survey()
    table.write_csv(tmp_path / "t.csv")
    table.write_parquet(tmp_path / "t.parquet")
    inputs = [tmp_path / "t.csv", tmp_path / "t.parquet"]
    reads = [read_survey(section(path=str(path)), rng) for path in inputs]
    reads += [
        read_survey(section(), rng, table=frame) for frame in (table, table.lazy(), pd.DataFrame(table.to_dict()))
    ]
    for read in reads:
        assert read.values.sum() == (table["secret"] == "yes").sum()
        assert read.categories == ("no", "yes")
        assert sorted(read.numbers(["age"])[:, 0]) == sorted(table["age"])


def test_missing_values_are_refused_or_become_a_declared_category(rng: Entropy) -> None:
    table = survey().with_columns(secret=pl.when(pl.col("id") < 7).then(None).otherwise(pl.col("secret")))
    with pytest.raises(DataError, match=r"private column 'secret': 7 values are missing \(first at rows 1, 2, 3\)"):
        read_survey(section(), rng, table=table)
    read = read_survey(section(missing="no answer", categories=["no", "yes", "no answer"]), rng, table=table)
    assert (read.values == 2).sum() == 7


BAD = {
    "empty table": (survey().clear(), {}, "the table has no rows"),
    "duplicate person": (survey().with_columns(id=pl.lit(1)), {}, "1 person stands in more than one row"),
    "missing person": (survey().with_columns(id=pl.lit(None)), {}, "person column 'id': 600 values are missing"),
    "unknown category": (
        survey().with_columns(secret=pl.lit("maybe")),
        {},
        r"600 values are not among the declared categories \(first at rows 1, 2, 3: 'maybe'\)",
    ),
    "constant column": (
        survey().with_columns(secret=pl.lit("no")),
        {"categories": None},
        "has one category, 'no'",
    ),
    "missing column": (survey().drop("secret"), {}, "the table has no column 'secret'"),
    "nearly named column": (survey().rename({"secret": "secrets"}), {}, "did you mean 'secrets'"),
    "missing public value": (
        survey().with_columns(age=pl.lit(None)),
        {},
        "public column 'age': 600 values are missing",
    ),
    "out of bounds": (
        survey(),
        {"private": "hours", "categories": None, "lower": 0.0, "upper": 0.5},
        r"values lie outside the declared \[0, 0.5\]",
    ),
    "a list": (survey().with_columns(secret=pl.lit([1])), {}, r"column 'secret' has type List"),
    "text as number": (
        survey(),
        {"private": "town", "categories": None, "lower": 0.0, "upper": 0.5},
        "column 'town': 600 values are no numbers",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_with_a_count_and_the_first_places(case: str, rng: Entropy) -> None:
    table, changes, message = BAD[case]
    with pytest.raises(DataError, match=message):
        read_survey(section(**changes), rng, table=table)


def test_a_missing_float_becomes_the_declared_category(rng: Entropy) -> None:
    table = pl.DataFrame({"id": [1, 2, 3], "secret": [1.0, float("nan"), None], "age": [1, 2, 3]})
    read = read_survey(section(missing="none", categories=["1.0", "none"]), rng, table=table)
    assert sorted(read.values) == [0, 1, 1]


def test_numbers_are_checked_where_the_file_has_them(rng: Entropy) -> None:
    table = survey().with_columns(age=pl.when(pl.col("id") == 5).then(float("inf")).otherwise(pl.col("age")))
    with pytest.raises(DataError, match=r"column 'age': 1 value is no number \(at row 6\)"):
        read_survey(section(), rng, table=table, numbers=["age"])


def test_files_that_are_no_tables_are_named(tmp_path: Path, rng: Entropy) -> None:
    cases = {"latin.csv": "id,secret,age\n1,ja\xfc,3\n".encode("latin-1"), "empty.csv": b"", "table.xlsx": b"x"}
    cases |= {"twice.csv": b"id,secret,age,secret\n", "semi.csv": b"id;secret;age\n"}
    survey().write_parquet(tmp_path / "cut.parquet")
    cases["cut.parquet"] = (tmp_path / "cut.parquet").read_bytes()[:-200]
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=name):
            read_survey(section(path=str(tmp_path / name)), rng)
    with pytest.raises(DataError, match="is a directory"):
        read_survey(section(path=str(tmp_path)), rng)
    with pytest.raises(DataError, match="no such file"):
        read_survey(section(path=str(tmp_path / "none.csv")), rng)
    with pytest.raises(DataError, match="must be a data frame"):
        read_survey(section(), rng, table=object())
