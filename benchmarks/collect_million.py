"""Claim: a round of 100,000 reports is shuffled, handed over and counted in under 20 s, and memory stays bounded.

Real processes over loopback: the shuffler from the owner's word that the round is over to the analyzer's "counted".
The store is filled before, directly, with reports that are sealed as devices seal them. The yardsticks, in the same
run: one thread that opens every sealed report with HPKE and does nothing else, and one that decrypts every row and
writes the body, shuffled, to a flushed file.

Then the shuffler's peak memory for 100,000 and for a million reports, beyond what it holds after its start with a
roster as long. What it shuffles there are random bytes of the same length, and a sink takes them.

    python benchmarks/collect_million.py
    python benchmarks/collect_million.py --n 10000 --million 100000 --repeats 1
"""

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from socket import socket
from time import perf_counter, process_time, sleep

import numpy as np

from collect_load import Server, configure, role, serve, write
from dovetail.collect.batch import PREFIX, Header, head_bytes
from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.collect.files import save_keys
from dovetail.collect.shuffler.batches import pack
from dovetail.collect.shuffler.campaigns import owner_request
from dovetail.collect.shuffler.link_key_store import FileLinkKeyStore, RoundKey
from dovetail.collect.simulate.deployment import COMMUTE, ThrowawayCampaign
from dovetail.collect.store.interfaces import SealedReport
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail_protocol.keys import VerifyingKey
from dovetail_protocol.messages import inner_bytes, inner_info, plain
from randomize_speed import machine

AT_ONCE = 5_000  # reports in one transaction of the filling
ANALYZER = 'schema_version = 1\ncampaigns = ["campaign.toml"]\nkeys = "analyzer.keys"\nlisten = "127.0.0.1:0"\n'


@dataclass(frozen=True)
class Took:
    """One round: seconds and bytes."""

    build: float
    hand_over: float
    work: float  # processor seconds of both processes
    base: int  # resident after the start, roster included
    peak: int

    @property
    def total(self) -> float:
        return self.build + self.hand_over


def sealed(world: ThrowawayCampaign, n: int) -> Iterator[bytes]:
    """Reports as devices seal them to the analyzer."""
    campaign = world.campaign
    text, info = plain(campaign, campaign.mechanism.encode(1)), inner_info(campaign, 1)
    return (campaign.analyzer.seal(text, info) for _ in range(n))


def noise(world: ThrowawayCampaign, n: int) -> Iterator[bytes]:
    """Random bytes, as long as sealed reports."""
    return (os.urandom(inner_bytes(world.campaign)) for _ in range(n))


def fill(world: ThrowawayCampaign, folder: Path, inner: Iterator[bytes], *, n: int) -> None:
    """A shuffler's roster, vault and database after `n` reports of the first round; in the order of the keys, which
    is the quick one to insert."""
    id, store = world.campaign.id, open_shuffler_store(f"sqlite:///{folder / 'shuffler.sqlite'}")
    key = FileLinkKeyStore(folder / "vault").create(id, 1)
    store.open_round(id, 1, now=0.0)
    devices = sorted((os.urandom(32) for _ in range(n)), key=key.tag)
    digests = sorted(os.urandom(32) for _ in range(n))
    Roster(RosterEntry(VerifyingKey(device), slot) for slot, device in enumerate(devices)).save(folder / "roster.csv")
    for start in range(0, n, AT_ONCE):
        slots = range(start, min(start + AT_ONCE, n))
        store.accept([accepted(id, key, slot, devices[slot], digests[slot], next(inner)) for slot in slots])
    store.close()


def accepted(id: str, key: RoundKey, slot: int, device: bytes, digest: bytes, inner: bytes) -> SealedReport:
    """A report as the shuffler stores it."""
    tag = key.tag(device)
    return SealedReport(id, 1, tag, digest, key.seal(pack(device, slot, inner), tag))


# yardsticks


def opening(world: ThrowawayCampaign, n: int) -> tuple[float, float]:
    """Seconds and processor seconds to open n sealed reports one after the other."""
    assert world.analyzer.opening is not None
    opener, info = world.analyzer.opening.opener(), inner_info(world.campaign, 1)
    few = list(sealed(world, min(n, 2_000)))
    begin, work = perf_counter(), process_time()
    for report in few:
        opener.open(report, info)
    return (perf_counter() - begin) * n / len(few), (process_time() - work) * n / len(few)


def copying(world: ThrowawayCampaign, folder: Path) -> tuple[float, float]:
    """Seconds and processor seconds to decrypt every row of the round and write it, shuffled, to a flushed file."""
    store, key = (
        open_shuffler_store(f"sqlite:///{folder / 'shuffler.sqlite'}"),
        FileLinkKeyStore(folder / "vault").key("commute", 1),
    )
    assert key is not None
    begin, work = perf_counter(), process_time()
    tags = store.tags(world.campaign.id, [1])
    rows = [key.open(row, tag) for row, (_, tag) in zip(store.fetch(world.campaign.id, tags), tags, strict=True)]
    with (folder / "copy").open("wb") as file:
        file.writelines(rows[place] for place in np.random.default_rng(1).permutation(len(rows)))
        file.flush()
        os.fsync(file.fileno())
    store.close()
    return perf_counter() - begin, process_time() - work


