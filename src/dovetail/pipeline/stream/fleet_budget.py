"""The budgets of a fleet: what each device has spent, and which of its values it may still report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.errors import DataError
from dovetail.pipeline.stream.fleet import Fleet
from dovetail.pipeline.stream.fleet_values import Places
from dovetail_protocol.budget import NOTHING, affordable, cost, decimal_at_least, round_up_to_double

MOST_REPORTS = (1 << 63) - 1  # of a device without a cap


class FleetBudget:
    """Spending of all devices of a fleet, in exact decimals.

    before : sequence of Fraction (n,), nats, optional
        Spent in earlier releases; default nothing.
    """

    def __init__(self, fleet: Fleet, before: Sequence[Fraction] | None = None) -> None:
        n = len(fleet.roster)
        if before is not None and len(before) != n:
            raise DataError(f"`before` must hold a number for each of the {n:,} devices, got {len(before):,}.")
        self._fleet = fleet
        self.sent: NDArray[np.int64] = np.zeros(n, dtype=np.int64)  # reports of each device in this run
        self._before = [NOTHING] * n
        self.add(self._before if before is None else before)

    def add(self, more: Sequence[Fraction]) -> None:
        """Count what was spent elsewhere."""
        cap, epsilon = self._fleet.cap, self._fleet.randomizer.guarantee.epsilon
        self._before = [before + nats for before, nats in zip(self._before, more, strict=True)]
        most = {
            spent: MOST_REPORTS if math.isinf(cap) else min(MOST_REPORTS, affordable(cap, epsilon, spent=spent))
            for spent in set(self._before)
        }
        self._most = np.array(
            [most[spent] for spent in self._before], dtype=np.int64
        )  # reports that this run may have

    def charge(self, senders: Places) -> None:
        """One report of each of these devices."""
        self.sent[senders] += 1

    def is_spent(self, places: Places) -> NDArray[np.bool_]:
        """Which of these devices have no budget left."""
        spent: NDArray[np.bool_] = self.sent[places] >= self._most[places]
        return spent

    def allows(self, t: int, places: Places) -> NDArray[np.bool_]:
        """Who of these has budget left, and whose turn it is in round t."""
        return ~self.is_spent(places) & self._fleet.turns(places, t)

    def due(self, places: Places, stamps: Places) -> NDArray[np.bool_]:
        """Which of all values from now on, in order of time, will be reported."""
        turn = self._fleet.turns(places, stamps)
        mine = pl.DataFrame({"place": places[turn]})
        rank = mine.select(pl.int_range(pl.len()).over("place")).to_series().to_numpy()
        due = np.zeros(turn.size, dtype=np.bool_)
        due[turn] = self.sent[places[turn]] + rank < self._most[places[turn]]
        return due

    @property
    def largest_before(self) -> float:
        """Nats of the device that had spent the most elsewhere, rounded up."""
        return decimal_at_least(max(self._before))

    @property
    def promised(self) -> float:
        """Nats of the device that has spent the most, here and elsewhere, as the double of a promise: rounded up."""
        spent, largest = self._exact(), self._fleet.randomizer.guarantee.epsilon
        return largest if spent is None else round_up_to_double(max(spent))

    def totals(self) -> list[float]:
        """Nats of each device, here and elsewhere, in decimals as budgets are written."""
        spent, infinite = self._exact(), self._fleet.randomizer.guarantee.epsilon
        if spent is None:
            return [infinite if sent else 0.0 for sent in self.sent.tolist()]
        decimal = {nats: decimal_at_least(nats) for nats in set(spent)}
        return [decimal[nats] for nats in spent]

    def _exact(self) -> list[Fraction] | None:
        """Nats of each device; None where somebody has reported without noise."""
        epsilon = self._fleet.randomizer.guarantee.epsilon
        if math.isinf(epsilon):
            return None if self.sent.any() else list(self._before)
        return [before + cost(sent, epsilon) for before, sent in zip(self._before, self.sent.tolist(), strict=True)]
