"""Proof that a part of a half-built batch is the one that was built: whoever writes the database cannot make another.

Whoever builds on signs a manifest of parts that it has not built itself, and reads them from a database that others
may have written. Each part lies beside an HMAC-SHA256, under a key of the batch's secret, of the batch, the reports
that it is built of, the part's number, the place where it begins, and its bytes.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.batch import Part
from dovetail.collect.store.interfaces import ShufflerStore
from dovetail.core.entropy.keyed import purpose_key

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
