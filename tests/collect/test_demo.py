"""The demo: real processes that start, serve a page, and are gone afterwards, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from tests.waiting import PATIENCE
from typer.testing import CliRunner

from dovetail.cli.collect import app
from dovetail.collect.simulate.demo import prepare_demo
from dovetail.collect.simulate.deployment import APPLIANCE, COMMUTE, ServerProcess, ThrowawayCampaign
from dovetail.collect.simulate.faults import SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices
from dovetail.core.errors import OutputError, ParameterError

DEMO = [sys.executable, "-m", "dovetail", "collect", "demo"]
SMALL = ["--devices", "20", "--rounds", "2", "--period", "0.5"]


def alive(folder: Path) -> list[str]:
    """Command lines of processes that name this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        found += [b" ".join(words).decode()] if any(word.startswith(os.fsencode(folder)) for word in words) else []
    return found


@pytest.mark.exhaust
def test_every_report_is_counted_and_nothing_is_left_running(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    done = subprocess.run(
        [*DEMO, *SMALL, "--out", str(folder), "--json"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["reports"] == {"drawn": 40, "acknowledged": 40, "counted": 40}
    assert [each["rounds"] for each in found["rounds"]] == [[1], [2]] and "ε = 2 " in found["guarantee"]
    assert all(sum(each["truth"]) == pytest.approx(1.0) for each in found["rounds"])
    assert alive(folder) == [] and [path.name for path in tmp_path.iterdir()] == ["site"]
    kept = {path.name for path in folder.iterdir()}
    assert {"campaign.toml", "owner.key", "roster.csv", "shuffler.toml", "analyzer.toml", "vault"} <= kept
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.rglob("*.key"))


@pytest.mark.exhaust
def test_with_tokens_an_issuer_and_a_relay_stand_between_and_the_shuffler_has_no_roster(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    words = ["--tokens", "--devices", "6", "--rounds", "2", "--period", "0.2", "--out", str(folder), "--json"]
    done = subprocess.run([*DEMO, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reports"] == {"drawn": 12, "acknowledged": 12, "counted": 12}
    assert {"issuer.log", "relay.log"} <= {path.name for path in folder.iterdir()} and alive(folder) == []
    assert "roster" not in (folder / "shuffler.toml").read_text() and "roster" in (folder / "issuer.toml").read_text()


def test_a_round_of_the_demo_ends_when_all_are_heard_and_by_no_clock(tmp_path: Path) -> None:
    campaign = prepare_demo(tmp_path, devices=3, rounds=2).world.campaign
    assert (campaign.schedule.period, campaign.schedule.count) == (None, 2)
    assert campaign.batch.close_at == campaign.batch.minimum == 3


def test_the_truth_about_nobody_is_no_division_by_zero() -> None:
    for document, k in ((COMMUTE, 4), (APPLIANCE, 1)):
        world = ThrowawayCampaign.of(document, devices=2)
        fleet = SimulatedDevices.of(world, lambda inside, _: inside, SeededChance(1))
        assert fleet.truth(1, []).tolist() == [0.0] * k
        fleet.close()


@contextmanager
def started(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A demo whose servers run, and the URL of its page; its own folders go into `folder`."""
    demo = subprocess.Popen(
        [*DEMO, "--devices", "20", "--rounds", "50", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    try:
        assert demo.stdout is not None
        yield demo, demo.stdout.readline().split()[2]
    finally:
        demo.kill()
        demo.communicate()


@pytest.mark.exhaust
@pytest.mark.parametrize("sign", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaust)])
def test_whoever_stops_the_demo_stops_its_servers(tmp_path: Path, sign: signal.Signals) -> None:
    folder = tmp_path / "site"
    with started(tmp_path, "--out", str(folder)) as (demo, url):
        assert httpx.get(url, timeout=PATIENCE).text.startswith("<!doctype html>")
        assert len(alive(folder)) == 2 + 1  # the servers, and the demo that names the folder
        demo.send_signal(sign)
        demo.communicate(timeout=PATIENCE)
        assert demo.returncode == 1 and alive(folder) == []


@pytest.mark.exhaust
def test_a_demo_that_is_stopped_leaves_no_folder_that_nobody_has_named(tmp_path: Path) -> None:
    with started(tmp_path) as (demo, _):
        (folder,) = tmp_path.iterdir()
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=PATIENCE)
    assert folder.name.startswith("dovetail-demo-") and list(tmp_path.iterdir()) == []


@pytest.mark.exhaust
def test_a_demo_that_fails_keeps_its_logs_says_where_and_honours_keep(tmp_path: Path) -> None:
    with started(tmp_path, "--keep") as (demo, url):
        (folder,) = tmp_path.iterdir()
        os.kill(_process_of(folder / "shuffler.toml"), signal.SIGKILL)
        assert demo.stderr is not None
        assert "the shuffler has ended" in demo.stderr.readline()
        assert f"the page stays at {url}" in demo.stderr.readline()
        assert httpx.get(url, timeout=PATIENCE).status_code == 200  # the analyzer is still there to be looked at
        demo.send_signal(signal.SIGINT)
        _, said = demo.communicate(timeout=PATIENCE)
        assert demo.returncode == 1 and said.count("\n") == 1
        assert f"logs are in {folder}" in said and (folder / "shuffler.log").exists() and alive(folder) == []


def _process_of(config: Path) -> int:
    """The process that was started with this configuration."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [int(path.parent.name)] if os.fsencode(config) in path.read_bytes().split(b"\0") else []
    (only,) = found
    return only


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("keep me")
    error = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)]).exception
    assert isinstance(error, OutputError) and "not an empty folder" in str(error)
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


@pytest.mark.parametrize("words", [["--devices", "1"], ["--rounds", "0"], ["--period", "-1"]])
def test_wrong_numbers_are_refused(words: list[str]) -> None:
    assert isinstance(CliRunner().invoke(app, ["demo", *words]).exception, ParameterError)


def test_a_server_that_does_not_start_is_one_line_of_its_log(tmp_path: Path) -> None:
    failing = ServerProcess(
        "shuffler", [sys.executable, "-c", "import sys; sys.exit('error: no keys')"], tmp_path / "log"
    )
    failing.start()
    with pytest.raises(OutputError, match="the shuffler did not start: error: no keys"):
        failing.ready()
    assert failing.stop() == 0  # there is nothing left to stop
