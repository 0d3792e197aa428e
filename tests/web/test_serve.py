"""The verb: one clear line for what cannot be served, a link for what can; the script of others is as published."""

import socket
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from dovetail.cli.main import invoke
from dovetail.web import app as serve
from dovetail.web.access import Session
from dovetail.web.pages import static_text

HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"  # htmx.org 2.0.11, dist/htmx.min.js


def test_a_taken_port_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert invoke(["web", "--no-open", "--port", str(port)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and len(told.err.splitlines()) == 1
    assert f"127.0.0.1:{port}: cannot listen there (Address already in use)" in told.err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", "", "127.0.0.1:80", "300.0.0.1"])
def test_an_address_that_browsers_cannot_ask_for_is_one_line(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["web", "--no-open", "--port", "0", "--host", host]) == 2
    assert "--host must be one address of this machine, such as 127.0.0.1" in capsys.readouterr().err


def test_the_link_goes_to_the_browser_in_a_file_that_only_its_owner_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[str]()
    monkeypatch.setattr(serve.webbrowser, "open", opened.append)
    session = Session("127.0.0.1:1", tmp_path)
    serve.open_browser(session)
    assert opened == [(tmp_path / "open.html").as_uri()] and "token" not in opened[0]
    assert session.link in (tmp_path / "open.html").read_text()
    assert (tmp_path / "open.html").stat().st_mode & 0o777 == 0o600


def test_the_vendored_script_is_the_published_one() -> None:
    assert sha256(static_text("htmx.min.js").encode()).hexdigest() == HTMX
    assert "https://" not in static_text("web.js") and "http" not in static_text("web.css")


def test_the_planner_comes_with_every_installation() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert {"starlette", "uvicorn"} <= {one.partition(">")[0] for one in project["dependencies"]}
