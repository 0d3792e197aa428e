"""Claim: by whichever door a report comes, it costs the shuffler at most 1.5 ms of processor time.

One report in a request, as devices send them: a connection for each, the same through the shipped nginx, which ends
TLS (the devices' end is `tests/collect/deploy/tls_devices.py`); requests sealed to the gateway, over connections that
a relay keeps; messages of a broker. Each on SQLite and on PostgreSQL, with fsync on. Processor time is that of the
shuffler, and of the programs beside it.

Then floods of junk, sealed well by keys outside the roster so that each is opened and verified in vain, at the doors
of HTTP, while devices report at fixed times: the 99th percentile of their waits must stay below two seconds. A broker
keeps one queue: there the wait of a device is that of all junk before it, so what one message of junk costs is told.

    python benchmarks/collect_doors.py
    python benchmarks/collect_doors.py --reports 200
"""

import argparse
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from select import EPOLLIN, epoll
from socket import IPPROTO_TCP, TCP_NODELAY, create_connection, socket
from time import perf_counter, sleep

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the servers of the tests

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.collect.deploy.test_proxy import proxying
from tests.collect.deploy.tls_devices import Talk, check, secured
from tests.collect.servers import Mosquitto, Postgres, mosquitto, postgres

from collect_load import GROUP, drive, prepare, request, role, serve, stored, whole
from collect_processes import tree_time
from dovetail.collect.files import load_campaign, save_keys
from dovetail_protocol.binary_http import padded
from dovetail_protocol.endpoint import answer_topic, topic
from dovetail_protocol.keys import RoleKeys, SigningKey
from dovetail_protocol.messages import REPORTS, longest_request, oblivious_request, plain, seal
from dovetail_protocol.ohttp import REQUEST_TYPE, GatewayKey
from randomize_speed import machine

GATEWAY = RoleKeys.generate("gateway")
AT_ONCE = 32  # connections; the shipped nginx lets an address have fifty
FLOODERS, STRANGERS = 32, 300  # connections of junk, and keys outside the roster
QUEUED = 5000  # messages of junk at the broker
GAP = 0.05  # seconds between the reports of devices beside a flood


def sealed(message: bytes, key: GatewayKey, pad: int) -> bytes:
    """A report as a relay forwards it."""
    wire, _ = key.seal(padded(oblivious_request("POST", REPORTS, message).encode(), pad))
    head = (
        f"POST /ohttp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(wire)}\r\nContent-Type: {REQUEST_TYPE}\r\n"
    )
    return head.encode() + b"\r\n" + wire


def bare(request: bytes, whole: Callable[[bytes], bool]) -> Talk:
    """A conversation without TLS, see `secured`."""
    answer = b""
    yield request
    while not whole(answer):
        answer += yield b""
    return answer


def each_alone(
    port: int,
    requests: Sequence[bytes],
    trusted: ssl.SSLContext | None = None,
    gap: float = 0,
    at_once: int = AT_ONCE,
) -> list[float]:
    """Seconds that each request waits for its answer, over a connection from an address of its own.

    Request i is due at i * `gap`, whatever has become of the others; with a gap of 0 as soon as fewer than `at_once`
    are under way.
    """
    if trusted is not None:
        check(port, trusted)
    talk, waits, due = bare if trusted is None else secured, [0.0] * len(requests), list[float]()
    under_way = dict[int, tuple[socket, Talk, int]]()
    begin, left = perf_counter(), len(requests)
    with epoll() as answers:
        while left:
            now = perf_counter()
            while len(due) < len(requests) and len(under_way) < at_once and begin + len(due) * gap <= now:
                place = len(due)
                due.append(begin + place * gap if gap else now)
                link = create_connection(("127.0.0.1", port), source_address=(address(place), 0))
                link.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)  # as http.client does
                under_way[link.fileno()] = (link, said := talk(requests[place], whole), place)
                answers.register(link, EPOLLIN)
                went_on(link, said, None)
            more = len(due) < len(requests) and len(under_way) < at_once
            for file, _ in answers.poll(max(0.0, begin + len(due) * gap - perf_counter()) if more else None):
                link, said, place = under_way[file]
                came = link.recv(1 << 16)
                if not came:
                    raise SystemExit("the server closed a connection without an answer.")
                if went_on(link, said, came):
                    continue
                waits[place], left = perf_counter() - due[place], left - 1
                del under_way[file]
                link.close()
    return waits


