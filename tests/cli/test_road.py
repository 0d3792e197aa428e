"""One road from an ugly table to a report: plan, check, run join up, and every command that is printed works."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.messy_tables import TABLES as MESSY
from tests.cli.ugly_tables import JA, NEIN, TABLES, Ugly, umfrage
from tests.tiers import one_in

from dovetail.cli.main import invoke
from dovetail.job.config import load_config

PASTED = re.compile(r"^ +(dovetail .*)$", re.MULTILINE)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], command: str | list[str]) -> str:
    """What a command prints, typed as it stands."""
    words = shlex.split(command)[1:] if isinstance(command, str) else command
    assert invoke(words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The same as JSON."""
    found: dict[str, Any] = json.loads(said(capsys, [*words, "--json"]))
    return found


def stopping(printed: dict[str, Any]) -> list[str]:
    return [problem["what"] for problem in printed["problems"] if problem["status"] == "stops"]


@pytest.mark.exhaust
@pytest.mark.parametrize("ugly", TABLES, ids=lambda ugly: ugly.name)
def test_an_ugly_table_becomes_a_report_in_at_most_six_commands(
    ugly: Ugly, capsys: pytest.CaptureFixture[str]
) -> None:
    ugly.write(Path("survey.csv"))
    plan = told(capsys, "plan", *ugly.plan, "--out", "plan.toml")
    printed, commands = said(capsys, ["check", "survey.csv", *ugly.arguments, "--plan", "plan.toml"]), 2
    while "Decide before you run" in printed:
        (command,) = chosen(printed, ugly) or ["nothing to paste"]
        printed, commands = said(capsys, command), commands + 1
    report = told(capsys, *shlex.split(PASTED.findall(printed)[-1])[1:])
    printed = said(capsys, PASTED.findall(printed)[-1] + " --force")
    (after,) = re.findall(r"^next +(.*?)\s*$", printed, re.MULTILINE)
    released = told(capsys, *shlex.split(PASTED.findall(said(capsys, after))[-1])[1:])
    assert commands + 3 <= 6 + (len(ugly.chosen) > 1)  # the rehearsal, and two commands to a release
    assert released["mode"] == "release" and Path("survey-release/sanitized.parquet").is_file()
    assert report["local"]["epsilon"] == plan["epsilon0"] and report["randomizer"]["name"] == plan["randomizer"]
    overall = report["estimates"]["overall"]
    assert report["collection"]["n"] == ugly.n
    assert dict(zip(overall["labels"], overall["truth"], strict=True)) == pytest.approx(ugly.truth)


def chosen(printed: str, ugly: Ugly) -> list[str]:
    """The first command that stands below words that a person chooses."""
    below = re.findall(r"^ +(.*):\n +(dovetail check .*--set.*)$", printed, re.MULTILINE)
    return [command for words, command in below if words in ugly.chosen][:1]


def test_thirty_seven_spellings_of_yes_and_no_are_taken_for_what_they_mean_and_the_rest_stands_to_be_filled_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    umfrage(Path("survey.csv"))
    arguments = ["check", "survey.csv", "--private", "Rauchen Sie?", "--categories", "ja,nein"]
    printed = said(capsys, arguments)
    assert len(JA) + len(NEIN) == 37
    assert "12 values are not among the declared categories: 'vielleicht'" in " ".join(printed.split())
    text = Path("survey.toml").read_text()
    read = re.findall(r'^"(.*)" = "(ja|nein)"  # [\d,]+$', text, re.MULTILINE)
    assert {label: sum(one == label for _, one in read) for label in ("ja", "nein")} == {"ja": 18, "nein": 17}
    assert re.findall(r'^#"(.*)" = ""  # (\d+)$', text, re.MULTILINE) == [("vielleicht", "12")]
    assert "and 31 more" in printed and "    all of them: " not in printed and "--full lists" in printed
    full = said(capsys, [*arguments, "--full"])
    assert all(repr(spelling) in full for spelling in (*JA[1:], *NEIN[1:]))
    filled = text.replace('#"vielleicht" = ""', '"vielleicht" = "nein"')
    Path("survey.toml").write_text(filled)
    assert not any("declared" in what for what in stopping(told(capsys, "check", "survey.toml")))


EVERY = [
    *((one.name, one.write, one.arguments) for one in MESSY),
    *((one.name, one.write, one.arguments) for one in TABLES),
]


@pytest.mark.exhaust
@pytest.mark.parametrize(("name", "write", "arguments"), one_in(5, EVERY), ids=[case[0] for case in EVERY])
def test_every_remedy_that_is_a_command_works_when_pasted(
    name: str, write: Any, arguments: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Path("my survey's table.csv"))
    printed = said(capsys, ["check", "my survey's table.csv", *arguments])
    config = Path("my survey's table.toml")
    before = config.read_text()
    settle(capsys, config, before, printed, told(capsys, "check", "my survey's table.csv", *arguments))
    config.write_text(before)
    settle(capsys, config, before, said(capsys, ["check", str(config)]), told(capsys, "check", str(config)))


