"""The shuffler of an order-private campaign, fitted to the public table that the campaign names."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import ArrayLike

from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.errors import ConfigError, DovetailError
from dovetail.pipeline.config.build import build_shuffler, public_data
from dovetail.pipeline.config.parse import parse_section
from dovetail.pipeline.config.sections import GroupsSection, ShuffleSection
from dovetail.pipeline.files.table import Survey, read_table
from dovetail_protocol.campaign import Campaign


class Fitted(Protocol):
    """A shuffler over all roster slots that can do with fewer."""

    @property
    def n(self) -> int: ...
    def permutation(self, rng: Entropy) -> Permutation: ...
    def restrict(self, present: ArrayLike) -> Fitted: ...


def fit(campaign: Campaign, folder: Path) -> Fitted | None:
    """The shuffler over all roster slots; None where the campaign shuffles uniformly.

    The table stands beside the campaign file, in `folder`; row i is roster slot i. Its SHA-256 must be the one that
    the owner has signed, because the shuffler's promise is about these rows.
    """
    if not campaign.order_private:
        return None
    rule = campaign.shuffle
    raw = {name: getattr(rule, name) for name in ("shuffler", "alpha", "groups", "refine", "k")}
    given = {name: value for name, value in raw.items() if value is not None}
    section = parse_section(ShuffleSection, given, name=f"{campaign.id}: [shuffle]")
    place = folder / str(rule.public)
    try:
        found = sha256(place.read_bytes()).hexdigest()
    except OSError:
        raise ConfigError(f"{place}: no such file; the campaign {campaign.id} names it as `public`.") from None
    if found != rule.public_digest:
        raise ConfigError(f"{place} has another SHA-256 than the campaign {campaign.id} says; get the right file.")
    try:
        return _fit(section, place)
    except DovetailError as error:
        raise ConfigError(f"{place}: {error}") from None


def _fit(section: ShuffleSection, place: Path) -> Fitted:
    table = read_table(str(place))
    groups = section.groups
    assert isinstance(groups, GroupsSection)  # every shuffler but the uniform one has them
    for name in groups.columns:
        if name not in table.columns:
            raise ConfigError(f"there is no column {name!r}, which [shuffle] groups needs.")
    shuffler: Any = build_shuffler(section, public_data(section, Survey.of(table), n=table.height))
    fitted: Fitted = shuffler  # each one that a campaign may name has `restrict`
    return fitted
