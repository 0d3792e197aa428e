"""A device behind a relay: what arrives, at which length, and what neither relay nor shuffler ever sees."""

from __future__ import annotations

import logging
import socket
from contextlib import ExitStack, contextmanager
from email.message import Message as EmailMessage
from threading import Thread

import httpx
import pytest
from tests.collect.device.made import Bench, FakeClock
from tests.collect.servers import serving
from tests.collect.shuffler import served as shuffler_served
from tests.collect.shuffler.served import kind, served
from tests.collect.shuffler.world import BEGIN, BY_HAND, DEVICES, World, campaign, message, roster
from tests.node import CLIENT, Node, needs_client
from tests.waiting import PATIENCE
from typer.testing import CliRunner

from dovetail.cli.main import app as command_line
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.collect.campaign.terms import require_same_terms
from dovetail.collect.http import MOST_CONNECTIONS
from dovetail.collect.relay import relay_app
from dovetail.collect.shuffler import gateway
from dovetail.collect.shuffler.app import shuffler_app
from dovetail.collect.shuffler.service import UNDER_WAY
from dovetail.core.errors import ConfigError
from dovetail_device.http import ObliviousTransport, _Answer
from dovetail_device.ledger import terms_of
from dovetail_device.sender import ACCEPTED, UNREACHABLE
from dovetail_device.session import transport_of
from dovetail_protocol.binary_http import BinaryRequest, BinaryResponse, padded
from dovetail_protocol.keys import OpeningKey, RoleKeys, VerifyingKey
from dovetail_protocol.messages import oblivious_request
from dovetail_protocol.ohttp import (
    MOST_PAD,
    MOST_SEALED,
    OVERHEAD,
    REQUEST_TYPE,
    RESPONSE_OVERHEAD,
    RESPONSE_TYPE,
    Gateway,
    GatewayKey,
)

SECRET, NEWER = (OpeningKey("x25519", bytes([place]) * 32) for place in (1, 2))
KEY = GatewayKey.of(SECRET)
CANARY = "CANARY-user-agent-4711"


def through(relay: str, key=KEY, pad=448, **more):
    """The campaign of the world, answered through this relay."""
    return campaign(expires=f'[ohttp]\nrelay = "{relay}"\nkeys = ["{key}"]\npad = {pad}', **more)


@contextmanager
def relaying(gateway: str):
    """The real relay on a free port, and the lengths of what went through it both ways."""
    app, seen = relay_app(gateway), list[tuple[int, int, dict[str, str]]]()

    async def watched(scope, receive, send):
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        came, went = 0, 0

        async def count():
            nonlocal came
            part = await receive()
            came += len(part.get("body", b""))
            return part

        async def tell(part):
            nonlocal went
            went += len(part.get("body", b""))
            if part["type"] == "http.response.body" and not part.get("more_body"):  # before anybody can read it
                seen.append((came, went, {name.decode(): value.decode() for name, value in scope["headers"]}))
            await send(part)

        await app(scope, count, tell)

    with serving(watched) as url:
        yield url, seen


@contextmanager
def bound_port():
    """An address where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


@contextmanager
def behind(world, keys=(SECRET,)):
    """Relay and shuffler of a world: the relay's URL, what it saw, and a client that asks the shuffler directly."""
    with (
        served(world, gateway=Gateway.of(keys)) as client,
        relaying(f"{client.base_url}/ohttp") as (url, seen),
    ):
        yield url, seen, client


def test_a_report_comes_through_the_relay_and_every_answer_has_one_length():
    world = World(through("https://relay.example.org"))
    with behind(world) as (url, seen, client):
        transport = ObliviousTransport(url, timeout=PATIENCE)
        transport.trust(world.campaign)
        first, stranger = DEVICES[0], RoleKeys.generate("device").signing
        reports = [message(world.campaign, first), message(world.campaign, first, round=3)]
        reports += [message(world.campaign, first, value=1), message(world.campaign, stranger)]
        told = [transport.send(wire) for wire in reports]
        assert told[0] == ACCEPTED
        assert [event.reason for event in told[1:]] == ["too_early", "second_report", "unknown_device"]
        assert transport.round("commute") == 1 and transport.fetch("nobody") is None
        short = {(came, went) for came, went, _ in seen}
        assert short == {(448 + OVERHEAD, 512 + RESPONSE_OVERHEAD)}
        assert transport.fetch("commute") == world.campaign.signed
        assert seen[-1][:2] == (448 + OVERHEAD, 4096 + RESPONSE_OVERHEAD)
        assert world.store.rounds("commute")[0].count == 1
        assert client.service.gate.used == 0


