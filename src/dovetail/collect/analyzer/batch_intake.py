"""Batches on their way in: checked piece by piece, opened only when everything agrees, counted once.

A batch that is not what its signed header says is refused whole, and nothing of it is kept. A single report that
cannot be read is set aside and counted by kind; it never stops the others.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from io import BytesIO
from itertools import pairwise
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns, Piece, Unsealer
from dovetail.collect.analyzer.tallies import CampaignRandomizer, add_tallies, tallies_by_group, tally_all
from dovetail.collect.analyzer.unseal import OpenedReports
from dovetail.collect.batch import (
    IN_PARTS,
    LISTED,
    MOST_PART,
    PREFIX,
    VERSION,
    Header,
    Part,
    entry_bytes,
    head_bytes,
    read_parts,
)
from dovetail.collect.campaign.terms import (
    added_dummies,
    count_messages,
    forms_of,
    law_of,
    people_dummies,
    readable_people,
)
from dovetail.collect.clock import minute
from dovetail.collect.http import Refusal
from dovetail.collect.store.interfaces import AnalyzerStore, BatchRecord, CountedBatch, GroupTally
from dovetail.core.errors import DataError, StorageError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.messages import Rejected

MOST_REPORTS = 10**8  # in one batch
MOST_ASIDE = 1000  # bad reports of one batch that are kept to be looked at; all of them are counted
AT_ONCE = 10_000  # reports in memory
_SLOT = 4


class Body(Protocol):
    """A file, or what reads like one."""

    def seek(self, offset: int, /) -> int: ...
    def read(self, size: int, /) -> bytes:
        """So many bytes, unless it ends."""


class IncomingBatch:
    """One batch as it arrives, or its manifest: `feed` takes its pieces, `finish` says that it is whole and right.

    Until the shuffler's signature is verified nothing is written; afterwards only sealed reports are, to `spool`.
    """

    def __init__(self, campaigns: AnalyzerCampaigns, spool: IO[bytes], version: int = VERSION) -> None:
        self._campaigns, self._spool, self._version = campaigns, spool, version
        self._head, self._wanted = bytearray(), PREFIX
        self._digest, self._left = sha256(), 0
        self.header: Header | None = None

    @property
    def head(self) -> bytes:
        """Everything before the body, as far as it has come."""
        return bytes(self._head)

    def feed(self, piece: bytes) -> None:
        """The next piece, of any length; Rejected as soon as something is wrong."""
        while self.header is None and piece:
            taken = self._wanted - len(self._head)
            self._head += piece[:taken]
            piece = piece[taken:]
            if len(self._head) == self._wanted:
                self._read_head(bytes(self._head))
        if len(piece) > self._left:
            raise Rejected("malformed", "the batch is longer than its header says.")
        self._left -= len(piece)
        self._digest.update(piece)
        write_to(self._spool, piece)

    def finish(self) -> VerifiedBatch:
        """The batch, after its last piece."""
        if self.header is None or self._left:
            raise Rejected("malformed", "the batch ends before its end.")
        if self._digest.hexdigest() != self.header.sha256:
            raise Rejected("signature", "the batch is not the one that the shuffler signed.")
        return VerifiedBatch(self.header, self._campaigns.find(self.header.digest), self._spool)

    def _read_head(self, head: bytes) -> None:
        if len(head) == PREFIX:
            self._wanted = head_bytes(head, self._version)
            return
        campaign = self._campaigns.find(Header.peek(head).digest)
        header = Header.read(head, campaign.shuffler_signing)
        check_header(header, campaign)
        self._left = header.count * entry_bytes(campaign) if header.parts is None else header.parts * LISTED
        self.header = header


def write_to(spool: IO[bytes], piece: bytes) -> None:
    """Write what has arrived; StorageError where there is no room for it."""
    try:
        spool.write(piece)
    except OSError as error:
        raise StorageError(f"the batch cannot be spooled ({error.strerror}); make room and try again.") from None


@dataclass(frozen=True)
class VerifiedBatch:
    """A batch that is what its shuffler signed; the body is in the spool."""

    header: Header
    campaign: Campaign
    spool: Body


def check_header(header: Header, campaign: Campaign) -> None:
    """Rejected unless a signed header says what the campaign allows."""
    if header.campaign != campaign.id:
        raise Rejected("malformed", "the batch names one campaign and the digest of another.")
    if header.rounds[-1] > campaign.schedule.count:
        raise Rejected("round", f"{campaign.id} has the rounds 1 to {campaign.schedule.count}.")
    if len(header.rounds) > 1 and not campaign.rounds_mix:
        raise Rejected("round", f"the rounds of {campaign.id} never share a batch.")
    check_dummies(header, campaign)
    if (0 if header.classes is None else len(header.classes)) != campaign.kinds:
        what = "answer each question" if campaign.draws else "of each class"
        raise Rejected("content", f"the batch does not say how many people {what} of {campaign.id} it holds.")
    if not (campaign.batch.minimum <= header.devices and header.count <= MOST_REPORTS):
        raise Rejected("content", f"a batch of {campaign.id} has at least {campaign.batch.minimum} reports.")


def check_dummies(header: Header, campaign: Campaign) -> None:
    """Rejected where the shuffler adds no dummies to a campaign that asks for them, others, or unasked."""
    asked = added_dummies(campaign)
    if (None if asked is None else law_of(asked)) != header.dummies:
        raise Rejected("content", f"the shuffler of {campaign.id} adds no dummies, or others than the campaign says.")
    if campaign.entries * header.devices != header.count and asked is None:
        raise Rejected("content", f"the batch does not hold what so many people of {campaign.id} send.")
    if asked is not None:
        try:
            asked.people(header.count, campaign.entries // asked.messages * header.devices)
        except DataError as error:
            raise Rejected("content", str(error)) from None


def check_people(campaign: Campaign, counted: GroupTally, n: int) -> None:
    """Rejected where the honest people whom a promise to n counts on would have sent more messages.

    Entries that cannot be read take people off n, and off whom the promise counts on: `guarantees.honest_people`.
    """
    sent, promise = people_dummies(campaign), campaign.promise
    if sent is None or promise.assumed_honest is None:
        return
    honest = min(promise.assumed_honest, n - promise.assumed_dishonest)
    if honest < 1:  # nothing is promised then
        return
    try:
        sent.require_messages(count_messages(sent, counted.counts), honest=honest, symbols=campaign.symbols)
    except DataError as error:
        raise Rejected("content", str(error)) from None


def open_batch(arrived: VerifiedBatch, unsealed: Unsealer, *, now: float) -> CountedBatch:
    """Open, validate and tally a whole batch, in bounded memory; of order-private ones the reports are kept."""
    header, campaign = arrived.header, arrived.campaign
    forms: Sequence[CampaignRandomizer] = forms_of(campaign.mechanism)
    tallies: dict[str, GroupTally] = {}
    kinds: Counter[str] = Counter()
    crowds: Counter[tuple[int, int]] = Counter()  # by public group and version: what can be told apart
    aside: list[tuple[str, bytes]] = []
    placed: list[tuple[int, bytes]] = []
    for piece, opened in unsealed(_pieces(arrived)):
        slots, sealed = piece.slots, piece.sealed
        kinds.update(kind for kind, _ in opened.refused)
        crowds.update(zip(opened.groups.tolist(), opened.versions.tolist(), strict=True))
        aside += [(kind, sealed[place]) for kind, place in opened.refused[: MOST_ASIDE - len(aside)]]
        tallies = tallies_by_group([*tallies.values(), *_tallies(campaign, forms, opened)])
        at = {int(place): opened.encoded[row].tobytes() for row, place in enumerate(opened.places)} if slots else {}
        placed += [(slot, at.get(place, b"")) for place, slot in enumerate(slots)]
    n = readable_people(campaign, header.devices, kinds.total())  # dummies are never malformed
    crowd = min(crowds.values(), default=0)
    check_people(campaign, add_tallies(tallies.values()), n)
    if campaign.promise.trust != "local":
        crowd = n if len(crowds) == 1 else 0  # dummies hide reports of their own version alone
    batch = BatchRecord(
        header.batch, campaign.id, header.digest, header.rounds, header.devices, n, minute(now), dict(kinds),
        smallest=crowd, classes=header.classes or (),
    )  # fmt: skip
    return CountedBatch(batch, tuple(tallies.values()), tuple(aside), tuple(placed))


def _pieces(arrived: VerifiedBatch) -> Iterator[Piece]:
    """The batch, so many reports at once; Rejected where its slots do not ascend."""
    copies, start, last = _copies(arrived), 0, -1
    for entries in _entries(arrived):
        slots, sealed = _split(entries) if arrived.campaign.order_private else ([], entries)
        if any(before >= after for before, after in pairwise([last, *slots])):
            raise Rejected("malformed", "the roster slots of the batch do not ascend.")
        last = max(slots, default=last)
        yield Piece(slots, sealed, copies[start : (start := start + len(sealed))])


def _copies(arrived: VerifiedBatch) -> NDArray[np.bool_]:
    """Which reports (n,) are copies of an earlier one: nobody can seal a report twice alike, only repeat it.

    A shuffler that repeats somebody's report would read it off the estimates, and n would count people who are not
    there. Digests are keyed, so that nobody can make two reports look alike.
    """
    key, start = os.urandom(16), _SLOT if arrived.campaign.order_private else 0
    digests = bytearray()
    for entries in _entries(arrived):
        digests += b"".join(blake2b(entry[start:], digest_size=8, key=key).digest() for entry in entries)
    numbers = np.frombuffer(digests, dtype=np.uint64)
    order = np.argsort(numbers, kind="stable")
    copies = np.zeros(numbers.size, dtype=np.bool_)
    copies[order[1:]] = numbers[order[1:]] == numbers[order[:-1]]
    return copies


def _entries(arrived: VerifiedBatch) -> Iterator[list[bytes]]:
    """The entries of the body, so many at once."""
    length = entry_bytes(arrived.campaign)
    arrived.spool.seek(0)
    while part := arrived.spool.read(length * AT_ONCE):
        yield [part[start : start + length] for start in range(0, len(part), length)]


def _split(entries: list[bytes]) -> tuple[list[int], list[bytes]]:
    """Roster slots, and the sealed reports that lie there."""
    return [int.from_bytes(entry[:_SLOT]) for entry in entries], [entry[_SLOT:] for entry in entries]


def _tallies(campaign: Campaign, forms: Sequence[CampaignRandomizer], opened: OpenedReports) -> list[GroupTally]:
    names = campaign.groups or ("",)
    return [
        tally_all(forms, opened.reports[opened.groups == place], group=names[place])
        for place in np.unique(opened.groups)
    ]


# Batches that arrive in parts: each is checked by itself and kept, still sealed, until the batch is whole.
#
# The shuffler's manifest is believed by its signature, and a part by the manifest: its place, length and SHA-256.
# Parts come as often as it takes, in any order and to any analyzer on the same store; nothing of a batch is opened
# before the last one is here.


@dataclass(frozen=True)
class Manifest:
    """Signed list of the parts of a batch."""

    header: Header
    campaign: Campaign
    parts: tuple[Part, ...] = field(repr=False)
    wire: bytes = field(repr=False)

    @classmethod
    def of(cls, arrived: IncomingBatch) -> Manifest:
        """A manifest that has arrived; Rejected unless it is whole and right."""
        found = arrived.finish()
        found.spool.seek(0)
        listed = found.spool.read(-1)
        manifest = cls(found.header, found.campaign, read_parts(found.header, listed), arrived.head + listed)
        if max(map(manifest.bytes_of, range(len(manifest.parts)))) > MOST_PART:
            raise Rejected("content", f"a part of a batch has at most {MOST_PART} bytes.")
        return manifest

    @classmethod
    def read(cls, wire: bytes, campaigns: AnalyzerCampaigns) -> Manifest:
        """The same, of its bytes."""
        arrived = IncomingBatch(campaigns, BytesIO(), IN_PARTS)
        arrived.feed(wire)
        return cls.of(arrived)

    def bytes_of(self, number: int) -> int:
        """Length of a part."""
        return self.parts[number].count * entry_bytes(self.campaign)


class ArrivingParts:
    """The parts of batches on their way in."""

    def __init__(self, campaigns: AnalyzerCampaigns, store: AnalyzerStore) -> None:
        self._campaigns, self._store = campaigns, store
        self._latest: tuple[str, Manifest] | None = None  # so that it is not read anew for each part

    def missing(self, manifest: Manifest, now: float) -> list[int]:
        """Numbers of the parts that are still to come, which are waited for from now on."""
        batch = manifest.header.batch
        if not self._store.expect(batch, manifest.wire, now):
            if self._store.has_counted(batch):  # by another request, since the caller has looked
                return []
            raise Rejected("content", "this batch has come with another manifest before.")
        self._latest = (batch, manifest)
        here = set(self._store.arrived(batch))
        return [number for number in range(len(manifest.parts)) if number not in here]

    def length(self, batch: str, number: int) -> int:
        """How many bytes a part has; Refusal if nobody waits for it."""
        manifest = self._manifest(batch)
        if manifest is None or number >= len(manifest.parts):
            raise _not_awaited()
        return manifest.bytes_of(number)

    def keep(self, batch: str, number: int, body: bytes) -> None:
        """Keep a part, durably; Rejected unless it is the one that the shuffler signed."""
        if len(body) != self.length(batch, number):
            raise Rejected("malformed", "the part has another length than the manifest says.")
        manifest = self._manifest(batch)
        if manifest is None or sha256(body).digest() != manifest.parts[number].sha256:
            raise Rejected("signature", "the part is not the one that the shuffler signed.")
        if not self._store.keep_part(batch, number, body):
            self._latest = None
            raise _not_awaited()

    def forget(self, batch: str) -> None:
        """Delete the parts of a batch that will never be counted."""
        if self._store.manifest(batch) is not None:
            self._store.forget_parts(batch)

    def whole(self, manifest: Manifest) -> VerifiedBatch:
        """The batch, when no part of it is missing."""
        return VerifiedBatch(manifest.header, manifest.campaign, StoredParts(self._store, manifest))

    def _manifest(self, batch: str) -> Manifest | None:
        latest = self._latest
        if latest is None or latest[0] != batch:
            wire = self._store.manifest(batch)
            if wire is None:
                return None
            latest = self._latest = (batch, Manifest.read(wire, self._campaigns))
        return latest[1]


class StoredParts:
    """The body of a batch, part by part out of the store, with one part in memory; each is checked once more."""

    def __init__(self, store: AnalyzerStore, manifest: Manifest) -> None:
        self._store, self._manifest = store, manifest
        self.seek(0)

    def seek(self, offset: int, /) -> int:
        """To the beginning."""
        assert offset == 0
        self._next, self._left = 0, memoryview(b"")
        return 0

    def read(self, size: int, /) -> bytes:
        """The next bytes, so many unless the body ends."""
        taken = list[memoryview]()
        while size > 0:
            if not self._left:
                if self._next == len(self._manifest.parts):
                    break
                self._left, self._next = memoryview(self._part(self._next)), self._next + 1
            taken.append(self._left[:size])
            self._left, size = self._left[size:], size - len(taken[-1])
        return b"".join(taken)

    def _part(self, number: int) -> bytes:
        batch, part = self._manifest.header.batch, self._manifest.parts[number]
        body = self._store.arrived_part(batch, number)
        if sha256(body).digest() != part.sha256:
            self._store.forget_parts(batch)
            raise StorageError(f"part {number} of the batch {batch} was damaged in the store; it has to come again.")
        return body


def _not_awaited() -> Refusal:
    return Refusal("not_found", "there is no such part of a batch that is waited for; put its manifest first.")
