"""A released folder from outside: an untouched one passes; what is changed in it, or was drawn otherwise, fails."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.audit.release import Check, Release, audit_release
from dovetail.cli.audit import read_release
from dovetail.cli.main import invoke
from dovetail.core.stages import FrequencyRandomizer
from dovetail.noise.local import Local

N = 3_000
CONFIG = """
schema_version = 1
mode = "release"
[data]
path = "table.csv"
person = "id"
private = "answer"
categories = ["a", "b", "c", "d"]
[randomize]
randomizer = "unary"
epsilon = 1.0
[shuffle]
shuffler = "uniform"
[promise]
delta = 1e-6
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("release")
    pl.DataFrame({"id": range(N), "answer": ["a", "b", "a"] * (N // 3)}).write_csv(place / "table.csv")
    (place / "c.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("DOVETAIL_LEDGER", str(place / "ledger"))
        assert invoke(["run", "c.toml", "--out", "out"]) == 0
    return place / "out"


@pytest.fixture(scope="module")
def release(folder: Path) -> Release:
    return read_release(folder)


def results(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.result for check in checks}


def failed(release: Release, **given: Any) -> list[str]:
    return [check.name for check in audit_release(release, **given) if check.result == "fails"]


def test_an_untouched_release_passes_and_each_check_says_what_it_would_have_seen(release: Release) -> None:
    checks = audit_release(release)
    assert results(checks) == {
        "digests": "holds", "people": "holds", "wording": "holds", "guarantee": "holds", "ledger": "holds",
        "estimates": "holds", "counts": "holds", "free laws": "holds", "canaries": "not checked",
    }  # fmt: skip
    assert all(check.power for check in checks if check.result == "holds" and check.name != "wording")


def test_a_sum_over_releases_is_not_called_proved_by_one_of_them(release: Release) -> None:
    document = {**release.document, "release": {**release.document["release"], "number": 2, "releases": 2}}
    (found,) = (one for one in audit_release(replace(release, document=document)) if one.name == "guarantee")
    assert found.result == "not checked" and "the sum over 2 releases" in found.sentence


def changed(**paths: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for path, value in paths.items():
            *way, last = path.split("__")
            inner = document
            for step in way:
                inner = inner[step]
            inner[last] = value

    return change


CHANGES = {
    "a smaller epsilon": (changed(central__epsilon=0.01), ["guarantee"]),
    "more than each report": (changed(central__epsilon=2.0), ["wording"]),
    "a delta of one person": (changed(central__delta=0.01), ["wording"]),
    "fewer people": (changed(collection__n=N - 1), ["people"]),
    "a total that forgets": (changed(release__total_epsilon=0.5), ["ledger"]),
    "another configuration": (changed(config__title="another"), ["digests"]),
    "a smaller error": (changed(estimates__overall__standard_error=[1e-3] * 4), ["estimates"]),
    "another share": (changed(estimates__overall__value=[0.25] * 4), ["estimates"]),
}


@pytest.mark.parametrize(("change", "names"), CHANGES.values(), ids=list(CHANGES))
def test_a_changed_document_fails(
    change: Callable[[dict[str, Any]], None], names: list[str], release: Release
) -> None:
    document = json.loads(json.dumps(release.document))
    change(document)
    assert failed(replace(release, document=document)) == names


def drawn(release: Release, epsilon: float) -> Release:
    """The same folder, its rows drawn with another epsilon by somebody who wrote digests and estimates anew."""
    made = dt.Unary(k=4, epsilon=epsilon).randomize(np.zeros(N, dtype=np.int64), rng=dt.simulation(3))
    return replace(release, reports=made)


@pytest.mark.parametrize(("epsilon", "caught"), [(1.0, False), (2.0, True), (0.4, True)])
def test_what_no_value_changes_betrays_another_epsilon(epsilon: float, caught: bool, release: Release) -> None:
    assert ("free laws" in failed(drawn(release, epsilon))) == caught


def test_an_unused_answer_that_is_too_rare_betrays_another_epsilon(release: Release) -> None:
    krr = Local(dt.KRR(k=4, epsilon=1.0))
    for epsilon, caught in ((1.0, False), (1.6, True)):
        reports = dt.KRR(k=4, epsilon=epsilon).randomize(np.zeros(N, dtype=np.int64), rng=dt.simulation(4))
        assert ("counts" in failed(replace(release, noise=krr, reports=reports))) == caught


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "made", [dt.KRR(k=4, epsilon=1.0), dt.Unary(k=4, epsilon=1.0), dt.Hadamard(k=4, epsilon=1.0)]
)
def test_a_randomizer_at_its_claim_is_accused_as_seldom_as_it_says(
    made: FrequencyRandomizer, release: Release
) -> None:
    """At most 1 in 10 in 100 batches: more than 30 have a probability below 1e-8."""
    accused = 0
    for seed in range(100):
        reports = made.randomize(np.zeros(N, dtype=np.int64), rng=dt.simulation(seed))
        names = failed(replace(release, noise=Local(made), reports=reports), false_alarm=0.1)
        accused += bool({"counts", "free laws"} & set(names))
    assert accused <= 30


STAYED = [[place, place + 3] for place in range(1, 12)]


@pytest.mark.parametrize(
    ("canaries", "names"),
    [
        ({"places": STAYED}, ["canaries' places"]),
        ({"places": [[place, N - 9 * place] for place in range(1, 12)]}, []),
        ({"right": 60, "guesses": 60}, ["canaries' order"]),
        ({"right": 30, "guesses": 60}, []),
    ],
)
def test_canaries_that_stay_or_are_guessed_betray_a_shuffler(
    canaries: dict[str, Any], names: list[str], release: Release
) -> None:
    assert failed(release, canaries=canaries) == names


@pytest.mark.parametrize(
    "canaries", [{"places": [[0, 1]]}, {"places": 3}, {"places": []}, {"place": []}, {"guesses": 0}]
)
def test_wrong_canaries_are_one_line(canaries: dict[str, Any], release: Release) -> None:
    with pytest.raises(ValueError) as refused:
        audit_release(release, canaries=canaries)
    assert "\n" not in str(refused.value)


def test_the_verb_prints_the_checks_and_fails_the_build(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["audit", "release", str(folder)]) == 0
    assert "A passed audit is no proof." in capsys.readouterr().out
    place = folder.parent / "canaries.json"
    place.write_text(json.dumps({"places": STAYED}))
    assert invoke(["audit", "release", str(folder), "--canaries", str(place), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["failed"] == ["canaries' places"]


@pytest.mark.exhaust
def test_a_release_in_files_is_read_like_one_table(
    folder: Path, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.read_csv(folder.parent / "table.csv").write_parquet(tmp_path / "table.parquet")
    (tmp_path / "c.toml").write_text(CONFIG.replace("table.csv", "table.parquet"))
    asked = ["run", str(tmp_path / "c.toml"), "--out", str(tmp_path / "out"), "--engine", "processes"]
    assert invoke([*asked, "--ledger", str(tmp_path / "ledger")]) == 0
    found = {check.name: check for check in audit_release(read_release(tmp_path / "out"))}
    assert {name: check.result for name, check in found.items()} == results(audit_release(release))
    assert found["digests"].power.startswith("any change of the configuration")  # no digest was taken of the files
    pl.DataFrame({"report": [1]}).write_parquet(tmp_path / "out" / "sanitized" / "part-00009.parquet")
    capsys.readouterr()
    assert invoke(["audit", "release", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.exhaust
def test_a_release_of_vectors_is_read_without_what_its_rows_say(tmp_path: Path) -> None:
    vectors = np.eye(4)[np.arange(40) % 4]
    pl.DataFrame({"id": range(40), "gradient": vectors}).write_parquet(tmp_path / "table.parquet")
    (tmp_path / "c.toml").write_text(
        """
schema_version = 1
mode = "release"
[data]
path = "table.parquet"
person = "id"
private = "gradient"
[vector]
dimension = 4
clip = 1.0
epsilon = 4.0
"""
    )
    asked = ["run", str(tmp_path / "c.toml"), "--out", str(tmp_path / "out")]
    assert invoke([*asked, "--ledger", str(tmp_path / "ledger")]) == 0
    found = results(audit_release(read_release(tmp_path / "out")))
    assert found["digests"] == found["people"] == found["ledger"] == "holds" and "fails" not in found.values()


@pytest.mark.parametrize("name", ["rounds", "questions"])
def test_several_reports_of_a_person_are_not_accused(name: str, release: Release) -> None:
    document = json.loads(json.dumps(release.document))
    changed(collection__n=N // 3, release__total_epsilon=3.0, **{name: {"count": 3}})(document)
    found = results(audit_release(replace(release, document=document)))
    assert found["people"] == "not checked" and found["ledger"] == "holds"


UNREADABLE = {"nothing": None, "no JSON": "{", "a list": "[]", "empty": "{}", "a rehearsal": '{"mode": "rehearsal"}',
              "half": '{"mode": "release"}'}  # fmt: skip


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=list(UNREADABLE))
def test_what_is_no_release_is_one_line(text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    assert invoke(["audit", "release", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
