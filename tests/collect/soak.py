"""Kills: shuffler and analyzer as real processes under load of real devices, all killed at random moments.

`python -m tests.collect.soak --kills 200` kills the shuffler, the analyzer and the devices with SIGKILL
whenever it likes, starts them again, and when everything has calmed down compares what the devices were told with
what is in the two databases and in the batches that a proxy has seen between the servers. With `--mqtt` the devices
send through a broker, which is killed as well; with `--rotations 2` the keys of both servers are changed twice on the
way, as docs/collect.md says. With `--tokens` devices ask an issuer for tokens and send by a relay, and both are
killed as well; with `--only shuffler` every kill is one of the shuffler.

Failure is what `test_state_machine` calls failure. Besides, at the end: a server that does not stop with status 0, a
device that never gets an answer, a ledger that does not charge every report once.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Lock, Thread

import httpx
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from tests.collect import servers
from tests.collect.soak_balancer import replicas, restart_one_by_one
from tests.collect.soak_devices import CALM, PERIOD, REPORTS, SLOT, Journal, command, outbox_of
from tests.collect.soak_rotation import KeyChanges, planned
from tests.waiting import PATIENCE, until

from dovetail.collect.batch import IN_PARTS, PREFIX, head_bytes, listed_parts
from dovetail.collect.http import bind, url_of, uvicorn_server
from dovetail.collect.shuffler.link_key_store import FileLinkKeyStore
from dovetail.collect.simulate.delivery_audit import AuditResult, DeliveryAudit
from dovetail.collect.simulate.deployment import COMMUTE, Deployment, ServerProcess, schedule, server_process
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.interfaces import RoundRecord
from dovetail.collect.store.issuer_store import open_issuer_store
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail_device.outbox import Outbox
from dovetail_protocol.messages import read_head

_MOST = 1 << 14  # bytes that devices write down while all are ready, at most, before the next kill


@dataclass(frozen=True)
class Found:
    """What a soak has found; `sound` or not."""

    verdict: AuditResult
    miscounted: int  # batches that the analyzer has not counted once, whole
    uncounted: int  # and those that it has not counted at all
    unpaid: int  # devices whose ledger does not charge every report once, within the budget
    unanswered: int  # devices that still wait
    unentitled: int  # reports beyond the tokens that the issuer gave, and rounds that a device was refused one
    status: dict[str, int]  # of the servers when they were stopped
    kills: dict[str, int]
    batches: int
    sent: int  # batches sent, also again
    put: int  # parts of them, also again
    rebuilt: int  # batches that were abandoned half built
    repeated: int  # messages sent again
    rounds: dict[str, int]  # by state
    versions: int  # of the campaign under which messages were sent
    seconds: float

    @property
    def sound(self) -> bool:
        faults = (self.miscounted, self.uncounted, self.unpaid, self.unanswered, self.unentitled)
        faults += tuple(self.status.values())
        return self.verdict.sound and not any(faults)


# Between shuffler and analyzer


@dataclass
class Proxy:
    """Hands batches on, and the answers back; shows every batch to the watcher, one in parts when all have passed."""

    audit: DeliveryAudit
    analyzer: str
    sent: int = 0
    put: int = 0  # parts, also again
    _parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The proxy's URL while it runs."""
        put = [("/v1/batches/{batch}", self._offer), ("/v1/batches/{batch}/parts/{part:int}", self._part)]
        routes = [Route(path, endpoint, methods=["PUT"]) for path, endpoint in put]
        app = Starlette(routes=[Route("/v1/batches", self._batch, methods=["POST"]), *routes])
        bound, made = bind("127.0.0.1:0"), uvicorn_server(app)
        thread = Thread(target=lambda: made.run(sockets=[bound]), daemon=True)
        thread.start()
        try:
            yield url_of(bound)
        finally:
            made.should_exit = True
            thread.join()

    async def _batch(self, request: Request) -> Response:
        try:
            wire = await request.body()
        except ClientDisconnect:  # the shuffler was killed over it
            return Response(status_code=400)
        head = head_bytes(wire[:PREFIX])
        with self._lock:
            self.sent += 1
            self.audit.record_batch(wire[:head], wire[head:])
        return await asyncio.to_thread(self._forward, request, wire)

    async def _offer(self, request: Request) -> Response:
        try:
            wire = await request.body()
        except ClientDisconnect:
            return Response(status_code=400)
        head = wire[: head_bytes(wire[:PREFIX], IN_PARTS)]
        with self._lock:
            here = self._parts.setdefault(request.path_params["batch"], {})
            if len(here) == listed_parts(wire):
                self.sent += 1
                self.audit.record_batch(head, b"".join(here[number] for number in sorted(here)))
        return await asyncio.to_thread(self._forward, request, wire)

    async def _part(self, request: Request) -> Response:
        try:
            wire = await request.body()
        except ClientDisconnect:
            return Response(status_code=400)
        with self._lock:
            self.put += 1
            self._parts.setdefault(request.path_params["batch"], {})[request.path_params["part"]] = wire
        return await asyncio.to_thread(self._forward, request, wire)

    def _forward(self, request: Request, wire: bytes) -> Response:
        try:
            answer = httpx.request(request.method, f"{self.analyzer}{request.url.path}", content=wire, timeout=10.0)
        except httpx.HTTPError:
            return Response(status_code=503)
        return Response(answer.content, answer.status_code, media_type=answer.headers["content-type"])


