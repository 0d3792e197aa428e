"""What a device keeps of its reports, what it gives at most, and what it can say of its budget."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal
from unicodedata import normalize

from dovetail_protocol.budget import DEVICE_TOTAL, QUESTION_TOTAL
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.checks import positive

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
    counted: int = 0  # the later round that it counted for, where it came late

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
    trust: str = "local"  # whose noise the nats rest on
    epsilon_class: str = ""  # as which it has joined; "" where there are no classes

    def __str__(self) -> str:
        line = f"{self.campaign}, version {self.version}: {self.spent:g} of {self.budget:g} nats spent"
        line += ", as long as other people send their dummies" if self.trust == "users" else ""
        line += f", in the class {self.epsilon_class}" if self.epsilon_class else ""
        parts = [f"{self.counts.get('accepted', 0):,} accepted", f"{len(self.waiting):,} waiting"]
        parts += [f"{count:,} refused ({kind})" for kind, count in sorted(self.refusals.items())]
        return f"{line}; reports: {', '.join(parts)}."


@dataclass(frozen=True)
class Limits:
    """What a device gives at most, whoever asks, under whatever campaign id; finite numbers of nats above 0.

    total : of all its reports together. per_question : of those that answer one question, see `question_key`.
    """

    total: float = DEVICE_TOTAL
    per_question: float = QUESTION_TOTAL

    def __post_init__(self) -> None:
        for name in ("total", "per_question"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))


@dataclass(frozen=True)
class Spending:
    """What a device remembers to have spent on everybody; nats, rounded up.

    since : the day on which its memory began (ISO 8601), "" where that was not written down.
    """

    since: str
    spent: float
    limits: Limits
    questions: dict[str, float]  # by question key
    campaigns: dict[str, float]  # by campaign id
    owners: tuple[str, ...]  # that it answers

    def __str__(self) -> str:
        most, each = self.limits.total, self.limits.per_question
        lines = [f"{self.spent:g} of {most:g} nats spent in all, as far as this device remembers{self._since}."]
        lines += [f"{spent:g} of {each:g} nats on the question: {key}." for key, spent in self.questions.items()]
        lines += [f"{spent:g} nats for the campaign {id}." for id, spent in self.campaigns.items()]
        return "\n".join([*lines, f"Answers campaigns of: {', '.join(self.owners) or 'nobody yet'}."])

    @property
    def _since(self) -> str:
        return f": since {self.since}, and nothing of before" if self.since else ""


def question_key(question: str) -> str:
    """The question that budgets are counted by: its words, whatever their case and what stands between them.

    Whoever rewords a question gets another key: the total is what holds against that.

    >>> question_key("How did  you get to WORK today?!")
    'how did you get to work today'
    """
    return " ".join(re.findall(r"\w+", normalize("NFKC", question).casefold()))


def terms_of(campaign: Campaign) -> bytes:
    """What a report of this campaign answers, how, and what was promised for it: everything but keys and dates.

    Keys may change, what they are sealed with may not: a report that a quantum computer cannot read stays one.

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
    noise = tuple(rule for rule in (campaign.dummies, campaign.sent, campaign.classes) if rule)
    sealed = () if campaign.suite == "x25519" else (campaign.suite,)
    return sha256(repr((answered, promised, *noise, *sealed)).encode()).digest()
