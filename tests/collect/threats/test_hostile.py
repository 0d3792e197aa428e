"""Hostile clients of real processes: every refusal is a problem document, counted; memory stays; nothing crashes."""

from __future__ import annotations

import itertools
import json
import os
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import httpx
import pytest
from tests.collect.threats.conftest import DEVICES, Collection
from tests.collect.threats.stage import ADDRESS, Server, Stage, make
from tests.waiting import PATIENCE, until

from dovetail.collect.http import read_problem
from dovetail_protocol.keys import OpeningKey, SigningKey
from dovetail_protocol.messages import outer_info, plain_bytes, read_head, seal

GROWTH = 24 << 20  # bytes that a process may grow by, whatever is sent: buffers of a thousand connections
ROUND = 2  # of these tests; the first one has been released
REVOKED = DEVICES - 1
_HEAD = 41


@pytest.fixture
def running(collection: Collection) -> Stage:
    """The stage with round 1 behind it, so that round 2 takes reports."""
    until(lambda: collection.stage.state(ROUND) == "open")
    return collection.stage


def kind(answer: httpx.Response) -> tuple[int, str]:
    """Status and kind of a problem document that is one."""
    found = read_problem(answer.content)
    assert found is not None and found.status == answer.status_code, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(json.loads(answer.content)) == {"type", "title", "status", "detail"}
    return answer.status_code, found.kind


def resealed(stage: Stage, place: int, change: int) -> bytes:
    """A message whose device signed something else: sealed by somebody who knows the shuffler's public key."""
    campaign, key = stage.campaign, stage.devices[place]
    inner = campaign.analyzer.seal(bytes(plain_bytes(campaign)), b"")
    outer = bytearray(os.urandom(16) + key.verifying_key().public + key.sign(b"something else") + inner)
    outer[change] ^= 1
    head = seal(campaign, ROUND, bytes(plain_bytes(campaign)), key)[:_HEAD]
    return head + campaign.shuffler.seal(bytes(outer), outer_info(campaign, ROUND))


def hostile(stage: Stage) -> Iterator[tuple[str, bytes, tuple[int, str]]]:
    """What nobody should send, and what is answered."""
    campaign, fresh = stage.campaign, itertools.count(90)
    good = stage.message(next(fresh), round=ROUND).wire
    stranger, other = SigningKey.generate(), OpeningKey.generate().sealing_key()
    yield "nothing", b"", (400, "malformed")
    yield "noise", os.urandom(300), (400, "malformed")
    yield "truncated", good[:-1], (400, "malformed")
    yield "cut in its head", good[:20], (400, "malformed")
    yield "oversized", good + b"x", (413, "too_large")
    yield "oversized by far", bytes(10 << 20), (413, "too_large")
    yield "wrong version", good[:4] + b"\2" + good[5:], (400, "version")
    yield "wrong campaign", good[:5] + os.urandom(32) + good[37:], (409, "campaign")
    yield "wrong key", good[:_HEAD] + other.seal(bytes(112), outer_info(campaign, ROUND)), (400, "malformed")
    outer = bytes(len(good) - _HEAD - 48)
    yield "sealed to another", good[:_HEAD] + other.seal(outer, outer_info(campaign, ROUND)), (400, "seal")
    yield "moved to another round", good[:37] + (3).to_bytes(4, "big") + good[_HEAD:], (400, "seal")
    yield "changed", good[:-1] + bytes([good[-1] ^ 1]), (400, "seal")
    yield "signed by nobody", resealed(stage, next(fresh), 0), (403, "signature")
    yield "from the future", stage.message(next(fresh), round=ROUND + 2).wire, (425, "too_early")
    yield "of no round", good[:37] + (10).to_bytes(4, "big") + good[_HEAD:], (409, "round")
    yield "of round 0", good[:37] + bytes(4) + good[_HEAD:], (409, "round")
    yield "late", stage.message(next(fresh), round=1).wire, (409, "late")
    yield "stranger", make(campaign, stranger, round=ROUND).wire, (403, "unknown_device")
    yield "revoked", stage.message(REVOKED, round=ROUND).wire, (403, "revoked_device")


def settled(stage: Stage) -> dict[str, int]:
    """What was refused so far, all of it saved: counters are saved whole, and no second mark is left over."""
    marks = {
        "unknown_device": make(stage.campaign, SigningKey.generate(), round=ROUND).wire,
        "revoked_device": stage.message(REVOKED, round=ROUND).wire,
    }
    for name, wire in marks.items():
        known = stage.refused().get(name, 0)
        httpx.post(f"{stage.shuffler.url}/v1/reports", content=wire, timeout=PATIENCE)
        until(lambda name=name, known=known: stage.refused().get(name, 0) > known)  # type: ignore[misc]
    return stage.refused()


