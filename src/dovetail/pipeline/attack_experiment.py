"""A table whose truth is known, and the mechanism that an attack on it faces, from what a command line says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.stages import FrequencyRandomizer, Shuffler
from dovetail.pipeline.config.build import build_randomizer
from dovetail.pipeline.config.run_config import parse_config
from dovetail.pipeline.config.sections import GroupsSection
from dovetail.pipeline.evaluate.attacks import Knowledge
from dovetail.pipeline.evaluate.evaluate import fitted
from dovetail.pipeline.files.table import Survey, read_survey, read_table

_ROW = "row"


@dataclass(frozen=True, eq=False)
class Scene:
    """People in random order, what randomizes and shuffles their values, and what is known about them.

    Parameters
    ----------
    survey : Survey
    randomizer : FrequencyRandomizer
    shuffler : Shuffler
    groups : GroupsSection or None
        Who is near, as far as the attacker reaches.
    similar : column names
        What the attacker knows besides.
    names : series (n,)
        Of the people, in the order of the survey; row numbers from 1 where the table names nobody.
    """

    survey: Survey
    randomizer: FrequencyRandomizer
    shuffler: Shuffler
    groups: GroupsSection | None
    similar: list[str]
    names: pl.Series

    @classmethod
    def of(
        cls,
        path: str,
        *,
        private: str,
        person: str | None,
        similar: list[str],
        randomize: dict[str, Any],
        shuffle: dict[str, Any],
        reach: float | None = None,
        categories: list[str] | None = None,
        beside: Sequence[str] = (),
        rng: Entropy,
    ) -> Scene:
        """Read the table and build everything.

        Parameters
        ----------
        randomize, shuffle : the sections of a configuration
        similar : columns that the attacker knows besides those of the groups
        reach : r*, where it is not the radius of the groups
        categories : those that the reports were made for; default: those of the table
        beside : public columns to keep besides
        """
        table = read_table(path)
        if person is None:
            if _ROW in table.columns:
                raise ParameterError(f"{path}: has a column {_ROW!r}; name the column of people with --person.")
            table, person = table.with_row_index(_ROW, offset=1), _ROW
        groups = shuffle.get("groups") or {}
        near = [groups["labels"]] if "labels" in groups else list(groups.get("points", ()))
        public = [name for name in dict.fromkeys([*near, *similar, *beside]) if name != person]
        data = {"private": private, "person": person, "public": public, "categories": categories}
        raw = {"schema_version": 1, "mode": "rehearsal", "data": data, "randomize": randomize, "shuffle": shuffle}
        settings = parse_config(raw, name="options")
        survey = read_survey(settings.data, rng, table=table, numbers=settings.numbers)
        randomizer = build_randomizer(settings, survey.categories)
        assert isinstance(randomizer, FrequencyRandomizer)  # the configuration has been checked
        shuffler, section = fitted(settings.shuffle.shuffler, settings, survey), settings.shuffle.groups
        if reach is not None:
            if section is None or section.nearest is not None:
                raise ParameterError("--reach goes with groups of --labels, or of --points with --radius.")
            section = section.model_copy(update={"radius": reach})
        return cls(survey, randomizer, shuffler, section, similar, survey.people.to_series())

    @property
    def known(self) -> Knowledge:
        """What the attacker knows about everybody."""
        return Knowledge(self.survey, self.groups, self.similar)

    def places_of(self, people: list[str]) -> NDArray[np.int64]:
        """Where the named people stand in the survey."""
        found = pl.Series(people).replace_strict(
            self.names.cast(pl.String), range(self.survey.n), default=None, return_dtype=pl.Int64
        )
        if found.null_count():
            raise DataError(f"nobody is called {people[int(found.is_null().arg_true()[0])]!r}; see --person.")
        return found.to_numpy().astype(np.int64)
