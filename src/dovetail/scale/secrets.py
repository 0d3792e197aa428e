"""The secrets of one release: in memory only, mute, and apart by purpose."""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dovetail.core.entropy.keyed import KEY_BYTES, purpose_key
from dovetail.core.errors import StorageError

_NONCE = 12


@dataclass(frozen=True)
class Secret:
    """32 bytes of the operating system, drawn on the driver for one release and never written down.

    With the people's ids and the released files they tell who sent which report: they are worth the table.
    """

    key: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> Secret:
        """A new one, from the operating system."""
        return cls(os.urandom(KEY_BYTES))

    def of(self, purpose: str) -> bytes:
        """The key of one purpose."""
        return purpose_key(self.key, purpose)


@dataclass(frozen=True)
class Sealer:
    """Seals what travels between tasks: AES-256-GCM, a function of (secret, content), so that attempts agree.

    The nonce is a keyed hash of the content: a repeated task writes the same bytes, without which Spark gives up a
    job whose machine died ("indeterminate output"). That hash is GMAC, a universal hash, below HMAC-SHA256, a
    pseudorandom function, which is one again: what GCM-SIV does, at the speed of GCM.
    """

    secret: Secret

    def seal(self, content: bytes, part: int) -> bytes:
        """The sealed content for one partition."""
        place = part.to_bytes(8, "big")
        hashed = AESGCM(self.secret.of("hash")).encrypt(bytes(_NONCE), b"", content)  # nobody sees it
        nonce = hmac.digest(self.secret.of("nonce"), place + hashed, "sha256")[:_NONCE]
        return nonce + AESGCM(self.secret.of("exchange")).encrypt(nonce, content, place)

    def open(self, sealed: bytes, part: int) -> bytes:
        """What was sealed for this partition.

        Raises
        ------
        StorageError
            When it has been altered on its way.
        """
        try:
            gcm = AESGCM(self.secret.of("exchange"))
            return gcm.decrypt(sealed[:_NONCE], sealed[_NONCE:], part.to_bytes(8, "big"))
        except (InvalidTag, ValueError):
            raise StorageError(
                f"partition {part}: what one task sent another was altered; nothing was released."
            ) from None
