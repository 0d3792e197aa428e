"""Keys, campaign, check, signature and roster by the command line."""

import json
import re
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import typer.main
from tests.tiers import one_in
from tests.waiting import PATIENCE

from dovetail.cli.collect import app as collect
from dovetail.cli.main import invoke
from dovetail.collect.files import load_campaign, load_keys
from dovetail_protocol import mechanism as protocol_mechanism
from dovetail_protocol.keys import SigningKey

NEW = ["new", "--owner", "owner.key.pub", "--shuffler", "shuffler.key.pub", "--analyzer", "analyzer.key.pub"]
ASKED = ["--id", "commute", "--question", 'How do you "get" to work?']
CATEGORIES = ["--categories", "walk, bike,car"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the keys of all roles."""
    monkeypatch.chdir(tmp_path)
    for role in ("owner", "shuffler", "analyzer", "device"):
        assert invoke(["collect", "keys", role, "--out", f"{role}.key"]) == 0
    return tmp_path


@contextmanager
def answering(response: bytes | None) -> Iterator[str]:
    """The URL of something that answers every request with the same bytes, or never."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    link, _ = listener.accept()
                    kept.append(link)
                    if response is not None:
                        link.recv(1 << 16)
                        link.sendall(response)

        kept = list[socket.socket]()
        Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        for link in kept:
            link.close()


def test_status_of_a_server_that_starts_says_that_and_names_no_role_that_nobody_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_TOKEN", "sesame")
    monkeypatch.setattr("dovetail.cli.collect.query.SECONDS", 0.2)
    head = b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with answering(head % b"502 Bad Gateway") as url:
        assert "behind the proxy there does not answer (status 502); does it start still?" in fails(
            capsys, "status", url
        )
    with answering(None) as url:
        said = fails(capsys, "status", url, status=1)
        assert "has not answered in 0.2 seconds; does it start still?" in said
    with answering(head % b"200 OK") as url:
        assert "is no shuffler or analyzer" in fails(capsys, "status", url)
    assert "no shuffler or analyzer answers there" in fails(capsys, "status", url, status=1)


def fails(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 2) -> str:
    """The one line on standard error of a command that is refused."""
    capsys.readouterr()
    assert invoke(["collect", *arguments]) == status
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "Traceback" not in err
    return err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert invoke(["collect", *arguments, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def test_every_verb_has_complete_help(capsys: pytest.CaptureFixture[str]) -> None:
    commands = typer.main.get_command(collect).commands  # type: ignore[attr-defined]
    commands |= commands["roster"].commands | commands["rotate"].commands
    for name, command in commands.items():
        assert command.help and all(parameter.help for parameter in command.params), name


@pytest.mark.exhaust
def test_the_owners_verbs_need_no_server_library() -> None:
    block = "import sys; sys.modules.update(dict.fromkeys(('sqlalchemy', "
    block += "'prometheus_client', 'paho', 'psycopg', 'httpx'))); "
    block += "from dovetail.cli.main import invoke; "
    script = f"{block} sys.exit(10 * invoke(['collect', '--help']) + invoke(['collect', 'check', 'none.toml']))"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert found.returncode == 2 and "no such campaign file" in found.stderr, found.stderr


def test_keys_are_private_and_their_public_halves_are_not(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (place / "owner.key").stat().st_mode & 0o777 == 0o600
    shown = document(capsys, "keys", "shuffler", "--out", "other.key", "--suite", "mlkem768-x25519")
    assert shown["keys"].keys() == {"shuffler", "shuffler_signing"}
    secrets = load_keys(place / "other.key", "shuffler")
    assert secrets.opening is not None and shown["keys"]["shuffler"] == str(secrets.opening.sealing_key())
    for text in (json.dumps(shown), (place / "other.key.pub").read_text()):
        assert secrets.opening.secret.hex() not in text
        for line in (place / "other.key").read_text().splitlines():
            if "=" in line and "role" not in line:
                assert line.partition(":")[2].strip('"') not in text
    assert "never overwritten" in fails(capsys, "keys", "owner", "--out", "owner.key")


def test_a_new_campaign_is_explained_signed_and_loaded(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = document(capsys, *NEW, *ASKED, *CATEGORIES, "--epsilon", "0.1", "--count", "30", "--http", "http://h")
    assert written["device_budget"] >= 30 * 0.1
    explained = document(capsys, "check", "campaign.toml")
    assert explained["signed"] is False and explained["reports"] == 30 and explained["epsilon"] == 0.1
    with pytest.raises(ValueError, match="not signed"):
        load_campaign(Path("campaign.toml"))
    signed = document(capsys, "sign", "campaign.toml", "--keys", "owner.key")
    found = load_campaign(Path("campaign.toml"))
    assert found.digest.hex() == signed["digest"] and found.question == 'How do you "get" to work?'
    assert found.categories == ("walk", "bike", "car") and found.endpoints == {"http": "http://h"}
    assert document(capsys, "check", "campaign.toml", "--owner", signed["owner"])["signed"] is True
    assert (place / "campaign.toml").stat().st_mode & 0o777 == 0o644
    assert "# What leaves the shuffler" in (place / "campaign.toml").read_text()


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "options",
    one_in(
        3,
        [
            ["--k", "1e3", "--randomizer", "hadamard"],
            ["--k", "8", "--randomizer", "unary", "--groups", "north,south"],
            ["--lower", "0", "--upper", "50", "--epsilon", "2"],
            ["--lower", "10", "--upper", "50", "--randomizer", "budget_laplace", "--beta", "0.2", "--rho", "0.9"],
            ["--k", "4", "--manual", "--open", "--small", "merge", "--late", "next"],
            ["--k", "4", "--start", "2030-01-01T00:00:00", "--grace", "60", "--minimum", "1e4", "--close-at", "2e4"],
            ["--k", "4", "--honest", "500", "--dishonest", "10", "--delta", "1e-9", "--device-budget", "2"],
        ],
    ),
)
def test_every_kind_of_campaign_can_be_written_and_explained(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["collect", *NEW, *ASKED, *options]) == 0, capsys.readouterr().err
    assert invoke(["collect", "check", "campaign.toml"]) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    assert "one report" in out and "warning: the campaign never expires" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--id is missing"),
        (ASKED, "give --categories, --k, or --lower and --upper"),
        ([*ASKED, "--k", "2.5"], "--k"),
        ([*ASKED, "--categories", "a,a"], "twice"),
        ([*ASKED, *CATEGORIES, "--lower", "1"], "takes no|has no parameter|laplace"),
        ([*ASKED, "--k", "4", "--count", "0"], "`--count`"),
        ([*ASKED, "--k", "4", "--epsilon", "0"], "--epsilon must be"),
        (["--id", "a b", *ASKED[2:], "--k", "4"], "--id"),
        ([*ASKED, "--k", "4", "--close-at", "5"], "below"),
    ],
)
def test_what_makes_no_campaign_is_refused_and_writes_nothing(
    options: list[str], words: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(words, fails(capsys, *NEW, *options))
    assert not (place / "campaign.toml").exists()


def test_an_existing_campaign_is_replaced_only_by_force(capsys: pytest.CaptureFixture[str]) -> None:
    command = [*NEW, *ASKED, *CATEGORIES]
    assert invoke(["collect", *command]) == 0
    assert "--force" in fails(capsys, *command)
    assert invoke(["collect", *command, "--force"]) == 0


def test_keys_of_the_wrong_role_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    swapped = ["new", "--owner", "device.key.pub", "--shuffler", "shuffler.key.pub", "--analyzer", "analyzer.key.pub"]
    assert "public keys of the owner" in fails(capsys, *swapped, *ASKED, *CATEGORIES)
    secret = ["new", "--owner", "owner.key", "--shuffler", "shuffler.key", "--analyzer", "analyzer.key"]
    assert invoke(["collect", *secret, *ASKED, *CATEGORIES]) == 0
    assert "must never hold" in fails(capsys, "sign", "campaign.toml", "--keys", "analyzer.key")


@pytest.mark.exhaust
def test_a_changed_campaign_is_invalid_until_it_is_signed_again(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["collect", *NEW, *ASKED, *CATEGORIES]) == 0
    assert invoke(["collect", "sign", "campaign.toml", "--keys", "owner.key"]) == 0
    path = place / "campaign.toml"
    path.write_text(path.read_text().replace("count = 24", "count = 25"))
    assert "changed since" in fails(capsys, "check", "campaign.toml")
    assert invoke(["collect", "sign", "campaign.toml", "--keys", "owner.key"]) == 0
    assert document(capsys, "check", "campaign.toml")["reports"] == 24  # the budget was made for 24
    assert "no such campaign file" in fails(capsys, "check", "none.toml")
    assert "not signed by" in fails(capsys, "check", "campaign.toml", "--owner", f"ed25519:{'B' * 42}A")


def test_a_shuffle_that_no_server_would_run_is_neither_explained_nor_signed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["collect", *NEW, *ASKED, *CATEGORIES]) == 0
    path = place / "campaign.toml"
    public = f'alpha = 1.0\npublic = "slots.csv"\npublic_sha256 = "{"ab" * 32}"\ngroups = {{ labels = "place" }}'
    path.write_text(path.read_text().replace('shuffler = "uniform"', f'shuffler = "planar"\n{public}'))
    for verb in (["check", "campaign.toml"], ["sign", "campaign.toml", "--keys", "owner.key"]):
        line = fails(capsys, *verb)
        assert "campaign.toml: the campaign commute: [shuffle] shuffler 'planar' needs groups of `points`" in line
    assert "# signed" not in path.read_text()


def test_a_randomizer_that_no_device_runs_makes_no_campaign(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke(["collect", *NEW, *ASKED, *CATEGORIES]) == 0
    monkeypatch.setattr(protocol_mechanism, "names", lambda: ("laplace",))
    again = [*NEW, *ASKED, *CATEGORIES, "--force"]
    for verb in (again, ["check", "campaign.toml"], ["sign", "campaign.toml", "--keys", "owner.key"]):
        assert "randomizer 'krr' has no form for devices, so no campaign can use it" in fails(capsys, *verb)
    assert "'krrr'; did you mean 'krr'" in fails(capsys, *again, "--randomizer", "krrr")


def test_devices_are_admitted_listed_and_revoked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["collect", "keys", "device", "--out", "other.key"]) == 0
    added = document(capsys, "roster", "add", "roster.csv", "device.key.pub", "other.key.pub")
    assert [(device["slot"], device["revoked"]) for device in added["devices"]] == [(0, False), (1, False)]
    name = added["devices"][0]["device"]
    revoked = document(capsys, "roster", "revoke", "roster.csv", name)
    assert [device["revoked"] for device in revoked["devices"]] == [True, False]
    capsys.readouterr()
    assert invoke(["collect", "roster", "list", "roster.csv"]) == 0
    out = capsys.readouterr().out
    assert f"{name}  revoked" in out and "2 devices, 1 of them revoked" in out
    again = fails(capsys, "roster", "add", "roster.csv", name)
    assert "roster.csv: 1 of these devices are in the roster already" in again
    assert "`device`" in fails(capsys, "roster", "add", "roster.csv", "ed25519:x")
    assert "public keys" in fails(capsys, "roster", "add", "roster.csv", "none.pub")
    assert (place / "roster.csv").read_text().count("ed25519") == 2


def test_admitting_devices_says_what_share_of_them_breaks_the_promise(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["collect", *NEW, *ASKED, *CATEGORIES, "--minimum", "100", "--dishonest", "10"]) == 0
    devices = [str(SigningKey(number.to_bytes(32, "big")).verifying_key()) for number in range(1, 111)]
    few = document(capsys, "roster", "add", "roster.csv", *devices[:99], "--campaign", "campaign.toml")
    assert few["promise"] is None
    capsys.readouterr()
    add = ["collect", "roster", "add", "roster.csv", "--campaign", "campaign.toml"]
    assert invoke([*add, devices[99]]) == 0
    assert "100 devices may send. 11 of them in one dishonest hand (11 %) break" in capsys.readouterr().out
    assert "no such campaign file" in fails(capsys, *add[1:-1], "none.toml", devices[100])
    assert devices[100] not in (place / "roster.csv").read_text(), "nobody is admitted by a command that is refused"
    without = document(capsys, "roster", "add", "roster.csv", *devices[101:])
    assert "promise" not in without


HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202egnorw\u2066\x9b31m\r\nfake row: signed"


@pytest.mark.exhaust
@pytest.mark.parametrize("words", one_in(2, [["--json"], []]))
def test_a_foreign_campaign_writes_on_no_terminal(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """Its texts are shown with every control character written out, and markup in them is text."""
    asked = ["--id", "commute", "--question", "Really?", "--categories", "walk,bike", "--http", "http://h"]
    assert invoke(["collect", *NEW, *asked]) == 0
    path = place / "campaign.toml"
    bad = json.dumps(f"[bold red]{HOSTILE}[/bold red]")
    text = path.read_text().replace('"Really?"', bad).replace('"walk"', bad).replace("\\u009b", "\x9b")
    path.write_text(text)
    capsys.readouterr()
    assert invoke(["collect", "check", "campaign.toml", *words]) == 0
    shown = capsys.readouterr().out
    assert not {unicodedata.category(letter) for letter in shown if letter != "\n"} & {"Cc", "Cf", "Zl", "Zp"}
    assert not any(line.startswith("fake row") for line in shown.splitlines())
    if words:
        assert json.loads(shown)["words"]["question"].startswith(f"[bold red]{HOSTILE}")
    else:
        flat = re.sub(r"[\s│]+", "", shown)
        assert "[boldred]\\x1b[2J\\x1b]0;owned" in flat and "\\u202e" in flat and "plainHTTP" in flat


def test_an_error_that_repeats_a_foreign_text_writes_on_no_terminal(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "\x1b" not in fails(capsys, "check", "\x1b[2Jnone.toml")
