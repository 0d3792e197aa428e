"""From bytes to a durable report: cheap checks first, then cryptography, then the roster, then one transaction.

What a sender is told is the same for a new report and for one that is known already.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Literal

from starlette.responses import Response

from dovetail.collect.campaign.roster import MappedRoster, Roster
from dovetail.collect.http import Refusal, problem
from dovetail.collect.logs import Log, coarse
from dovetail.collect.shuffler import rounds as round_schedule
from dovetail.collect.shuffler.batches import pack
from dovetail.collect.shuffler.campaigns import CampaignRegistry, ServedVersion
from dovetail.collect.shuffler.link_key_store import RoundKey
from dovetail.collect.shuffler.rounds import RoundCache
from dovetail.collect.store.interfaces import AcceptOutcome, SealedReport, ShufflerStore
from dovetail.core.errors import StorageError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import VerifyingKey
from dovetail_protocol.messages import Envelope, Rejected, class_bytes, open_envelope, read_head

# What one device, and all senders together, may ask for; in bounded memory.


_MOST_DEVICES = 100_000
_BUSY_SECONDS = 2.0


class RateLimiter:
    """A token bucket for each device: `per_minute` messages, and as many at once.

    Only the devices heard of last are kept; one that is forgotten begins with a full bucket.
    """

    def __init__(self, per_minute: float, *, most: int = _MOST_DEVICES) -> None:
        self._rate, self._size, self._most = per_minute / 60.0, max(1.0, per_minute), most
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # tokens, as of when
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, device: bytes, now: float, *, most: float = 1.0) -> float:
        """Take a token: 0, or the seconds until there is one; with `most` = 0 only look."""
        with self._lock:
            tokens, since = self._buckets.pop(device, (self._size, now))
            tokens = min(self._size, tokens + max(0.0, now - since) * self._rate)
            taken = tokens >= 1.0
            self._buckets[device] = (tokens - most if taken else tokens, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return 0.0 if taken else (1.0 - tokens) / self._rate


class AdmissionControl:
    """Admits work while what is under way stays below `most` bytes; otherwise says when to come back."""

    def __init__(self, most: int) -> None:
        self._most, self._used, self._lock = most, 0, Lock()

    @property
    def used(self) -> int:
        return self._used

    @contextmanager
    def admit(self, size: int) -> Iterator[None]:
        """Hold `size` bytes while the work is done."""
        with self._lock:
            if self._used + size > self._most:
                raise Refusal(
                    "unavailable", "too much work is under way; come back later.", retry_after=_BUSY_SECONDS
                )
            self._used += size
        try:
            yield
        finally:
            with self._lock:
                self._used -= size


# How many messages of each kind came: for the store, and for everybody who watches in steps that tell on nobody.
#
# What is published of reports that count moves only when a round of the campaign takes no more of them, and then in
# tens: whoever knows of nine reports does not see the tenth arrive.


_OF_PEOPLE = ("accepted", "duplicate")  # what somebody's arrival in an open round moves


class MessageCounters:
    """Counts by campaign and kind; a message of no known campaign counts under ""."""

    def __init__(self) -> None:
        self._total = Counter[tuple[str, str]]()
        self._unsaved = Counter[tuple[str, str]]()  # refusals that the store has not been told yet
        self._settled = Counter[tuple[str, str]]()  # of reports that count, as of the last round's end
        self._lock = Lock()

    def count(self, campaign: str, kind: str) -> None:
        """A message came, and was accepted, known already (duplicate), or refused as `kind`."""
        with self._lock:
            self._total[campaign, kind] += 1
            if campaign and kind not in _OF_PEOPLE:
                self._unsaved[campaign, kind] += 1

    def save(self, store: ShufflerStore) -> None:
        """Add to the store's counters what is new; after a fault the numbers wait for the next time."""
        with self._lock:
            unsaved, self._unsaved = self._unsaved, Counter()
        try:
            if unsaved:
                store.add_faults(dict(unsaved))
        except Exception:
            with self._lock:
                self._unsaved.update(unsaved)
            raise

    def settle(self, campaign: str) -> None:
        """A round of the campaign is closed: what came until now may be told."""
        with self._lock:
            self._settled.update({key: self._total[key] - self._settled[key] for key in _keys(campaign)})

    def published(self) -> dict[tuple[str, str], int]:
        """Counts for everybody, in tens: refusals as of now, reports that count as of the last round's end."""
        with self._lock:
            shown = {key: count for key, count in self._total.items() if key[1] not in _OF_PEOPLE} | self._settled
        return {key: coarse(count) for key, count in sorted(shown.items()) if coarse(count)}

    def total(self) -> dict[tuple[str, str], int]:
        """Exact counts since the start, which never leave the process."""
        with self._lock:
            return dict(self._total)


