"""Each study leaves a table, a picture and a record; results of other code than today's are known and listed."""

import json
import tomllib
from pathlib import Path

from studies.record import HOME, digest, meaning

STUDIES = sorted(path.parent for path in HOME.glob("*/run.py"))
LISTED = tomllib.loads((HOME / "stale.toml").read_text())
STALE, TOY = LISTED["stale"], LISTED["toy"]
PROGRAM = '''"""Remark."""
import json
from studies import helper

def main(full, out):
    table = [3.5 * helper.LEAST]
    picture(out / "a.png", drawn)
    return table

def verdict(table):
    return {"it holds": True}
'''


def test_a_study_has_a_table_a_picture_in_its_readme_and_a_record() -> None:
    for home in STUDIES:
        facts = json.loads((home / "record.json").read_text())
        assert facts["size"] == ("toy" if home.name in TOY else "full"), home
        assert {"seed", "code", "machine"} <= facts.keys() and (home / "results.csv").stat().st_size > 0, home
        shown = (home / "README.md").read_text()
        pictures = [path for path in home.glob("*.png") if f"]({path.name})" in shown]
        assert pictures, f"{home}: a picture stands beside the table, and the README shows it"


def test_results_are_of_the_code_of_today_or_listed_as_stale() -> None:
    codes = {home.name: json.loads((home / "record.json").read_text())["code"] for home in STUDIES}
    wrong = [name for name, code in codes.items() if (code == digest(name)) == (name in STALE)]
    assert wrong == [], "run these studies again, or say in studies/stale.toml why not"


def test_every_stale_result_has_a_study_and_a_reason() -> None:
    assert STALE.keys() | TOY.keys() <= {home.name for home in STUDIES}
    assert all(len(reason.split()) > 5 for reason in (*STALE.values(), *TOY.values()))


def test_the_digest_changes_with_what_makes_a_table_and_with_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    run, helper = tmp_path / "one" / "run.py", tmp_path / "helper.py"
    helper.write_text("LEAST = 1\n")
    run.write_text(PROGRAM)
    before = digest("one", tmp_path)
    for old, new in (
        ("Remark", "Other remark"),
        ("import json", "import  os"),
        ("True", "False"),
        ("a.png", "b.png"),
    ):
        run.write_text(PROGRAM.replace(old, new))
        assert digest("one", tmp_path) == before, old
    run.write_text(PROGRAM.replace("3.5", "3.6"))
    assert digest("one", tmp_path) != before
    run.write_text(PROGRAM)
    helper.write_text("LEAST = 2\n")
    assert digest("one", tmp_path) != before
    helper.write_text("LEAST = 1\n")
    (tmp_path / "one" / "config.toml").write_text("seed = 1\n")
    assert digest("one", tmp_path) != before


def test_the_meaning_of_a_program_is_its_tree() -> None:
    assert meaning("x = (1 +\n  2)  # three\n") == meaning("x = 1 + 2") != meaning("x = 1 + 3")
