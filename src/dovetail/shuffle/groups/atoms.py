r"""Atoms: people whom no group tells apart, so that their order among themselves is free.

.. math:: i \sim j \iff \{G : i \in G\} = \{G : j \in G\} \ne \emptyset
"""

import numpy as np

from dovetail.shuffle.groups.connected_components import first_equal_rows
from dovetail.shuffle.groups.ranges import Places, Ranges

Codes = Places  # (n,), 0.. without gaps


def atoms(rows: Ranges, n: int, *, contiguous: bool) -> Codes:
    """Atom of each of n people, numbered 0.. in the order of their first member; see `Groups.atoms`.

    `contiguous` rows are windows of a list of everybody. O(members of all rows), or O(n log n) for windows.
    Fingerprints find the candidates, comparison confirms them.
    """
    same = _of_windows(rows, n) if contiguous else first_equal_rows(rows.transpose(n))
    alone = np.flatnonzero(~rows.mask(n))
    same[alone] = alone
    leads = np.asarray(same == np.arange(n))
    return np.asarray((np.cumsum(leads) - 1)[same])


def _of_windows(rows: Ranges, n: int) -> Places:
    """First member of the run of each person; a run ends where a window begins or ends."""
    cut = np.zeros(n + 1, dtype=np.bool_)
    cut[rows.starts] = cut[rows.stops] = cut[0] = True
    run = np.cumsum(cut[:n]) - 1
    first = np.full(int(run[-1]) + 1, n, dtype=np.int64)
    np.minimum.at(first, run, rows.people)
    same = np.empty(n, dtype=np.int64)
    same[rows.people] = first[run]
    return same
