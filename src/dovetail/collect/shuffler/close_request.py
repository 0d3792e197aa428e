"""What the owner of a campaign may ask of the shuffler, once and now: to close a round by hand, to drop a lost one.

::

    challenge = expiry 8 | random 16 | MAC of action, campaign, round, expiry and random 32
    request   = challenge | owner's signature of campaign, round and challenge 64

A request that changed nothing would otherwise be worth keeping: a close that found too few reports, or a drop of a
round that was healthy. Whoever has seen it could send it again at the moment of their choice, such as while the
round's key is away for a second.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Literal

from dovetail.collect.http.problems import Refusal
from dovetail.collect.shuffler.campaign_registry import CampaignRegistry
from dovetail.collect.shuffler.link_key_store import LinkKeyStore
from dovetail.collect.store.interfaces import ShufflerStore
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey

SECONDS = 60  # that a challenge is good for
CHALLENGE, SIGNATURE = 8 + 16 + 32, 64
REQUEST = CHALLENGE + SIGNATURE
_KEY = b"dovetail close key v1\0"

Action = Literal["close", "drop"]
_DOMAINS: dict[Action, bytes] = {"close": b"dovetail close v2\0", "drop": b"dovetail drop v2\0"}


def owner_request(action: Action, owner: SigningKey, digest: bytes, number: int, challenge: bytes) -> bytes:
    """What the owner sends to close or drop round `number` of the campaign with this digest."""
    return challenge + owner.sign(_statement(action, digest, number, challenge))


def challenge_key(campaigns: CampaignRegistry, link_keys: LinkKeyStore) -> Callable[[Campaign], bytes]:
    """For each campaign what all processes with these keys and this vault have, and nobody else."""

    def key(campaign: Campaign) -> bytes:
        secret = campaigns.newest[campaign.id].signing.secret
        return hmac.digest(secret, _KEY + link_keys.identity().encode(), "sha256")

    return key


class OwnerChallenges:
    """The challenges of one shuffler: each is for one action on one round, once, for `SECONDS`.

    They carry their own proof, under a `key` that all processes of the shuffler have: many cost no memory, and one of
    them checks what another one has drawn. Those that an owner has used are remembered in the store, also where the
    action changed nothing.
    """

    def __init__(self, store: ShufflerStore, key: Callable[[Campaign], bytes]) -> None:
        self._store, self._key = store, key

    def issue(self, action: Action, campaign: Campaign, number: int, now: float) -> bytes:
        """A fresh challenge for an action on a round; Refusal where there is no such action."""
        _require_round(action, campaign, number)
        head = (int(now) + SECONDS).to_bytes(8, "big") + secrets.token_bytes(16)
        return head + self._proof(action, campaign, number, head)

    def check(self, action: Action, campaign: Campaign, number: int, request: bytes, now: float) -> None:
        """Refuse unless the owner has signed this action on this round, for a challenge that is good and not used."""
        _require_round(action, campaign, number)
        if len(request) == SIGNATURE:
            raise Refusal(
                "version", f"a {action} of the old form, without a challenge; update `dovetail collect {action}`."
            )
        challenge, signature = request[:CHALLENGE], request[CHALLENGE:]
        if not self._is_good(action, campaign, number, challenge, now):
            raise Refusal(
                "signature", f"this {action} is for no challenge that is good now; ask for one and {action} again."
            )
        if not campaign.owner.verifies(signature, _statement(action, campaign.digest, number, challenge)):
            raise Refusal(
                "signature",
                f"the owner has not signed that this round {_DOES[action]} in version {campaign.version} of "
                f"{campaign.id}.",
            )
        expiry = float(int.from_bytes(challenge[:8], "big"))
        if not self._store.use_challenge(sha256(challenge).digest(), expiry, now):
            raise Refusal(
                "signature", f"this {action} has been sent before; ask for a new challenge and {action} again."
            )

    def _is_good(self, action: Action, campaign: Campaign, number: int, challenge: bytes, now: float) -> bool:
        head, proof = challenge[:24], challenge[24:]
        genuine = hmac.compare_digest(proof, self._proof(action, campaign, number, head))
        return genuine and now <= int.from_bytes(head[:8], "big")

    def _proof(self, action: Action, campaign: Campaign, number: int, head: bytes) -> bytes:
        said = _DOMAINS[action] + campaign.digest + number.to_bytes(4, "big") + head
        return hmac.digest(self._key(campaign), said, "sha256")


_DOES: dict[Action, str] = {"close": "closes", "drop": "is dropped"}


def _statement(action: Action, digest: bytes, number: int, challenge: bytes) -> bytes:
    return _DOMAINS[action] + digest + number.to_bytes(4, "big") + challenge


def _require_round(action: Action, campaign: Campaign, number: int) -> None:
    if action == "close" and campaign.schedule.period is not None:
        raise Refusal("round", "the rounds of this campaign close by the clock.")
    if not 1 <= number <= campaign.schedule.count:
        raise Refusal("round", f"{campaign.id} has the rounds 1 to {campaign.schedule.count}.")
