"""The issuer over HTTP, its command line, and a device that shows neither address nor name."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.collect.device.made import Bench
from tests.collect.issuer.world import TokenWorld, signers, with_tokens
from tests.collect.servers import free_port, serving
from tests.collect.shuffler.served import kind
from tests.collect.shuffler.test_gateway import KEY, behind
from tests.collect.shuffler.world import BEGIN, SHUFFLER, roster
from tests.waiting import PATIENCE, until
from typer.testing import CliRunner

from dovetail.cli.main import app as command_line
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.roster import LiveRoster
from dovetail.collect.files import load_campaign, load_keys, save_keys
from dovetail.collect.issuer.app import issuer_app, scrape
from dovetail.collect.issuer.issuer import of_roster
from dovetail.collect.issuer.issuer_config import IssuerConfig, assemble, load
from dovetail.collect.issuer.signing import SigningFault
from dovetail.collect.store.engine import Database
from dovetail.collect.store.issuer_store import open_issuer_store
from dovetail.core.errors import ConfigError
from dovetail_device.__main__ import main as device_command
from dovetail_device.http import HttpIssuer, ObliviousTransport
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.messages import inner_bytes, inner_info, open_envelope, split
from dovetail_protocol.tokens import LONGEST


@dataclass(frozen=True)
class At:
    """The way of a device over HTTP to an issuer on a port of this machine, wherever the campaign says it is."""

    url: str

    def ask(self, _: str, application: bytes) -> bytes | str:
        return HttpIssuer(timeout=PATIENCE).ask(self.url, application)


@contextmanager
def issuing(world: TokenWorld, issuer: Any = None) -> Iterator[str]:
    """The address of this world's issuer: the real server on a free port, on the world's clock."""
    with serving(issuer_app(issuer or world.issuer, world.world.clock)) as url:
        yield url


def test_a_device_gets_its_tokens_over_http_and_is_told_why_not() -> None:
    world = TokenWorld()
    with issuing(world) as url:
        way = At(url)
        bench = Bench(world.asked, world.transport, world.clock, world.keys[0], issuer=way)  # type: ignore[arg-type]
        assert [receipt.state for receipt in bench.device.fetch_tokens()] == ["held"] * 4
        assert bench.device.submit(1).state == "accepted"
        assert way.ask("", b"junk") == "malformed" and way.ask("", bytes(LONGEST + 1)) == "too_large"
        stranger = Bench(world.asked, world.transport, world.clock, issuer=way)  # type: ignore[arg-type]
        for _ in range(3):
            assert {receipt.reason for receipt in stranger.device.fetch_tokens()} == {"unentitled"}
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            assert client.get("/readyz").json()["status"] == "ready"
            assert kind(client.get("/v1/tokens")) == "method" and kind(client.get("/v1/reports")) == "not_found"
            told = client.get("/metrics").text
    assert 'dovetail_tokens_refused_total{campaign="commute",kind="unentitled"} 10.0' in told
    assert 'dovetail_round_keys{campaign="commute"} 5.0' in told and "dovetail_ready 1.0" in told
    assert HttpIssuer().ask("http://127.0.0.1:9", b"") == "unavailable"


def test_strangers_who_send_no_body_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.collect.issuer.app._MOST_WAITING", 2)
    world = TokenWorld()
    world.bench().device.fetch_tokens(0)
    app, body = issuer_app(world.issuer, world.world.clock), world.way.asked[0]
    head = {
        "type": "http",
        "scheme": "http",
        "method": "POST",
        "path": "/v1/tokens",
        "query_string": b"",
        "headers": [],
    }

    async def ask() -> int:
        told: list[int] = []
        waiting = asyncio.Semaphore(0)

        async def silent() -> dict[str, Any]:
            waiting.release()
            await asyncio.Event().wait()
            raise AssertionError

        async def whole() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            told.append(message.get("status", 0))

        strangers = [asyncio.create_task(app(dict(head), silent, send)) for _ in range(2)]
        for _ in strangers:
            await waiting.acquire()
        await app(dict(head), whole, send)
        for stranger in strangers:
            stranger.cancel()
        await asyncio.gather(*strangers, return_exceptions=True)
        return told[0]

    assert asyncio.run(ask()) == 200


def test_pages_of_any_origin_ask_for_tokens_and_see_nothing_else() -> None:
    page, asked = {"Origin": "https://a.example"}, {"Access-Control-Request-Method": "POST"}
    with issuing(TokenWorld()) as url, httpx.Client(base_url=url, timeout=PATIENCE, headers=page) as client:
        for told in (client.options("/v1/tokens", headers=asked), client.post("/v1/tokens", content=b"junk")):
            assert told.headers["Access-Control-Allow-Origin"] == "*"
        for path in ("/metrics", "/readyz", "/healthz"):
            for told in (client.options(path, headers=asked), client.get(path)):
                assert not any(name.startswith("access-control") for name in told.headers)


def test_a_roster_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """The last good one counts, and a revocation since does not: somebody has to see that."""
    world, file = TokenWorld(), tmp_path / "roster.csv"
    world.roster.save(file)
    issuer = world.opened(entitled=of_roster(LiveRoster(file)))
    assert b"dovetail_roster_broken 0.0" in scrape(issuer, BEGIN)
    file.write_text("broken")
    with issuing(world, issuer) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        told = client.get("/readyz").json()
        assert told["status"] == "degraded" and "roster.csv" in told["roster"]
        assert "dovetail_roster_broken 1.0" in client.get("/metrics").text


def test_a_fault_of_the_signer_is_told_as_a_reason_to_come_back() -> None:
    class Broken:
        def sign(self, blinded: bytes) -> bytes:
            raise SigningFault("the key file is gone")

    world = TokenWorld()
    with issuing(world, world.opened(signers={key: Broken() for key in signers()})) as url:
        bench = Bench(world.asked, world.transport, world.clock, world.keys[0], issuer=At(url))  # type: ignore[arg-type]
        assert bench.device.fetch_tokens(0)[0].reason == "unavailable"
        assert world.store.counts() == {("commute", 1): 1}


def test_with_relay_and_token_the_shuffler_sees_neither_address_nor_name() -> None:
    """The device key of the roster reaches the issuer alone, its address the relay and the issuer alone."""
    through = f'[ohttp]\nrelay = "https://relay.example.org"\nkeys = ["{KEY}"]\npad = 704\n'
    world = TokenWorld(asked=with_tokens(top=through))
    with behind(world.world) as (url, seen, client):
        transport = ObliviousTransport(url, timeout=PATIENCE)
        bench = Bench(world.asked, transport, world.clock, world.keys[0], issuer=world.way)  # type: ignore[arg-type]
        bench.device.fetch_tokens()
        assert bench.device.submit(1).state == "accepted"
        assert seen and world.world.store.rounds("commute")[0].count == 1
        refused = httpx.post(f"{client.base_url}/v1/tokens", content=world.way.asked[0], timeout=PATIENCE)
        assert refused.status_code == 404, "the gateway's process issues nothing"
    name = world.keys[0].signing.verifying_key().public  # type: ignore[union-attr]
    assert any(name in asked for asked in world.way.asked), "the issuer knows who asks"
    told = {line.name: line.words for line in explain(world.asked).lines}
    assert "a token that names nobody" in told["shuffler (gateway)"]
    assert "can invent people" in told["issuer issuer.example.org"]


def test_what_the_issuer_has_seen_is_nowhere_in_what_the_shuffler_gets() -> None:
    world = TokenWorld()
    bench = world.bench()
    bench.device.fetch_tokens(0)
    bench.device.submit(1)
    assert SHUFFLER.opening
    envelope = open_envelope(world.asked, world.transport.sent[0], SHUFFLER.opening.opener())
    seen = world.way.asked[0] + world.way.answered[0]
    for part in (envelope.device.public, envelope.inner, envelope.report_id):
        assert not any(part[at : at + 8] in seen for at in range(0, len(part) - 8, 8))


# The command line.


def run(*words: str) -> str:
    found = CliRunner().invoke(command_line, ["collect", *words])
    assert found.exit_code == 0, found.output + str(found.exception)
    return found.output


CONFIG = """
schema_version = 1
campaigns = ["campaign.toml"]
keys = "issuer.key"
round_keys = "issuer-keys"
{entitled}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A signed campaign of two rounds with tokens, made on the command line."""
    monkeypatch.chdir(tmp_path)
    for role in ("owner", "shuffler", "analyzer", "issuer"):
        run("keys", role, "--out", f"{role}.key")
    run("token-keys", "--rounds", "2", "--out", "issuer-keys")
    public = [word for role in ("owner", "shuffler", "analyzer") for word in (f"--{role}", f"{role}.key.pub")]
    asked = ["--id", "commute", "--question", "How?", "--categories", "walk,bike,car", "--count", "2"]
    asked += ["--http", "http://127.0.0.1:8401", "--issuer", "http://127.0.0.1:8404", "--start", "2020-01-01"]
    run("new", *public, *asked, "--period", "1e9", "--token-keys", "issuer-keys.pub")
    run("sign", "campaign.toml", "--keys", "owner.key")
    return tmp_path


def test_a_campaign_with_tokens_is_made_checked_and_issued_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = run("check", "campaign.toml")
    assert "issuer 127.0.0.1" in told and "tokens are experimental" in " ".join(told.split())
    (folder / "codes").mkdir()
    (code,) = run("invite", "--count", "1", "--folder", "codes").split()
    (folder / "issuer.toml").write_text(CONFIG.format(entitled='invitations = "codes"'))
    issuer = assemble(load(folder / "issuer.toml"), folder)
    assert issuer.keys_here() == {"commute": [1, 2]} and b"dovetail_round_keys" in scrape(issuer, BEGIN)
    (folder / "code").write_text(code + "\n")
    (folder / "code").chmod(0o600)
    assert device_command(["keys", "device.key"]) == 0
    command = ["tokens", "--campaign", "campaign.toml", "--keys", "device.key", "--entitlement-file", "code"]
    capsys.readouterr()
    assert device_command(command) == 0
    assert "token of round 1: waiting (the issuer does not answer)." in capsys.readouterr().out
    assert device_command([*command, "--ahead", "0", "--json"]) == 0
    assert '"state": "waiting"' in capsys.readouterr().out
    issuer.store.close()


@pytest.mark.parametrize(
    ("entitled", "words"),
    [
        ("", "one of"),
        ('roster = "roster.csv"\ninvitations = "codes"', "one of"),
        ('accounts = "short"', "at least 32 characters"),
        ('roster = "absent.csv"', "no roster that can be read"),
        ('roster = "roster.csv"\nround_keys = "absent"', "token-keys"),
        ('roster = "roster.csv"\nstore = "sqlite://"', "in memory"),
        ('roster = "roster.csv"\nstore = "sqlite:///:memory:"', "in memory"),
        ('roster = "roster.csv"\nstore = "sqlite:///file:x?mode=memory&uri=true"', "in memory"),
    ],
)
def test_a_configuration_that_cannot_be_served_is_refused_in_words(folder: Path, entitled: str, words: str) -> None:
    (folder / "short").write_text("secret\n")
    (folder / "short").chmod(0o600)
    (folder / "roster.csv").write_text("device,slot,revoked\n")
    text = CONFIG.format(entitled=entitled)
    (folder / "issuer.toml").write_text(
        text.replace('round_keys = "issuer-keys"\n', "", text.count("round_keys") - 1)
    )
    with pytest.raises(ConfigError, match=words):
        assemble(load(folder / "issuer.toml"), folder)


def test_issuer_and_token_keys_go_together(folder: Path) -> None:
    alone = CliRunner().invoke(command_line, ["collect", "new", "--issuer", "https://issuer.example.org"])
    assert alone.exit_code != 0
    again = CliRunner().invoke(command_line, ["collect", "token-keys", "--rounds", "1", "--out", "issuer-keys"])
    assert "never overwritten" in str(again.exception)


def test_a_campaign_with_tokens_is_simulated_with_an_issuer_and_keys_of_its_own(folder: Path) -> None:
    words = ["--campaign", "campaign.toml", "--devices", "4", "--rounds", "1", "--crash", "0.02", "--json"]
    found = json.loads(run("simulate", *words))
    assert found["sound"] and found["reports"]["acknowledged"] == 4 and "issuer" in found["crashes"]
    given = CliRunner().invoke(command_line, ["collect", "simulate", "--campaign", "campaign.toml", "--tokens"])
    assert "says in its file" in str(given.exception)


@pytest.mark.exhaust
def test_the_issuer_starts_as_a_process_and_stops_when_told(folder: Path) -> None:
    (folder / "roster.csv").write_text("device,slot,revoked\n")
    text = CONFIG.format(entitled='roster = "roster.csv"\nlisten = "127.0.0.1:0"')
    (folder / "issuer.toml").write_text(text)
    command = [sys.executable, "-m", "dovetail", "collect", "issuer", "issuer.toml"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("issuer at http://127.0.0.1:"), process.stderr and process.stderr.read()
        assert HttpIssuer(timeout=PATIENCE).ask(line.split()[-1], b"junk") == "malformed"
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_the_sample_configuration_is_taken_and_names_every_key() -> None:
    sample = Path(__file__).parents[3] / "docs" / "samples" / "collect" / "issuer.toml"
    assert load(sample).roster == "roster.csv"
    shown = set(re.findall(r"(?m)^(?:## )?\[?(\w+)(?: =|\])", sample.read_text()))
    assert shown == {*IssuerConfig.model_fields, "certificate", "key"}


@contextmanager
def process(folder: Path, verb: str) -> Iterator[subprocess.Popen[str]]:
    """A server of the command line that listens; killed, without a word, at the end."""
    command = [sys.executable, "-m", "dovetail", "collect", verb, f"{verb}.toml"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None and started.stderr is not None
            line = started.stdout.readline()
            assert line.startswith(f"{verb} at "), started.stderr.read()
            yield started
        finally:
            started.kill()


@pytest.mark.exhaust
def test_servers_that_are_killed_between_tokens_and_reports_count_everybody_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes, SIGKILL after every second device; the batch is opened where it waits for the analyzer."""
    monkeypatch.chdir(tmp_path)
    for role in ("owner", "shuffler", "analyzer", "issuer"):
        run("keys", role, "--out", f"{role}.key")
    run("token-keys", "--rounds", "1", "--out", "issuer-keys")
    public = [word for role in ("owner", "shuffler", "analyzer") for word in (f"--{role}", f"{role}.key.pub")]
    issuer, shuffler = (f"127.0.0.1:{free_port()}" for _ in range(2))
    asked = ["--id", "commute", "--question", "How?", "--categories", "walk,bike,car", "--count", "1", "--manual"]
    asked += ["--http", f"http://{shuffler}", "--issuer", f"http://{issuer}", "--minimum", "5"]
    run("new", *public, *asked, "--token-keys", "issuer-keys.pub")
    run("sign", "campaign.toml", "--keys", "owner.key")
    devices = [RoleKeys.generate("device") for _ in range(5)]
    for place, device in enumerate(devices):
        save_keys(device, tmp_path / f"{place}.key")
    roster([device.signing for device in devices if device.signing]).save(tmp_path / "roster.csv")
    entitled = f'roster = "roster.csv"\nlisten = "{issuer}"'
    (tmp_path / "issuer.toml").write_text(CONFIG.format(entitled=entitled))
    (tmp_path / "shuffler.toml").write_text(
        'schema_version = 1\ncampaigns = ["campaign.toml"]\nkeys = "shuffler.key"\n'
        f'analyzer = "http://127.0.0.1:9"\nlisten = "{shuffler}"\n'
    )
    for places in ([0, 1], [1, 2, 3], [3, 4, 0]):
        with process(tmp_path, "issuer"), process(tmp_path, "shuffler"):
            for place in places:
                command = ["--campaign", "campaign.toml", "--keys", f"{place}.key"]
                assert device_command(["tokens", *command, "--ahead", "0"]) == 0
                assert device_command(["submit", *command, "--value", "bike"]) == 0
                assert device_command(["submit", *command, "--value", "car"]) == 0
    with process(tmp_path, "shuffler"):
        run("close", "campaign.toml", "1", "--keys", "owner.key")
        with httpx.Client(base_url=f"http://{shuffler}", timeout=PATIENCE) as client:
            until(lambda: client.get("/v1/status").json()["batches_waiting"] == 1)
    database = Database(f"sqlite:///{tmp_path / 'shuffler.sqlite'}")
    (body,) = database.read(lambda connection: connection.exec_driver_sql("SELECT body FROM part").scalars().all())
    database.close()
    named = load_campaign(tmp_path / "campaign.toml")
    entries = split(body, 5)
    opening = load_keys(tmp_path / "analyzer.key", "analyzer").opening
    assert opening and {len(entry) for entry in entries} == {inner_bytes(named)}
    assert (
        all(opening.opener().open(entry, inner_info(named, 1)) for entry in set(entries)) and len(set(entries)) == 5
    )
    store = open_issuer_store(f"sqlite:///{tmp_path / 'issuer.sqlite'}")
    assert store.counts() == {("commute", 1): 5}
    store.close()
