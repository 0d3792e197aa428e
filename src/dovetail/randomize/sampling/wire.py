"""From the device to the analyst: the randomizer that belongs to a mechanism, and its reports read from bytes."""

from dataclasses import fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.errors import DataError
from dovetail.core.stages import Randomizer, Reports
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from dovetail_protocol import mechanisms
from dovetail_protocol.mechanisms import Mechanism
from dovetail_protocol.mechanisms.laplace import FARTHEST

Encoded = NDArray[np.uint8]  # (n, report_bytes)
Valid = NDArray[np.bool_]  # (n,)

_RANDOMIZERS: Final[dict[str, type[Any]]] = {
    kind.name: kind for kind in (KRR, Hadamard, Unary, LocalHashing, Laplace, BudgetLaplace)
}


def from_device(mechanism: Mechanism) -> Randomizer:
    """The analyst's randomizer of a device's mechanism: the same parameters and the same law.

    >>> from_device(mechanisms.KRR(k=3, epsilon=1.0)).channel().shape
    (3, 3)
    """
    kind = _RANDOMIZERS[mechanism.name]
    randomizer: Randomizer = kind(**{field.name: getattr(mechanism, field.name) for field in fields(kind)})
    return randomizer


def decode_reports(mechanism: Mechanism, encoded: Encoded) -> tuple[Reports, Valid]:
    """`mechanism.decode` of many reports at once: the reports of the valid rows, and which rows are valid.

    Parameters
    ----------
    encoded : uint8 array (n, mechanism.report_bytes)

    Returns
    -------
    reports : array (m,) or (m, width), as `from_device(mechanism).randomize` makes them, of the m valid rows
    valid : bool array (n,)
        False for what no device could send.

    Examples
    --------
    >>> krr = mechanisms.KRR(k=3, epsilon=1.0)
    >>> decode_reports(krr, np.array([[2], [3], [0]], dtype=np.uint8))
    (array([2, 0]), array([ True, False,  True]))
    """
    if encoded.dtype != np.uint8 or encoded.ndim != 2 or encoded.shape[1] != mechanism.report_bytes:
        raise DataError(
            f"`encoded` must be uint8 (n, {mechanism.report_bytes}), got {encoded.dtype} {encoded.shape}."
        )
    reports, valid = _read(mechanism, encoded)
    return reports[valid], valid


def _read(mechanism: Mechanism, encoded: Encoded) -> tuple[Reports, Valid]:
    match mechanism:
        case mechanisms.KRR():
            return _below(mechanism.k, encoded)
        case mechanisms.Hadamard():
            return _below(mechanism.blocks * mechanism.width, encoded)
        case mechanisms.Unary():
            return encoded, encoded[:, -1] & ((1 << mechanism.padding) - 1) == 0
        case mechanisms.LocalHashing():
            buckets, valid = _below(mechanism.g, encoded[:, 16:])
            return np.stack([_whole(encoded[:, :8]), _whole(encoded[:, 8:16]), buckets.astype(np.uint64)], 1), valid
        case mechanisms.Laplace():
            steps = _whole(encoded).view(np.int64)
            return steps, (steps >= -FARTHEST) & (steps <= FARTHEST)
        case mechanisms.BudgetLaplace():
            steps, valid = _read(mechanism.noise, encoded)
            return steps, valid & (steps >= 0) & (steps <= mechanism.noise.steps) if mechanism.clamps else valid
    raise DataError(f"`mechanism` must be one of {', '.join(_RANDOMIZERS)}, got {mechanism!r}.")


def _below(count: int, encoded: Encoded) -> tuple[Reports, Valid]:
    numbers = _whole(encoded)
    return numbers.astype(np.int64), numbers < np.uint64(count)


def _whole(encoded: Encoded) -> NDArray[np.uint64]:
    """Big-endian rows of at most 8 bytes as numbers."""
    padded = np.zeros((len(encoded), 8), dtype=np.uint8)
    padded[:, 8 - encoded.shape[1] :] = encoded
    return padded.view(">u8")[:, 0].astype(np.uint64)
