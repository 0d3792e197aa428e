"""A pass between the two, for orders in which partitions fill by chance: how many rows fall to each of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.entropy.keyed import keyed_prints
from dovetail.pipeline.progress import Progress
from dovetail.scale.engines.engine import Blobs, Engine, Source, Summary
from dovetail.scale.orders.noisy_places import NoisyPlaces
from dovetail.scale.passes.rows import Reader
from dovetail.scale.secrets import Sealer, Secret


@dataclass(frozen=True)
class PackCounts:
    """How many rows of a batch fall to each partition."""

    reader: Reader
    secret: Secret
    layout: NoisyPlaces

    def __call__(self, frame: Any) -> Blobs:
        rows = self.reader.exactly(frame)
        parts, _ = self.layout.send(rows, keyed_prints(self.secret.of("order"), rows.ids), self.secret)
        counts = {str(part): int(count) for part, count in enumerate(np.bincount(parts)) if count}
        return [(0, Sealer(self.secret).seal(json.dumps(counts).encode(), 0))]


@dataclass(frozen=True)
class UnpackCounts:
    """Their sum."""

    secret: Secret

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        total = Counter[str]()
        for blob in blobs:
            total.update(json.loads(Sealer(self.secret).open(blob, part)))
        return dict(sorted(total.items()))


def counted(
    engine: Engine,
    source: Source,
    layout: NoisyPlaces,
    reader: Reader,
    secret: Secret,
    *,
    rows: int,
    staging: Path,
    progress: Progress,
) -> NoisyPlaces:
    """The layout with the rows of each partition: a pass that draws the same places as the next one."""
    found = engine.exchange(
        source, PackCounts(reader, secret, layout), UnpackCounts(secret), parts=1, rows=rows, staging=staging,
        progress=progress,
    )  # fmt: skip
    return layout.counted(found.summaries[0])
