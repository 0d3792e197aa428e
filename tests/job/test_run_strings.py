"""A run on texts without categories: what many people hold, what nobody holds never, once for a table."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dovetail as dt
from dovetail.cli.main import invoke
from dovetail.core.errors import ConfigError, DovetailError
from dovetail.core.guarantee import CentralDP
from dovetail.job.strings import recall_of, smallest_share
from dovetail.shuffle.sampling.dummies import Dummies

WORDS = (["we", "us", "west!", "Zürich"] * 10)[:37]


def words(n: int = 1200) -> pl.DataFrame:
    texts = [WORDS[i % 40] if i % 40 < len(WORDS) else f"rare {i}" for i in range(n)]
    return pl.DataFrame({"device": [f"device {i}" for i in range(n)], "word": texts})


def config(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "schema_version": 1, "mode": "rehearsal", "seed": 1, "data": {"person": "device", "private": "word"},
        "strings": {"epsilon": 3.0, "levels": 4},
    }  # fmt: skip
    for name, value in changes.items():
        base[name] = {**base.get(name, {}), **value} if isinstance(value, dict) else value
    return {name: value for name, value in base.items() if value is not None}


def test_a_rehearsal_counts_recall_and_false_strings() -> None:
    report = dt.run(config(), table=words())
    found, central = report.evaluation.estimates.overall, report.evaluation.central
    assert set(found.labels) == {"we", "us", "west...", "Zür...", "rare...", "(all other strings)"}
    assert isinstance(central, CentralDP) and central.trust == "shuffler" and central.epsilon <= 3.0
    assert report.evaluation.local.epsilon == float("inf")
    told = " ".join(report.assumptions)
    assert "strings were found, 0 of which nobody holds" in told and "were found (" in told
    truth = dict(zip(found.labels, found.truth or [], strict=True))
    held = words()["word"].to_list()
    assert truth["we"] == held.count("we") / len(held)
    for label, value, error in zip(found.labels, found.value, found.standard_error, strict=True):
        assert abs(value - truth[label]) < 6.1 * error, label  # false alarm below 1e-8
    assert json.dumps(report.document()) and report.document()["config"]["strings"]["levels"] == 4


def test_a_release_is_drawn_once_and_holds_what_was_found(tmp_path: Path) -> None:
    given = config(mode="release", seed=None)
    one, two = (dt.run(given, table=words(), ledger=tmp_path) for _ in range(2))
    assert one.sanitized.equals(two.sanitized) and one.release["number"] == two.release["number"] == 1
    assert (
        one.sanitized.columns == ["string", "complete", "share", "standard_error", "asked"]
        and one.sanitized.height < 10
    )
    assert set(one.sanitized["string"]) <= {text[:4] for text in words()["word"]} | {"Zür"}
    assert one.evaluation.estimates.overall.truth is None and "rehearsal" not in " ".join(one.assumptions)
    with pytest.raises(DovetailError, match="other terms"):
        dt.run(config(mode="release", seed=None, strings={"epsilon": 2.0}), table=words(), ledger=tmp_path)
    again = dt.run(given, table=words(), ledger=tmp_path, new_release=True)
    assert again.release["releases"] == 2 and not isinstance(again.evaluation.central, CentralDP)


@pytest.mark.parametrize(
    ("changes", "words_of_it"),
    [
        ({"randomize": {"epsilon": 1.0}}, r"\[randomize\] does not go with \[strings\]"),
        ({"promise": {"delta": 1e-6}}, r"\[promise\] does not go with \[strings\]"),
        ({"data": {"categories": ["a", "b"]}}, r"\[data\] categories does not go with \[strings\]"),
        ({"data": {"person": None}}, "name their column as `person`"),
        ({"mode": "release", "seed": None, "strings": {"trust": "local"}}, 'needs .strings. trust = "shuffler"'),
        ({"strings": {"levels": 65}}, "less than or equal to 64|at most 64"),
        ({"strings": {"level": 6}}, "levels"),
    ],
)
def test_what_does_not_go_with_strings_is_refused(changes: dict[str, Any], words_of_it: str) -> None:
    given = config(**changes)
    given["data"] = {name: value for name, value in given["data"].items() if value is not None}
    with pytest.raises(ConfigError, match=words_of_it):
        dt.run(given, table=words(40))


def test_groups_that_hide_nobody_are_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"\[strings\] a group has \d people.*fewer levels"):
        dt.run(config(strings={"levels": 20}), table=words(24))


@pytest.mark.parametrize(("n", "share"), [(1_000_000, 3.6e-4), (100_000, 3.6e-3)])
def test_the_plan_is_the_note_s(n: int, share: float) -> None:
    """Section D: frequencies with 95 % recall at epsilon = 1, delta = 1e-6, 8 levels, to the printed digits."""
    least = smallest_share(n=n, epsilon=1.0, delta=1e-6, levels=8)
    assert least == pytest.approx(share, abs=0.05 * share / 3.6)
    dummies = Dummies(2, 1.0, 1e-6)
    assert recall_of(least, n=n, levels=8, dummies=dummies) == pytest.approx(0.95, abs=1e-6)
    below, above = (recall_of(factor * least, n=n, levels=8, dummies=dummies) for factor in (0.9, 1.1))
    assert below < 0.95 < above


@pytest.mark.exhaust
def test_the_verb_plans_and_writes_a_configuration_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["plan-strings", "--n", "1200", "--epsilon", "3", "--levels", "4"]
    assert invoke([*asked, "--json", "--out", "plan.toml"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["chance"] for row in told["found"]] == [0.5, 0.95, 0.99]
    assert told["threshold"] == Dummies(2, 3.0, 1e-6).reach + 1
    words().rename({"device": "name", "word": "string"}).write_csv("table.csv")
    assert invoke(["check", "plan.toml"]) == 0
    assert "STOPS" not in capsys.readouterr().out
    assert invoke(["run", "plan.toml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "we" in document["estimates"]["overall"]["labels"]
    assert invoke(asked) == 0 and "a string that nobody holds" in capsys.readouterr().out
    assert invoke(["plan-strings", "--n", "100", "--epsilon", "0.1"]) == 2
    assert "use fewer levels" in capsys.readouterr().err
