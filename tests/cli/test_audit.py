"""`dovetail audit`: verdicts in words and JSON, files of claims, and the exit status that stops a build."""

import json
import sys
from pathlib import Path

import pytest

from dovetail.cli.main import invoke

IMPOSSIBLE = ["--epsilon0", "8", "--n", "1000", "--delta", "1e-5", "--epsilon", ".86"]
FILE = """
[[claim]]
name = "a formula of public code"
epsilon0 = 8
n = 1000
delta = 1e-5
epsilon = 0.858
expect = "impossible"
source = "https://example.org"

[[claim]]
epsilon0 = [0.1, 0.2]
epsilon = 0.3
"""


def claims(tmp_path: Path, text: str, name: str = "claims.toml") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def test_an_impossible_claim_has_status_1_and_says_what_the_attack_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["audit", "claim", *IMPOSSIBLE, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "impossible" and 7.99 < document["lower"] <= document["upper"] <= 8.0
    assert document["source"] and document["sentence"].startswith("impossible: this attack needs at least 7.99")
    assert invoke(["audit", "claim", *IMPOSSIBLE]) == 1
    assert "impossible: this attack needs at least 7.99" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--noise", "laplace"], "--noise needs --scale: "),
        (["--epsilon0", "1", "--honest", "5"], "--honest goes with --n, the people"),
        (
            ["--epsilon0", "1", "--scale", "3"],
            "takes no --scale; of such numbers it takes --n, --honest, --neighbours",
        ),
        ([], "a claim needs --epsilon0 (of one report) or --noise (on a number), and not both."),
    ],
)
def test_a_fault_names_options_and_no_keys(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["audit", "claim", "--epsilon", "1", *words]) == 2
    found = capsys.readouterr().err
    assert said in found and "`" not in found


