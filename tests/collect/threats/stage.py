"""A whole collection with real processes on loopback, all that is planted in it, and all that can be seized."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from tests.collect import servers
from tests.waiting import PATIENCE, until

from dovetail.collect.batch import PREFIX, Header, entry_bytes, head_bytes
from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.collect.files import save_keys
from dovetail.collect.shuffler.campaigns import owner_request
from dovetail_device.entropy import system_entropy
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.keys import RoleKeys, SigningKey, text
from dovetail_protocol.messages import plain, seal

_PAGE = os.sysconf("SC_PAGE_SIZE")
ADDRESS = "127.83.71.59"  # where devices send from: nobody else on loopback does
CLIENT, TOPIC = "canaryclientid", "canary-topic"
HEADERS = {
    "User-Agent": "canary-agent/7.3",
    "X-Forwarded-For": "198.51.100.77",
    "Forwarded": "for=198.51.100.77",
    "X-Device-Id": "canary-device",
    "Date": "Tue, 07 Feb 1989 03:14:15 GMT",  # the device's clock
    "X-Value": "canary-value",
    "Cookie": "session=canary-cookie",
    "Referer": "http://canary.example/",
}
# of whoever asks the analyzer itself, and no device: a freed buffer of such a request may stay in its memory
ASKING = {"User-Agent": "canary-asker/1.0", "Referer": "http://canary-asker.example/"}
CANARIES = tuple(
    word.encode()
    for word in (
        *(ADDRESS, CLIENT, TOPIC, "canary", "198.51.100.77", "07 Feb 1989", "03:14:15"),
        *("602824455", bytes([127, 83, 71, 59]).hex()),  # the clock in seconds, the address in hex
    )
)

CAMPAIGN = """
schema_version = 1
id = "{id}"
question = "Which of these have you seen?"
[randomizer]
name = "unary"
k = 800
epsilon = 0.5
[rounds]
schedule = "manual"
count = 9
[batch]
minimum = 40
[shuffle]
[promise]
delta = 1e-6
device_budget = 100.0
[keys]
owner = "{owner}"
analyzer = "{analyzer}"
shuffler = "{shuffler}"
shuffler_signing = "{signing}"
"""
TOKEN = "open-sesame"


@dataclass
class Server:
    """One role as a process of its own, started by its verb; what it says goes to `log`."""

    role: str
    folder: Path
    process: subprocess.Popen[bytes] = field(init=False)
    url: str = ""

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def launch(self) -> None:
        """Start it; `wait` says where it listens."""
        command = [sys.executable, "-m", "dovetail", "collect", self.role, str(self.folder / f"{self.role}.toml")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)

    def wait(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line.startswith(f"{self.role} at "), self.log.read_text()
        self.url = line.split()[-1]
        ready = partial(httpx.get, f"{self.url}/readyz", timeout=PATIENCE)
        until(lambda: ready().status_code == 200, httpx.HTTPError, alive=lambda: self.process.poll() is None)

    def stop(self) -> int:
        """Its exit status after SIGTERM."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()

    def files(self, *without: str) -> dict[str, bytes]:
        """Every file that the role keeps, by its name; but for its own configuration and keys."""
        skipped = {f"{self.role}.toml", f"{self.role}.key", "campaign.toml", "roster.csv", "tokens", *without}
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name not in skipped
        }

    def memory(self) -> bytes:
        """What its memory holds now."""
        return memory_of(self.process.pid)

    def resident(self) -> int:
        """Bytes of memory that it holds."""
        pages = int((Path("/proc") / str(self.process.pid) / "statm").read_text().split()[1])
        return pages * _PAGE


@dataclass
class Tap:
    """The wire between shuffler and analyzer: hands on what comes, and keeps a copy."""

    analyzer: str = ""
    batches: list[bytes] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)  # what the analyzer said of batches it never takes

    def serve(self) -> ThreadingHTTPServer:
        tap = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                tap.batches.append(body)
                answer = httpx.post(f"{tap.analyzer}{self.path}", content=body, timeout=PATIENCE)
                if 400 <= answer.status_code < 500:
                    tap.refused.append(answer.content)
                self.send_response(answer.status_code)
                self.send_header("Content-Type", answer.headers["content-type"])
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


