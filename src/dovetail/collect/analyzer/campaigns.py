"""The campaigns that an analyzer serves, in all their versions, with the keys that open them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.analyzer.unseal import OpenedReports, VersionOpeners, unseal
from dovetail.collect.campaign.terms import (
    added_dummies,
    people_dummies,
    require_question,
    require_same_terms,
    shuffle_section,
)
from dovetail.collect.files import ServerConfig
from dovetail.collect.http import Refusal
from dovetail.core.errors import ConfigError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import Opener, RoleKeys
from dovetail_protocol.messages import Rejected


@dataclass(frozen=True)
class AnalyzerCampaigns:
    """Verified campaign files by digest and by id; `of` is the way to make one.

    Versions of one campaign differ in keys and dates only: their reports add.
    """

    versions: tuple[Campaign, ...]
    openers: dict[bytes, Opener] = field(repr=False)  # by digest

    @classmethod
    def of(cls, versions: Iterable[Campaign], keys: Sequence[RoleKeys]) -> AnalyzerCampaigns:
        """All versions, each with the key that opens it; refused where one has none, or where versions disagree."""
        held = {str(key.opening.sealing_key()): key.opening.opener() for key in keys if key.opening is not None}
        files = {campaign.digest: campaign for campaign in versions}
        found = tuple(sorted(files.values(), key=lambda campaign: (campaign.id, campaign.version)))
        for older, newer in pairwise(found):
            if older.id == newer.id:
                require_same_terms(older, newer)
        for campaign in found:
            shuffle_section(campaign)
            added_dummies(campaign)
            people_dummies(campaign)
            require_question(campaign)
            if str(campaign.analyzer) not in held:
                raise ConfigError(
                    f"the campaign {campaign.id}, version {campaign.version}, is sealed to another key than these."
                )
        return cls(found, {campaign.digest: held[str(campaign.analyzer)] for campaign in found})

    @property
    def newest(self) -> dict[str, Campaign]:
        """The latest version of each campaign, by id."""
        return {campaign.id: campaign for campaign in self.versions}

    def find(self, digest: str) -> Campaign:
        """The version with this digest, in hex."""
        for campaign in self.versions:
            if campaign.digest.hex() == digest:
                return campaign
        raise Rejected("campaign", "the batch belongs to a campaign, or a version, that is not served here.")

    def versions_of(self, campaign: Campaign) -> VersionOpeners:
        """All versions of this campaign with what opens their reports, this one first."""
        same = [each for each in self.versions if each.id == campaign.id and each != campaign]
        return [(each, self.openers[each.digest]) for each in (campaign, *reversed(same))]


# Opening the reports of a large batch in several processes, which read the analyzer's key files themselves.
#
# Secrets are never pickled: a process gets the configuration, sealed reports and nothing else, and hands back what it
# has opened. It lives for one batch, and ends when the analyzer does, however that ends. Results come in the order of
# the batch, so that they are those of one process; what is under way is bounded.


LARGE = 50_000  # reports of a batch from which on processes are started: that takes them about a second
_AHEAD = 2  # pieces for each process, at work or waiting
_LATER = 30.0  # seconds


@dataclass(frozen=True)
class Piece:
    """Some entries of a batch: roster slots where it has them, sealed reports, and which of these are copies (m,)."""

    slots: list[int]
    sealed: list[bytes] = field(repr=False)
    copies: NDArray[np.bool_] = field(repr=False)


Opened = Iterator[tuple[Piece, OpenedReports]]
Unsealer = Callable[[Iterable[Piece]], Opened]


def unseal_here(versions: VersionOpeners, round: int, pieces: Iterable[Piece]) -> Opened:
    """Piece by piece, in this process."""
    for piece in pieces:
        yield piece, unseal(versions, piece.sealed, round=round, copies=piece.copies)


@dataclass(frozen=True)
class UnsealingProcesses:
    """So many processes for every batch of at least `LARGE` reports of an analyzer; with one, all is done here."""

    config: ServerConfig | None = None
    folder: Path = field(default_factory=Path)
    workers: int = 1

    def of(self, versions: VersionOpeners, round: int, count: int) -> AbstractContextManager[Unsealer]:
        """Keys that open the reports of one batch of this campaign, the first of its `versions`."""
        if self.config is None or self.workers < 2 or count < LARGE:
            return nullcontext(partial(unseal_here, versions, round))
        return self._started(versions[0][0].digest, round)

    @contextmanager
    def _started(self, digest: bytes, round: int) -> Iterator[Unsealer]:
        assert self.config is not None
        begin = partial(_begin, self.config, self.folder)
        pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"), initializer=begin)
        try:
            yield partial(self._in_order, pool, digest, round)
        except BrokenProcessPool:
            raise Refusal(
                "unavailable", "a process that opens reports has ended; nothing was counted.", retry_after=_LATER
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _in_order(self, pool: ProcessPoolExecutor, digest: bytes, round: int, pieces: Iterable[Piece]) -> Opened:
        under_way = deque[tuple[Piece, Callable[[], OpenedReports]]]()
        for piece in pieces:
            under_way.append((piece, pool.submit(_unseal, digest, round, piece.sealed, piece.copies).result))
            if len(under_way) >= _AHEAD * self.workers:
                first, result = under_way.popleft()
                yield first, result()
        for piece, result in under_way:
            yield piece, result()


_OPENING: list[AnalyzerCampaigns] = []  # in a process of its own: what it opens with


def _begin(config: ServerConfig, folder: Path) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    campaigns = [campaign for campaign, _ in config.load_campaigns(folder)]
    _OPENING.append(AnalyzerCampaigns.of(campaigns, config.load_keys(folder, "analyzer")))


def _end_with_parent() -> None:
    """Nobody else tells us that it was killed, and we hold its keys."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _unseal(digest: bytes, round: int, sealed: Sequence[bytes], copies: NDArray[np.bool_]) -> OpenedReports:
    (campaigns,) = _OPENING
    return unseal(campaigns.versions_of(campaigns.find(digest.hex())), sealed, round=round, copies=copies)
