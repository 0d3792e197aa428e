"""An attack on a table whose truth is known: the collection, who is attacked, and what the attacker knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.pipeline.collection import Collection
from dovetail.pipeline.config.build import build_collection
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.config.sections import DataSection, RandomizeSection, ShuffleSection
from dovetail.pipeline.evaluate.attacks import ColumnKnowledge
from dovetail.pipeline.files.table_reader import READ_TABLE, Read

_ROW = "row"


@mute
@dataclass(frozen=True, eq=False)
class AttackExperiment:
    """A collection under attack.

    Parameters
    ----------
    collection : Collection of categories
    similar : column names
        What the attacker knows besides the columns of the groups.
    reach : float, optional
        r*, within which the attacker looks, where it is not the radius of the groups.
    """

    collection: Collection
    similar: list[str]
    reach: float | None = None

    @classmethod
    def of(
        cls, path: str, *, private: str, person: str | None, similar: list[str], randomize: RandomizeSection,
        shuffle: ShuffleSection, reach: float | None = None, categories: list[str] | None = None,
        beside: Sequence[str] = (), read: Read = READ_TABLE, rng: Entropy,
    ) -> Self:  # fmt: skip
        """Read the table and build everything.

        Parameters
        ----------
        categories : those that the reports were made for; default: those of the table
        beside : public columns to keep besides
        read : how the table is read
        """
        table = read(path)
        if person is None:
            if _ROW in table.columns:
                raise ParameterError(f"{path}: has a column {_ROW!r}; name the column of people with --person.")
            table, person = table.with_row_index(_ROW, offset=1), _ROW
        near = [] if shuffle.groups is None else shuffle.groups.columns
        public = [name for name in dict.fromkeys([*near, *similar, *beside]) if name != person]
        data = DataSection(private=private, person=person, public=public, categories=categories)
        settings = RunConfig(schema_version=1, mode="rehearsal", data=data, randomize=randomize, shuffle=shuffle)
        if reach is not None and (shuffle.groups is None or shuffle.groups.nearest is not None):
            raise ParameterError("--reach goes with groups of --labels, or of --points with --radius.")
        return cls(build_collection(settings, rng, table=table), similar, reach)

    @property
    def randomizer(self) -> FrequencyRandomizer:
        """What randomizes each value."""
        randomizer = self.collection.randomizer
        assert isinstance(randomizer, FrequencyRandomizer)  # the table has categories
        return randomizer

    @property
    def names(self) -> pl.Series:
        """Of the people (n,), in the order of the collection; row numbers from 1 where the table names nobody."""
        return self.collection.survey.people.to_series()

    def knowledge(self, seen: Any = None) -> ColumnKnowledge:
        """What the attacker knows about everybody; `seen` is a released batch to learn from."""
        groups = self.collection.groups
        if groups is not None and self.reach is not None:
            groups = groups.model_copy(update={"radius": self.reach})
        return ColumnKnowledge(self.collection.survey, groups, self.similar, seen=seen)

    def places_of(self, people: list[str]) -> NDArray[np.int64]:
        """Where the named people stand in the collection."""
        found = pl.Series(people).replace_strict(
            self.names.cast(pl.String), range(self.collection.n), default=None, return_dtype=pl.Int64
        )
        if found.null_count():
            raise DataError(f"nobody is called {people[int(found.is_null().arg_true()[0])]!r}; see --person.")
        return found.to_numpy().astype(np.int64)
