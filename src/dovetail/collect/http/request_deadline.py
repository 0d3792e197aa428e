"""The one place that reaches into uvicorn: a deadline for request heads, and problem documents for what is no HTTP.

No setting of uvicorn does either. `timeout_keep_alive` starts anew with every byte, so that a client that sends one
now and then is never cut off; what cannot be read is answered in plain text. `tests/collect/test_uvicorn.py` fails
when one of the parts used here changes: `H11Protocol.conn`, `.cycle`, and `.send_400_response`.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dovetail.collect.http import limits
from dovetail.collect.http.problems import problem


class RequestDeadline(H11Protocol):
    """Closes connections whose request head, or unwanted rest of a body, takes longer than `limits.SECONDS`."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read as HTTP gets a problem document too, unless its request has been answered."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refused = problem("malformed", "this is no request that can be read.")
            head = h11.Response(status_code=400, headers=[*refused.raw_headers, (b"connection", b"close")])
            for event in (head, h11.Data(data=bytes(refused.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:  # an app that has begun answers nobody
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    @property
    def _answering(self) -> bool:
        """Whether a request has been read and its response is not complete."""
        return self.conn.our_state in (h11.SEND_RESPONSE, h11.SEND_BODY)

    def _watch(self) -> None:
        if self._answering:
            self._cancel()
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(limits.SECONDS, self._expire)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if not self._answering:
            self.transport.abort()