def _keys(campaign: str) -> list[tuple[str, str]]:
    return [(campaign, kind) for kind in _OF_PEOPLE]


ACCEPTED = "accepted"
# "keyless": the key of its round cannot be had now; "lost": it is gone, and the round with it. Nothing was stored
StoreResult = AcceptOutcome | Literal["keyless", "lost"]
_ANY = 1 << 32  # slots, where no public table has a row for each


@dataclass(frozen=True)
class CheckedReport:
    """A report that has passed every check that needs no store."""

    campaign: Campaign
    slot: int
    envelope: Envelope = field(repr=False)


@dataclass(frozen=True)
class Reply:
    """Reply to a sender: `kind` is "accepted", or the kind of a problem."""

    kind: str
    detail: str = ""
    retry_after: float | None = None


_LOG = Log("shuffler.ingest")
_REPLIES: dict[StoreResult, Reply] = {
    "new": Reply(ACCEPTED),
    "duplicate": Reply(ACCEPTED),
    "elsewhere": Reply(
        "content", "its report id has come before, for another campaign; it counts for that one alone."
    ),
    "second": Reply("second_report", "the device has another report in this round; each device counts once."),
    "closed": Reply("late", "the round is closed, and takes no more reports."),
    "keyless": Reply("unavailable", "the round cannot take reports now; come back later."),
    "lost": Reply("lost", "the shuffler has lost the key of this round, which counts no reports; later rounds do."),
}
_COUNTED_AS: dict[StoreResult, str] = {
    "new": ACCEPTED,
    "duplicate": "duplicate",
    "elsewhere": "content",
    "second": "second_report",
    "closed": "late",
    "keyless": "unavailable",
    "lost": "lost",
}


def refusal(answer: Reply) -> Response:
    """The problem document of an answer that refuses."""
    return problem(answer.kind, answer.detail, retry_after=answer.retry_after)


