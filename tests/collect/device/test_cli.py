"""The command lines of the device, and that they need neither numpy nor any other package of the analyst."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import typer
from tests.collect.device.made import campaign, opened, word
from tests.waiting import PATIENCE
from typer.testing import CliRunner

from dovetail.cli.collect import devices as verb
from dovetail.cli.options import add_verbs
from dovetail_device.__main__ import main
from dovetail_device.files import load_keys, save_keys
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import RoleKeys

SERVICE = 'schedule = "manual"\ncount = 5'


class Server(ThreadingHTTPServer):
    """Accepts everything, or answers `status`."""

    status = 202
    got: list[bytes]


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(made.status)
            if made.status == 202:
                self.send_header("Dovetail-Answer", word(made.got[-1]))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    made = Server(("127.0.0.1", 0), Handler)
    made.got = []
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def asked(tmp_path: Path, server: Server) -> Campaign:
    """A campaign file and a device's keys in the test's folder."""
    made = campaign(
        schedule=SERVICE, budget=2.0, extra=f'[endpoints]\nhttp = "http://127.0.0.1:{server.server_port}"'
    )
    (tmp_path / "campaign.toml").write_bytes(made.signed)
    save_keys(RoleKeys.generate("device"), tmp_path / "device.toml")
    return made


def given(folder: Path, *more: str, name: str = "submit") -> list[str]:
    return [name, "--campaign", str(folder / "campaign.toml"), "--keys", str(folder / "device.toml"), "--json", *more]


def run(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, dict[str, object], str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, json.loads(captured.out or "{}"), captured.err


def test_a_value_from_standard_input_is_submitted_once(
    tmp_path: Path,
    asked: Campaign,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for drawn in (True, False):
        monkeypatch.setattr("sys.stdin", io.StringIO("green\n"))
        status, document, noise = run(capsys, given(tmp_path, "--round", "2"))
        assert status == 0 and ("no memory of earlier reports" in noise) == drawn and noise.count("\n") == drawn
        receipt = {"campaign": "colours", "round": 2, "state": "accepted", "reason": "", "wait": 0.0, "drawn": drawn}
        assert document == {"schema_version": 1, "receipts": [receipt]}
    assert len(server.got) == 1 and opened(asked, server.got[0])[0].round == 2
    assert (tmp_path / "device.toml.outbox").stat().st_mode & 0o777 == 0o600


def test_a_value_on_the_command_line_comes_with_a_warning(
    tmp_path: Path, asked: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, noise = run(capsys, given(tmp_path, "--round", "1", "--value", "red"))
    assert status == 0 and "is seen by everybody who lists processes" in noise


def test_what_waits_is_flushed_and_status_shows_the_ledger(
    tmp_path: Path, asked: Campaign, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.status = 503
    status, document, _ = run(capsys, given(tmp_path, "--round", "1", "--value", "red"))
    assert status == 0 and document["receipts"][0]["state"] == "waiting"  # type: ignore[index]
    server.status = 202
    status, document, _ = run(capsys, given(tmp_path, "--wait", "5", name="flush"))
    assert status == 0 and document["receipts"][0]["state"] == "accepted"  # type: ignore[index]
    status, document, _ = run(capsys, ["status", "--keys", str(tmp_path / "device.toml"), "--json"])
    (ledger,) = document["campaigns"]  # type: ignore[misc]
    assert (ledger["spent"], ledger["budget"], ledger["counts"]) == (1.0, 2.0, {"accepted": 1})
    assert main(["status", "--keys", str(tmp_path / "device.toml")]) == 0
    assert capsys.readouterr().out == ("colours, version 1: 1 of 2 nats spent; reports: 1 accepted, 0 waiting.\n")


def test_a_value_is_used_once_what_was_drawn_before_has_arrived(
    tmp_path: Path, asked: Campaign, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.status = 503
    assert run(capsys, given(tmp_path, "--round", "1", "--value", "red"))[0] == 0
    plain = [word for word in given(tmp_path, "--round", "2", "--value", "red") if word != "--json"]
    assert main(plain) == 0
    assert "What was drawn before has to arrive first; this value was not used." in capsys.readouterr().out
    server.status = 202
    _, document, _ = run(capsys, given(tmp_path, "--round", "2", "--value", "red", "--wait", "60"))
    (receipt,) = document["receipts"]  # type: ignore[misc]
    assert (receipt["round"], receipt["state"], receipt["drawn"]) == (2, "accepted", True)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--value", "magenta-4711"), "`value` must be one of red"),
        (("--value", "red", "--max-epsilon", "0.5"), "gives at most 0.5"),
        (("--value", "red", "--owner", "ed25519:" + "B" * 42 + "A"), "is not signed by ed25519:BBB"),
        (("--value", "red", "--via", "mqtt"), "names no `endpoints.mqtt`"),
        (("--value", "red", "--url", "ftp://x"), "`url` must be http://host:port or https://host:port"),
        (("--value", "red", "--round", "1", "--wait", "nan"), "`wait` must be a finite number, at least 0"),
        (("--value", "red", "--round", "1", "--wait", "-1"), "`wait` must be a finite number, at least 0"),
        (("--value", "red", "--user", "fleet"), "--user and --password-file go together"),
        (("--value", "red", "--user", "u", "--password-file", "p"), "and with --via mqtt"),
        (("--value", "red", "--via", "mqtt", "--user", "u", "--password-file", "p"), "p: no file with a password"),
        (("--value", "red"), "nobody says which round"),
    ],
)
def test_faults_are_one_line_without_the_value(
    tmp_path: Path,
    asked: Campaign,
    server: Server,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    told: str,
) -> None:
    status, document, noise = run(capsys, given(tmp_path, *more))
    line = noise.splitlines()[-1]
    assert (status, document, server.got) == (2, {}, []) and line.startswith("error: ") and told in line
    assert "4711" not in noise


def test_a_spent_budget_is_one_clear_line(
    tmp_path: Path, asked: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in ("1", "2"):
        assert run(capsys, given(tmp_path, "--round", number, "--value", "red"))[0] == 0
    status, _, noise = run(capsys, given(tmp_path, "--round", "3", "--value", "red"))
    assert status == 2 and "the budget of 2 nats for the campaign colours does not pay" in noise


@pytest.mark.parametrize("more", [("--round", "x"), ("--via", "post"), ("--nonsense",)])
def test_wrong_usage_is_one_line_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given(tmp_path, *more))
    noise = capsys.readouterr().err
    assert ended.value.code == 2 and noise.startswith("error: ") and noise.count("\n") == 1
    assert "--help)" in noise and more[0] in noise


def test_keys_makes_a_key_file_and_prints_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "new.toml"
    status, document, _ = run(capsys, ["keys", str(place), "--json"])
    made = load_keys(place, "device").signing
    assert made and (status, document["device"]) == (0, str(made.verifying_key()))
    assert run(capsys, ["keys", str(place)])[0] == 2  # keys are never overwritten


def test_the_verb_of_the_package_does_the_same(tmp_path: Path, asked: Campaign, server: Server) -> None:
    app = typer.Typer()
    app.callback()(lambda: None)
    add_verbs(app, {"submit": verb._submit})
    arguments = given(tmp_path, "--round", "1")
    result = CliRunner().invoke(app, arguments, input="red\n")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["receipts"][0]["state"] == "accepted"
    plain = CliRunner().invoke(app, [word for word in arguments if word != "--json"], input="blue\n")
    assert plain.exit_code == 0 and "this value was not used" in plain.stdout and len(server.got) == 1


ALONE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        known = {"dovetail_device", "dovetail_protocol", "cryptography", "_cffi_backend", "cffi"}
        if name.partition(".")[0] not in known | sys.stdlib_module_names:
            raise ImportError(f"{name} is not for devices")
sys.meta_path.insert(0, Refuse())
import pkgutil, dovetail_device
for module in pkgutil.walk_packages(dovetail_device.__path__, "dovetail_device."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
from dovetail_device.__main__ import main
status = main(sys.argv[1:])
assert not any(name in sys.modules for name in ("numpy", "paho", "dovetail"))
sys.exit(status)
"""


def test_the_device_needs_the_standard_library_and_cryptography_only(
    tmp_path: Path, asked: Campaign, server: Server
) -> None:
    alone = [sys.executable, "-c", ALONE, *given(tmp_path, "--round", "1")]
    done = subprocess.run(alone, input="red\n", capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["receipts"][0]["state"] == "accepted" and len(server.got) == 1
    broken = subprocess.run(
        [sys.executable, "-c", ALONE.replace("import pkgutil", "import numpy, pkgutil")],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert "numpy is not for devices" in broken.stderr


@pytest.mark.exhaust
def test_mqtt_without_its_extra_says_how_to_install_it(tmp_path: Path, asked: Campaign) -> None:
    alone = [
        sys.executable,
        "-c",
        ALONE,
        *given(tmp_path, "--round", "1", "--via", "mqtt", "--url", "mqtt://127.0.0.1"),
    ]
    done = subprocess.run(alone, input="red\n", capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2 and "pip install 'dovetail-device[mqtt]'" in done.stderr
