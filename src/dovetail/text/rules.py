"""Utilities and selection rules by name."""

from __future__ import annotations

from typing import TypeVar

from dovetail.core.checks import nearest
from dovetail.core.errors import ParameterError
from dovetail.text.selection.exponential import Exponential
from dovetail.text.selection.permute_and_flip import PermuteAndFlip
from dovetail.text.selection.selection import Selection
from dovetail.text.utilities.approval import Approval
from dovetail.text.utilities.clipped_scores import ClippedScores
from dovetail.text.utilities.cluster_votes import ClusterVotes
from dovetail.text.utilities.depth import Depth, PublishedDepth
from dovetail.text.utilities.inner_product import InnerProduct
from dovetail.text.utilities.utility import Utility

UTILITIES: dict[str, type[Utility]] = {
    one.name: one for one in (ClippedScores, Approval, ClusterVotes, InnerProduct, Depth, PublishedDepth)
}
SELECTIONS: dict[str, type[Selection]] = {one.name: one for one in (PermuteAndFlip, Exponential)}

Kind = TypeVar("Kind")


def choose(what: str, name: str, known: dict[str, type[Kind]]) -> type[Kind]:
    """The class of a name, or one line with the nearest known one."""
    if name not in known:
        raise ParameterError(f"`{what}` must be one of {', '.join(known)}, got {name!r}{nearest(name, known)}.")
    return known[name]
