"""Doors: plain posts are taken without a framework, and nobody can tell where everything else went."""

import asyncio
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.waiting import LoopClock
from uvicorn.server import ServerState

from dovetail.collect import http as limits
from dovetail.collect.http import Door, Handover, Health, PlainPosts, Refusal, strict_app

HEAD = b"POST /in HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\n"
PLAIN = HEAD + b"hello"


class Wire(asyncio.Transport):
    """A connection that keeps what it is given."""

    def __init__(self, **extra: object) -> None:
        super().__init__(extra)
        self.sent, self.closed, self.paused = b"", False, False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Hall:
    """An app with one route, which says what it was told; with a door before that route, or without."""

    def __init__(self, *, door: bool = True, room: int = 5, crowd: int | None = None) -> None:
        self.asked, self.untold, self.held = list[bytes](), list[Callable[[Response], None]](), 0
        self.taken, self.passed = list[bytes](), 0  # all bodies in their order; those that came past the door
        self.room, self.crowd, self.wire = room, crowd, Wire()
        app = strict_app([Route("/in", self.take, methods=["POST"])], ready=Health)
        app.state.doors = [Door("/in", 5, self.admit, self.ask)] if door else []
        self.app = app

    async def take(self, request: Request) -> Response:
        body = await request.body()
        self.taken.append(body)
        self.passed += 1
        return Response(b"app: " + body, 202)

    @contextmanager
    def admit(self, size: int) -> Iterator[None]:
        if self.held + size > self.room:
            raise Refusal("unavailable", "no room")
        self.held += size
        yield
        self.held -= size

    def ask(self, body: bytes, tell: Callable[[Response], None]) -> None:
        self.asked.append(body)
        self.taken.append(body)
        self.untold.append(tell)

    def tell(self, content: bytes = b"door") -> None:
        self.untold.pop(0)(Response(content, 202))

    def protocol(self) -> PlainPosts:
        config = uvicorn.Config(self.app, lifespan="off", limit_concurrency=self.crowd)
        made = PlainPosts(config, ServerState(), {})
        made.connection_made(self.wire)
        return made


async def quiet() -> None:
    """Let the loop do what is due, some turns long."""
    for _ in range(30):
        turned = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(turned.set_result, None)
        await turned


def sent(hall: Hall, pieces: Sequence[bytes], *, tell: bool = True) -> bytes:
    """What comes back for these pieces."""

    async def serve() -> bytes:
        protocol = hall.protocol()
        for piece in pieces:
            protocol.data_received(piece)
            await quiet()
            while tell and hall.untold:
                hall.tell()
        await quiet()
        protocol._cancel()
        protocol._unset_keepalive_if_required()
        return hall.wire.sent

    return asyncio.run(serve())


def test_a_plain_post_comes_through_the_door_wherever_it_is_cut() -> None:
    for cut in range(1, len(PLAIN)):
        hall = Hall()
        answer = sent(hall, [PLAIN[:cut], PLAIN[cut:]])
        assert hall.asked == [b"hello"] and answer.startswith(b"HTTP/1.1 202 Accepted\r\n"), cut
        assert answer.endswith(b"\r\n\r\ndoor") and not hall.held and not hall.wire.closed


def test_answers_through_a_door_bear_what_every_answer_bears() -> None:
    through, past = (
        sent(Hall(door=door), [PLAIN]).partition(b"\r\n\r\n")[0].split(b"\r\n") for door in (True, False)
    )
    assert {line.lower() for line in past} - {line.lower() for line in through} == {b"content-length: 10"}


def test_a_second_request_waits_for_the_answer_to_the_first() -> None:
    hall = Hall()
    sent(hall, [PLAIN + HEAD, b"again"], tell=False)
    assert hall.asked == [b"hello"] and hall.wire.paused and not hall.wire.sent
    hall = Hall()
    answer = sent(hall, [PLAIN + HEAD, b"again"])
    assert hall.asked == [b"hello", b"again"] and answer.count(b"202 Accepted") == 2 and not hall.wire.paused


