"""Claim: four processes of a shuffler on one PostgreSQL take three times the reports of one, where there are cores.

In one run: one process on SQLite, one on PostgreSQL, four on PostgreSQL, each over kept connections on loopback,
with fsync on. Rates depend on the cores that there are, so processor time is what is compared: a report must not
cost four processes a third more than one. Then the store alone, COPY against the plain inserts that
SQLite gets, and two yardsticks: opening and verifying with the library's own functions, and hashing and sealing
what is stored.

    python benchmarks/collect_processes.py
    python benchmarks/collect_processes.py --reports 800
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the PostgreSQL of the tests

from tests.collect.servers import Postgres, postgres

from collect_load import GROUP, Server, drive, prepare, read_bench, request, role, serve
from dovetail.collect.shuffler.link_key_store import RoundKey
from dovetail.collect.store import report_transactions
from dovetail.collect.store.interfaces import SealedReport
from dovetail.collect.store.shuffler_store import DatabaseShufflerStore, open_shuffler_store
from randomize_speed import machine

MANY = 4  # processes
SENDERS = 128  # connections, of all processes together
GROUPS = (100, 1000)  # reports in one transaction of the store


@dataclass(frozen=True)
class Load:
    """What one arrangement took."""

    name: str
    rate: float  # reports/s
    shuffler: float  # processor seconds of one report, all its processes together
    database: float  # and of the server of the database

    def show(self) -> None:
        print(
            f"  {self.name:28s} {self.rate:6.0f} reports/s; a report takes {self.shuffler * 1e6:.0f} us of the "
            f"shuffler's processor time, {self.database * 1e6:.0f} us of PostgreSQL's (load {os.getloadavg()[0]:.1f})"
        )


def server_time(database: Postgres) -> float:
    """Processor seconds of a PostgreSQL and everything that it has started."""
    assert database.process.running
    return tree_time(database.process.running.pid)


def tree_time(post: int) -> float:
    """Processor seconds of a process and its children."""
    tick, total = os.sysconf("SC_CLK_TCK"), 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(path.parent.name) == post:
            total += sum(map(int, fields[11:15]))  # with those that have ended
        elif int(fields[1]) == post:
            total += int(fields[11]) + int(fields[12])
    return total / tick


@contextmanager
def shufflers(folder: Path, count: int, url: str | None) -> Iterator[list[Server]]:
    """So many processes with one configuration."""
    if url is not None:
        with (folder / "shuffler.toml").open("a") as file:
            file.write(f'store = "{url}"\n')
    with ExitStack() as running:
        yield [running.enter_context(serve(role("shuffler"), folder, f"log-{n}")) for n in range(count)]


def measure(
    name: str, template: Path, folder: Path, messages: Sequence[bytes], *, count: int, database: Postgres | None
) -> Load:
    """`count` processes take all messages, each its share."""
    shutil.copytree(template, folder)
    url = None if database is None else database.database("bench").replace("postgresql://", "postgresql+psycopg://")
    requests = [*map(request, messages)]
    spent = (lambda: 0.0) if database is None else (lambda: server_time(database))
    with shufflers(folder, count, url) as servers, ThreadPoolExecutor(count) as pool:
        before, there, begin = [server.processor() for server in servers], spent(), perf_counter()
        list(
            pool.map(lambda n: drive(servers[n].port, requests[n::count], connections=SENDERS // count), range(count))
        )
        seconds = perf_counter() - begin
        work = sum(server.processor() for server in servers) - sum(before)
        return Load(name, len(messages) / seconds, work / len(messages), (spent() - there) / len(messages))


def sealed(n: int) -> list[SealedReport]:
    return [SealedReport("c", 1, os.urandom(32), os.urandom(32), os.urandom(190)) for _ in range(n)]


def store_alone(database: Postgres, n: int) -> None:
    """COPY through a temporary table against plain inserts behind questions, in groups."""
    lock, alone = report_transactions.lock, report_transactions._accept_alone
    ways: dict[str, Callable[[DatabaseShufflerStore, list[SealedReport]], object]] = {
        "COPY": lambda store, group: store.accept(group),
        "plain inserts": lambda store, group: store._database.write(
            lambda connection: alone(connection, group, lock(connection, ["c"], "open"))
        ),
    }
    for size in GROUPS:
        for name, way in ways.items():
            store = open_shuffler_store(database.database("bench"))
            store.open_round("c", 1, 0.0)
            groups = [sealed(size) for _ in range(n // size)]
            here, there, begin = process_time(), server_time(database), perf_counter()
            for group in groups:
                way(store, group)
            count = size * len(groups)
            print(
                f"  {name:14s} in transactions of {size:4d}: {count / (perf_counter() - begin):6.0f} reports/s, "
                f"{(process_time() - here) / count * 1e6:.0f} us here and "
                f"{(server_time(database) - there) / count * 1e6:.0f} us of PostgreSQL's processor time"
            )
            store.close()


def yardsticks(template: Path, messages: Sequence[bytes]) -> None:
    """Bare cryptography of a report, and of its row."""
    bench, key = read_bench(template), RoundKey.derive(bytes(range(32)))
    begin = process_time()
    opened = [bench.open(message) for message in messages]
    opening = (process_time() - begin) / len(messages)
    begin = process_time()
    for device, outer in opened:
        key.seal(outer, key.tag(device))
        sha256(outer[:16]).digest()
    row = (process_time() - begin) / len(messages)
    print(f"  yardsticks: {opening * 1e6:.0f} us to open and verify, {row * 1e6:.1f} us to hash and seal a row")


def main() -> None:
    """Print rates and processor times of every arrangement, and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--reports", type=int, default=8000, help="for each arrangement, twice that for four processes"
    )
    asked = parser.parse_args().reports
    print(f"{machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as place, postgres(durable=True) as database:
        template = Path(place) / "template"
        template.mkdir()
        parts = prepare(template, slices=4, size=asked // GROUP).slices
        yardsticks(template, parts[0][: asked // 2])
        store_alone(database, max(asked, *GROUPS))
        arrangements = (
            ("one process, SQLite", parts[0], 1, None),
            ("one process, PostgreSQL", parts[1], 1, database),
            (f"{MANY} processes, PostgreSQL", parts[2] + parts[3], MANY, database),
        )
        found = [
            measure(name, template, Path(place) / str(number), messages, count=count, database=server)
            for number, (name, messages, count, server) in enumerate(arrangements)
        ]
    for load in found:
        load.show()
    _, one, many = found
    print(
        f"  four processes take {many.rate / one.rate:.2f} times the reports of one on these cores; by processor "
        f"time, with a core for each and for the database, {MANY * one.shuffler / many.shuffler:.2f} times, and "
        f"PostgreSQL is busy {MANY / many.shuffler * many.database:.0%} of a core then"
    )


if __name__ == "__main__":
    main()
