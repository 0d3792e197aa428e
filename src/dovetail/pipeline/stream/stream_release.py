"""A stream as a release: what its devices spent before, which rounds left already, and what the ledger says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import polars as pl

from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.pipeline.config.build import terms
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.files.report_columns import from_columns
from dovetail.pipeline.files.table import as_text, canonical
from dovetail.pipeline.release import ReleasedTable
from dovetail.pipeline.release_entry import LedgerEntry, ReleaseRequest
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.pipeline.stream.fleet import Fleet
from dovetail.pipeline.stream.fleet_budget import FleetBudget
from dovetail.pipeline.stream.fleet_ledger import round_names
from dovetail.pipeline.stream.rounds_document import most_sent, sent_of
from dovetail.pipeline.stream.stream import Stream
from dovetail_protocol.budget import cost, round_up_to_double


@dataclass(frozen=True, eq=False)
class StreamRelease:
    """All rounds of a table as one release."""

    settings: RunConfig
    stream: Stream
    fleet: Fleet
    ledger: ReleaseLedger

    @cached_property
    def _entries(self) -> list[LedgerEntry]:
        """All releases until now; later ones make this one void."""
        return self.ledger.entries()

    @cached_property
    def _people(self) -> list[str]:
        return as_text(pl.Series(self.stream.roster)).to_list()

    @cached_property
    def _public(self) -> bytes:
        stream = self.stream
        edges = b"" if stream.edges is None else canonical(stream.edges)
        return canonical(pl.DataFrame([pl.Series("device", stream.roster), *stream.public])) + edges

    @cached_property
    def _table(self) -> bytes:
        return canonical(self.stream.rows)

    @cached_property
    def _terms(self) -> bytes:
        return terms(self.settings) + self._public

    def spent_before(self, *, new_release: bool) -> list[Fraction]:
        """Nats of each device in all releases before this one, which may have been made already."""
        made = None if new_release else self.ledger.find(self._table, self._terms, self._entries)
        earlier = [entry for entry in self._entries if made is None or entry.number < made.number]
        return self.ledger.spent(self._people, earlier)

    def due(self, budget: FleetBudget) -> pl.DataFrame:
        """Who reports in which round, which must be somebody."""
        sent = sent_of(self.stream, budget)
        if not sent.height:
            raise UnsupportedError(
                f"every device of this stream has spent its cap of {self.fleet.cap:g} nats in earlier releases, or "
                "has no turn here: nothing is left to release. A larger `promise.cap` is a weaker promise."
            )
        return sent

    def draw(self, sent: pl.DataFrame, draw: Callable[[], pl.DataFrame], *, new_release: bool) -> ReleasedTable:
        """The recorded release of this stream, or a fresh one of rounds that never left before."""
        answer = self.ledger.answer(self._request(sent), new_release=new_release, draw=draw)
        reports = from_columns(self.fleet.randomizer, answer.reports, None)
        spent = max(self.ledger.spent(self._people, self.ledger.entries()))
        total = LocalDP(
            round_up_to_double(spent),
            source=f"{len(answer.history):,} releases: what the device that spent most sent in all of them adds up",
        )
        public = self.stream.public.clear()
        return ReleasedTable(
            answer.reports, reports, public, answer.history, answer.number, answer.reproduced, total=total
        )

    def _request(self, sent: pl.DataFrame) -> ReleaseRequest:
        section, epsilon = self.settings.shuffle.groups, self.fleet.randomizer.guarantee.epsilon
        place, alpha = sent["place"].to_numpy(), self.fleet.shuffler.guarantee.alpha
        times = self.stream.rows["time"].n_unique()
        return ReleaseRequest(
            table=self._table,
            terms=self._terms,
            groups=(b"" if section is None else section.model_dump_json().encode()) + self._public,
            people=self._people,
            epsilon=round_up_to_double(cost(most_sent(sent), epsilon)),
            alpha=alpha if np.isinf(alpha) else round_up_to_double(times * Fraction(alpha)),
            n=sent.height,
            shuffler=self.settings.shuffle.shuffler,
            unit=epsilon,
            sent=np.bincount(place, minlength=len(self._people)),
            rounds=round_names(
                self.settings.data.private,
                ((self._people[who], t) for who, t in zip(place.tolist(), sent["time"].to_list(), strict=True)),
            ),
            after=max((entry.number for entry in self._entries), default=0),
        )
