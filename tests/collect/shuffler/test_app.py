"""The shuffler over HTTP: answers, hostile bodies, coarse numbers, and nothing in the logs."""

import io
import json
import logging
import os
import socket
import threading
from contextlib import suppress
from types import SimpleNamespace

import httpx
import pytest
import typer
from prometheus_client.parser import text_string_to_metric_families
from tests.collect.shuffler.served import kind, served
from tests.collect.shuffler.world import BY_HAND, DEVICES, OWNER, World, campaign, message
from tests.waiting import PATIENCE, LoopClock
from typer.testing import CliRunner

from dovetail.cli.collect import operate as close
from dovetail.collect import http as limits
from dovetail.collect import logs as server_log
from dovetail.collect.clock import FrozenClock
from dovetail.collect.files import save_keys
from dovetail.collect.http import Refusal
from dovetail.collect.shuffler.app import shuffler_app
from dovetail.collect.shuffler.campaigns import owner_request
from dovetail.collect.shuffler.service import ShufflerService
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail.core.errors import StorageError
from dovetail_protocol.messages import HEADER, Answer, read_answer_header


def post(client, *messages):
    """Send messages one after the other; what is told about each."""
    return [client.post("/v1/reports", content=each) for each in messages]


def test_a_report_is_accepted_and_a_retry_gets_the_very_same_answer():
    world = World(campaign())
    with served(world) as client:
        report = message(world.campaign, DEVICES[0])
        answers = [client.post("/v1/reports", content=report) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [202, 202]
        assert answers[0].content == answers[1].content == b""
        assert answers[0].headers == answers[1].headers
        assert world.store.rounds("commute")[0].count == 1


def test_a_client_that_closes_its_half_after_its_request_is_answered_and_one_that_breaks_off_is_not_kept():
    world = World(campaign())
    report = message(world.campaign, DEVICES[0])
    head = f"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: {len(report)}\r\n\r\n".encode()
    other = head.replace(b"Host: x\r\n", b"Host: x\r\nConnection: keep-alive\r\n")  # which no door takes
    with served(world) as client:

        def heard(sent):
            with socket.create_connection((client.base_url.host, client.base_url.port), PATIENCE) as made:
                made.sendall(sent)
                made.shutdown(socket.SHUT_WR)
                return made.makefile("rb").read()

        for sent in (head + report, other + report):
            assert heard(sent).startswith(b"HTTP/1.1 202 Accepted\r\n")
        assert b"How do you come to work?" in heard(b"GET /v1/campaigns/commute HTTP/1.1\r\nHost: x\r\n\r\n")
        assert heard(head + report[:-1]) == heard(b"") == b""
        assert world.store.rounds("commute")[0].count == 1


def test_pages_of_any_origin_use_the_three_routes_of_devices_and_no_other() -> None:
    world = World(campaign())
    page = {"Origin": "https://survey.example"}
    with served(world) as client:
        for method, path in (
            ("POST", "/v1/reports"),
            ("GET", "/v1/campaigns/commute"),
            ("GET", "/v1/campaigns/x/round"),
        ):
            asked = {
                **page,
                "Access-Control-Request-Method": method,
                "Access-Control-Request-Headers": "content-type",
            }
            told = client.options(path, headers=asked)
            assert (told.status_code, told.headers["Access-Control-Allow-Methods"]) == (204, method)
            assert told.headers["Access-Control-Allow-Headers"] == "Content-Type"
            answer = client.request(method, path, headers=page)  # refusals, too, are read by the page
            assert answer.headers["Access-Control-Allow-Origin"] == told.headers["Access-Control-Allow-Origin"] == "*"
            assert HEADER in answer.headers["Access-Control-Expose-Headers"]
            assert "Access-Control-Allow-Credentials" not in told.headers.keys() | answer.headers.keys()
            other = client.options(path, headers={**page, "Access-Control-Request-Method": "PUT"})
            assert other.status_code == 405
        for path in ("/v1/status", "/metrics", "/v1/campaigns/commute/rounds/1/close", "/healthz"):
            asked = {**page, "Access-Control-Request-Method": "GET"}
            for told in (client.options(path, headers=asked), client.get(path, headers=page)):
                assert not any(name.startswith("access-control") for name in told.headers)


@pytest.mark.parametrize(
    ("body", "status", "wanted"),
    [
        (b"", 400, "malformed"),
        (b"DVTL", 400, "malformed"),
        (b"DVTL\1" + bytes(36), 409, "campaign"),
        (os.urandom(200), 400, "malformed"),
        (bytes(10_000), 413, "too_large"),
    ],
)
def test_hostile_bodies_get_problem_documents(body, status, wanted):
    with served(World(campaign())) as client:
        answer = client.post("/v1/reports", content=body)
        assert (answer.status_code, kind(answer)) == (status, wanted)


@pytest.mark.parametrize(("round", "status", "wanted"), [(1, 409, "second_report"), (3, 425, "too_early")])
def test_refusals_of_good_messages_have_the_status_of_their_kind(round, status, wanted):
    world = World(campaign())
    with served(world) as client:
        client.post("/v1/reports", content=message(world.campaign, DEVICES[0]))
        answer = client.post("/v1/reports", content=message(world.campaign, DEVICES[0], round=round))
        assert (answer.status_code, kind(answer)) == (status, wanted)


def test_every_answer_to_a_report_is_signed_for_that_report():
    world = World(campaign())
    with served(world) as client:
        wires = [message(world.campaign, DEVICES[0]), message(world.campaign, DEVICES[0])]
        for wire, wanted in zip(wires, ("accepted", "second_report"), strict=True):
            header = client.post("/v1/reports", content=wire).headers[HEADER]
            for other in wires:
                found = read_answer_header(header, other, world.campaign.shuffler_signing)
                assert found == (Answer(wanted) if other == wire else None)


@pytest.mark.exhaust
def test_a_body_beyond_the_limit_is_refused_while_it_is_read(monkeypatch):
    monkeypatch.setattr(limits, "SECONDS", 0.5)
    world = World(campaign())
    with served(world) as client:
        pieces = (bytes(1 << 16) for _ in range(1 << 20))  # 64 GiB, were they all read
        with suppress(httpx.TransportError):  # the server may hang up before the client has read the answer
            answer = client.post("/v1/reports", content=pieces)
            assert (answer.status_code, kind(answer)) == (413, "too_large")
        assert client.service.gate.used == 0
        assert client.get("/healthz").status_code == 200


def test_a_request_holds_one_message_so_that_nobody_waits_behind_a_thousand_of_another_connections():
    world = World(campaign())
    with served(world) as client:
        places = {route.path for route in shuffler_app(client.service).routes if "POST" in (route.methods or ())}
        assert places == {
            "/v1/reports",
            *(f"/v1/campaigns/{{id}}/rounds/{{number:number}}/{verb}" for verb in ("close", "drop")),
        }
        reports = [message(world.campaign, device) for device in DEVICES[:2]]
        (answer,) = post(client, b"".join(reports))
        assert (answer.status_code, kind(answer)) == (413, "too_large")
        under_way, check = [], world.shuffler.check
        world.shuffler.check = lambda *each: (under_way.append(client.service.gate.used), check(*each))[1]
        assert [answer.status_code for answer in post(client, *reports)] == [202, 202]
    assert under_way == [world.shuffler.campaigns.longest] * 2


def test_too_much_work_at_once_is_refused_with_a_time_to_come_back():
    world = World(campaign())
    with served(world, under_way=100) as client:
        answer = client.post("/v1/reports", content=message(world.campaign, DEVICES[0]))
        assert (answer.status_code, kind(answer)) == (503, "unavailable")
        assert int(answer.headers["retry-after"]) >= 1


def test_a_store_that_fails_acknowledges_nothing(monkeypatch):
    world = World(campaign())

    def full(_):
        raise StorageError("the disk is full.")

    with served(world) as client:
        with monkeypatch.context() as patched:
            patched.setattr(world.store, "accept", full)
            answer = client.post("/v1/reports", content=message(world.campaign, DEVICES[0]))
        assert (answer.status_code, kind(answer)) == (503, "unavailable")
        assert client.post("/v1/reports", content=message(world.campaign, DEVICES[0])).status_code == 202


@pytest.mark.exhaust
def test_a_thousand_bad_requests_leave_counters_and_nothing_else():
    world = World(campaign())
    with served(world) as client:
        assert {answer.status_code for answer in post(client, *(b"?" + os.urandom(59) for _ in range(1000)))} == {400}
        assert client.service.gate.used == 0
    assert world.shuffler.counters.total() == {("", "malformed"): 1000}


def test_the_campaign_and_its_round_are_told():
    world = World(campaign())
    with served(world) as client:
        assert client.get("/v1/campaigns/commute").content == world.campaign.signed
        assert client.get("/v1/campaigns/commute/round").json() == {"round": 1, "state": "open"}
        assert kind(client.get("/v1/campaigns/other")) == "not_found"
        assert kind(client.get("/v1/nothing")) == "not_found"
        assert kind(client.delete("/v1/reports")) == "method"
        assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200


def test_the_owner_closes_a_round_over_http():
    world = World(campaign(rounds=BY_HAND, minimum=1))
    assert OWNER.signing
    with served(world) as client:
        client.post("/v1/reports", content=message(world.campaign, DEVICES[0]))
        place = "/v1/campaigns/commute/rounds/1/close"
        challenge = bytes.fromhex(client.get(place).json()["challenge"])
        request = owner_request("close", OWNER.signing, world.campaign.digest, 1, challenge)
        assert kind(client.post(place, content=request[:-1])) == "signature"
        assert kind(client.post(place, content=request[-64:])) == "version"
        assert client.post(place, content=request).json()["state"] in ("released", "delivered")
        assert kind(client.post(place, content=request)) == "signature"
        assert client.get("/v1/campaigns/commute/round").json()["round"] == 2


@pytest.mark.exhaust
def test_the_owners_command_closes_a_round(tmp_path):
    world = World(campaign(rounds=BY_HAND, minimum=1))
    (tmp_path / "commute.toml").write_bytes(world.campaign.signed)
    save_keys(OWNER, tmp_path / "owner.key")
    with served(world) as client:
        client.post("/v1/reports", content=message(world.campaign, DEVICES[0]))
        options = ["--keys", str(tmp_path / "owner.key"), "--shuffler", str(client.base_url), "--json"]
        verb = typer.Typer()
        verb.command()(close._close)
        found = [CliRunner().invoke(verb, [str(tmp_path / "commute.toml"), number, *options]) for number in "13"]
    assert json.loads(found[0].output)["state"] in ("released", "delivered")
    assert "has not been opened" in str(found[1].exception)


def test_watchers_cannot_see_one_report():
    world = World(campaign(small="drop"))
    with served(world) as client:

        def seen():
            world.shuffler.turn(world.clock.now())
            names = ("/metrics", "/v1/status", "/v1/campaigns/commute/round")
            return [client.get(name).text for name in names]

        post(client, *(message(world.campaign, d) for d in DEVICES[:9]))
        before = seen()
        client.post("/v1/reports", content=message(world.campaign, DEVICES[9]))  # the tenth, of whom nine may know
        client.post("/v1/reports", content=message(world.campaign, DEVICES[9]))
        client.post("/v1/reports", content=b"noise")
        assert seen() == before
        families = {family.name: family for family in text_string_to_metric_families(before[0])}
        assert families["dovetail_messages"].samples == []
        assert {"dovetail_messages", "dovetail_rounds", "dovetail_batches_waiting"} <= set(families)


@pytest.mark.exhaust
def test_accepted_reports_are_told_in_tens_when_their_round_closes():
    world = World(campaign(minimum=5))
    with served(world) as client:

        def accepted():
            families = text_string_to_metric_families(client.get("/metrics").text)
            (found,) = [family for family in families if family.name == "dovetail_messages"]
            return {sample.labels["kind"]: sample.value for sample in found.samples}

        post(client, *(message(world.campaign, d) for d in DEVICES[:19]))
        assert accepted() == {}
        world.to_round(2)
        assert accepted() == {"accepted": 10.0}
        post(client, *(message(world.campaign, d, round=2) for d in DEVICES[:9]))
        assert accepted() == {"accepted": 10.0}
        world.to_round(3)
        assert accepted() == {"accepted": 20.0}


@pytest.mark.exhaust
def test_status_shows_what_waits_in_tens():
    world = World(campaign(minimum=20))
    with served(world) as client:
        post(client, *(message(world.campaign, d) for d in DEVICES[:15]))
        world.clock.advance(3700.0)
        world.shuffler.turn(world.clock.now())
        (found,) = client.get("/v1/status").json()["campaigns"]
    assert (found["round"], found["minimum"]) == (2, 20)
    assert found["waiting"] == [{"round": 1, "reports": 10}]


def test_logs_name_no_device_no_address_and_no_report():
    world = World(campaign(minimum=2))
    lines = io.StringIO()
    root = logging.getLogger()
    before = list(root.handlers)
    server_log.setup(lines)
    try:
        with served(world) as client:
            for device in DEVICES[:3]:
                client.post("/v1/reports", content=message(world.campaign, device), headers={"User-Agent": "canary"})
            client.post("/v1/reports", content=b"canary")
            world.analyzer.failing = True
            world.to_round(2)
    finally:
        root.handlers[:] = before
    text = lines.getvalue()
    assert "batch built" in text and "batch not delivered" in text
    assert all(json.loads(line) for line in text.splitlines())
    names = [str(device.verifying_key()) for device in DEVICES[:3]]
    assert not any(word in text for word in ("canary", "testclient", "127.0.0.1", *names))


@pytest.mark.exhaust
def test_what_was_submitted_before_the_end_is_durable_after_it():
    world = World(campaign())
    service = ShufflerService(world.shuffler, world.clock)
    service.start()
    told = [service.submit(message(world.campaign, device)) for device in DEVICES]
    service._intake.stop()
    assert [each.result(timeout=PATIENCE).kind for each in told] == ["accepted"] * len(DEVICES)
    assert world.store.rounds("commute")[0].count == len(DEVICES)
    service.stop()


def test_whatever_is_submitted_while_the_service_stops_is_stored_or_refused_and_nobody_waits_for_ever():
    world = World(campaign())
    service = ShufflerService(world.shuffler, world.clock)
    service.start()
    told = []
    sender = threading.Thread(target=lambda: told.extend(service.submit(message(world.campaign, d)) for d in DEVICES))
    sender.start()
    service.stop()
    sender.join(PATIENCE)
    told.append(service.submit(message(world.campaign, DEVICES[0])))
    assert told[-1].done()
    refused = [each.exception(PATIENCE) for each in told]
    assert len(told) == len(DEVICES) + 1
    assert all(each.result().kind == "accepted" for each, error in zip(told, refused, strict=True) if error is None)
    assert "being stopped" in str(refused[-1]) and {type(error) for error in refused} <= {Refusal, type(None)}


@pytest.mark.exhaust
def test_a_client_that_dribbles_its_head_is_cut_off_and_others_are_served(monkeypatch):
    world, clock = World(campaign()), LoopClock(monkeypatch)
    with served(world) as client, socket.create_connection((client.base_url.host, client.base_url.port)) as slow:
        slow.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\n")
        assert client.post("/v1/reports", content=message(world.campaign, DEVICES[0])).status_code == 202
        clock.pass_time(limits.SECONDS)
        assert httpx.get(client.base_url.join("/healthz"), timeout=PATIENCE).status_code == 200
        slow.settimeout(PATIENCE)
        with suppress(ConnectionResetError):
            assert slow.recv(100) == b""


def test_a_step_that_fails_again_and_again_is_logged_once_until_it_works(monkeypatch, caplog):
    class Broken:
        left, beats = 6, threading.Event()
        rounds = SimpleNamespace(store=open_shuffler_store("sqlite://"))

        def turn(self, now):
            self.left -= 1
            if self.left < 0:
                self.beats.set()
            elif self.left != 2:
                raise StorageError("the database is gone.")

        def start(self, now):
            pass

        stop = commit = deliver = start

    broken = Broken()
    monkeypatch.setattr("dovetail.collect.shuffler.service._BEAT", 0.001)
    service = ShufflerService(broken, FrozenClock(0.0))
    service.start()
    assert broken.beats.wait(PATIENCE)
    broken.stop = lambda: None
    service.stop()
    assert [record.getMessage() for record in caplog.records] == ["a step failed"] * 2