def address(place: int) -> str:
    """A device's own address on loopback."""
    return f"127.{1 + place // 62500}.{1 + place // 250 % 250}.{1 + place % 250}"


def went_on(link: socket, talk: Talk, came: bytes | None) -> bool:
    """Send what a conversation says to what came, until it waits; False once it has its answer."""
    try:
        said = next(talk) if came is None else talk.send(came)
        while said:
            link.sendall(said)
            said = next(talk)
    except StopIteration:
        return False
    return True


def published(broker: Mosquitto, where: str, messages: Sequence[bytes]) -> None:
    """Messages of one client, until the shuffler has answered all of them."""
    told, session = SimpleQueue[None](), os.urandom(16).hex()
    client = Client(CallbackAPIVersion.VERSION2, session, protocol=MQTTv5)
    client.on_subscribe = lambda *_: told.put(None)
    client.on_message = lambda *_: told.put(None)
    client.connect("127.0.0.1", broker.process.port)
    client.loop_start()
    client.subscribe(answer_topic(session), qos=1)
    told.get()
    asked = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    asked.ResponseTopic = answer_topic(session)
    for message in messages:
        client.publish(where, message, qos=1, properties=asked)
    for _ in messages:
        told.get()
    client.disconnect()
    client.loop_stop()


@contextmanager
def shuffler(template: Path, folder: Path, more: str) -> Iterator[tuple[int, int]]:
    """Process and port of a shuffler with these lines in its configuration."""
    shutil.copytree(template, folder)
    save_keys(GATEWAY, folder / "gateway.keys")
    with (folder / "shuffler.toml").open("a") as file:
        file.write('gateway = ["gateway.keys"]\n' + more)
    with serve(role("shuffler"), folder) as server:
        yield server.id, server.port


