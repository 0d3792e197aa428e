"""The campaigns that a shuffler serves, and what their owners may ask of it once and now."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import inf
from typing import Literal

from dovetail.collect.campaign.terms import (
    added_dummies,
    people_dummies,
    require_question,
    require_same_terms,
    shuffle_section,
)
from dovetail.collect.http import Refusal
from dovetail.collect.shuffler.link_key_store import LinkKeyStore
from dovetail.collect.store.interfaces import ShufflerStore
from dovetail.core.errors import ConfigError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import Opener, RoleKeys, SigningKey
from dovetail_protocol.messages import wire_bytes

# The campaigns that a shuffler serves: every version of each, found by the digest that reports carry.


@dataclass(frozen=True)
class ServedVersion:
    """One version of a campaign with the keys that the shuffler needs for it."""

    campaign: Campaign
    opener: Opener = field(repr=False)
    signing: SigningKey = field(repr=False)
    length: int  # of its messages, bytes
    until: float = inf  # seconds since 1970: when an older version stops beside a newer one

    def takes_reports(self, now: float) -> bool:
        """True if reports made under this version are still taken."""
        expires = self.campaign.expires
        return now < self.until and (expires is None or now < expires.timestamp())


@dataclass(frozen=True)
class CampaignRegistry:
    """Versions by digest, and the newest one of each campaign: rounds and rules are those of the newest."""

    versions: Mapping[bytes, ServedVersion]
    newest: Mapping[str, ServedVersion]

    @property
    def longest(self) -> int:
        """Length of the longest message of any campaign, bytes."""
        return max(version.length for version in self.versions.values())

    @property
    def pad(self) -> int:
        """Length of the longest request by a relay, before sealing, bytes; 0 where no campaign has one."""
        routes = (version.campaign.ohttp for version in self.versions.values())
        return max(0 if route is None else route.pad for route in routes)

    @classmethod
    def of(
        cls, campaigns: Iterable[Campaign], keys: Iterable[RoleKeys], *, older_until: float = inf
    ) -> CampaignRegistry:
        """The registry of these campaigns; other shufflers' campaigns and contradicting versions are refused.

        older_until : until when (seconds since 1970) reports made under other versions than the newest are taken.
        """
        held = list(keys)
        versions = {campaign.digest: _version(campaign, held) for campaign in campaigns}
        if not versions:
            raise ConfigError("`campaigns` must name at least one campaign file.")
        newest: dict[str, ServedVersion] = {}
        for version in sorted(versions.values(), key=lambda version: version.campaign.version):
            campaign = version.campaign
            if campaign.id in newest and campaign.promise.trust != "local":
                raise ConfigError(
                    f"the campaign {campaign.id} has dummies, which hide reports of one version alone: serve "
                    f"version {campaign.version} without version {newest[campaign.id].campaign.version}."
                )
            if campaign.id in newest:
                require_same_terms(newest[campaign.id].campaign, campaign)
            newest[campaign.id] = version
        current = {version.campaign.digest for version in newest.values()}
        limited = {
            digest: version if digest in current else replace(version, until=older_until)
            for digest, version in versions.items()
        }
        return cls(limited, newest)


def _version(campaign: Campaign, held: list[RoleKeys]) -> ServedVersion:
    added_dummies(campaign)
    people_dummies(campaign)
    require_question(campaign)
    shuffle_section(campaign)  # refused before anybody sends to it
    for keys in held:
        opening, signing = keys.opening, keys.signing
        if opening is None or signing is None or opening.sealing_key() != campaign.shuffler:
            continue
        if signing.verifying_key() == campaign.shuffler_signing:
            return ServedVersion(campaign, opening.opener(), signing, wire_bytes(campaign))
    raise ConfigError(
        f"the campaign {campaign.id}, version {campaign.version}, names other shuffler keys than those in `keys`."
    )


# What the owner of a campaign may ask of the shuffler, once and now: to close a round by hand, to drop a lost one.
#
# ::
#
#     challenge = expiry 8 | random 16 | MAC of action, campaign, round, expiry and random 32
#     request   = challenge | owner's signature of campaign, round and challenge 64
#
# A request that changed nothing would otherwise be worth keeping: a close that found too few reports, or a drop of a
# round that was healthy. Whoever has seen it could send it again at the moment of their choice, such as while the
# round's key is away for a second.


SECONDS = 60  # that a challenge is good for
CHALLENGE, SIGNATURE = 8 + 16 + 32, 64
REQUEST = CHALLENGE + SIGNATURE
_KEY = b"dovetail close key v1\0"

Action = Literal["close", "drop"]
_DOMAINS: dict[Action, bytes] = {"close": b"dovetail close v2\0", "drop": b"dovetail drop v2\0"}


def owner_request(action: Action, owner: SigningKey, digest: bytes, number: int, challenge: bytes) -> bytes:
    """Request of the owner to close or drop round `number` of the campaign with this digest."""
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
