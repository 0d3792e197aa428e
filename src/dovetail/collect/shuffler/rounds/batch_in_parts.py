r"""A large batch in parts, each built and sent by itself: what a crash interrupts goes on at the part where it was.

The order of the whole batch is that of

.. math:: \mathrm{AES}_{key}(\text{first 16 bytes of a report's tag}),

and part i holds what stands at its places. Tags are distinct, so that the blocks are distinct and exchangeable: every
order of the whole batch is equally likely, up to the advantage against AES-256 as a permutation. Until the batch is
finished its secret lies beside it, sealed under the round's key: whoever goes on draws the same order, and parts that
stand are never built in another one. Whoever writes the database has no such secret, and parts are believed by it
only (`PartMacs`). The transaction that finishes the batch deletes it, then the round's key is erased: nobody can
compute the order any more, and what is sent again is bytes.

Dummies and the orders of order privacy are drawn once and kept nowhere, and the two entries of a device among people
who send dummies share a tag: such a batch is sent in parts, and built from its beginning after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.batch import MOST_PART, MOST_PARTS, Part, entry_bytes, list_parts
from dovetail.collect.campaign.added_dummies import added_dummies
from dovetail.collect.logs import Log
from dovetail.collect.shuffler.campaign_registry import ServedVersion
from dovetail.collect.shuffler.rounds import shuffled_batch
from dovetail.collect.shuffler.rounds.batch_dummies import BatchDummies
from dovetail.collect.shuffler.rounds.part_macs import PartMacs
from dovetail.collect.shuffler.rounds.shuffled_batch import Body, ClosedRound, Places, ReleasedOrder, sign_batch
from dovetail.collect.store.interfaces import OutgoingBatch, RoundRecord, ShufflerStore
from dovetail.core.entropy import Entropy
from dovetail.core.entropy.keyed import KEY_BYTES, encrypt_blocks, purpose_key
from dovetail.core.stages import Shuffler
from dovetail_protocol.campaign import Campaign

_LOG = Log("shuffler")
_TAG, _BLOCK = 32, 16  # bytes
_PAGE = 100_000  # tags read, or blocks encrypted, at once


@dataclass(frozen=True)
class TagArray(Sequence[tuple[int, bytes]]):
    """The tags of one round, 32 bytes each and nothing around them."""

    round: int
    tags: NDArray[np.uint8] = field(repr=False)  # (n, 32)

    @classmethod
    def scan(cls, closed: ClosedRound) -> TagArray:
        """All of them, ascending, page by page."""
        found, last = bytearray(), b""
        while page := closed.store.scan_tags(closed.round.campaign, closed.round.number, last, _PAGE):
            found += b"".join(page)
            last = page[-1]
        return cls(closed.round.number, np.frombuffer(found, dtype=np.uint8).reshape(-1, _TAG))

    def __len__(self) -> int:
        return len(self.tags)

    @overload
    def __getitem__(self, place: int) -> tuple[int, bytes]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[tuple[int, bytes]]: ...
    def __getitem__(self, place: int | slice) -> tuple[int, bytes] | Sequence[tuple[int, bytes]]:
        if isinstance(place, slice):
            return TagArray(self.round, self.tags[place])
        return self.round, self.tags[place].tobytes()


def keyed_order(secret: bytes, tags: NDArray[np.uint8]) -> Places:
    """The order (n,) of these tags (n, 32) under one secret.

    >>> keyed_order(bytes(32), np.arange(160, dtype=np.uint8).reshape(5, 32))
    array([3, 0, 1, 2, 4])
    """
    key, blocks = purpose_key(secret, "order"), np.empty((len(tags), 2), dtype=np.uint64)
    for start in range(0, len(tags), _PAGE):
        part = np.ascontiguousarray(tags[start : start + _PAGE, :_BLOCK])
        blocks[start : start + len(part)] = encrypt_blocks(key, part.view(np.uint64))
    return np.lexsort((blocks[:, 1], blocks[:, 0])).astype(np.int64, copy=False)


def half_built(store: ShufflerStore, round: RoundRecord) -> OutgoingBatch | None:
    """The batch of a round that can be built on, if there is one."""
    begun = (batch for batch in store.outgoing() if batch.id == round.batch and batch.state == "building")
    return next((batch for batch in begun if batch.secret), None)


def build_batch(
    closed: ClosedRound,
    version: ServedVersion,
    rounds: tuple[int, ...],
    *,
    id: str,
    shuffler: Shuffler | None,
    part_reports: int | None,
    rng: Entropy,
) -> OutgoingBatch | None:
    """As `shuffled_batch.build_batch`; in parts where the round has more than `part_reports` entries.

    A batch of this round that somebody has begun is built on, whatever `part_reports` says now.
    """
    begun = half_built(closed.store, closed.round)
    campaign, count = version.campaign, closed.round.count
    if begun is not None:
        return _build_on(closed, version, rounds, begun, part_size(campaign, count, part_reports or count))
    if part_reports is None or campaign.entries * count <= part_reports:
        return shuffled_batch.build_batch(closed, version, rounds, id=id, shuffler=shuffler, rng=rng)
    law = added_dummies(campaign)
    most = campaign.entries * count + (0 if law is None else 2 * law.k * law.reach)  # entries
    size = part_size(campaign, most, part_reports)
    if shuffler is not None or law is not None or campaign.entries > 1:
        write = partial(_write_parts, size=size, entry=entry_bytes(campaign), begun=[])
        return shuffled_batch.build_batch(closed, version, rounds, id=id, shuffler=shuffler, rng=rng, write=write)
    secret = rng.words(KEY_BYTES // 8).tobytes()
    sealed = closed.key.seal(secret, _beside(id))
    batch = OutgoingBatch(id, campaign.id, (closed.round.number,), count, b"", "building", sealed)
    if count < campaign.batch.minimum or not closed.store.begin_batch(batch):
        return None
    return _build_on(closed, version, rounds, batch, size)


def part_size(campaign: Campaign, count: int, asked: int) -> int:
    """How many reports each part holds: what was asked for, within what a manifest lists and a part may weigh."""
    return min(max(asked, -(-count // MOST_PARTS)), max(1, MOST_PART // entry_bytes(campaign)))


def _build_on(
    closed: ClosedRound, version: ServedVersion, rounds: tuple[int, ...], batch: OutgoingBatch, size: int
) -> OutgoingBatch | None:
    """From the first part that is not there yet; parts that are there say how large the others are."""
    store, entry = closed.store, entry_bytes(version.campaign)
    secret, tags = closed.key.open(batch.secret, _beside(batch.id)), TagArray.scan(closed)
    if not closed.now().count == len(tags) == batch.count:  # another replica has merged more reports into it
        store.abandon_batch(batch.id)
        return None
    macs = PartMacs.of(batch.id, secret, tags.tags)
    begun = macs.standing(store, entry)
    # a database that was damaged, or that somebody else writes; nothing of the batch has left
    if begun is None or len(tags) < version.campaign.batch.minimum:
        _LOG.warning("half built batch is not what was built", campaign=batch.campaign, batch=batch.id)
        store.abandon_batch(batch.id)
        return None
    if begun:
        _LOG.info("half built batch goes on", campaign=batch.campaign, batch=batch.id, count=len(begun))
    released = ReleasedOrder(keyed_order(secret, tags.tags), None)
    none = BatchDummies(version.campaign, closed.round.number, None, np.zeros(0, dtype=np.int64))
    rest = shuffled_batch.entries(closed, tags, released, none, begin=sum(part.count for part in begun))
    if begun:
        size = begun[0].count
    body = _write_parts(store, batch.id, rest, size=size, entry=entry, begun=begun, macs=macs)
    dropped, stated = {"superseded": closed.round.superseded}, closed.stated_classes(version.campaign, tags)
    return sign_batch(batch, version, rounds, body, dropped, len(tags), **stated)


def _write_parts(
    store: ShufflerStore,
    batch: str,
    found: Iterator[bytes],
    *,
    size: int,
    entry: int,
    begun: list[Part],
    macs: PartMacs | None = None,
) -> Body:
    """Keep a body in parts of so many entries, after those that were begun; without `macs` nobody builds on them."""
    parts, begin = list(begun), sum(part.count for part in begun)
    while part := b"".join(islice(found, size)):
        store.add_part(batch, len(parts), part, b"" if macs is None else macs.code(len(parts), begin, part))
        parts.append(Part.of(part, entry))
        begin += parts[-1].count
    listed = list_parts(parts)
    return Body(sha256(listed).hexdigest(), len(parts), listed)


def _beside(batch: str) -> bytes:
    """What the secret of a batch is sealed beside; no tag is so long."""
    return b"dovetail order of batch v1\0" + batch.encode()
