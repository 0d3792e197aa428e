"""The demo: real processes that start, serve a page, and are gone afterwards, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.waiting import PATIENCE
from typer.testing import CliRunner

from dovetail.cli.collect import app
from dovetail.collect.simulate.deployment import ServerProcess
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
    assert alive(folder) == []
    kept = {path.name for path in folder.iterdir()}
    assert {"campaign.toml", "owner.key", "roster.csv", "shuffler.toml", "analyzer.toml", "vault"} <= kept
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.rglob("*.key"))


@pytest.mark.parametrize("sign", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaust)])
def test_whoever_stops_the_demo_stops_its_servers(tmp_path: Path, sign: signal.Signals) -> None:
    folder = tmp_path / "site"
    long = ["--devices", "20", "--rounds", "50", "--out", str(folder)]
    demo = subprocess.Popen([*DEMO, *long], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    url = demo.stdout.readline().split()[2]
    assert httpx.get(url, timeout=PATIENCE).text.startswith("<!doctype html>")
    assert len(alive(folder)) == 2 + 1  # the servers, and the demo that names the folder
    demo.send_signal(sign)
    demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 1 and alive(folder) == []


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
