"""Counters for Prometheus: batches and reports, by campaign and kind; nothing about a single report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest

from dovetail.collect.http.problems import Refusal
from dovetail.collect.store.interfaces import CountedBatch
from dovetail_protocol.wire.message import Rejected


class AnalyzerMetrics:
    """The counters of one analyzer."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would tell the second in which the first batch came
        self._registry = CollectorRegistry()
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
