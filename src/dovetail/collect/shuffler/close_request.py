"""What the owner of a campaign may ask of the shuffler: to close a round by hand, once and now; to drop a lost one.

::

    challenge = expiry 8 | random 16 | MAC of campaign, round, expiry and random 32
    request   = challenge | owner's signature of campaign, round and challenge 64

A close that left a round open because it had too few reports would otherwise be worth keeping: whoever has seen it
could send it again at the moment of their choice.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256

from dovetail.collect.http.problems import Refusal
from dovetail.collect.shuffler.campaign_registry import CampaignRegistry
from dovetail.collect.shuffler.link_key_store import LinkKeyStore
from dovetail.collect.store.interfaces import ShufflerStore
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey

SECONDS = 60  # that a challenge is good for
CHALLENGE, SIGNATURE = 8 + 16 + 32, 64
REQUEST = CHALLENGE + SIGNATURE
_DOMAIN = b"dovetail close v2\0"
_KEY = b"dovetail close key v1\0"
_DROP = b"dovetail drop v1\0"


def close_request(owner: SigningKey, digest: bytes, number: int, challenge: bytes) -> bytes:
    """What the owner sends to close round `number` of the campaign with this digest."""
    return challenge + owner.sign(_statement(digest, number, challenge))


def challenge_key(campaigns: CampaignRegistry, link_keys: LinkKeyStore) -> Callable[[Campaign], bytes]:
    """For each campaign what all processes with these keys and this vault have, and nobody else."""

    def key(campaign: Campaign) -> bytes:
        secret = campaigns.newest[campaign.id].signing.secret
        return hmac.digest(secret, _KEY + link_keys.identity().encode(), "sha256")

    return key


class CloseChallenges:
    """The challenges of one shuffler: each closes one round, once, for `SECONDS`.

    They carry their own proof, under a `key` that all processes of the shuffler have: many cost no memory, and one of
    them checks what another one has drawn. Those that an owner has used are remembered in the store.
    """

    def __init__(self, store: ShufflerStore, key: Callable[[Campaign], bytes]) -> None:
        self._store, self._key = store, key

    def issue(self, campaign: Campaign, number: int, now: float) -> bytes:
        """A fresh challenge for a round; Refusal where rounds do not close by hand."""
        _require_manual(campaign, number)
        head = (int(now) + SECONDS).to_bytes(8, "big") + secrets.token_bytes(16)
        return head + self._proof(campaign, number, head)

    def check(self, campaign: Campaign, number: int, request: bytes, now: float) -> None:
        """Refuse unless the owner has signed that this round closes, for a challenge that is good and not used."""
        _require_manual(campaign, number)
        if len(request) == SIGNATURE:
            raise Refusal("version", "a close of the old form, without a challenge; update `dovetail collect close`.")
        challenge, signature = request[:CHALLENGE], request[CHALLENGE:]
        if not self._is_good(campaign, number, challenge, now):
            raise Refusal(
                "signature", "this close is for no challenge that is good now; ask for one and close again."
            )
        if not campaign.owner.verifies(signature, _statement(campaign.digest, number, challenge)):
            raise Refusal(
                "signature",
                f"the owner has not signed that this round closes in version {campaign.version} of {campaign.id}.",
            )
        expiry = float(int.from_bytes(challenge[:8], "big"))
        if not self._store.use_challenge(sha256(challenge).digest(), expiry, now):
            raise Refusal("signature", "this close has been sent before; ask for a new challenge and close again.")

    def _is_good(self, campaign: Campaign, number: int, challenge: bytes, now: float) -> bool:
        head, proof = challenge[:24], challenge[24:]
        genuine = hmac.compare_digest(proof, self._proof(campaign, number, head))
        return genuine and now <= int.from_bytes(head[:8], "big")

    def _proof(self, campaign: Campaign, number: int, head: bytes) -> bytes:
        return hmac.digest(self._key(campaign), campaign.digest + number.to_bytes(4, "big") + head, "sha256")


def _statement(digest: bytes, number: int, challenge: bytes) -> bytes:
    return _DOMAIN + digest + number.to_bytes(4, "big") + challenge


def _require_manual(campaign: Campaign, number: int) -> None:
    if campaign.schedule.period is not None:
        raise Refusal("round", "the rounds of this campaign close by the clock.")
    if not 1 <= number <= campaign.schedule.count:
        raise Refusal("round", f"{campaign.id} has the rounds 1 to {campaign.schedule.count}.")


def drop_statement(digest: bytes, number: int) -> bytes:
    """What the owner signs to drop round `number`; repeated it changes nothing, for a round is dropped for ever."""
    return _DROP + digest + number.to_bytes(4, "big")


def check_drop(campaign: Campaign, number: int, signature: bytes) -> None:
    """Refuse unless the owner has signed that this round is dropped."""
    if not 1 <= number <= campaign.schedule.count:
        raise Refusal("round", f"{campaign.id} has the rounds 1 to {campaign.schedule.count}.")
    if not campaign.owner.verifies(signature, drop_statement(campaign.digest, number)):
        raise Refusal(
            "signature",
            f"the owner has not signed that this round is dropped in version {campaign.version} of {campaign.id}.",
        )
