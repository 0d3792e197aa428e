"""Bodies of requests: at most so many bytes, and never slower than a deadline allows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request

from dovetail.collect.http import limits
from dovetail.collect.http.problems import Refusal


async def stream_limited(request: Request, most: int, *, seconds: float = limits.SECONDS) -> AsyncIterator[bytes]:
    """The body piece by piece; refused beyond `most` bytes, or when no piece comes for `seconds`.

    Use it for long bodies that must not lie in memory, and `read_limited` for the others. A body that has taken
    longer than `seconds` comes with at least `SLOWEST` bytes a second, so that nobody holds a connection for ever.
    """
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > most:
        raise _too_large(most)
    clock = asyncio.get_running_loop().time
    pieces, size, began = request.stream(), 0, clock()
    while True:
        left = began + seconds + size / limits.SLOWEST - clock()
        try:
            async with asyncio.timeout(min(seconds, left)):
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Refusal(
                "timeout", f"the body came too slowly; {seconds:g} seconds without any are too long."
            ) from None
        size += len(piece)
        if size > most:
            raise _too_large(most)
        yield piece


async def read_limited(request: Request, most: int, *, seconds: float = limits.SECONDS) -> bytes:
    """The whole body; refused beyond `most` bytes, or when it has not arrived within `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return b"".join([piece async for piece in stream_limited(request, most, seconds=seconds)])
    except TimeoutError:
        raise Refusal("timeout", f"the body did not arrive within {seconds:g} seconds.") from None


def _too_large(most: int) -> Refusal:
    return Refusal("too_large", f"a body of at most {most} bytes is taken here.")
