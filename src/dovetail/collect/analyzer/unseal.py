"""Opening what people sent: the only module that opens inner envelopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.analyzer.tallies import decode_all
from dovetail.core.display import mute
from dovetail.core.stages import Reports
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import Opener
from dovetail_protocol.messages import VERSION, inner_info, plain_bytes

_HEAD = 3  # version, public group
KINDS = ("copy", "seal", "malformed", "version", "content")  # why a report is set aside


@mute
@dataclass(frozen=True)
class OpenedReports:
    """Contents of a sequence of sealed reports.

    Parameters
    ----------
    places : int array (m,)
        Which entries are valid reports.
    groups : int array (m,)
        Their public groups, as places in `campaign.groups`; 0 where there are none.
    versions : int array (m,)
        Which of the versions they were made under: nobody can hide that from the analyzer.
    reports : array (m, ..)
        As the analyst's randomizer makes them; of several questions with a field for each.
    encoded : uint8 array (m, report_bytes)
        The same, as devices encode them.
    refused : tuple of (kind, place)
        The other entries.
    """

    places: NDArray[np.int64]
    groups: NDArray[np.int64]
    versions: NDArray[np.int64]
    reports: Reports = field(repr=False)
    encoded: NDArray[np.uint8] = field(repr=False)
    refused: tuple[tuple[str, int], ...]


VersionOpeners = Sequence[tuple[Campaign, Opener]]  # of one campaign, each with the key that opens its reports


def unseal(
    versions: VersionOpeners, sealed: Sequence[bytes], *, round: int, copies: NDArray[np.bool_] | None = None
) -> OpenedReports:
    """Open the reports of a batch and check each of them.

    A report is refused as "copy", "seal" (not sealed to this analyzer for this campaign and round), "malformed" (its
    length), "version", or "content" (no public group of the campaign, or nothing that the randomizer sends).

    Parameters
    ----------
    versions : sequence of (Campaign, Opener)
        While keys are changed, a batch holds reports made under different versions; the likeliest comes first.
    copies : bool array (n,), optional
        Entries that are copies of earlier ones.

    Notes
    -----
    One HPKE opening for each version that is tried, about 50 microseconds; everything after it is done at once.
    """
    campaign = versions[0][0]
    keys, length = [(opener, inner_info(version, round)) for version, opener in versions], plain_bytes(campaign)
    again = np.zeros(len(sealed), dtype=np.bool_) if copies is None else copies
    opened = [(None, 0) if copy else _open(keys, entry) for entry, copy in zip(sealed, again, strict=True)]
    plains = [plain for plain, _ in opened]
    kinds = np.array(["seal" if plain is None else "" for plain in plains], dtype="U9")
    kinds[again] = "copy"
    kinds[[plain is not None and len(plain) != length for plain in plains]] = "malformed"
    whole = np.flatnonzero(kinds == "")
    data = np.frombuffer(b"".join(plains[place] or b"" for place in whole), dtype=np.uint8).reshape(-1, length)
    groups = data[:, 1].astype(np.int64) << 8 | data[:, 2]
    reports, valid = decode_all(campaign.mechanism, data[:, _HEAD:])
    known = groups < max(1, len(campaign.groups))
    kinds[whole[~(valid & known)]] = "content"
    kinds[whole[data[:, 0] != VERSION]] = "version"
    good = kinds[whole] == ""
    return OpenedReports(
        places=whole[good],
        groups=groups[good],
        versions=np.array([version for _, version in opened], dtype=np.int64)[whole[good]],
        reports=reports[good[valid]],
        encoded=data[good, _HEAD:],
        refused=tuple((str(kinds[place]), int(place)) for place in np.flatnonzero(kinds != "")),
    )


def _open(keys: Sequence[tuple[Opener, bytes]], sealed: bytes) -> tuple[bytes | None, int]:
    """Open with the first key that fits, and tell which one it is."""
    for version, (opener, info) in enumerate(keys):
        plain = opener.open(sealed, info)
        if plain is not None:
            return plain, version
    return None, len(keys)
