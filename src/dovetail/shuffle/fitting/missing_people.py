"""Batches in which some people are missing: the same shuffler for those who are there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError
from dovetail.shuffle.fitting.fit_provenance import FitProvenance
from dovetail.shuffle.groups.connected_components import first_equal_rows
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import Places, Ranges

Present = NDArray[np.bool_]  # (n,)


def check_present(present: ArrayLike, n: int) -> Present:
    """`present` as an array of truth values (n,), at least one of them true."""
    given = np.asarray(present)
    if given.shape != (n,) or given.dtype != np.bool_:
        raise DataError(f"`present` must be {n:,} truth values, got shape {given.shape} of {given.dtype}.")
    if not given.any():
        raise DataError("`present` must hold at least one person, got nobody.")
    return given


def restrict_groups(
    groups: Groups, present: Present, provenance: FitProvenance
) -> tuple[Groups, Places, FitProvenance]:
    """The groups of the people that are present, renumbered in their order.

    Also which of the old groups they are, and the provenance that says how many lost members.
    """
    rows, old = _restrict(groups.rows, present), groups.rows.sizes
    keep, shrunk = rows.sizes >= 2, rows.sizes < old
    owners = _restrict(groups.owners, present)
    kept, owned = rows.take(keep), owners.take(keep)
    kept = kept if groups.contiguous else kept.materialize()
    first = np.flatnonzero(_firsts(kept, groups.contiguous))
    restricted = replace(
        groups,
        n=int(present.sum()),
        rows=kept.take(first) if groups.contiguous else kept.take(first).materialize(),
        owners=owned.take(first).materialize(),
        dropped=groups.dropped + int((~keep).sum()),
    )
    missing = replace(
        provenance,
        fitted=groups.n if provenance.fitted is None else provenance.fitted,
        shrunken=provenance.shrunken + int(shrunk.sum()),
        dissolved=provenance.dissolved + int((~keep).sum()),
    )
    return restricted, np.flatnonzero(keep)[first], missing


def _restrict(rows: Ranges, present: Present) -> Ranges:
    """Rows without the people that are missing; people are renumbered."""
    here = present[rows.people]
    before = np.concatenate(([0], np.cumsum(here)))
    number = (np.cumsum(present) - 1).astype(np.int32)
    return Ranges(number[rows.people[here]], before[rows.starts], before[rows.stops])


def _firsts(rows: Ranges, contiguous: bool) -> NDArray[np.bool_]:
    """Which rows are not the same as an earlier one."""
    if contiguous:
        pairs = np.column_stack((rows.starts, rows.stops))
        first = np.zeros(len(rows), dtype=np.bool_)
        first[np.unique(pairs, axis=0, return_index=True)[1]] = True
        return first
    return np.asarray(first_equal_rows(rows) == np.arange(len(rows)))