@dataclass(frozen=True)
class Sent:
    """One device's message with everything that nobody else should know of it."""

    device: SigningKey = field(repr=False)
    report: bytes = field(repr=False)  # as the analyzer opens it
    wire: bytes = field(repr=False)


@dataclass
class Stage:
    """Shuffler, analyzer, and a broker where one is installed."""

    folder: Path
    campaign: Campaign
    owner: RoleKeys
    devices: Sequence[SigningKey] = field(repr=False)
    shuffler: Server
    analyzer: Server
    tap: Tap
    broker: servers.Mosquitto | None

    def message(self, place: int, *, round: int = 1) -> Sent:
        """A fresh report of device `place`."""
        return make(self.campaign, self.devices[place], round=round)

    def close(self, round: int) -> None:
        """The owner closes a round; returns when the analyzer has counted it."""
        assert self.owner.signing
        place = f"{self.shuffler.url}/v1/campaigns/{self.campaign.id}/rounds/{round}/close"
        challenge = bytes.fromhex(httpx.get(place, timeout=PATIENCE).json()["challenge"])
        request = owner_request("close", self.owner.signing, self.campaign.digest, round, challenge)
        assert httpx.post(place, content=request, timeout=PATIENCE).status_code == 200
        known = len(self.tap.refused)
        until(lambda: self.state(round) == "delivered", alive=lambda: self.runs() and len(self.tap.refused) == known)

    def runs(self) -> bool:
        """Whether both roles still do."""
        return self.shuffler.process.poll() is None and self.analyzer.process.poll() is None

    def state(self, round: int) -> str:
        rows = self._look(f"SELECT state FROM round WHERE number = {round}")
        return str(rows[0][0]) if rows else "unopened"

    def refused(self) -> dict[str, int]:
        """Exact counts of refused messages, by kind, as far as the shuffler has saved them."""
        return dict(self._look("SELECT kind, total FROM fault"))

    def waiting(self, round: int) -> int:
        """Reports in a round that takes reports."""
        rows = self._look(f"SELECT total FROM round WHERE number = {round}")
        return int(rows[0][0]) if rows else 0

    def _look(self, statement: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self.shuffler.folder / "shuffler.sqlite")) as base:
            return base.execute(statement).fetchall()

    def ask(self, path: str) -> bytes:
        """What the analyzer answers to a subscriber."""
        answer = httpx.get(self.analyzer.url + path, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE)
        assert answer.status_code == 200, (path, answer.text)
        return answer.content


def make(campaign: Campaign, key: SigningKey, *, round: int = 1, id: bytes | None = None) -> Sent:
    """A message as a device makes it."""
    kind = campaign.mechanism
    report = kind.encode(kind.randomize(int.from_bytes(os.urandom(2)) % kind.k, system_entropy()))  # type: ignore[attr-defined]
    return Sent(key, report, seal(campaign, round, plain(campaign, report), key, id))


def entries(campaign: Campaign, batch: bytes) -> tuple[Header, list[bytes]]:
    """Header and sealed reports of a batch as it was handed over."""
    length = head_bytes(batch[:PREFIX])
    size, body = entry_bytes(campaign), batch[length:]
    found = [body[start : start + size] for start in range(0, len(body), size)]
    return Header.read(batch[:length], campaign.shuffler_signing), found


def spellings(secret: bytes) -> list[bytes]:
    """The ways in which bytes are written down."""
    written = (secret.hex(), secret.hex().upper(), text(secret), base64.b64encode(secret).rstrip(b"=").decode())
    return [secret, *(word.encode() for word in dict.fromkeys(written))]


def memory_of(process: int) -> bytes:
    """What the memory of a process holds now, as the superuser reads it; PermissionError where nobody may."""
    held, place = [], Path("/proc") / str(process)
    with (place / "mem").open("rb", buffering=0) as memory:
        for line in (place / "maps").read_text().splitlines():
            region = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if region:
                start, end = (int(part, 16) for part in region.groups())
                with contextlib.suppress(OSError):  # mapped, and not readable
                    memory.seek(start)
                    held.append(_written(memory.read(end - start)))
    return b"\n".join(held)


