"""`check` says who is alone with public columns and which one tells the private one; ranges make them coarser."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.job.surveys import rehearsal, release, survey

from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError
from dovetail.engine import run as run_in_files
from dovetail.job.build import terms
from dovetail.job.check_config import check_config
from dovetail.job.config import parse_config
from dovetail.job.run import run
from dovetail.table.check import check_table, write_configuration
from dovetail.table.columns import Declared, Problem
from dovetail.table.data_section import DataSection, parse_section
from dovetail.table.reader import read_survey

N = 400
PEOPLE = pl.DataFrame(
    {
        "income": [1000 + 7 * i for i in range(N)],
        "town": ["north" if i % 2 else "south" for i in range(N)],
        "works": ["ward" if i % 3 == 0 else "office" for i in range(N)],
        "ill": ["yes" if i % 3 == 0 else "no" for i in range(N)],
    }
)


def problem(found: Any, part: str) -> Problem | None:
    return next((one for one in found.problems if part in one.what), None)


@pytest.mark.exhaust
def test_people_who_are_alone_are_counted_with_the_column_that_does_it_and_ranges_that_help(tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "t.csv")
    asked: Any = {"private": "ill", "public": ("income", "town"), "categories": ("no", "yes")}
    found = check_table(tmp_path / "t.csv", Declared(**asked))
    told = problem(found, "are alone")
    assert told is not None and told.where == "column 'income'"
    assert told.what == "400 of 400 people are alone with their public columns, 0 without 'income'"
    assert [fix.lines for fix in told.fixes] == [['ranges."income" = 20.0'], ['ranges."income" = 50.0']]
    for fix in told.fixes:
        coarser = check_table(tmp_path / "t.csv", Declared(**asked, decided=tuple(fix.lines)))
        left = problem(coarser, "are alone")
        count = 0 if left is None else int(left.what.split()[0])
        assert fix.words.endswith(f"{count:,} are alone") and count <= 200
        (tmp_path / "t.toml").write_text(write_configuration(coarser, tmp_path / "t.toml"))
        again = problem(check_config(tmp_path / "t.toml"), "are alone")
        assert (again is None) == (left is None) and (again is None or left is None or again.what == left.what)


def test_a_column_that_tells_the_private_one_is_named(tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "t.csv")
    found = check_table(tmp_path / "t.csv", Declared("ill", public=("works", "town")))
    told = problem(found, "tells the private column of 100% of the people")
    assert told is not None and told.where == "column 'works'"
    assert not any("tells" in one.what and "town" in one.where for one in found.problems)
    rare = PEOPLE.with_columns(pl.when(pl.int_range(N) == 3).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("ill"))
    rare.write_csv(tmp_path / "r.csv")
    assert problem(check_table(tmp_path / "r.csv", Declared("ill", public=("works",))), "tells") is None


def test_ranges_replace_numbers_by_lower_ends_and_leave_texts(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["x", "y", "x", "y"], "age": ["21,5", "29", "", "-3"]})
    said = {"private": "a", "public": ["age"], "ranges": {"age": 10}, "decimal": ",", "labels": {"age": {"": "none"}}}
    found = read_survey(parse_section(DataSection, said, name="t"), simulation(1), table=table)
    assert sorted(found.public["age"]) == ["-10", "20", "20", "none"]
    with pytest.raises(ConfigError, match="`ranges` are of public columns, got 'ag'; did you mean 'age'"):
        parse_section(DataSection, {**said, "ranges": {"ag": 1}}, name="t")
    with pytest.raises(ConfigError, match=r"`ranges.age` must be greater than 0"):
        parse_section(DataSection, {**said, "ranges": {"age": 0}}, name="t")


@pytest.mark.exhaust
def test_a_run_estimates_within_ranges_and_its_ledger_tells_them_apart(tmp_path: Path) -> None:
    config = rehearsal(
        data={"ranges": {"age": 2}}, shuffle={"shuffler": "within_groups", "groups": {"labels": "age"}}
    )
    document = run(config, table=survey(), ledger=tmp_path).document()
    assert [one["group"] for one in document["estimates"]["groups"]] == ["20", "22"]
    assert b"ranges" not in terms(parse_config(rehearsal())) and b"ranges" in terms(parse_config(config))


def test_engines_take_the_same_ranges(tmp_path: Path) -> None:
    survey().write_parquet(tmp_path / "t.parquet")
    config = release(
        data={"path": str(tmp_path / "t.parquet"), "public": ["age"], "ranges": {"age": 2}}, estimate={"by": ["age"]},
        shuffle={"shuffler": "within_groups", "groups": {"labels": "age"}},
    )  # fmt: skip
    document = run_in_files(config, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1).document()
    assert [one["group"] for one in document["estimates"]["groups"]] == ["20", "22"]
