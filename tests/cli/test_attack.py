"""Attacks on files: what is recognized is above chance only where the files say who is who."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import typer.main
from tests.job.surveys import survey
from tests.tiers import one_in

from dovetail.cli.main import app, invoke
from dovetail.core.entropy import simulation
from dovetail.core.stages import ATTACKS, RANDOMIZERS
from dovetail.datasets.houses import synthetic_loads
from dovetail.table.released import rows_of_people

DEVICES, ROUNDS = 6, 60
QUICK = ["--trees", "20", "--permutations", "99", "--seed", "1"]
WATTS = ["--features", "watts", "--batch", "minute"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history, the days after it, and the same days with senders that have nothing to do with the watts."""
    monkeypatch.chdir(tmp_path)
    rng = simulation(2)
    for name in ("history", "released"):
        stream(rng).write_csv(f"{name}.csv")
    released = pl.read_csv("released.csv")
    mixed = released.with_columns(pl.col("watts").shuffle(seed=1))
    mixed.write_csv("mixed.csv")
    return tmp_path


def stream(rng: Any) -> pl.DataFrame:
    """Rounds of six devices."""
    watts = synthetic_loads(DEVICES, ROUNDS, fleet=3, rng=rng)
    return pl.DataFrame(
        {
            "minute": np.repeat(np.arange(ROUNDS), DEVICES),
            "device": [f"device{place}" for place in range(DEVICES)] * ROUNDS,
            "watts": watts.ravel(),
        }
    )


