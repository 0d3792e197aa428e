"""Batches in parts at the analyzer: what is kept, what is refused, and what counts, once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from typing import Any

import httpx
import pytest
from tests.collect.analyzer import world as analysis
from tests.collect.analyzer.test_app import TOKENS, Client, problem
from tests.collect.analyzer.world import World, batch, campaign, seal
from tests.waiting import PATIENCE, until

from dovetail.collect.analyzer import batch_intake as arriving_parts
from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.app import analyzer_app
from dovetail.collect.analyzer.batch_intake import Manifest
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.batch import PREFIX, Header, Part, entry_bytes, head_bytes, list_parts
from dovetail.collect.http import Refusal
from dovetail.core.errors import StorageError
from dovetail_protocol.messages import Rejected

ASKED = campaign(minimum=3)
SEALED = seal(ASKED, [0, 1, 2, 3, 3, 0, 1], round=1)
ENTRY = entry_bytes(ASKED)
ID = "ab" * 16


def cut(sealed: Sequence[bytes], size: int) -> list[bytes]:
    """Bodies of parts of so many entries."""
    return [b"".join(sealed[start : start + size]) for start in range(0, len(sealed), size)]


def manifest(
    bodies: Sequence[bytes], *, listed: bytes | None = None, signing: Any = analysis.SHUFFLER.signing, **changes: Any
) -> bytes:
    """As the shuffler signs it; `changes` are made to its header before."""
    parts = [Part.of(body, ENTRY) for body in bodies]
    found = list_parts(parts) if listed is None else listed
    header = Header(
        ASKED.id, ASKED.digest.hex(), ID, (1,), sum(part.count for part in parts), sha256(found).hexdigest(), {},
        parts=len(parts),
    )  # fmt: skip
    return bytes(replace(header, **changes).sign(signing)) + found


BODIES = cut(SEALED, 3)
GOOD = manifest(BODIES)


@pytest.fixture
def one() -> World:
    return World((ASKED,))


def offer(one: World, wire: bytes = GOOD) -> list[int]:
    return one.analyzer.offer(Manifest.read(wire, one.analyzer.campaigns))


def test_a_batch_in_parts_is_counted_as_the_same_batch_in_one_piece(one: World) -> None:
    whole = World((ASKED,))
    whole.analyzer.receive(batch(ASKED, SEALED, id=ID))
    assert offer(one) == [0, 1, 2]
    for number in (2, 0, 1):
        one.analyzer.parts.keep(ID, number, BODIES[number])
    assert one.store.batches("commute") == []
    assert offer(one) == []
    assert one.store.batches("commute") == whole.store.batches("commute")
    assert one.store.tallies("commute", ID) == whole.store.tallies("commute", ID)


def test_parts_and_manifests_that_come_again_change_nothing(one: World) -> None:
    offer(one)
    for number in (0, 1, 0, 1, 1):
        one.analyzer.parts.keep(ID, number, BODIES[number])
    assert offer(one) == offer(one) == [2]
    one.analyzer.parts.keep(ID, 2, BODIES[2])
    assert offer(one) == offer(one) == []
    assert one.store.batches("commute")[0].n == 7 and len(one.store.batches("commute")) == 1
    assert one.store.arrived(ID) == [] and one.store.manifest(ID) is None
    with pytest.raises(Refusal, match="no such part"):
        one.analyzer.parts.keep(ID, 0, BODIES[0])


def test_what_has_arrived_is_there_after_a_restart_and_at_every_analyzer_on_the_store(one: World) -> None:
    offer(one)
    one.analyzer.parts.keep(ID, 1, BODIES[1])
    campaigns = AnalyzerCampaigns.of((ASKED,), (analysis.ANALYZER,))
    other = Analyzer(campaigns, store=one.store, clock=one.clock)
    other.parts.keep(ID, 0, BODIES[0])
    assert other.offer(Manifest.read(GOOD, campaigns)) == [2] == offer(one)


@pytest.mark.parametrize(
    ("number", "body", "kind"),
    [
        (0, BODIES[1], "signature"),
        (0, BODIES[0][:-1] + bytes([BODIES[0][-1] ^ 1]), "signature"),
        (0, BODIES[0][ENTRY:] + BODIES[0][:ENTRY], "signature"),
        (0, BODIES[0][:-1], "malformed"),
        (0, BODIES[0] + b"x", "malformed"),
        (2, BODIES[0], "malformed"),
        (3, BODIES[0], "not_found"),
    ],
)
def test_a_part_that_is_not_the_one_in_the_manifest_is_refused_and_not_kept(
    one: World, number: int, body: bytes, kind: str
) -> None:
    offer(one)
    with pytest.raises((Rejected, Refusal)) as told:
        one.analyzer.parts.keep(ID, number, body)
    assert getattr(told.value, "kind", None) == kind and one.store.arrived(ID) == []


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        (manifest(BODIES, signing=analysis.OWNER.signing), "signature"),
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "signature"),
        (GOOD[:-1], "malformed"),
        (GOOD + b"x", "malformed"),
        (batch(ASKED, SEALED), "version"),
        (manifest(BODIES, count=8), "malformed"),
        (manifest(BODIES, parts=2), "malformed"),
        (manifest([*BODIES, b""]), "malformed"),
        (manifest(BODIES, parts=None), "version"),
        (manifest(BODIES, parts=0), "malformed"),
        (manifest(BODIES, parts=True), "malformed"),
        (manifest(BODIES[:1], count=3, rounds=(1001,)), "round"),
        (manifest(cut(SEALED[:2], 1)), "content"),
        (manifest(BODIES, digest="0" * 64), "campaign"),
    ],
)
def test_a_manifest_that_is_not_right_is_refused_and_nothing_is_waited_for(
    one: World, wire: bytes, kind: str
) -> None:
    with pytest.raises(Rejected) as told:
        offer(one, wire)
    assert told.value.kind == kind and one.store.manifest(ID) is None


def test_a_manifest_is_refused_as_a_batch_of_one_piece_by_its_version(one: World) -> None:
    """What an analyzer that knows no parts says to it, and this one too."""
    with pytest.raises(Rejected, match="version 2 are not understood here, only 1") as told:
        one.analyzer.receive(GOOD + b"".join(BODIES))
    assert told.value.kind == "version"
    head = bytearray(GOOD[: head_bytes(GOOD[:PREFIX], 2)])
    head[4] = 1  # nor does it pass under the other version
    with pytest.raises(Rejected, match="holds something else"):
        one.analyzer.receive(bytes(head) + GOOD[len(head) :])


def test_a_part_too_heavy_for_memory_is_refused_with_its_manifest(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving_parts, "MOST_PART", 3 * ENTRY - 1)
    with pytest.raises(Rejected, match="at most"):
        offer(one)
    monkeypatch.setattr(arriving_parts, "MOST_PART", 3 * ENTRY)
    assert offer(one) == [0, 1, 2]


def test_another_manifest_under_the_same_name_is_refused(one: World) -> None:
    offer(one)
    with pytest.raises(Rejected, match="another manifest"):
        offer(one, manifest(cut(SEALED, 4)))
    assert offer(one) == [0, 1, 2]


def test_a_round_that_was_counted_is_not_waited_for_again(one: World) -> None:
    one.analyzer.receive(batch(ASKED, seal(ASKED, [1, 1, 1], round=1)))
    with pytest.raises(Rejected, match="counted already"):
        offer(one)
    assert one.store.manifest(ID) is None


def test_a_copy_in_another_part_is_found(one: World) -> None:
    bodies = cut([*SEALED, SEALED[0]], 3)
    wire = manifest(bodies)
    offer(one, wire)
    for number, body in enumerate(bodies):
        one.analyzer.parts.keep(ID, number, body)
    offer(one, wire)
    assert one.store.batches("commute")[0].rejected == {"copy": 1}


def test_a_part_that_the_store_has_damaged_is_asked_for_again_and_nothing_is_counted(one: World) -> None:
    offer(one)
    for number in range(2):
        one.analyzer.parts.keep(ID, number, BODIES[number])
    one.store.keep_part(ID, 2, bytes(len(BODIES[2])))
    with pytest.raises(StorageError, match=r"part 2 of the batch .* was damaged"):
        offer(one)
    assert one.store.batches("commute") == [] and offer(one) == [0, 1, 2]


def test_a_batch_that_never_came_whole_is_forgotten_after_the_retention_period(one: World) -> None:
    offer(one)
    one.analyzer.parts.keep(ID, 0, BODIES[0])
    one.clock.advance(29 * 86_400)
    one.analyzer.purge()
    assert offer(one) == [1, 2]
    one.clock.advance(2 * 86_400)
    one.analyzer.purge()
    with pytest.raises(Refusal, match="put its manifest first"):
        one.analyzer.parts.keep(ID, 1, BODIES[1])
    assert offer(one) == [0, 1, 2]


def test_while_a_batch_is_counted_others_who_ask_are_told_to_come_back(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(one)
    for number in range(3):
        one.analyzer.parts.keep(ID, number, BODIES[number])
    real, told = one.analyzer.count, list[str]()

    def meanwhile(arrived: Any) -> Any:
        with pytest.raises(Refusal, match="is being counted") as refused:
            offer(one)
        told.append(refused.value.kind)
        return real(arrived)

    monkeypatch.setattr(one.analyzer, "count", meanwhile)
    assert (offer(one), told) == ([], ["unavailable"])


def test_an_offer_that_comes_late_waits_for_nothing_of_a_batch_that_was_counted_meanwhile(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(one)
    for number in range(3):
        one.analyzer.parts.keep(ID, number, BODIES[number])
    real = one.analyzer.parts.missing

    def late(asked: Manifest, now: float) -> list[int]:
        with monkeypatch.context() as patched:
            patched.setattr(one.analyzer.parts, "missing", real)
            assert offer(one) == []  # by another request
        return real(asked, now)

    with monkeypatch.context() as patched:
        patched.setattr(one.analyzer.parts, "missing", late)
        assert offer(one) == []
    assert one.store.manifest(ID) is None and len(one.store.batches("commute")) == 1
    with pytest.raises(Refusal, match="no such part"):
        one.analyzer.parts.keep(ID, 0, BODIES[0])


def test_parts_of_a_batch_whose_round_was_counted_in_another_one_are_deleted_when_it_is_offered(one: World) -> None:
    other = manifest(cut(SEALED, 2), batch="cd" * 16)
    for wire, id, bodies in ((GOOD, ID, BODIES), (other, "cd" * 16, cut(SEALED, 2))):
        offer(one, wire)
        for number, body in enumerate(bodies):
            one.analyzer.parts.keep(id, number, body)
    assert offer(one) == [] and len(one.store.arrived("cd" * 16)) == 4
    with pytest.raises(Rejected, match="counted already"):
        offer(one, other)
    assert one.store.arrived("cd" * 16) == [] and one.store.manifest("cd" * 16) is None


@pytest.mark.parametrize("size", [1, ENTRY - 1, ENTRY, 2 * ENTRY + 1, 100 * ENTRY])
def test_a_stored_body_reads_like_a_file(one: World, size: int) -> None:
    offer(one)
    for number in range(3):
        one.analyzer.parts.keep(ID, number, BODIES[number])
    body = one.analyzer.parts.whole(Manifest.read(GOOD, one.analyzer.campaigns)).spool
    file = BytesIO(b"".join(SEALED))
    for _ in range(2):
        body.seek(0)
        file.seek(0)
        while read := file.read(size):
            assert body.read(size) == read
        assert body.read(size) == b""


@pytest.mark.parametrize(
    "id", ["%00", "a%00b", "%ff", "%ed%a0%80", "a", ID.upper(), ID + "ab", ID + "%20", "x" * 5000]
)
def test_what_is_no_id_of_a_batch_never_reaches_the_store(one: World, id: str) -> None:
    client = Client(analyzer_app(one.analyzer, tokens=TOKENS))
    one.store.close()
    for path, content in ((id, GOOD), (f"{id}/parts/0", BODIES[0])):
        assert problem(client.put(f"/v1/batches/{path}", content=content)) == ("not_found", 404)


def test_the_parts_of_a_batch_go_over_http(one: World) -> None:
    client = Client(analyzer_app(one.analyzer, tokens=TOKENS))

    def put(path: str, content: bytes) -> Any:
        return client.put(f"/v1/batches/{path}", content=content)

    assert problem(put(f"{ID}/parts/0", BODIES[0])) == ("not_found", 404)
    assert problem(put("cd" * 16, GOOD)) == ("malformed", 400)
    assert put(ID, GOOD).json() == {"batch": ID, "state": "incomplete", "missing": [0, 1, 2]}
    assert problem(put(f"{ID}/parts/0", BODIES[1])) == ("signature", 403)
    assert problem(put(f"{ID}/parts/0", BODIES[0] + b"x")) == ("too_large", 413)
    assert problem(put(f"{ID}/parts/3", b"")) == ("not_found", 404)
    assert problem(put(ID, GOOD[:-1])) == ("malformed", 400)
    for number in (0, 2, 2):
        assert put(f"{ID}/parts/{number}", BODIES[number]).json() == {"batch": ID, "part": number, "state": "kept"}
    assert put(ID, GOOD).json()["missing"] == [1]
    put(f"{ID}/parts/1", BODIES[1])
    assert put(ID, GOOD).json() == put(ID, GOOD).json() == {"batch": ID, "state": "counted"}
    assert 'batches_refused_total{kind="signature"} 1.0' in client.get("/metrics").text


def test_however_many_parts_come_at_once_one_of_them_is_in_memory(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, arrived, in_memory, seen = one.analyzer.parts.keep, list[bytes](), list[bytes](), list[int]()
    loops = list[asyncio.AbstractEventLoop]()

    class Spool(BytesIO):
        def write(self, piece: Any) -> int:
            arrived.extend([bytes(piece)] if piece else [])  # a stream ends with an empty one
            return super().write(piece)

        def read(self, size: int | None = -1) -> bytes:
            in_memory.append(super().read(size))
            seen.append(len(in_memory))
            return in_memory[-1]

    async def turn() -> None:
        """One of the loop, in which each request goes as far as it may."""

    def keep(batch: str, number: int, body: bytes) -> None:
        if len(seen) == 1:
            until(lambda: len(arrived) >= 12)
            for _ in range(100):
                asyncio.run_coroutine_threadsafe(turn(), loops[0]).result(PATIENCE)
        real(batch, number, body)
        in_memory.pop()

    async def everything() -> list[int]:
        loops.append(asyncio.get_running_loop())
        transport = httpx.ASGITransport(app=analyzer_app(one.analyzer, tokens=TOKENS))
        async with httpx.AsyncClient(transport=transport, base_url="http://analyzer") as client:
            asked = [client.put(f"/v1/batches/{ID}/parts/{i % 3}", content=BODIES[i % 3]) for i in range(12)]
            return [answer.status_code for answer in await asyncio.gather(*asked)]

    offer(one)
    monkeypatch.setattr(one.analyzer.parts, "keep", keep)
    monkeypatch.setattr(one.analyzer, "spool", lambda _: Spool())
    assert asyncio.run(everything()) == [200] * 12 and seen == [1] * 12
    assert offer(one) == []
