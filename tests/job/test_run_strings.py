"""A run on texts without categories: what many people hold, what nobody holds never, once for a table."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dovetail as dt
from dovetail.account.dummies import dummies_for_rounds
from dovetail.cli.main import invoke
from dovetail.core.errors import ConfigError, DovetailError
from dovetail.core.guarantee import CentralDP
from dovetail.job.config import StringsSection
from dovetail.job.strings import recall_of, section_of, smallest_share, strings_terms, widest
from dovetail.report.number_format import upward
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
    with pytest.raises(DovetailError, match="other terms"):
        dt.run(config(mode="release", seed=None, strings={"dummies": "gaussian"}), table=words(), ledger=tmp_path)
    again = dt.run(given, table=words(), ledger=tmp_path, new_release=True)
    assert again.release["releases"] == 2 and again.evaluation.central.epsilon > 1.99 * one.evaluation.central.epsilon


def test_terms_of_a_release_are_those_of_before_there_were_other_dummies() -> None:
    usual = b'strings{"epsilon":1.0,"delta":0.25,"trust":"shuffler","levels":8,"keep":256}'
    assert strings_terms(StringsSection(epsilon=1.0, delta=0.25)) == usual
    assert strings_terms(StringsSection(epsilon=1.0, delta=0.25, dummies="gaussian")) != usual


@pytest.mark.parametrize("mode", [{}, {"mode": "release", "seed": None}])
def test_a_report_behind_gaussian_noise_is_of_its_law(mode: dict[str, Any], tmp_path: Path) -> None:
    report = dt.run(config(**mode, strings={"dummies": "gaussian"}), table=words(), ledger=tmp_path)
    dummies, central = (
        dummies_for_rounds(k=2, epsilon=3.0, delta=1e-6, rounds=1, law="gaussian"),
        report.evaluation.central,
    )
    assert isinstance(central, CentralDP) and central.epsilon <= 3.0 and "Gaussian" in central.source
    told, overall = " ".join(report.assumptions), report.evaluation.estimates.overall
    assert f"is kept from {dummies.reach + 1} reports on" in told and {"we", "us"} <= set(overall.labels)
    least = smallest_share(n=1200, epsilon=3.0, delta=1e-6, levels=4, dummies="gaussian")
    assert f"A string that {upward(100 * least)}% of the people hold is found" in told
    assert report.document()["config"]["strings"]["dummies"] == "gaussian"


@pytest.mark.parametrize(
    ("n", "noise", "told"),
    [
        (
            4000,
            {"dummies": "sparse"},
            [
                "Sparse noise of the shuffler can pass for a string: with 5% probability at most",
                "The shuffler keeps each report with probability 0.777",
                "are among the 256 most frequent ones of their length",
            ],
        ),
        (
            6000,
            {"trust": "users", "epsilon": 8.0, "delta": 1e-2, "levels": 3},
            [
                "Noise of people together can pass for a string: with 5% probability at most",
                "the smallest has 1,9",
                "the promise counts on 1,9",
                "Dummies of people hide 1 beginning in a group of so many",
                "if its beginnings are the most frequent ones of their length",
            ],
        ),
        (2400, {"trust": "local", "levels": 2}, ["Every person's own noise can pass for a string: with 5%"]),
    ],
    ids=str,
)
def test_a_report_behind_noise_without_an_end_says_so(n: int, noise: dict[str, Any], told: list[str]) -> None:
    report = dt.run(config(strings=noise), table=words(n))
    said = " ".join(report.assumptions)
    assert all(line in said for line in told), said
    assert "is held by somebody" not in said and "strings were found, " in said
    central, overall = report.evaluation.central, report.evaluation.estimates.overall
    assert isinstance(central, CentralDP) and central.epsilon <= noise.get("epsilon", 3.0)
    assert (central.delta == 0.0) == ("dummies" in noise)
    for label, value, error, truth in zip(
        overall.labels, overall.value, overall.standard_error, overall.truth or [], strict=True
    ):
        assert abs(value - truth) < 6.1 * error, label  # false alarm below 1e-8
    shuffled = next(step["what"] for step in report.steps if step["stage"] == "shuffle")
    assert ("drops reports by chance" in shuffled) == ("dummies" in noise)
    assert ("one message of a person" in shuffled) == (noise.get("trust") == "users")


@pytest.mark.parametrize(
    ("changes", "words_of_it"),
    [
        ({"randomize": {"epsilon": 1.0}}, r"\[randomize\] does not go with \[strings\]"),
        ({"promise": {"delta": 1e-6}}, r"\[promise\] does not go with \[strings\]"),
        ({"data": {"categories": ["a", "b"]}}, r"\[data\] categories does not go with \[strings\]"),
        ({"data": {"person": None}}, "name their column as `person`"),
        ({"mode": "release", "seed": None, "strings": {"trust": "local"}}, 'needs .strings. trust = "shuffler"'),
        ({"mode": "release", "seed": None, "strings": {"trust": "users"}}, 'needs .strings. trust = "shuffler"'),
        ({"mode": "release", "seed": None, "strings": {"dummies": "sparse"}}, 'dummies = "geometric" or "gaussian"'),
        ({"strings": {"trust": "users"}}, "people, whose dummies hide fewer than the 258 answers"),
        ({"strings": {"trust": "users", "epsilon": 30.0}}, r"\[strings\] `epsilon` must be"),
        ({"strings": {"trust": "local", "dummies": "gaussian"}}, r"\[strings\] `dummies` go with `trust`"),
        ({"strings": {"dummies": "digits"}}, "dummies"),
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


@pytest.mark.parametrize(
    ("n", "share", "law"),
    [
        (1_000_000, 3.6e-4, {}),
        (100_000, 3.6e-3, {}),
        (100_000, 4.7e-3, {"dummies": "gaussian"}),
        (100_000, 5.2e-3, {"dummies": "sparse"}),
        (1_000_000, 4.3e-4, {"trust": "users"}),
    ],
)
def test_the_plan_is_the_note_s(n: int, share: float, law: dict[str, Any]) -> None:
    """Section D: frequencies with 95 % recall at epsilon = 1, delta = 1e-6, 8 levels, to the printed digits."""
    asked = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "levels": 8,
        "keep": 256,
        "trust": "shuffler",
        "dummies": "geometric",
    } | law
    least = smallest_share(n=n, **asked)
    assert least == pytest.approx(share, abs=0.05 * share / 3.6)
    noise, symbols = widest(section_of(**asked), n)
    assert recall_of(least, n=n, noise=noise, symbols=symbols, levels=8) == pytest.approx(0.95, abs=1e-6)
    below, above = (recall_of(f * least, n=n, noise=noise, symbols=symbols, levels=8) for f in (0.9, 1.1))
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
    assert invoke([*asked, "--dummies", "gaussian", "--json", "--out", "gaussian.toml"]) == 0
    wide = json.loads(capsys.readouterr().out)
    assert wide["threshold"] == 1 + dummies_for_rounds(k=2, epsilon=3.0, delta=1e-6, rounds=1, law="gaussian").reach
    assert wide["found"][1]["share"] > told["found"][1]["share"] and wide["dummies"] == "gaussian"
    assert invoke([*asked, "--dummies", "sparse", "--json", "--out", "sparse.toml"]) == 0
    few = json.loads(capsys.readouterr().out)
    assert few["dummies_a_beginning"] < 100 < told["dummies_a_beginning"] and few["beginnings"] == 256
    assert invoke(["run", "sparse.toml", "--json"]) == 0 and "can pass for a string" in capsys.readouterr().out
    assert invoke([*asked, "--trust", "users"]) == 2
    assert "300 people, whose dummies hide fewer than the 258 answers of a byte" in capsys.readouterr().err
    many = ["plan-strings", "--n", "1000000", "--epsilon", "2", "--trust", "users"]
    assert invoke([*many, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["beginnings"] == 26
    assert invoke(many) == 0 and "found with 5%, at most" in capsys.readouterr().out
    assert invoke(["check", "plan.toml"]) == 0 and invoke(["check", "gaussian.toml"]) == 0
    assert "STOPS" not in capsys.readouterr().out
    assert invoke(["run", "plan.toml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "we" in document["estimates"]["overall"]["labels"]
    assert invoke(asked) == 0 and "a string that nobody holds" in capsys.readouterr().out
    assert invoke(["plan-strings", "--n", "100", "--epsilon", "0.1"]) == 2
    assert "use fewer levels" in capsys.readouterr().err