# a round


def hand_over(world: ThrowawayCampaign, folder: Path, receiver: list[str]) -> Took:
    """Close the round, and wait until the receiver has it."""
    with serve(receiver, folder, "receiver.log") as other:
        configure(folder, f"http://127.0.0.1:{other.port}")
        with serve(role("shuffler"), folder, "shuffler.log") as server:
            request(server, "GET", "/v1/status")
            (Path("/proc") / str(server.id) / "clear_refs").write_text("5")  # the peak begins here
            work = -server.processor() - other.processor()
            base, begin = resident(server, "VmRSS"), perf_counter()
            close(server, world)
            built = perf_counter()
            while "batch delivered" not in (folder / "shuffler.log").read_text():
                sleep(0.02)
            end, work = perf_counter(), work + server.processor() + other.processor()
            return Took(built - begin, end - built, work, base, resident(server, "VmHWM"))


def close(server: Server, world: ThrowawayCampaign) -> None:
    """The owner's word that the first round is over; answered when its batch is built."""
    assert world.owner.signing is not None
    place = f"/v1/campaigns/{world.campaign.id}/rounds/1/close"
    challenge = bytes.fromhex(json.loads(request(server, "GET", place))["challenge"])
    word = owner_request("close", world.owner.signing, world.campaign.digest, 1, challenge)
    answer = request(server, "POST", place, word)
    if b"released" not in answer and b"delivered" not in answer:
        raise SystemExit(f"not closed: {answer.decode()}")


def request(server: Server, method: str, path: str, body: bytes = b"") -> bytes:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=900)
    connection.request(method, path, body)
    return connection.getresponse().read()


def resident(server: Server, name: str) -> int:
    """Bytes of memory: VmRSS now, VmHWM at most."""
    lines = Path(f"/proc/{server.id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


def sink() -> None:
    """An analyzer that looks at nothing but the header."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def take(received: Request) -> Response:
        start = b""
        async for piece in received.stream():
            start += piece if len(start) < PREFIX or len(start) < head_bytes(start) else b""
        header = Header.peek(start[: head_bytes(start)])
        return JSONResponse({"batch": header.batch, "state": "counted"})

    listener = socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"sink at port:{listener.getsockname()[1]}", flush=True)
    app = Starlette(routes=[Route("/v1/batches", take, methods=["POST"])])
    uvicorn.Server(uvicorn.Config(app, log_config=None)).run(sockets=[listener])


# report


@contextmanager
def filled(
    kind: Callable[[ThrowawayCampaign, int], Iterator[bytes]], n: int
) -> Iterator[tuple[ThrowawayCampaign, Path]]:
    """A world whose shuffler has accepted n reports."""
    world = ThrowawayCampaign.of({**COMMUTE, "rounds": {"schedule": "manual", "count": 1}}, 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "analyzer.toml").write_text(ANALYZER)
        save_keys(world.analyzer, folder / "analyzer.keys")
        write(world, folder)
        fill(world, folder, kind(world, n), n=n)
        yield world, folder


def counted(n: int) -> Took:
    """A round with a real analyzer, and the yardsticks."""
    with filled(sealed, n) as (world, folder):
        (opened, opening_work), (copied, copying_work) = opening(world, n), copying(world, folder)
        took = hand_over(world, folder, role("analyzer"))
    print(
        f"  {n:,} reports: built in {took.build:.1f} s (decrypting and writing alone {copied:.1f} s), sent and "
        f"counted in {took.hand_over:.1f} s (opening alone {opened:.1f} s): {took.total:.1f} s, "
        f"{took.total / (opened + copied):.1f} x both; processor time {took.work:.1f} s, "
        f"{took.work / (opening_work + copying_work):.1f} x both (load {os.getloadavg()[0]:.1f})"
    )
    return took


def main() -> None:
    """Print seconds, ratios and memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000, help="reports that are counted")
    parser.add_argument(
        "--million", type=int, default=1_000_000, help="reports whose memory is compared to that of n"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sink", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sink:
        return sink()
    print(machine())
    rounds = [counted(options.n) for _ in range(options.repeats)]
    print(f"median {statistics.median(took.total for took in rounds):.1f} s")
    peaks = []
    for n in (options.n, options.million):
        with filled(noise, n) as (world, folder):
            took = hand_over(world, folder, [__file__, "--sink"])
        peaks.append(took.peak - took.base)
        print(
            f"  {n:9,} reports: {took.base / 1e6:.0f} MB after the start, {peaks[-1] / 1e6:.0f} MB more at the peak; "
            f"built in {took.build:.1f} s, sent in {took.hand_over:.1f} s"
        )
    growth = (peaks[1] - peaks[0]) / (options.million - options.n)
    print(f"{growth:.0f} bytes for each further report")


if __name__ == "__main__":
    main()
