"""Claim: the shuffler takes reports durably at half the rate, or more, of a naive service that does less.

The naive service (Starlette, sqlite3), over loopback HTTP like the real process, does as much cryptography and one
transaction for each request, and nothing else. The yardstick, in the same run and with the same bytes, has no server:
one HPKE opening, one Ed25519 verification and one insert per report in one thread, with SQLite's log flushed for each
100 reports. The load is sealed before, and sent over kept connections, one report in a request. Then the 99th
percentile of reports that come at half the peak rate, at fixed times, measured from these times: the target is 50 ms.
Processor time is that of the serving process.

    python benchmarks/collect_load.py
    python benchmarks/collect_load.py --slices 2 --size 4 --timed 200 --repeats 1
"""

import argparse
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from socket import create_connection, socket
from time import perf_counter, process_time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dovetail.collect.files import load_campaign, load_keys, save_keys
from dovetail.collect.simulate.deployment import COMMUTE, ThrowawayCampaign, schedule
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import Opener
from dovetail_protocol.messages import outer_info, plain, seal
from randomize_speed import machine

GROUP = 100  # reports in a transaction of the yardstick
CONNECTIONS = (1, 8, 32, 128)  # kept open; the peak is the best of them
PATIENT = 64  # connections that wait for reports at half the peak
SHUFFLER = 'schema_version = 1\ncampaigns = ["campaign.toml"]\nkeys = "shuffler.keys"\nroster = "roster.csv"\n'
TABLE = "CREATE TABLE report (tag BLOB PRIMARY KEY, sealed BLOB) WITHOUT ROWID"
HEAD = 41  # bytes of a message before what is sealed
ID, KEY, SIGNATURE = slice(0, 16), slice(16, 48), slice(48, 112)  # of what was sealed


