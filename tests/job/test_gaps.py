"""People without an answer are left out and numbers outside their bounds are clipped, by rules that reports state."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.job.streams import loads
from tests.job.streams import rehearsal as stream_rehearsal
from tests.job.surveys import numeric, rehearsal, release, survey

import dovetail as dt
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, DataError
from dovetail.engine import run as run_in_files
from dovetail.job.build import terms
from dovetail.job.config import parse_config
from dovetail.job.run import run
from dovetail.job.stream import read_stream
from dovetail.table.data_section import parse_section
from dovetail.table.reader import DataSection, read_survey

GAPS = 20


def with_gaps(column: str) -> pl.DataFrame:
    """The survey, of which the first twenty have not answered."""
    place = pl.int_range(pl.len())
    return survey().with_columns(pl.when(place < GAPS).then(None).otherwise(pl.col(column)).alias(column))


def stated(report: Any, part: str) -> list[str]:
    """The assumptions that hold this text."""
    return [line for line in report.document()["assumptions"] if part in line]


@pytest.mark.parametrize("make", [rehearsal, release])
def test_people_without_an_answer_are_left_out_and_counted(make: Any, tmp_path: Path) -> None:
    config = make(data={"missing": "drop"})
    found = run(config, table=with_gaps("secret"), ledger=tmp_path)
    document = found.document()
    assert document["collection"]["n"] == 580 == document["central"]["n"] and document["collection"]["left_out"] == 20
    (line,) = stated(found, "gave no answer")
    assert line.startswith('20 people gave no answer and are left out (`missing` = "drop")')
    assert "the 580 who answered, and who answered is no secret" in line
    if make is rehearsal:
        answered = survey()[GAPS:]
        share = (answered["secret"] == "yes").mean()
        assert document["estimates"]["overall"]["truth"][1] == pytest.approx(share)
    with pytest.raises(DataError, match="20 values are missing"):
        run(make(), table=with_gaps("secret"), ledger=tmp_path)


@pytest.mark.exhaust
def test_a_mean_is_of_those_who_answered(tmp_path: Path) -> None:
    config = numeric(rehearsal())
    config["data"]["missing"] = "drop"
    document = run(config, table=with_gaps("hours"), ledger=tmp_path).document()
    assert document["collection"]["n"] == 580
    assert document["estimates"]["overall"]["truth"] == pytest.approx([survey()[GAPS:]["hours"].mean()])


@pytest.mark.exhaust
def test_numbers_outside_their_bounds_count_as_the_nearest_one(tmp_path: Path) -> None:
    table = survey().with_columns((pl.col("hours") * 2.0 - 5.0).alias("hours"))
    config = numeric(rehearsal())
    with pytest.raises(DataError, match=r"or set clip = true in \[data\]: nothing is clipped silently"):
        run(config, table=table, ledger=tmp_path)
    config["data"]["clip"] = True
    found = run(config, table=table, ledger=tmp_path)
    assert found.document()["estimates"]["overall"]["truth"] == pytest.approx([table["hours"].clip(0.0, 10.0).mean()])
    outside = int(((table["hours"] < 0.0) | (table["hours"] > 10.0)).sum())
    assert stated(found, f"(`clip` = true), {outside} here")


@pytest.mark.exhaust
def test_a_release_tells_the_rule_of_clipping_and_not_how_many_it_met(tmp_path: Path) -> None:
    config = numeric(release())
    config["data"]["clip"] = True
    tables = [survey().with_columns((pl.col("hours") + add).alias("hours")) for add in (0.0, 5.0)]
    told = [stated(run(config, table=one, ledger=tmp_path / f"{i}"), "clip") for i, one in enumerate(tables)]
    assert told[0] == told[1] and "how many is private and not counted" in told[0][0]


@pytest.mark.parametrize("private", [pytest.param("secret", marks=pytest.mark.exhaust), "hours"])
def test_engines_leave_out_and_clip_as_the_job_in_memory_does(private: str, tmp_path: Path) -> None:
    table = with_gaps(private)
    if private == "hours":
        table = table.with_columns((pl.col("hours") * 2.0 - 5.0).alias("hours"))
    table.write_parquet(tmp_path / "t.parquet")
    config = release(estimate={"by": []}, shuffle={"shuffler": "uniform"})
    if private == "hours":
        config = numeric(config)
        config["data"] |= {"clip": True}
    config["data"] |= {"missing": "drop", "person": "id", "path": str(tmp_path / "t.parquet"), "public": []}
    found = run_in_files(config, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)
    document = found.document()
    assert document["collection"]["n"] == 580 == document["central"]["n"] and document["collection"]["left_out"] == 20
    assert stated(found, "20 people gave no answer") and bool(stated(found, "clip")) == (private == "hours")
    here = run(config, ledger=tmp_path / "other").document()
    assert document["collection"] == here["collection"]
    assert document["central"] == here["central"]


def test_a_collection_of_objects_takes_the_same_rules() -> None:
    table = with_gaps("hours").with_columns((pl.col("hours") * 2.0).alias("hours"))
    asked = dt.Collection.of(
        table, private="hours", randomizer=dt.Laplace(lower=0.0, upper=10.0, epsilon=1.0), missing="drop", clip=True,
        rng=dt.simulation(1),
    )  # fmt: skip
    assert (asked.n, asked.survey.left_out) == (580, 20)
    assert asked.survey.clipped == int((table["hours"] > 10.0).sum()) and asked.survey.values.max() == 10.0


def test_a_stream_goes_on_without_the_reports_that_are_missing() -> None:
    whole = loads()
    config = stream_rehearsal()
    private = config["data"]["private"]
    place = pl.int_range(pl.len())
    gaps = whole.with_columns(pl.when(place == 7).then(None).otherwise(pl.col(private)).alias(private))
    with pytest.raises(DataError, match="1 value is missing"):
        read_stream(parse_config(config), table=gaps)
    config["data"] |= {"missing": "drop", "clip": True, "upper": 50.0}
    found = read_stream(parse_config(config), table=gaps).rows
    assert found.height == whole.height - 1 and found["value"].max() == 50.0 < whole["watts"].max()


def test_who_stands_twice_may_have_answered_once() -> None:
    table = pl.DataFrame({"id": [1, 1, 2, 3], "a": [None, "x", "y", "x"], "b": [None, 1.0, float("nan"), 9.0]})
    said = {"private": "a", "person": "id", "categories": ["x", "y"], "missing": "drop"}
    found = read_survey(parse_section(DataSection, said, name="t"), simulation(1), table=table)
    assert sorted(found.people["id"].to_list()) == [1, 2, 3] and found.left_out == 1
    said = {"private": "b", "lower": 0.0, "upper": 5.0, "missing": "drop", "clip": True}
    found = read_survey(parse_section(DataSection, said, name="t"), simulation(1), table=table)
    assert sorted(found.values.tolist()) == [1.0, 5.0] and (found.left_out, found.clipped) == (2, 1)
    nobody = table.with_columns(pl.lit(None).alias("b"))
    with pytest.raises(DataError, match="nobody has answered"):
        read_survey(parse_section(DataSection, said, name="t"), simulation(1), table=nobody)


REFUSED = {
    "a category of a stream": (
        {"private": "hours", "person": "id", "time": "t", "lower": 0.0, "upper": 1.0, "missing": "none"},
        '"refuse" or "drop" for streams',
    ),
    "a category called drop": ({"categories": ["yes", "drop"], "missing": "drop"}, "is a rule: call the category"),
    "no category": ({"categories": ["yes", "no"], "missing": "none"}, "or a declared category"),
    "clipped answers": ({"clip": True}, "`clip` is for numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rules_that_mean_nothing_are_refused(case: str) -> None:
    said, message = REFUSED[case]
    with pytest.raises(ConfigError, match=message):
        parse_section(DataSection, {"private": "secret", **said}, name="t")


def test_the_ledger_knows_a_table_by_its_rules_and_older_ones_as_before() -> None:
    config = numeric(release())
    before = terms(parse_config(config))
    assert b"clip" not in before
    config["data"]["clip"] = True
    assert terms(parse_config(config)) != before


def test_several_questions_do_not_leave_people_out() -> None:
    config = {
        "schema_version": 1, "mode": "rehearsal", "data": {"person": "id"},
        "questions": [{"column": "secret", "categories": ["no", "yes"], "missing": "drop", "randomizer": "krr",
                       "epsilon": 1.0}],
    }  # fmt: skip
    with pytest.raises(ConfigError, match=r'`missing` = "drop" does not go with \[\[questions\]\]'):
        run(config, table=with_gaps("secret"))
