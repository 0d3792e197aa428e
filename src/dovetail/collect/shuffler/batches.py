"""From a closed round to a batch: reports in released order, with nothing left of who sent them and when.

The order is a uniform permutation of the reports sorted by their tags, which are keyed digests; for order privacy it
is drawn by the campaign's shuffler over the public roster slots that are present. Reports are streamed from the
store; what is kept in memory is one tag and a number for each.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from math import ceil
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.batch import MOST_PART, MOST_PARTS, Header, Part, entry_bytes, list_parts
from dovetail.collect.campaign.terms import ShufflerDummies, added_dummies, law_of
from dovetail.collect.logs import Log
from dovetail.collect.shuffler.campaigns import ServedVersion
from dovetail.collect.shuffler.link_key_store import RoundKey
from dovetail.collect.store.interfaces import OutgoingBatch, RoundRecord, SealedReport, ShufflerStore
from dovetail.core.entropy import KEY_BYTES, Entropy, encrypt_blocks, purpose_key
from dovetail.core.stages import Shuffler
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.messages import class_bytes, plain, seal_inner, split

# Dummies of one batch: reports of nobody, drawn while it is built and indistinguishable from those of devices.
#
# They become the round's with the transaction that finishes the batch. What was drawn for one that is abandoned
# before has not left and is never sent; afterwards the batch is bytes, and nothing of it is drawn again: numbers that
# were drawn twice for one round would average out. How many there are of a symbol stands in no log, metric or table.
# The same holds for the coins of reports that are kept by chance: one drawn anew would show who was left out.


@dataclass(frozen=True)
class BatchDummies:
    """The dummies of a batch that closes with `round`; none where the campaign asks for none."""

    campaign: Campaign
    round: int
    law: ShufflerDummies | None
    _symbols: NDArray[np.int64] = field(repr=False)  # (size,)
    _kept: NDArray[np.bool_] | None = field(default=None, repr=False)  # (entries,), where reports are kept by chance

    @classmethod
    def draw(cls, campaign: Campaign, round: int, entries: int, rng: Entropy) -> BatchDummies:
        """Fresh numbers for every symbol; where reports are kept by chance, a fresh coin for each entry."""
        law = added_dummies(campaign)
        if law is None:
            return cls(campaign, round, law, np.zeros(0, dtype=np.int64))
        kept = None
        if law.kept < 1:
            kept = np.zeros(entries, dtype=np.bool_)
            kept[law.places(entries, rng)] = True
        return cls(campaign, round, law, law.drawn(rng), kept)

    @property
    def size(self) -> int:
        """All of them, which the length of a batch tells anybody who knows how many reports are in it."""
        return int(self._symbols.size)

    @property
    def left_out(self) -> int:
        """How many entries of devices are not in the batch; a secret, like the number of dummies beside them."""
        return 0 if self._kept is None else int(self._kept.size - self._kept.sum())

    def keeps(self, place: int) -> bool:
        """True if this entry of a device is in the batch.

        One that is costs as much work as a dummy: how long a batch takes to be built follows from the numbers of
        reports and of entries, which are known, and does not tell how many of the entries are dummies.
        """
        if self._kept is None:
            return True
        if self._kept[place]:
            self._seal(0)
        return bool(self._kept[place])

    def seal(self, place: int) -> bytes:
        """One of them as a device would seal it for the analyzer: same version, no group, same length."""
        return self._seal(int(self._symbols[place]))

    def _seal(self, symbol: int) -> bytes:
        report = self.campaign.mechanism.encode(symbol)
        return seal_inner(self.campaign, self.round, plain(self.campaign, report))

    def stated(self, people: int) -> dict[str, Any]:
        """The entries of the signed header about them, and about dummies that people have sent."""
        if self.campaign.sent is not None:
            return {"people": people}
        return {} if self.law is None else {"people": people, "dummies": law_of(self.law)}


Places = NDArray[np.int64]  # (n,)
Tags = Sequence[tuple[int, bytes]]  # (round, tag)

_KEY, _SLOT = 32, 4
_PART = 1 << 20  # bytes of a part of the body
_CHUNK = 4096  # reports read at once


def pack(device: bytes, slot: int, inner: bytes, place: bytes = b"") -> bytes:
    """Pack what is sealed under a round's key: sender, public slot, class if any, and the analyzer's part."""
    return device + slot.to_bytes(_SLOT, "big") + place + inner


def inner_of(campaign: Campaign, packed: bytes) -> bytes:
    """Part of a packed report that only the analyzer opens."""
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
        """The entries of the signed header about classes, or questions: how many people of each sent these."""
        if not campaign.kinds:
            return {}
        found = [0] * campaign.kinds
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
    dummies = BatchDummies.draw(campaign, closed.round.number, len(tags), rng)
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
    return sign_batch(batch, version, rounds, body, dropped, released.order.size - dummies.left_out, **stated)


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
    """Entries for the analyzer, in released order, from place `begin` on."""
    each = dummies.campaign.entries
    for start in range(begin, released.order.size, _CHUNK):
        chosen = released.order[start : start + _CHUNK].tolist()
        sealed = iter(closed.read_packed([tags[report] for report in chosen if report < len(tags)]))
        for place, report in enumerate(chosen, start):
            if report < len(tags):
                entry = inner_of(dummies.campaign, next(sealed))
                entry = split(entry, each)[report % each]
                if not dummies.keeps(report):
                    continue
            else:
                entry = dummies.seal(report - len(tags))
            if released.slots is not None:
                entry = int(released.slots[place]).to_bytes(_SLOT, "big") + entry
            yield entry


# Proof that a part of a half-built batch is the one that was built: whoever writes the database cannot make another.
#
# Whoever builds on signs a manifest of parts that it has not built itself, and reads them from a database that others
# may have written. Each part lies beside an HMAC-SHA256, under a key of the batch's secret, of the batch, the reports
# that it is built of, the part's number, the place where it begins, and its bytes.


_WORD = 8  # bytes of a number


@dataclass(frozen=True)
class PartMacs:
    """The codes of the parts of one batch."""

    batch: str
    key: bytes = field(repr=False)
    about: bytes = field(repr=False)  # SHA-256 of the batch and the tags of its reports

    @classmethod
    def of(cls, batch: str, secret: bytes, tags: NDArray[np.uint8]) -> Self:
        """Those of a batch of the reports with these tags (n, 32)."""
        about = sha256(sha256(batch.encode()).digest() + sha256(np.ascontiguousarray(tags).data).digest()).digest()
        return cls(batch, purpose_key(secret, "parts"), about)

    def code(self, number: int, begin: int, body: bytes) -> bytes:
        """Of one part, whose first entry has place `begin` in the batch.

        >>> macs = PartMacs.of("batch", bytes(32), np.zeros((1, 32), dtype=np.uint8))
        >>> macs.code(0, 0, b"body") == macs.code(1, 0, b"body")
        False
        """
        place = number.to_bytes(_WORD, "big") + begin.to_bytes(_WORD, "big")
        return hmac.digest(self.key, self.about + place + sha256(body).digest(), "sha256")

    def standing(self, store: ShufflerStore, entry: int) -> list[Part] | None:
        """The parts that are built, of entries of this length; None where one is missing or is not what was built."""
        codes, parts, begin = store.part_macs(self.batch), list[Part](), 0
        if sorted(codes) != list(range(len(codes))):
            return None
        for number in range(len(codes)):
            body = store.part(self.batch, number)
            if not hmac.compare_digest(codes[number], self.code(number, begin, body)):
                return None
            parts.append(Part.of(body, entry))
            begin += parts[-1].count
        return parts


# A large batch in parts, each built and sent by itself: what a crash interrupts goes on at the part where it was.
#
# The order of the whole batch is that of
#
# .. math:: \mathrm{AES}_{key}(\text{first 16 bytes of a report's tag}),
#
# and part i holds what stands at its places. Tags are distinct, so that the blocks are distinct and exchangeable:
# every order of the whole batch is equally likely, up to the advantage against AES-256 as a permutation. Until the
# batch is finished its secret lies beside it, sealed under the round's key: whoever goes on draws the same order, and
# parts that stand are never built in another one. Whoever writes the database has no such secret, and parts are
# believed by it only (`PartMacs`). The transaction that finishes the batch deletes it, then the round's key is
# erased: nobody can compute the order any more, and what is sent again is bytes.
#
# Dummies and the orders of order privacy are drawn once and kept nowhere, and the two entries of a device among
# people who send dummies share a tag: such a batch is sent in parts, and built from its beginning after a crash.


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


def build_in_parts(
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
        return build_batch(closed, version, rounds, id=id, shuffler=shuffler, rng=rng)
    law = added_dummies(campaign)
    most = campaign.entries * count + (0 if law is None else ceil(2 * law.total))  # entries
    size = part_size(campaign, most, part_reports)
    if shuffler is not None or law is not None or campaign.entries > 1:
        write = partial(_write_parts, size=size, entry=entry_bytes(campaign), begun=[])
        return build_batch(closed, version, rounds, id=id, shuffler=shuffler, rng=rng, write=write)
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
    rest = entries(closed, tags, released, none, begin=sum(part.count for part in begun))
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
    """Associated data of a batch's secret; no tag is so long."""
    return b"dovetail order of batch v1\0" + batch.encode()
