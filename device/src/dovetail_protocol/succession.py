"""The owner's key changes hands: one line that the old key signs, and that everybody who trusted the old key follows.

::

    # handed over: <campaign id> <old key> <new key> <base64url of 64 bytes>

Such lines are the last ones of a campaign file above its signature, the oldest first; the signature is then that of
the last new key. To read them takes no TOML, so that nothing of a file is believed before its signature is verified.

A key that has handed a campaign over never owns it again: else who had it in between could send the old line once
more, and have it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

from dovetail_protocol.errors import ConfigError
from dovetail_protocol.keys import SigningKey, VerifyingKey, raw, text

HANDED = b"# handed over: "
MOST = 64  # in one file
_DOMAIN = b"dovetail hand-over v1\0"


@dataclass(frozen=True)
class HandOver:
    """The owner `old` of a campaign says that `new` is its owner from now on; `parse` verifies, `make` signs."""

    campaign: str
    old: VerifyingKey
    new: VerifyingKey
    signature: bytes = field(repr=False)

    @classmethod
    def make(cls, campaign: str, old: SigningKey, new: VerifyingKey) -> Self:
        """The old owner's word."""
        before = old.verifying_key()
        if before == new:
            raise ConfigError("a campaign is handed over to another key, and this is the same one.")
        return cls(campaign, before, new, old.sign(_statement(campaign, before, new)))

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """From its line; ConfigError unless the old key has signed it."""
        try:
            campaign, old, new, signature = line.removeprefix(HANDED).decode().split()
            found = cls(
                campaign, VerifyingKey.parse("old key", old), VerifyingKey.parse("new key", new), raw(signature)
            )
        except ValueError:  # also a ConfigError
            raise ConfigError("a line `handed over` must name campaign, old key, new key and signature.") from None
        if not found.old.verifies(found.signature, _statement(campaign, found.old, found.new)):
            raise ConfigError(f"the hand-over of {campaign} to {found.new} is not signed by {found.old}.")
        return found

    def line(self) -> bytes:
        """As it stands in a campaign file, with the end of the line."""
        return HANDED + f"{self.campaign} {self.old} {self.new} {text(self.signature)}\n".encode()


def read_hand_overs(body: bytes) -> tuple[HandOver, ...]:
    """The hand-overs at the end of a campaign file without its signature; ConfigError if one does not follow."""
    lines = body.rstrip(b"\n").split(b"\n")
    first = len(lines)
    while first and lines[first - 1].startswith(HANDED):
        first -= 1
    if len(lines) - first > MOST:
        raise ConfigError(f"a campaign is handed over at most {MOST} times.")
    found = tuple(HandOver.parse(line) for line in lines[first:])
    for before, after in pairwise(found):
        if (before.campaign, before.new) != (after.campaign, after.old):
            raise ConfigError("the lines `handed over` do not follow from each other.")
    for place, each in enumerate(found):
        require_new_owner(each.new, found[: place + 1])
    return found


def require_new_owner(owner: VerifyingKey, chain: Sequence[HandOver]) -> None:
    """Refuse a key that has handed the campaign over before."""
    if any(each.old == owner for each in chain):
        raise ConfigError(
            f"{owner} has handed this campaign over and never owns it again; its owner makes a new key for that."
        )


def heir(owner: VerifyingKey, chain: Sequence[HandOver]) -> VerifyingKey:
    """Key that these hand-overs pass an owner's trust to; the owner itself if it is not among them."""
    for each in chain:
        if each.old == owner:
            owner = each.new
    return owner


def _statement(campaign: str, old: VerifyingKey, new: VerifyingKey) -> bytes:
    return _DOMAIN + old.public + new.public + campaign.encode()