@pytest.mark.exhaust
@needs_client
def test_devices_in_typescript_answer_by_the_relay(tmp_path):
    made = through("https://relay.example.org", rounds=BY_HAND)
    (tmp_path / "campaign.toml").write_bytes(made.signed)
    with Node(CLIENT / "test" / "fleet.mjs", str(tmp_path / "campaign.toml"), "3") as fleet:
        known = [RosterEntry(VerifyingKey.parse("key", key), slot) for slot, key in enumerate(fleet.told())]
        world = World(made, roster=Roster(known[:2]))
        with behind(world) as (url, seen, _):
            question = {"values": [1, 2, 3], "relay": url}
            assert fleet.ask(question) == {"accepted": 2, "waiting unknown_device": 1}
            assert {(came, went) for came, went, _ in seen} >= {(448 + OVERHEAD, 512 + RESPONSE_OVERHEAD)}
            assert world.store.rounds("commute")[0].count == 2


@pytest.mark.exhaust
def test_a_device_answers_by_the_relay_alone_and_waits_where_there_is_none():
    """No fallback: without the relay nothing is sent, although the shuffler answers."""
    keys = RoleKeys.generate("device")
    world = World(through("https://relay.example.org"), roster=roster([keys.signing]))
    with behind(world) as (url, seen, client):
        with bound_port() as nobody:
            waits = Bench(world.campaign, ObliviousTransport(nobody, timeout=PATIENCE), FakeClock(BEGIN), keys)
            assert waits.device.submit(1).state == "waiting"
        assert not seen and not client.service.shuffler.rounds.of("commute")[1].count
        bench = Bench(world.campaign, ObliviousTransport(url, timeout=PATIENCE), FakeClock(BEGIN), keys)
        assert bench.device.submit(1).state == "accepted"
    assert {came for came, _, _ in seen} == {448 + OVERHEAD}


@pytest.mark.exhaust
def test_a_device_follows_a_new_gateway_key_through_the_old_one():
    old = through("https://relay.example.org")
    fresh = through("https://relay.example.org", GatewayKey.of(NEWER), version=2)
    world = World(fresh, others=[old])
    with (
        served(world, gateway=Gateway.of([SECRET, NEWER])) as client,
        relaying(f"{client.base_url}/ohttp") as (url, _),
    ):
        transport = ObliviousTransport(url, timeout=PATIENCE)
        transport.trust(old)
        assert transport.fetch("commute") == fresh.signed
        transport.trust(fresh)
        assert transport.send(message(fresh, DEVICES[0])) == ACCEPTED


def test_what_the_relay_says_itself_is_a_reason_to_try_again():
    world = World(through("https://relay.example.org"))
    with relaying("http://127.0.0.1:9/ohttp") as (url, _):
        transport = ObliviousTransport(url, timeout=PATIENCE)
        transport.trust(world.campaign)
        assert transport.send(message(world.campaign, DEVICES[0])) == UNREACHABLE


def test_an_answer_that_the_gateway_has_not_sealed_is_not_believed(monkeypatch):
    world = World(through("https://relay.example.org"))
    transport = ObliviousTransport("https://relay.example.org")
    transport.trust(world.campaign)
    headers = EmailMessage()
    headers["content-type"] = RESPONSE_TYPE
    told = BinaryResponse(200, (), world.campaign.signed).encode()
    monkeypatch.setattr(ObliviousTransport, "_connected", lambda *_: _Answer(200, headers, told))
    assert transport.fetch("commute") is None and transport.round("commute") is None
    assert transport.send(message(world.campaign, DEVICES[0])) == UNREACHABLE