LEFT = {
    "another path": PLAIN.replace(b"/in", b"/out"),
    "a query": PLAIN.replace(b"/in", b"/in?x"),
    "another method": b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n",
    "HTTP/1.0": PLAIN.replace(b"1.1", b"1.0"),
    "no host": PLAIN.replace(b"Host: here\r\n", b""),
    "two hosts": PLAIN.replace(b"Host: here\r\n", b"Host: here\r\nHost: there\r\n"),
    "no length": PLAIN.replace(b"Content-Length: 5\r\n", b""),
    "two lengths": PLAIN.replace(b"Content-Length: 5\r\n", b"Content-Length: 5\r\ncontent-length: 6\r\n"),
    "length and chunks": PLAIN.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "chunks": b"POST /in HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "a signed length": PLAIN.replace(b"Length: 5", b"Length: +5"),
    "a list of lengths": PLAIN.replace(b"Length: 5", b"Length: 5, 5"),
    "too long": PLAIN.replace(b"Length: 5", b"Length: 6") + b"!",
    "of endless digits": PLAIN.replace(b"Length: 5", b"Length: " + b"0" * 40 + b"5"),
    "an expectation": PLAIN.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"),
    "to be closed": PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
    "a folded line": PLAIN.replace(b"Host: here\r\n", b"Host: here\r\n there\r\n"),
    "a bare line feed": PLAIN.replace(b"Host: here\r\n", b"Host: here\nX: y\r\n"),
    "a space before the colon": PLAIN.replace(b"Content-Length:", b"Content-Length :"),
    "a control character": PLAIN.replace(b"here", b"he\0re"),
    "no fields": b"POST /in HTTP/1.1\r\n\r\n",
    "no HTTP": b"\x16\x03\x01 hello\r\n\r\n",
    "a long head": PLAIN.replace(b"here", b"here\r\nX: " + b"y" * limits.MOST_HEAD),
}


@pytest.mark.parametrize("request_", LEFT.values(), ids=LEFT)
def test_whatever_is_not_plain_is_answered_as_if_there_were_no_door(request_: bytes) -> None:
    hall = Hall()
    assert sent(hall, [request_, PLAIN]) == sent(Hall(door=False), [request_, PLAIN])
    assert hall.asked == [] and not hall.held, "and so is what follows on its connection"


ODD = [
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b"\0",
        b"\x0b",
        b"\x85",
        b"\xff",
        b";",
        b",",
        b"0",
        b"6",
        b"-",
        b"+5",
        b"0x5",
    ),
    *(b"Content-Length: 6\r\n", b"Content-Length: 0\r\n", b"Content-Length: 5\r\n", b"Content_Length: 6\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"transfer-encoding:\tchunked\r\n", b"Transfer-Encoding : chunked\r\n"),
    *(
        b"Connection: close\r\n",
        b"Upgrade: h2c\r\n",
        b" folded\r\n",
        b"\tfolded\r\n",
        b"X:\r\n",
        b":\r\n",
        b"Host: b\r\n",
    ),
    *(
        b"0\r\n\r\n",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"http://here",
        b"/../in",
        b"%2f",
        b"POST /in HTTP/1.1\r\n",
        PLAIN,
        HEAD,
    ),
]


def bent(coins: random.Random) -> bytes:
    """Two plain requests in one stream, odd at one to three places, and a plain one behind them."""
    wire = PLAIN + PLAIN.replace(b"hello", b"again")
    for _ in range(coins.randint(1, 3)):
        at = coins.choice(
            [here.start() for here in re.finditer(rb"\r\n|[:/ ]|5", wire)] + [coins.randrange(len(wire))]
        )
        wire = wire[:at] + coins.choice(ODD) + wire[at + coins.choice((0, 0, 1, 2)) :]
    return wire + PLAIN


@pytest.mark.exhaust
@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_is_cut_into_the_same_bodies_as_without_a_door(seed: int) -> None:
    """No sender and no proxy can make the door see another request than the parser of all of HTTP sees."""
    coins, through = random.Random(seed), 0
    for _ in range(500):
        wire = bent(coins)
        cut = coins.randrange(len(wire))
        hall, without = Hall(), Hall(door=False)
        sent(hall, [wire[:cut], wire[cut:]])
        sent(without, [wire])
        assert hall.taken == without.taken, wire
        through += len(hall.taken) - hall.passed
    assert through > 100, "many of them came through the door"


def test_a_head_is_read_once_whatever_stands_in_it() -> None:
    """No repetition gives back what it has taken: a thousand blanks would be read a thousand times."""
    pattern = repr(re._parser.parse(limits._FIELDS.pattern))  # type: ignore[attr-defined]
    assert "POSSESSIVE_REPEAT" in pattern and "MAX_REPEAT" not in pattern and "MIN_REPEAT" not in pattern
    blanks = b"Host: here\r\nX: " + b" " * limits.MOST_HEAD
    assert limits._plain_length(blanks + b"\0\r\n", ()) is None
    assert limits._plain_length(blanks + b"y \t z\t \r\nEmpty:\r\nContent-Length: 5\r\n", ()) == 5


