"""The outbox under kill -9 at every step, under several processes, and on disk."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.collect.device.made import PERIOD, START, FakeClock, campaign, opened

from dovetail_device.client import Device
from dovetail_device.entropy import system_entropy as words
from dovetail_device.ledger import Limits
from dovetail_device.outbox import BudgetSpent, Outbox
from dovetail_device.sender import ACCEPTED, UNREACHABLE, DeliveryEvent
from dovetail_protocol import messages as message
from dovetail_protocol.errors import ConfigError, StorageError
from dovetail_protocol.keys import RoleKeys

CAMPAIGN = campaign(budget=2.0)  # two reports of epsilon 1
ROUNDS = (1, 2, 3)
KEYS = RoleKeys.generate("device")
assert KEYS.signing
NAME = KEYS.signing.verifying_key()
VALUES = ("red", "green", "blue", "other")


@dataclass
class Killer:
    """Kills this very process at the step of this number."""

    at: int
    step: int = 0

    def tick(self, *_: object) -> None:
        self.step += 1
        if self.step == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Wire:
    """A network that is a file; the first message of every process gets no answer."""

    path: Path
    killer: Killer
    answers: int = 0

    def trust(self, campaign: object) -> None:
        pass

    def send(self, wire: bytes) -> DeliveryEvent:
        self.killer.tick()
        with self.path.open("ab") as network:
            network.write(wire)
        self.killer.tick()
        self.answers += 1
        return UNREACHABLE if self.answers == 1 else ACCEPTED

    def fetch(self, campaign: str) -> bytes | None:
        return None

    def round(self, campaign: str) -> int | None:
        return None

    def close(self) -> None:
        pass


def in_child(work: Callable[[], None]) -> int:
    """Run in a process of its own; its wait status (0: done)."""
    return at_once([work])[0]


def at_once(works: list[Callable[[], None]]) -> list[int]:
    """Run all of them, each in a process of its own; their wait statuses."""
    children = []
    for work in works:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work()
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    return [os.waitpid(child, 0)[1] for child in children]


def live(folder: Path, life: int, kill_at: int) -> None:
    """One life of the device: a report for every round, then what waits; killed at a step."""
    killer = Killer(kill_at)
    clock = FakeClock(START + life * 1000 * PERIOD)
    connect = sqlite3.connect

    def traced(*given: object, **named: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)  # type: ignore[call-overload]
        connection.set_trace_callback(killer.tick)
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]
    outbox = Outbox.open(folder / "outbox", NAME)
    device = Device(
        CAMPAIGN, KEYS, outbox=outbox, transport=Wire(folder / "wire", killer), clock=clock, words=words()
    )
    for number in ROUNDS:
        clock.time += PERIOD  # beyond every back-off, so that what waits goes first
        try:
            device.submit(VALUES[life], number)
        except BudgetSpent:
            assert number == ROUNDS[-1]
        else:
            assert number != ROUNDS[-1]
    for _ in range(2):
        clock.time += (life + 1) * 10 * PERIOD
        device.flush()


def lives(folder: Path, kill_at: int) -> int:
    """Lives of one device, each with another value, until one ends by itself; how many were killed, at most two."""
    folder.mkdir()
    for life in range(3):
        status = in_child(lambda life=life: live(folder, life, kill_at if life < 2 else 0))
        if status == 0:
            return life
        assert os.WTERMSIG(status) == signal.SIGKILL
    raise AssertionError("a device that nobody kills must end")


def wires(folder: Path) -> dict[int, set[bytes]]:
    """What the network saw, by round."""
    size, seen = message.wire_bytes(CAMPAIGN), defaultdict(set)
    data = (folder / "wire").read_bytes()
    assert len(data) % size == 0
    for start in range(0, len(data), size):
        wire = data[start : start + size]
        seen[message.read_head(wire).round].add(wire)
    return dict(seen)


def check(folder: Path) -> None:
    """The invariants: one report per round, the same bytes always, everything arrived, the budget kept."""
    seen = wires(folder)
    assert {number: len(found) for number, found in seen.items()} == {1: 1, 2: 1}
    for found in seen.values():
        opened(CAMPAIGN, *found)
    outbox = Outbox.open(folder / "outbox", NAME)
    (ledger,) = outbox.ledgers()
    spent = outbox.spending()
    outbox.close()
    assert (spent.spent, spent.questions) == (2.0, {"which colour": 2.0})
    assert (ledger.spent, ledger.counts, ledger.waiting) == (2.0, {"accepted": 2}, ())


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a killed process loses nothing there either, and fsync is quick."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.parametrize("stride", [20, pytest.param(1, marks=pytest.mark.exhaust)])
def test_kill_9_at_every_step_leaves_one_report_per_round_and_the_budget_kept(memory: Path, stride: int) -> None:
    step, killed = 1 - stride, 1
    while killed:
        step += stride
        killed = lives(memory / str(step), step)
        check(memory / str(step))
    assert step > 60  # the last one is beyond the last statement of a life without kills


def test_the_check_catches_a_device_that_seals_again_before_every_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Outbox.seal

    def forgetful(self: Outbox, *given: object, **named: object) -> object:
        self._connection.execute("UPDATE report SET digest = x''")
        return whole(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Outbox, "seal", forgetful)
    monkeypatch.setattr(
        Device, "_send", lambda self, entry: (entry := self._seal(entry), self._transport.send(entry.wire))
    )
    lives(tmp_path / "broken", 0)
    with pytest.raises(AssertionError):
        check(tmp_path / "broken")


@pytest.mark.exhaust
def test_processes_that_share_an_outbox_draw_each_round_once(tmp_path: Path) -> None:
    shared = campaign(budget=20.0)

    def work(value: str) -> None:
        clock, outbox = FakeClock(), Outbox.open(tmp_path / "outbox", NAME)
        outbox.limit(Limits(20.0, 20.0))
        device = Device(
            shared, KEYS, outbox=outbox, transport=Wire(tmp_path / "wire", Killer(0)), clock=clock, words=words()
        )
        for number in range(1, 11):
            while device.submit(value, number).state == "waiting":  # this round's report, or one before it
                clock.time += PERIOD

    assert at_once([lambda value=value: work(value) for value in VALUES]) == [0] * len(VALUES)
    assert {number: len(found) for number, found in wires(tmp_path).items()} == dict.fromkeys(range(1, 11), 1)


@pytest.mark.exhaust
def test_processes_that_make_an_outbox_at_once_all_get_it(memory: Path) -> None:
    for trial in range(10):
        place = memory / f"outbox{trial}"
        assert at_once([lambda place=place: Outbox.open(place, NAME).close()] * 8) == [0] * 8


def test_the_outbox_is_durable_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        outbox = Outbox.open(tmp_path / "outbox", NAME)
        outbox.adopt(CAMPAIGN)
        files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    names = ("journal_mode", "synchronous", "secure_delete")
    pragmas = [outbox._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    outbox.close()
    assert pragmas == ["truncate", 2, 1]
    assert files == dict.fromkeys(("outbox", "outbox-journal"), 0o600)
    (tmp_path / "outbox").chmod(0o644)
    Outbox.open(tmp_path / "outbox", NAME).close()
    assert stat.S_IMODE((tmp_path / "outbox").stat().st_mode) == 0o600


def left_by_a_killed_process(folder: Path, work: Callable[[Outbox], None]) -> bytes:
    """Whatever the files of an outbox hold after its process did this and was killed."""
    child = os.fork()
    if child == 0:
        try:
            work(Outbox.open(folder / "outbox", NAME))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


@pytest.mark.parametrize("before", ["nothing", "a write-ahead log"])
def test_what_has_arrived_cannot_be_read_from_the_files_of_a_killed_process(memory: Path, before: str) -> None:
    """Nor of one that runs: the outbox stands alone, whatever SQLite keeps beside it."""
    secrets = [os.urandom(32) for _ in range(2)]
    folder = memory / "device"
    folder.mkdir()

    def draw(outbox: Outbox) -> None:
        if before != "nothing":  # as earlier versions left it
            assert outbox._connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        outbox.adopt(CAMPAIGN)
        entry = outbox.draw(CAMPAIGN, 1, budget=2.0, make=lambda: secrets[0])
        assert secrets[0] not in repr(entry).encode()
        outbox.seal(CAMPAIGN, 1, lambda _: secrets[1])

    def settle(outbox: Outbox) -> None:
        outbox.settle(outbox.waiting(CAMPAIGN.id)[0])

    assert all(secret in left_by_a_killed_process(folder, draw) for secret in secrets), "it waits"
    left = left_by_a_killed_process(folder, settle)
    assert left and not any(secret in left for secret in secrets)


def test_an_acceptance_outlives_refusals_and_the_first_refusal_others() -> None:
    outbox = Outbox.in_memory(NAME)
    outbox.adopt(CAMPAIGN)
    first = outbox.draw(CAMPAIGN, 1, budget=2.0, make=lambda: b"x")
    assert outbox.settle(first, "late").reason == outbox.settle(first, "seal").reason == "late"
    assert [outbox.settle(first, refusal).state for refusal in ("", "late")] == ["accepted"] * 2


@pytest.mark.parametrize(
    "content", [b"not a database, though long enough to look like a file of some kind", b"\0" * 99]
)
def test_a_damaged_outbox_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "outbox").write_bytes(content)
    with pytest.raises(StorageError, match=r"the outbox .* cannot be used .* nothing was sent\.$"):
        Outbox.open(tmp_path / "outbox", NAME)


@pytest.mark.parametrize("version", [4, 7])
def test_an_outbox_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    with sqlite3.connect(tmp_path / "outbox") as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(ConfigError, match="another version"):
        Outbox.open(tmp_path / "outbox", NAME)


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        Outbox.open(tmp_path / "absent" / "outbox", NAME)
    with pytest.raises(StorageError, match="cannot be opened"):
        Outbox.open(tmp_path, NAME)


def test_a_full_disk_sends_nothing_and_charges_nothing(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path / "outbox", NAME)
    outbox.adopt(CAMPAIGN)
    outbox._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = outbox._connection.execute("PRAGMA page_count").fetchone()[0]
    outbox._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError, match="full"):
        outbox.draw(CAMPAIGN, 1, budget=2.0, make=lambda: bytes(1 << 20))
    assert outbox.find(CAMPAIGN.id, 1) is None and outbox.ledgers()[0].spent == 0.0
    outbox.close()
