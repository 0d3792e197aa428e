"""What a device spends on everybody, and whom it answers: the tables of its outbox that all campaigns share.

The limits are kept by the device's software for whoever runs it. They hold for as long as its memory does: a device
that is reset, installed anew or given another outbox begins at nothing, and can only say so.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from fractions import Fraction

from dovetail_device.ledger import Limits, Spending, question_key
from dovetail_protocol.budget import NOTHING, affordable, decimal_at_least
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.errors import ConfigError, DovetailError
from dovetail_protocol.exact_thresholds import as_written
from dovetail_protocol.keys import VerifyingKey

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


def take_over(run: Run) -> None:
    """Make the tables of an outbox that counted by campaign alone: what it spent is charged to its questions."""
    begin(run)
    for signed, spent in run("SELECT signed, spent FROM campaign").fetchall():
        campaign = Campaign.parse(signed)
        run("INSERT OR IGNORE INTO owner VALUES (?)", campaign.owner.public)
        _add(run, question_key(campaign.question), Fraction(spent))


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
            "whoever runs it consents by naming that key as `owner` (--owner)."
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
                f"no report of {epsilon:g} for the campaign {campaign.id}. Whoever runs it sets another limit with "
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