def _written(region: bytes) -> bytes:
    """A region without the pages that hold nothing but zeros."""
    whole = np.frombuffer(region, dtype=np.uint64).reshape(-1, _PAGE // 8)
    return whole[whole.any(axis=1)].tobytes()


def found(needles: Sequence[bytes], kept: dict[str, bytes]) -> list[str]:
    """Where one of these stands: the name of what holds it, once for each needle."""
    return [name for name, data in kept.items() for _ in _held(needles, data)]


def _held(needles: Sequence[bytes], data: bytes) -> set[bytes]:
    """Those of these (of four bytes and more) that stand in the data, which is passed over once for all of them."""
    by_head: dict[bytes, set[bytes]] = {}
    for needle in needles:
        by_head.setdefault(needle[:4], set()).add(needle)
    begins = np.zeros(1 << 16, dtype=bool)
    begins[[int.from_bytes(head[:2], "little") for head in by_head]] = True
    held: set[bytes] = set()
    for shift in range(min(2, len(data))):
        pairs = np.frombuffer(data, dtype="<u2", offset=shift, count=(len(data) - shift) // 2)
        for place in (2 * np.flatnonzero(begins[pairs]) + shift).tolist():
            for needle in by_head.get(data[place : place + 4], ()):
                if data.startswith(needle, place):
                    held.add(needle)
    return held


@contextlib.contextmanager
def stage(folder: Path, *, devices: int) -> Iterator[Stage]:
    """Everything started; stopped at the end."""
    owner, shuffler, analyzer = (RoleKeys.generate(role) for role in ("owner", "shuffler", "analyzer"))
    assert owner.signing and shuffler.opening and shuffler.signing and analyzer.opening
    body = CAMPAIGN.format(
        id="sightings", owner=owner.signing.verifying_key(), analyzer=analyzer.opening.sealing_key(),
        shuffler=shuffler.opening.sealing_key(), signing=shuffler.signing.verifying_key(),
    )  # fmt: skip
    campaign = Campaign.parse(sign(body.encode(), owner.signing))
    people = [SigningKey.generate() for _ in range(devices)]
    made = Stage(
        folder, campaign, owner, people, Server("shuffler", folder / "shuffler"),
        Server("analyzer", folder / "analyzer"), Tap(), None,
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(servers.Absent):
            made.broker = stack.enter_context(servers.mosquitto())
        tap = made.tap.serve()
        stack.callback(tap.server_close)
        stack.callback(tap.shutdown)
        for server, keys in ((made.analyzer, analyzer), (made.shuffler, shuffler)):
            server.folder.mkdir()
            save_keys(keys, server.folder / f"{server.role}.key")
            (server.folder / "campaign.toml").write_bytes(campaign.signed)
        roster = Roster(
            [RosterEntry(key.verifying_key(), slot, slot == devices - 1) for slot, key in enumerate(people)]
        )
        roster.save(made.shuffler.folder / "roster.csv")
        (made.analyzer.folder / "tokens").write_text(f"{sha256(TOKEN.encode()).hexdigest()} test\n")
        common = 'schema_version = 1\ncampaigns = ["campaign.toml"]\nlisten = "127.0.0.1:0"\n'
        (made.analyzer.folder / "analyzer.toml").write_text(
            common + 'keys = "analyzer.key"\ntokens = "tokens"\npublic_page = true\n'
        )
        place = f"http://127.0.0.1:{tap.server_address[1]}"
        mqtt = f'[mqtt]\nurl = "{made.broker.url}"\n' if made.broker else ""
        (made.shuffler.folder / "shuffler.toml").write_text(
            f'{common}keys = "shuffler.key"\nroster = "roster.csv"\nanalyzer = "{place}"\n{mqtt}'
        )
        for server in (made.analyzer, made.shuffler):
            server.launch()
            stack.callback(server.stop)
        for server in (made.analyzer, made.shuffler):
            server.wait()
        made.tap.analyzer = made.analyzer.url
        yield made


def installed(name: str) -> str | None:
    """The path of a program, if there is one."""
    return shutil.which(name)
