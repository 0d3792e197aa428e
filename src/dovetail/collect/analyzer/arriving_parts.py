"""Batches that arrive in parts: each is checked by itself and kept, still sealed, until the batch is whole.

The shuffler's manifest is believed by its signature, and a part by the manifest: its place, length and SHA-256.
Parts come as often as it takes, in any order and to any analyzer on the same store; nothing of a batch is opened
before the last one is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO

from dovetail.collect.analyzer.batch_intake import IncomingBatch, VerifiedBatch
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.batch import IN_PARTS, MOST_PART, Header, Part, entry_bytes, read_parts
from dovetail.collect.http.problems import Refusal
from dovetail.collect.store.interfaces import AnalyzerStore
from dovetail.core.errors import StorageError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.wire.message import Rejected


@dataclass(frozen=True)
class Manifest:
    """What the shuffler has signed of a batch in parts."""

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
        """What is here of a batch that will never be counted from it."""
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
