"""A question of one file, known by its entry point alone, goes wherever a built-in one goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from tests.waiting import PATIENCE, until

import dovetail as dt
from dovetail.cli.main import invoke
from dovetail.collect.campaign.terms import asked_of, question_about
from dovetail.collect.simulate.deployment import Deployment, run_servers
from dovetail.core.display import upward
from dovetail_device.session import limit, open_device, submit

ROOT = Path(__file__).parents[2]
N = 600
RANGES = {"lower": 0.0, "upper": 5.0}
OTHER = {"other": "after", "other_lower": 0, "other_upper": 5, "apart": 1}
PAGES = """
import json, pathlib, sys
from tests.web.pages import opened
with opened(pathlib.Path(sys.argv[1])) as (client, _):
    paths = ("/plan/plan.json", "/plan/answer", "/plan/sheet", "/")
    print(json.dumps([client.get(path, params=json.loads(sys.argv[2])).text for path in paths]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as pip leaves it, with the distribution of one file."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "dovetail_near.py").write_text(Path(__file__).with_name("near.py").read_text())
    about = folder / "dovetail_near-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: dovetail-near\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text("[dovetail.questions]\nnear = dovetail_near:Near\n")
    return folder


@pytest.fixture(autouse=True)
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The distribution, for this process and those that it starts."""
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])]))
    invalidate_caches()
    yield
    sys.modules.pop("dovetail_near", None)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, in which numbers of most people lie near one another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    before = [slot % 6 for slot in range(N)]
    after = [min(5, one + (0, 1, 0, 4)[slot % 4]) for slot, one in enumerate(before)]
    table = pl.DataFrame({"id": range(N), "before": before, "after": after, "city": ["x", "y"] * (N // 2)})
    table.write_parquet("table.parquet")
    for mode in ("rehearsal", "release"):
        Path(f"{mode}.toml").write_text(
            f'schema_version = 1\nmode = "{mode}"\n{"seed = 1" if mode == "rehearsal" else ""}\n'
            '[data]\npath = "table.parquet"\nperson = "id"\nprivate = "before"\nlower = 0\nupper = 5\n'
            'public = ["city"]\n[question]\nask = "near"\nother = "after"\nother_lower = 0\nother_upper = 5\n'
            '[randomize]\nepsilon = 5.0\n[shuffle]\nshuffler = "within_groups"\ngroups = { labels = "city" }\n'
            '[estimate]\nby = ["city"]\n'
        )
    return tmp_path


def truth() -> float:
    before, after = pl.read_parquet("table.parquet").select("before", "after").to_numpy().T
    return float((np.abs(before - after) <= 1).mean())


@pytest.mark.parametrize("mode", ["rehearsal", "release"])
@pytest.mark.parametrize("engine", [(), ("--engine", "processes", "--workers", "1")])
@pytest.mark.usefixtures("place")
def test_it_is_checked_run_told_by_group_and_shown(
    mode: str, engine: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Within 6.2 standard errors: a false alarm below 1e-9 for each number."""
    assert invoke(["check", f"{mode}.toml"]) == 0
    capsys.readouterr()
    assert invoke(["run", f"{mode}.toml", "--out", "out", "--json", *engine]) == 0
    told = json.loads(capsys.readouterr().out)
    estimates = told["estimates"]
    assert len(estimates["groups"]) == 2 and estimates["measure"] == "share"
    overall = estimates["overall"]
    assert abs(overall["value"][0] - truth()) < 6.2 * overall["standard_error"][0]
    assert abs(overall["value"][0] - 0.1) > 6.2 * overall["standard_error"][0]  # so that anything is said
    if mode == "rehearsal":
        assert overall["truth"] == [pytest.approx(truth(), abs=1e-12)]
    page = Path("out/report.html").read_text()
    assert "Estimates by group: share of “at most 1 apart”" in page and "at most 1 apart" in page
    assert "no share of an answer is known" in json.dumps(told["verdict"])  # a single share is of no answer


@pytest.mark.usefixtures("place")
def test_it_is_shown_in_a_notebook_and_on_no_answer_a_guess_is_measured() -> None:
    report: Any = dt.run("rehearsal.toml", ledger=Path("ledger"))
    assert "at most 1 apart" in report._repr_html_()
    assert report.document()["leakage"]["value"] is None


def printed(*words: str) -> Any:
    """What a program of its own prints, which knows from its beginning what is installed."""
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return json.loads(done.stdout)


def test_it_is_planned_on_the_command_line_and_in_the_browser(tmp_path: Path) -> None:
    asked = {"question": "near", "lower": "0", "upper": "5", "other_lower": "0", "other_upper": "5", "apart": "1"}
    asked |= {"n": "3000", "epsilon0": "3"}
    words = [word for name, text in asked.items() for word in (f"--{name.replace('_', '-')}", text)]
    told = printed("-m", "dovetail", "plan", *words, "--json")
    plan, *pages = printed("-c", PAGES, str(tmp_path), json.dumps(asked))
    assert told.pop("files") == {} and json.loads(plan) == told
    assert all(upward(told["epsilon"]) in page for page in pages)
    assert "how many have two numbers near one another" in pages[-1]


def written(place: Path, people: int) -> dict[str, Any]:
    """A campaign about it, as `collect new --ask near` writes one."""
    question = question_about("near", {"private": "before", **RANGES}, OTHER, name="a test")
    asked = asked_of(question, private="before", settings=OTHER, k=36)
    return {
        "schema_version": 1, "id": "near", "question": "How was it before and after?", "asks": asked.stated(),
        "randomizer": {"name": "krr", "k": 36, "epsilon": 20.0}, "promise": {"delta": 1e-2, "device_budget": 20.0},
        "rounds": {"schedule": "manual", "count": 1}, "batch": {"minimum": people, "close_at": people},
    }  # fmt: skip


def test_a_campaign_of_it_is_written_explained_and_simulated(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for role in ("owner", "shuffler", "analyzer"):
        assert invoke(["collect", "keys", role, "--out", f"{role}.key"]) == 0
    keys = [word for role in ("owner", "shuffler", "analyzer") for word in (f"--{role}", f"{role}.key.pub")]
    named = ["--id", "near", "--question", "Before and after?", "--ask", "near", "--private", "before"]
    settings = ["--lower", "0", "--upper", "5", "--other", "after", "--other-lower", "0", "--other-upper", "5"]
    rules = ["--epsilon", "4", "--minimum", "100", "--count", "1", "--delta", "1e-4"]
    assert invoke(["collect", "new", *keys, *named, *settings, *rules]) == 0
    assert invoke(["collect", "check", "campaign.toml"]) == 0
    assert "as one symbol of 36" in " ".join(capsys.readouterr().out.replace("│", "").split())
    assert invoke(["collect", "simulate", "--campaign", "campaign.toml", "--devices", "150", "--rounds", "1"]) == 0


@pytest.mark.exhaust
def test_a_campaign_of_it_is_answered_over_the_network_and_shown(place: Path) -> None:
    """Of 60 people, hardly ever by another answer than their own."""
    people = 60
    made = Deployment.of(written(place, people), place / "site", devices=people)
    made.write()
    with (
        run_servers(made),
        closing(httpx.Client(base_url=made.analyzer, trust_env=False, timeout=PATIENCE)) as client,
    ):
        for slot in range(people):
            limit(made.device(slot), total=400.0, per_question=400.0)
            with open_device(made.folder / "campaign.toml", made.device(slot)) as device:
                held = {"before": slot % 6, "after": (slot % 6, 5 - slot % 6)[slot % 2]}
                assert submit(device, held, 1, patience=PATIENCE).state == "accepted"
        client.headers["Authorization"] = f"Bearer {made.token}"

        def told() -> Any:
            return client.get("/v1/campaigns/near/estimates").json()["estimates"]

        (found,) = until(told)
        shares = client.get("/v1/campaigns/near/frequencies")
    (group,) = found["groups"]
    wanted = np.mean([slot % 2 == 0 or slot % 6 in (2, 3) for slot in range(people)])
    assert found["n"] == people and found["measure"] == "share" and group["labels"] == ["at most 1 apart"]
    assert abs(group["value"][0] - wanted) < 0.01
    assert shares.status_code == 404  # one share is no list of them
