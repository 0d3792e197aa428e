"""Several processes of one shuffler behind one address: a balancer that knows nothing but which of them answers."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread

from tests.collect.servers import free_port

from dovetail.collect.http import bind
from dovetail.collect.simulate.deployment import Deployment, ServerProcess


@dataclass
class Balancer:
    """Hands each connection to one of the ports that takes it, drawn anew each time."""

    listen: str
    ports: Sequence[int]

    @contextmanager
    def serving(self) -> Iterator[None]:
        loop = asyncio.new_event_loop()
        stop = asyncio.Event()
        thread = Thread(target=lambda: loop.run_until_complete(self._serve(stop)), daemon=True)
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()
            loop.close()

    async def _serve(self, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._hand_on, sock=bind(self.listen))
        await stop.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for port in random.sample(self.ports, len(self.ports)):
                with suppress(OSError):
                    answers, there = await asyncio.open_connection("127.0.0.1", port)
                    await asyncio.gather(_pump(reader, there), _pump(answers, writer))
                    return
        finally:
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side ends, however it ends."""
    try:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


def replicas(site: Deployment, count: int) -> tuple[Balancer, list[ServerProcess]]:
    """So many processes of the shuffler of a site, each with a port of its own, and what stands in front of them."""
    ports = [free_port() for _ in range(count)]
    command = [sys.executable, "-m", "dovetail", "collect", "shuffler", str(site.folder / "shuffler.toml")]
    processes = [
        ServerProcess("shuffler", [*command, "--listen", f"127.0.0.1:{port}"], site.folder / "shuffler.log")
        for port in ports
    ]
    return Balancer(site.shuffler.removeprefix("http://"), ports), processes


def restart_one_by_one(processes: Sequence[ServerProcess]) -> None:
    """As an operator brings a new version: each stops in order, and is back before the next one stops."""
    for process in processes:
        if process.running is not None:
            assert process.stop() == 0
        process.start()
        process.ready()
