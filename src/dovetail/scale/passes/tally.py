"""Counting what is published: tallies of released files add."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from dovetail.core.errors import DataError, OutputError
from dovetail.core.estimate import Tally
from dovetail.pipeline.files.report_columns import Analyst, from_columns
from dovetail.scale.supported import estimator_of


@dataclass(frozen=True)
class TallyFile:
    """The tally (groups, width) of the reports of one file.

    Parameters
    ----------
    group : column of public groups beside the reports, or None
    groups : their names, in order
    """

    randomizer: Analyst
    categories: tuple[str, ...] | None
    group: str | None
    groups: tuple[str, ...]

    def __call__(self, file: Path) -> Tally:
        try:
            table = pl.read_parquet(file)
            reports = from_columns(self.randomizer, table, None if self.categories is None else list(self.categories))
        except (pl.exceptions.PolarsError, OSError, DataError):
            raise OutputError(f"{file}: is damaged; restore it from a backup.") from None
        labels = np.zeros(len(reports), dtype=np.int64)
        if self.group is not None:
            labels = table[self.group].replace_strict(
                list(self.groups), range(len(self.groups)), return_dtype=pl.Int64
            ).to_numpy()  # fmt: skip
        return estimator_of(self.randomizer, max(1, len(self.groups))).tally(reports, labels)
