"""One release in many files: what was asked, and the objects that it stands for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.display.display import mute
from dovetail.core.errors import ConfigError
from dovetail.pipeline.collection import Collection
from dovetail.pipeline.config.build import UNPUBLISHED, build_randomizer, terms
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.files.report_columns import Analyst, describe_reports
from dovetail.pipeline.files.table import Survey
from dovetail.pipeline.release_entry import LedgerEntry
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.scale.order import StagedOrder
from dovetail.scale.orders.arrangement import Arrangement
from dovetail.scale.orders.fitted import arrangement_of
from dovetail.scale.orders.line import Fitted, fit_line
from dovetail.scale.orders.uniform import Layout
from dovetail.scale.passes.census import Census
from dovetail.scale.passes.draw import report_bytes
from dovetail.scale.passes.people import People
from dovetail.scale.passes.rows import Reader
from dovetail.scale.passes.tally import TallyFile
from dovetail.shuffle.uniform import Uniform

_ROWS = 1 << 20  # of a batch at most, so that a process stays small
_BYTES = 1 << 25  # of reports in a batch, and of keys and reports in a partition
_PEOPLE = 1 << 22  # of a partition of the census

Order = StagedOrder | Fitted


@mute
@dataclass(frozen=True)
class Job:
    """A release as a configuration asks for it.

    Parameters
    ----------
    config : RunConfig
    key : bytes
        Of the release ledger.
    """

    config: RunConfig
    key: bytes

    @cached_property
    def categories(self) -> tuple[str, ...] | None:
        """Names of the symbols; None for numbers."""
        declared = self.config.data.categories
        return None if declared is None else tuple(declared)

    @cached_property
    def randomizer(self) -> Analyst:
        """What every person answers through."""
        return build_randomizer(self.config.randomize, self.config.data, self.categories)

    @property
    def columns(self) -> tuple[str, ...]:
        """The public columns that stand beside the reports; none where everybody is mixed."""
        groups, public = self.config.shuffle.groups, self.config.data.public
        if self.config.shuffle.shuffler == Uniform.name or groups is None:
            return ()
        return tuple(public) if sorted(public) == sorted(groups.columns) else ()

    @property
    def group(self) -> str | None:
        """The one public column whose labels groups are made of."""
        return self.columns[0] if len(self.columns) == 1 else None

    def reader(self, *, numbers: bool) -> Reader:
        """What encodes batches; `numbers` as `People` has it."""
        data = self.config.data.model_copy(update={"public": list(self.columns)})
        measured = tuple(name for name in self.config.numbers if name in self.columns)
        return Reader(data, People(self.key, numbers), self.columns, measured)

    def rows(self, report_bytes: int) -> int:
        """Rows of a batch."""
        return max(1, min(_ROWS, _BYTES // max(8, report_bytes)))

    def parts(self, n: int, report_bytes: int) -> int:
        """Partitions of n reports."""
        return max(1, -(-n * (16 + report_bytes) // _BYTES))

    @staticmethod
    def people_parts(n: int) -> int:
        """Partitions of n people."""
        return max(1, -(-n // _PEOPLE))

    def tally(self, census: Census) -> TallyFile:
        """What counts the reports of a file."""
        return TallyFile(self.randomizer, self.categories, self.group, tuple(census.groups) if self.group else ())

    def order(self, census: Census) -> Order:
        """The order of the release, fitted to the public labels where it is not uniform."""
        kind, shuffle = arrangement_of(self.config.shuffle.shuffler), self.config.shuffle
        if kind is not None:
            return fit_line(shuffle, self.columns, census.groups)
        sizes = np.array(list(census.groups.values()) or [census.n], dtype=np.int64)
        return StagedOrder(shuffle.shuffler, census.n, sizes, self.group is not None, self.group)

    def layout(self, census: Census, order: Order, *, parts: int | None = None) -> Arrangement:
        """What tasks need to know of the order, in partitions that fit into memory or in about so many."""
        wanted = self.parts(census.n, report_bytes(self.randomizer)) if parts is None else parts
        kind = arrangement_of(order.name)
        if isinstance(order, Fitted) and kind is not None:
            return kind.of(order, wanted)
        return Layout(census.n, wanted, census.groups)

    def entry(self, census: Census, ledger: ReleaseLedger, number: int) -> LedgerEntry:
        """The entry of the ledger, but for its manifest."""
        table = f"table in files: {census.n} {census.fingerprint}".encode()
        section, kind = self.config.shuffle, arrangement_of(self.config.shuffle.shuffler)
        groups, alpha = f"{json.dumps(self.columns)} {census.grouping}", 0.0  # of these people, in these groups
        if kind is not None and section.groups is not None:  # budgets add for the same groups: in the same table
            groups, alpha = f"{section.groups.model_dump_json()} {census.fingerprint}", section.alpha or 0.0
        return LedgerEntry(
            number, ledger.fingerprint(table), ledger.fingerprint(b"in files" + terms(self.config)),
            self.randomizer.guarantee.epsilon, alpha, ledger.fingerprint(f"in files {groups}".encode()),
            census.n, section.shuffler,
        )  # fmt: skip

    def collection(self, census: Census) -> Collection:
        """The collection as reports describe it: nobody's value is in it."""
        config, data = self.config, self.config.data
        nobody = np.broadcast_to(np.int64(0), (census.n,))
        public = pl.DataFrame(schema=dict.fromkeys(data.public, pl.String))
        survey = Survey(nobody, public, self.categories, public.clear(), public.select([]))
        honest = config.promise.honest
        if honest is not None and honest > census.n:
            raise ConfigError(
                f"`promise.honest` must be at most the {census.n:,} people of the table, got {honest:,}."
            )
        return Collection(
            survey, self.randomizer, None, config.shuffle.groups, delta=config.promise.delta, honest=honest,
            private=data.private, title=config.title or "",
            asked=config.model_dump(mode="json", exclude={"data": UNPUBLISHED, "seed": True}),
        )  # fmt: skip

    def description(self) -> str:
        """What a later stage must know to read the files; it travels inside each."""
        shuffle: Any = self.config.shuffle.model_dump(mode="json")
        return json.dumps(describe_reports(self.randomizer, self.config.data.categories, "device", shuffle=shuffle))
