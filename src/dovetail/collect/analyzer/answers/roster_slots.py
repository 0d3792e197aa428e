"""Estimates per public group where reports are released at public roster slots, in an order-private order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.collect.analyzer.tallies import CampaignRandomizer
from dovetail.collect.campaign.fit_shuffler import fit
from dovetail.core.display.display import mute
from dovetail.core.estimate import Estimate
from dovetail.core.stages import NumericRandomizer, Shuffler
from dovetail.estimate.grouped import GroupedFrequencyEstimator, GroupedMeanEstimator, Mixing
from dovetail.pipeline.files.table import read_table
from dovetail.randomize.sampling.from_device import decode_reports, from_device
from dovetail_protocol.campaign import Campaign

Labels = NDArray[np.int64]  # (n,)
ReportsBySlot = Iterable[tuple[int, bytes]]  # roster slot, and the valid report that lies there, empty for a bad one


@mute
@dataclass(frozen=True)
class RosterSlotEstimator:
    """Public facts about roster slots.

    Parameters
    ----------
    names : tuple of str
        Public groups: the labels in the column that the campaign's groups are made of.
    places : int array (slots,)
        The group of each slot.
    shuffler : Shuffler
        Of all slots; it is restricted to those that are present.
    """

    names: tuple[str, ...]
    places: Labels
    shuffler: Shuffler

    @classmethod
    def load(cls, campaign: Campaign, folder: Path) -> Self | None:
        """Of an order-private campaign, None for others; groups of points have no names, and no estimates."""
        rule, shuffler = campaign.shuffle, fit(campaign, folder)
        if shuffler is None:
            return None
        if "labels" not in rule.groups:
            return cls((), np.zeros(shuffler.n, dtype=np.int64), shuffler)
        column = read_table(str(folder / str(rule.public)))[rule.groups["labels"]].cast(pl.String)
        names = column.unique().sort()
        places = column.replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
        return cls(tuple(names), places, shuffler)

    def estimates(self, campaign: Campaign, placed: ReportsBySlot) -> dict[str, Estimate]:
        """One estimate for each group that is present, widened by what the shuffle may have moved into it.

        A share 1 - M_aa of the reports at a group's places came from elsewhere; at worst all of them are valid, and
        every bad one was the group's own. Nothing is said where a group has bad reports only.
        """
        pairs = list(placed)
        slots = np.array([slot for slot, _ in pairs], dtype=np.int64)
        if not self.names or slots.max(initial=-1) >= self.places.size:
            return {}  # signed by a shuffler that has another table
        groups, here = np.unique(self.places[slots], return_inverse=True)
        labels = here[[bool(report) for _, report in pairs]]
        valid = np.bincount(labels, minlength=groups.size)
        if not valid.all() or not groups.size:
            return {}
        encoded = np.frombuffer(b"".join(report for _, report in pairs), dtype=np.uint8)
        reports, _ = decode_reports(campaign.mechanism, encoded.reshape(-1, campaign.mechanism.report_bytes))
        estimator = _estimator(from_device(campaign.mechanism), groups.size)
        moved = (1.0 - np.diag(self._present(slots).mixing(here))) * np.bincount(here) / valid
        found = estimator.solve(estimator.tally(reports, labels), _mixing(np.clip(moved, 0.0, 1.0)))
        return {self.names[group]: found.group(row) for row, group in enumerate(groups)}

    def mixed(self, placed: ReportsBySlot) -> tuple[int | None, float | None]:
        """Valid reports in the smallest set of slots that hide each other as in a uniform mix, and the groups' alpha.

        None for either where the order has none, or was signed by a shuffler that has another table.
        """
        pairs = list(placed)
        slots = np.array([slot for slot, _ in pairs], dtype=np.int64)
        valid = np.array([bool(report) for _, report in pairs], dtype=np.bool_)
        if slots.max(initial=-1) >= self.places.size or not valid.any():
            return None, None
        present = self._present(slots)
        blocks = present.exchangeable_blocks()
        block = None if blocks is None else int(np.unique(blocks[valid], return_counts=True)[1].min())
        if block == 1 and present.uniform_blocks() is None:
            block = None  # an order in which somebody cannot be exchanged
        return block, present.facts().get("own_alpha")

    def _present(self, slots: Labels) -> Shuffler:
        """The shuffler of the slots that have sent something, as the release used it."""
        present = np.zeros(self.places.size, dtype=np.bool_)
        present[slots] = True
        return self.shuffler if present.all() else self.shuffler.restrict(present)


def _mixing(moved: NDArray[np.float64]) -> Mixing | None:
    """A mixing with these shares (g,) from elsewhere; None where nothing moves between groups."""
    if (moved < 1e-12).all():
        return None
    mixing = np.diag(1.0 - moved)
    mixing[np.arange(moved.size), np.roll(np.arange(moved.size), 1)] += moved
    return mixing


def _estimator(randomizer: Any, groups: int) -> GroupedFrequencyEstimator | GroupedMeanEstimator:
    analyst: CampaignRandomizer = randomizer
    if isinstance(analyst, NumericRandomizer):
        return GroupedMeanEstimator(analyst, groups)
    return GroupedFrequencyEstimator(analyst, groups)