@pytest.mark.exhaust
def test_a_relay_that_repeats_a_report_makes_no_second_one():
    world = World(through("https://relay.example.org"))
    with served(world, gateway=Gateway.of([SECRET])) as client:
        request = oblivious_request("POST", "/v1/reports", message(world.campaign, DEVICES[0]))
        wire, pending = KEY.seal(request.encode())
        answers = [client.post("/ohttp", content=wire, headers={"content-type": REQUEST_TYPE}) for _ in range(3)]
        found = [BinaryResponse.decode(pending.open(answer.content)) for answer in answers]
        assert [each.status for each in found] == [202, 202, 202]
        assert world.store.rounds("commute")[0].count == 1


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/status", 404),
        ("GET", "/metrics", 404),
        ("POST", "/v1/campaigns/commute/rounds/1/close", 404),
        ("GET", "/v1/reports", 405),
        ("POST", "/ohttp", 404),
        ("GET", "https://elsewhere.example.org/", 404),
        ("GET", "/v1/campaigns/commute?version=1", 200),
    ],
)
def test_only_the_routes_of_devices_are_behind_the_gateway(method, path, status):
    world = World(through("https://relay.example.org"))
    with served(world, gateway=Gateway.of([SECRET])) as client:
        found = ask(client, BinaryRequest(method, "https", "elsewhere.example.org", path))
        assert found.status == status


def test_every_answer_to_a_report_is_that_of_the_app_to_the_byte():
    """A query sends a request through the app, and tells it nothing."""
    world = World(through("https://relay.example.org"))
    first, stranger = DEVICES[0], RoleKeys.generate("device").signing
    reports = [message(world.campaign, first), message(world.campaign, first, round=3)]
    reports += [message(world.campaign, first, value=1), message(world.campaign, stranger), b"", bytes(99)]
    reports += [
        reports[0][:-1],
        reports[0][:-1] + bytes([reports[0][-1] ^ 1]),
        bytes(world.shuffler.campaigns.longest + 1),
    ]
    with served(world, gateway=Gateway.of([SECRET])) as client:
        both = [
            [ask(client, oblivious_request("POST", path, each)) for path in ("/v1/reports", "/v1/reports?")]
            for each in reports
        ]
        assert world.store.rounds("commute")[0].count == 1 and client.service.gate.used == 0
    assert all(straight == app for straight, app in both)
    assert [straight.status for straight, _ in both] == [202, 425, 409, 403, 400, 400, 400, 400, 413]


def test_a_report_by_a_relay_costs_no_task_and_no_second_pass_through_an_app(monkeypatch):
    world = World(through("https://relay.example.org"))
    passed = []

    async def counted(_, asked):
        passed.append(asked.path)
        return BinaryResponse(404)

    monkeypatch.setattr(gateway, "_ask", counted)
    with served(world, gateway=Gateway.of([SECRET])) as client:
        reports = message(world.campaign, DEVICES[0]), b"junk"
        told = [ask(client, oblivious_request("POST", "/v1/reports", each)).status for each in reports]
        assert told == [202, 400] and not passed
        assert ask(client, oblivious_request("GET", "/v1/campaigns/commute")).status == 404
    assert passed == ["/v1/campaigns/commute"]


def test_thousands_of_requests_that_open_to_nothing_in_one_piece_are_all_refused():
    world = World(through("https://relay.example.org"))
    head = f"POST /ohttp HTTP/1.1\r\nHost: a\r\nContent-Type: {REQUEST_TYPE}\r\nContent-Length: 1\r\n\r\nx"
    with served(world, gateway=Gateway.of([SECRET])) as client:
        place = (client.base_url.host, client.base_url.port)
        with socket.create_connection(place, timeout=PATIENCE) as link:
            sender = Thread(target=link.sendall, args=(3000 * head.encode(),), daemon=True)
            sender.start()
            told = bytearray()
            while told.count(b"HTTP/1.1 400 ") < 3000 and (came := link.recv(1 << 16)):
                told += came
            sender.join(PATIENCE)
        assert told.count(b"HTTP/1.1 400 ") == 3000


def ask(client, request):
    wire, pending = KEY.seal(request.encode())
    answer = client.post("/ohttp", content=wire, headers={"content-type": REQUEST_TYPE})
    assert (answer.status_code, answer.headers["content-type"]) == (200, RESPONSE_TYPE)
    return BinaryResponse.decode(pending.open(answer.content))


