"""Rounds of permanent answers: one promise for all of them, by the word that values are constant, or none."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dovetail as dt
from dovetail.account.compose import memoized_guarantee
from dovetail.cli.main import invoke
from dovetail.core.errors import ConfigError, DataError, UnsupportedError
from dovetail.core.guarantee import CentralDP


def rounds(people: int = 200, weeks: int = 5) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"device": f"d{i}", "week": t, "answer": "yes" if i % 3 else "no", "town": f"t{i % 2}"}
            for t in range(weeks)
            for i in range(people)
        ]
    )


def config(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "schema_version": 1, "mode": "release",
        "data": {"person": "device", "private": "answer", "categories": ["no", "yes"]},
        "randomize": {"epsilon": 2.0}, "memoize": {"time": "week", "constant_values": True},
    }  # fmt: skip
    return {**base, **{name: {**base.get(name, {}), **value} for name, value in changes.items()}}


def test_all_rounds_together_are_promised_what_one_is(tmp_path: Path) -> None:
    report = dt.run(config(), table=rounds(), ledger=tmp_path)
    central = report.evaluation.central
    one = memoized_guarantee(dt.KRR(k=2, epsilon=2.0), n=200, delta=1e-6, constant_values=True)
    assert isinstance(central, CentralDP) and central.epsilon == one.epsilon and "all 5 rounds" in central.neighbours
    assert report.evaluation.local.epsilon == 2.0 and "permanent answers" in report.evaluation.local.source
    told = " ".join(report.assumptions)
    assert "51.7 after 52" in told and "promised 4 locally" in told and "do not fall" in told
    assert report.sanitized.height == 200 and "week" not in report.sanitized.columns


def test_further_rounds_of_the_same_people_give_the_same_answers(tmp_path: Path) -> None:
    first = dt.run(config(), table=rounds(), ledger=tmp_path)
    later = dt.run(config(), table=rounds(weeks=9), ledger=tmp_path)
    assert later.sanitized.equals(first.sanitized) and later.release["releases"] == 1
    assert later.evaluation.central.epsilon == first.evaluation.central.epsilon  # type: ignore[union-attr]


def test_a_value_that_changes_ends_the_claim_with_its_number() -> None:
    late = (pl.col("device") == "d7") & (pl.col("week") > 2)
    table = rounds().with_columns(answer=pl.when(late).then(pl.lit("no")).otherwise(pl.col("answer")))
    with pytest.raises(UnsupportedError, match=r"changes over rounds for 1 people, such as 'd7'.*11\.7 after 12"):
        dt.run(config(), table=table)
    moved = rounds().with_columns(town=pl.col("town") + pl.col("week").cast(pl.String))
    grouped = config(data={"public": ["town"]}, shuffle={"shuffler": "within_groups", "groups": {"labels": "town"}})
    with pytest.raises(UnsupportedError, match="who is grouped with whom"):
        dt.run(grouped, table=moved)


def test_people_who_miss_a_round_are_refused() -> None:
    table = rounds().filter((pl.col("device") != "d3") | (pl.col("week") != 4))
    with pytest.raises(UnsupportedError, match="1 of 200 people are not in all 5 rounds, such as 'd3'"):
        dt.run(config(), table=table)
    with pytest.raises(DataError, match=r"'d0' stands in round '0(\.0)?' more than once"):
        dt.run(config(), table=pl.concat([rounds(), rounds().head(1)]))
    with pytest.raises(DataError, match="no column 'weak'; did you mean 'week'"):
        dt.run(config(memoize={"time": "weak"}), table=rounds())


def test_nothing_is_promised_without_the_assumption() -> None:
    for given in ({"constant_values": False}, {}):
        asked = config() | {"memoize": {"time": "week", **given}}
        with pytest.raises(ConfigError, match=r"takes `constant_values` = true if values cannot change; else freeze"):
            dt.run(asked, table=rounds())


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (
            {"shuffle": {"shuffler": "mallows", "alpha": 1.0, "groups": {"labels": "town"}}},
            r"\[shuffle\] alpha does not go",
        ),
        ({"data": {"person": None}}, "follows people over rounds"),
        ({"data": {"public": ["week"]}}, "the column of rounds 'week'"),
    ],
)
def test_what_breaks_the_claim_is_refused(changes: dict[str, Any], what: str) -> None:
    given = config(**changes)
    given["data"] = {name: value for name, value in given["data"].items() if value is not None}
    if "shuffle" in changes:
        given["data"]["public"] = ["town"]
    with pytest.raises(ConfigError, match=what):
        dt.run(given, table=rounds())


def test_a_rehearsal_knows_numbers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rounds(60, 3).with_columns(answer=pl.lit(20.0)).write_csv("t.csv")
    Path("m.toml").write_text(
        'schema_version = 1\nmode = "rehearsal"\nseed = 1\n[data]\npath = "t.csv"\nperson = "device"\n'
        'private = "answer"\nlower = 0.0\nupper = 50.0\n[randomize]\nrandomizer = "laplace"\nepsilon = 2.0\n'
        '[memoize]\ntime = "week"\nconstant_values = true\n'
    )
    assert invoke(["run", "m.toml", "--json"]) == 0
    assert invoke(["run", "m.toml", "--engine", "processes", "--out", "x"]) == 2
