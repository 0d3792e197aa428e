"""Interfaces of the stores of shuffler and analyzer.

Every method is one transaction: done and durable when it returns, or not done at all. Stores know no cryptography:
what is secret reaches them sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dovetail.core.display import mute

CampaignId = str  # campaign id; versions of one campaign share rounds
RoundState = Literal["open", "held", "releasing", "released", "delivered", "dropped", "merged", "lost"]
AcceptOutcome = Literal["new", "duplicate", "elsewhere", "second", "closed"]


@dataclass(frozen=True)
class SealedReport:
    """A valid report on its way into the store.

    tag : keyed digest of the device under the round's key, so that a device counts once and nobody can find it later;
    report : SHA-256 of the report id, kept after release so that a retry is recognised;
    sealed : device, slot and inner envelope under the round's key.
    """

    campaign: CampaignId
    round: int
    tag: bytes = field(repr=False)  # 32 bytes
    report: bytes = field(repr=False)  # 32 bytes
    sealed: bytes = field(repr=False)


@dataclass(frozen=True)
class RoundRecord:
    """One round as the store knows it; `count` is valid reports of distinct devices, and stays when they are gone."""

    campaign: CampaignId
    number: int
    state: RoundState
    count: int
    opened: float  # server time, seconds since 1970, whole minutes
    batch: str | None = None  # hex id of the batch that its reports went into, also when they were merged before
    superseded: int = 0  # reports merged into this round, or into those merged into it, whose device had one here
    into: int | None = None  # the round that a merged round's reports are in
    key: str | None = None  # fingerprint of the key under which its reports lie; None before one was seen


@dataclass(frozen=True)
class Moment:
    """Time when the service last knew it, so that a restart can tell an outage from a wrong clock.

    boot : names the boot of the machine that said so, and `booted` is when that was, by the same clock.
    halted : the clock could not be believed since, and nobody has confirmed it.
    confirmed : how often an operator has confirmed the time.
    """

    time: float  # seconds since 1970, whole minutes
    boot: str
    booted: float  # seconds since 1970, whole minutes
    halted: bool = False
    confirmed: int = 0


@dataclass(frozen=True)
class OutgoingBatch:
    """A batch that waits for the analyzer: its signed header, or manifest; the body comes from `parts`.

    secret : what its order is drawn from, sealed under the round's key, where building can go on after a crash; it is
        deleted with the reports.
    """

    id: str  # hex, 32 characters
    campaign: CampaignId
    rounds: tuple[int, ...]
    count: int
    header: bytes  # header and signature as they are sent; empty while the batch is being built
    state: Literal["building", "waiting", "delivered"]
    secret: bytes = field(default=b"", repr=False)


class ShufflerStore(Protocol):
    def ready(self) -> bool:
        """True if a transaction can be made now."""

    def claim_vault(self, identity: str, foreign: Callable[[], None] = lambda: None) -> bool:
        """Work with the keys of this vault, until `close`; False, and nothing done, while somebody uses another.

        Anybody who shares the vault may share the database. Called again it says whether that still holds.

        foreign : called where the database was used with another vault before, and before it forgets that.
        """

    def moment(self) -> Moment | None:
        """The last record of time; None if there is none yet."""

    def record_moment(self, moment: Moment) -> None:
        """Replace the record of time."""

    def open_round(
        self, campaign: CampaignId, number: int, now: float, key: str | None = None, *, state: RoundState = "open"
    ) -> RoundRecord:
        """The round, opened in this state and with the fingerprint of its key if it was not known."""

    def record_key(self, campaign: CampaignId, number: int, key: str) -> None:
        """Note the fingerprint of a round's key, if none is noted yet."""

    def rounds(self, campaign: CampaignId) -> list[RoundRecord]:
        """All rounds known, by number."""

    def accept(self, reports: Sequence[SealedReport]) -> list[AcceptOutcome]:
        """Store reports, all in one transaction, and say for each what became of it.

        "duplicate": this very report is known, in whatever round of the campaign, also long after its release;
        "elsewhere": it is known of another campaign, and counts for that one alone; "second": its device has another
        report in this round; "closed": the round is not open. Only "new" changes anything.
        """

    def tags(self, campaign: CampaignId, rounds: Sequence[int]) -> list[tuple[int, bytes]]:
        """(round, tag) of all reports of these rounds, by tag: an order that says nothing about arrival."""

    def scan_tags(self, campaign: CampaignId, number: int, after: bytes, most: int) -> list[bytes]:
        """The next tags of one round beyond `after`, so many at most, ascending."""

    def fetch(self, campaign: CampaignId, keys: Sequence[tuple[int, bytes]]) -> list[bytes]:
        """The sealed reports of these (round, tag), in the order asked for."""

    def alone(self, task: Literal["rounds", "delivery"], patience: float = 0.0) -> AbstractContextManager[bool]:
        """Give True inside if this process alone, of all that share the database, has the task; another one's end is
        waited for so many seconds. It ends with the process, and saves work only: transactions decide."""

    def use_challenge(self, digest: bytes, until: float, now: float) -> bool:
        """Note that an owner has used a challenge, which is good until then; False if that was noted before."""

    def set_state(self, campaign: CampaignId, number: int, before: RoundState, after: RoundState) -> bool:
        """Change a round's state; False, and nothing done, if it is not `before` (another replica was first)."""

    def move(self, campaign: CampaignId, number: int, into: int, reports: Sequence[SealedReport]) -> int:
        """Merge: store `reports` (those of round `number`, sealed again) in round `into`, delete the old ones, mark
        `number` "merged". Where a device has a report in both, the one of `into` stays. How many were superseded."""

    def drop(self, campaign: CampaignId, number: int) -> int:
        """Delete the reports of a round that is open, held or lost, and mark it "dropped"; how many."""

    def begin_batch(self, batch: OutgoingBatch) -> bool:
        """Note a batch under construction and mark its rounds "releasing"; False if one of them is not "open" or
        "held": another replica was first. A batch that was begun before and not finished is abandoned first."""

    def add_part(self, batch: str, number: int, body: bytes, mac: bytes = b"") -> None:
        """Part `number` (0, 1, ..) of the body of a batch under construction, and the builder's code beside it."""

    def finish_batch(self, batch: str, header: bytes) -> None:
        """In one transaction: the batch waits for delivery, the reports of its rounds and the secret of its order are
        deleted, the rounds are "released". What a disk may still hold of them is sealed under keys that the caller
        now erases."""

    def abandon_batch(self, batch: str) -> None:
        """Undo `begin_batch` after a crash: parts deleted, rounds "open" again if they were. Nothing was sent.
        Does nothing to a batch that was finished, and who still builds it gets StorageError on the next part."""

    def outgoing(self) -> list[OutgoingBatch]:
        """Batches not delivered yet."""

    def parts(self, batch: str) -> Iterator[bytes]:
        """The body of a batch, in its order, part by part, in bounded memory."""

    def part_macs(self, batch: str) -> dict[int, bytes]:
        """The code beside each part of the body that is there by now, of a batch in whatever state; by number."""

    def part(self, batch: str, number: int) -> bytes:
        """One part of the body; StorageError if it is not there (any more)."""

    def mark_delivered(self, batch: str) -> None:
        """The analyzer has it: mark batch and rounds "delivered", delete the body."""

    def discard_batch(self, batch: str) -> None:
        """Give up a batch that waits: its rounds are "dropped", nothing of it is left. Others stay as they are."""

    def add_faults(self, faults: dict[tuple[CampaignId, str], int]) -> None:
        """Add to the counters of refused messages, by kind."""

    def faults(self, campaign: CampaignId) -> dict[str, int]:
        """Refused messages by kind."""

    def purge(self, before: float) -> int:
        """Forget report digests and batches of rounds that have ended and were opened before this time; how many
        rows. The rounds stay, so that none is ever opened again."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class GroupTally:
    """Reports of one batch and public group, counted: everything that estimates need. Tallies add."""

    group: str  # "" without groups
    n: int
    counts: tuple[tuple[int, int], ...] = field(repr=False)  # (cell, count), cells ascending, counts above 0


@dataclass(frozen=True)
class BatchRecord:
    """A batch as the analyzer has counted it."""

    id: str
    campaign: CampaignId
    digest: str  # of the campaign file, hex
    rounds: tuple[int, ...]
    count: int  # sealed reports in the batch
    n: int  # valid ones
    counted_at: float  # whole minutes
    rejected: dict[str, int]  # by kind
    smallest: int = 0  # valid ones of the smallest crowd: one public group, under one version of the campaign
    classes: tuple[int, ...] = ()  # sealed reports of each class, where people have different epsilons


@mute
@dataclass(frozen=True)
class CountedBatch:
    """Result of one batch: tallies, quarantined entries, and for order privacy the released order."""

    batch: BatchRecord
    tallies: tuple[GroupTally, ...]
    aside: tuple[tuple[str, bytes], ...] = ()  # (kind, sealed report)
    placed: tuple[tuple[int, bytes], ...] = ()  # (roster slot, report), by slot


class AnalyzerStore(Protocol):
    def ready(self) -> bool:
        """True if a transaction can be made now."""

    def has_counted(self, batch: str) -> bool:
        """True if this batch has been counted."""

    def count(self, counted: CountedBatch) -> bool:
        """Keep what a batch leaves, in one transaction; False, and nothing kept, if it was counted before.

        Its parts, if it came in parts, are deleted. DataError, and nothing done, if another batch of one of its
        rounds was counted: a round is released once.
        """

    def expect(self, batch: str, manifest: bytes, now: float) -> bool:
        """Wait for the parts of this manifest; False, and nothing done, if the batch has come with another one, or is
        counted already."""

    def manifest(self, batch: str) -> bytes | None:
        """The manifest of a batch whose parts are waited for."""

    def arrived(self, batch: str) -> list[int]:
        """Numbers of the parts that are here."""

    def keep_part(self, batch: str, number: int, body: bytes) -> bool:
        """Keep a part; one that is here stays. False, and nothing done, if nobody waits for it (any more)."""

    def arrived_part(self, batch: str, number: int) -> bytes:
        """A part that is here; StorageError if it is not."""

    def forget_parts(self, batch: str) -> None:
        """Wait for this batch no more, and delete what has come of it."""

    def purge_parts(self, before: float) -> int:
        """The same for all batches that have been waited for since before this time; how many."""

    def batches(self, campaign: CampaignId) -> list[BatchRecord]:
        """Counted batches, by their first round."""

    def tallies(self, campaign: CampaignId, batch: str) -> list[GroupTally]:
        """Tallies of a batch, by group."""

    def reports_by_slot(self, batch: str) -> Iterator[tuple[int, bytes]]:
        """Reports of an order-private batch by roster slot."""

    def aside(self, batch: str) -> Iterator[tuple[str, bytes]]:
        """(kind, sealed report) of what was set aside from a batch, by kind."""

    def purge(self, before: float) -> int:
        """Forget what was set aside from batches counted before this time; how many rows."""

    def close(self) -> None: ...
