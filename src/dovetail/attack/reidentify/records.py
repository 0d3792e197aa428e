"""The records that a re-identification attack sees: rounds as they are released, and who sent what, for scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import floats
from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.stages import NumericRandomizer, Shuffler

Devices = NDArray[np.int64]  # (m,), 0..n-1


@mute
@dataclass(frozen=True, eq=False)
class Records:
    """Reports as an attacker gets them: one record for each, and who sent it, for scoring.

    Parameters
    ----------
    features : name -> float array (m,)
        All that the attacker looks at.
    devices : int array (m,), 0..n-1
        The sender.
    batches : int array (m,)
        The batch that holds the record.

    Raises
    ------
    DataError
        For columns, senders or batches of other lengths or types.

    Examples
    --------
    >>> records = Records.of_rounds([[1.0, 5.0], [2.0, 6.0]])
    >>> sorted(records.features), records.devices.tolist()
    (['value'], [0, 1, 0, 1])
    """

    features: Mapping[str, NDArray[np.float64]]
    devices: Devices
    batches: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not self.features:
            raise DataError("`features` must name at least one column.")
        columns = {name: floats(name, column) for name, column in self.features.items()}
        devices, batches = np.asarray(self.devices), np.asarray(self.batches)
        for name, column in {**columns, "devices": devices, "batches": batches}.items():
            if column.shape != devices.shape or column.ndim != 1 or not column.size:
                raise DataError(f"`{name}` must be one number for each record, got shape {column.shape}.")
        if devices.dtype.kind not in "iu" or devices.min() < 0:
            raise DataError(f"`devices` must be whole numbers 0..n-1, got {devices.dtype}.")
        if batches.dtype.kind not in "iu":
            raise DataError(f"`batches` must be whole numbers, got {batches.dtype}.")
        object.__setattr__(self, "features", columns)

    @classmethod
    def of_rounds(
        cls, values: ArrayLike, *, devices: ArrayLike | None = None, time_of_day: ArrayLike | None = None,
        place: bool = False,
    ) -> Records:  # fmt: skip
        """Records of whole rounds: `value`, and on request `time_of_day` and `place`.

        Parameters
        ----------
        values : float array (rounds, n)
            Row by row what was released, in the order of release.
        devices : int array (rounds, n)
            Who sent it; the device of each column if absent: nothing was shuffled.
        time_of_day : float array (rounds,), optional
        place : bool
            Whether the attacker sees the place in the batch. Without it a shuffle cannot make a difference.
        """
        table = _rounds(values)
        rounds, n = table.shape
        senders = np.tile(np.arange(n), (rounds, 1)) if devices is None else np.asarray(devices)
        if senders.shape != table.shape:
            raise DataError(f"`devices` must have the shape of `values`, {table.shape}, got {senders.shape}.")
        features: dict[str, Any] = {"value": table.ravel()}
        if time_of_day is not None:
            times = floats("time_of_day", time_of_day)
            if times.shape != (rounds,):
                raise DataError(f"`time_of_day` must be one number for each round, got shape {times.shape}.")
            features["time_of_day"] = np.repeat(times, n)
        if place:
            features["place"] = np.tile(np.arange(n, dtype=np.float64), rounds)
        return cls(features, senders.ravel(), np.repeat(np.arange(rounds), n))

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Features side by side (m, features)."""
        return np.column_stack(list(self.features.values()))


def release_rounds(
    values: ArrayLike, shuffler: Shuffler, *, randomizer: NumericRandomizer | None = None, rng: Entropy | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rounds as they are released, and who sent what, for scoring.

    Parameters
    ----------
    values : float array (rounds, n)
    shuffler : Shuffler
        Draws a new order for each round; `Identity` leaves it.
    randomizer : NumericRandomizer, optional
        Without one the values themselves are released.

    Returns
    -------
    reports : float array (rounds, n), devices : int array (rounds, n)

    Raises
    ------
    DataError
        For values that are not a row for each round, with a column for each person of the shuffler.

    Examples
    --------
    >>> from dovetail.shuffle.identity import Identity
    >>> reports, devices = release_rounds([[1.0, 5.0], [2.0, 6.0]], Identity(2))
    >>> reports.tolist(), devices.tolist()
    ([[1.0, 5.0], [2.0, 6.0]], [[0, 1], [0, 1]])
    """
    rng = entropy_or_system(rng)
    table = _rounds(values)
    if table.shape[1] != shuffler.n:
        raise DataError(f"`values` must have {shuffler.n:,} devices, as the shuffler, got {table.shape[1]:,}.")
    orders = np.array([shuffler.permutation(rng) for _ in table])
    noisy = table if randomizer is None else randomizer.decode(randomizer.randomize(table.ravel(), rng))
    return np.take_along_axis(noisy.reshape(table.shape), orders, axis=1), orders


def _rounds(values: ArrayLike) -> NDArray[np.float64]:
    """`values` (rounds, n) as finite floats, at least one of each."""
    table = floats("values", values)
    if table.ndim != 2 or not table.size:
        raise DataError(f"`values` must have a row for each round, got shape {table.shape}.")
    return table
