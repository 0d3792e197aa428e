"""What an order of a release in files is made of, so that engines draw every one of them in the same two steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.errors import DataError
from dovetail.scale.passes.rows import BETWEEN, Rows
from dovetail.scale.secrets import Secret

Keys = NDArray[np.uint64]  # (n, 2), 128 bits of a pseudorandom function of each person
Codes = NDArray[np.int64]  # (n,), numbers of public labels
Marks = tuple[NDArray[Any], ...]  # what else travels beside a report, one number of each kind per row


class Arrangement(ABC):
    """Which partition a row falls to and, inside a partition, the order of its rows.

    Laws: partitions follow one another along the release; `send` and `order` are functions of the secret and the rows
    alone, whatever the batches, attempts and the number of partitions.
    """

    parts: int
    names: tuple[str, ...]  # of the public labels that stand beside the reports; none where nothing does

    @property
    @abstractmethod
    def marks(self) -> tuple[np.dtype[Any], ...]:
        """The kinds of what travels beside a report and its key."""

    @abstractmethod
    def send(self, rows: Rows, keys: Keys, secret: Secret) -> tuple[NDArray[np.int64], Marks]:
        """The partition of each row, and its marks."""

    @abstractmethod
    def order(self, part: int, keys: Keys, marks: Marks, secret: Secret) -> tuple[NDArray[np.int64], Codes]:
        """The rows of a partition in their order, and the label at each place.

        Raises
        ------
        DataError
            Where one person stands in two rows, or other rows have come than were counted.
        """


def codes_of(names: tuple[str, ...], groups: pl.Series | None, n: int) -> Codes:
    """The number of each row's label; 0 where there are none."""
    if groups is None or not names:
        return np.zeros(n, dtype=np.int64)
    codes = groups.replace_strict(list(names), range(len(names)), default=None, return_dtype=pl.Int64)
    if codes.null_count():
        raise changed()
    return codes.to_numpy()


def labels_of(columns: tuple[str, ...], names: pl.Series) -> pl.DataFrame:
    """The public columns behind names of labels."""
    if len(columns) == 1:
        return names.alias(columns[0]).to_frame()
    split = names.str.split_exact(BETWEEN, len(columns) - 1).struct.unnest()
    return split.rename(dict(zip(split.columns, columns, strict=True)))


def changed() -> DataError:
    """The one line of a table that was not the same when it was read again."""
    return DataError("the table has changed while it was read; nothing was released.")


def refuse_twins(ordered: Keys) -> None:
    """DataError where neighbours have one key: they are one person."""
    if (ordered[1:] == ordered[:-1]).all(axis=1).any():
        raise DataError("a person stands in two rows; nothing was released.")
