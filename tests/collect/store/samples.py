"""Reports and batches to fill stores with."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from dovetail.collect.store.interfaces import OutgoingBatch, SealedReport, ShufflerStore

BUSES = "buses"


def digest(*names: object) -> bytes:
    return sha256(repr(names).encode()).digest()


def report(
    device: int, *, round: int = 1, id: int | None = None, campaign: str = BUSES, size: int = 150
) -> SealedReport:
    """The report of a device; `id` names the report, by default one for each device and round."""
    tag = digest("tag", campaign, round, device)
    name = digest("id", campaign, round, device) if id is None else digest("id", id)
    return SealedReport(campaign, round, tag, name, sealed_of(tag, size))


def sealed_of(tag: bytes, size: int = 150) -> bytes:
    return (tag * (size // 32 + 1))[:size]


def fill(store: ShufflerStore, devices: Iterable[int], *, round: int = 1) -> list[SealedReport]:
    """Open the round and store one report of each device."""
    store.open_round(BUSES, round, now=60.0 * round)
    reports = [report(device, round=round) for device in devices]
    assert set(store.accept(reports)) <= {"new"}
    return reports


def outgoing(*rounds: int, id: str = "b1", count: int = 3) -> OutgoingBatch:
    return OutgoingBatch(id, BUSES, rounds, count, b"", "building")


def release(store: ShufflerStore, *rounds: int, id: str = "b1") -> None:
    """The whole way of a batch up to waiting for delivery."""
    assert store.begin_batch(outgoing(*rounds, id=id))
    for number, part in enumerate((b"first", b"second", b"third")):
        store.add_part(id, number, part)
    store.finish_batch(id, b"header")


def state(store: ShufflerStore, number: int) -> str:
    return {round.number: round.state for round in store.rounds(BUSES)}[number]


def count(store: ShufflerStore, number: int) -> int:
    return {round.number: round.count for round in store.rounds(BUSES)}[number]
