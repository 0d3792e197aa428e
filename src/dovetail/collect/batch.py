"""The batch: what the shuffler hands to the analyzer, and nothing else.

::

    wire  = "DVTB" | version 1 | header length 4 | header (JSON) | signature 64 | body
    body  = entries of one length: [roster slot 4, if order private] | sealed to the analyzer( inner )

The signature covers the header, which holds the SHA-256 of the body. Nobody's key, address or time is in it.

A large batch goes in parts, each of which is sent by itself, as often as it takes::

    manifest = "DVTB" | version 2 | header length 4 | header (JSON) | signature 64 | list
    list     = for each part: number of entries 4 | SHA-256 32

The list is the body of the manifest, and the header holds its SHA-256: one signature covers every byte of the batch.
Who does not know version 2 refuses it by its version, before anything else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Self

from dovetail_protocol.campaign import Campaign
from dovetail_protocol.dummies import CAP
from dovetail_protocol.keys import SigningKey, VerifyingKey
from dovetail_protocol.messages import Rejected, inner_bytes

VERSION = 1
IN_PARTS = 2  # version of a manifest
MAGIC = b"DVTB"
PREFIX = len(MAGIC) + 1 + 4
SIGNATURE = 64
MOST_HEADER = 1 << 20
MOST_PARTS = 10**5
MOST_PART = 1 << 26  # bytes of one part, which either side may hold in memory
LISTED = 36  # bytes of a part in the list
MOST_MANIFEST = PREFIX + MOST_HEADER + SIGNATURE + LISTED * MOST_PARTS
_COUNT = 4
SQUARED = 2  # power of the distance in the exponent of a Gaussian law
BY_CHANCE = 0  # of sparse dummies: reports are entries by chance only
_DOMAIN = b"dovetail batch v1\0"


@dataclass(frozen=True)
class Header:
    """Signed header of a batch.

    dropped : valid reports of these rounds that are not in the batch, by reason, as the campaign's rules have it.
    people : where there are dummies: distinct devices. Where people send them each sent as many entries.
    dummies : where the shuffler adds them: the law of all entries but one of each device, as numerator, denominator
        and reach of `TruncatedGeometric`, and 2 behind those of `TruncatedGaussian`, and the reaches of the other
        digits behind those of the last one of a number. Of sparse ones: with which probability a report is among the
        entries, and a symbol gets one dummy more, as numerators of the third number, and 0. How many of each symbol
        there are, and how many reports are left out, stands nowhere.
    parts : how many there are, where the batch goes in parts.
    classes : where people have different epsilons: how many of them are of each class, from the smallest epsilon on;
    where devices draw a question that dummies hide: how many drew each.
    """

    campaign: str  # id
    digest: str  # of the campaign file, hex
    batch: str  # hex, 32 characters
    rounds: tuple[int, ...]
    count: int  # entries, from as many distinct devices where there are no dummies
    sha256: str  # of the body, or of the list of its parts, hex
    dropped: dict[str, int]
    people: int | None = None
    dummies: tuple[int, ...] | None = None
    parts: int | None = None
    classes: tuple[int, ...] | None = None

    @property
    def devices(self) -> int:
        """Distinct devices that the entries are of."""
        return self.count if self.people is None else self.people

    def sign(self, key: SigningKey) -> bytes:
        """Everything before the body."""
        said = {name: value for name, value in asdict(self).items() if value is not None}
        text = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
        version = VERSION if self.parts is None else IN_PARTS
        head = MAGIC + bytes([version]) + len(text).to_bytes(4, "big") + text
        return head + key.sign(_DOMAIN + head)

    @classmethod
    def read(cls, head: bytes, shuffler: VerifyingKey) -> Self:
        """The header, if the shuffler signed it; `head` is everything before the body (see `head_bytes`)."""
        signed, signature = head[:-SIGNATURE], head[-SIGNATURE:]
        if not shuffler.verifies(signature, _DOMAIN + signed):
            raise Rejected("signature", "the batch is not signed by the campaign's shuffler.")
        return cls.peek(head)

    @classmethod
    def peek(cls, head: bytes) -> Self:
        """The header before its signature is checked: to find out which campaign it speaks of."""
        try:
            found = json.loads(head[PREFIX:-SIGNATURE])
            law, classes = (None if found.get(n) is None else tuple(found[n]) for n in ("dummies", "classes"))
            header = cls(**{**found, "rounds": tuple(found["rounds"]), "dummies": law, "classes": classes})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Rejected("malformed", "the header of the batch cannot be read.") from None
        if not header._sound() or head[4] != (VERSION if header.parts is None else IN_PARTS):
            raise Rejected("malformed", "the header of the batch holds something else than it should.")
        return header

    def _sound(self) -> bool:
        """True if every field is of its type and range: the header came from outside."""
        return (
            isinstance(self.campaign, str)
            and all(_hex(text, length) for text, length in ((self.digest, 64), (self.batch, 32), (self.sha256, 64)))
            and len(self.rounds) > 0
            and all(_whole(round, 1) for round in self.rounds)
            and list(self.rounds) == sorted(set(self.rounds))
            and _whole(self.count, 0)
            and isinstance(self.dropped, dict)
            and all(_whole(number, 0) for number in self.dropped.values())
            and self._sound_dummies()
            and (self.classes is None or self._sound_classes(self.classes))
            and (self.parts is None or (_whole(self.parts, 1) and self.parts <= MOST_PARTS))
        )

    def _sound_classes(self, classes: tuple[int, ...]) -> bool:
        return all(_whole(number, 0) for number in classes) and sum(classes) == self.devices

    def _sound_dummies(self) -> bool:
        if self.people is None:
            return self.dummies is None
        if self.dummies is None:
            return _whole(self.people, 1) and self.count % self.people == 0 and self.count >= CAP * self.people
        law = all(_whole(number, 1) for number in self.dummies[:3]) and len(self.dummies) >= 3
        by_chance = self.dummies[3:] == (BY_CHANCE,)
        more = self.dummies[4:]
        law = law and (by_chance or self.dummies[3:4] in ((), (SQUARED,))) and all(_whole(one, 1) for one in more)
        return law and _whole(self.people, 0) and (by_chance or self.people <= self.count)


def _hex(text: object, length: int) -> bool:
    return isinstance(text, str) and len(text) == length and set(text) <= set("0123456789abcdef")


def _whole(number: object, least: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and least <= number < 1 << 53


@dataclass(frozen=True)
class Part:
    """One part of a large batch: how many entries it holds, and the SHA-256 of its bytes."""

    count: int
    sha256: bytes

    @classmethod
    def of(cls, body: bytes, entry: int) -> Self:
        """The part that these bytes are, of entries of this length."""
        return cls(len(body) // entry, sha256(body).digest())


def list_parts(parts: Sequence[Part]) -> bytes:
    """The body of a manifest."""
    return b"".join(part.count.to_bytes(_COUNT, "big") + part.sha256 for part in parts)


def read_parts(header: Header, listed: bytes) -> tuple[Part, ...]:
    """The parts of a batch by the body of its manifest; Rejected unless it is what the signed header says."""
    if header.parts is None or sha256(listed).hexdigest() != header.sha256:
        raise Rejected("signature", "the list of parts is not the one that the shuffler signed.")
    rows = [listed[start : start + LISTED] for start in range(0, len(listed), LISTED)]
    parts = tuple(Part(int.from_bytes(row[:_COUNT]), row[_COUNT:]) for row in rows)
    sound = all(part.count > 0 and len(part.sha256) == LISTED - _COUNT for part in parts)
    if not sound or len(parts) != header.parts or sum(part.count for part in parts) != header.count:
        raise Rejected("malformed", "the parts of the batch do not add up to it.")
    return parts


def version_of(wire: bytes) -> int:
    """The version of a batch or manifest, by its beginning; 0 for anything else."""
    return wire[4] if len(wire) >= PREFIX and wire[:4] == MAGIC else 0


def head_bytes(prefix: bytes, version: int = VERSION) -> int:
    """Length of everything before the body, from its first `PREFIX` bytes, where this version is asked for."""
    if len(prefix) < PREFIX or prefix[:4] != MAGIC:
        raise Rejected("malformed", "this is not a batch: it does not begin as one.")
    if prefix[4] != version:
        raise Rejected("version", f"batches of version {prefix[4]} are not understood here, only {version}.")
    length = int.from_bytes(prefix[5:9], "big")
    if length > MOST_HEADER:
        raise Rejected("malformed", "the header of the batch is too long.")
    return PREFIX + length + SIGNATURE


def listed_parts(manifest: bytes) -> int:
    """How many parts a manifest lists."""
    return (len(manifest) - head_bytes(manifest[:PREFIX], IN_PARTS)) // LISTED


def entry_bytes(campaign: Campaign) -> int:
    """Length of one entry of the body."""
    return inner_bytes(campaign) + (4 if campaign.order_private else 0)
