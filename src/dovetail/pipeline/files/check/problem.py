"""One problem of a table: what, where, what to do, and whether the written configuration does it already."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import polars as pl

from dovetail.pipeline.files.table import rows_of


class Status(StrEnum):
    """What a problem does to `run` with the written configuration."""

    STOPS = "stops"  # run refuses, or would give somebody away, until a person decides
    CONFIRM = "confirm"  # the configuration assumes something that a person confirms
    SETTLED = "settled"  # the configuration takes care of it
    NOTE = "note"  # nothing refuses it; it should be known


@dataclass(frozen=True)
class Problem:
    """Nothing in it quotes a row; of the private column it names labels and counts at most."""

    what: str
    where: str
    remedy: str
    status: Status

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {"what": self.what, "where": self.where, "remedy": self.remedy, "status": str(self.status)}


def refusal(error: Exception) -> Problem:
    """What `run` says, split into fault and remedy."""
    what, _, remedy = str(error).rstrip(".").partition("; ")
    return Problem(what, "run", remedy or "correct the table or the configuration", Status.STOPS)


def many(count: int, thing: str) -> str:
    """A number of things, such as 1 row and 2 rows."""
    return f"{count:,} {thing}{'s' * (count != 1)}"


def column_called(name: str) -> str:
    """Where a problem of a column is."""
    return f"column {name!r}"


def first_rows(wrong: pl.Series) -> str:
    """The first places of what is wrong, counted from 1 below the header."""
    places = wrong.arg_true()
    return f"row{'s' * (len(places) > 1)} {rows_of(places)}{', ..' if len(places) > 3 else ''}"


def quoted(texts: list[str], *, most: int = 4) -> str:
    """A few texts, none of them long, with letters that cannot be seen written out."""
    shown = [repr(text if len(text) <= 24 else text[:23] + "…") for text in texts[:most]]
    return ", ".join(shown) + (f" and {len(texts) - most} more" if len(texts) > most else "")
