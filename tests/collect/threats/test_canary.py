"""Planted addresses, client ids, topics, user agents, clocks and values: nowhere in what the roles keep and tell."""

from __future__ import annotations

import json
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.collect.threats.conftest import Collection
from tests.collect.threats.stage import ADDRESS, ASKING, CANARIES, HEADERS, entries, found, memory_of, spellings
from tests.waiting import PATIENCE

from dovetail.collect.simulate.deployment import COMMUTE, Deployment, server_process
from dovetail_device.http import HttpIssuer
from dovetail_protocol.binary_http import BinaryResponse, padded
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.messages import oblivious_request, plain, seal
from dovetail_protocol.ohttp import REQUEST_TYPE
from dovetail_protocol.tokens import PendingToken, apply_for


@pytest.mark.exhaust
def test_the_analyzer_keeps_and_tells_no_canary(collection: Collection) -> None:
    seized = collection.analyzer
    assert len(seized.files) >= 2 and len(seized.told) >= 13
    assert found(CANARIES, seized.files) == found(CANARIES, seized.told) == []


def test_the_analyzers_memory_holds_no_canary_of_a_device(collection: Collection) -> None:
    if not collection.analyzer.memory:
        pytest.skip("nobody may read the memory of another process here")
    planted = [word.encode() for word in HEADERS.values() if word not in ASKING.values()]
    assert found(planted, {"memory": collection.analyzer.memory}) == []


def test_the_shuffler_keeps_and_tells_no_canary_at_any_time(collection: Collection) -> None:
    for seized in (collection.before, collection.after):
        assert {"shuffler.sqlite", "log"} <= seized.files.keys()
        assert found(CANARIES, seized.files) == found(CANARIES, seized.told) == []


def test_what_is_handed_over_holds_no_canary(collection: Collection) -> None:
    assert found(CANARIES, {"batch": collection.stage.tap.batches[0]}) == []


def test_the_search_would_find_a_canary(collection: Collection) -> None:
    lines = {"access log": f"{HEADERS['User-Agent']} 127.83.71.59".encode(), "batch": b"CANARYCLIENTID".lower()}
    assert set(found(CANARIES, lines)) == {"access log", "batch"}


def test_logs_are_documents_of_known_words_with_times_in_minutes(collection: Collection) -> None:
    lines = (collection.after.files["log"] + collection.analyzer.files["log"]).splitlines()
    read = [json.loads(line) for line in lines]
    assert {"batch built", "batch delivered", "batch counted"} <= {line["event"] for line in read}
    assert {len(line["time"]) for line in read} == {len("2030-01-01T00:00Z")}


def test_times_in_the_stores_are_whole_minutes(collection: Collection) -> None:
    stage = collection.stage
    kept = [
        (stage.shuffler, "round", "opened"),
        (stage.shuffler, "moment", "time"),
        (stage.shuffler, "moment", "booted"),
    ]
    for server, table, column in (*kept, (stage.analyzer, "counted", "counted_at")):
        with sqlite3.connect(server.folder / f"{server.role}.sqlite") as base:
            assert base.execute(f"SELECT DISTINCT {column} % 60 FROM {table}").fetchall() == [(0,)]


def test_the_metrics_of_the_shuffler_come_in_tens(collection: Collection) -> None:
    before, after = (
        [line for line in seized.told["/metrics"].decode().splitlines() if line.startswith("dovetail_messages_total")]
        for seized in (collection.before, collection.after)
    )
    assert not any("accepted" in line for line in before), "before the round closes nothing is told of reports"
    assert any("accepted" in line for line in after)
    assert all(float(line.split()[-1]) % 10 == 0 for line in before + after)
    assert str(len(collection.sent)) not in collection.before.told["/v1/status"].decode()


def test_a_batch_says_nothing_but_what_it_must(collection: Collection) -> None:
    header, _ = entries(collection.stage.campaign, collection.stage.tap.batches[0])
    assert header.campaign == "sightings" and header.rounds == (1,) and header.dropped == {}


@pytest.mark.exhaust
def test_behind_a_relay_the_shuffler_holds_and_tells_no_address_no_header_and_no_name(tmp_path: Path) -> None:
    """Its memory too, which without a relay has them; with tokens it meets no key of the issuer's roster."""
    rules = {"rounds": {"schedule": "manual", "count": 1}, "batch": {"minimum": 2}}
    site = Deployment.of(COMMUTE | rules, tmp_path / "site", devices=2, tokens=True)
    site.write()
    direct = httpx.HTTPTransport(local_address=ADDRESS)
    with ExitStack() as stack:
        servers = {role: server_process(site, role) for role in site.roles}
        for server in servers.values():
            stack.callback(server.stop)
            server.start()
        for server in servers.values():
            server.ready()
        client = stack.enter_context(httpx.Client(transport=direct, headers=HEADERS, timeout=PATIENCE))
        for keys in site.world.devices:
            assert keys.signing and site.apart
            wire, pending = sealed_report(site, keys.signing)
            answer = client.post(site.apart.relay, content=wire, headers={"Content-Type": REQUEST_TYPE})
            assert BinaryResponse.decode(pending.open(answer.content) or b"").status == 202
        shuffler = servers["shuffler"].running
        assert shuffler
        try:
            before = memory_of(shuffler.pid)
        except PermissionError:
            pytest.skip("nobody may read the memory of another process here")
        told = {
            name: httpx.get(site.shuffler + name, timeout=PATIENCE).content
            for name in ("/metrics", "/v1/status", "/readyz")
        }
        files = {path.name: path.read_bytes() for path in site.folder.glob("shuffler.*") if path.suffix != ".toml"}
        assert {"shuffler.log", "shuffler.sqlite"} <= files.keys()
        names = [spelt for keys in site.world.devices for spelt in spellings(keys.signing.verifying_key().public)]  # type: ignore[union-attr]
        planted = [
            each for each in CANARIES if each != b"canary"
        ]  # which stands in this file's name, and so in memory
        planted += [value.encode() for value in HEADERS.values()]
        for held in ({"memory": before}, told, files):
            assert found([*planted, *names], held) == []
        client.get(f"{site.shuffler}/ohttp-keys")  # who comes directly is seen, while the connection stands
        assert found([ADDRESS.encode()], {"memory": memory_of(shuffler.pid)}) == ["memory"]


def sealed_report(site: Deployment, device: SigningKey):  # type: ignore[no-untyped-def]
    """A report with a token, as a device seals it for the gateway, and what opens the answer."""
    campaign = site.world.campaign
    assert campaign.tokens and campaign.ohttp
    asked = PendingToken.draw(campaign.tokens, 1)
    request = apply_for(
        campaign.id, 1, asked.request(campaign.tokens, campaign.id, 1), device, key=campaign.tokens.key(1)
    )
    signed = HttpIssuer(timeout=PATIENCE).ask(campaign.tokens.url, request)
    assert isinstance(signed, bytes)
    token = asked.finish(signed, campaign.tokens, campaign.id, 1)
    report = seal(campaign, 1, plain(campaign, campaign.mechanism.encode(1)), asked.secret, token=token)
    return campaign.ohttp.keys[-1].seal(
        padded(oblivious_request("POST", "/v1/reports", report).encode(), campaign.ohttp.pad)
    )
