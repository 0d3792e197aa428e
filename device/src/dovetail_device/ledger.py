"""The device's ledger: what it keeps of its reports, gives at most, and can say of its budget."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from typing import Literal
from unicodedata import normalize

from dovetail_protocol.budget import DEVICE_TOTAL, NOTHING, QUESTION_TOTAL, affordable, decimal_at_least
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.checks import positive
from dovetail_protocol.errors import ConfigError, DovetailError
from dovetail_protocol.exact_thresholds import as_written
from dovetail_protocol.keys import SigningKey, VerifyingKey
from dovetail_protocol.tokens import PendingToken

ReportState = Literal["drawn", "sealed", "accepted", "refused"]
TokenState = Literal["asked", "held", "spent", "refused"]


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
        """True if nothing will be sent for this round any more."""
        return self.state in ("accepted", "refused")


@dataclass(frozen=True)
class HeldToken:
    """The token of one round; its bytes are empty where there are none yet, or none any more."""

    state: TokenState
    reason: str
    secret: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    factor: bytes = field(repr=False)
    token: bytes = field(repr=False)

    def pending(self) -> PendingToken:
        """The token with the secrets that it is asked for with."""
        return PendingToken(SigningKey(self.secret), self.salt, self.factor)


@dataclass(frozen=True)
class Ledger:
    """Record of a device for one campaign; budgets in nats."""

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
    """Limits of a device over all campaigns; finite numbers of nats above 0.

    total : of all its reports together. per_question : of those that answer one question, see `question_key`.
    """

    total: float = DEVICE_TOTAL
    per_question: float = QUESTION_TOTAL

    def __post_init__(self) -> None:
        for name in ("total", "per_question"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))


@dataclass(frozen=True)
class Spending:
    """Total of what a device remembers to have spent; nats, rounded up.

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

    Anybody who rewords a question gets another key: the total is what holds against that.

    >>> question_key("How did  you get to WORK today?!")
    'how did you get to work today'
    """
    return " ".join(re.findall(r"\w+", normalize("NFKC", question).casefold()))


def terms_of(campaign: Campaign) -> bytes:
    """The terms of a report of this campaign: what it answers, how, and its guarantee; all but keys and dates.

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
    rules = tuple(rule for rule in (campaign.dummies, campaign.sent, campaign.classes, campaign.tokens) if rule)
    sealed = () if campaign.suite == "x25519" else (campaign.suite,)
    hidden = () if campaign.ohttp is None else ("relay",)  # which one, and its keys, may change
    asked = () if campaign.asked is None else (campaign.asked,)
    again = ("memoized",) if campaign.memoized else ()
    return sha256(repr((answered, promised, *rules, *sealed, *hidden, *asked, *again)).encode()).digest()


# What a device spends on everybody, and whom it answers: the tables of its outbox that all campaigns share.
#
# The limits are kept by the device's software for its user. They hold for as long as its memory does: a device
# that is reset, installed anew or given another outbox begins at nothing, and can only say so.


Run = Callable[..., sqlite3.Cursor]  # statement and values, inside a transaction

TABLES = """
CREATE TABLE memory (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    since TEXT NOT NULL,             -- the day on which it began, '' if that was not written down
    total REAL NOT NULL,             -- nats: the limit of all reports
    per_question REAL NOT NULL       -- nats: the limit of the reports on one question
);
CREATE TABLE owner (key BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE question (
    key TEXT PRIMARY KEY,            -- see `question_key`
    spent TEXT NOT NULL              -- nats, an exact fraction
) WITHOUT ROWID;
"""


class BudgetSpent(DovetailError):
    """The device has spent what it may spend, on a campaign, a question or in all; no report is drawn any more."""


def begin(run: Run, since: str = "") -> None:
    """Make the tables, with the safe limits."""
    for statement in TABLES.split(";\n"):
        run(statement)
    limits = Limits()
    run("INSERT INTO memory VALUES (1, ?, ?, ?)", since, limits.total, limits.per_question)