def test_what_was_not_told_is_unsupported_and_fails_strictly(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["audit", "claim", *IMPOSSIBLE, "--randomizer", "unknown"]
    assert invoke(asked) == 0 and invoke([*asked, "--strict"]) == 1
    assert "unsupported: " in capsys.readouterr().out


def test_several_questions_are_several_options(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["audit", "claim", "--epsilon0", "0,1", "--epsilon0", ".2", "--epsilon", ".3", "--json"]
    assert invoke(asked) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "proved"


def test_a_file_fails_where_a_verdict_is_not_the_expected_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["audit", "claims", claims(tmp_path, FILE), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in document["claims"]] == ["impossible", "proved"] and document["failed"] == []
    hoped = FILE.replace('expect = "impossible"', 'expect = "proved"')
    assert invoke(["audit", "claims", claims(tmp_path, hoped)]) == 1
    assert "a formula of public code: impossible: " in " ".join(capsys.readouterr().out.split())
    silent = FILE.replace('expect = "impossible"\n', "")
    assert invoke(["audit", "claims", claims(tmp_path, silent)]) == 1


def test_a_file_may_be_json_and_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = {"claim": [{"epsilon": 4, "noise": "unbiased", "scale": 2}]}
    place = claims(tmp_path, json.dumps(unknown), "claims.json")
    assert invoke(["audit", "claims", place]) == 0 and invoke(["audit", "claims", place, "--strict"]) == 1
    assert "claim 1: unknown: " in capsys.readouterr().out


BROKEN = {
    "no TOML": ("x", "is not TOML"),
    "nothing": ("", "must hold [[claim]] tables"),
    "something else": ("[claims]\nepsilon = 1", "must hold [[claim]] tables"),
    "an unknown key": ("[[claim]]\nepsilon = 1\nepsilonO = 1", "unknown key `epsilonO`; did you mean 'epsilon"),
    "no claim": ("[[claim]]\nepsilon0 = 1", "claim 'claim 1' needs `epsilon`"),
    "no verdict": ('[[claim]]\nepsilon = 1\nexpect = "true"', "`expect` must be one of impossible"),
    "a number for a name": ("[[claim]]\nepsilon = 1\nname = 5", "must be texts"),
    "a wrong number": (
        '[[claim]]\nname = "ours"\nepsilon = 1\nepsilon0 = -1',
        "claims.toml: claim 'ours': `epsilon0`",
    ),
    "one name twice": ('[[claim]]\nname = "a"\nepsilon = 1\n' * 2, "two claims have the name 'a'"),
}


@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_file_is_one_line_and_status_2(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["audit", "claims", claims(tmp_path, text)]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


@pytest.mark.parametrize("name", ["absent.toml", "absent.json"])
def test_an_absent_file_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["audit", "claims", str(tmp_path / name)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_wrong_json_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["audit", "claims", claims(tmp_path, "{", "claims.json")]) == 2
    assert capsys.readouterr().err.endswith("is not JSON.\n")


def test_a_bad_option_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["audit", "claim", "--epsilon", "1", "--epsilon0", "-1"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --epsilon0 must be a number above 0") and error.count("\n") == 1


MINE = """
import random
coins, number = random.Random(1), 5
def clear(value): return value
def honest(value): return value if coins.random() < 0.7 else 1 - value
def fails(value): raise KeyError(value)
class Box:
    def __init__(self, chance): self.chance = chance
    def report(self, value): return value if coins.random() >= self.chance else 0
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the folder that the verb is called in, with a name of its own."""
    monkeypatch.chdir(tmp_path)
    name = f"mine_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MINE)
    return name


def test_a_mechanism_that_answers_in_clear_raises_an_alarm(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--inputs", "[0, 1]", "--epsilon", "1", "--calls", "2e3"]
    assert invoke(["audit", "mechanism", f"{mine}:clear", *asked, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["alarm"] and document["lower"] > 1.0 and document["wrong"] == 0
    assert invoke(["audit", "mechanism", f"{mine}:honest", *asked]) == 0
    assert "no alarm: " in capsys.readouterr().out


def test_too_few_calls_have_a_status_of_their_own(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["audit", "mechanism", f"{mine}:clear", "--inputs", "[0, 1]", "--epsilon", "12", "--calls", "1000"]
    assert invoke(asked) == 3
    error = capsys.readouterr().err
    assert "`calls` must be at least " in error and error.count("\n") == 1


def test_a_program_that_answers_lines_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys, json\nfor line in sys.stdin:\n    print(json.dumps({'answer': json.loads(line)}), flush=True)\n"
    )
    (tmp_path / "device.py").write_text(code)
    command = f"{sys.executable} {tmp_path / 'device.py'}"
    asked = ["audit", "mechanism", "--command", command, "--between", "0,3", "--epsilon", "1", "--calls", "600"]
    assert invoke([*asked, "--seed", "1", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["alarm"] and document["wrong"] == 0 and len(document["inputs"]) == 2
    again = invoke([*asked, "--seed", "1", "--json"]), json.loads(capsys.readouterr().out)
    assert again == (1, document)


def test_all_words_are_counted_where_the_randomness_is_an_argument(
    mine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--inputs", "[0, 1]", "--epsilon", "1", "--words", "8", "--json"]
    assert invoke(["audit", "mechanism", f"{mine}:lambda value, word: value * (word == 7)", *asked]) == 1
    assert json.loads(capsys.readouterr().out)["lower"] == "inf"


def test_an_expression_makes_the_mechanism(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--inputs", "[0, 1]", "--epsilon", "1", "--calls", "600"]
    assert invoke(["audit", "mechanism", f"{mine}:Box(0.0).report", *asked]) == 1
    assert invoke(["audit", "mechanism", f"{mine}:lambda: Box(0.0).report", "--devices", *asked]) == 1
    assert capsys.readouterr().out.count("alarm: at least ") == 2


UNUSABLE = {
    "no callable": (["mine", "--inputs", "[0, 1]"], "must be MODULE:CALLABLE"),
    "no module": (["no_such_module:f", "--inputs", "[0, 1]"], "cannot be loaded: ModuleNotFoundError"),
    "no attribute": (["MINE:absent", "--inputs", "[0, 1]"], "cannot be loaded: NameError"),
    "a number": (["MINE:number", "--inputs", "[0, 1]"], "must be a callable of one input, got 5"),
    "nothing": (["--inputs", "[0, 1]"], "needs MODULE:CALLABLE or --command"),
    "no inputs": (["MINE:clear"], "needs --inputs or --between"),
    "no range": (["MINE:clear", "--between", "0"], "--between must be two numbers"),
    "an empty range": (["MINE:clear", "--between", "1,1"], "a range must be two numbers, the smaller first"),
    "no program": (["--command", "no-such-program-here", "--inputs", "[0, 1]"], "cannot be started"),
    "no command": (["--command", "'", "--inputs", "[0, 1]"], "must be a program with its arguments"),
    "no device": (["MINE:clear", "--devices", "--inputs", "[0, 1]"], "no device was made: TypeError"),
    "no list": (["MINE:clear", "--inputs", "x"], "--inputs must be a JSON list"),
    "one input": (["MINE:clear", "--inputs", "[0]"], "--inputs must be two or more"),
    "it fails": (["MINE:fails", "--inputs", "[0, 1]"], "the mechanism failed on "),
}


@pytest.mark.parametrize(("arguments", "words"), UNUSABLE.values(), ids=list(UNUSABLE))
def test_a_mechanism_that_cannot_be_called_is_one_line(
    arguments: list[str], words: str, mine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [argument.replace("MINE", mine) for argument in arguments]
    assert invoke(["audit", "mechanism", *named, "--epsilon", "1", "--calls", "1000"]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