@dataclass(frozen=True)
class Server:
    """A process that listens on loopback."""

    id: int
    port: int

    def processor(self) -> float:
        """Processor seconds used so far."""
        fields = Path(f"/proc/{self.id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serve(command: Sequence[str], folder: Path, log: str = "log") -> Iterator[Server]:
    """A server in a process of its own, from the line that says where it listens until SIGTERM."""
    with (folder / log).open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said:
            raise SystemExit(f"{' '.join(command)} did not start: {(folder / log).read_text()[-500:]}")
        yield Server(process.pid, int(said.rpartition(":")[2]))
    finally:
        process.terminate()
        process.wait(timeout=60)


def role(name: str) -> list[str]:
    """The command of a role whose configuration lies in the folder it starts in."""
    return ["-m", "dovetail", "collect", name, f"{name}.toml"]


# load


def request(message: bytes) -> bytes:
    """A report as it goes over the wire."""
    head = f"POST /v1/reports HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(message)}\r\n"
    return head.encode() + b"Content-Type: application/octet-stream\r\n\r\n" + message


def drive(port: int, requests: Sequence[bytes], *, connections: int, gap: float = 0.0) -> list[float]:
    """Seconds from the time at which each request was due to its answer, in order of the answers.

    Request i is due at i * `gap`, whatever has become of the others; with a gap of 0 every connection sends its next
    request as soon as it has an answer. Anything but acceptance ends the benchmark.
    """
    taken, sent, begin = list[float](), 0, perf_counter()
    with DefaultSelector() as answers:
        free = [create_connection(("127.0.0.1", port)) for _ in range(connections)]
        busy: dict[socket, tuple[float, bytes]] = {}
        while len(taken) < len(requests):
            while free and sent < len(requests) and begin + sent * gap <= perf_counter():
                link = free.pop()
                answers.register(link, EVENT_READ)
                busy[link] = (begin + sent * gap, b"")
                link.sendall(requests[sent])
                sent += 1
            wait = max(0.0, begin + sent * gap - perf_counter()) if free and sent < len(requests) else None
            for key, _ in answers.select(wait):
                link = key.fileobj  # type: ignore[assignment]
                due, before = busy[link]
                answer = before + link.recv(1 << 16)
                busy[link] = (due, answer)
                if whole(answer):
                    taken.append(perf_counter() - due)
                    answers.unregister(link)
                    del busy[link]
                    free.append(link)
        for link in free:
            link.close()
    return taken


def whole(answer: bytes) -> bool:
    """Whether an answer has arrived to its end; it must accept everything, a gateway's without being opened."""
    head, found, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    if not found or (length is not None and len(body) < int(length[1])):
        return False
    if head.split(b" ", 2)[1] not in (b"200", b"202"):
        raise SystemExit(f"refused: {answer[-300:].decode()}")
    return True


# yardstick and naive service


@dataclass(frozen=True)
class Bench:
    """Opens and verifies with the library's own functions, and nothing around them."""

    campaign: Campaign
    opener: Opener

    def open(self, message: bytes) -> tuple[bytes, bytes]:
        """Key of the device and everything that was sealed."""
        info = outer_info(self.campaign, 1)
        outer = self.opener.open(message[HEAD:], info)
        assert outer is not None
        signed = info.replace(b"envelope", b"device") + outer[ID] + outer[KEY] + outer[SIGNATURE.stop :]
        Ed25519PublicKey.from_public_bytes(outer[KEY]).verify(outer[SIGNATURE], signed)
        return outer[KEY], outer


def database(path: Path) -> sqlite3.Connection:
    """SQLite that flushes every transaction, as the shuffler's does."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", TABLE):
        connection.execute(statement)
    return connection


def insert(connection: sqlite3.Connection, rows: Sequence[tuple[bytes, bytes]]) -> None:
    """Rows in one durable transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO report VALUES (?, ?)", rows)
    connection.execute("COMMIT")


def yardstick(bench: Bench, connection: sqlite3.Connection, messages: Sequence[bytes]) -> tuple[float, float]:
    """Seconds and processor seconds to open, verify and insert all messages, `GROUP` in a transaction."""
    wall, processor = perf_counter(), process_time()
    for start in range(0, len(messages), GROUP):
        insert(connection, [bench.open(message) for message in messages[start : start + GROUP]])
    return perf_counter() - wall, process_time() - processor


def naive(folder: Path) -> None:
    """The naive service: as much cryptography, one transaction for each request."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    bench, connection = read_bench(folder), database(folder / "naive.sqlite")

    async def report(request: Request) -> Response:
        insert(connection, [bench.open(await request.body())])
        return Response(status_code=202)

    routes = [Route("/v1/reports", report, methods=["POST"])]
    listener = socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(512)
    print(f"naive at port:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_config=None)).run(sockets=[listener])


# measurement


@dataclass(frozen=True)
class Load:
    """Requests of distinct devices, sealed before anything is measured."""

    slices: list[list[bytes]]  # for each turn and number of connections
    timed: list[bytes]  # at half the peak

    @property
    def count(self) -> int:
        return sum(map(len, (*self.slices, self.timed)))


def prepare(folder: Path, *, slices: int, size: int, timed: int = 0) -> Load:
    """Keys, campaign, roster and configuration in `folder`, and the messages."""
    counts = [size * GROUP] * slices + [timed]
    world = founded(folder, sum(counts))
    campaign = world.campaign
    report = plain(campaign, campaign.mechanism.encode(1))
    sealed = (seal(campaign, 1, report, device.signing) for device in world.devices if device.signing)
    parts = [[next(sealed) for _ in range(count)] for count in counts]
    return Load(parts[:-1], parts[-1])


def founded(folder: Path, devices: int) -> ThrowawayCampaign:
    """A campaign of so many devices, whose one round runs, and the files that a shuffler starts with."""
    rounds = schedule(1, period=1e7, start=datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1))
    world = ThrowawayCampaign.of({**COMMUTE, "rounds": rounds}, devices)
    write(world, folder)
    return world


def write(world: ThrowawayCampaign, folder: Path) -> None:
    """The files that a shuffler starts with."""
    (folder / "campaign.toml").write_bytes(world.campaign.signed)
    save_keys(world.shuffler, folder / "shuffler.keys")
    world.roster().save(folder / "roster.csv")
    configure(folder, "http://127.0.0.1:1")


def configure(folder: Path, analyzer: str) -> None:
    """The shuffler's configuration."""
    where = f'analyzer = "{analyzer}"\nlisten = "127.0.0.1:0"\n'
    (folder / "shuffler.toml").write_text(SHUFFLER + where)


def read_bench(folder: Path) -> Bench:
    keys = load_keys(folder / "shuffler.keys", "shuffler")
    assert keys.opening is not None
    return Bench(load_campaign(folder / "campaign.toml"), keys.opening.opener())


class Rates:
    """What one server did, by the number of connections."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.reports, self.seconds, self.work = (defaultdict[int, float](float) for _ in range(3))
        self.waits: list[float] = []  # at half the peak, ascending

    def take(self, messages: Sequence[bytes], *, connections: int) -> None:
        """One more slice."""
        processor, begin = self._server.processor(), perf_counter()
        drive(self._server.port, [*map(request, messages)], connections=connections)
        self.seconds[connections] += perf_counter() - begin
        self.work[connections] += self._server.processor() - processor
        self.reports[connections] += len(messages)

    @property
    def peak(self) -> int:
        """The number of connections with the highest rate."""
        return max(self.reports, key=self.rate)

    def rate(self, connections: int) -> float:
        """Reports a second."""
        return self.reports[connections] / self.seconds[connections]

    def half(self, messages: Sequence[bytes]) -> None:
        """Reports at fixed times."""
        gap = 2 / self.rate(self.peak)
        self.waits = sorted(drive(self._server.port, [*map(request, messages)], connections=PATIENT, gap=gap))

    def wait(self, share: float) -> float:
        return self.waits[int(share * (len(self.waits) - 1))]


def measure(template: Path, load: Load, folder: Path) -> list[dict[str, float]]:
    """Shuffler and naive service in turns, with the yardstick between them."""
    shutil.copytree(template, folder)
    bench = read_bench(template)
    commands = {"shuffler": role("shuffler"), "naive": [__file__, "--naive", "."]}
    wall = work = 0.0
    with ExitStack() as running:
        connection = running.enter_context(closing(database(folder / "yardstick.sqlite")))
        found = {name: Rates(running.enter_context(serve(c, folder, f"{name}.log"))) for name, c in commands.items()}
        for turn, messages in enumerate(load.slices):
            seconds, processor = yardstick(bench, connection, messages)
            wall, work = wall + seconds, work + processor
            for rates in found.values():
                rates.take(messages, connections=CONNECTIONS[turn % len(CONNECTIONS)])
        for rates in found.values():
            rates.half(load.timed)
    for name in commands:
        if stored(folder / f"{name}.sqlite") != load.count:
            raise SystemExit(f"{name} has {stored(folder / f'{name}.sqlite')} reports of {load.count}.")
    reports = sum(map(len, load.slices))
    print(
        f"  yardstick {reports / wall:6.0f} reports/s in transactions of {GROUP}, {work / reports * 1e6:.0f} us of "
        f"processor time (load {os.getloadavg()[0]:.1f})"
    )
    told = {name: summary(name, rates) for name, rates in found.items()}
    for figures in told.values():
        figures["of the naive rate"] = figures["reports/s"] / told["naive"]["reports/s"]
        figures["of the yardstick"] = figures["reports/s"] * wall / reports
    return list(told.values())


def summary(name: str, rates: Rates) -> dict[str, float]:
    """The figures of one service, printed."""
    peak = rates.peak
    work = rates.work[peak] / rates.reports[peak] * 1e6
    figures = {"reports/s": rates.rate(peak), "us of processor time": work, "p99 ms": rates.wait(0.99) * 1e3}
    print(
        f"  {name:9s} {figures['reports/s']:6.0f} reports/s over {peak} connections, {work:.0f} us of processor time "
        f"each; at half of it p50 {rates.wait(0.5) * 1e3:.1f} ms, p99 {figures['p99 ms']:.1f} ms"
    )
    return figures


def stored(path: Path) -> int:
    """Reports in a database after its server has ended."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM report").fetchone()[0])


def main() -> None:
    """Print rates, ratios and latencies of every repeat, and their medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=8, help="turns in a repeat, over the numbers of connections")
    parser.add_argument("--size", type=int, default=20, help=f"times {GROUP} reports in a turn")
    parser.add_argument("--timed", type=int, default=2000, help="reports at half the peak rate")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--naive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.naive:
        return naive(options.naive)
    print(machine())
    with tempfile.TemporaryDirectory() as place:
        template = Path(place) / "template"
        template.mkdir()
        load = prepare(template, slices=options.slices, size=options.size, timed=options.timed)
        runs = []
        for number in range(options.repeats):
            print(f"repeat {number + 1}")
            runs.append(measure(template, load, Path(place) / str(number)))
    for name, results in zip(("shuffler", "naive"), zip(*runs, strict=True), strict=True):
        middle = {figure: statistics.median(run[figure] for run in results) for figure in results[0]}
        print(f"median of {name}: " + ", ".join(f"{figure} {value:.3g}" for figure, value in middle.items()))


if __name__ == "__main__":
    main()