# The soak


@dataclass
class Broker:
    """A broker among the processes that are killed."""

    server: servers.Mosquitto
    name: str = "broker"

    def start(self) -> None:
        self.server.start()

    def ready(self) -> None:
        """It takes connections already when `start` returns."""

    def kill(self) -> None:
        self.server.process.kill()


def soak(
    folder: Path,
    *,
    kills: int,
    stores: tuple[str | None, ...] = (None, None, None),
    broker: servers.Mosquitto | None = None,
    rotations: int = 0,
    processes_of_shuffler: int = 1,
    part_reports: int | None = None,
    tokens: bool = False,
    only: str | None = None,
    seed: int = 1,
) -> Found:
    """One soak in an empty folder; `stores` are URLs, the issuer's last; None: SQLite in the folder.

    `only` names the processes that are killed; None: all of them.

    Several processes of the shuffler stand behind a balancer; half way they are restarted one after the other.
    """
    began, count, rng = time.monotonic(), max(200, 4 * kills), random.Random(seed)
    tables = COMMUTE | {
        "rounds": schedule(
            1_000_000, period=PERIOD, grace=PERIOD / 2, start=datetime.fromtimestamp(int(time.time()), UTC)
        ),
        "batch": {"minimum": 12, "small": "merge", "late": "next"},
        "promise": {"delta": 1e-6, "device_budget": 2.0 * REPORTS},
    }
    if tokens:  # rounds have keys of their own, so that there are few: a share of the devices fills one
        shares = max(2, kills // 12)
        tables |= {"rounds": {"schedule": "manual", "count": shares * REPORTS + 1}}
        tables |= {"batch": {"minimum": 12, "close_at": count // shares}}
    site = Deployment.of(tables, folder, devices=count, broker=broker.url if broker else None, tokens=tokens)
    assert site.world.shuffler.opening
    audit = DeliveryAudit(site.world.campaign, site.world.shuffler.opening)
    proxy = Proxy(audit, site.analyzer)
    with proxy.serving() as url, ExitStack() as stack:
        apart = site.apart and replace(site.apart, store=stores[-1])
        site = replace(site, stores=stores[:2], batches=url, apart=apart)  # type: ignore[arg-type]
        site.write()
        if part_reports is not None:
            with (folder / "shuffler.toml").open("a") as settings:
                settings.write(f"\n[release]\npart_reports = {part_reports}\nparts_at_once = 2\n")
        crowd = ServerProcess("devices", command(folder), folder / "devices.log")
        analyzer, shufflers = server_process(site, "analyzer"), [server_process(site, "shuffler")]
        if processes_of_shuffler > 1:
            balancer, shufflers = replicas(site, processes_of_shuffler)
            stack.enter_context(balancer.serving())
        others = [server_process(site, role) for role in site.roles[2:]]
        processes: list[ServerProcess | Broker] = [analyzer, *shufflers, *others, crowd]
        for process in processes:
            stack.callback(process.kill)
            process.start()
        processes += [Broker(broker)] if broker else []
        changes = KeyChanges(site, audit, analyzer, shufflers[0])
        steps = planned(changes, kills=kills, rotations=rotations)
        if processes_of_shuffler > 1:
            steps[kills // 2] = partial(restart_one_by_one, shufflers)
        victims = [each for each in processes if only in (None, each.name)]
        killed = _kill(processes, victims, rng, kills, written=partial(_written, folder), steps=steps)
        until(lambda: proxy.sent > 1)
        _calm_down(site, crowd)
        status = {each.name: each.stop() for each in others}
        status |= {"shuffler": max(abs(each.stop()) for each in shufflers), "analyzer": analyzer.stop()}
    return _check(site, audit, proxy, killed, status, time.monotonic() - began)


def _written(folder: Path) -> int:
    """Bytes in all journals."""
    return sum(path.stat().st_size for path in folder.glob("journal-*"))


def _kill(
    processes: list[ServerProcess | Broker],
    victims: list[ServerProcess | Broker],
    rng: random.Random,
    kills: int,
    *,
    written: Callable[[], int],
    steps: Mapping[int, Callable[[], None]],
) -> dict[str, int]:
    """Kill a victim at a random moment of its life and start it again, so many times; in the end all are ready.

    Time is counted by what devices write down meanwhile; one kill in five comes as soon as its victim is ready.
    steps : what the operator does before the kill of this number.
    """
    starting, killed = list(processes), Counter[str]()
    for number in range(kills):
        if number in steps:
            while starting:
                starting.pop().ready()
            steps[number]()
        victim = rng.choice(victims)
        if victim in starting:
            victim.ready()
            starting.remove(victim)
        goal = written() + max(0.0, rng.uniform(-_MOST / 4, _MOST))
        until(lambda goal=goal: written() >= goal)  # type: ignore[misc]
        victim.kill()
        killed[victim.name] += 1
        victim.start()
        starting.append(victim)
    for process in starting:
        process.ready()
    return dict(killed)


def _calm_down(site: Deployment, crowd: ServerProcess) -> None:
    """Devices send what waits and end; then the shuffler hands over everything that may leave."""
    (site.folder / CALM).touch()
    assert crowd.running
    crowd.running.wait(PATIENCE)
    quiet = [False]

    def calm() -> bool:
        shown = httpx.get(f"{site.shuffler}/metrics", timeout=PATIENCE).text
        quiet.append("\ndovetail_batches_waiting 0.0" in shown)
        return all(quiet[-5:])

    until(calm, pause=PERIOD)  # several rounds in which nothing waits for the analyzer


def _check(
    site: Deployment,
    audit: DeliveryAudit,
    proxy: Proxy,
    killed: dict[str, int],
    status: dict[str, int],
    seconds: float,
) -> Found:
    """Everything that was sent and acknowledged beside what is stored."""
    messages = Counter[bytes]()
    for path in sorted(site.folder.glob("journal-*")):
        for kind, named in Journal.read(path):
            slot, wire = named[:SLOT], named[SLOT:]
            messages[wire] += kind == b"S"
            if kind == b"S":
                audit.record_sent(wire, slot)
            else:
                audit.record_acknowledged(wire)
    kept = site.stores[0] or f"sqlite:///{site.folder / 'shuffler.sqlite'}"
    counts = site.stores[1] or f"sqlite:///{site.folder / 'analyzer.sqlite'}"
    unpaid, unanswered = _ledgers(site)
    with closing(open_shuffler_store(kept)) as store, closing(open_analyzer_store(counts)) as counted:
        return Found(
            verdict=audit.verdict(store, FileLinkKeyStore(site.folder / "vault")),
            miscounted=audit.count_miscounted(counted),
            uncounted=audit.count_uncounted(counted) + len(store.outgoing()),
            unpaid=unpaid,
            unanswered=unanswered,
            unentitled=0 if site.apart is None else _unentitled(site, store.rounds(site.world.campaign.id)),
            status=status,
            kills=killed,
            batches=len(counted.batches(site.world.campaign.id)),
            sent=proxy.sent,
            put=proxy.put,
            rebuilt=(site.folder / "shuffler.log").read_text().count("half built batch abandoned"),
            repeated=messages.total() - len(messages),
            rounds=dict(Counter(round.state for round in store.rounds(site.world.campaign.id))),
            versions=len({read_head(wire).digest for wire in messages}),
            seconds=round(seconds, 1),
        )


def _ledgers(site: Deployment) -> tuple[int, int]:
    """Devices whose ledger is wrong, and devices that still wait for an answer."""
    unpaid, unanswered, epsilon = 0, 0, site.world.campaign.mechanism.epsilon
    for slot, keys in enumerate(site.world.devices):
        if outbox_of(site.folder, slot).exists() and keys.signing:
            with closing(Outbox.open(outbox_of(site.folder, slot), keys.signing.verifying_key())) as outbox:
                for ledger in outbox.ledgers():
                    unpaid += ledger.spent != epsilon * sum(ledger.counts.values()) or ledger.spent > ledger.budget
                    unanswered += bool(ledger.waiting)
    return unpaid, unanswered


def _unentitled(site: Deployment, rounds: list[RoundRecord]) -> int:
    """Reports in a round beyond its tokens, and tokens that a device was refused for good: it had asked twice."""
    assert site.apart is not None
    with closing(open_issuer_store(site.apart.store or f"sqlite:///{site.folder / 'issuer.sqlite'}")) as issued:
        given = issued.counts()
    found = sum(max(0, each.count - given.get((each.campaign, each.number), 0)) for each in rounds)
    for path in sorted((site.folder / "devices").glob("*.outbox")):
        with closing(sqlite3.connect(path)) as outbox:
            found += outbox.execute("SELECT count(*) FROM token WHERE state = 'refused'").fetchone()[0]
    return int(found)


def main() -> int:
    """One soak from the command line; exit status 1 if it has found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.collect.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the kills")
    parser.add_argument(
        "--postgresql", action="store_true", help="on a PostgreSQL of its own instead of SQLite files"
    )
    parser.add_argument("--mqtt", action="store_true", help="through a Mosquitto of its own, killed as well")
    parser.add_argument("--processes", type=int, default=1, help="of the shuffler, behind a balancer")
    parser.add_argument("--parts", type=int, help="reports of a part, where batches are sent in parts")
    parser.add_argument("--tokens", action="store_true", help="of an issuer, and by a relay; both killed as well")
    parser.add_argument("--only", metavar="NAME", help="kill these processes alone, such as shuffler")
    parser.add_argument("--rotations", type=int, default=0, help="changes of both servers' keys on the way")
    asked = parser.parse_args()
    for sign in (signal.SIGINT, signal.SIGTERM):  # whoever stops us, the others go first
        signal.signal(sign, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="dovetail-soak-"))
    try:
        with (
            servers.postgres() if asked.postgresql else nullcontext() as database,
            servers.mosquitto() if asked.mqtt else nullcontext() as broker,
        ):
            roles = ("shuffler", "analyzer", "issuer")
            stores = tuple(database.database(role) if database else None for role in roles)
            found = soak(
                folder,
                kills=asked.kills,
                stores=stores,
                broker=broker,
                rotations=asked.rotations,
                processes_of_shuffler=asked.processes,
                part_reports=asked.parts,
                tokens=asked.tokens,
                only=asked.only,
                seed=asked.seed,
            )
    except servers.Absent as error:
        parser.error(f"{error}.")
    for name, value in vars(found).items():
        print(f"{name:12} {value}")
    if found.sound:
        shutil.rmtree(folder)
        return 0
    print(f"not sound: everything is in {folder}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
