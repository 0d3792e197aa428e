"""docs/collect.md is run as it stands, on free ports, and ends with estimates."""

import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from os import environ
from pathlib import Path

import httpx
import polars as pl
import pytest
from tests.waiting import PATIENCE, until

from dovetail.cli.main import invoke

GUIDE = Path(__file__).parent.parent.parent / "docs" / "collect.md"
PATH = {**environ, "PATH": f"{Path(sys.executable).parent}:{environ['PATH']}"}
OPERATORS = re.compile(r"[|>]|\$\(")


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return str(bound.getsockname()[1])


@contextmanager
def server(line: str) -> Iterator[None]:
    """A command that runs until the end of the guide, and must then stop in order."""
    with Path(f"{shlex.split(line)[2]}.log").open("w") as log:
        process = subprocess.Popen(shlex.split(line), env=PATH, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        ready = partial(httpx.get, f"{url}/readyz", timeout=PATIENCE)
        until(lambda: ready().status_code == 200, httpx.HTTPError, alive=lambda: process.poll() is None)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.stdout.close()
            status = process.wait(PATIENCE)
        assert status == 0


@pytest.mark.exhaust
def test_the_guide_leads_from_keys_to_estimates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text()
    for port in ("8401", "8402"):
        text = text.replace(port, free_port())
    with ExitStack() as running:
        for kind, block in re.findall(r"```(bash|toml)\n(.*?)```", text, re.S):
            if kind == "toml":
                Path(re.match(r"# (\S+)", block)[1]).write_text(block)  # type: ignore[index]
                continue
            for line in block.splitlines():
                if line.endswith("&"):
                    running.enter_context(server(line.removesuffix("&")))
                elif line.startswith("dovetail ") and not OPERATORS.search(line):
                    assert asked(shlex.split(line)[1:]) == 0, line
                else:
                    subprocess.run(["bash", "-euc", line], env=PATH, check=True, timeout=PATIENCE)
    found = pl.read_csv("estimates.csv")
    assert found.height >= 4 and set(found["n"]) == {12}
    assert not re.search(
        "ed25519|127\\.0\\.0\\.1|walk", Path("shuffler.log").read_text() + Path("analyzer.log").read_text()
    )


def asked(arguments: list[str]) -> int:
    """A verb; a query is asked again until the batch has arrived."""
    if arguments[1] not in ("query", "status"):
        return invoke(arguments)
    until(lambda: invoke(arguments) == 0)
    return 0


def test_every_command_that_the_guide_names_exists() -> None:
    named = set(
        re.findall(r"dovetail (collect [\w-]+(?: add| revoke| list| keys| campaign| finish)?)", GUIDE.read_text())
    )
    assert len(named) >= 10
    for command in named:
        assert invoke([*command.split(), "--help"]) == 0, command