def test_where_there_is_no_room_or_a_crowd_the_app_says_so() -> None:
    for hall, without in (
        (Hall(room=4), Hall(door=False)),
        (Hall(crowd=1), Hall(door=False, crowd=1)),
    ):
        assert sent(hall, [PLAIN]) == sent(without, [PLAIN]) != b"" and hall.asked == []


def test_whoever_leaves_gives_back_what_was_held() -> None:
    async def leave(*pieces: bytes) -> tuple[int, int]:
        hall = Hall()
        protocol = hall.protocol()
        for piece in pieces:
            protocol.data_received(piece)
        before = hall.held
        hall.wire.close()
        protocol.connection_lost(None)
        while hall.untold:
            hall.tell()
        assert not hall.wire.sent
        return before, hall.held

    assert asyncio.run(leave(HEAD)) == asyncio.run(leave(PLAIN)) == (5, 0)


def test_a_body_that_does_not_end_is_refused_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, hall = LoopClock(monkeypatch), Hall()

    async def serve() -> None:
        hall.protocol().data_received(HEAD)
        clock.pass_time(limits.SECONDS)
        passed = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.0, passed.set_result, None)
        await passed

    asyncio.run(serve())
    assert hall.wire.sent.startswith(b"HTTP/1.1 408 ") and hall.wire.closed and hall.asked == [] and not hall.held


def test_a_server_that_stops_sends_the_answer_under_way_and_closes() -> None:
    async def stop(*pieces: bytes) -> Hall:
        hall = Hall()
        protocol = hall.protocol()
        for piece in pieces:
            protocol.data_received(piece)
        protocol.shutdown()
        if hall.untold:
            assert not hall.wire.closed
            hall.tell()
        protocol._cancel()
        return hall

    for hall, answered in ((asyncio.run(stop(PLAIN)), True), (asyncio.run(stop()), False)):
        assert hall.wire.closed and (b"202 Accepted" in hall.wire.sent) == answered


@pytest.mark.parametrize("door", [True, False])
def test_who_closes_her_half_after_a_whole_request_is_answered_and_then_left(door: bool) -> None:
    async def half_closed(*pieces: bytes, **extra: object) -> tuple[bool, bytes, int]:
        hall = Hall(door=door)
        hall.wire = Wire(**extra)
        protocol = hall.protocol()
        for piece in pieces:
            protocol.data_received(piece)
        kept = protocol.eof_received()
        assert not hall.wire.closed, "asyncio closes it, where nothing is awaited"
        while hall.untold:
            hall.tell()
        await quiet()
        assert hall.wire.closed == kept
        protocol._cancel()
        protocol._unset_keepalive_if_required()
        return kept, hall.wire.sent.partition(b"\r\n")[0], len(hall.taken)

    accepted = b"HTTP/1.1 202 Accepted"
    assert asyncio.run(half_closed(PLAIN)) == (True, accepted, 1)
    assert asyncio.run(half_closed(PLAIN, HEAD)) == (True, accepted, 1)
    assert not any(asyncio.run(half_closed(*pieces))[0] for pieces in ([], [HEAD[:9]], [HEAD], [HEAD, b"hell"]))
    assert not asyncio.run(half_closed(PLAIN, sslcontext=object()))[0], "TLS has no half of a connection"


def test_calls_left_for_the_loop_are_all_made_at_one_wake_up() -> None:
    async def leave() -> tuple[list[int], int]:
        loop, made, woken = asyncio.get_running_loop(), list[int](), 0
        honest = loop.call_soon_threadsafe

        def wake(*each: Any) -> asyncio.Handle:
            nonlocal woken
            woken += 1
            return honest(*each)

        loop.call_soon_threadsafe = wake  # type: ignore[method-assign]
        back = Handover()
        await asyncio.to_thread(lambda: [back.put(lambda n=n: made.append(n)) for n in range(3)])  # type: ignore[misc]
        await quiet()
        back.put(lambda: made.append(3))
        await quiet()
        return made, woken

    made, woken = asyncio.run(leave())
    assert made == [0, 1, 2, 3] and 2 <= woken <= 5  # one for the thread's end, one for each time the loop was idle
