"""From a closed round to a batch: reports in released order, with nothing left of who sent them and when.

The order is a uniform permutation of the reports sorted by their tags, which are keyed digests; for order privacy it
is drawn by the campaign's shuffler over the public roster slots that are present. Reports are streamed from the
store; what is kept in memory is one tag and a number for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.batch import Header
from dovetail.collect.shuffler.campaign_registry import ServedVersion
from dovetail.collect.shuffler.link_key_store import RoundKey
from dovetail.collect.shuffler.rounds.batch_dummies import BatchDummies
from dovetail.collect.store.interfaces import OutgoingBatch, RoundRecord, SealedReport, ShufflerStore
from dovetail.core.entropy import Entropy
from dovetail.core.stages import Shuffler
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.wire.message import class_bytes, split

Places = NDArray[np.int64]  # (n,)
Tags = Sequence[tuple[int, bytes]]  # (round, tag)

_KEY, _SLOT = 32, 4
_PART = 1 << 20  # bytes of a part of the body
_CHUNK = 4096  # reports read at once


def pack(device: bytes, slot: int, inner: bytes, place: bytes = b"") -> bytes:
    """What is sealed under a round's key: sender, public slot, class if any, and what only the analyzer opens."""
    return device + slot.to_bytes(_SLOT, "big") + place + inner


def inner_of(campaign: Campaign, packed: bytes) -> bytes:
    """What only the analyzer opens, of a packed report."""
    return packed[_KEY + _SLOT + class_bytes(campaign) :]


@dataclass(frozen=True)
class ClosedRound:
    """A closed round on its way out, with the key that opens its links."""

    store: ShufflerStore = field(repr=False)
    round: RoundRecord
    key: RoundKey = field(repr=False)

    def now(self) -> RoundRecord:
        """The round as the store has it now."""
        return next(r for r in self.store.rounds(self.round.campaign) if r.number == self.round.number)

    def tags(self) -> Tags:
        return self.store.tags(self.round.campaign, [self.round.number])

    def read_packed(self, tags: Tags) -> list[bytes]:
        """The packed reports of these tags."""
        sealed = self.store.fetch(self.round.campaign, tags)
        return [self.key.open(report, tag) for report, (_, tag) in zip(sealed, tags, strict=True)]

    def slots(self, tags: Tags) -> Places:
        """The roster slots (n,) of these tags."""
        found = np.empty(len(tags), dtype=np.int64)
        for start in range(0, len(tags), _CHUNK):
            chunk = self.read_packed(tags[start : start + _CHUNK])
            found[start : start + len(chunk)] = [int.from_bytes(p[_KEY : _KEY + _SLOT], "big") for p in chunk]
        return found

    def stated_classes(self, campaign: Campaign, tags: Tags) -> dict[str, Any]:
        """What the signed header says of classes: how many people of each sent these; else nothing."""
        if not campaign.classes:
            return {}
        found = [0] * len(campaign.classes)
        for start in range(0, len(tags), _CHUNK):
            for packed in self.read_packed(tags[start : start + _CHUNK]):
                found[packed[_KEY + _SLOT]] += 1
        return {"classes": tuple(found)}

    def merge(self, into: int, key: RoundKey) -> int:
        """Seal the reports again under the key of round `into`; how many gave way to a report that is there."""
        tags, moved = self.tags(), list[SealedReport]()
        for start in range(0, len(tags), _CHUNK):
            for packed in self.read_packed(tags[start : start + _CHUNK]):
                tag = key.tag(packed[:_KEY])
                moved.append(SealedReport(self.round.campaign, into, tag, b"", key.seal(packed, tag)))
        return self.store.move(self.round.campaign, self.round.number, into, moved)


@dataclass(frozen=True)
class ReleasedOrder:
    """A released order: which report comes at which place, and under order privacy the slot of each place."""

    order: Places
    slots: Places | None


def uniform_order(n: int, rng: Entropy) -> ReleasedOrder:
    """Every order with the same probability."""
    return ReleasedOrder(rng.permutation(n), None)


def order_by_slot(slots: Places, shuffler: Shuffler, rng: Entropy) -> ReleasedOrder:
    """The order of the shuffler, restricted to the `slots` (n,) that are present; a slot counts once."""
    present_slots, places = np.unique(slots, return_index=True)
    present = np.zeros(shuffler.n, dtype=np.bool_)
    present[present_slots] = True
    fitted = shuffler if present.all() else shuffler.restrict(present)
    return ReleasedOrder(places[fitted.permutation(rng)].astype(np.int64), present_slots)


