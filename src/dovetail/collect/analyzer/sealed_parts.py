"""Sealed reports in Parquet files, opened and counted by an engine of `dovetail.engine`: many processes, or Spark.

Tasks get the path of the analyzer's configuration and read its key files themselves: no key travels, so none is in a
closure, an expression, a broadcast, a log or a file that was not there before. Reports travel as sealed as they came.
Copies meet because reports are exchanged by a keyed digest, as in a batch of one process.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from dovetail.collect.analyzer.analyzer import load
from dovetail.collect.analyzer.answers import RoundEstimates
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.analyzer.tallies import CampaignRandomizer, tallies_by_group, tally_reports
from dovetail.collect.analyzer.unseal import unseal
from dovetail.collect.campaign.terms import added_dummies
from dovetail.collect.store.interfaces import GroupTally
from dovetail.core.errors import DataError, OutputError, UnsupportedError
from dovetail.core.progress import Progress, silent
from dovetail.randomize.sampling.from_device import from_device
from dovetail.table.data_section import DataSection
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.messages import inner_bytes

COLUMN = "sealed"  # of the files: the envelopes to the analyzer, as binary
_AT_ONCE = 50_000  # reports of a partition
_ROWS = 1 << 16  # of a batch of rows
_DIGEST = 16


class Engine(Protocol):
    """What is used of `dovetail.engine.processes.Engine`."""

    def source(self, data: DataSection, table: Any = None) -> Any: ...

    def exchange(
        self, source: Any, pack: Any, unpack: Any, *, parts: int, rows: int, staging: Path, progress: Progress
    ) -> Any: ...


@dataclass(frozen=True)
class PackSealed:
    """Reports by a keyed digest of their bytes, so that copies meet; nobody can make two others meet."""

    length: int
    parts: int
    key: bytes = field(repr=False)

    def __call__(self, frame: pl.DataFrame) -> list[tuple[int, bytes]]:
        mine: dict[int, list[bytes]] = {}
        for sealed in frame[COLUMN]:
            if sealed is None or len(sealed) != self.length:
                raise DataError(f"column {COLUMN!r} must hold sealed reports of {self.length} bytes each.")
            digest = blake2b(sealed, digest_size=_DIGEST, key=self.key).digest()
            mine.setdefault(int.from_bytes(digest[:8], "big") * self.parts >> 64, []).append(sealed)
        return [(part, b"".join(entries)) for part, entries in sorted(mine.items())]


@dataclass(frozen=True)
class UnpackSealed:
    """Opens the reports of a partition with the keys that it reads itself, and counts them."""

    config: str
    digest: str  # of the campaign, hex
    round: int

    def __call__(self, part: int, blobs: list[bytes]) -> dict[str, Any]:
        campaigns = _opening(self.config)
        campaign = campaigns.find(self.digest)
        length, whole = inner_bytes(campaign), b"".join(blobs)
        sealed = sorted(whole[start : start + length] for start in range(0, len(whole), length))
        copies = np.array([False, *(one == two for one, two in pairwise(sealed))][: len(sealed)], dtype=np.bool_)
        opened = unseal(campaigns.versions_of(campaign), sealed, round=self.round, copies=copies)
        randomizer: CampaignRandomizer = from_device(campaign.mechanism)  # type: ignore[assignment]
        names = campaign.groups or ("",)
        tallies = [
            tally_reports(randomizer, opened.reports[opened.groups == place], group=names[place])
            for place in np.unique(opened.groups)
        ]
        return {
            "rejected": dict(Counter(kind for kind, _ in opened.refused)),
            "tallies": [[one.group, one.n, [list(pair) for pair in one.counts]] for one in tallies],
        }


@dataclass(frozen=True)
class CountedParts:
    """What the files hold: as a batch of the same reports is counted, without where anybody's report lay.

    Parameters
    ----------
    rejected : reports that were set aside, by kind
    tallies : one for each public group
    """

    campaign: Campaign
    round: int
    rejected: dict[str, int]
    tallies: tuple[GroupTally, ...]

    @property
    def n(self) -> int:
        """Valid reports."""
        return sum(one.n for one in self.tallies)

    def document(self) -> dict[str, Any]:
        """JSON-ready: counts, and estimates of everybody and the public groups that may be told apart."""
        randomizer: CampaignRandomizer = from_device(self.campaign.mechanism)  # type: ignore[assignment]
        found = RoundEstimates(
            self.round, (self.round,), randomizer, self.tallies, self.campaign.batch.minimum
        ).by_group
        estimates = {
            name: {"value": np.atleast_1d(one.value).tolist(), "n": int(one.n),
                   "standard_error": np.atleast_1d(one.standard_error).tolist()}
            for name, one in found.items()
        }  # fmt: skip
        return {"campaign": self.campaign.id, "round": self.round, "n": self.n, "rejected": self.rejected,
                "estimates": estimates}  # fmt: skip


def count_parts(
    engine: Engine, parts: Path, *, config: Path, campaign: str, round: int, progress: Progress = silent
) -> CountedParts:
    """Open and count the sealed reports of one round, in Parquet files with the column `sealed`.

    Parameters
    ----------
    engine : of `dovetail.engine.engines`
    parts : a Parquet file, or a folder of them, that every worker sees
    config : analyzer.toml, which every worker reads, with its keys
    campaign : id

    Raises
    ------
    UnsupportedError
        For orders of places, classes of people, and dummies of the shuffler or of people: what they mean stands in
        the header of a signed batch.
    DataError
        For a campaign or round that is not served, and files that hold something else.
    """
    asked = _asked(config, campaign, round)
    source = engine.source(DataSection(path=str(parts), private=COLUMN))
    many, key = max(1, -(-source.n // _AT_ONCE)), os.urandom(32)
    try:
        scratch = tempfile.TemporaryDirectory(prefix=".unseal-", dir=parts.absolute().parent)
    except OSError as error:
        raise OutputError(f"{parts.absolute().parent}: cannot be written ({error.strerror}).") from None
    with scratch as folder:
        found = engine.exchange(
            source, PackSealed(inner_bytes(asked), many, key),
            UnpackSealed(str(config.absolute()), asked.digest.hex(), round),
            parts=many, rows=_ROWS, staging=Path(folder), progress=progress,
        )  # fmt: skip
    return _together(asked, round, found.summaries)


def _asked(config: Path, campaign: str, round: int) -> Campaign:
    newest = _opening(str(config.absolute())).newest
    if campaign not in newest:
        raise DataError(f"{config}: serves {', '.join(sorted(newest))}, not {campaign!r}.")
    asked = newest[campaign]
    if not 1 <= round <= asked.schedule.count:
        raise DataError(f"`round` must be 1 to {asked.schedule.count}, got {round}.")
    if asked.order_private or asked.sent is not None or added_dummies(asked) is not None or asked.classes:
        raise UnsupportedError(
            f"{campaign} keeps places, has classes, or its shuffler or its people add dummies: the analyzer counts "
            "its signed batches."
        )
    return asked


def _together(campaign: Campaign, round: int, summaries: Iterable[dict[str, Any]]) -> CountedParts:
    rejected, tallies = Counter[str](), []
    for one in summaries:
        rejected.update(one["rejected"])
        tallies += [GroupTally(name, n, tuple((c, m) for c, m in counts)) for name, n, counts in one["tallies"]]
    return CountedParts(campaign, round, dict(sorted(rejected.items())), tuple(tallies_by_group(tallies).values()))


@lru_cache(maxsize=1)
def _opening(config: str) -> AnalyzerCampaigns:
    """The campaigns of a configuration with the keys that open them, read in this process."""
    place = Path(config)
    settings = load(place)
    campaigns = [campaign for campaign, _ in settings.load_campaigns(place.parent)]
    return AnalyzerCampaigns.of(campaigns, settings.load_keys(place.parent, "analyzer"))
