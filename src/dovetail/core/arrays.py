"""Arrays of numbers as they are given: one check, with one form of refusal."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError


def floats(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """`values` of any shape as finite floats; text, booleans, ragged rows, NaN and infinities are refused.

    >>> floats("reports", [[1, 2], [3, 4]]).shape
    (2, 2)
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"`{name}` must be finite numbers, got rows of different lengths.") from None
    if array.dtype.kind not in "iuf":
        raise DataError(f"`{name}` must be finite numbers, got values of type {array.dtype}.")
    bad = array.size - np.count_nonzero(np.isfinite(array))
    if bad:
        raise DataError(f"`{name}` must be finite numbers; {bad:,} of {array.size:,} are not.")
    return array.astype(np.float64, copy=False)
