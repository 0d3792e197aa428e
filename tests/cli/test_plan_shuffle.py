"""`dovetail plan-shuffle` fits to public data, explains itself and refuses bad input in one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dovetail.cli.main import invoke
from dovetail.shuffle.fitting.fitted_shuffler import load_shuffler

KEYS = {"alpha", "width", "sensitivity", "theta", "theta_n", "components", "largest_group", "shuffler"}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with public tables."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(1)
    pl.DataFrame({"age": draw.integers(20, 40, 300), "town": ["a", "b", "c"] * 100}).write_csv("people.csv")
    pl.DataFrame({"x": draw.random(200), "y": draw.random(200)}).write_parquet("points.parquet")
    pl.DataFrame({"lat": draw.uniform(47, 47.1, 200), "lon": draw.uniform(8, 8.1, 200)}).write_csv("places.csv")
    pl.DataFrame({"from": range(50), "to": [(i + 1) % 51 for i in range(50)]}).write_csv("edges.csv")
    pl.DataFrame({"x": [1e308, -1e308, 1.0], "y": [1.0, 2.0, 3.0]}).write_csv("far.csv")
    pl.DataFrame({"x": [1e-300, 2e-300, 0.0], "y": [0.0, 0.0, 0.0]}).write_csv("tiny.csv")
    pl.DataFrame({"label": [0.1 + 0.2, 0.3, 0.3]}).write_csv("rounded.csv")
    pl.DataFrame({"group": [0, 0, 1, 1, 1], "person": [0, 1, 1, 2, 3]}).write_csv("groups.csv")


PLANS = {
    "near labels": ["--labels", "people.csv", "--columns", "age", "--radius", "1"],
    "equal labels": ["--labels", "people.csv", "--columns", "town"],
    "points within a radius": ["--points", "points.parquet", "--radius", "0.1"],
    "nearest points": ["--points", "points.parquet", "--nearest", "5"],
    "places": ["--points", "places.csv", "--radius", "500", "--metric", "haversine"],
    "a graph": ["--edges", "edges.csv", "--hops", "2"],
    "memberships": ["--groups", "groups.csv"],
}


@pytest.mark.exhaust
@pytest.mark.parametrize("plan", PLANS)
def test_every_kind_of_public_data_gives_a_finite_explained_plan(
    plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["plan-shuffle", *PLANS[plan], "--alpha", "4", "--json"]) == 0, capsys.readouterr().err
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(document) >= KEYS and document["alpha"] <= 4.0
    assert document["summary"]["n"] > 0 and document["source"]
    assert invoke(["plan-shuffle", *PLANS[plan], "--alpha", "4"]) == 0
    assert document["shuffler"] in capsys.readouterr().out


def test_a_plan_is_saved_and_serves_later_batches(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan-shuffle", *PLANS["near labels"], "--alpha", "2", "--shuffler", "mallows", "--out", "plan.npz"]
    assert invoke(command) == 0
    assert load_shuffler("plan.npz").guarantee.alpha == 2.0
    assert invoke(command) == 2 and "--force" in capsys.readouterr().err


def test_groups_of_two_tables_are_kept_together_and_settings_reach_the_shuffler(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pl.DataFrame({"age": [1, 1, 2, 2, 3, 3], "score": [5, 4, 3, 2, 1, 0]}).write_csv("six.csv")
    pl.DataFrame({"group": [0, 0], "person": [0, 5]}).write_csv("two.csv")
    both = ["plan-shuffle", "--labels", "six.csv", "--groups", "two.csv", "--alpha", "2", "--json"]
    documents = []
    for more in (
        [],
        ["--shuffler", "mallows", "--line", "single"],
        ["--shuffler", "noisy_sort", "--scores", "score"],
    ):
        assert invoke([*both, *more]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert all(one["grouping"]["groups"] == 4 for one in documents)  # three ages, and the pair of the file
    assert [one["summary"]["reference"] for one in documents[1:]] == ["breadth first", "given scores"]


MISTAKES = {
    "nothing given": (["--alpha", "1"], "give --labels, --points"),
    "two tables": (["--labels", "people.csv", "--points", "points.parquet", "--nearest", "3", "--alpha", "1"],
                             "a row for each person"),
    "columns of two": ([*PLANS["equal labels"], "--groups", "groups.csv", "--alpha", "1"],
                       "--columns goes with one"),
    "whose radius": (["--labels", "people.csv", "--points", "points.parquet", "--radius", "1", "--alpha", "1"],
                     "--radius with both"),
    "a setting of others": ([*PLANS["near labels"], "--shuffler", "mallows", "--scores", "age", "--alpha", "1"],
                            "mallows does not"),
    "no such scores": ([*PLANS["near labels"], "--shuffler", "noisy_sort", "--scores", "x", "--alpha", "1"], "'x'"),
    "alpha negative": ([*PLANS["near labels"], "--alpha=-1"], "alpha"),
    "alpha not a number": ([*PLANS["near labels"], "--alpha", "nan"], "alpha"),
    "radius negative": (["--points", "points.parquet", "--radius=-1", "--alpha", "1"], "radius"),
    "no radius": (["--points", "points.parquet", "--alpha", "1"], "either --radius or --nearest"),
    "latitude": (["--points", "points.parquet", "--radius", "1", "--metric", "haversine", "--columns", "x,z",
                  "--alpha", "1"], "no column 'z'"),
    "text as radius labels": (["--labels", "people.csv", "--columns", "town", "--radius", "1", "--alpha", "1"],
                              "no numbers"),
    "no alpha": (PLANS["near labels"], "one of --alpha, --frontier and --ranges"),
    "ranges and a file": ([*PLANS["near labels"][:4], "--ranges", "2", "--out", "x.zip"], "compares groups alone"),
    "both": ([*PLANS["near labels"], "--alpha", "1", "--frontier", "1"], "one of --alpha, --frontier and --ranges"),
    "a frontier of words": ([*PLANS["near labels"], "--frontier", "1,b"], "`--frontier` must be numbers"),
    "a frontier saved": ([*PLANS["near labels"], "--frontier", "1", "--out", "x.npz"], "--out goes with --alpha"),
    "a page of one alpha": ([*PLANS["near labels"], "--alpha", "1", "--report", "x.html"], "--report goes with"),
    "a frontier of few": (["--groups", "groups.csv", "--frontier", "1"], "32 to 200,000 people, got 4"),
    "far away": (["--points", "far.csv", "--radius", "1", "--alpha", "1"], "at most 1e+100 in size"),
    "all but one place": (["--points", "tiny.csv", "--nearest", "2", "--alpha", "1"], "must span 0 or at least"),
    "rounded labels": (["--labels", "rounded.csv", "--alpha", "1"], "differ by more than rounding"),
    "unknown person": (["--edges", "edges.csv", "--n", "10", "--alpha", "1"], "10"),
    "no file": (["--labels", "none.csv", "--alpha", "1"], "no such file"),
    "planar without a plane": ([*PLANS["near labels"], "--shuffler", "planar", "--alpha", "1"], "plane"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, hint = MISTAKES[mistake]
    assert invoke(["plan-shuffle", *arguments]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and hint in lines[0], lines


@pytest.mark.exhaust
def test_a_list_of_alphas_is_compared_in_a_table_a_document_and_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan-shuffle", *PLANS["near labels"], "--frontier", "1,64"]
    assert invoke([*command, "--json", "--report", "page.html"]) == 0, capsys.readouterr().err
    document = json.loads(capsys.readouterr().out)
    assert [each["asked"] for each in document["points"]] == [None, None, 1.0, 64.0]
    page = Path("page.html").read_text(encoding="utf-8")
    assert '<th scope="row"></th>' not in page
    assert "What alpha buys" in page and page.count("<svg") == 2 and document["sentence"][1:] in page
    assert invoke([*command, "--report", "page.html"]) == 2 and "--force" in capsys.readouterr().err
    assert "<td>identity</td>" in page or ">identity<" in page, "shufflers have the names that a configuration takes"
    assert invoke(command) == 0 and "told apart" in capsys.readouterr().out.replace("\n", " ")