class ReportIntake:
    """The way of a message into the store, in two steps: `check` (cryptography, any thread) and `commit`.

    slots : rows of the public table of each order-private campaign; devices beyond it are not taken.
    memory : seconds for which digests of report ids are kept; later a report could come again unnoticed.
    """

    def __init__(
        self,
        campaigns: CampaignRegistry,
        rounds: RoundCache,
        counters: MessageCounters,
        *,
        roster: Callable[[], Roster | MappedRoster] | None,
        slots: Mapping[str, int],
        rates: RateLimiter,
        memory: float,
    ) -> None:
        self._campaigns, self._rounds, self._counters = campaigns, rounds, counters
        self._roster, self._slots, self._rates = roster, slots, rates
        self._memory = memory

    def check(self, message: bytes, now: float, quiet: bool = False) -> CheckedReport | Reply:
        """The report of a message, or why it is refused.

        quiet : whether the sender is not told that its device is unknown, or its signature wrong. Then signatures of
            unknown devices are not verified; else the time to an answer would tell whose keys are in the roster.
        """
        campaign = ""
        try:
            version = self._version(message, now)
            campaign = version.campaign.id
            self._check_cheaply(version, message, now)
            return self._check(version, message, now, quiet)
        except Rejected as error:
            answer = Reply(error.kind, str(error))
        except Refusal as error:
            answer = Reply(error.kind, error.detail, error.retry_after)
        self._counters.count(campaign, answer.kind)
        return answer

    def commit(self, reports: Sequence[CheckedReport], now: float) -> list[Reply]:
        """Make these reports durable in one transaction, and say for each what its sender is told."""
        outcomes = self._store(reports, now)
        closed = [place for place, outcome in enumerate(outcomes) if outcome == "closed"]
        if closed:  # perhaps only since we last looked at the rounds: where do these reports belong now?
            for campaign in {reports[place].campaign.id for place in closed}:
                self._rounds.refresh(campaign)
            again = self._store([reports[place] for place in closed], now)
            for place, outcome in zip(closed, again, strict=True):
                outcomes[place] = outcome
        for report, outcome in zip(reports, outcomes, strict=True):
            self._counters.count(report.campaign.id, _COUNTED_AS[outcome])
        return [_REPLIES[outcome] for outcome in outcomes]

    def _version(self, message: bytes, now: float) -> ServedVersion:
        head = read_head(message)
        version = self._campaigns.versions.get(head.digest)
        if version is None or not version.takes_reports(now):
            raise Rejected("campaign", "the report was made for a campaign, or a version of it, not served here.")
        return version

    def _check_cheaply(self, version: ServedVersion, message: bytes, now: float) -> None:
        """Check what needs no cryptography."""
        campaign, round = version.campaign, read_head(message).round
        if len(message) != version.length:
            raise Rejected("malformed", f"a message of {campaign.id} has {version.length} bytes.")
        if not 1 <= round <= campaign.schedule.count:
            raise Rejected("round", f"{campaign.id} has the rounds 1 to {campaign.schedule.count}.")
        if round > round_schedule.current_round(campaign, self._rounds.of(campaign.id), now) + 1:
            raise Refusal("too_early", "this round has not begun; send the report again when it runs.")

    def _check(self, version: ServedVersion, message: bytes, now: float, quiet: bool) -> CheckedReport:
        roster = self._roster_now(version.campaign)
        find = partial(self._slot, version.campaign, roster)
        envelope = open_envelope(version.campaign, message, version.opener, find if quiet else id)
        slot = find(envelope.device)
        if roster is not None and roster.is_revoked(envelope.device):
            raise Refusal("revoked_device", "the device has been revoked, and its reports are not taken.")
        wait = self._rates.take(envelope.device.public, now)
        if wait > 0.0:
            raise Refusal("rate_limited", "the device sends too often; come back later.", retry_after=wait)
        return CheckedReport(version.campaign, slot, envelope)

    def _roster_now(self, campaign: Campaign) -> Roster | MappedRoster | None:
        """The roster; None where the campaign asks for none, as behind tokens."""
        if campaign.promise.authentication != "roster":
            return None
        assert self._roster is not None  # the shuffler does not start without one
        return self._roster()

    def _slot(self, campaign: Campaign, roster: Roster | MappedRoster | None, device: VerifyingKey) -> int:
        """The device's public slot; 0 for everybody where there is no roster."""
        if roster is None:
            return 0
        slot = roster.slot(device)
        if slot is None or slot >= self._slots.get(campaign.id, _ANY):
            raise Refusal("unknown_device", "the device is not in the roster of this campaign.")
        return slot

    def _store(self, reports: Sequence[CheckedReport], now: float) -> list[StoreResult]:
        keys: dict[tuple[str, int], RoundKey | None] = {}  # looked up once for each transaction, and never kept
        sealed = [self._seal(report, keys, now) for report in reports]
        outcomes = iter(self._rounds.store.accept([report for report in sealed if report is not None]))
        found: list[StoreResult] = ["keyless" if report is None else next(outcomes) for report in sealed]
        return [self._explain(report, outcome) for report, outcome in zip(reports, found, strict=True)]

    def _explain(self, report: CheckedReport, outcome: StoreResult) -> StoreResult:
        """Of a closed round, whether it is lost: nobody has had a chance there, and sending again is no use."""
        round = self._rounds.of(report.campaign.id).get(report.envelope.round)
        lost = round is not None and round.number in self._rounds.lost(report.campaign.id)
        return "lost" if outcome == "closed" and lost else outcome

    def _seal(
        self, report: CheckedReport, keys: dict[tuple[str, int], RoundKey | None], now: float
    ) -> SealedReport | None:
        """The report under the key of the round where it counts; None if that key cannot be had.

        One that counts nowhere goes to round 0, which is never open: the store recognises a retry, and takes nothing.
        """
        id, envelope = report.campaign.id, report.envelope
        digest = sha256(envelope.report_id).digest()
        rounds, known = self._rounds.of(id), now - self._memory
        number = round_schedule.receiving_round(report.campaign, envelope.round, rounds, now=now, known=known)
        if isinstance(number, str) or self._rounds.may_have_left(report.campaign, envelope.round, number):
            return SealedReport(id, 0, bytes(32), digest, b"")
        try:
            if (id, number) not in keys:
                keys[id, number] = self._rounds.key(id, number, now)
        except StorageError as error:  # of one round: the reports of others must not suffer
            _LOG.fault("a round has lost its key", error, campaign=id, round=number)
            return None
        key = keys[id, number]
        if key is None:  # released while we looked
            return SealedReport(id, 0, bytes(32), digest, b"")
        tag = key.tag(envelope.device.public)
        place = bytes([envelope.place] * class_bytes(report.campaign))
        packed = pack(envelope.device.public, report.slot, envelope.inner, place)
        return SealedReport(id, number, tag, digest, key.seal(packed, tag))


