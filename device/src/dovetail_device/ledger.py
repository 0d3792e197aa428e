"""What a device keeps of its reports, and what it can say of its budget."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal

from dovetail_protocol.campaign import Campaign

ReportState = Literal["drawn", "sealed", "accepted", "refused"]


@dataclass(frozen=True)
class LedgerEntry:
    """One report of the outbox; its bytes are empty where there are none yet, or none any more."""

    campaign: str
    round: int
    state: ReportState
    reason: str
    form: bytes = field(repr=False)
    id: bytes = field(repr=False)
    plaintext: bytes = field(repr=False)
    digest: bytes = field(repr=False)
    wire: bytes = field(repr=False)
    attempts: int
    due: float

    @property
    def settled(self) -> bool:
        """Whether nothing will be sent for this round any more."""
        return self.state in ("accepted", "refused")


@dataclass(frozen=True)
class Ledger:
    """What a device has done for one campaign; budgets in nats."""

    campaign: str
    version: int
    budget: float
    spent: float
    counts: dict[str, int]  # reports by state
    refusals: dict[str, int]  # refused reports by kind
    waiting: tuple[int, ...]  # rounds whose report has not arrived

    def __str__(self) -> str:
        line = f"{self.campaign}, version {self.version}: {self.spent:g} of {self.budget:g} nats spent"
        parts = [f"{self.counts.get('accepted', 0):,} accepted", f"{len(self.waiting):,} waiting"]
        parts += [f"{count:,} refused ({kind})" for kind, count in sorted(self.refusals.items())]
        return f"{line}; reports: {', '.join(parts)}."


def terms_of(campaign: Campaign) -> bytes:
    """What a report of this campaign answers, how, and what was promised for it: everything but keys and dates.

    Only versions that agree on it can share a drawn report, and only they are followed without asking anybody. The
    budget is left out: the smaller one holds.
    """
    answered = (campaign.mechanism, campaign.categories, campaign.groups, campaign.question)
    shuffle = replace(
        campaign.shuffle,
        groups=dict(sorted(campaign.shuffle.groups.items())),
        settings=dict(sorted(campaign.shuffle.settings.items())),
    )
    promised = (campaign.schedule, campaign.batch, shuffle, replace(campaign.promise, device_budget=0.0))
    return sha256(repr((answered, promised)).encode()).digest()
