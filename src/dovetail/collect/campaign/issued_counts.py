"""Signed numbers of the tokens that an issuer gave in each round, to hold the number of reports against.

More reports than tokens in a round: somebody else than the issuer has made people up. As many or fewer prove nothing,
for the issuer can count people up whom it has made up itself, and the shuffler can put reports in place of people who
have a token and sent none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dovetail_protocol.campaign import Campaign
from dovetail_protocol.errors import ConfigError, DataError
from dovetail_protocol.keys import SigningKey, raw_or_nothing, text

_MOST = 1 << 32  # tokens of a round


@dataclass(frozen=True)
class IssuedCounts:
    """Tokens by round, of rounds that sell no more of them: a number that can still grow is not told."""

    campaign: str
    counts: Mapping[int, int]

    def document(self, key: SigningKey) -> dict[str, Any]:
        """As the issuer publishes it, signed by its own key."""
        rows = [list(row) for row in sorted(self.counts.items())]
        signature = text(key.sign(self._statement()))
        return {"schema_version": 1, "campaign": self.campaign, "issued": rows, "signature": signature}

    @classmethod
    def read(cls, body: bytes, campaign: Campaign) -> Self:
        """Verified by the key that the campaign names for it; DataError for anything else."""
        key = None if campaign.tokens is None else campaign.tokens.signing
        if key is None:
            raise ConfigError(f"the campaign {campaign.id} names no key that signs how many tokens were issued.")
        try:
            found = json.loads(body)
            rows = {_whole(number): _whole(count) for number, count in found["issued"]}
            made, signature = cls(str(found["campaign"]), rows), raw_or_nothing(found["signature"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DataError("these are no counts of an issuer.") from None
        if made.campaign != campaign.id or not key.verifies(signature, made._statement()):
            raise DataError(f"these counts are not signed by the issuer of {campaign.id}.")
        return made

    @classmethod
    def load(cls, path: Path, campaign: Campaign) -> Self:
        """Those of a file, with one line that names it where they cannot be used."""
        try:
            return cls.read(path.read_bytes(), campaign)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from None
        except DataError as error:
            raise ConfigError(f"{path}: {error}") from None

    def _statement(self) -> bytes:
        name = self.campaign.encode()
        rows = b"".join(number.to_bytes(4) + count.to_bytes(4) for number, count in sorted(self.counts.items()))
        return b"dovetail issued counts\0\1" + bytes([len(name)]) + name + rows


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError
    return value