def settle(
    capsys: pytest.CaptureFixture[str], config: Path, before: str, printed: str, document: dict[str, Any]
) -> None:
    """Each fix is printed as a command, and the problem that it is for stops nothing afterwards."""
    commands = PASTED.findall(printed)
    for problem in document["problems"]:
        for fix in problem["fixes"]:
            words = [word for line in fix["set"] for word in ("--set", line)]
            command = shlex.join(["dovetail", "check", str(config), *words])
            assert command in commands
            config.write_text(before)
            said(capsys, command)
            after = told(capsys, "check", str(config))
            assert problem["what"] not in stopping(after), fix
    shown = [command for command in commands if command.startswith("dovetail plan-shuffle ")]
    for command in shown:
        assert "smallest" in said(capsys, command)
    assert len(commands) == 1 + len(shown) + sum(len(problem["fixes"]) for problem in document["problems"])
    config.write_text(before)
    last = shlex.split(commands[-1])
    assert last[:2] == ["dovetail", "check" if document["stops"] else "run"]
    said(capsys, commands[-1])
    shutil.rmtree(f"{config.stem}-report", ignore_errors=True)


@pytest.mark.exhaust
def test_check_offers_private_columns_by_commands_that_work(capsys: pytest.CaptureFixture[str]) -> None:
    umfrage(Path("survey.csv"))
    commands = PASTED.findall(said(capsys, ["check", "survey.csv"]))
    offered = [command for command in commands if "--private" in command]
    assert len(offered) == 3 and any("Rauchen" in command for command in offered)
    for command in offered:
        said(capsys, command)  # without --force: nobody has changed what `check` wrote


@pytest.mark.exhaust
def test_check_replaces_what_it_wrote_and_nothing_that_a_person_has_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    umfrage(Path("survey.csv"))
    for column in ("Alter", "Rauchen Sie?"):
        said(capsys, ["check", "survey.csv", "--private", column])
    Path("survey.toml").write_text(Path("survey.toml").read_text().replace("rehearsal", "release"))
    assert invoke(["check", "survey.csv", "--private", "Alter"]) == 2
    assert "exists already; use --force" in capsys.readouterr().err
    said(capsys, ["check", "survey.csv", "--private", "Alter", "--force"])
    said(capsys, ["check", "survey.toml", "--set", "unconfirmed = []"])
    assert invoke(["check", "survey.csv", "--private", "Alter"]) == 2


def test_decisions_are_taken_at_once_too(capsys: pytest.CaptureFixture[str]) -> None:
    TABLES[1].write(Path("t.csv"))
    decided = ['missing = "drop"', "clip = true", 'labels."hours of sleep".99 = ""']
    words = [word for line in decided for word in ("--set", line)]
    arguments = ["--private", "hours of sleep", "--lower", "0", "--upper", "24", *words]
    printed = told(capsys, "check", "t.csv", *arguments)
    assert stopping(printed) == [] and stopping(told(capsys, "check", "t.toml")) == []
    settled = [one["remedy"] for one in printed["problems"] if one["status"] == "settled"]
    assert any("as `clip` says" in one for one in settled) and any("as `missing` says" in one for one in settled)


PLAN = """schema_version = 1
mode = "rehearsal"
[data]
path = "FILL IN.csv"
private = "FILL IN"
categories = ["FILL IN 1", "FILL IN 2"]
[randomize]
randomizer = "krr"
epsilon = 2.5
[promise]
delta = 1e-6
"""
MISTAKES = {
    "a plan of another number of answers": (
        ["--categories", "a,b,c"],
        "--categories must name the 2 of the plan, got 3",
    ),
    "an epsilon beside a plan": (["--epsilon", "1"], "--epsilon is what the plan says"),
    "no line of TOML": (["--set", "missing = drop"], "--set must be a line of TOML"),
    "no key": (["--set", "mising = 'drop'"], "unknown key"),
    "no such column": (["--set", "labels.nobody.x = 'y'"], "has no column 'nobody'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = MISTAKES[mistake]
    Path("t.csv").write_text("answer\n" + "a\nb\n" * 30)
    Path("plan.toml").write_text(PLAN)
    assert invoke(["check", "t.csv", "--private", "answer", "--plan", "plan.toml", *arguments]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and message in lines[0], lines
    assert not Path("t.toml").exists()


def test_the_numbers_of_a_plan_are_those_of_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("answer\n" + "a\nb\n" * 30)
    Path("plan.toml").write_text(PLAN)
    said(capsys, ["check", "t.csv", "--private", "answer", "--plan", "plan.toml"])
    found = load_config("t.toml")
    assert found.randomize is not None
    assert (found.randomize.epsilon, found.promise.delta, found.data.categories) == (2.5, 1e-6, ["a", "b"])


def test_what_is_no_plan_is_refused_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("answer\n" + "a\nb\n" * 30)
    said(capsys, ["check", "t.csv", "--private", "answer"])
    assert invoke(["check", "t.csv", "--plan", "t.toml", "--force"]) == 2
    assert "t.toml: is no plan as `dovetail plan --out` writes it" in capsys.readouterr().err


@pytest.mark.exhaust
def test_a_plan_within_groups_takes_the_public_column_and_says_which_it_lacks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    TABLES[2].write(Path("t.csv"))
    asked = ["plan", *TABLES[2].plan, "--smallest-group", "100", "--n", "450", "--out", "plan.toml"]
    asked.remove("--error"), asked.remove("0.1")
    said(capsys, asked)
    private = ["check", "t.csv", "--private", 'Q1 \\ "satisfied"', "--plan", "plan.toml"]
    assert "the plan leaves `shuffle.groups.labels` open" in stopping(told(capsys, *private))
    assert stopping(told(capsys, *private, "--public", "region")) == []
    assert 'labels = "region"' in Path("t.toml").read_text()
