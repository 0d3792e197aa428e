"""A relay that drops, delays, repeats and replays what devices with tokens send: it costs time, and no report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from tests.collect.issuer.world import TokenWorld, with_tokens
from tests.collect.shuffler import test_gateway
from tests.collect.shuffler.served import served
from tests.collect.shuffler.test_gateway import KEY, SECRET, relaying
from tests.collect.shuffler.world import BEGIN, PERIOD
from tests.waiting import PATIENCE

from dovetail.collect.relay import relay_app
from dovetail_device.http import ObliviousTransport
from dovetail_protocol.ohttp import REQUEST_TYPE, Gateway

THROUGH = f'[ohttp]\nrelay = "https://relay.example.org"\nkeys = ["{KEY}"]\npad = 704\n'
FATES = ("dropped", "unanswered", "repeated", "kept")


class Hostile(httpx.AsyncBaseTransport):
    """The network of a relay that does to the next requests what `fates` says; `seen` are all that it has had."""

    def __init__(self) -> None:
        self.fates: list[str] = []
        self.seen: list[bytes] = []
        self._inside = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        self.seen.append(body)
        fate = self.fates.pop(0) if self.fates else "arrives"
        if fate in ("dropped", "kept"):
            raise httpx.ConnectError("no")
        answers = [await self._forward(request, body) for _ in range(2 if fate == "repeated" else 1)]
        if fate == "unanswered":
            raise httpx.ReadError("no")
        return answers[-1]

    async def aclose(self) -> None:
        await self._inside.aclose()

    async def _forward(self, request: httpx.Request, body: bytes) -> httpx.Response:
        again = httpx.Request(request.method, request.url, headers=request.headers, content=body)
        answer = await self._inside.handle_async_request(again)
        content = await answer.aread()
        await answer.aclose()
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)


@contextmanager
def hostile(world: TokenWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Hostile, httpx.Client]]:
    """The relay's URL, what it does, and whoever asks the gateway itself."""
    network = Hostile()
    monkeypatch.setattr(test_gateway, "relay_app", lambda gateway: relay_app(gateway, transport=network))
    with (
        served(world.world, gateway=Gateway.of([SECRET])) as client,
        relaying(f"{client.base_url}/ohttp") as (url, _),
    ):
        yield url, network, client


def replay(client: httpx.Client, wires: list[bytes]) -> None:
    """Everything that the relay has ever had, once more, in the other order."""
    for wire in reversed(wires):
        assert client.post("/ohttp", content=wire, headers={"content-type": REQUEST_TYPE}).status_code == 200


@pytest.mark.exhaust
def test_a_relay_that_drops_delays_and_repeats_costs_no_report_and_makes_none_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = TokenWorld(count=len(FATES), asked=with_tokens(top=THROUGH, minimum=2))
    store = world.world.store
    with hostile(world, monkeypatch) as (url, network, client):
        world.transport = ObliviousTransport(url, timeout=PATIENCE)  # type: ignore[assignment]
        benches = [world.bench(place) for place in range(len(FATES))]
        for fate, bench in zip(FATES, benches, strict=True):
            bench.device.fetch_tokens(0)
            network.fates = [fate]
            assert bench.device.submit(1).state == ("accepted" if fate == "repeated" else "waiting")
        replay(client, network.seen)  # what was kept arrives when nobody waits for it
        world.clock.time += 60
        for fate, bench in zip(FATES, benches, strict=True):
            told = [receipt.state for receipt in bench.restart().flush()]
            assert told == ([] if fate == "repeated" else ["accepted"])
        assert store.rounds("commute")[0].count == len(FATES) == len(set(world.way.asked))
        world.world.to_round(2)
        world.world.shuffler.step(world.world.clock.now())
        replay(client, network.seen)  # and when its round is over
        world.world.to_round(3)
        world.world.shuffler.step(world.world.clock.now())
        later = [each.count for each in store.rounds("commute") if each.number > 1]
        assert later and not any(later)
    assert [len(batch.entries) for batch in world.world.analyzer.batches.values()] == [len(FATES)]


@pytest.mark.exhaust
def test_a_report_that_came_too_early_and_is_replayed_in_its_round_counts_once_beside_its_retry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = TokenWorld(asked=with_tokens(top=THROUGH))
    with hostile(world, monkeypatch) as (url, network, client):
        world.transport = ObliviousTransport(url, timeout=PATIENCE)  # type: ignore[assignment]
        bench = world.bench()
        world.clock.time = BEGIN + 2 * PERIOD  # a device whose clock is two rounds ahead
        receipt = bench.device.submit(1, round=3)
        assert (receipt.state, receipt.reason) == ("waiting", "too_early")
        world.world.to_round(3)
        replay(client, network.seen)
        assert {each.number: each.count for each in world.world.store.rounds("commute")}[3] == 1
        world.clock.time += PERIOD - 1
        assert [each.state for each in bench.device.flush()] == ["accepted"]
        assert {each.number: each.count for each in world.world.store.rounds("commute")}[3] == 1