def held(process: int) -> int:
    """Bytes of memory that a process has."""
    return int((Path("/proc") / str(process) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def costs(template: Path, folder: Path, parts: list[list[bytes]], database: Postgres, *, url: str) -> None:
    """Microseconds of processor time a report, by door; `url` is a PostgreSQL's, or empty for SQLite."""
    campaign, store = load_campaign(template / "campaign.toml"), "PostgreSQL" if url else "SQLite"
    assert GATEWAY.opening is not None
    key, pad = GatewayKey.of(GATEWAY.opening), longest_request(campaign)
    with ExitStack() as running:
        broker = running.enter_context(mosquitto())
        lines = (f'store = "{url}"\n' if url else "") + f'[mqtt]\nurl = "{broker.url}"\n'
        process, port = running.enter_context(shuffler(template, folder / store, lines))
        proxy, trusted = running.enter_context(proxying("shuffler", folder / f"proxy-{store}", port))
        assert broker.process.running and proxy.running and database.process.running
        doors: dict[str, Callable[[list[bytes]], object]] = {
            "connections that are kept": lambda all: drive(port, [*map(request, all)], connections=AT_ONCE),
            "a connection for each": lambda all: each_alone(port, [*map(request, all)]),
            "TLS, a connection for each": lambda all: each_alone(proxy.port, [*map(request, all)], trusted),
            "oblivious HTTP, from a relay": lambda all: drive(
                port, [sealed(each, key, pad) for each in all], connections=AT_ONCE
            ),
            "a broker": lambda all: published(broker, topic(campaign.digest), all),
        }
        beside = {
            "the shuffler": process,
            "nginx": proxy.running.pid,
            "the broker": broker.process.running.pid,
            "PostgreSQL": database.process.running.pid,
        }
        sent, start = 0, held(process)
        for name, door in doors.items():
            messages, before = parts.pop(), [*map(tree_time, beside.values())]
            door(messages)
            took = [
                (tree_time(each) - b) / len(messages) * 1e6 for b, each in zip(before, beside.values(), strict=True)
            ]
            told = ", ".join(f"{who} {each:.0f}" for who, each in zip(beside, took, strict=True) if each >= 5)
            print(f"  {store}, {name}: {told} us (load {os.getloadavg()[0]:.1f})", flush=True)
            sent += len(messages)
        print(f"  {store}: {start / 1e6:.0f} MB at first, {held(process) / 1e6:.0f} after {sent} reports")
    if not url and stored(folder / store / "shuffler.sqlite") != sent:
        raise SystemExit(f"{stored(folder / store / 'shuffler.sqlite')} reports of {sent} are there.")


def junk(port: int, file: Path) -> None:
    """Send the requests of a file over kept connections, as fast as answers come, until killed."""
    requests = [bytes.fromhex(line) for line in file.read_text().split()]

    def flood(first: int) -> None:
        with create_connection(("127.0.0.1", port)) as link:
            for place in count(first):
                link.sendall(requests[place % len(requests)])
                link.recv(1 << 16)

    with ThreadPoolExecutor(FLOODERS) as pool:
        list(pool.map(flood, range(FLOODERS)))


def floods(template: Path, place: Path, parts: list[list[bytes]]) -> None:
    """How long devices wait beside junk at a door, and how much junk came meanwhile."""
    campaign = load_campaign(template / "campaign.toml")
    assert GATEWAY.opening is not None
    key, pad = GatewayKey.of(GATEWAY.opening), longest_request(campaign)
    report = plain(campaign, campaign.mechanism.encode(1))
    strangers = [seal(campaign, 1, report, SigningKey.generate()) for _ in range(STRANGERS)]
    for door, requests in (
        (REPORTS, [request(each) for each in strangers]),
        ("/ohttp", [sealed(each, key, pad) for each in strangers]),
    ):
        messages, file = parts.pop(), place / "junk"
        file.write_text("\n".join(each.hex() for each in requests))
        with (
            shuffler(template, place / f"flood-{door[-5:]}", "") as (process, port),
            subprocess.Popen([sys.executable, __file__, "--junk", str(port), str(file)]) as flood,
        ):
            sleep(2.0)
            before, begin = tree_time(process), perf_counter()
            waits = sorted(each_alone(port, [*map(request, messages)], gap=GAP))
            busy = (tree_time(process) - before) / (perf_counter() - begin)
            flood.kill()
        print(
            f"  junk at {door}: devices waited {waits[len(waits) // 2] * 1e3:.0f} ms, 99 of 100 at most "
            f"{waits[int(0.99 * (len(waits) - 1))] * 1e3:.0f} ms; the shuffler took {busy:.0%} of a core "
            f"(load {os.getloadavg()[0]:.1f})",
            flush=True,
        )


def queued(template: Path, place: Path, parts: list[list[bytes]]) -> None:
    """How long a device waits behind junk in the broker's queue, without the time that the junk took to come."""
    campaign = load_campaign(template / "campaign.toml")
    report = plain(campaign, campaign.mechanism.encode(1))
    strangers = [seal(campaign, 1, report, SigningKey.generate()) for _ in range(STRANGERS)]
    where, folder = topic(campaign.digest), place / "queue"
    with mosquitto() as broker:
        with shuffler(template, folder, f'[mqtt]\nurl = "{broker.url}"\n'):
            while "subscribed" not in (folder / "log").read_text():
                sleep(0.1)
        sender = Client(CallbackAPIVersion.VERSION2, os.urandom(16).hex(), protocol=MQTTv5)
        sender.connect("127.0.0.1", broker.process.port)
        sender.loop_start()
        asked = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        asked.ResponseTopic = answer_topic(os.urandom(16).hex())
        for number in range(QUEUED):
            sent = sender.publish(where, strangers[number % STRANGERS], qos=1, properties=asked)
            if number % FLOODERS == 0 or number == QUEUED - 1:
                sent.wait_for_publish(60)
        sender.disconnect()
        sender.loop_stop()
        with serve(role("shuffler"), folder) as server:
            before, begin = tree_time(server.id), perf_counter()
            published(broker, where, [parts[-1].pop()])
            wait, took = perf_counter() - begin, tree_time(server.id) - before
    print(
        f"  behind {QUEUED} messages of junk at a broker a device waited {wait:.1f} s; the shuffler took "
        f"{took / QUEUED * 1e6:.0f} us of processor time for each (load {os.getloadavg()[0]:.1f})",
        flush=True,
    )


def main() -> None:
    """Print the processor time of a report by each door and store, and the waits beside floods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=1000, help="by each door, a multiple of a hundred")
    parser.add_argument("--junk", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.junk:
        return junk(int(options.junk[0]), Path(options.junk[1]))
    print(f"{machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name, postgres(durable=True) as database:
        place, template = Path(name), Path(name) / "template"
        template.mkdir()
        place.chmod(0o755)
        parts = prepare(template, slices=13, size=options.reports // GROUP).slices
        url = database.database("doors").replace("postgresql://", "postgresql+psycopg://")
        for each in ("", url):
            costs(template, place, parts, database, url=each)
        floods(template, place, parts)
        queued(template, place, parts)


if __name__ == "__main__":
    main()