@pytest.mark.exhaust
def test_a_request_that_cannot_be_opened_is_refused_in_the_clear():
    world = World(through("https://relay.example.org"))
    with served(world, gateway=Gateway.of([SECRET])) as client:
        wire, _ = KEY.seal(oblivious_request("GET", "/v1/campaigns/commute").encode())
        other, _ = GatewayKey.of(OpeningKey.generate()).seal(b"x")
        typed = {"content-type": REQUEST_TYPE}
        changed = client.post("/ohttp", content=wire[:-1] + bytes([wire[-1] ^ 1]), headers=typed)
        assert (changed.status_code, kind(changed)) == (400, "malformed")
        assert kind(client.post("/ohttp", content=wire)) == "malformed", "of another type"
        assert kind(client.post("/ohttp", content=KEY.seal(b"\5")[0], headers=typed)) == "malformed", (
            "no request inside"
        )
        unknown = client.post("/ohttp", content=other, headers=typed)
        assert unknown.status_code == 400 and unknown.json()["type"].endswith("#ohttp-key")
        assert client.get("/ohttp-keys").content == b"\0\x29" + KEY.configuration()


@pytest.mark.exhaust
def test_too_much_to_open_at_once_is_refused_with_a_time_to_come_back_and_the_longest_is_not():
    world = World(through("https://relay.example.org"))
    wire, _ = KEY.seal(oblivious_request("GET", "/v1/campaigns/commute").encode())
    with served(world, gateway=Gateway.of([SECRET]), under_way=len(wire) - 1) as client:
        busy = client.post("/ohttp", content=wire, headers={"content-type": REQUEST_TYPE})
        assert (busy.status_code, kind(busy)) == (503, "unavailable") and "retry-after" in busy.headers
    world = World(through("https://relay.example.org"))
    with served(world, gateway=Gateway.of([SECRET]), under_way=len(wire)) as client:
        told = client.post("/ohttp", content=wire, headers={"content-type": REQUEST_TYPE})
        assert told.status_code == 200, "a request holds its own length, not the longest"


@pytest.mark.exhaust
@pytest.mark.parametrize(("pad", "most"), [(448, 1 << 14), (MOST_PAD, MOST_PAD)])
def test_a_request_of_the_longest_campaign_is_taken_and_a_longer_one_refused(pad, most):
    with served(World(through("https://relay.example.org", pad=pad)), gateway=Gateway.of([SECRET])) as client:
        longest = padded(oblivious_request("GET", "/v1/campaigns/commute").encode(), most)
        wire, pending = KEY.seal(longest)
        answer = client.post("/ohttp", content=wire, headers={"content-type": REQUEST_TYPE})
        assert BinaryResponse.decode(pending.open(answer.content)).status == 200
        longer = client.post("/ohttp", content=wire + b"x", headers={"content-type": REQUEST_TYPE})
        assert (longer.status_code, kind(longer)) == (413, "too_large") and client.service.gate.used == 0


def test_strangers_who_announce_much_and_send_nothing_keep_nobody_out():
    """What all connections together can announce is less than what may be under way by default."""
    world = World(through("https://relay.example.org"))
    head = f"POST /ohttp HTTP/1.1\r\nHost: a\r\nContent-Type: {REQUEST_TYPE}\r\nContent-Length: {MOST_SEALED}\r\n\r\n"
    with served(world, gateway=Gateway.of([SECRET]), under_way=2 * MOST_SEALED) as client, ExitStack() as stack:
        place = (client.base_url.host, client.base_url.port)
        links = [stack.enter_context(socket.create_connection(place, timeout=PATIENCE)) for _ in range(2)]
        for link in links:
            link.sendall(head.encode())
        report = message(world.campaign, DEVICES[0])
        assert ask(client, oblivious_request("POST", "/v1/reports", report)).status == 202
        assert all(link.recv(1 << 16).startswith(b"HTTP/1.1 413 ") for link in links)
        doors = shuffler_app(client.service).state.doors
    assert MOST_CONNECTIONS * max(door.most for door in doors) < UNDER_WAY


