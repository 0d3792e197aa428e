"""The shuffler of a world behind the real server, and what it answers."""

from contextlib import contextmanager

import httpx
from tests.collect.servers import serving
from tests.waiting import PATIENCE

from dovetail.collect.shuffler.app import shuffler_app
from dovetail.collect.shuffler.service import ShufflerService


@contextmanager
def served(world, **more):
    """A client of this world's shuffler: the real server on a free port, on the world's clock."""
    service = ShufflerService(world.shuffler, world.clock, **more)
    with serving(shuffler_app(service)) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        client.service = service
        yield client


def kind(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == answer.status_code
    return found["type"].removeprefix("urn:dovetail:problem:")
