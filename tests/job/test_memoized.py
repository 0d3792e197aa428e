"""Rounds of permanent answers: one promise for all of them, by the word that values are constant, or none."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dovetail as dt
from dovetail.account.compose import memoized_guarantee
from dovetail.cli.main import invoke
from dovetail.core.errors import ConfigError, DataError, ParameterError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.job.together import Choices
from dovetail.noise.classes import EpsilonClasses
from dovetail.noise.local import Local
from dovetail.noise.memoized import Memoized
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import Dummies


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
    with pytest.raises(UnsupportedError, match=r"changes over rounds for 1 person, such as 'd7'.*11\.7 after 12"):
        dt.run(config(), table=table)
    moved = rounds().with_columns(town=pl.col("town") + pl.col("week").cast(pl.String))
    grouped = config(data={"public": ["town"]}, shuffle={"shuffler": "within_groups", "groups": {"labels": "town"}})
    with pytest.raises(UnsupportedError, match="who is grouped with whom"):
        dt.run(grouped, table=moved)


def test_people_who_miss_a_round_are_refused() -> None:
    table = rounds().filter((pl.col("device") != "d3") | (pl.col("week") != 4))
    with pytest.raises(UnsupportedError, match="1 of 200 people is not in all 5 rounds, such as 'd3'"):
        dt.run(config(), table=table)
    with pytest.raises(DataError, match=r"'d0' stands in round '0(\.0)?' more than once"):
        dt.run(config(), table=pl.concat([rounds(), rounds().head(1)]))
    with pytest.raises(DataError, match="no column 'weak'; did you mean 'week'"):
        dt.run(config(memoize={"time": "weak"}), table=rounds())


@pytest.mark.parametrize("names", [{"town": "rounds"}, {"device": "_answer"}, {"town": "0", "answer": "1"}], ids=str)
def test_columns_of_a_table_of_rounds_have_any_name(names: dict[str, str]) -> None:
    data = {"person": "device", "private": "answer", "public": "town"}
    told = {role: names.get(name, name) for role, name in data.items()}
    report = dt.run(config(data={**told, "public": [told["public"]]}), table=rounds().rename(names))
    assert "all 5 rounds" in report.evaluation.central.neighbours  # type: ignore[union-attr]


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


def test_a_second_private_column_that_changes_is_refused_too() -> None:
    held = rounds().with_columns(answer=pl.lit(1.0), other=pl.lit(2.0))
    asked = config(
        data={"lower": 0.0, "upper": 4.0},
        question={"ask": "covariance", "other": "other", "other_lower": 0.0, "other_upper": 4.0},
    )
    del asked["data"]["categories"]
    late = (pl.col("device") == "d7") & (pl.col("week") > 2)
    table = held.with_columns(other=pl.when(late).then(3.0).otherwise(pl.col("other")))
    with pytest.raises(UnsupportedError, match="'other' changes over rounds for 1 person, such as 'd7': memoized"):
        dt.run(asked, table=table)


def several(**changes: Any) -> dict[str, Any]:
    data = {"person": "device", "public": ["town"]}
    asked = [
        {"column": "answer", "categories": ["no", "yes"], "epsilon": 2.0},
        {"column": "step", "categories": ["0", "1"], "epsilon": 1.0},
    ]
    groups = {"shuffler": "within_groups", "groups": {"labels": "town"}}
    return {
        "schema_version": 1, "mode": "rehearsal", "data": data, "questions": asked, "shuffle": groups,
        "memoize": {"time": "week", "constant_values": True}, **changes,
    }  # fmt: skip


def test_several_questions_are_memoized_together(tmp_path: Path) -> None:
    table = rounds().with_columns(step=pl.col("device").str.slice(-1).cast(pl.Int64) % 2)
    report = dt.run(several(), table=table, ledger=tmp_path)
    once = several(data={"person": "device", "public": ["town"]})
    del once["memoize"]
    alone = dt.run(once, table=table.filter(pl.col("week") == 0), ledger=tmp_path)
    central, single = report.evaluation.central, alone.evaluation.central
    assert isinstance(central, CentralDP) and isinstance(single, CentralDP)
    assert central.epsilon == single.epsilon and central.neighbours.endswith("to all questions in all 5 rounds")
    assert report.evaluation.local.epsilon == 3.0 and "permanent answers" in report.evaluation.local.source
    assert "promised 6 locally" in " ".join(report.assumptions)
    late = (pl.col("device") == "d7") & (pl.col("week") > 2)
    with pytest.raises(UnsupportedError, match="'step' changes over rounds"):
        dt.run(several(), table=table.with_columns(step=pl.when(late).then(0).otherwise(pl.col("step"))))


def test_orders_that_tell_something_are_refused_for_one_question_and_for_several() -> None:
    chosen = Choices("shares", "memoized", "mallows").refusal
    assert chosen is not None and "each round draws one, and what orders tell of the same people adds" in chosen
    for shuffler in ("mallows", "rase"):
        shuffle = {"shuffler": shuffler, "alpha": 1.0, "groups": {"labels": "town"}}
        with pytest.raises(ConfigError, match=r"alpha does not go with \[memoize\]"):
            dt.run(several(shuffle=shuffle), table=rounds())


def test_only_what_devices_draw_by_themselves_is_drawn_once() -> None:
    own, dummies = Local(dt.KRR(3, 1.0)), ShufflerNoise(Dummies(3, 1.0, 1e-3), OpenAnswers(3))
    assert Memoized(own).accounted == own.own and Memoized(own).hidden is None
    assert Memoized(EpsilonClasses(3, "class", {"a": 1.0}, 2.0)).hidden is not None
    for other in (dummies, Memoized(own)):
        with pytest.raises(ParameterError, match="`once` must be noise that devices draw by themselves"):
            Memoized(other)


def test_answers_that_are_sent_again_are_those_of_one_round(tmp_path: Path) -> None:
    """In files too: the same reports and estimates as without rounds, and what is promised is of all of them."""
    table = rounds(weeks=1).drop("week")
    table.write_parquet(tmp_path / "t.parquet")
    found = []
    for place, memoize in (("once", None), ("again", {"constant_values": True})):
        asked = config(data={"path": str(tmp_path / "t.parquet")}) | {"mode": "rehearsal", "seed": 1}
        asked = {key: value for key, value in asked.items() if key != "memoize"}
        asked |= {} if memoize is None else {"memoize": memoize}
        found.append(dt.engine.run(asked, out=tmp_path / place, ledger=tmp_path / "l", workers=1).document())
    once, again = found
    assert once["estimates"] == again["estimates"] and once["central"]["all"] == again["central"]["all"]
    assert "all rounds" in again["central"]["neighbours"] and "all rounds" not in once["central"]["neighbours"]
    timed = config(data={"path": str(tmp_path / "t.parquet")})
    with pytest.raises(UnsupportedError, match=r"one row of each person.*and \[memoize\] no `time`"):
        dt.engine.run(timed, out=tmp_path / "no", ledger=tmp_path / "l", workers=1)


def test_a_check_looks_at_each_person_once_and_finds_what_breaks_the_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    late = (pl.col("device") == "d7") & (pl.col("week") > 2)
    changed = pl.when(late).then(pl.lit("no")).otherwise(pl.col("answer"))
    Path("m.toml").write_text(
        'schema_version = 1\nmode = "rehearsal"\n[data]\npath = "t.csv"\nperson = "device"\nprivate = "answer"\n'
        'categories = ["no", "yes"]\n[randomize]\nepsilon = 2.0\n[memoize]\ntime = "week"\nconstant_values = true\n'
    )
    for table, told in (
        (rounds(), "No problems."),
        (rounds().with_columns(answer=changed), "changes over rounds for 1 person"),
        (pl.concat([rounds(), rounds().head(1)]), "1 person stands in more than one row of a round"),
    ):
        table.write_csv("t.csv")
        assert invoke(["check", "m.toml"]) == 0
        assert told in " ".join(capsys.readouterr().out.split())


def test_vectors_are_memoized_too() -> None:
    steps = [[0.5, float(i % 2)] for _ in range(3) for i in range(200)]
    table = rounds(200, 3).with_columns(step=pl.Series(steps))
    asked = config(vector={"dimension": 2, "clip": 1.0, "epsilon": 4.0})
    asked |= {"mode": "rehearsal", "data": {"person": "device", "private": "step"}}
    del asked["randomize"]
    central = dt.run(asked, table=table).evaluation.central
    assert isinstance(central, CentralDP) and "all 3 rounds" in central.neighbours
    steps[-1] = [0.25, 0.25]
    with pytest.raises(UnsupportedError, match="'step' changes over rounds for 1 person, such as 'd199'"):
        dt.run(asked, table=table.with_columns(step=pl.Series(steps)))


@pytest.mark.exhaust
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