@pytest.mark.exhaust
def test_a_shuffler_without_a_key_has_no_gateway():
    with served(World(campaign())) as client:
        assert client.post("/ohttp", content=b"x", headers={"content-type": REQUEST_TYPE}).status_code == 404


def test_neither_address_nor_header_of_a_device_reaches_the_shuffler(monkeypatch, caplog):
    """What the relay passes on is the body and its type; neither log says who came."""
    caplog.set_level(logging.DEBUG)
    world, reached = World(through("https://relay.example.org")), list[dict[str, str]]()

    def recorded(service):
        app = shuffler_app(service)

        async def note(scope, receive, send):
            if scope["type"] == "http":
                reached.append({name.decode(): value.decode() for name, value in scope["headers"]})
            await app(scope, receive, send)

        return note

    monkeypatch.setattr(shuffler_served, "shuffler_app", recorded)
    with behind(world) as (url, seen, _):
        request = oblivious_request("POST", "/v1/reports", message(world.campaign, DEVICES[0]))
        wire, pending = KEY.seal(request.encode())
        planted = {"user-agent": CANARY, "cookie": CANARY, "x-forwarded-for": "127.83.71.59"}
        answer = httpx.post(url, content=wire, headers={**planted, "content-type": REQUEST_TYPE}, timeout=PATIENCE)
        assert BinaryResponse.decode(pending.open(answer.content)).status == 202
        assert seen[0][2]["user-agent"] == CANARY, "the relay sees it"
    assert [set(headers) for headers in reached] == [{"host", "content-type", "content-length"}]
    assert CANARY not in caplog.text and "127.83.71.59" not in caplog.text


# What campaigns, devices and operators are told.


def test_the_relay_stands_in_the_explanation_and_replaces_the_network():
    told = {line.name: line.words for line in explain(through("https://relay.example.org")).lines}
    assert "sees addresses and times, 503 bytes each" in told["relay https://relay.example.org"]
    assert "broker" not in " ".join(told) and "shuffler (gateway)" in told
    plain = explain(through("http://relay.example.org")).warnings
    assert any("`ohttp.relay` is plain HTTP" in warning for warning in plain)


def test_versions_with_and_without_a_relay_are_refused():
    with pytest.raises(ConfigError, match="show their addresses"):
        require_same_terms(campaign(), through("https://relay.example.org", version=2))


def test_a_device_does_not_follow_a_version_that_shows_its_address():
    hidden = through("https://relay.example.org")
    assert terms_of(hidden) != terms_of(campaign(version=2))
    assert terms_of(hidden) == terms_of(through("https://another.example.org", version=2))


def test_a_campaign_with_a_relay_is_not_answered_over_mqtt():
    with pytest.raises(ConfigError, match="by a relay alone"):
        transport_of(through("https://relay.example.org"), "mqtt")


def test_a_device_refuses_a_length_that_its_reports_exceed():
    asked = through("https://relay.example.org", pad=64)
    with pytest.raises(ConfigError, match="below"):
        ObliviousTransport("https://relay.example.org").trust(asked)


@pytest.mark.exhaust
def test_a_campaign_with_a_relay_is_made_and_checked_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    for role in ("owner", "shuffler", "analyzer", "gateway"):
        assert run.invoke(command_line, ["collect", "keys", role, "--out", f"{role}.key"]).exit_code == 0
    public = [word for role in ("owner", "shuffler", "analyzer") for word in (f"--{role}", f"{role}.key.pub")]
    asked = [
        "--id",
        "commute",
        "--question",
        "How?",
        "--categories",
        "walk,bike,car",
        "--relay",
        "https://relay.example.org",
    ]
    made = run.invoke(command_line, ["collect", "new", *public, *asked, "--gateway", "gateway.key.pub"])
    assert made.exit_code == 0, made.output
    told = run.invoke(command_line, ["collect", "check", "campaign.toml"])
    assert told.exit_code == 0 and "relay https://relay.example.org" in told.output
    alone = run.invoke(command_line, ["collect", "new", *public, *asked, "--force"])
    assert isinstance(alone.exception, Exception) and "--relay and --gateway go together" in str(alone.exception)