def today() -> str:
    """The day, for people who ask since when a device remembers; nothing is decided by it."""
    return datetime.now(UTC).date().isoformat()


def consent(run: Run, campaign: Campaign, owners: Collection[VerifyingKey], *, hand_over: bool) -> None:
    """Remember the campaign's owner as one who is answered.

    hand_over : whether consent to an owner is consent to whom that one has handed the campaign over.

    Raises
    ------
    ConfigError
        When `owners` are named and this is none of them, or nobody is named and another owner was met before.
    """
    known = {key for (key,) in run("SELECT key FROM owner")} if not owners else {owner.public for owner in owners}
    heirs = hand_over and any(campaign.descends_from(VerifyingKey(key)) for key in known)
    if known and campaign.owner.public not in known and not heirs:
        raise ConfigError(
            f"this device has not consented to answer {campaign.owner}, the owner of the campaign {campaign.id}; "
            "its user consents by naming that key as `owner` (--owner)."
        )
    run("INSERT OR IGNORE INTO owner VALUES (?)", campaign.owner.public)


def charge(run: Run, campaign: Campaign, question: str, *, budget: float, price: float | None = None) -> None:
    """Pay for one report of a campaign, on a question key, out of every budget that it counts for.

    price : nats, of the device's class; default what the campaign charges.

    Raises
    ------
    BudgetSpent
        When one of them does not pay for it; nothing is charged.
    """
    epsilon, limits = campaign.charged if price is None else price, read_limits(run)
    on_campaign = Fraction(run("SELECT spent FROM campaign WHERE id = ?", campaign.id).fetchone()[0])
    questions = _questions(run)
    if not affordable(budget, epsilon, spent=on_campaign):
        raise BudgetSpent(
            f"the budget of {budget:g} nats for the campaign {campaign.id} does not pay for another report; "
            "this device takes no further part in it."
        )
    for spent, limit, what, option in (
        (questions.get(question, NOTHING), limits.per_question, "on one question", "--per-question"),
        (sum(questions.values(), NOTHING), limits.total, "in all", "--total"),
    ):
        if not affordable(limit, epsilon, spent=spent):
            raise BudgetSpent(
                f"this device gives at most {limit:g} nats {what}, of which {decimal_at_least(spent):g} are spent: "
                f"no report of {epsilon:g} for the campaign {campaign.id}. Its user sets another limit with "
                f"`dovetail-device limit {option}`."
            )
    run("UPDATE campaign SET spent = ? WHERE id = ?", str(on_campaign + as_written(epsilon)), campaign.id)
    _add(run, question, as_written(epsilon))


def read_limits(run: Run) -> Limits:
    """The limits that hold now."""
    return Limits(*run("SELECT total, per_question FROM memory").fetchone())


def write_limits(run: Run, limits: Limits) -> None:
    """Set other limits; what is spent stays spent."""
    run("UPDATE memory SET total = ?, per_question = ?", limits.total, limits.per_question)


def read_spending(run: Run) -> Spending:
    """Everything that the device remembers of its budget."""
    questions = _questions(run)
    campaigns = run("SELECT id, spent FROM campaign ORDER BY id").fetchall()
    keys = [key for (key,) in run("SELECT key FROM owner ORDER BY key")]
    return Spending(
        since=run("SELECT since FROM memory").fetchone()[0],
        spent=decimal_at_least(sum(questions.values(), NOTHING)),
        limits=read_limits(run),
        questions={key: decimal_at_least(spent) for key, spent in questions.items()},
        campaigns={id: decimal_at_least(Fraction(spent)) for id, spent in campaigns},
        owners=tuple(str(VerifyingKey(key)) for key in keys),
    )


def _questions(run: Run) -> dict[str, Fraction]:
    return {key: Fraction(spent) for key, spent in run("SELECT key, spent FROM question ORDER BY key")}


def _add(run: Run, question: str, nats: Fraction) -> None:
    spent = _questions(run).get(question, NOTHING) + nats
    run(
        "INSERT INTO question VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET spent = excluded.spent",
        question,
        str(spent),
    )
