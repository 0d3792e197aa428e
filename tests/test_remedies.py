"""Remedies that messages name exist, and those that can be pasted are pasted: afterwards the fault is gone."""

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tomlkit
import typer.main
from tests.trees import tree_of

from dovetail.cli.main import app, invoke
from dovetail.core.question import QUESTIONS
from dovetail.core.stages import ATTACKS, RANDOMIZERS, SHUFFLERS
from dovetail.job.config import RunConfig
from dovetail.job.questions import QuestionsHead
from dovetail.table.data_section import DataSection

ROOT = Path(__file__).parent.parent / "src" / "dovetail"
COMMAND = re.compile(r"`(dovetail [^`]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9](?![\w-])")
KEY = re.compile(
    r"\[(data|randomize|shuffle|promise|estimate|attack|question|memoize|strings)\] (?:`(\w+)`|(\w+) = )"
)
# remedies with a value: a key of the configuration, or an option
LINE = (
    r"(?:(?:set|use|takes|needs) (?:\[(?P<section>\w+)\] )?|\[(?P<first>\w+)\] takes )"
    r"`?(?P<key>\w+)`?(?: in \[(?P<within>\w+)\])?(?: = | to )"
)
TOML = re.compile(LINE + r"(?P<value>\"[^\"]+\"|true|false|[\d.]*\d)(?: in \[(?P<beside>\w+)\])?")
VALUE = r"\"[^\"]+\"|\{\}|utf-16|spark|processes|full"
GIVEN = re.compile(rf"(?:use|give) (--[a-z-]+ (?:{VALUE})|--force|--new-release)")