# One thread for all senders: it checks what has come, and what has passed goes into one transaction. Cryptography of
# Python holds the interpreter, so that several threads would only wait for each other. A transaction costs as much as
# ten reports do: after one for several messages the next begins some milliseconds later, or once enough others wait.


Check = Callable[[bytes, bool], CheckedReport | Reply]
Commit = Callable[[Sequence[CheckedReport]], list[Reply]]
PendingReply = Future[Reply]
_MOST = 200  # messages before a transaction: who has passed waits for the others to be checked
_ENOUGH = 32  # messages for which a transaction is worth its cost at once
_PACE = 0.02  # seconds between the beginnings of transactions where many send, and fewer messages than that wait


class GroupCommit:
    """A thread that takes groups of messages; each sender is told once the message is refused, or durable."""

    def __init__(self, check: Check, commit: Commit) -> None:
        self._check, self._commit = check, commit
        self._queue: SimpleQueue[tuple[bytes, bool, PendingReply] | None] = SimpleQueue()
        self._enough = Event()
        self._thread = Thread(target=self._run, name="intake", daemon=True)
        self._thread.start()

    def submit(self, message: bytes, told: PendingReply, quiet: bool = False) -> None:
        """Take a message, and fulfil `told` with the reply; `quiet` is for `check`."""
        self._queue.put((message, quiet, told))
        if self._queue.qsize() >= _ENOUGH:
            self._enough.set()

    def stop(self) -> None:
        """Take what was submitted before, then end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        soonest, last = 0.0, False
        while not last and (first := self._queue.get()) is not None:
            self._enough.clear()  # before the look: what is put from now on sets it again
            if self._queue.qsize() < _ENOUGH:
                self._enough.wait(max(0.0, soonest - monotonic()))
            group, began = [first], monotonic()
            while len(group) < _MOST and not last and not self._queue.empty():
                found = self._queue.get()
                if found is None:
                    last = True
                else:
                    group.append(found)
            self._take(group)
            soonest = began + _PACE if len(group) > 1 else 0.0

    def _take(self, group: Sequence[tuple[bytes, bool, PendingReply]]) -> None:
        """Tell those who are refused, then commit the others' reports."""
        passed = list[tuple[CheckedReport, PendingReply]]()
        for message, quiet, told in group:
            try:
                found = self._check(message, quiet)
            except Exception as error:
                told.set_exception(error)
                continue
            if isinstance(found, Reply):
                told.set_result(found)
            else:
                passed.append((found, told))
        try:
            replies = self._commit([report for report, _ in passed])
        except Exception as error:
            for _, told in passed:
                told.set_exception(error)
            return
        for reply, (_, told) in zip(replies, passed, strict=True):
            told.set_result(reply)