@pytest.mark.exhaust
def test_every_hostile_message_is_refused_counted_and_answered_with_its_problem(running: Stage) -> None:
    before, wanted, taken = settled(running), dict[str, int](), running.waiting(ROUND)
    with httpx.Client(base_url=running.shuffler.url, timeout=PATIENCE) as client:
        for name, wire, answer in hostile(running):
            assert kind(client.post("/v1/reports", content=wire)) == answer, name
            known = len(wire) >= _HEAD and wire[:4] == b"DVTL" and wire[4] == 1
            if known and answer[1] != "too_large" and read_head(wire).digest == running.campaign.digest:
                wanted[answer[1]] = wanted.get(answer[1], 0) + 1
    until(lambda: running.refused() == {k: before.get(k, 0) + wanted.get(k, 0) for k in {*before, *wanted}})
    assert running.waiting(ROUND) == taken, "nothing of it is taken"


def test_a_replay_is_acknowledged_and_changes_nothing(running: Stage, collection: Collection) -> None:
    old, new = collection.sent[0].wire, running.message(0, round=ROUND).wire
    before = running.waiting(ROUND)
    with httpx.Client(base_url=running.shuffler.url, timeout=PATIENCE) as client:
        answers = [client.post("/v1/reports", content=wire) for wire in (old, new, new, old)]
        assert {(answer.status_code, answer.content) for answer in answers} == {(202, b"")}
        assert kind(client.post("/v1/reports", content=running.message(0, round=ROUND).wire)) == (
            409,
            "second_report",
        )
    assert running.waiting(ROUND) == before + 1


def test_a_batch_that_the_shuffler_did_not_sign_is_refused_whole(running: Stage) -> None:
    batch = running.tap.batches[0]
    digit = batch.index(b'"count":') + 8
    poisoned = batch[:digit] + bytes([batch[digit] ^ 1]) + batch[digit + 1 :]
    claims = running.ask(f"/v1/campaigns/{running.campaign.id}/status")
    with httpx.Client(base_url=running.analyzer.url, timeout=PATIENCE) as client:
        for body, wanted in (
            (poisoned, (403, "signature")),
            (batch[:-1] + bytes([batch[-1] ^ 1]), (403, "signature")),
            (batch[:-1], (400, "malformed")),
            (batch + b"x", (400, "malformed")),
            (batch[:30], (400, "malformed")),
            (batch[:4] + b"\2" + batch[5:], (400, "version")),
            (batch[:5] + b"\xff" * 4 + batch[9:], (400, "malformed")),
            (batch.replace(running.campaign.digest.hex().encode(), b"0" * 64), (409, "campaign")),
            (os.urandom(500), (400, "malformed")),
            (b"", (400, "malformed")),
        ):
            assert kind(client.post("/v1/batches", content=body)) == wanted
        assert client.post("/v1/batches", content=batch).json()["state"] == "counted"
    assert running.ask(f"/v1/campaigns/{running.campaign.id}/status") == claims, "and one sent again counts once"
    told = running.ask("/metrics").decode()
    assert 'dovetail_analyzer_batches_refused_total{kind="signature"} 2.0' in told


@pytest.mark.parametrize("role", ["shuffler", "analyzer"])
def test_unknown_routes_and_methods_get_problem_documents(running: Stage, role: str) -> None:
    server: Server = getattr(running, role)
    long = "9" * 5000
    paths = ["/nowhere", "/v1", "/v1/campaigns/none", "/v1/campaigns/%2e%2e/round", "/v1/campaigns/%7f", "/%00"]
    paths += [f"/v1/campaigns/{running.campaign.id}/estimates/{long}", "/v1/campaigns/none/status"]
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        for path in paths:
            assert kind(client.get(path))[0] in (401, 404), path
        for method in ("PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "BREW"):
            assert kind(client.request(method, "/metrics")) == (405, "method")
        place = f"/v1/campaigns/{running.campaign.id}/rounds/{long}/close"
        assert kind(client.post(place, content=bytes(64)))[0] in (404, 409)
        for name in ("t=0", "t=-1", "t=1e3", "t=%C2%B2", f"t={long}", "t="):
            place = f"/v1/campaigns/{running.campaign.id}/window?w=1&{name}"
            answer = client.get(place, headers={"Authorization": "Bearer open-sesame"})
            assert kind(answer)[0] in (400, 404), name


# below HTTP


@contextmanager
def connected(server: Server, address: str = ADDRESS) -> Iterator[socket.socket]:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE, source_address=(address, 0)) as connection:
        yield connection


def said(server: Server, *pieces: bytes) -> bytes:
    """Everything that is answered to these bytes until the connection closes."""
    received = b""
    with connected(server) as connection, suppress(OSError):
        for piece in pieces:
            connection.sendall(piece)
        while more := connection.recv(1 << 16):
            received += more
    return received


