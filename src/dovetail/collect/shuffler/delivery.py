"""From the outbox to the analyzer: sent until it is counted, with jittered back-off in between.

The analyzer counts a batch once, whatever is sent again: its id names it. A batch that it refuses is sent on all the
same, for its files may be put right; operators see it, and its owner may drop it.

A batch in parts goes by its signed manifest: the analyzer answers which parts it lacks, gets each of them by itself,
and counts when none is missing. Whatever is interrupted goes on with the parts that are missing then.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, Protocol

import httpx

from dovetail.collect.batch import IN_PARTS, listed_parts, version_of
from dovetail.collect.http import STATUS, read_problem
from dovetail.collect.logs import Log
from dovetail.collect.shuffler import rounds as batch_rule
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
        """True if the analyzer itself says that this batch is not right; waiting alone does not help."""
        return 400 <= self.status < 500 and STATUS.get(self.kind) == self.status and self.kind not in _WAITING_HELPS


class AnalyzerTransport(Protocol):
    """The way to the analyzer."""

    def send(self, batch: str, header: bytes, parts: Iterator[bytes]) -> None:
        """Return when the analyzer has counted the batch, now or before; `NotDelivered` otherwise."""

    def offer(self, batch: str, manifest: bytes) -> Sequence[int]:
        """The parts that the analyzer lacks; of none it has counted the batch, now or before."""

    def send_part(self, batch: str, number: int, body: bytes) -> None:
        """Return when the analyzer keeps this part; `NotDelivered` otherwise."""


class HttpAnalyzerTransport:
    """POST to the analyzer, streamed, or PUT, part by part; trusts the system's certificates, or SSL_CERT_FILE's.

    No proxy that the environment names is asked: a batch goes to the address that the configuration was checked for.
    """

    def __init__(self, analyzer: str, client: httpx.Client | None = None) -> None:
        self._place = f"{analyzer.rstrip('/')}/v1/batches"
        self._client = client or httpx.Client(
            timeout=httpx.Timeout(_SECONDS, connect=10.0), verify=ssl.create_default_context(), trust_env=False
        )

    def send(self, batch: str, header: bytes, parts: Iterator[bytes]) -> None:
        if self._ask("POST", self._place, chain([header], parts)) != {"batch": batch, "state": "counted"}:
            raise NotDelivered(200, "unknown")

    def offer(self, batch: str, manifest: bytes) -> Sequence[int]:
        try:
            told = self._ask("PUT", f"{self._place}/{batch}", manifest)
        except NotDelivered as error:
            if error.kind in ("not_found", "method"):  # it is of a version that knows no parts
                raise NotDelivered(STATUS["version"], "version") from None
            raise
        if told == {"batch": batch, "state": "counted"}:
            return []
        missing = _missing(told, batch)
        if not missing:
            raise NotDelivered(200, "unknown")
        return missing

    def send_part(self, batch: str, number: int, body: bytes) -> None:
        try:
            told = self._ask("PUT", f"{self._place}/{batch}/parts/{number}", body)
        except NotDelivered as error:
            if error.kind == "not_found":  # it waits for this batch no more: the next offer says why
                raise NotDelivered(STATUS["unavailable"], "unavailable") from None
            raise
        if told != {"batch": batch, "part": number, "state": "kept"}:
            raise NotDelivered(200, "unknown")

    def _ask(self, method: str, place: str, content: bytes | Iterator[bytes]) -> Any:
        """The analyzer's document; whatever else comes is `NotDelivered`."""
        try:
            answer = self._client.request(
                method, place, content=content, headers={"Content-Type": "application/octet-stream"}
            )
            if answer.status_code == 200:
                return answer.json()
        except (httpx.HTTPError, ValueError, RecursionError) as error:
            kind = "untrusted" if "CERTIFICATE_VERIFY_FAILED" in str(error) else "unreachable"
            raise NotDelivered(kind=kind) from None
        problem = read_problem(answer.content)
        raise NotDelivered(answer.status_code, problem.kind if problem and problem.kind in STATUS else "unknown")


def _missing(told: Any, batch: str) -> Sequence[int]:
    """The numbers in the answer to an offer; none where it is no such answer."""
    found = told.get("missing") if isinstance(told, dict) else None
    if told != {"batch": batch, "state": "incomplete", "missing": found} or not isinstance(found, list):
        return []
    return found if all(type(number) is int and number >= 0 for number in found) else []


class DeliveryQueue:
    """Batches that wait for the analyzer, and when each is tried next. After a restart all are due at once.

    at_once : how many parts of a batch are sent at the same time; memory holds as many.
    """

    def __init__(self, store: ShufflerStore, transport: AnalyzerTransport, rng: Entropy, at_once: int = 1) -> None:
        self._store, self._transport, self._rng, self._at_once = store, transport, rng, at_once
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
        """True if the analyzer refused this batch when it last answered."""
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
        """True if the analyzer has counted the batch."""
        try:
            if version_of(batch.header) == IN_PARTS:
                self._send_parts(batch)
            else:
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

    def _send_parts(self, batch: OutgoingBatch) -> None:
        """The parts that the analyzer lacks, and word that it has counted them."""
        missing = self._transport.offer(batch.id, batch.header)
        if len(set(missing).intersection(range(listed_parts(batch.header)))) != len(missing):
            raise NotDelivered(200, "unknown")
        for _ in self._all(partial(self._send_part, batch.id), missing):
            self._tries.pop(batch.id, None)  # it goes on: if this try fails, the next one comes soon
        if missing and self._transport.offer(batch.id, batch.header):
            raise NotDelivered(STATUS["unavailable"], "unavailable")

    def _send_part(self, batch: str, number: int) -> None:
        self._transport.send_part(batch, number, self._store.part(batch, number))

    def _all(self, send: Callable[[int], None], parts: Sequence[int]) -> Iterator[None]:
        """Send these parts, several at once; after the first that fails no other is begun."""
        if self._at_once == 1:
            yield from map(send, parts)
            return
        with ThreadPoolExecutor(self._at_once) as pool:
            try:
                yield from pool.map(send, parts)
            finally:
                pool.shutdown(cancel_futures=True)

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
