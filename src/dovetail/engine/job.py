"""One release in many files: what was asked, and the objects that it stands for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.display import mute
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.engine.fitted_orders import arrangement_of
from dovetail.engine.orders import Arrangement, Fitted, Layout, fit_line
from dovetail.engine.passes import Census, TallyFile, report_bytes
from dovetail.engine.rows import People, Reader
from dovetail.job.build import UNPUBLISHED, build_randomizer, terms
from dovetail.job.collection import Collection
from dovetail.job.config import RunConfig
from dovetail.ledger.releases import LedgerEntry, ReleaseLedger
from dovetail.shuffle.uniform import Uniform
from dovetail.table.reader import Survey
from dovetail.table.released import Analyst, describe_reports

# The order of a release in many files as its report sees it: by sizes of groups alone, never person by person.


@dataclass(frozen=True)
class EqualLabels:
    """Groups of people with equal labels in a public column, known by name and number alone."""

    column: str
    count: int

    def __repr__(self) -> str:
        return f"{self.count:,} groups of equal {self.column}"

    def covers(self, other: object) -> bool:
        """Whether they are the same."""
        return self == other


@dataclass(frozen=True, eq=False)
class StagedOrder:
    """Everybody, or everybody within a public group, in a uniformly random order.

    Parameters
    ----------
    name : of the shuffler
    n : int
    sizes : int array (g,)
        People in each group.
    keeps_places : bool
        Whether the group stands beside the reports.
    column : of the groups
    """

    name: str
    n: int
    sizes: NDArray[np.int64]
    keeps_places: bool
    column: str | None

    moves_reports = True

    @property
    def acting(self) -> StagedOrder:
        """Itself: it has decided for no other."""
        return self

    @property
    def smallest_block(self) -> int:
        """People in the smallest group."""
        return int(self.sizes.min())

    @property
    def guarantee(self) -> OrderPrivacy:
        """What the order promises."""
        where = "over all orders" if self.column is None else f"inside each group of equal {self.column}"
        return OrderPrivacy(
            0.0, None if self.column is None else EqualLabels(self.column, len(self.sizes)),
            source=f"uniform {where}, up to the advantage against AES-256: reports are sorted by keys of a "
            "pseudorandom function",
        )  # fmt: skip

    def summary(self) -> dict[str, Any]:
        """What was fitted, in public numbers."""
        groups = {} if self.column is None else {"groups": len(self.sizes), "largest_group": int(self.sizes.max())}
        return {"shuffler": self.name, "n": self.n, "alpha": 0.0, **groups}


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
