"""The analyzer as an object: batches in, answers out; HTTP and the simulator stand around it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO, Annotated, Literal, cast

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from pydantic import Field

from dovetail.collect.analyzer.answers import CampaignAnswers, RosterSlotEstimator
from dovetail.collect.analyzer.batch_intake import ArrivingParts, IncomingBatch, Manifest, VerifiedBatch, open_batch
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns, UnsealingProcesses
from dovetail.collect.analyzer.tokens import LiveTokens, Tokens, TokenSource
from dovetail.collect.clock import Clock, SystemClock
from dovetail.collect.files import ServerConfig
from dovetail.collect.http import Health, Refusal, tell_build
from dovetail.collect.logs import Log
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.interfaces import AnalyzerStore, CountedBatch
from dovetail.core.errors import DataError
from dovetail.table.data_section import Section, parse_section, read_toml
from dovetail_protocol.messages import Rejected

# Counters for Prometheus: batches and reports, by campaign and kind; nothing about a single report.


class AnalyzerMetrics:
    """The counters of one analyzer."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would tell the second in which the first batch came
        self._registry = CollectorRegistry()
        tell_build(self._registry)
        ProcessCollector(registry=self._registry)  # it meets whole batches only, so that nobody's report is in these
        self._batches = self._counter("batches_counted", "Batches counted.", "campaign")
        self._refused = self._counter("batches_refused", "Batches refused whole.", "kind")
        self._reports = self._counter("reports_counted", "Valid reports in counted batches.", "campaign")
        self._rejected = self._counter("reports_set_aside", "Bad reports in counted batches.", "campaign", "kind")
        self._seconds = Gauge(
            "dovetail_analyzer_last_batch_seconds", "Time to open and count the last batch.", registry=self._registry
        )

    def record_batch(self, counted: CountedBatch, seconds: float) -> None:
        """Note a batch that has been counted just now."""
        batch = counted.batch
        self._batches.labels(batch.campaign).inc()
        self._reports.labels(batch.campaign).inc(batch.n)
        for kind, number in batch.rejected.items():
            self._rejected.labels(batch.campaign, kind).inc(number)
        self._seconds.set(seconds)

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Counts what is raised inside as a refused batch of its kind."""
        try:
            yield
        except (Rejected, Refusal) as error:
            self._refused.labels(error.kind).inc()
            raise

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self._registry)

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return Counter(f"dovetail_analyzer_{name}", words, labels, registry=self._registry)


IN_MEMORY = 1 << 24  # bytes of a batch; what is more is spooled, still sealed, to a file without a name
_PIECE = 1 << 16
_DAY = 86_400.0
_LATER = 30.0  # seconds
_LOG = Log("analyzer")

State = Literal["counted"]


class Analyzer:
    """Receives batches and answers queries.

    Parameters
    ----------
    campaigns : AnalyzerCampaigns
    store : AnalyzerStore
    clock : Clock
    keep_days : float
        How long bad reports that were set aside are kept.
    slots : mapping from campaign id to RosterSlotEstimator
        Public facts on roster slots, for order-private campaigns.
    processes : UnsealingProcesses
        That open large batches; by default none but this one.
    issued : path
        Folder of issuers' signed counts, which are read at every question.
    """

    def __init__(
        self,
        campaigns: AnalyzerCampaigns,
        *,
        store: AnalyzerStore,
        clock: Clock,
        keep_days: float = 30.0,
        slots: Mapping[str, RosterSlotEstimator] | None = None,
        processes: UnsealingProcesses | None = None,
        issued: Path | None = None,
    ) -> None:
        self.campaigns, self.store, self.clock = campaigns, store, clock
        self.metrics = AnalyzerMetrics()
        self._keep_days, self._lock = keep_days, Lock()
        self.parts, self._counting = ArrivingParts(campaigns, store), set[str]()
        self._processes = processes or UnsealingProcesses()
        known = slots or {}
        self._answers = {
            id: CampaignAnswers(each, store, known.get(id), None if each.tokens is None else issued)
            for id, each in campaigns.newest.items()
        }

    def receive(self, batch: bytes | IO[bytes]) -> State:
        """Count a whole batch, given as its bytes or as an open file; Rejected if it is not right."""
        source = BytesIO(batch) if isinstance(batch, bytes) else batch
        with self.spool() as spool, self.refusals():
            arrival = IncomingBatch(self.campaigns, spool)
            for piece in _pieces(source):
                arrival.feed(piece)
            return self.count(arrival.finish())

    def offer(self, manifest: Manifest) -> list[int]:
        """The parts of a batch that are still to come; of none it has been counted, now or before."""
        batch = manifest.header.batch
        if self.store.has_counted(batch):
            self.parts.forget(batch)
            return []
        arrived = self.parts.whole(manifest)
        try:
            self._refuse_again(arrived)
        except Rejected:
            self.parts.forget(batch)
            raise
        missing = self.parts.missing(manifest, self.clock.now())
        if not missing:
            with self._counting_alone(batch):
                self.count(arrived)
        return missing

    def count(self, arrived: VerifiedBatch) -> State:
        """Open and keep a batch, once: a batch that is known already is acknowledged alike."""
        header, started = arrived.header, time.monotonic()
        with self._lock:  # batches are opened one after the other, so that memory stays bounded
            if self.store.has_counted(header.batch):
                return "counted"
            self._refuse_again(arrived)
            versions = self.campaigns.versions_of(arrived.campaign)
            with self._processes.of(versions, header.rounds[-1], header.count) as unsealed:
                counted = open_batch(arrived, unsealed, now=self.clock.now())
            try:
                if not self.store.count(counted):
                    return "counted"
            except DataError as error:  # another analyzer on the same store was first
                raise Rejected("round", str(error)) from None
        self.metrics.record_batch(counted, time.monotonic() - started)
        _LOG.info("batch counted", campaign=header.campaign, round=header.rounds[-1], batch=header.batch,
                  count=header.devices, accepted=counted.batch.n)  # fmt: skip
        return "counted"

    def answers(self, campaign: str) -> CampaignAnswers:
        """The answers about a campaign; Refusal if it is not served here."""
        if campaign not in self._answers:
            raise Refusal("not_found", "there is no such campaign here.")
        return self._answers[campaign]

    def all_answers(self) -> list[CampaignAnswers]:
        """The answers about every campaign, by id."""
        return list(self._answers.values())

    def health(self) -> Health:
        """Report if a batch could be counted now."""
        if not self.store.ready():
            return Health("the store cannot be written.")
        try:
            with self.spool() as spool:
                spool.write(bytes(_PIECE))
                spool.fileno()  # on the disk, where large batches lie
        except OSError:
            return Health("the folder for temporary files takes nothing; is its disk full?")
        return Health()

    def purge(self) -> int:
        """Forget what was set aside longer ago than `keep_days`, and batches that never came whole; how much."""
        before = self.clock.now() - self._keep_days * _DAY
        gone, incomplete = self.store.purge(before), self.store.purge_parts(before)
        if gone:
            _LOG.info("reports set aside were purged", purged=gone)
        if incomplete:
            _LOG.warning("incomplete batches were purged", purged=incomplete)
        return gone

    def spool(self, in_memory: int = IN_MEMORY) -> IO[bytes]:
        """Where a batch lies until it has arrived: sealed reports only, gone when it is closed."""
        return cast(IO[bytes], SpooledTemporaryFile(max_size=in_memory))

    def refusals(self) -> AbstractContextManager[None]:
        """A context that counts refused batches by kind."""
        return self.metrics.refusals()

    @contextmanager
    def _counting_alone(self, batch: str) -> Iterator[None]:
        """Refusal while another request counts this batch: a shuffler that has lost patience asks again."""
        if batch in self._counting:
            raise Refusal("unavailable", "this batch is being counted; come back later.", retry_after=_LATER)
        self._counting.add(batch)
        try:
            yield
        finally:
            self._counting.discard(batch)

    def _refuse_again(self, arrived: VerifiedBatch) -> None:
        """A round is released once: a second batch of its reports would let both be compared."""
        header = arrived.header
        for batch in self.store.batches(header.campaign):
            if taken := set(header.rounds) & set(batch.rounds):
                raise Rejected("round", f"round {min(taken)} of {header.campaign} has been counted already.")


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    while piece := source.read(_PIECE):
        yield piece


# The analyzer's configuration file, and the analyzer that it describes.


class RetentionSection(Section):
    """How long bad reports that were set aside are kept."""

    days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0


class AnalyzerConfig(ServerConfig):
    """`analyzer.toml`; paths in it are relative to the file."""

    listen: str = "127.0.0.1:8402"
    tokens: str | None = None  # without, nobody may query
    public_page: bool = False
    issued: str | None = None  # folder of issuers' signed counts, as `dovetail collect issued` fetches them
    workers: Annotated[int, Field(ge=1, le=1024)] = 1  # processes that open a large batch
    retention: RetentionSection = RetentionSection()


def load(path: Path) -> AnalyzerConfig:
    """Read and check a configuration; errors name the file and the key."""
    return parse_section(AnalyzerConfig, read_toml(path), name=str(path))


def assemble(config: AnalyzerConfig, folder: Path, clock: Clock | None = None) -> tuple[Analyzer, TokenSource]:
    """The analyzer of a configuration in `folder`, and the tokens of its subscribers."""
    config.require_private()
    versions = config.load_campaigns(folder)
    keys = config.load_keys(folder, "analyzer")
    campaigns = AnalyzerCampaigns.of([each for each, _ in versions], keys)
    tokens: TokenSource = Tokens(()) if config.tokens is None else LiveTokens(folder / config.tokens)
    slots = {campaign.id: RosterSlotEstimator.load(campaign, place) for campaign, place in versions}
    analyzer = Analyzer(
        campaigns,
        store=open_analyzer_store(config.store_url(folder, "analyzer")),
        clock=clock or SystemClock(),
        keep_days=config.retention.days,
        slots={id: found for id, found in slots.items() if found is not None},
        processes=UnsealingProcesses(config, folder, config.workers),
        issued=None if config.issued is None else folder / config.issued,
    )
    if (audit := config.audit_log(folder, keys)) is not None:
        known = tokens.current()
        audit.append("server started", role="analyzer", count=len(known.tokens), digest=known.fingerprint)
    return analyzer, tokens
