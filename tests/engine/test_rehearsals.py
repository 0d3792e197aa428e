"""Rehearsals in files: the truth is counted in the same pass, attacks see a sample, and nothing stays behind."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.oracle import config, table, write_table
from tests.engine.test_several import asked

import dovetail as dt
from dovetail.core.errors import ConfigError, OutputError, UnsupportedError
from dovetail.ledger.releases import ReleaseLedger


def rehearsal(path: Path, **options: Any) -> dict[str, Any]:
    return {**config(path, **options), "mode": "rehearsal", "seed": 3}


def drawn(settings: dict[str, Any], place: Path, out: str = "out", **options: Any) -> dict[str, Any]:
    chosen: dict[str, Any] = {"out": place / out, "ledger": place / "ledger", "workers": 1, **options}
    found: dict[str, Any] = dt.engine.run(settings, **chosen).document()
    return found


@pytest.mark.parametrize("shuffler", ["uniform", "within_groups", "mallows", "identity"])
@pytest.mark.parametrize("randomizer", ["krr", "laplace"])
def test_the_truth_beside_the_estimates_is_that_of_the_table(randomizer: str, shuffler: str, tmp_path: Path) -> None:
    people = table(300)
    settings = rehearsal(write_table(tmp_path / "in", people), randomizer=randomizer, shuffler=shuffler)
    settings["estimate"]["min_group_size"] = 2
    found, memory = drawn(settings, tmp_path)["estimates"], dt.run(settings, table=people).document()["estimates"]
    assert found["overall"]["truth"] == memory["overall"]["truth"]
    if shuffler == "uniform":
        assert found["groups"]["value"] is None
    else:
        assert [(one["group"], one["truth"], one["n"]) for one in found["groups"]] == [
            (one["group"], one["truth"], one["n"]) for one in memory["groups"]
        ]
    for value, error, truth in zip(
        *(found["overall"][key] for key in ("value", "standard_error", "truth")), strict=True
    ):
        assert abs(value - truth) < 6.2 * error  # false alarm below 1e-9


@pytest.mark.exhaust
def test_a_seed_gives_the_same_rehearsal_and_nothing_stays_behind(tmp_path: Path) -> None:
    settings = rehearsal(write_table(tmp_path / "in", table(200)), shuffler="within_groups")
    first, again = drawn(settings, tmp_path), drawn(settings, tmp_path, "again")
    other = drawn({**settings, "seed": 4}, tmp_path, "other")
    assert first["estimates"] == again["estimates"] != other["estimates"]
    assert first["attacks"] == again["attacks"]
    assert (first["mode"], first["seed"], first["entropy"]) == ("rehearsal", 3, "simulation")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["report.html", "report.json"]
    assert ReleaseLedger(tmp_path / "ledger").entries() == []
    assert not [place for place in tmp_path.iterdir() if "staging" in place.name]
    with pytest.raises(OutputError, match=r"holds a report already; name another place with --out\.$"):
        drawn(settings, tmp_path)


@pytest.mark.exhaust
def test_attacks_are_measured_on_a_sample_that_the_report_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("dovetail.engine.run"), "SAMPLE", 100)  # dt.engine.run is the function
    settings = rehearsal(write_table(tmp_path / "in", table(400)), shuffler="within_groups")
    settings["promise"] = {"honest": 200}
    report = dt.engine.run(settings, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)
    (line,) = [line for line in report.assumptions if "random sample" in line]
    m = int(line.split("random sample of ")[1].split(" ")[0])
    assert (
        40 < m < 160 and "of the 400 people" in line
    )  # 100 on average, standard deviation 9: false alarm below 1e-9
    assert 0.0 <= report.evaluation.attack.alone <= 1.0  # type: ignore[union-attr]
    hidden = {
        **settings,
        "promise": {"trust": "shuffler", "epsilon": 1.0, "delta": 1e-3},
        "shuffle": {},
        "estimate": {},
    }
    hidden["data"] = {**settings["data"], "public": []}
    del hidden["randomize"]
    found = drawn(hidden, tmp_path, "hidden")
    assert "against any knowledge" in found["attack"]["reason"]
    assert not any("random sample" in line for line in found["assumptions"])


def test_without_a_shuffle_the_report_promises_the_local_guarantee_and_attacks_learn_who_sent_what(
    tmp_path: Path,
) -> None:
    settings = rehearsal(write_table(tmp_path / "in", table(300)), shuffler="identity", epsilon=40.0)
    settings["attack"] = {"similar": ["region"], "trials": 3}
    found, memory = drawn(settings, tmp_path), dt.run(settings, table=table(300)).document()
    assert found["central"] == memory["central"] and "nothing is shuffled" in found["central"]["reason"]
    assert found["order"] == memory["order"]
    assert found["attack"]["success"] == memory["attack"]["success"] == 1.0  # somebody lies with chance 2e-14
    several = {**settings, "data": {**settings["data"], "public": ["region", "age"]}}
    with pytest.raises(UnsupportedError, match="`public` must name one"):
        drawn(several, tmp_path, "several")
    several["estimate"] = {}
    told = drawn(several, tmp_path, "several")
    assert told["collection"]["published"] == ["region", "age"]


@pytest.mark.exhaust
@pytest.mark.parametrize("ask", ["all", "joint", "one"])
def test_several_questions_are_rehearsed_with_the_truth_of_each_and_of_each_group(ask: str, tmp_path: Path) -> None:
    people = table(300)
    settings = asked(write_table(tmp_path / "in", people), ask, shuffler="within_groups", mode="rehearsal", seed=1)
    settings["estimate"] = {"by": ["region"], "min_group_size": 10}
    shares, mean = (one["estimates"] for one in drawn(settings, tmp_path)["questions"])
    assert shares["overall"]["truth"] == [float((people["answer"] == name).mean()) for name in "abc"]
    assert mean["overall"]["truth"] == pytest.approx([people["amount"].mean()], rel=1e-14)
    for group in mean["groups"]:
        own = people.filter(pl.col("region") == group["group"])["amount"]
        assert group["truth"] == pytest.approx([own.mean()], rel=1e-14)
        assert np.isfinite(group["standard_error"]).all()


def test_what_a_rehearsal_in_files_cannot_know_is_refused_in_one_line(tmp_path: Path) -> None:
    settings = rehearsal(write_table(tmp_path / "in", table(60)))
    del settings["data"]["categories"]
    with pytest.raises(UnsupportedError, match="`categories` must be declared"):
        drawn(settings, tmp_path)
    settings = rehearsal(tmp_path / "in", shuffler="mallows")
    settings["shuffle"]["compare"] = ["uniform"]
    with pytest.raises(UnsupportedError, match="takes them in one memory"):
        drawn(settings, tmp_path)
    with pytest.raises(ConfigError, match="`new_release` is for releases"):
        drawn(rehearsal(tmp_path / "in"), tmp_path, new_release=True)
