"""One release in many files: what was asked, and the objects that it stands for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.errors import ConfigError
from dovetail.pipeline.collection import Collection
from dovetail.pipeline.config.build import UNPUBLISHED, build_randomizer, terms
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.files.report_columns import Analyst, describe_reports
from dovetail.pipeline.files.table import Survey
from dovetail.pipeline.release_entry import LedgerEntry
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.scale.order import StagedOrder
from dovetail.scale.passes.census import Census
from dovetail.scale.passes.people import People
from dovetail.scale.passes.rows import Reader
from dovetail.scale.passes.tally import TallyFile

_ROWS = 1 << 20  # of a batch at most, so that a process stays small
_BYTES = 1 << 25  # of reports in a batch, and of keys and reports in a partition
_PEOPLE = 1 << 22  # of a partition of the census


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
    def group(self) -> str | None:
        """The public column whose groups are mixed apart; None where everybody is mixed."""
        groups = self.config.shuffle.groups
        return (
            self.config.data.public[0] if groups is not None and self.config.data.public == [groups.labels] else None
        )

    def reader(self, *, numbers: bool) -> Reader:
        """What encodes batches; `numbers` as `People` has it."""
        data = self.config.data
        if self.group is None:
            data = data.model_copy(update={"public": []})
        return Reader(data, People(self.key, numbers), self.group)

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
        return TallyFile(self.randomizer, self.categories, self.group, tuple(census.groups))

    def order(self, census: Census) -> StagedOrder:
        """The order of the release."""
        sizes = np.array(list(census.groups.values()) or [census.n], dtype=np.int64)
        return StagedOrder(self.config.shuffle.shuffler, census.n, sizes, self.group is not None, self.group)

    def entry(self, census: Census, ledger: ReleaseLedger, number: int) -> LedgerEntry:
        """The entry of the ledger, but for its manifest."""
        table = f"table in files: {census.n} {census.fingerprint}".encode()
        groups = self.group or "everybody"
        return LedgerEntry(
            number, ledger.fingerprint(table), ledger.fingerprint(b"in files" + terms(self.config)),
            self.randomizer.guarantee.epsilon, 0.0, ledger.fingerprint(f"in files {groups}".encode()),
            census.n, self.config.shuffle.shuffler,
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
