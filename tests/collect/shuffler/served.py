"""The shuffler of a world behind the real server, and what it answers."""

import threading
from contextlib import contextmanager

import httpx
from tests.waiting import PATIENCE, until

from dovetail.collect.http import bind, uvicorn_server
from dovetail.collect.shuffler.app import shuffler_app
from dovetail.collect.shuffler.service import ShufflerService


@contextmanager
def served(world, **more):
    """A client of this world's shuffler: the real server on a free port, on the world's clock."""
    service = ShufflerService(world.shuffler, world.clock, **more)
    bound = bind("127.0.0.1:0")
    server = uvicorn_server(shuffler_app(service))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        until(lambda: server.started, alive=thread.is_alive)
        with httpx.Client(base_url=f"http://127.0.0.1:{bound.getsockname()[1]}", timeout=PATIENCE) as client:
            client.service = service
            yield client
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def kind(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == answer.status_code
    return found["type"].removeprefix("urn:dovetail:problem:")
