"""The device's outbox and ledger: one SQLite file, and the only state of a device beside its keys.

::

    (nothing) -- draw --> drawn -- seal --> sealed -- settle --> accepted | refused
                                   ^  |
                                   +--+ seal, under a newer version of the campaign

A report is charged to every budget and stored, randomized, in one transaction before anything is sent. Whatever
crashes afterwards, the same report is sent again: it is never drawn a second time, and while it waits no other is
drawn for its campaign, so that an outage costs one report. Values are never stored, except where people send dummies:
there a message that waits holds the answer. Of a report that has arrived, or never will, its round and its charge
stay alone, in this file and in those that SQLite keeps beside it, also where the process is killed. A report that is
sent again in every round stays, too, and is charged once. One file counts for all campaigns, see `spending`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Self, final

from dovetail_device import ledger
from dovetail_device.files import sync_folder
from dovetail_device.ledger import BudgetSpent as BudgetSpent
from dovetail_device.ledger import HeldToken, Ledger, LedgerEntry, Limits, Spending, question_key, terms_of
from dovetail_protocol.budget import decimal_at_least
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.epsilon_classes import find_class
from dovetail_protocol.errors import ConfigError, DovetailError, StorageError
from dovetail_protocol.keys import VerifyingKey
from dovetail_protocol.tokens import PendingToken

_SCHEMA = 5
_PATIENCE = 30.0  # seconds to wait for another process
_TABLES = """
CREATE TABLE device (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL);
CREATE TABLE campaign (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,             -- pinned: the key that signed the first version seen
    version INTEGER NOT NULL,        -- of the newest version accepted
    signed BLOB NOT NULL,            -- that version's file
    spent TEXT NOT NULL,             -- nats, an exact fraction
    doubted INTEGER NOT NULL DEFAULT 0,  -- whether the device's clock was wrong: the shuffler is asked for rounds
    class TEXT NOT NULL DEFAULT '',      -- as which the device has joined, where people have different epsilons
    newest INTEGER NOT NULL DEFAULT 0    -- a version seen that asks something else, not followed
) WITHOUT ROWID;
CREATE TABLE report (
    campaign TEXT NOT NULL REFERENCES campaign (id),
    round INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('drawn', 'sealed', 'accepted', 'refused')),
    reason TEXT NOT NULL DEFAULT '', -- kind of the last refusal
    form BLOB NOT NULL,              -- what the report answers, see `terms_of`
    id BLOB NOT NULL,
    plaintext BLOB NOT NULL,         -- the randomized report, or where people send dummies both entries
    digest BLOB NOT NULL DEFAULT x'', -- the version of the campaign that the message is made for
    wire BLOB NOT NULL DEFAULT x'',  -- the message
    attempts INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL DEFAULT 0,     -- not sent before, by the device's clock
    counted INTEGER NOT NULL DEFAULT 0,  -- the later round that it counted for, where it came late
    PRIMARY KEY (campaign, round)
) WITHOUT ROWID;
CREATE TABLE token (   -- one for each round that was ever asked for, and no second one
    campaign TEXT NOT NULL REFERENCES campaign (id),
    round INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('asked', 'held', 'spent', 'refused')),
    reason TEXT NOT NULL DEFAULT '', -- why there will be none
    secret BLOB NOT NULL,            -- the one-time key, until its report is settled
    salt BLOB NOT NULL,              -- what hides the request, until it is answered
    factor BLOB NOT NULL,
    token BLOB NOT NULL DEFAULT x'',
    bound BLOB NOT NULL DEFAULT x'', -- the challenge and key that it is for, see `TokenRule.bound`
    PRIMARY KEY (campaign, round)
) WITHOUT ROWID;
"""
_MEMOIZED = """
CREATE TABLE IF NOT EXISTS memoized (  -- reports that are sent again in every round
    campaign TEXT NOT NULL REFERENCES campaign (id),
    form BLOB NOT NULL,              -- what the report answers, see `terms_of`
    plaintext BLOB NOT NULL,
    PRIMARY KEY (campaign, form)
) WITHOUT ROWID
"""


@final
class Outbox:
    """The outbox of one device; several processes may open one file, and at most one of them draws for a round."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection, self._name = connection, name

    @classmethod
    def open(cls, path: Path, device: VerifyingKey) -> Self:
        """The outbox in a file that only its owner can read, made if it is absent; `device` must be whose it is."""
        try:
            _make(path)
        except OSError as error:
            raise StorageError(f"the outbox {path} cannot be opened ({error.strerror}).") from None
        return cls._open_database(str(path), device)

    @classmethod
    def in_memory(cls, device: VerifyingKey) -> Self:
        """An outbox for simulations: it forgets when the process ends, so it protects nobody."""
        return cls._open_database(":memory:", device)

    @classmethod
    def _open_database(cls, name: str, device: VerifyingKey) -> Self:
        try:
            connection = sqlite3.connect(name, timeout=_PATIENCE, isolation_level=None)
        except sqlite3.Error as error:
            raise StorageError(f"the outbox {name} cannot be opened ({error}).") from None
        outbox = cls(connection, name)
        try:
            outbox._prepare(device)
        except DovetailError:
            connection.close()
            raise
        return outbox

    def _prepare(self, device: VerifyingKey) -> None:
        with self._faults():
            self._begin_journal()
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA secure_delete = ON")
            self._connection.execute("PRAGMA temp_store = MEMORY")
        with self._transaction() as run:
            version = run("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in _TABLES.split(";\n"):
                    run(statement)
                run("INSERT INTO device VALUES (1, ?)", device.public)
                ledger.begin(run, ledger.today())
                run(f"PRAGMA user_version = {_SCHEMA}")
            elif version != _SCHEMA:
                raise ConfigError(f"the outbox {self._name} was written by another version of this software.")
            run(_MEMOIZED)
            if run("SELECT key FROM device").fetchone()[0] != device.public:
                raise ConfigError(f"the outbox {self._name} belongs to another device than {device}.")

    def _begin_journal(self) -> None:
        """Keep what a transaction replaces in a journal that is empty as soon as it is durable.

        A write-ahead log, which earlier versions kept, holds what has arrived for as long as a process is open, and
        after it was killed. SQLite takes it away, without waiting, when no other process has the file open.
        """
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = TRUNCATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def close(self) -> None:
        self._connection.close()

    # Campaigns

    def adopt(self, campaign: Campaign, *, owners: Collection[VerifyingKey] = (), hand_over: bool = True) -> Campaign:
        """Pin the owner, remember the newest version of the campaign, and return it.

        owners : who may ask, and nobody else; if nobody is named, those met before, or the first one met.
        hand_over : whether consent to an owner is consent to whom that one's signed hand-over names.
        """
        with self._transaction() as run:
            found = run("SELECT owner, signed FROM campaign WHERE id = ?", campaign.id).fetchone()
            if found is None:
                ledger.consent(run, campaign, owners, hand_over=hand_over)
                run(
                    "INSERT INTO campaign (id, owner, version, signed, spent) VALUES (?, ?, ?, ?, '0')",
                    campaign.id, campaign.owner.public, campaign.version, campaign.signed,
                )  # fmt: skip
                return campaign
            pinned = VerifyingKey(found[0])
            known = Campaign.parse(found[1], pinned)
            former = known.descends_from(campaign.owner) and campaign.version < known.version
            if not (former or campaign.descends_from(pinned)):
                raise ConfigError(
                    f"the campaign {campaign.id} is pinned to its owner, and this file has another one."
                )
            if not (former or hand_over or campaign.owner in (pinned, *owners)):
                raise ConfigError(
                    f"the campaign {campaign.id} was handed over to {campaign.owner}, and this device is told to "
                    "follow no hand-over; the person who runs it decides."
                )
            ledger.consent(run, campaign, owners, hand_over=hand_over)
            if known.version == campaign.version and known.digest != campaign.digest:
                raise ConfigError(
                    f"the campaign {campaign.id} has two different files of version {campaign.version}; "
                    "ask its owner which one holds."
                )
            if known.version >= campaign.version:
                return known
            statement = "UPDATE campaign SET owner = ?, version = ?, signed = ? WHERE id = ?"
            run(statement, campaign.owner.public, campaign.version, campaign.signed, campaign.id)
            return campaign

    def class_of(self, campaign: Campaign, name: str | None = None) -> int:
        """The place of the class in which the device takes part, or would: by default the most careful one.

        Raises
        ------
        ConfigError
            For a class that the campaign has not, and for another one than the device has joined: who moved with an
            answer would tell it.
        """
        with self._faults():
            row = self._row("SELECT class FROM campaign WHERE id = ?", campaign.id)
        joined = row[0] if row else ""
        if campaign.classes and joined and name not in (None, joined):
            raise ConfigError(
                f"this device has joined the campaign {campaign.id} in the class {joined}, and a class is chosen "
                f"once: not {name}."
            )
        return find_class(campaign.id, campaign.classes, (joined or name) if campaign.classes else name)

    def join(self, campaign: Campaign, place: int) -> None:
        """Choose the class at this place, once; ConfigError where another one was chosen."""
        if campaign.classes:
            chosen = campaign.classes[place].name
            with self._transaction() as run:
                run("UPDATE campaign SET class = ? WHERE id = ? AND class = ''", chosen, campaign.id)
            self.class_of(campaign, chosen)

    def supersede(self, campaign: Campaign) -> None:
        """Remember a newer version that asks something else, so that nothing more is drawn for the older one."""
        with self._transaction() as run:
            run("UPDATE campaign SET newest = max(newest, ?) WHERE id = ?", campaign.version, campaign.id)

    def is_superseded(self, campaign: Campaign) -> bool:
        """True if a newer version than this one asks something else."""
        with self._faults():
            return bool(self._row("SELECT newest FROM campaign WHERE id = ?", campaign.id)[0] > campaign.version)

    def doubt_clock(self, campaign: str, *, wrong: bool) -> None:
        """Remember whether the device's clock was wrong when it mattered to this campaign."""
        with self._transaction() as run:
            run("UPDATE campaign SET doubted = ? WHERE id = ?", int(wrong), campaign)

    def doubts_clock(self, campaign: str) -> bool:
        """True if it was wrong when it last mattered."""
        with self._faults():
            return bool(self._row("SELECT doubted FROM campaign WHERE id = ?", campaign)[0])

    # Budgets over all campaigns

    def limit(self, limits: Limits) -> None:
        """Set what the device gives at most, for the person who runs it; what is spent stays spent."""
        with self._transaction() as run:
            ledger.write_limits(run, limits)

    def spending(self) -> Spending:
        """Total spent over all campaigns."""
        with self._transaction() as run:
            return ledger.read_spending(run)

    # Reports

    def draw(
        self,
        campaign: Campaign,
        round: int,
        *,
        budget: float,
        make: Callable[[], bytes],
        question: str | None = None,
        price: float | None = None,
    ) -> LedgerEntry:
        """The report of a round: the one that stands for it, or else `make()`, charged and stored in one transaction.

        The report of another round stands where it counted for this one, and also as long as it waits: whatever keeps
        it from arriving would keep the next one, too. One that came too early does not. Where the campaign is
        memoized, `make()` is called and charged in the first round alone, and its report is sent again in others.

        Parameters
        ----------
        budget : float, nats
            For this campaign.
        question : str, optional
            What budgets are counted by; default the words of the campaign's question.
        price : float, nats, optional
            Of one report; default what the campaign charges.

        Raises
        ------
        BudgetSpent
            When this report would take the device above a budget; nothing was drawn.
        """
        with self._transaction() as run:
            standing = run(
                "SELECT * FROM report WHERE campaign = ? AND (round = ? OR counted = ? OR "
                "(state IN ('drawn', 'sealed') AND reason <> 'too_early')) ORDER BY round <> ?, counted <> ?, round",
                campaign.id, round, round, round, round,
            ).fetchone()  # fmt: skip
            if standing is not None:
                return LedgerEntry(*standing)
            form = terms_of(campaign)
            query = "SELECT plaintext FROM memoized WHERE campaign = ? AND form = ?"
            found = run(query, campaign.id, form).fetchone() if campaign.memoized else None
            if found is None:
                key = question_key(question or campaign.question)
                ledger.charge(run, campaign, key, budget=budget, price=price)
                found = (make(),)
                if campaign.memoized:
                    run("INSERT INTO memoized VALUES (?, ?, ?)", campaign.id, form, *found)
            run(
                "INSERT INTO report (campaign, round, state, form, id, plaintext) VALUES (?, ?, 'drawn', ?, ?, ?)",
                campaign.id, round, form, os.urandom(16), *found,
            )  # fmt: skip
            return self._entry(campaign.id, round)

    def seal(self, campaign: Campaign, round: int, make: Callable[[LedgerEntry], bytes]) -> LedgerEntry:
        """The report with its message for this version of the campaign: stored before, or else `make(entry)`."""
        with self._transaction() as run:
            entry = self._entry(campaign.id, round)
            if entry.settled or entry.digest == campaign.digest:
                return entry
            statement = "UPDATE report SET state = 'sealed', digest = ?, wire = ? WHERE campaign = ? AND round = ?"
            run(statement, campaign.digest, make(entry), campaign.id, round)
            return self._entry(campaign.id, round)

    def postpone(self, entry: LedgerEntry, reason: str, *, attempts: int, due: float) -> LedgerEntry:
        """The report waits until `due`, by the device's clock."""
        with self._transaction() as run:
            run(
                "UPDATE report SET reason = ?, attempts = ?, due = ? WHERE campaign = ? AND round = ? "
                "AND state IN ('drawn', 'sealed')", reason, attempts, due, entry.campaign, entry.round,
            )  # fmt: skip
            return self._entry(entry.campaign, entry.round)

    def settle(self, entry: LedgerEntry, refusal: str = "", *, counted: int = 0) -> LedgerEntry:
        """The report is accepted, or refused for good; what it said is erased. Acceptance outlives every refusal.

        counted : the later round that it counts for, if it came late.
        """
        with self._transaction() as run:
            state = "refused" if refusal else "accepted"
            run(
                "UPDATE report SET state = ?, reason = ?, counted = max(counted, ?), form = x'', id = x'', "
                "plaintext = x'', digest = x'', wire = x'' "
                "WHERE campaign = ? AND round = ? AND (state IN ('drawn', 'sealed') OR ? = 'accepted')",
                state, refusal, counted, entry.campaign, entry.round, state,
            )  # fmt: skip
            run(
                "UPDATE token SET state = 'spent', secret = x'', salt = x'', factor = x'', token = x'' "
                "WHERE campaign = ? AND round = ? AND state <> 'refused'", entry.campaign, entry.round,
            )  # fmt: skip
            return self._entry(entry.campaign, entry.round)

    # Tokens

    def token(self, campaign: Campaign, round: int, make: Callable[[], PendingToken]) -> HeldToken:
        """The token of a round as it stands; where none was asked for, what it is asked for with, stored first.

        Under a version of other [tokens] what was drawn is erased, and the round has none: one blinding factor under
        two keys, or one one-time key in two requests, links the requests to the report.
        """
        assert campaign.tokens is not None
        bound = campaign.tokens.bound(campaign.id, round)
        with self._transaction() as run:
            run(
                "UPDATE token SET state = 'refused', reason = 'changed', secret = x'', salt = x'', factor = x'', "
                "token = x'' WHERE campaign = ? AND round = ? AND state IN ('asked', 'held') AND bound <> ?",
                campaign.id, round, bound,
            )  # fmt: skip
            found = self._token(campaign.id, round)
            if found is None:
                made = make()
                run(
                    "INSERT INTO token (campaign, round, state, secret, salt, factor, bound) "
                    "VALUES (?, ?, 'asked', ?, ?, ?, ?)",
                    campaign.id, round, made.secret.secret, made.salt, made.factor, bound,
                )  # fmt: skip
                found = self._token(campaign.id, round)
            assert found is not None
            return found

    def hold_token(self, campaign: str, round: int, token: bytes) -> HeldToken:
        """The token has come and holds; what hid its request is erased."""
        return self._settle_token(campaign, round, "held", "", token)

    def refuse_token(self, campaign: str, round: int, reason: str) -> HeldToken:
        """There is no token for this round, and never will be."""
        return self._settle_token(campaign, round, "refused", reason, b"")

    def _settle_token(self, campaign: str, round: int, state: str, reason: str, token: bytes) -> HeldToken:
        with self._transaction() as run:
            run(
                "UPDATE token SET state = ?, reason = ?, token = ?, salt = x'', factor = x'' "
                "WHERE campaign = ? AND round = ? AND state = 'asked'", state, reason, token, campaign, round,
            )  # fmt: skip
            found = self._token(campaign, round)
            assert found is not None
            return found

    def _token(self, campaign: str, round: int) -> HeldToken | None:
        query = "SELECT state, reason, secret, salt, factor, token FROM token WHERE campaign = ? AND round = ?"
        row = self._row(query, campaign, round)
        return None if row is None else HeldToken(*row)

    def find(self, campaign: str, round: int) -> LedgerEntry | None:
        """The report of a round, if one was drawn."""
        with self._faults():
            row = self._row("SELECT * FROM report WHERE campaign = ? AND round = ?", campaign, round)
        return None if row is None else LedgerEntry(*row)

    def waiting(self, campaign: str) -> list[LedgerEntry]:
        """Reports that have not arrived, by round."""
        query = "SELECT * FROM report WHERE campaign = ? AND state IN ('drawn', 'sealed') ORDER BY round"
        with self._faults():
            return [LedgerEntry(*row) for row in self._connection.execute(query, (campaign,))]

    def ledgers(self) -> list[Ledger]:
        """Record of each campaign, by id."""
        with self._faults():
            rows = self._connection.execute("SELECT id, signed, spent, class FROM campaign ORDER BY id").fetchall()
        return [
            self._ledger(id, Campaign.parse(signed), Fraction(spent), joined) for id, signed, spent, joined in rows
        ]

    def _ledger(self, id: str, campaign: Campaign, spent: Fraction, joined: str) -> Ledger:
        query = "SELECT state, CASE state WHEN 'refused' THEN reason ELSE '' END, count(*) FROM report "
        with self._faults():
            rows = self._connection.execute(query + "WHERE campaign = ? GROUP BY 1, 2", (id,)).fetchall()
        counts: dict[str, int] = {}
        for state, _, count in rows:
            counts[state] = counts.get(state, 0) + count
        refusals = {reason: count for state, reason, count in rows if state == "refused"}
        rounds = tuple(entry.round for entry in self.waiting(id))
        budget = campaign.promise.device_budget
        trust = campaign.promise.trust
        return Ledger(id, campaign.version, budget, decimal_at_least(spent), counts, refusals, rounds, trust, joined)

    def _entry(self, campaign: str, round: int) -> LedgerEntry:
        return LedgerEntry(*self._row("SELECT * FROM report WHERE campaign = ? AND round = ?", campaign, round))

    def _row(self, query: str, *values: Any) -> Any:
        return self._connection.execute(query, values).fetchone()

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """One writer at a time, from the first read on; durable when it returns, or not done at all."""
        with self._faults():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield lambda statement, *values: self._connection.execute(statement, values)
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled back by itself
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"the outbox {self._name} cannot be used ({error}); nothing was sent.") from None


def _make(path: Path) -> None:
    """An empty file that only its owner can read, or the one that is there made so; SQLite's own files follow it."""
    try:
        made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # never opened here: closing it would drop the locks that this process holds on it
        path.chmod(0o600)
        return
    os.close(made)
    sync_folder(path.parent)  # a report that is lost with its file would be drawn again
