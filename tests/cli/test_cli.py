"""The command line reads and writes plain files, speaks JSON, and answers every mistake with one line."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer.main
from tests.job.surveys import survey
from tests.tiers import one_in
from tests.waiting import PATIENCE

import dovetail as dt
from dovetail.cli.main import app, invoke
from dovetail.cli.verbs import GROUPS
from dovetail.cli.verbs import VERBS as NAMED
from dovetail.core.stages import RANDOMIZERS

DOVETAIL = [sys.executable, "-m", "dovetail"]
VERBS = [
    "run",
    "demo",
    "plan",
    "check",
    "plan-shuffle",
    "plan-strings",
    "plan-questions",
    "compare",
    "randomize",
    "shuffle",
    "estimate",
    "account",
    "compose",
    "leak",
    "trace",
    "memorize",
    "study",
    "collect",
]

CONFIG = """schema_version = 1
mode = "{mode}"
[data]
path = "survey.csv"
person = "id"
private = "secret"
public = ["age"]
categories = ["no", "yes"]
[randomize]
epsilon = 2.0
[shuffle]
shuffler = "within_groups"
groups = {{ labels = "age" }}
[estimate]
by = ["age"]
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a survey and two configurations, and a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    survey().write_csv("survey.csv")
    Path("rehearsal.toml").write_text(CONFIG.format(mode="rehearsal") + "[attack]\ntrials = 3\n")
    Path("release.toml").write_text(CONFIG.format(mode="release"))
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON that a verb prints."""
    assert invoke([*arguments, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


# --- help ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_help_is_complete_for_every_verb(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--json" in text and "Traceback" not in text
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    assert command.help and all(parameter.help for parameter in command.params), command.params


@pytest.mark.parametrize("verb", NAMED)
def test_the_overview_shows_the_first_sentence_of_each_help(verb: str) -> None:
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    assert command.get_short_help_str(1000) == NAMED[verb][1]


@pytest.mark.exhaust
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["--hlep"], ["rn"]], ids=lambda it: it[0])
def test_the_overview_and_its_mistakes_load_no_arrays_tables_or_compilers(arguments: list[str]) -> None:
    program = (
        f"import sys; from dovetail.cli.main import invoke; invoke({arguments!r}); "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'polars', 'scipy', 'numba', 'pydantic')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_verb_prints_the_help_and_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([]) == 2
    text = capsys.readouterr().out
    for verb in VERBS:
        assert verb in text
    assert invoke(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"dovetail {dt.__version__}"


def test_the_overview_groups_the_verbs_and_h_asks_for_help_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["-h"]) == 0
    text = capsys.readouterr().out
    places = [text.index(f"\n{heading}:\n") for heading in GROUPS]
    assert places == sorted(places) and text.index("  demo ") < text.index("  randomize ") < text.index("  study ")
    for verb in (["plan"], ["attack", "majority"], ["collect", "new"], ["trace", "fit"]):
        assert invoke([*verb, "-h"]) == 0
        text = capsys.readouterr().out
        assert text.startswith("Usage:") and not re.search(r"<(float|int|str|text)", text)
    assert invoke(["plan", "-h"]) == 0
    assert re.search(r"--error NUMBER .*\n", capsys.readouterr().out)


@pytest.mark.parametrize("written", ["0.95", "0,95", "95%", "95 %", "9.5e-1"])
def test_a_probability_is_understood_as_people_write_it(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "leak", "--n", "5", "--k", "3", "--p", written)
    assert told["randomized"] == pytest.approx(0.95, rel=1e-14)


@pytest.mark.exhaust
def test_a_percentage_is_no_count_no_epsilon_and_no_error_of_a_mean(capsys: pytest.CaptureFixture[str]) -> None:
    mean = ["plan", "--question", "mean", "--lower", "0", "--upper", "1", "--n", "1000", "--error"]
    for wrong in ([*mean, "3%"], [*ACCOUNT, "--epsilon0", "3%"], ["leak", "--n", "5%", "--k", "3", "--p", "0.5"]):
        assert invoke(wrong) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "must be a number" in line
    share = ["plan", "--question", "frequency", "--k", "3", "--n", "1000", "--epsilon0", "1", "--randomizer", "krr"]
    everybody = document(capsys, *share, "--honest", "100%")["central"]
    assert everybody["honest_n"] == 1000
    assert document(capsys, *share, "--honest", "90%")["central"]["honest_n"] == 900


# --- verbs ---------------------------------------------------------------------------------------------------------


def test_run_writes_a_rehearsal_and_prints_its_document(capsys: pytest.CaptureFixture[str]) -> None:
    printed = document(capsys, "run", "rehearsal.toml", "--out", "out")
    assert printed == json.loads(Path("out/report.json").read_text())
    assert invoke(["run", "rehearsal.toml", "--out", "out"]) == 2
    assert "use --force" in capsys.readouterr().err
    assert invoke(["run", "rehearsal.toml", "--out", "out", "--force"]) == 0
    shown = capsys.readouterr().out
    assert "out/report.html" in shown and len(shown.splitlines()) <= 20 and len(shown.split()) <= 150
    assert "next" in shown and "dovetail run rehearsal.toml --out rehearsal-release" in shown
    assert invoke(["run", "rehearsal.toml", "--out", "out", "--force", "--full"]) == 0
    assert "What each step promises" in capsys.readouterr().out
    assert invoke(["run", "release.toml", "--out", "given"]) == 0
    *_, after = capsys.readouterr().out.splitlines()
    assert invoke(after.split()[2:]) == 0 and "estimate" in after


@pytest.mark.exhaust
def test_a_release_run_twice_gives_the_same_table(capsys: pytest.CaptureFixture[str]) -> None:
    document(capsys, "run", "release.toml", "--out", "one")
    document(capsys, "run", "release.toml", "--out", "two")
    assert Path("one/sanitized.parquet").read_bytes() == Path("two/sanitized.parquet").read_bytes()
    fresh = document(capsys, "run", "release.toml", "--out", "three", "--new-release")
    assert fresh["local"]["epsilon"] == 4.0
    assert Path("one/sanitized.parquet").read_bytes() != Path("three/sanitized.parquet").read_bytes()


@pytest.mark.exhaust
def test_the_default_output_folder_is_named_after_the_configuration() -> None:
    assert invoke(["run", "rehearsal.toml"]) == 0
    assert Path("rehearsal-report/report.html").exists()


def test_the_stages_run_on_files(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(
        capsys, "randomize", "survey.csv", "--private", "secret", "--categories", "no,yes", "--epsilon", "3",
        "--public", "age", "--out", "y.parquet",
    )  # fmt: skip
    assert made["n"] == 600 and made["local"]["epsilon"] == 3.0 and made["entropy"] == "device"
    assert pl.read_parquet("y.parquet").columns == ["age", "report"]
    shuffled = document(
        capsys, "shuffle", "y.parquet", "--shuffler", "best", "--alpha", "4", "--labels", "age", "--out", "z.parquet"
    )
    assert shuffled["shuffler"] == "within_groups" and shuffled["alpha"] == 0.0
    estimated = document(capsys, "estimate", "z.parquet", "--by", "age")
    truth = (survey()["secret"] == "yes").mean()
    overall = estimated["overall"]
    assert abs(overall["value"][1] - truth) < 6.1 * overall["standard_error"][1]
    assert [entry["group"] for entry in estimated["groups"]] == ["20", "21", "22", "23"]
    assert all(entry["bias_bound"] == 0.0 for entry in estimated["groups"])


@pytest.mark.parametrize("shuffler", ["within_groups", "mallows", "noisy_sort", "best"])
def test_a_shuffle_of_people_without_company_says_that_it_protects_nobody(
    shuffler: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame({"report": ["a", "b"] * 20, "who": range(40)}).write_csv("alone.csv")
    told = document(
        capsys,
        "shuffle",
        "alone.csv",
        "--labels",
        "who",
        "--alpha",
        "1",
        "--shuffler",
        shuffler,
        "--out",
        "z.parquet",
    )
    assert any("nothing is shuffled" in caveat for caveat in told["caveats"])


@pytest.mark.parametrize("randomizer", [kind.name for kind in RANDOMIZERS if kind.question == "frequency"])
def test_every_frequency_randomizer_survives_the_way_through_files(
    randomizer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document(
        capsys, "randomize", "survey.csv", "--private", "town", "--epsilon", "4", "--randomizer", randomizer,
        "--categories", "north,south", "--out", "y.parquet", "--seed", "1",
    )  # fmt: skip
    made = document(capsys, "shuffle", "y.parquet", "--out", "z.parquet", "--seed", "2")
    assert made["entropy"] == "simulation" and made["caveats"]
    overall = document(capsys, "estimate", "z.parquet")["overall"]
    truth = (survey()["town"] == "south").mean()
    assert abs(overall["value"][1] - truth) < 6.1 * overall["standard_error"][1]


def test_numbers_survive_the_way_through_files(capsys: pytest.CaptureFixture[str]) -> None:
    document(
        capsys, "randomize", "survey.csv", "--private", "hours", "--epsilon", "4", "--randomizer", "laplace",
        "--lower", "0", "--upper", "10", "--out", "y.parquet",
    )  # fmt: skip
    overall = document(capsys, "estimate", "y.parquet")["overall"]
    truth = survey()["hours"].mean()
    assert abs(overall["value"][0] - truth) < 6.1 * overall["standard_error"][0] + 0.005


def test_a_table_is_randomized_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("german.csv").write_bytes("id;Größe\n1;1,5\n2;2,5\n".encode("cp1252"))
    asked = ["--private", "Größe", "--lower", "0", "--upper", "3", "--randomizer", "laplace", "--epsilon", "1"]
    how = ["--separator", ";", "--text-encoding", "windows-1252", "--decimal", ","]
    assert document(capsys, "randomize", "german.csv", *asked, *how, "--out", "y.parquet")["n"] == 2
    assert invoke(["randomize", "german.csv", *asked, "--out", "z.parquet"]) == 2
    assert "give its --text-encoding" in (error := capsys.readouterr().err) and "[data]" not in error


def test_a_file_is_not_read_as_something_else_than_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    made = ["--randomizer", "krr", "--epsilon", "2", "--categories", "no,yes"]
    assert invoke([*RANDOMIZE, "--epsilon", "2", "--categories", "no,yes", "--seed", "1"]) == 0
    assert invoke(["estimate", "y.parquet", *made]) == 0
    capsys.readouterr()
    assert invoke(["estimate", "y.parquet", *made[:3], "5", *made[4:]]) == 2
    assert "were made with epsilon 2.0, not 5.0" in capsys.readouterr().err


def test_a_table_that_does_not_say_how_it_was_made_is_estimated_when_told(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"report": ["a"] * 70 + ["b"] * 30}).write_csv("reports.csv")
    assert invoke(["estimate", "reports.csv"]) == 2
    assert "does not say how its reports were made" in capsys.readouterr().err
    told = ["estimate", "reports.csv", "--randomizer", "krr", "--epsilon", "2", "--categories", "a,b"]
    value = document(capsys, *told)["overall"]["value"]
    assert value[0] == pytest.approx(float(dt.KRR(k=2, epsilon=2.0).channel().invert([0.7, 0.3])[0]))


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"report": ["[/b]"] * 70 + ["[red]b"] * 30, "town": ["[bold]x"] * 100}).write_parquet("r.parquet")
    told = ["estimate", "r.parquet", "--randomizer", "krr", "--epsilon", "2", "--categories", "[/b],[red]b", "--by",
            "town"]  # fmt: skip
    assert invoke(told) == 0
    assert "[/b]" in (text := capsys.readouterr().out) and "[red]b" in text and "[bold]x" in text


def test_account_answers_forwards_and_backwards(capsys: pytest.CaptureFixture[str]) -> None:
    forward = document(capsys, "account", "--epsilon0", "2", "--n", "1e5", "--delta", "1e-6", "--honest", "90000")
    expected = dt.amplify(2.0, n=100_000, delta=1e-6, honest=90_000)
    assert forward["epsilon"] == expected.epsilon == forward["central"]["honest"]
    assert forward["numeric_lower"] <= forward["epsilon"] and forward["attack_lower"] <= forward["epsilon"]
    assert forward["central"]["all"] <= forward["central"]["honest"] <= forward["central"]["colluding"] == 2.0
    assert forward["bounds"]["stronger clones"] <= forward["bounds"]["clones"]
    adaptive = document(capsys, "account", "--epsilon0", "2", "--n", "1e5", "--delta", "1e-6", "--adaptive")
    assert adaptive["bounds"]["stronger clones"]["value"] is None and "clones" in adaptive["method"]
    backward = document(capsys, "account", "--invert", "--epsilon", "0.5", "--n", "100000", "--delta", "1e-6")
    again = document(capsys, "account", "--epsilon0", repr(backward["epsilon0"]), "--n", "100000", "--delta", "1e-6")
    assert again["epsilon"] <= 0.5 < again["epsilon"] * 1.01
    few = document(
        capsys, "account", "--invert", "--epsilon", "0.5", "--n", "100000", "--honest", "1000", "--delta", "1e-6"
    )
    assert few["epsilon0"] < backward["epsilon0"]


def test_leak_prints_the_four_vulnerabilities(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "leak", "--n", "100", "--k", "3", "--p", "0.8")
    assert told["prior"] == pytest.approx(1 / 3) and told["randomized"] == pytest.approx(0.8)
    assert told["shuffled"] == pytest.approx(0.3826, abs=5e-5)  # printed in Jurado et al., figure 5
    assert told["randomized_shuffled"] == pytest.approx(0.1 + 0.7 * told["shuffled"])
    by_epsilon = document(capsys, "leak", "--n", "100", "--k", "3", "--epsilon0", "2")
    assert by_epsilon["randomized"] < 1.0


@pytest.mark.exhaust
def test_demo_compares_four_shufflers(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "demo", "--out", "demo")
    assert told["collection"]["n"] == 6366
    assert [evaluation["shuffler"] for evaluation in told["comparison"]] == [
        "identity",
        "uniform",
        "mallows",
        "within_groups",
    ]


def test_the_table_of_the_demo_is_written_without_a_rehearsal(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "demo", "--save-table", "redbook.csv")
    assert told["n"] == 6366 and pl.read_csv("redbook.csv").columns[:2] == ["id", "affair"]
    assert not Path("demo-report").exists() and told["next"] == "dovetail check redbook.csv --private affair"
    assert invoke(["demo", "--save-table", "redbook.csv"]) == 2
    capsys.readouterr()
    assert invoke(["demo", "--save-table", "redbook.csv", "--force"]) == 0
    assert told["next"] in capsys.readouterr().out


# --- mistakes ------------------------------------------------------------------------------------------------------

ACCOUNT = ["account", "--n", "1000", "--delta", "1e-6"]
RANDOMIZE = ["randomize", "survey.csv", "--private", "secret", "--out", "y.parquet"]
MISTAKES = {
    "keys in place of a folder": (["collect", "keys", "owner", "--out", "."], "is a folder; name a file in it"),
    "unknown verb": (["rn"], "rn"),
    "unknown option": (["run", "rehearsal.toml", "--ot", "x"], "--ot"),
    "no configuration": (["run", "none.toml"], "none.toml: no such file"),
    "a directory as configuration": (["run", "."], "is a directory"),
    "epsilon0 missing": (ACCOUNT, "--epsilon0"),
    "epsilon0 zero": ([*ACCOUNT, "--epsilon0", "0"], "--epsilon0 must be"),
    "epsilon0 negative": ([*ACCOUNT, "--epsilon0=-1"], "--epsilon0 must be"),
    "epsilon0 infinite": ([*ACCOUNT, "--epsilon0", "inf"], "--epsilon0 must be"),
    "epsilon0 is text": ([*ACCOUNT, "--epsilon0", "two"], "--epsilon0"),
    "n a fraction": (["account", "--epsilon0", "1", "--n", "10.5", "--delta", "1e-6"], "--n must be"),
    "a column that the stream has not": (["demo", "--stream", "--private", "affair"], "--stream has none of it"),
    "n zero": (["account", "--epsilon0", "1", "--n", "0", "--delta", "1e-6"], "--n must be"),
    "delta one": (["account", "--epsilon0", "1", "--n", "10", "--delta", "1"], "--delta must be"),
    "more honest than people": ([*ACCOUNT, "--epsilon0", "1", "--honest", "2000"], "--honest must be"),
    "k one": (["leak", "--n", "10", "--k", "1", "--p", "0.9"], "--k must be"),
    "p and epsilon0": (["leak", "--n", "10", "--k", "3", "--p", "0.9", "--epsilon0", "1"], "give either --p or"),
    "epsilon zero": ([*RANDOMIZE, "--epsilon", "0"], "must be greater than 0"),
    "epsilon infinite": ([*RANDOMIZE, "--epsilon", "inf"], "must be"),
    "epsilon tiny": ([*RANDOMIZE, "--epsilon", "1e-300", "--categories", "no,yes"], "--epsilon"),
    "unknown category": ([*RANDOMIZE, "--epsilon", "1", "--categories", "no,maybe"], "not among the declared"),
    "undeclared categories": ([*RANDOMIZE, "--epsilon", "1"], "must declare `categories`"),
    "no such column": (["randomize", "survey.csv", "--private", "secrt", "--out", "y.parquet", "--epsilon", "1",
                        "--categories", "no,yes"], "did you mean 'secret'"),
    "reports as CSV": ([*RANDOMIZE[:-1], "y.csv", "--epsilon", "1", "--categories", "no,yes"], "use .parquet"),
    "out in a missing folder": ([*RANDOMIZE[:-1], "no/y.parquet", "--epsilon", "1", "--categories", "no,yes"],
                                "there is no folder no"),
    "no reports": (["shuffle", "survey.csv", "--out", "z.parquet"], "no column 'report'"),
    "alpha negative": (["shuffle", "survey.csv", "--out", "z.parquet", "--shuffler", "mallows", "--labels", "age",
                        "--alpha=-1"], "--alpha must be"),
    "groups for a uniform shuffle": (["shuffle", "survey.csv", "--out", "z.parquet", "--shuffler", "uniform",
                                      "--labels", "age"], "takes no groups"),
    "best without alpha": (["shuffle", "survey.csv", "--out", "z.parquet", "--labels", "age"], "needs `alpha`"),
    "options without a randomizer": (["estimate", "survey.csv", "--epsilon", "1"], "goes with --randomizer"),
    "categories missing": (["estimate", "survey.csv", "--randomizer", "krr", "--epsilon", "1"], "needs --categories"),
    "duplicate person": ([*RANDOMIZE, "--epsilon", "1", "--categories", "no,yes", "--person", "age"], "stand in"),
    "groups missing": (["shuffle", "survey.csv", "--out", "z.parquet", "--shuffler", "within_groups"],
                       "needs `groups`"),
    "estimate by an absent column": (["estimate", "survey.csv", "--randomizer", "krr", "--epsilon", "1",
                                      "--categories", "no,yes", "--by", "nothing"], "nothing"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_and_status_two(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, hint = MISTAKES[mistake]
    before = sorted(Path.cwd().rglob("*"))
    assert invoke(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), captured.err
    assert hint in lines[0] and "Traceback" not in captured.err
    assert sorted(path for path in Path.cwd().rglob("*") if "ledger" not in str(path)) == before


@pytest.mark.parametrize(
    ("mistake", "remedy"),
    [
        ("run survey.csv", "`dovetail check survey.csv --private COLUMN` writes its configuration"),
        ("plan", "Missing option '--question'. Choose from: frequency, mean"),
        ("plan --question mean --n 100 --epsilon 1", "--lower must be given for the question mean, with --upper"),
        (
            "plan --question frequency --n 100 --epsilon 1",
            "--k must be given for the question frequency",
        ),
        ("plan --question frequency --k 3 --n many --epsilon 1", "'--n': must be a number"),
        ("plan --question frequency --k 3 --n 99 --epsilon 1 --out no/plan.toml", "there is no folder no; make it"),
    ],
)
def test_a_new_user_s_mistake_is_answered_with_what_to_do(
    mistake: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(mistake.split()) == 2
    said = capsys.readouterr().err
    assert remedy in said and said.count("\n") == 1


def test_an_unexpected_fault_is_one_line_and_status_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dovetail.leak.vulnerability.vulnerability", lambda *a, **k: 1 / 0)
    assert invoke(["leak", "--n", "10", "--k", "3", "--p", "0.9"]) == 1
    assert capsys.readouterr().err.startswith("error: internal fault, ZeroDivisionError")


def test_a_refusal_of_the_system_names_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "reports.parquet")

    monkeypatch.setattr("dovetail.leak.vulnerability.vulnerability", refuse)
    assert invoke(["leak", "--n", "10", "--k", "3", "--p", "0.9"]) == 1
    assert capsys.readouterr().err == "error: reports.parquet: the system refused: Input/output error.\n"


def test_a_huge_value_is_not_repeated_and_the_remedy_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*ACCOUNT, "--epsilon0", "x" * 100_000]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and len(said) < 1300 and "see dovetail account --help" in said


# --- interruptions -------------------------------------------------------------------------------------------------


WORKING = """
import sys, time
import dovetail.job.rehearse, dovetail.job.attacks, dovetail.report.notebook
from dovetail.cli.main import invoke

def pause(*_, **__):
    print("working", flush=True)
    while True:  # until it is interrupted
        time.sleep(0.1)

place, name = sys.argv[1].rsplit(".", 1)
setattr(sys.modules[place], name, pause)
sys.exit(invoke(["run", "rehearsal.toml", "--out", "out"]))
"""


@pytest.mark.exhaust
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.parametrize("work", one_in(2, ["job.attacks.run_attack", "report.notebook.render_html"]))
def test_ctrl_c_leaves_nothing_and_says_so(work: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WORKING, f"dovetail.{work}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "working\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "interrupted; nothing was written" in err and "Traceback" not in err
    assert not Path("out").exists()
    assert not [path for path in Path.cwd().iterdir() if path.name.startswith(".out")]


@pytest.mark.exhaust
@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX")
def test_a_full_disk_leaves_nothing_and_says_so() -> None:
    program = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "from dovetail.cli.main import app, invoke; import dovetail.job.run; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
        "sys.exit(invoke(['run', 'rehearsal.toml', '--out', 'out']))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # so that no compiled code is written to a cache
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "could not be written" in done.stderr and "Traceback" not in done.stderr
    assert not Path("out").exists()
    assert not [path for path in Path.cwd().iterdir() if path.name.startswith(".out")]
