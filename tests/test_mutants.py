"""The list of mutants fits the sources, and its runner tells a mutant that dies from one that lives."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.mutants.__main__ import Tree, chosen, fingerprint, main, run_all, settled
from tests.mutants.catalogue import LIST, Mutant, faults, load_mutants, misplaced
from tests.mutants.homes import load_homes

mutants, homes = cache(load_mutants), cache(load_homes)
SOURCE = "def add(a, b):\n    return a + b\n"
TESTS = (
    "from sums import add\n\n\ndef test_sums() -> None:\n    assert add(1, 2) == 3\n\n\n"
    "def test_blind() -> None:\n    assert add(0, 0) == 0\n"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of one function and two tests, one of which sees nothing."""
    for place, text in (("src/sums.py", SOURCE), ("tests/test_sums.py", TESTS), ("pyproject.toml", "")):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    return tmp_path


def mutant(line: str = "a + b", replacement: str = "a - b", test: str = "test_sums") -> Mutant:
    return Mutant("sums", "Sums are wrong.", "src/sums.py", line, replacement, (f"tests/test_sums.py::{test}",))


def test_every_listed_mutant_names_a_line_and_tests_that_are_there() -> None:
    assert {mutant.name: wrong for mutant in mutants() if (wrong := misplaced(mutant))} == {}


@pytest.mark.exhaust
def test_every_listed_mutant_fits_the_sources_and_names_tests_that_exist() -> None:
    assert faults(mutants()) == []


def test_every_home_of_a_statement_can_be_broken_and_names_one_test() -> None:
    assert len(homes()) >= 75 and {mutant.name: wrong for mutant in homes() if (wrong := misplaced(mutant))} == {}
    assert len({mutant.name for mutant in homes()}) == len(homes()) and all(len(one.tests) == 1 for one in homes())


def test_a_broken_home_raises_while_a_test_runs_and_not_before() -> None:
    kinds = ("__getattribute__", "\n    if ")
    made = {kind: next(one for one in homes() if kind in one.replacement) for kind in kinds}
    for kind, one in made.items():
        assert f"raise RuntimeError({one.loss.split(' has a test')[0]!r})" in one.replacement, kind
        added = one.replacement.removeprefix(one.line)
        assert added != one.replacement and '"PYTEST_CURRENT_TEST" in' in added


def test_there_are_enough_mutants_of_every_stage() -> None:
    assert len(mutants()) >= 150
    assert {one.stage for one in mutants()} == {path.stem for path in LIST.glob("*.toml")}


def test_each_mutant_says_what_a_user_would_lose() -> None:
    for one in mutants():
        assert one.loss[:1].isupper() and one.loss.endswith(".") and len(one.loss.split()) > 4, one


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (mutant("a * b"), "occurs 0 times"),
        (mutant("a"), "occurs 3 times"),
        (mutant(""), "occurs 0 times"),
        (mutant(replacement="a +"), "not Python"),
        (mutant(replacement="(a + b)"), "changes nothing"),
        (mutant(test="test_gone"), "no test is called tests/test_sums.py::test_gone"),
        (replace(mutant(), tests=()), "names no test"),
        (replace(mutant(), file="src/gone.py"), "occurs 0 times"),
    ],
)
def test_an_entry_that_no_longer_fits_is_found(wrong: Mutant, fault: str, tree: Path) -> None:
    (found,) = faults([wrong], tree)
    assert fault in found and wrong.name in found


def test_an_entry_that_stands_twice_is_found(tree: Path) -> None:
    assert faults([mutant()], tree) == []
    assert faults([mutant(), mutant("return a + b", "return a - b")], tree) == [
        "src/sums.py has the same mutant 2 times"
    ]


@pytest.mark.parametrize("text", ["[[mutants]]\n", "[[mutant]]\nfile = 'a'\n", "loss = 1\n"])
def test_a_list_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "stage.toml").write_text(text)
    with pytest.raises(ValueError, match="must"):
        load_mutants(tmp_path)


@pytest.mark.exhaust
def test_a_mutant_dies_only_of_a_test_that_sees_it(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    copy = Tree(tmp_path_factory.mktemp("copy") / "0", tree)
    assert copy.judge(mutant()) == "killed"
    assert copy.judge(mutant(test="test_blind")) == "SURVIVED"
    assert copy.judge(mutant(replacement="a + c", test="test_gone")).startswith("BROKEN")
    assert (copy.folder / "src/sums.py").read_text() == SOURCE == (tree / "src/sums.py").read_text()


@pytest.mark.exhaust
def test_a_run_records_every_outcome_and_tests_that_fail_unchanged_end_it(tree: Path, tmp_path: Path) -> None:
    record = tmp_path / "mutants.jsonl"
    outcomes = run_all([mutant(), mutant(test="test_blind")], workers=1, output=record, root=tree)
    assert [one.verdict for one in outcomes] == ["killed", "SURVIVED"]
    assert settled(record) == {fingerprint(mutant(), tree)}, "only what has died need not be run again"
    (tree / "tests/test_sums.py").write_text(TESTS.replace("== 3", "== 4"))
    assert fingerprint(mutant(), tree) not in settled(record), "and not even that, where its test has changed"
    with pytest.raises(SystemExit, match="fail without any mutant"):
        run_all([mutant()], workers=1, output=record, root=tree)


def test_shards_share_the_mutants_out_and_a_part_of_a_name_chooses_some() -> None:
    parts = [chosen(mutants(), only="", shard=f"{i}/3") for i in (1, 2, 3)]
    assert sorted((one for part in parts for one in part), key=repr) == sorted(mutants(), key=repr)
    assert {one.file for one in chosen(mutants(), only="core/guarantee", shard="1/1")} == {
        "src/dovetail/core/guarantee.py"
    }
    with pytest.raises(SystemExit, match="i/n"):
        chosen(mutants(), only="", shard="4/3")


def test_a_choice_of_no_mutant_is_no_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        "sys.argv", ["mutants", "--only", "nothing is called so", "--output", str(tmp_path / "record")]
    )
    assert main() == 1
