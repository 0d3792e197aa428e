"""A full disk: reports get 503, `/readyz` says so as long as they would, and everything goes on when there is room.

On a small file system of its own where this user may mount one; otherwise an error of the system call stands for it.
"""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.collect.analyzer import world as analysis
from tests.collect.analyzer.test_app import Client
from tests.collect.shuffler.served import served
from tests.collect.shuffler.test_app import post
from tests.collect.shuffler.world import BEGIN, DEVICES, PERIOD, World, campaign, message

from dovetail.collect.analyzer.app import analyzer_app
from dovetail.collect.analyzer.tokens import Tokens
from dovetail.core.errors import StorageError

SIZE = 8  # MiB


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, *, leave: int = 0) -> Path:
    """Nothing is left but `leave` bytes."""
    ballast = folder / "ballast"
    descriptor = os.open(ballast, os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while os.write(descriptor, bytes(4096)):
            pass
    if leave:
        os.truncate(descriptor, os.fstat(descriptor).st_size - leave)
    os.close(descriptor)
    return ballast


@pytest.mark.exhaust
@pytest.mark.parametrize("leave", [0, 256 * 1024])
def test_reports_get_503_and_readiness_fails_until_there_is_room(small_disk: Path, leave: int) -> None:
    world = World(campaign(minimum=2), folder=small_disk)
    crowd = [message(world.campaign, device) for device in DEVICES[1:]]
    with served(world) as client:
        assert client.get("/readyz").status_code == 200
        one = message(world.campaign, DEVICES[0])
        assert client.post("/v1/reports", content=one).status_code == 202
        ballast = fill(small_disk, leave=leave)
        grow(world)
        told = [answer.status_code for answer in post(client, *crowd)]
        assert set(told) <= {202, 503} and told[-1] == 503
        assert [client.get("/readyz").status_code for _ in range(3)] == [503] * 3
        assert "dovetail_ready 0.0" in client.get("/metrics").text
        ballast.unlink()
        assert client.get("/readyz").json() == {"status": "ready"}
        assert {answer.status_code for answer in post(client, *crowd)} == {202}
    assert world.store.rounds("commute")[0].count == len(DEVICES)


def grow(world: World) -> None:
    """Nothing is left to write over in the database or its log."""
    world.store._database.forget()


def test_a_small_write_that_still_finds_room_does_not_call_the_store_ready(small_disk: Path) -> None:
    world = World(campaign(minimum=2), folder=small_disk)
    world.send(0)
    grow(world)
    fill(small_disk, leave=512 * 1024)
    database = world.store._database
    large = "INSERT INTO shuffler_probe VALUES (1, zeroblob(4000000))"
    with pytest.raises(StorageError, match="the disk is full"):
        database.write(lambda connection: connection.exec_driver_sql(large))
    assert database._failing
    world.shuffler.counters.count("commute", "late")
    world.shuffler.turn(world.clock.now())  # it can write its counters
    assert world.store.faults("commute") == {"late": 1}
    assert not world.store.ready()


def test_a_vault_on_a_full_disk_is_not_ready_and_recovers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = World(campaign(minimum=1), folder=tmp_path)
    with served(world) as client:
        real = os.fsync

        def full(descriptor: int) -> None:
            if Path(f"/proc/self/fd/{descriptor}").resolve().parent.name == "vault":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(descriptor)

        report = message(world.campaign, DEVICES[0], round=2)
        world.clock.advance(PERIOD)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            assert client.post("/v1/reports", content=report).status_code == 503
            assert client.get("/readyz").status_code == 503
        assert not [path.name for path in (tmp_path / "vault").iterdir() if path.name.startswith(".")]
        assert client.get("/readyz").status_code == 200
        assert client.post("/v1/reports", content=report).status_code == 202
    assert world.clock.now() == BEGIN + PERIOD


def test_a_batch_that_cannot_be_spooled_gets_503_and_is_counted_when_it_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = analysis.campaign(minimum=3)
    world = analysis.World((asked,))
    good = analysis.batch(asked, analysis.seal(asked, [0, 1, 2], round=1))
    client = Client(analyzer_app(world.analyzer, tokens=Tokens(())))

    class Full:
        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None: ...

        def write(self, _: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(world.analyzer, "spool", Full)
        assert client.post("/v1/batches", content=good).status_code == 503
        assert client.get("/readyz").status_code == 503
    assert client.get("/readyz").status_code == 200
    assert client.post("/v1/batches", content=good).json()["state"] == "counted"
