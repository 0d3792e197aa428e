"""Dummies of one batch: reports of nobody, drawn while it is built and indistinguishable from those of devices.

They become the round's with the transaction that finishes the batch. What was drawn for one that is abandoned before
has not left and is never sent; afterwards the batch is bytes, and nothing of it is drawn again: numbers that were
drawn twice for one round would average out. How many there are of a symbol stands in no log, metric or table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.campaign.added_dummies import added_dummies, law_of
from dovetail.core.entropy import Entropy
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.wire.message import plain, seal_inner


@dataclass(frozen=True)
class BatchDummies:
    """The dummies of a batch that closes with `round`; none where the campaign asks for none."""

    campaign: Campaign
    round: int
    law: Dummies | None
    _symbols: NDArray[np.int64] = field(repr=False)  # (size,)

    @classmethod
    def draw(cls, campaign: Campaign, round: int, rng: Entropy) -> BatchDummies:
        """Fresh numbers for every symbol."""
        law = added_dummies(campaign)
        symbols = np.zeros(0, dtype=np.int64)
        if law is not None:
            symbols = np.repeat(np.arange(law.k), law.noise.sample(law.k, rng))
        return cls(campaign, round, law, symbols)

    @property
    def size(self) -> int:
        """All of them, which whoever knows the number of devices reads off the length of the batch."""
        return int(self._symbols.size)

    def seal(self, place: int) -> bytes:
        """One of them as a device would seal it for the analyzer: same version, no group, same length."""
        report = self.campaign.mechanism.encode(int(self._symbols[place]))
        return seal_inner(self.campaign, self.round, plain(self.campaign, report))

    def stated(self, people: int) -> dict[str, Any]:
        """What the signed header says of them, and of dummies that people have sent."""
        if self.campaign.sent is not None:
            return {"people": people}
        return {} if self.law is None else {"people": people, "dummies": law_of(self.law)}
