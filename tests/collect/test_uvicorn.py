"""The parts of uvicorn that `http.request_deadline` reaches into: a new version that changes one fails here first."""

import asyncio
import inspect
import tomllib
from pathlib import Path

import h11
import pytest
import uvicorn
from packaging.requirements import Requirement
from starlette.responses import PlainTextResponse
from tests.waiting import LoopClock
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from dovetail.collect import http as limits
from dovetail.collect.http import RequestDeadline

PROJECT = Path(__file__).parent.parent.parent / "pyproject.toml"


def test_the_installed_uvicorn_is_one_that_was_tried() -> None:
    base = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    asked = next(found for text in base if (found := Requirement(text)).name == "uvicorn")
    assert uvicorn.__version__ in asked.specifier
    assert any(each.operator in ("<", "<=") for each in asked.specifier), "internals are used: the range has an end"


def test_a_connection_has_a_parser_and_no_request_yet() -> None:
    async def make() -> H11Protocol:
        return RequestDeadline(uvicorn.Config(PlainTextResponse("ok"), lifespan="off"), ServerState(), {})

    protocol = asyncio.run(make())
    assert isinstance(protocol.conn, h11.Connection) and protocol.conn.our_role is h11.SERVER
    assert protocol.cycle is None


def test_a_request_in_work_can_be_told_that_nobody_waits() -> None:
    made = inspect.getsource(RequestResponseCycle.__init__)
    assert "self.disconnected = False" in made and "self.message_event = message_event" in made


def test_whatever_cannot_be_read_is_answered_by_the_method_that_we_replace() -> None:
    assert list(inspect.signature(H11Protocol.send_400_response).parameters) == ["self", "msg"]
    assert "self.send_400_response(" in inspect.getsource(H11Protocol.handle_events)


def test_a_connection_can_be_told_to_end_after_the_answer_under_way() -> None:
    made = inspect.getsource(H11Protocol.shutdown)
    assert "self.cycle.keep_alive = False" in made and "self.cycle.response_complete" in made


def test_the_deadline_hooks_are_those_of_asyncio() -> None:
    ours = {name for name in vars(RequestDeadline) if not name.startswith("_")}
    assert ours == {"connection_made", "data_received", "connection_lost", "eof_received", "send_400_response"}


class Connection(asyncio.Transport):
    """A connection that knows whether it has been cut off."""

    cut_off = False

    def abort(self) -> None:
        self.cut_off = True


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nX: "])
def test_a_head_that_does_not_end_is_cut_off_when_its_time_is_over_and_not_before(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, connection = LoopClock(monkeypatch), Connection()

    async def cut_off_after(seconds: float) -> bool:
        clock.pass_time(seconds)
        passed = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.0, passed.set_result, None)  # after all that is due
        await passed
        return connection.cut_off

    async def serve() -> list[bool]:
        protocol = RequestDeadline(uvicorn.Config(PlainTextResponse("ok"), lifespan="off"), ServerState(), {})
        protocol.connection_made(connection)
        if sent:
            protocol.data_received(sent)
        return [await cut_off_after(limits.SECONDS / 2), await cut_off_after(limits.SECONDS / 2)]

    assert asyncio.run(serve()) == [False, True]