def attack(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON of an attack."""
    assert invoke(["attack", "reidentify", *arguments, *QUICK, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


@pytest.mark.exhaust
def test_raw_loads_are_recognized_far_above_chance_and_mixed_ones_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    raw = attack(capsys, "history.csv", "released.csv", *WATTS)
    assert raw["chance"] == pytest.approx(1 / DEVICES) and raw["p_value"] == 0.01
    assert raw["recall_interval"][0] > 3 * raw["chance"] and raw["trials_are"] == "parts of one release"
    assert raw["records"] == DEVICES * ROUNDS and raw["known_devices"] == len(raw["devices"]) == DEVICES
    mixed = attack(capsys, "history.csv", "mixed.csv", *WATTS)
    # right guesses of mixed values are binomial with chance 1/6: 6.1 standard errors
    assert abs(mixed["recall"] - 1 / 6) < 6.1 * (1 / 6 * 5 / 6 / (DEVICES * ROUNDS)) ** 0.5


@pytest.mark.exhaust
def test_several_releases_are_trials_and_equal_files_give_equal_answers(capsys: pytest.CaptureFixture[str]) -> None:
    pair = attack(capsys, "history.csv", "released.csv", "released.csv", *WATTS)
    assert pair["trials"] == 2 and pair["trials_are"] == "releases"
    assert pair["recall_interval"] == [pytest.approx(pair["recall"])] * 2


@pytest.mark.exhaust
def test_only_an_attacker_who_looks_at_places_sees_that_nothing_was_shuffled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = attack(capsys, "history.csv", "mixed.csv", *WATTS, "--place")
    assert seen["features"] == ["watts", "place"] and seen["recall"] > 0.5
    assert (
        attack(capsys, "history.csv", "mixed.csv", "--features", "", "--place", "--batch", "minute")["recall"] == 1.0
    )


def test_help_and_table_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    command = typer.main.get_command(app).commands["attack"].commands["reidentify"]  # type: ignore[attr-defined]
    assert command.help and all(parameter.help for parameter in command.params)
    assert invoke(["attack", "--help"]) == 0 and "reidentify" in capsys.readouterr().out
    assert invoke(["attack", "reidentify", "history.csv", "released.csv", *WATTS, *QUICK]) == 0
    text = capsys.readouterr().out
    assert "a guess that does not look" in text and "device0" in text


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    assert invoke(["attack", "reidentify", "history.csv", "released.csv", *WATTS]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "[attack]" in line


MISTAKES: dict[str, tuple[list[str], str]] = {
    "no such file": (["history.csv", "none.csv", *WATTS], "none.csv: no such file"),
    "no such column": (["history.csv", "released.csv", "--features", "watt"], "did you mean 'watts'"),
    "no column of devices": (["history.csv", "released.csv", *WATTS, "--device", "sender"], "no column 'sender'"),
    "a text feature": (["history.csv", "released.csv", "--features", "device"], "values are no numbers"),
    "unknown device": (["history.csv", "stranger.csv", *WATTS], "1 device is not in the history, first 'stranger'"),
    "one device": (["single.csv", "released.csv", *WATTS], "at least two devices; found 1"),
    "one batch": (["history.csv", "released.csv", "--features", "watts"], "intervals need at least two releases"),
    "the same file": (["history.csv", "history.csv", *WATTS], "is the history and a release"),
    "nothing to look at": (["history.csv", "released.csv", "--features", ""], "--features must name"),
    "no rows": (["history.csv", "empty.csv", *WATTS], "empty.csv: the table has no rows"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_and_status_two(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    released = pl.read_csv("released.csv")
    released.with_columns(pl.col("device").replace("device0", "stranger")).write_csv("stranger.csv")
    released.filter(device="device0").write_csv("single.csv")
    released.clear().write_csv("empty.csv")
    arguments, hint = MISTAKES[mistake]
    assert invoke(["attack", "reidentify", *arguments]) == 2
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    assert captured.out == "" and len(lines) == 1 and hint in lines[0], captured.err


# --- values ---------------------------------------------------------------------------------------------------------

MECHANISM = ["--private", "secret", "--epsilon", "3", "--seed", "1"]
SMALL = ["--shuffles", "2", "--randomizations", "5", "--targets", "200"]
KNOWN = ["--labels", "age", "--similar", "income"]


@pytest.fixture
def people() -> pl.DataFrame:
    """A survey with an income that goes with the secret."""
    table = survey()
    rich = 50 * (table["secret"] == "yes").to_numpy() + np.random.default_rng(1).integers(0, 40, table.height)
    table = table.with_columns(income=pl.Series(rich))
    table.write_csv("survey.csv")
    return table


def told(capsys: pytest.CaptureFixture[str], name: str, *arguments: str) -> dict[str, Any]:
    """The JSON of an attack on values."""
    assert invoke(["attack", name, "survey.csv", *MECHANISM, *arguments, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", one_in(5, [kind.name for kind in RANDOMIZERS if kind.question == "frequency"]))
@pytest.mark.parametrize("name", ATTACKS.names())
def test_attacks_on_values_read_an_unshuffled_release_and_not_a_shuffled_one(
    name: str, randomizer: str, people: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    # income tells the secret, so people with near incomes vote for it; classes of incomes need their own column
    pl.read_csv("survey.csv").with_columns(pl.col("income") // 50).write_csv("survey.csv")
    how = [*KNOWN, *SMALL, "--randomizer", randomizer]
    plain, mixed = (told(capsys, name, *how, "--shuffler", shuffler) for shuffler in ("identity", "uniform"))
    # these columns alone tell the secret: no attack is said to be worse than that
    assert plain["chance"] == mixed["chance"] == mixed["success"] == 1.0 and mixed["mounted"] == "blind guess"
    assert plain["alone"] > 0.9 > mixed["alone"]
    assert plain["shuffler"] == "identity" and plain["alpha"] == "inf" and plain["targets"] == 200
    assert plain["files"]["people"]["value"] is None


@pytest.mark.exhaust
def test_success_against_each_person_is_written_with_names(
    people: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, "likelihood", "--labels", "age", *SMALL, "--person", "id", "--out", "people.csv")
    assert found["shuffler"] == "within_groups" and found["files"]["people"] == "people.csv"
    written = pl.read_csv("people.csv")
    assert written.columns == ["id", "success"] and written["id"].n_unique() == 200
    assert written["success"].mean() == pytest.approx(found["success"])
    assert set(written["id"]) <= set(people["id"])
    rows = told(capsys, "majority", "--labels", "age", *SMALL[:4], "--out", "rows.csv")
    written = pl.read_csv("rows.csv")
    assert rows["targets"] == 600 and set(written["row"]) == set(range(1, 601))


def test_a_subset_is_found_where_nothing_is_shuffled_and_the_theorem_says_how_often(
    people: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["--people", "3, 17,21", "--draws", "20", "--trials", "50"]
    found = told(capsys, "subset", *how, "--shuffler", "identity")
    assert found["success"] == 1.0 and found["bound"] == 1.0 and found["chance"] < 0.001 and found["targets"] == 3
    mixed = told(capsys, "subset", *how)
    assert mixed["shuffler"] == "uniform" and mixed["interval"][0] <= mixed["chance"]


NUMBERS = ["--private", "income", "--epsilon", "6", "--seed", "1", "--lower", "0", "--upper", "90"]


@pytest.mark.parametrize("randomizer", one_in(2, ["window", "laplace"]))
def test_numbers_are_guessed_by_parts_of_their_range_beside_the_blind_guess_and_a_bound(
    randomizer: str, people: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["--labels", "town", "--shuffler", "identity", "--randomizer", randomizer, "--parts", "3", *SMALL[:4]]
    assert invoke(["attack", "likelihood", "survey.csv", *NUMBERS, *how, "--json"]) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    # who sees each report at epsilon 6 tells thirds of the range apart far better than the commonest one of a town
    assert found["chance"] + 0.1 < found["success"] <= found["bound"] <= 1.0
    assert found["alone"] == found["success"] and "3 equal parts" in found["remark"]


@pytest.mark.parametrize("name", ["majority", "likelihood", "subset"])
def test_help_and_table_of_attacks_on_values_are_complete(
    name: str, people: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    command = typer.main.get_command(app).commands["attack"].commands[name]  # type: ignore[attr-defined]
    assert command.help and "Example:" in command.help and all(parameter.help for parameter in command.params)
    more = (
        ["--people", "1,2", "--draws", "5", "--trials", "5"] if name == "subset" else ["--similar", "income", *SMALL]
    )
    assert invoke(["attack", name, "survey.csv", *MECHANISM, *more]) == 0
    text = capsys.readouterr().out
    assert "chance" in text and "interval" in text and "bound" in text


VALUE_MISTAKES: dict[str, tuple[str, list[str], str]] = {
    "no such file": ("majority", ["none.csv", *MECHANISM, *KNOWN], "none.csv: no such file"),
    "no such private column": ("majority", ["survey.csv", "--private", "secrt", "--epsilon", "3", *KNOWN],
                               "no column 'secrt'; did you mean 'secret'"),
    "no such public column": ("likelihood", ["survey.csv", *MECHANISM, "--similar", "incom"], "no column 'incom'"),
    "nothing known": ("majority", ["survey.csv", *MECHANISM], "needs public columns that it knows"),
    "nobody within r*": ("majority", ["survey.csv", *MECHANISM, "--points", "hours", "--radius", "1", "--reach", "0",
                                      "--shuffler", "uniform", "--targets", "1"], "Nobody is within 0 of any target"),
    "no numbers": ("likelihood", ["survey.csv", *MECHANISM, "--similar", "dropped"], "600 different texts"),
    "similar without a radius": ("majority", ["survey.csv", *MECHANISM, "--points", "hours", "--nearest", "9",
                                              "--shuffler", "uniform", "--similar", "income"], "has no radius"),
    "too many texts": ("majority", ["survey.csv", *MECHANISM, "--similar", "dropped"], "600 different texts"),
    "no numbers within r*": ("majority", ["survey.csv", *MECHANISM, "--labels", "town", "--reach", "1"],
                             "'town': 600 values are no numbers"),
    "reach without groups": ("majority", ["survey.csv", *MECHANISM, "--similar", "income", "--reach", "1"],
                             "--reach goes with"),
    "numbers without a range": ("likelihood", ["survey.csv", *MECHANISM, *KNOWN, "--randomizer", "window"],
                                "needs --lower and --upper"),
    "a range of answers": ("likelihood", ["survey.csv", *NUMBERS, "--labels", "age"],
                           "use one of budget_laplace, laplace, window"),
    "a vote on numbers": ("majority", ["survey.csv", *NUMBERS, "--labels", "age", "--randomizer", "window"],
                          "likelihood guesses numbers"),
    "a vote on the wrong randomizer": ("majority", ["survey.csv", *MECHANISM, *KNOWN, "--randomizer", "laplace"],
                                       "is about numbers; this attack"),
    "a subset of numbers": ("subset", ["survey.csv", *MECHANISM, "--people", "1", "--randomizer", "laplace"],
                            "is about numbers; this attack"),
    "a number outside": ("likelihood", ["survey.csv", *NUMBERS[:-1], "9", "--labels", "age", "--randomizer",
                                        "window"], "lie outside the declared [0, 9]"),
    "epsilon zero": ("majority", ["survey.csv", "--private", "secret", "--epsilon", "0", *KNOWN],
                     "--epsilon must be greater than 0"),
    "a stranger": ("subset", ["survey.csv", *MECHANISM, "--people", "1,x"], "nobody is called 'x'"),
    "the same person twice": ("subset", ["survey.csv", *MECHANISM, "--people", "1,1"], "name each person once"),
    "nobody": ("subset", ["survey.csv", *MECHANISM, "--people", ","], "--people must name"),
    "not CSV": ("majority", ["survey.csv", *MECHANISM, *KNOWN, "--out", "p.parquet"], "use .csv"),
    "exists already": ("majority", ["survey.csv", *MECHANISM, *KNOWN, *SMALL, "--out", "survey.csv"], "use --force"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", VALUE_MISTAKES)
def test_a_mistake_about_values_gets_one_line_and_status_two(
    mistake: str, people: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    name, arguments, hint = VALUE_MISTAKES[mistake]
    assert invoke(["attack", name, *arguments]) == 2
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    assert captured.out == "" and len(lines) == 1 and hint in lines[0], captured.err


# --- released files -------------------------------------------------------------------------------------------------

TRUTH = ["--truth", "survey.csv", "--private", "secret", "--seed", "1"]


@pytest.fixture
def files(people: pl.DataFrame) -> pl.DataFrame:
    """Reports that tell everything: as they came, mixed inside ages, and mixed evenly; and the same as CSV."""
    public = ["--private", "secret", "--public", "id,age,town,income", "--categories", "yes,no"]
    for number in range(3):
        drawn = ["--seed", str(number), "--force"]
        loud = ["randomize", "survey.csv", *public, "--epsilon", "40", "--out", f"plain{number}.parquet"]
        inside = ["--shuffler", "within_groups", "--labels", "age", "--out", f"ages{number}.parquet"]
        for command in (
            loud,
            ["shuffle", f"plain{number}.parquet", *inside],
            ["shuffle", f"plain{number}.parquet", "--out", f"even{number}.parquet"],
        ):
            assert invoke([*command, *drawn]) == 0
    pl.read_parquet("plain0.parquet").write_csv("plain.csv")
    pl.read_parquet("plain0.parquet").head(599).write_csv("fewer.csv")
    pl.read_parquet("plain0.parquet").with_columns(age=pl.lit(5)).write_csv("strange.csv")
    return people


def released(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON of an attack on released files."""
    capsys.readouterr()
    assert invoke(["attack", "released", *arguments, *TRUTH, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


@pytest.mark.exhaust
@pytest.mark.parametrize("name", ["majority", "likelihood"])
def test_a_released_file_that_tells_everything_is_read_at_the_rows_of_its_people(
    name: str, files: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows of the file are in an order of their own; without noise and shuffle every guess is right."""
    alone = ["--labels", "age"] if name != "majority" else ["--labels", "age", "--votes", "1"]
    found = released(capsys, "plain0.parquet", "plain1.parquet", "--attack", name, *alone, "--out", "people.csv")
    assert found["success"] == found["vulnerable"] == 1.0 and found["interval"] == [1.0, 1.0]
    assert (found["shuffles"], found["randomizations"], found["randomizer"]) == (2, 1, "krr")
    assert pl.read_csv("people.csv")["success"].to_list() == [1.0] * 600
    assert found["shuffler"]["value"] is None and found["alpha"]["value"] is None


@pytest.mark.exhaust
def test_files_mixed_evenly_leave_chance(files: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    """Their rows stand beside nobody; the mean of 1,800 guesses of two values has a standard error below 0.012."""
    evenly = [f"even{number}.parquet" for number in range(3)]
    assert pl.read_parquet(evenly[0]).columns == ["report"]
    blind = released(capsys, *evenly, "--labels", "age", "--attack", "likelihood")
    assert blind["success"] == blind["chance"] and blind["shuffler"] == "uniform"
    share = blind["chance"]
    vote = released(capsys, *evenly, "--labels", "age", "--attack", "majority", "--votes", "1")
    # a report of somebody at random is right with probability p^2 + (1 - p)^2
    assert vote["mounted"] == "blind guess" and vote["success"] == share
    assert abs(vote["alone"] - (share**2 + (1 - share) ** 2)) < 6.2 * 0.012
    inside = released(capsys, "ages0.parquet", "--labels", "age", "--attack", "likelihood")
    assert inside["shuffler"] == "within_groups" and inside["alpha"]["value"] is None


@pytest.mark.exhaust
def test_one_release_has_no_interval_and_a_table_that_says_nothing_needs_options(
    files: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    found = released(
        capsys, "plain.csv", "--labels", "age", "--votes", "1", "--randomizer", "krr", "--epsilon", "40",
        "--person", "id",
    )  # fmt: skip
    assert found["success"] == 1.0 and "several" in found["interval"]["reason"] == found["vulnerable"]["reason"]
    assert invoke(["attack", "released", "plain0.parquet", *TRUTH, "--similar", "income"]) == 0
    assert "give several" in capsys.readouterr().out


def test_a_release_of_the_main_job_is_attacked_with_its_own_groups(
    people: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("job.toml").write_text(
        'schema_version = 1\nmode = "release"\n'
        '[data]\npath = "survey.csv"\nprivate = "secret"\nperson = "id"\npublic = ["age", "income"]\n'
        'categories = ["no", "yes"]\n[randomize]\nepsilon = 4.0\n'
        '[shuffle]\nshuffler = "within_groups"\ngroups = { labels = "age" }\n'
    )
    assert invoke(["run", "job.toml", "--out", "job", "--ledger", "ledger", "--json"]) == 0, capsys.readouterr().err
    found = released(capsys, "job/sanitized.parquet", "--attack", "likelihood")
    assert (found["shuffler"], found["epsilon"], found["targets"]) == ("within_groups", 4.0, 600)
    assert released(capsys, "job/sanitized.parquet", "--similar", "income")["name"] == "likelihood"


def test_released_numbers_are_guessed_by_parts_beside_the_blind_guess_of_parts(
    people: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Next to no noise and no shuffle: the part of nearly everybody's number is read off."""
    loud = ["--randomizer", "laplace", "--epsilon", "40", "--lower", "0", "--upper", "100", "--grid", "0.1"]
    public = ["--private", "income", "--public", "id,age", "--out", "numbers.parquet", "--seed", "1"]
    assert invoke(["randomize", "survey.csv", *public, *loud]) == 0
    capsys.readouterr()
    asked = ["numbers.parquet", "--truth", "survey.csv", "--private", "income", "--labels", "age", "--seed", "1"]
    assert invoke(["attack", "released", *asked, "--parts", "2", "--json"]) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "likelihood" and found["mounted"] == "attack"
    assert found["success"] > 0.9 > 0.75 > found["chance"]


RELEASED_MISTAKES: dict[str, tuple[list[str], str]] = {
    "no such file": (["none.parquet"], "none.parquet: no such file"),
    "says nothing": (["plain.csv"], "does not say how its reports were made; give --randomizer and --epsilon"),
    "says it already": (["plain0.parquet", "--randomizer", "krr", "--epsilon", "1"], "drop --randomizer"),
    "half a mechanism": (["plain.csv", "--epsilon", "1"], "--randomizer and --epsilon go together"),
    "made differently": (["plain0.parquet", "ages0.parquet"], "ages0.parquet: was made with another shuffle"),
    "somebody is missing": (["fewer.csv", "--randomizer", "krr", "--epsilon", "1"],
                            "fewer.csv: must have a row for each of 600 people, got 599"),
    "a stranger": (["strange.csv", "--randomizer", "krr", "--epsilon", "1"], "holds somebody who is not in"),
    "nothing in common": (["apart.csv", "--randomizer", "krr", "--epsilon", "1"], "shares no public column"),
    "no reports": (["survey.csv", "--randomizer", "krr", "--epsilon", "1"], "no column 'report'"),
    "no rows": (["empty.csv", "--randomizer", "krr", "--epsilon", "1"], "empty.csv: the table has no rows"),
    "mixed who knows how": (["plain.csv", "--randomizer", "krr", "--epsilon", "1", "--attack", "likelihood"],
                            "needs to know what was mixed"),
    "numbers": (["numbers.parquet", "--attack", "majority"], "majority vote guesses answers of a list"),
    "a setting of another attack": (["plain0.parquet", "--votes", "3"], "--votes is no setting of the likelihood"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", one_in(4, RELEASED_MISTAKES))
def test_a_mistake_about_released_files_gets_one_line_and_status_two(
    mistake: str, files: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv("plain.csv")
    table.select("report", elsewhere="age").write_csv("apart.csv")
    table.clear().write_csv("empty.csv")
    numbers = ["--private", "income", "--lower", "0", "--upper", "100", "--randomizer", "laplace", "--epsilon", "1"]
    assert invoke(["randomize", "survey.csv", *numbers, "--seed", "1", "--out", "numbers.parquet"]) == 0
    capsys.readouterr()
    arguments, hint = RELEASED_MISTAKES[mistake]
    assert invoke(["attack", "released", *arguments, *TRUTH, "--labels", "age"]) == 2
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    assert captured.out == "" and len(lines) == 1 and hint in lines[0], captured.err


def test_everybody_is_sought_at_a_row_of_their_own() -> None:
    """Everybody gets a row with their own columns, each row once, whether numbers came as text or not."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"age": rng.integers(0, 30, 200), "town": rng.integers(0, 9, 200).astype(str)})
    people = table[rng.permutation(200)].with_columns(pl.col("age").cast(pl.String))
    rows = rows_of_people("z", table, people, shared=["age", "town"])
    assert sorted(rows) == list(range(200))
    assert table[rows]["town"].to_list() == people["town"].to_list()
    assert table[rows]["age"].cast(pl.String).to_list() == people["age"].to_list()
    assert rows_of_people("z", table, people, shared=[]).tolist() == list(range(200))  # mixed evenly


LIKELIHOOD = [
    "attack",
    "likelihood",
    "people.csv",
    "--labels",
    "age",
    "--radius",
    "1",
    "--alpha",
    "2",
    "--shuffler",
    "mallows",
]
KRR_OPTIONS, LAPLACE_OPTIONS = (["--randomizer", name, "--epsilon", "1"] for name in ("krr", "laplace"))
FAULTS = {
    "somebody twice": (
        ["--private", "answer", "--person", "id", *KRR_OPTIONS], "one report per person, so keep one row each.",
    ),
    "one column for two things": (
        ["--private", "age", *KRR_OPTIONS], "among --private, --person, --similar and the groups.",
    ),
    "beyond the range": (
        ["--private", "watts", *LAPLACE_OPTIONS, "--lower", "0", "--upper", "10", "--grid", "1"],
        "or give --clip: nothing",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_in_the_options_that_were_given(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    """[data] is a section of a configuration, which nobody has written here."""
    Path("people.csv").write_text("id,age,answer,watts\n1,30,a,2\n1,31,b,17\n2,32,a,3\n3,33,b,4\n", encoding="utf-8")
    options, told = FAULTS[fault]
    assert invoke([*LIKELIHOOD, *options]) == 2
    error = capsys.readouterr().err
    assert told in error and "[data]" not in error and "`" not in error
