"""The batch: what the shuffler hands to the analyzer, and nothing else.

::

    wire  = "DVTB" | version 1 | header length 4 | header (JSON) | signature 64 | body
    body  = entries of one length: [roster slot 4, if order private] | sealed to the analyzer( inner )

The signature covers the header, which holds the SHA-256 of the body. Nobody's key, address or time is in it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey, VerifyingKey
from dovetail_protocol.wire.message import Rejected, inner_bytes
from dovetail_protocol.wire.sent_dummies import CAP

VERSION = 1
MAGIC = b"DVTB"
PREFIX = len(MAGIC) + 1 + 4
SIGNATURE = 64
MOST_HEADER = 1 << 20
_DOMAIN = b"dovetail batch v1\0"


@dataclass(frozen=True)
class Header:
    """What a batch says of itself.

    dropped : valid reports of these rounds that are not in the batch, by reason, as the campaign's rules have it.
    people : where there are dummies: distinct devices. Where people send them that is half of the entries.
    dummies : where the shuffler adds them: the law of all entries but one of each device, as numerator, denominator
        and reach of `TruncatedGeometric`. How many of each symbol there are stands nowhere.
    """

    campaign: str  # id
    digest: str  # of the campaign file, hex
    batch: str  # hex, 32 characters
    rounds: tuple[int, ...]
    count: int  # entries, from as many distinct devices where there are no dummies
    sha256: str  # of the body, hex
    dropped: dict[str, int]
    people: int | None = None
    dummies: tuple[int, int, int] | None = None

    @property
    def devices(self) -> int:
        """Distinct devices that the entries are of."""
        return self.count if self.people is None else self.people

    def sign(self, key: SigningKey) -> bytes:
        """Everything before the body."""
        said = {name: value for name, value in asdict(self).items() if value is not None}
        text = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
        head = MAGIC + bytes([VERSION]) + len(text).to_bytes(4, "big") + text
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
            law = None if found.get("dummies") is None else tuple(found["dummies"])
            header = cls(**{**found, "rounds": tuple(found["rounds"]), "dummies": law})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Rejected("malformed", "the header of the batch cannot be read.") from None
        if not header._sound():
            raise Rejected("malformed", "the header of the batch holds something else than it should.")
        return header

    def _sound(self) -> bool:
        """Whether every field is of its type and range: the header came from outside."""
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
        )

    def _sound_dummies(self) -> bool:
        if self.people is None:
            return self.dummies is None
        if self.dummies is None:
            return _whole(self.people, 0) and CAP * self.people == self.count
        law = len(self.dummies) == 3 and all(_whole(number, 1) for number in self.dummies)
        return law and _whole(self.people, 0) and self.people <= self.count


def _hex(text: object, length: int) -> bool:
    return isinstance(text, str) and len(text) == length and set(text) <= set("0123456789abcdef")


def _whole(number: object, least: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and least <= number < 1 << 53


def head_bytes(prefix: bytes) -> int:
    """Length of everything before the body, from its first `PREFIX` bytes."""
    if len(prefix) < PREFIX or prefix[:4] != MAGIC:
        raise Rejected("malformed", "this is not a batch: it does not begin as one.")
    if prefix[4] != VERSION:
        raise Rejected("version", f"batches of version {prefix[4]} are not understood, only {VERSION}.")
    length = int.from_bytes(prefix[5:9], "big")
    if length > MOST_HEADER:
        raise Rejected("malformed", "the header of the batch is too long.")
    return PREFIX + length + SIGNATURE


def entry_bytes(campaign: Campaign) -> int:
    """Length of one entry of the body."""
    return inner_bytes(campaign) + (4 if campaign.order_private else 0)
