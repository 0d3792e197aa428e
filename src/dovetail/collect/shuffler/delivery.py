"""From the outbox to the analyzer: sent until it is counted, with jittered back-off in between.

The analyzer counts a batch once, whatever is sent again: its id names it. A batch that it refuses is sent on all the
same, for its files may be put right; operators see it, and its owner may drop it.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from itertools import chain
from typing import Protocol

import httpx

from dovetail.collect.http.problems import STATUS, read_problem
from dovetail.collect.logs import Log
from dovetail.collect.shuffler.rounds import batch_rule
from dovetail.collect.store.interfaces import CampaignId, OutgoingBatch, ShufflerStore
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DovetailError

_LOG = Log("shuffler.delivery")
_FIRST, _LONGEST = 1.0, 300.0  # seconds between tries
_WAITING_HELPS = ("timeout", "rate_limited")
_SECONDS = 600.0  # for the analyzer to count a batch: a million reports take about a minute and a half


class NotDelivered(DovetailError):
    """The analyzer has not said that it counted the batch.

    status : what it answered, 0 for nothing. kind : of its problem; "unreachable", or "untrusted" for a certificate.
    """

    def __init__(self, status: int = 0, kind: str = "unreachable") -> None:
        super().__init__(f"the analyzer has not counted the batch (answer {status}, {kind}).")
        self.status, self.kind = status, kind

    @property
    def refused(self) -> bool:
        """Whether the analyzer itself says that this batch is not right; waiting alone does not help."""
        return 400 <= self.status < 500 and STATUS.get(self.kind) == self.status and self.kind not in _WAITING_HELPS


class AnalyzerTransport(Protocol):
    """The way to the analyzer."""

    def send(self, batch: str, header: bytes, parts: Iterator[bytes]) -> None:
        """Return when the analyzer has counted the batch, now or before; `NotDelivered` otherwise."""


class HttpAnalyzerTransport:
    """POST to the analyzer, streamed; trusts the system's certificates, or those of SSL_CERT_FILE."""

    def __init__(self, analyzer: str, client: httpx.Client | None = None) -> None:
        self._place = f"{analyzer.rstrip('/')}/v1/batches"
        self._client = client or httpx.Client(
            timeout=httpx.Timeout(_SECONDS, connect=10.0), verify=ssl.create_default_context()
        )

    def send(self, batch: str, header: bytes, parts: Iterator[bytes]) -> None:
        try:
            answer = self._client.post(
                self._place,
                content=chain([header], parts),
                headers={"Content-Type": "application/octet-stream"},
            )
            counted = answer.status_code == 200 and answer.json() == {"batch": batch, "state": "counted"}
        except (httpx.HTTPError, ValueError) as error:
            kind = "untrusted" if "CERTIFICATE_VERIFY_FAILED" in str(error) else "unreachable"
            raise NotDelivered(kind=kind) from None
        if not counted:
            problem = read_problem(answer.content)
            raise NotDelivered(answer.status_code, problem.kind if problem and problem.kind in STATUS else "unknown")


class DeliveryQueue:
    """What waits for the analyzer, and when each batch is tried next. After a restart everything is due at once."""

    def __init__(self, store: ShufflerStore, transport: AnalyzerTransport, rng: Entropy) -> None:
        self._store, self._transport, self._rng = store, transport, rng
        self._tries: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._refused: dict[str, tuple[OutgoingBatch, str]] = {}

    def deliver(self, now: float) -> None:
        """Send the batches that are due; an error of one of them is raised when all others had their turn."""
        faults = list[DovetailError]()
        for batch in self.waiting(now):
            try:
                self._deliver(batch, now)
            except DovetailError as error:  # such as one that another replica has delivered
                self.later(batch.id, now)
                faults.append(error)
        if faults:
            raise faults[0]

    def _deliver(self, batch: OutgoingBatch, now: float) -> None:
        event: batch_rule.RoundEvent = "delivered" if self.send(batch) else "failed"
        row = batch_rule.find_transition("released", event)
        assert row is not None
        if "forget" in row.effects:
            self.forget(batch.id)
        if "retry later" in row.effects:
            self.later(batch.id, now)

    def refuses(self, batch: str | None) -> bool:
        """Whether the analyzer refused this batch when it last answered."""
        return batch in self._refused

    def refused_rounds(self) -> dict[CampaignId, dict[int, str]]:
        """Rounds whose batch the analyzer refuses, with the kind of its problem, by campaign."""
        found: dict[CampaignId, dict[int, str]] = {}
        for batch, kind in list(self._refused.values()):
            found.setdefault(batch.campaign, {}).update(dict.fromkeys(batch.rounds, kind))
        return found

    def waiting(self, now: float) -> list[OutgoingBatch]:
        """The batches that are to be sent now."""
        found = self._store.outgoing()
        for batch in {*self._tries, *self._due, *self._refused}.difference(batch.id for batch in found):
            self._clear(batch)  # another process has delivered it, or given it up
        return [batch for batch in found if batch.state == "waiting" and self._due.get(batch.id, now) <= now]

    def send(self, batch: OutgoingBatch) -> bool:
        """Whether the analyzer has counted the batch."""
        try:
            self._transport.send(batch.id, batch.header, self._store.parts(batch.id))
        except NotDelivered as error:
            _LOG.warning(
                "batch not delivered", campaign=batch.campaign, batch=batch.id, status=error.status, kind=error.kind
            )
            if error.refused:
                self._refused[batch.id] = (batch, error.kind)
            elif error.status:  # it says something else now
                self._refused.pop(batch.id, None)
            return False
        _LOG.info("batch delivered", campaign=batch.campaign, batch=batch.id)
        return True

    def later(self, batch: str, now: float) -> None:
        """Try a batch again after a back-off."""
        self._tries[batch] = self._tries.get(batch, 0) + 1
        self._due[batch] = now + backoff(self._tries[batch], self._rng)

    def forget(self, batch: str) -> None:
        """The analyzer has counted the batch."""
        self._store.mark_delivered(batch)
        self._clear(batch)

    def discard(self, batch: str) -> None:
        """The owner gives the batch up."""
        self._store.discard_batch(batch)
        self._clear(batch)

    def _clear(self, batch: str) -> None:
        self._tries.pop(batch, None)
        self._due.pop(batch, None)
        self._refused.pop(batch, None)


def backoff(tries: int, rng: Entropy) -> float:
    """Seconds until the next try: uniform up to a bound that doubles each time, from 1 second to 5 minutes.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> all(0.0 < backoff(3, simulation(seed)) <= 4.0 for seed in range(20))
    True
    """
    bound = min(_LONGEST, _FIRST * 2.0 ** min(tries - 1, 20))
    return bound * (int(rng.below(1 << 20, 1)[0]) + 1) / (1 << 20)
