"""Who only accounts or plans, and every role of a server, runs where polars cannot be imported."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.tiers import tiered

BLOCKED = """
import sys
sys.modules["polars"] = None
import dovetail as dt
from dovetail.cli.main import invoke
"""


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", BLOCKED + program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


VERBS = {
    "account": "account --epsilon0 1 --n 1000 --delta 1e-6",
    "leak": "leak --k 3 --n 100 --epsilon0 1",
    "plan": "plan --question frequency --k 2 --n 500 --epsilon 1 --randomizer krr --out plan.toml --force",
    "plan a covariance": "plan --question covariance --lower 0 --upper 1 --other-lower 0 --other-upper 1 --n 500 "
    "--epsilon 1",
    "plan with dummies": "plan --question frequency --k 3 --n 1000 --epsilon 1 --trust shuffler",
}


@pytest.mark.exhaust
@pytest.mark.parametrize("verb", tiered(VERBS, lambda verb: verb in ("account", "leak", "plan")))
def test_the_accountant_the_planner_and_leakage_need_no_polars(verb: str, tmp_path: Path) -> None:
    start = f"import os\nos.chdir({str(tmp_path)!r})\n"
    assert run(f"{start}assert invoke({VERBS[verb].split()!r}) == 0\n")


@pytest.mark.exhaust
def test_the_package_is_imported_and_accounts_without_polars() -> None:
    assert run("print(dt.amplify(dt.KRR(k=2, epsilon=1.0), n=1000, delta=1e-6))").startswith("honest shuffler")


SERVERS = (
    "cli.collect", "collect.shuffler.app", "collect.shuffler.delivery", "collect.shuffler.mqtt",
    "collect.analyzer.app", "collect.analyzer.live_page", "collect.campaign.explain", "collect.store.shuffler_store",
    "collect.store.analyzer_store",
)  # fmt: skip


@pytest.mark.exhaust
def test_every_role_of_a_server_is_imported_without_polars() -> None:
    run("import importlib\n" + "".join(f"importlib.import_module('dovetail.{name}')\n" for name in SERVERS))


@pytest.mark.exhaust
def test_device_shuffler_and_analyzer_run_a_round_without_polars() -> None:
    told = run("assert invoke(['collect', 'simulate', '--devices', '150', '--rounds', '1', '--json']) == 0\n")
    assert '"lost": 0' in told


@pytest.mark.exhaust
def test_what_reads_a_table_says_in_one_line_that_it_needs_polars(tmp_path_factory: pytest.TempPathFactory) -> None:
    table = tmp_path_factory.mktemp("here") / "t.csv"
    table.write_text("a\nx\ny\n")
    told = run(f"import sys\nsys.stderr = sys.stdout\nassert invoke(['check', {str(table)!r}]) == 2\n")
    assert told == "error: Tables need polars, which is not installed: pip install polars\n"
