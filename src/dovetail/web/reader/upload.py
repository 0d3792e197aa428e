"""Bodies that a browser sends: to a file or into memory, within a size and a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from starlette.requests import Request

from dovetail.collect.http.bodies import stream_limited
from dovetail.collect.http.problems import Refusal

MOST_TABLE = 256 << 20  # bytes
MOST_REPORT = 16 << 20
MOST_FORM = 256 << 10
LONGEST = 300.0  # seconds for a whole body


async def save(request: Request, place: Path, most: int = MOST_TABLE) -> int:
    """Write the body to `place`; its size. What is refused on the way leaves no file."""
    size = 0
    try:
        async with asyncio.timeout(LONGEST):
            with place.open("xb") as file:
                async for piece in stream_limited(request, most):
                    size += await asyncio.to_thread(file.write, piece)
    except BaseException as error:
        place.unlink(missing_ok=True)
        if isinstance(error, TimeoutError):
            raise Refusal("timeout", f"the file did not arrive within {LONGEST:g} seconds.") from None
        raise
    return size


async def read(request: Request, most: int) -> bytes:
    """The body in memory."""
    try:
        async with asyncio.timeout(LONGEST):
            return b"".join([piece async for piece in stream_limited(request, most)])
    except TimeoutError:
        raise Refusal("timeout", f"the file did not arrive within {LONGEST:g} seconds.") from None
