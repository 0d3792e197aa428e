"""The campaigns that an analyzer serves, in all their versions, with the keys that open them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dovetail.collect.analyzer.unseal import VersionOpeners
from dovetail.collect.campaign.added_dummies import added_dummies
from dovetail.collect.campaign.people_dummies import people_dummies
from dovetail.collect.campaign.shuffle_schema import shuffle_section
from dovetail.collect.campaign.versions import require_same_terms
from dovetail.core.errors import ConfigError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import Opener, RoleKeys
from dovetail_protocol.wire.message import Rejected


@dataclass(frozen=True)
class AnalyzerCampaigns:
    """Verified campaign files by digest and by id; `of` is the way to make one.

    Versions of one campaign differ in keys and dates only: their reports add.
    """

    versions: tuple[Campaign, ...]
    openers: dict[bytes, Opener] = field(repr=False)  # by digest

    @classmethod
    def of(cls, versions: Iterable[Campaign], keys: Sequence[RoleKeys]) -> AnalyzerCampaigns:
        """All versions, each with the key that opens it; refused where one has none, or where versions disagree."""
        held = {str(key.opening.sealing_key()): key.opening.opener() for key in keys if key.opening is not None}
        files = {campaign.digest: campaign for campaign in versions}
        found = tuple(sorted(files.values(), key=lambda campaign: (campaign.id, campaign.version)))
        for older, newer in pairwise(found):
            if older.id == newer.id:
                require_same_terms(older, newer)
        for campaign in found:
            shuffle_section(campaign)
            added_dummies(campaign)
            people_dummies(campaign)
            if str(campaign.analyzer) not in held:
                raise ConfigError(
                    f"the campaign {campaign.id}, version {campaign.version}, is sealed to another key than these."
                )
        return cls(found, {campaign.digest: held[str(campaign.analyzer)] for campaign in found})

    @property
    def newest(self) -> dict[str, Campaign]:
        """The latest version of each campaign, by id."""
        return {campaign.id: campaign for campaign in self.versions}

    def find(self, digest: str) -> Campaign:
        """The version with this digest, in hex."""
        for campaign in self.versions:
            if campaign.digest.hex() == digest:
                return campaign
        raise Rejected("campaign", "the batch belongs to a campaign, or a version, that is not served here.")

    def versions_of(self, campaign: Campaign) -> VersionOpeners:
        """All versions of this campaign with what opens their reports, this one first."""
        same = [each for each in self.versions if each.id == campaign.id and each != campaign]
        return [(each, self.openers[each.digest]) for each in (campaign, *reversed(same))]
