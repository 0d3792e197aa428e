"""A server of its own for a test: the app in a loop of its own, its session, and the one browser that is let in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
from starlette.applications import Starlette
from tests.waiting import PATIENCE

from dovetail.web.access import Session
from dovetail.web.app import web_app

HOST = "127.0.0.1:8470"
ORIGIN = f"http://{HOST}"


class Browser:
    """Asks an app without a network, from a test that knows no loop; it keeps cookies, and follows no redirect."""

    def __init__(self, app: Starlette, loop: asyncio.AbstractEventLoop) -> None:
        self.app, self._loop = app, loop
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url=ORIGIN, timeout=PATIENCE)

    def request(self, method: str, path: str, **how: Any) -> httpx.Response:
        """The answer."""
        asked = self.client.request(method, path, **how)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()

    def get(self, path: str, **how: Any) -> httpx.Response:
        """The answer to what changes nothing."""
        return self.request("GET", path, **how)

    def post(self, path: str, **how: Any) -> httpx.Response:
        """The answer to what does."""
        return self.request("POST", path, **how)

    def stranger(self) -> Browser:
        """Another browser at the same server."""
        return Browser(self.app, self._loop)


@contextmanager
def served(session: Session) -> Iterator[Browser]:
    """A browser at a server that has begun, and ends with the block."""
    app, loop = web_app(session, ahead=False), asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    life = app.router.lifespan_context(app)
    asyncio.run_coroutine_threadsafe(life.__aenter__(), loop).result()
    try:
        yield Browser(app, loop)
    finally:
        asyncio.run_coroutine_threadsafe(life.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def opened(folder: Path) -> Iterator[tuple[Browser, Session]]:
    """A browser that has opened the link."""
    session = Session(HOST, folder, also=("localhost:8470",))
    with served(session) as browser:
        assert browser.get(session.link).status_code == 303
        yield browser, session


def ours(session: Session) -> dict[str, str]:
    """The headers that our own pages send with what changes something."""
    return {"Origin": ORIGIN, "X-CSRF-Token": session.csrf}
