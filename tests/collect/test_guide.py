"""docs/collect.md is run as it stands, on free ports, with SQLite, on PostgreSQL and over MQTT, to estimates."""

import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from os import environ
from pathlib import Path

import polars as pl
import pytest
from tests.collect.servers import Mosquitto, Postgres
from tests.waiting import PATIENCE, until

from dovetail.cli.main import invoke

GUIDE = Path(__file__).parent.parent.parent / "docs" / "collect.md"
PATH = {**environ, "PATH": f"{Path(sys.executable).parent}:{environ['PATH']}"}
OPERATORS = re.compile(r"[|>]|\$\(")
ADDITION = re.compile(r"# (\w+): add to (\S+)\n")


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return str(bound.getsockname()[1])


@contextmanager
def server(line: str) -> Iterator[None]:
    """A command that runs until the end of the guide, and must then stop in order; nobody waits for its start."""
    with Path(f"{shlex.split(line)[2]}.log").open("w") as log:
        process = subprocess.Popen(shlex.split(line), env=PATH, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(PATIENCE)
        assert status == 0


def walk(text: str, additions: Mapping[str, str]) -> None:
    """Everything that the guide says, in its order; `additions` stand at the end of the files of these names."""
    with ExitStack() as running:
        for kind, block in re.findall(r"```(bash|toml)\n(.*?)```", text, re.S):
            if kind == "toml" and not ADDITION.match(block):
                name = re.match(r"# (\S+)", block)[1]  # type: ignore[index]
                Path(name).write_text(block + additions.get(name, ""))
            for line in block.splitlines() if kind == "bash" else ():
                if line.endswith("&"):
                    running.enter_context(server(line.removesuffix("&")))
                elif line.startswith("dovetail ") and not OPERATORS.search(line):
                    assert asked(shlex.split(line)[1:]) == 0, line
                else:
                    subprocess.run(["bash", "-euc", line], env=PATH, check=True, timeout=PATIENCE)


def asked(arguments: list[str]) -> int:
    """A verb; a query is asked again until the batch has arrived."""
    if arguments[1] not in ("query", "status"):
        return invoke(arguments)
    until(lambda: invoke(arguments) == 0)
    return 0


def guide(variant: str, ports: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The guide with other ports, and what it adds to files in this variant."""
    text = GUIDE.read_text()
    for port in ("8401", "8402"):
        text = text.replace(port, free_port())
    for port, other in ports.items():
        text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{other}")
    blocks = re.findall(r"```toml\n(.*?)```", text, re.S)
    found = [(match, block) for block in blocks if (match := ADDITION.match(block))]
    return text, {match[2]: block for match, block in found if match[1] == variant}


def check_estimates() -> None:
    found = pl.read_csv("estimates.csv")
    assert found.height >= 4 and set(found["n"]) == {12}
    said = Path("shuffler.log").read_text() + Path("analyzer.log").read_text()
    assert not re.search("ed25519|walk", said)
    assert "127.0.0.1" not in re.sub(r"(?m)^(shuffler|analyzer) at .*$", "", said)


@pytest.mark.exhaust
def test_the_guide_leads_from_keys_to_estimates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    walk(*guide("sqlite", {}))
    check_estimates()
    assert Path("shuffler.sqlite").exists() and Path("analyzer.sqlite").exists()


@pytest.mark.exhaust
def test_the_guide_leads_to_estimates_on_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Postgres
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("shuffler", "analyzer"):
        postgres.database(name)
    text, additions = guide("postgresql", {"5432": str(postgres.process.port)})
    assert set(additions) == {"shuffler.toml", "analyzer.toml"}
    walk(text, additions)
    check_estimates()
    assert not list(tmp_path.glob("*.sqlite"))


@pytest.mark.exhaust
def test_the_guide_leads_to_estimates_over_mqtt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mosquitto: Mosquitto
) -> None:
    monkeypatch.chdir(tmp_path)
    text, additions = guide("mqtt", {"1883": str(mosquitto.process.port)})
    assert set(additions) == {"shuffler.toml"} and f"--mqtt {mosquitto.url}" in text
    text = text.replace("--http http", f"--mqtt {mosquitto.url} --http http")
    walk(re.sub(r"dovetail-device (submit|flush) ", r"dovetail-device \1 --via mqtt ", text), additions)
    check_estimates()
    assert Path("mqtt.session").stat().st_mode & 0o077 == 0


@pytest.mark.exhaust
def test_the_guide_leads_to_estimates_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, additions = guide("parts", {})
    assert set(additions) == {"shuffler.toml"} and "part_reports = 50000" in text
    walk(text, {name: block.replace("50000", "5") for name, block in additions.items()})
    check_estimates()


def test_every_command_that_the_guide_names_exists() -> None:
    named = set(
        re.findall(r"dovetail (collect [\w-]+(?: add| revoke| list| keys| campaign| finish)?)", GUIDE.read_text())
    )
    assert len(named) >= 10
    for command in named:
        assert invoke([*command.split(), "--help"]) == 0, command
