"""`dovetail account`: every option changes the question it names, and every bound stands beside the chosen one."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.tiers import one_in

from dovetail.account.amplify import amplify
from dovetail.cli.main import invoke
from dovetail.core.stages import RANDOMIZERS
from dovetail.randomize.krr import KRR

ASKED = ("--n", "10000", "--delta", "1e-6")
SETTLED = [kind.name for kind in RANDOMIZERS if not any(setting.required for setting in kind.settings())]


def account(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON answer."""
    assert invoke(["account", *ASKED, *arguments, "--json"]) == 0, capsys.readouterr().err
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that says why."""
    assert invoke(["account", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


def test_all_bounds_stand_beside_the_chosen_one(capsys: pytest.CaptureFixture[str]) -> None:
    answer = account(capsys, "--epsilon0", "4")
    numbers = {name: value for name, value in answer["bounds"].items() if not isinstance(value, dict)}
    reasons = [value["reason"] for value in answer["bounds"].values() if isinstance(value, dict)]
    assert answer["bounds"][answer["method"]] == answer["epsilon"] <= min(numbers.values())
    assert len(numbers) >= 3 and len(reasons) >= 3 and all(reasons)
    assert answer["attack_lower"] <= answer["numeric_lower"] <= answer["epsilon"]


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", ["binary", "krr", "hadamard", "laplace"])
def test_a_mechanism_is_judged_by_its_own_law(capsys: pytest.CaptureFixture[str], randomizer: str) -> None:
    values = ("--k", "20") if randomizer in ("krr", "hadamard") else ()
    few = ("--honest", "500")
    own = account(capsys, "--epsilon0", "1", "--randomizer", randomizer, *values, *few)
    anybody = account(capsys, "--epsilon0", "1", *few)
    assert own["attack_lower"] <= own["epsilon"] < anybody["epsilon"]
    assert own["bounds"]["stronger clones"] == anybody["bounds"]["stronger clones"] > anybody["epsilon"]
    assert own["central"]["colluding"] == 1.0


@pytest.mark.parametrize(
    "name", [kind.name for kind in RANDOMIZERS if not any(one.required for one in kind.settings())]
)
def test_every_randomizer_can_be_named(capsys: pytest.CaptureFixture[str], name: str) -> None:
    values = ("--k", "4") if RANDOMIZERS[name].question == "frequency" else ()
    own = account(capsys, "--epsilon0", "1", "--randomizer", name, *values)
    assert own["attack_lower"] <= own["epsilon"] < account(capsys, "--epsilon0", "1")["epsilon"]


@pytest.mark.exhaust
def test_a_delta_that_promises_too_little_is_questioned(capsys: pytest.CaptureFixture[str]) -> None:
    assert account(capsys, "--epsilon0", "1")["notes"] == []
    [note] = account(capsys, "--epsilon0", "1", "--delta", "0.5")["notes"]
    assert "delta = 0.5 is not below 1/n = 0.0001" in note


@pytest.mark.exhaust
def test_rounds_add_less_than_their_sum_and_more_than_one(capsys: pytest.CaptureFixture[str]) -> None:
    once, often = (account(capsys, "--epsilon0", "1", "--rounds", rounds) for rounds in ("1", "50"))
    fewer = account(capsys, "--epsilon0", "1", "--rounds", "50", "--honest", "5000")
    assert once["epsilon"] < often["epsilon"] < often["bounds"]["basic composition"]
    assert often["central"]["all"] == often["epsilon"] < fewer["epsilon"] == fewer["central"]["honest"]
    assert often["central"]["colluding"] == 50.0 and often["rounds"] == 50
    assert once["attack_lower"] < often["attack_lower"] < often["epsilon"]


@pytest.mark.exhaust
def test_what_the_local_promise_fails_by_costs(capsys: pytest.CaptureFixture[str]) -> None:
    pure, clones, impure = (
        account(capsys, "--epsilon0", "1", *more) for more in ((), ("--adaptive",), ("--delta0", "1e-13"))
    )
    assert pure["epsilon"] < clones["epsilon"] < impure["epsilon"]
    assert impure["method"] == "clones, approximate"
    assert "n * delta0 too large" in refused(capsys, *ASKED, "--epsilon0", "1", "--delta0", "1e-5")


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "more", [(), ("--randomizer", "krr", "--k", "50"), ("--randomizer", "laplace"), ("--adaptive",)], ids=str
)
def test_the_inverse_is_admissible(capsys: pytest.CaptureFixture[str], more: tuple[str, ...]) -> None:
    backward = account(capsys, "--invert", "--epsilon", "0.2", "--honest", "5000", *more)
    forward = account(capsys, "--epsilon0", repr(backward["epsilon0"]), "--honest", "5000", *more)
    assert 0.19 <= forward["epsilon"] <= 0.2


@pytest.mark.exhaust
@pytest.mark.parametrize("axis", one_in(3, ["n", "epsilon0", "delta"]))
def test_a_curve_is_written_and_agrees_with_single_answers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, axis: str
) -> None:
    csv, plot = tmp_path / "curve.csv", tmp_path / "curve.png"
    answer = account(
        capsys, "--epsilon0", "1", "--curve", axis, "--csv", str(csv), "--plot", str(plot)
    )  # fmt: skip
    table = pl.read_csv(csv)
    assert table.to_dict(as_series=False).keys() == answer["curve"].keys()
    assert plot.stat().st_size > 10_000 and answer["files"] == {"csv": str(csv), "plot": str(plot)}
    assert (table["attack"] <= table["one randomizer for all"]).all()
    row = table.row(40, named=True)
    asked = {"--n": "10000", "--delta": "1e-6", "--epsilon0": "1"} | {f"--{axis}": repr(row[axis])}
    assert invoke(["account", *[word for pair in asked.items() for word in pair], "--json"]) == 0
    single = json.loads(capsys.readouterr().out)
    assert single["epsilon"] == pytest.approx(row["one randomizer for all"], rel=1e-9)


BAD = {
    "no epsilon": ((*ASKED,), "--epsilon0"),
    "k without its randomizer": ((*ASKED, "--epsilon0", "1", "--k", "4"), "--k goes with"),
    "krr without k": ((*ASKED, "--epsilon0", "1", "--randomizer", "krr"), "--k goes with"),
    "k of numbers": ((*ASKED, "--epsilon0", "1", "--randomizer", "laplace", "--k", "4"), "--k goes with"),
    "a mistyped randomizer": (
        (*ASKED, "--epsilon0", "1", "--randomizer", "hadamart"),
        "--randomizer must be one of",
    ),
    "a randomizer whose settings nobody gave": (
        (*ASKED, "--epsilon0", "1", "--randomizer", "budget_laplace"),
        "beta, rho",
    ),
    "epsilon above epsilon0 is no question": ((*ASKED, "--epsilon0", "1", "--epsilon", "2"), "--invert"),
    "delta 1": (("--n", "10", "--delta", "1", "--epsilon0", "1"), "--delta must be"),
    "delta not a number": (("--n", "10", "--delta", "nan", "--epsilon0", "1"), "--delta must be"),
    "delta0 1": ((*ASKED, "--epsilon0", "1", "--delta0", "1"), "--delta0 must be"),
    "no rounds": ((*ASKED, "--epsilon0", "1", "--rounds", "0"), "--rounds must be"),
    "half a round": ((*ASKED, "--epsilon0", "1", "--rounds", "1.5"), "--rounds must be"),
    "half a person": (("--n", "10.5", "--delta", "1e-6", "--epsilon0", "1"), "--n must be"),
    "half an honest person": ((*ASKED, "--epsilon0", "1", "--honest", "2.5"), "--honest must be"),
    "more honest than people": ((*ASKED, "--epsilon0", "1", "--honest", "20000"), "--honest must be"),
    "csv without a curve": ((*ASKED, "--epsilon0", "1", "--csv", "x.csv"), "go with --curve"),
    "picture of no kind": ((*ASKED, "--epsilon0", "1", "--curve", "n", "--plot", "x.gif"), ".png"),
    "one file for two things": (
        (*ASKED, "--epsilon0", "1", "--curve", "n", "--csv", "x.png", "--plot", "x.png"),
        "both",
    ),
    "curve backwards": ((*ASKED, "--epsilon0", "1", "--curve", "n", "--from", "100", "--to", "10"), "`--to` must be"),
    "csv of an inverse": ((*ASKED, "--invert", "--epsilon", "1", "--csv", "x.csv"), "go with --curve"),
    "inverse of rounds": ((*ASKED, "--invert", "--epsilon", "1", "--rounds", "3"), "one round"),
    "curve of rounds": ((*ASKED, "--epsilon0", "1", "--curve", "n", "--rounds", "3"), "--curve draws one round"),
}


@pytest.mark.parametrize(("arguments", "words"), BAD.values(), ids=BAD)
def test_every_mistake_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert words in refused(capsys, *arguments)


@pytest.mark.exhaust
def test_a_curve_tells_how_many_of_its_points_are_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []

    @contextmanager
    def watched(*, hidden: bool) -> Iterator[Callable[[str, int, int], None]]:
        assert not hidden
        yield lambda step, done, total: told.append((done, total))

    monkeypatch.setattr("dovetail.cli.account.progress_bar", watched)
    assert invoke(["account", "--epsilon0", "1", "--n", "1000", "--delta", "1e-5", "--curve", "n", "--json"]) == 0
    points = len(json.loads(capsys.readouterr().out)["curve"]["n"])
    assert told == [(done, points) for done in range(points)]


@pytest.mark.exhaust
def test_every_public_group_has_its_own_guarantee_and_all_have_the_weakest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["account", "--epsilon0", "1", "--delta", "1e-6", "--randomizer", "krr", "--k", "4"]
    assert invoke([*asked, "--group", "town=2e4,15000", "--group", "village=90", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    town, village = answer["groups"]
    assert town["epsilon"] == amplify(KRR(4, 1.0), n=20_000, honest=15_000, delta=1e-6).epsilon
    assert answer["epsilon"] == village["epsilon"] == amplify(KRR(4, 1.0), n=90, delta=1e-6).epsilon
    assert (answer["weakest"], answer["n"]) == ("village", 20_090)
    assert village["attack_lower"] <= village["epsilon"] < village["colluding"] == 1.0
    table = tmp_path / "groups.csv"
    table.write_text("name,n,honest\ntown,20000,15000\nvillage,90,\n")
    assert invoke([*asked, "--groups-file", str(table), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer
    assert invoke([*asked, "--group", "town=20000"]) == 0
    assert "everybody, whatever her group" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "give --n"),
        (("--group", "town"), "--group must be NAME=PEOPLE"),
        (("--group", "town=1.5"), "`n of town` must be"),
        (("--group", "town=many"), "`n of town` must be"),
        (("--group", "town=5,9"), "`honest of town` must be"),
        (("--group", "town=5", "--group", "town=6"), "a name of its own"),
        (("--group", "town=5", "--n", "10"), "take no --n"),
        (("--group", "town=5", "--rounds", "2"), "no --rounds"),
        (("--group", "town=5", "--groups-file", "x.csv"), "not both"),
        (("--groups-file", "nowhere.csv"), "cannot be read"),
    ],
)
def test_groups_that_are_none_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...], message: str
) -> None:
    assert invoke(["account", "--epsilon0", "1", "--delta", "1e-6", *given]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


@pytest.mark.parametrize("text", ["", "name,n\n", "people\n5\n", "name,n,size\na,5,6\n"])
def test_a_table_of_groups_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    table = tmp_path / "groups.csv"
    table.write_text(text)
    assert invoke(["account", "--epsilon0", "1", "--delta", "1e-6", "--groups-file", str(table)]) == 2
    assert "must have" in capsys.readouterr().err
