"""The shuffler of an order-private campaign, fitted to the public table that the campaign names."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from dovetail.collect.campaign.shuffle_schema import shuffle_section
from dovetail.core.errors import ConfigError, DovetailError
from dovetail.core.stages import Shuffler
from dovetail.pipeline.config.build import build_shuffler, public_data
from dovetail.pipeline.config.sections import GroupsSection, ShuffleSection
from dovetail.pipeline.files.table import Survey, read_table
from dovetail_protocol.campaign import Campaign


def fit(campaign: Campaign, folder: Path) -> Shuffler | None:
    """The shuffler over all roster slots; None where the campaign shuffles uniformly.

    The table stands beside the campaign file, in `folder`; row i is roster slot i. Its SHA-256 must be the one that
    the owner has signed, because the shuffler's promise is about these rows.
    """
    section, rule = shuffle_section(campaign), campaign.shuffle
    if not campaign.order_private:
        return None
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


def _fit(section: ShuffleSection, place: Path) -> Shuffler:
    table = read_table(str(place))
    groups = section.groups
    assert isinstance(groups, GroupsSection)  # every shuffler but the uniform one has them
    for name in groups.columns:
        if name not in table.columns:
            raise ConfigError(f"there is no column {name!r}, which [shuffle] groups needs.")
    return build_shuffler(section, public_data(section, Survey.of(table), n=table.height))