def literals(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text with its line, {} where a value stands; docstrings are none."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    elif isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        yield node.lineno, "".join(map(str, parts))
    else:
        for child in ast.iter_child_nodes(node):
            yield from literals(child)


@cache
def texts() -> list[tuple[str, str]]:
    """Where each text of the program stands."""
    found = []
    for source in sorted(ROOT.rglob("*.py")):
        tree = tree_of(source)
        found += [(f"{source.relative_to(ROOT)}:{line}", text) for line, text in literals(tree)]
    return found


@cache
def options() -> dict[str, set[str]]:
    """The options of each verb, by its words."""
    command: Any = typer.main.get_command(app)
    found: dict[str, set[str]] = {}

    def walk(one: Any, path: str) -> None:
        found[path] = {name for each in one.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        for name, inner in getattr(one, "commands", {}).items():
            walk(inner, f"{path} {name}")

    walk(command, "dovetail")
    return found


def verb_of(words: Sequence[str]) -> str:
    """The longest beginning that is a verb."""
    return next((path for end in range(len(words), 0, -1) if (path := " ".join(words[:end])) in options()), "")


def test_every_command_in_a_message_is_a_verb_with_these_options() -> None:
    seen = 0
    for place, text in texts():
        for command in COMMAND.findall(text):
            words = command.split()
            if "{}" in words[1]:
                continue
            verb = verb_of(words)
            seen += 1
            assert len(verb.split()) > 1, (place, command)
            assert {*OPTION.findall(command)} <= options()[verb], (place, command)
            below = words[len(verb.split()) :]
            whole = not any(path.startswith(f"{verb} ") for path in options())
            assert whole or below in ([], ["{}"]), (place, command)
    assert seen > 30


def test_every_option_in_a_message_is_one_of_a_verb() -> None:
    known = {option for each in options().values() for option in each}
    named = {(option, place) for place, text in texts() for option in OPTION.findall(text)}
    assert len(named) > 300
    assert {(option, place) for option, place in named if option not in known} == set()


def keys(section: str) -> set[str]:
    """The keys that a section may have, those of mechanisms among them."""
    own: Any = RunConfig.model_fields[section].annotation if section != "data" else DataSection
    models = [own, *getattr(own, "__args__", ())]
    named = {name for model in models for name in getattr(model, "model_fields", {})}
    kinds: Any = {"randomize": RANDOMIZERS, "shuffle": SHUFFLERS, "attack": ATTACKS, "question": QUESTIONS}.get(
        section, ()
    )
    return named | {one.name for kind in kinds for one in kind.settings()}


def test_every_key_in_a_message_is_one_of_its_section() -> None:
    found = [(place, one[0], one[1] or one[2]) for place, text in texts() for one in KEY.findall(text)]
    assert len(found) > 15
    assert [one for one in found if one[2] not in keys(one[1]) | {*QuestionsHead.model_fields}] == []


# Messages whose remedy has a value, each provoked, mended by its own words, and gone.


@dataclass(frozen=True)
class Fault:
    """A command that is refused, and a part of what it says.

    Parameters
    ----------
    config : changes of a plain configuration, by sections; None where a section is to go
    table : text of the table
    command : without the name of the program
    after : what a person must still do beside the remedy
    """

    says: str
    config: dict[str, Any] = field(default_factory=dict)
    table: str | bytes = "id,x,y,t\n" + "".join(f"{i},{'ab'[i % 2]},{i % 5},1\n" for i in range(60))
    command: str = "run c.toml --ledger led --out {out}"
    after: str = ""


NUMBER = {"private": "y", "lower": 0.0, "upper": 5.0, "categories": None}
TRUSTED = {"randomize": None, "promise": {"trust": "shuffler", "epsilon": 1.0}}
FAULTS = [
    Fault("is UTF-16 text: set encoding", table="id,x,y\n1,a,0\n2,b,1\n3,a,1\n".encode("utf-16")),
    Fault("is UTF-16 text: give --text-encoding", table="id,x,y\n1,a,0\n2,b,1\n3,a,1\n".encode("utf-16"),
          command="randomize t.csv --private x --categories a,b --randomizer krr --epsilon 1 --out {out}.parquet"),
    Fault("give --separator", table="id;x;y\n1;a;0\n2;b;1\n3;a;1\n",
          command="randomize t.csv --private x --categories a,b --randomizer krr --epsilon 1 --out {out}.parquet"),
    Fault("or set `duplicates` in [data] to", table="id,x,y\n1,a,0\n2,b,1\n1,a,1\n"),
    Fault("set clip = true", {"data": {**NUMBER, "upper": 3.0}, "randomize": {"randomizer": "laplace"}}),
    Fault("[memoize] takes `constant_values`", {"memoize": {"time": "t"}}),
    Fault("a release of strings needs [strings] trust",
          {"mode": "release", "randomize": None, "data": {"categories": None},
           "strings": {"epsilon": 4.0, "trust": "local", "levels": 1}}),
    Fault("set [promise] trust", {"randomize": None}, after="[promise]\nepsilon = 1.0"),
    Fault("exists already; use --force", command="check t.csv --private x --out c.toml"),
    Fault("is a table: `dovetail check", command="run t.csv"),
    Fault("holds a report already; use --force", command="run c.toml --ledger led --out old"),
]  # fmt: skip
# their remedy is used where their noise, their engine or their ledger is tested
ELSEWHERE = {
    "--engine spark": "tests/engine/test_spark.py",
    "--engine processes": "tests/engine/test_spark.py",
    "--new-release": "tests/job/test_ledger.py",
    'use mode = "release"': "tests/job/test_run.py",
    "--noise full": "tests/trace/test_files.py",
    'To release, set mode = "release"': "tests/cli/test_road.py",
    "set `header_rows` = 1": "tests/job/test_check.py",
    "a uniform shuffle releases no public column": "tests/job/test_questions_in_groups.py",
    "how far off a sample of people is": "tests/job/test_drawn_behind_dummies.py",
    "combinations, each with dummies of its own": "tests/job/test_joint_behind_dummies.py",
    "each mixed by itself, and all answers in one report stay together": "tests/job/test_joint_behind_dummies.py",
}


def plain() -> dict[str, Any]:
    return {
        "schema_version": 1, "mode": "rehearsal",
        "data": {"path": "t.csv", "private": "x", "person": "id", "categories": ["a", "b"]},
        "randomize": {"epsilon": 1.0},
    }  # fmt: skip


def written(changes: dict[str, Any]) -> str:
    config = plain()
    for name, value in changes.items():
        if isinstance(value, dict):
            config[name] = {key: one for key, one in {**config.get(name, {}), **value}.items() if one is not None}
        else:
            config[name] = value
    return tomlkit.dumps({name: value for name, value in config.items() if value is not None})


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.says)
def test_a_remedy_with_a_value_works_when_pasted(fault: Fault, capsys: pytest.CaptureFixture[str]) -> None:
    content = fault.table if isinstance(fault.table, bytes) else fault.table.encode()
    Path("t.csv").write_bytes(content)
    Path("c.toml").write_text(written(fault.config))
    if "old" in fault.command:
        assert invoke(shlex.split(fault.command)) == 0
    command = fault.command.format(out="first")
    assert invoke(shlex.split(command)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert fault.says in said
    command = mended(said, fault.command.format(out="second"), fault.after)
    status = invoke(shlex.split(command))
    left = " ".join(capsys.readouterr().err.split())
    assert fault.says not in left and status == 0, left


def mended(said: str, command: str, after: str) -> str:
    """The command to type again, after the remedy of a message was pasted into it, or into the configuration."""
    if pasted := COMMAND.search(said):
        return pasted[1].removeprefix("dovetail ").replace("COLUMN", "x") + " --out mended.toml"
    if found := TOML.search(said):
        section = found["section"] or found["first"] or found["within"] or found["beside"]
        document = tomlkit.parse(Path("c.toml").read_text())
        for text in (f"[{section}]\n{found['key']} = {found['value']}", after):
            for name, values in tomllib.loads(text).items():
                document.setdefault(name, tomlkit.table()).update(values)
        Path("c.toml").write_text(tomlkit.dumps(document))
        return command
    (option,) = GIVEN.findall(said)
    return f"{command} {option}"


def test_every_remedy_with_a_value_is_pasted_by_a_test() -> None:
    found = [(place, text) for place, text in texts() if TOML.search(text) or GIVEN.search(text)]
    covered = [fault.says for fault in FAULTS] + [*ELSEWHERE]
    assert len(found) > 10
    assert [one for one in found if not any(part in one[1] for part in covered)] == []
    assert [place for place in ELSEWHERE.values() if not (ROOT.parents[1] / place).is_file()] == []
    assert [part for part in covered if not any(part in text for _, text in texts())] == []