POST = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\n"
SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
LYING = {
    "no number": POST + b"Content-Length: many\r\n\r\nabc",
    "below zero": POST + b"Content-Length: -3\r\n\r\nabc",
    "a plus": POST + b"Content-Length: +3\r\n\r\nabc",
    "endless": POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nabc",
    "two lengths": POST + b"Content-Length: 3\r\nContent-Length: 30\r\n\r\nabc" + SMUGGLED,
    "a list": POST + b"Content-Length: 3, 30\r\n\r\nabc" + SMUGGLED,
    "length and chunks": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "odd chunks": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunks that lie": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n" + SMUGGLED,
    "a space before the colon": POST + b"Content-Length : 3\r\n\r\nabc" + SMUGGLED,
    "a folded line": POST + b"X: a\r\n Content-Length: 3\r\n\r\nabc" + SMUGGLED,
    "a head without end": b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 17),
    "a thousand headers": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: canary\r\n" % n for n in range(9999)),
    "no HTTP": bytes(range(256)) * 40,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
}


@pytest.mark.parametrize("role", ["shuffler", "analyzer"])
def test_requests_that_lie_about_their_length_are_refused_and_smuggle_nothing(running: Stage, role: str) -> None:
    server: Server = getattr(running, role)
    logged = server.log.read_bytes()
    with ThreadPoolExecutor(len(LYING)) as threads:  # some are cut off for their silence
        answers = dict(zip(LYING, threads.map(lambda request: said(server, request), LYING.values()), strict=True))
    for name, answer in answers.items():
        assert b'"ok"' not in answer, f"{name}: a smuggled request was answered"
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), name
    assert server.log.read_bytes() == logged, "strangers write nothing into the log"
    assert httpx.get(f"{server.url}/healthz", timeout=PATIENCE).status_code == 200


@pytest.mark.exhaust
def test_ten_thousand_bad_requests_leave_memory_as_it_was(running: Stage) -> None:
    bad = [wire for _, wire, _ in hostile(running) if len(wire) < 4096]
    requests = [POST + b"Content-Length: %d\r\n\r\n" % len(wire) + wire for wire in bad]

    def storm(count: int) -> int:
        answers = 0
        with connected(running.shuffler) as connection:
            for first in range(0, count, 20):
                some = [requests[(first + place) % len(requests)] for place in range(20)]
                connection.sendall(b"".join(some))
                answers += replies(connection, 20)
        return answers

    storm(500)  # what is made once is made now
    before, refused = running.shuffler.resident(), sum(running.refused().values())
    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(storm, [2500] * 4)) == 10_000
    assert running.shuffler.resident() - before < GROWTH
    assert httpx.get(f"{running.shuffler.url}/readyz", timeout=PATIENCE).status_code == 200
    until(lambda: sum(running.refused().values()) > refused + 5000)
    assert len(running.shuffler.log.read_bytes()) < 1 << 20, "nor do logs grow with what strangers send"


def replies(connection: socket.socket, count: int) -> int:
    """Reads so many answers; each has a length."""
    data, seen = b"", 0
    while seen < count:
        head, found, rest = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0) if found else 0
        if not found or len(rest) < length:
            piece = connection.recv(1 << 16)
            assert piece, "the server hung up"
            data += piece
            continue
        assert head.startswith(b"HTTP/1.1 4")
        data, seen = rest[length:], seen + 1
    return seen


def dribble(connections: Sequence[socket.socket]) -> list[socket.socket]:
    """A byte to each; those that have not been cut off."""
    alive = []
    for connection in connections:
        with suppress(OSError):
            try:
                connection.send(b"x")
                while connection.recv(1 << 12):  # an answer alone does not end it
                    pass
            except BlockingIOError:
                alive.append(connection)
    return alive


def test_slow_clients_are_cut_off_and_hold_up_nobody(running: Stage) -> None:
    batch = b"DVTB\1" + (1 << 19).to_bytes(4, "big")  # the head of one, before anybody can tell who sends it
    starts = (
        b"GET /healthz HTTP/1.1\r\nX: ",
        POST + b"Content-Length: 300\r\n\r\n",
        b"",
        b"POST /v1/batches HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" + batch,
    )
    servers = (running.shuffler, running.analyzer)
    before = [server.resident() for server in servers]
    sockets = list[socket.socket]()
    try:
        for server, start, place in itertools.product(servers, starts, range(50)):
            host, port = server.url.removeprefix("http://").split(":")
            sockets.append(socket.create_connection((host, int(port)), 15, (f"127.83.0.{place + 1}", 0)))
            sockets[-1].sendall(start)
            sockets[-1].setblocking(False)
        for server in servers:
            assert httpx.get(f"{server.url}/readyz", timeout=PATIENCE).status_code == 200
        until(lambda: not dribble(sockets), pause=1.0)
    finally:
        for each in sockets:
            each.close()
    for server, memory in zip(servers, before, strict=True):
        assert server.resident() - memory < GROWTH
        assert httpx.get(f"{server.url}/readyz", timeout=PATIENCE).status_code == 200
