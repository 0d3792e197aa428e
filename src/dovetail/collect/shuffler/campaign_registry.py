"""The campaigns that a shuffler serves: every version of each, found by the digest that reports carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from dovetail.collect.campaign.added_dummies import added_dummies
from dovetail.collect.campaign.people_dummies import people_dummies
from dovetail.collect.campaign.shuffle_schema import shuffle_section
from dovetail.collect.campaign.versions import require_same_terms
from dovetail.core.errors import ConfigError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import Opener, RoleKeys, SigningKey
from dovetail_protocol.wire.message import wire_bytes


@dataclass(frozen=True)
class ServedVersion:
    """One version of a campaign with the keys that the shuffler needs for it."""

    campaign: Campaign
    opener: Opener = field(repr=False)
    signing: SigningKey = field(repr=False)
    length: int  # of its messages, bytes
    until: float = inf  # seconds since 1970: when an older version stops beside a newer one

    def takes_reports(self, now: float) -> bool:
        """Whether reports made under this version are still taken."""
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
