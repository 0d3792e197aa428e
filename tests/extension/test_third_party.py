"""A distribution that Dovetail has never heard of is installed, and serves every verb by its entry points alone."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
FILES = {
    "dovetail_tiny.py": Path(__file__).with_name("tiny.py").read_text(),
    "dovetail_tiny-0.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: dovetail-tiny\nVersion: 0.1\n",
    "dovetail_tiny-0.1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "dovetail_tiny-0.1.dist-info/entry_points.txt": (
        "[dovetail.randomizers]\nrotated = dovetail_tiny:Rotated\n\n"
        "[dovetail.shufflers]\npairs = dovetail_tiny:Pairs\n\n"
        "[dovetail.attacks]\necho = dovetail_tiny:Echo\n\n"
        "[dovetail.sections]\npeople_counted = dovetail_tiny:PeopleCounted\n"
    ),
}
CONFIG = """
schema_version = 1
mode = "rehearsal"
seed = 1
[data]
path = "survey.csv"
private = "town"
public = ["age"]
[randomize]
randomizer = "rotated"
epsilon = 4.0
shift = 2
[shuffle]
shuffler = "pairs"
compare = ["identity"]
[attack]
attacks = ["echo"]
similar = ["age"]
patience = 3
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, beside a folder into which pip has installed the distribution."""
    folder = tmp_path_factory.mktemp("third party")
    wheel = folder / "dovetail_tiny-0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        record = ""
        for name, text in FILES.items():
            archive.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(text.encode())}\n"
        archive.writestr("dovetail_tiny-0.1.dist-info/RECORD", record + "dovetail_tiny-0.1.dist-info/RECORD,,\n")
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(folder / "site")]
    subprocess.run([sys.executable, *install, str(wheel)], check=True, capture_output=True, timeout=PATIENCE)
    towns = ["a", "b", "c", "b"] * 100
    pl.DataFrame({"town": towns, "age": [20 + place % 7 for place in range(400)]}).write_csv(folder / "survey.csv")
    (folder / "survey.toml").write_text(CONFIG)
    return folder


def call(place: Path, *words: str, fails: bool = False) -> Any:
    """What a verb prints, as JSON, or its one line of refusal."""
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(place / "site"), *([inherited] if inherited else [])])
    done = subprocess.run(
        [sys.executable, "-m", "dovetail", *words], cwd=place, capture_output=True, text=True, check=False,
        timeout=PATIENCE, env={**os.environ, "PYTHONPATH": path, "DOVETAIL_LEDGER": str(place / "ledger")},
    )  # fmt: skip
    assert done.returncode == (2 if fails else 0), done.stderr
    return done.stderr.strip() if fails else json.loads(done.stdout)


@pytest.mark.exhaust
def test_the_main_job_runs_through_all_four(place: Path) -> None:
    told = call(place, "run", "survey.toml", "--json")
    assert told["randomizer"]["name"] == "rotated" and told["randomizer"]["parameters"]["shift"] == 2
    assert told["order"]["shuffler"] == "pairs" and told["order"]["alpha"] == 0.0
    assert told["central"]["n"] == 2 and told["leakage"]["randomized_shuffled"] > told["leakage"]["prior"]
    overall = told["estimates"]["overall"]
    for value, error, truth in zip(overall["value"], overall["standard_error"], (0.25, 0.5, 0.25), strict=True):
        assert abs(value - truth) < 6.2 * error  # false alarm below 1e-9
    assert told["people_counted"] == {"people": 400}
    assert "(pairs of neighbours)" in told["steps"][1]["what"]
    assert told["attack"]["name"] == "echo" and told["attack"]["success"] > told["attack"]["chance"]


@pytest.mark.exhaust
def test_planner_and_accountant_know_the_randomizer(place: Path) -> None:
    asked = ["--question", "frequency", "--n", "10000", "--k", "4", "--delta", "1e-6", "--epsilon0", "1.5"]
    plan = call(place, "plan", *asked, "--randomizer", "rotated", "--json")
    same = call(place, "plan", *asked, "--randomizer", "krr", "--json")
    assert plan["randomizer"] == "rotated" and plan["error95"] == pytest.approx(same["error95"], rel=1e-12)
    bound = ["account", "--epsilon0", "1.5", "--n", "10000", "--delta", "1e-6", "--k", "4", "--json"]
    own, twin = (call(place, *bound, "--randomizer", name) for name in ("rotated", "krr"))
    assert own["attack_lower"] <= own["epsilon"]
    assert own["epsilon"] == pytest.approx(twin["epsilon"], rel=1e-6)  # its channel is the same up to names


@pytest.mark.exhaust
def test_stages_on_files_know_randomizer_and_shuffler(place: Path) -> None:
    known = ["--private", "town", "--categories", "a,b,c", "--epsilon", "3", "--seed", "1", "--force", "--json"]
    call(place, "randomize", "survey.csv", "--randomizer", "rotated", "--shift", "2", "--public", "age",
         "--out", "y.parquet", *known)  # fmt: skip
    moved = call(place, "shuffle", "y.parquet", "--shuffler", "pairs", "--out", "z.parquet", "--force", "--json")
    assert moved["shuffler"] == "pairs" and moved["n"] == 400
    overall = call(place, "estimate", "z.parquet", "--json")["overall"]
    for value, error, truth in zip(overall["value"], overall["standard_error"], (0.25, 0.5, 0.25), strict=True):
        assert abs(value - truth) < 6.2 * error  # false alarm below 1e-9


@pytest.mark.exhaust
def test_the_attack_has_a_verb_and_reads_an_unshuffled_release(place: Path) -> None:
    asked = ["attack", "echo", "survey.csv", "--private", "town", "--epsilon", "4", "--randomizer", "rotated",
             "--similar", "age", "--patience", "2", "--shuffles", "2", "--randomizations", "2", "--seed", "1",
             "--json"]  # fmt: skip
    still = call(place, *asked, "--shuffler", "identity")
    mixed = call(place, *asked)
    assert still["name"] == "echo" and still["interval"][0] > still["chance"] + 0.2
    assert mixed["success"] < still["success"]


@pytest.mark.exhaust
def test_what_belongs_to_another_mechanism_is_refused_in_one_line(place: Path) -> None:
    told = ["randomize", "survey.csv", "--private", "town", "--epsilon", "1", "--out", "n.parquet", "--shift", "1"]
    assert "--shift goes with randomizer 'rotated'" in call(place, *told, fails=True)
    assert "did you mean 'rotated'?" in call(place, *told, "--randomizer", "rotatd", fails=True)


@pytest.mark.exhaust
def test_a_new_campaign_offers_no_option_of_a_randomizer_without_a_form_for_devices(place: Path) -> None:
    refused = call(place, "collect", "new", "--shift", "1", fails=True)
    assert "No such option: --shift" in refused


@pytest.mark.exhaust
def test_the_laws_run_on_it_by_themselves(place: Path) -> None:
    path = os.pathsep.join([str(place / "site"), os.environ.get("PYTHONPATH", "")])
    laws = ["tests/laws/test_randomizers.py", "tests/laws/test_shufflers.py", "-k", "Rotated or Pairs or rotated"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *laws], cwd=ROOT,
        capture_output=True, text=True, check=False, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    listed = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--collect-only", *laws]
    names = subprocess.run(
        listed, cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": "-vv"},
    ).stdout  # fmt: skip
    assert "Rotated" in names and "Pairs" in names
