"""From the device to the analyst: the randomizer that belongs to a mechanism, and its reports read from bytes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from dovetail.core.errors import DataError
from dovetail.core.stages import RANDOMIZERS, Encoded, Randomizer, Reports, Valid
from dovetail_protocol.dummies import Unrandomized
from dovetail_protocol.mechanism import Mechanism

_OPEN = 700.0  # nats: next to no lies, where only the form of reports matters


def from_device(mechanism: Mechanism) -> Randomizer:
    """The analyst's randomizer of a device's mechanism: the same parameters and the same law.

    Of answers that are sent as they are it has the form alone: symbols, the blank among them, and their counts.

    >>> from dovetail_protocol.mechanism import mechanism
    >>> from_device(mechanism("krr", k=3, epsilon=1.0)).channel().shape
    (3, 3)
    """
    if isinstance(mechanism, Unrandomized):
        krr: Any = RANDOMIZERS["krr"]
        form: Randomizer = krr(k=mechanism.k + 1, epsilon=_OPEN)
        return form
    kind: Any = RANDOMIZERS[mechanism.name]
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
    >>> from dovetail_protocol.mechanism import mechanism
    >>> decode_reports(mechanism("krr", k=3, epsilon=1.0), np.array([[2], [3], [0]], dtype=np.uint8))
    (array([2, 0]), array([ True, False,  True]))
    """
    if encoded.dtype != np.uint8 or encoded.ndim != 2 or encoded.shape[1] != mechanism.report_bytes:
        raise DataError(
            f"`encoded` must be uint8 (n, {mechanism.report_bytes}), got {encoded.dtype} {encoded.shape}."
        )
    reports, valid = from_device(mechanism).decode_bytes(encoded)
    return reports[valid], valid
