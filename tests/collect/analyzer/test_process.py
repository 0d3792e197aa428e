"""The analyzer as a process: its configuration, its verbs, and a clean stop."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import polars as pl
import pytest
from tests.collect.analyzer.world import ANALYZER, OWNER, SHUFFLER, batch, campaign, seal, token
from tests.waiting import PATIENCE
from typer.testing import CliRunner

from dovetail.cli.collect import app
from dovetail.collect.analyzer.analyzer import load
from dovetail.collect.files import save_keys
from dovetail.core.errors import ConfigError, DataError, UnreachableError

ASKED = campaign(minimum=3)
SEALED = seal(ASKED, [0, 1, 2, 3, 3, 0], round=1)
CANARY = {"User-Agent": "canary-agent", "X-Forwarded-For": "198.51.100.77", "X-Request-Id": "canary-id"}
CONFIG = """
schema_version = 1
campaigns = ["commute.toml"]
keys = "analyzer.keys"
listen = "127.0.0.1:0"
tokens = "tokens"
public_page = true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "commute.toml").write_bytes(ASKED.signed)
    save_keys(ANALYZER, tmp_path / "analyzer.keys")
    (tmp_path / "tokens").write_text(f"{token('sesame')} test\n")
    (tmp_path / "token").write_text("sesame\n")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "analyzer.toml").write_text(CONFIG)
    return tmp_path


@dataclass(frozen=True)
class Running:
    process: subprocess.Popen[str]
    url: str


def start(folder: Path) -> Running:
    """The analyzer of this folder, as soon as it listens."""
    command = [sys.executable, "-m", "dovetail", "collect", "analyzer", str(folder / "analyzer.toml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("analyzer at "):
        process.kill()
        pytest.fail(process.communicate()[1])
    return Running(process, line.split()[-1])


@pytest.fixture
def running(folder: Path) -> Iterator[Running]:
    one = start(folder)
    yield one
    if one.process.poll() is None:
        one.process.kill()
        one.process.communicate()


@pytest.mark.exhaust
def test_an_analyzer_counts_answers_keeps_nobodys_trace_and_stops(folder: Path, running: Running) -> None:
    body = batch(ASKED, [*SEALED, SEALED[0][:-1] + b"x"])
    with httpx.Client(base_url=running.url, headers=CANARY, timeout=PATIENCE) as client:
        assert client.post("/v1/batches?canary=query", content=body).status_code == 200
        assert client.post("/v1/batches", content=b"canary").status_code == 400
        wrong = {"Authorization": "Bearer canary-token"}
        assert client.get("/v1/canary-path", headers=wrong).status_code == 404
    asking = [running.url, "--token-file", str(folder / "token")]
    shown = CliRunner().invoke(app, ["query", *asking, "--json"], catch_exceptions=False)
    document = json.loads(shown.stdout)
    assert (document["round"], document["n"], document["schema_version"]) == (1, 6, 1)
    for more in (["--window", "1"], ["--frequencies"], ["--round", "1"]):
        printed = CliRunner().invoke(app, ["query", *asking, *more], catch_exceptions=False).stdout
        assert "on foot" in printed and "%" in printed
    for kind, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
        place = folder / f"estimates.{kind}"
        CliRunner().invoke(app, ["query", *asking, f"--{kind}", str(place)], catch_exceptions=False)
        assert read(place).height == 4  # type: ignore[operator]
    status = CliRunner().invoke(app, ["status", *asking], catch_exceptions=False).stdout
    assert "1 seal" in status and "collude" in status
    running.process.send_signal(signal.SIGTERM)
    _, log = running.process.communicate(timeout=PATIENCE)
    assert running.process.returncode == 0
    events = [json.loads(line) for line in log.splitlines()]
    counted = {"campaign": "commute", "count": 7, "accepted": 6, "round": 1}
    assert any(counted.items() <= event.items() for event in events)
    kept = log.encode() + b"".join(path.read_bytes() for path in folder.glob("analyzer.sqlite*"))
    for word in (b"canary", b"198.51.100", b"127.0.0.1", b"sesame", SEALED[0]):
        assert word not in kept
    again = start(folder)
    try:
        assert httpx.post(f"{again.url}/v1/batches", content=body, timeout=PATIENCE).json()["state"] == "counted"
        known = CliRunner().invoke(app, ["status", again.url, *asking[1:], "--json"], catch_exceptions=False)
        assert len(json.loads(known.stdout)["batches"]) == 1
    finally:
        again.process.terminate()
        assert again.process.wait(PATIENCE) == 0
        again.process.communicate()


@pytest.mark.exhaust
def test_asking_wrongly_is_one_line(folder: Path, running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*words: str) -> BaseException | None:
        return CliRunner().invoke(app, ["query", *words]).exception

    monkeypatch.delenv("DOVETAIL_TOKEN", raising=False)
    assert "DOVETAIL_TOKEN" in str(ask(running.url))
    monkeypatch.setenv("DOVETAIL_TOKEN", "wrong")
    assert isinstance(ask(running.url), DataError) and "unauthorized" in str(ask(running.url))
    for nonsense in ("", "two words", "tök"):
        monkeypatch.setenv("DOVETAIL_TOKEN", nonsense)
        assert isinstance(ask(running.url), ConfigError)
    (folder / "open").write_text("sesame")
    (folder / "open").chmod(0o644)
    assert "wider than 0600" in str(ask(running.url, "--token-file", str(folder / "open")))
    monkeypatch.setenv("DOVETAIL_TOKEN", "sesame")
    assert "no estimate yet" in str(ask(running.url))
    assert "no such campaign" in str(ask(running.url, "--campaign", "none"))
    gone = ask("http://127.0.0.1:1")
    assert isinstance(gone, UnreachableError) and "http://127.0.0.1:1: no analyzer answers there" in str(gone)
    assert isinstance(ask("analyzer"), ConfigError)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("token = 'tokens'", "did you mean 'tokens'?"),
        ("[retention]\nday = 3", "unknown key `retention.day`; did you mean 'days'?"),
        ("[retention]\ndays = 0", "retention.days"),
        ("[tls]\ncertificate = 'a'", "tls.key"),
        ("public_page = 3", "not TOML"),
    ],
)
def test_a_wrong_configuration_is_one_line_that_names_the_key(folder: Path, line: str, wanted: str) -> None:
    (folder / "analyzer.toml").write_text(CONFIG + line)
    with pytest.raises(ConfigError) as caught:
        load(folder / "analyzer.toml")
    assert wanted in str(caught.value) and str(folder) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("secret", ["shuffler.keys", "owner.keys"])
def test_keys_of_another_role_are_refused(folder: Path, secret: str) -> None:
    save_keys({"shuffler.keys": SHUFFLER, "owner.keys": OWNER}[secret], folder / secret)
    (folder / "analyzer.toml").write_text(CONFIG.replace("analyzer.keys", secret))
    result = CliRunner().invoke(app, ["analyzer", str(folder / "analyzer.toml")])
    assert isinstance(result.exception, ConfigError) and "must never hold" in str(result.exception)
