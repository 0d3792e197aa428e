"""A device that is killed at every statement of its life, with issuer and shuffler: one token, one report, no more.

Each life runs in a forked process that dies, by SIGKILL, right before its n-th statement in any of the three
databases, for every n until it comes to its end; another process then goes on with the same files. A tap that holds
every secret key keeps what passes by. Failure: a token or a report that is lost, doubled or stuck.
"""

from __future__ import annotations

import os
import signal
import tempfile
import traceback
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import event
from tests.collect.issuer.world import TokenWorld, with_tokens
from tests.collect.shuffler.world import ANALYZER, SHUFFLER

from dovetail.collect.store.issuer_store import open_issuer_store
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.messages import Envelope, inner_info, open_envelope, wire_bytes

MOST, SHARES = 400, 8  # statements of one life at most; tests that share them
DEVICE = RoleKeys.generate("device")


def life(folder: Path, statement: int | None) -> None:
    """Fetch the token, report, close and release the round; die before this statement."""
    left = [MOST if statement is None else statement]

    def count_down(*_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    world = TokenWorld(folder=folder, keys=[DEVICE], asked=with_tokens(minimum=1))
    bench = world.bench(path=folder / "outbox")
    tap(world, folder)
    for engine in (world.store._database.engine, world.world.store._database.engine):
        for moment in ("before_cursor_execute", "commit"):
            event.listen(engine, moment, count_down)
    bench.outbox._connection.set_trace_callback(count_down)
    bench.device.fetch_tokens(ahead=0)
    assert bench.device.submit(1).state == "accepted"
    world.world.to_round(2)


def tap(world: TokenWorld, folder: Path) -> None:
    """Keep every message and every batch in files, as whoever sits on both lines could."""
    send, analyzer, deliver = world.transport.send, world.world.analyzer, world.world.analyzer.send

    def sent(wire: bytes) -> object:
        (folder / f"wire-{sha256(wire).hexdigest()}").write_bytes(wire)
        return send(wire)

    def keep() -> None:
        for id, batch in analyzer.batches.items():
            (folder / f"batch-{id}").write_bytes(b"".join(batch.entries))

    def delivered(batch: str, header: bytes, parts: Iterator[bytes]) -> None:
        deliver(batch, header, parts)
        keep()

    keep()  # a shuffler that starts again delivers at once what it had built
    world.transport.send, analyzer.send = sent, delivered  # type: ignore[method-assign, assignment]


def ended(folder: Path, statement: int | None) -> bool:
    """Whether a forked process came to the end of its life, rather than be killed; its own fault is a failure."""
    child = os.fork()
    if child == 0:
        try:
            life(folder, statement)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, statement
    return not os.WIFSIGNALED(status)


def judge(folder: Path) -> Envelope:
    """What the tap opens: one token, one message, one entry of one batch, and they are one report."""
    asked = with_tokens(minimum=1)
    store = open_issuer_store(f"sqlite:///{folder / 'issuer.sqlite'}")
    assert store.counts() == {("commute", 1): 1}
    store.close()
    ((wire,), (entry,)) = ([path.read_bytes() for path in folder.glob(f"{kind}-*")] for kind in ("wire", "batch"))
    assert SHUFFLER.opening and ANALYZER.opening and len(wire) == wire_bytes(asked)
    envelope = open_envelope(asked, wire, SHUFFLER.opening.opener())
    assert entry == envelope.inner
    assert ANALYZER.opening.opener().open(entry, inner_info(asked, 1)) is not None
    return envelope


@pytest.mark.exhaust
@pytest.mark.parametrize("share", range(SHARES))
def test_nothing_is_lost_doubled_or_stuck_wherever_a_life_with_tokens_is_killed(share: int) -> None:
    with_tokens(minimum=1)  # makes the keys of the rounds before anything is forked
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a kill loses nothing that a file has
    for statement in range(share, MOST, SHARES):
        with tempfile.TemporaryDirectory(dir=memory) as name:
            whole = ended(Path(name), statement)
            assert whole or ended(Path(name), None), statement
            assert judge(Path(name)).device != DEVICE.signing.verifying_key()  # type: ignore[union-attr]
        if whole:
            break
    assert 60 < statement < MOST - SHARES, "a life has as many statements as it always had"