@dataclass(frozen=True)
class Body:
    """The body of a batch as it lies in the store: what the header says of it, and what follows the signature."""

    sha256: str  # hex
    parts: int | None = None
    listed: bytes = b""


def write_whole(store: ShufflerStore, batch: str, found: Iterator[bytes]) -> Body:
    """Keep a body that is sent in one piece."""
    digest = sha256()
    for number, piece in enumerate(_pieces(found)):
        digest.update(piece)
        store.add_part(batch, number, piece)
    return Body(digest.hexdigest())


def build_batch(
    closed: ClosedRound,
    version: ServedVersion,
    rounds: tuple[int, ...],
    *,
    id: str,
    shuffler: Shuffler | None,
    rng: Entropy,
    write: Callable[[ShufflerStore, str, Iterator[bytes]], Body] = write_whole,
) -> OutgoingBatch | None:
    """The batch of a closed round, ready to be released; None where it is too small, or another replica was first.

    rounds : all rounds whose reports may be in it, merged ones included.
    id : of the batch, new; after an error the store may hold a part of it, which is to be abandoned.
    write : keeps the body, entry by entry.
    """
    campaign, messages = version.campaign, closed.tags()
    tags = [tag for tag in messages for _ in range(campaign.entries)]  # of each entry, which has a place of its own
    dummies = BatchDummies.draw(campaign, closed.round.number, rng)
    everything = len(tags) + dummies.size
    released = (
        uniform_order(everything, rng) if shuffler is None else order_by_slot(closed.slots(tags), shuffler, rng)
    )
    n = (released.order.size - dummies.size) // campaign.entries
    batch = OutgoingBatch(id, campaign.id, (closed.round.number,), n, b"", "building")
    if n < campaign.batch.minimum or not closed.store.begin_batch(batch):
        return None
    if closed.now().count != len(messages):  # another replica has merged more reports into it since we read the tags
        closed.store.abandon_batch(id)
        return None
    body = write(closed.store, id, entries(closed, tags, released, dummies))
    dropped = {"superseded": closed.round.superseded, "same slot": len(messages) - n}
    stated = dummies.stated(n) | closed.stated_classes(campaign, messages)
    return sign_batch(batch, version, rounds, body, dropped, released.order.size, **stated)


def sign_batch(
    batch: OutgoingBatch,
    version: ServedVersion,
    rounds: tuple[int, ...],
    body: Body,
    dropped: dict[str, int],
    count: int,
    **stated: Any,
) -> OutgoingBatch:
    """The batch with its signed header, ready to be released."""
    campaign, some = version.campaign, {reason: count for reason, count in dropped.items() if count}
    header = Header(
        campaign.id, campaign.digest.hex(), batch.id, rounds, count, body.sha256, some, parts=body.parts, **stated
    )
    return replace(batch, header=header.sign(version.signing) + body.listed)


def _pieces(found: Iterable[bytes]) -> Iterator[bytes]:
    """Entries in pieces of about `_PART` bytes."""
    part, size = list[bytes](), 0
    for entry in found:
        part.append(entry)
        size += len(entry)
        if size >= _PART:
            yield b"".join(part)
            part, size = [], 0
    if part:
        yield b"".join(part)


def entries(
    closed: ClosedRound, tags: Tags, released: ReleasedOrder, dummies: BatchDummies, begin: int = 0
) -> Iterator[bytes]:
    """What the analyzer gets, in released order, from place `begin` on."""
    each = dummies.campaign.entries
    for start in range(begin, released.order.size, _CHUNK):
        chosen = released.order[start : start + _CHUNK].tolist()
        sealed = iter(closed.read_packed([tags[report] for report in chosen if report < len(tags)]))
        for place, report in enumerate(chosen, start):
            if report < len(tags):
                entry = inner_of(dummies.campaign, next(sealed))
                entry = split(entry, each)[report % each]
            else:
                entry = dummies.seal(report - len(tags))
            if released.slots is not None:
                entry = int(released.slots[place]).to_bytes(_SLOT, "big") + entry
            yield entry
