"""Reports that come in any order: places belong to the public roster, not to the order of arrival."""

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.errors import DataError
from dovetail.core.stages import Reports
from dovetail.shuffle.fitting.missing_people import Present


def sort_to_roster(devices: ArrayLike, reports: ArrayLike, *, n: int) -> tuple[Present, Reports]:
    """Who is present (n,), and their reports in the order of the roster; what came first leaves no trace.

    Parameters
    ----------
    devices : int array (m,)
        Roster number 0..n-1 of the sender of each report, each at most once.
    reports : array (m, ..)

    Examples
    --------
    >>> present, batch = sort_to_roster([2, 0], [7.5, 3.0], n=3)
    >>> present.tolist(), batch.tolist()
    ([True, False, True], [3.0, 7.5])
    """
    who, batch = np.asarray(devices), np.asarray(reports)
    if who.shape == (0,):
        who = who.astype(np.int64)  # an empty list has no type
    if who.ndim != 1 or who.dtype.kind not in "iu" or batch.shape[:1] != who.shape:
        raise DataError(
            f"`devices` must be one whole number for each report, got shape {who.shape} of {who.dtype} "
            f"for reports of shape {batch.shape}."
        )
    if who.size and (who.min() < 0 or who.max() >= n):
        bad = np.flatnonzero((who < 0) | (who >= n))
        raise DataError(f"`devices` must be 0..{n - 1}; {bad.size:,} are not, the first is {who[bad[0]]}.")
    seats = np.bincount(who, minlength=n)
    if (seats > 1).any():
        raise DataError(f"`devices` must report once a round; {int((seats > 1).sum()):,} report more than once.")
    return seats.astype(np.bool_), batch[np.argsort(who)]
