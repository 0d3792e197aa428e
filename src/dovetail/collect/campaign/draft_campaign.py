"""A campaign that its owner has not signed yet, checked as devices and servers will check it."""

from __future__ import annotations

import tomllib
from typing import Any

from dovetail.collect.campaign.added_dummies import added_dummies
from dovetail.collect.campaign.people_dummies import people_dummies
from dovetail.collect.campaign.shuffle_schema import shuffle_section
from dovetail.core.errors import ConfigError
from dovetail.core.registries import RANDOMIZERS
from dovetail_protocol import mechanisms
from dovetail_protocol.campaign import Campaign, draft


def draft_campaign(body: bytes) -> Campaign:
    """The campaign of a file, signed or not, without a look at its signature; ConfigError says what is wrong."""
    name = _randomizer_name(body)
    if isinstance(name, str):
        require_device_form(name)
    campaign = draft(body)
    shuffle_section(campaign)
    added_dummies(campaign)
    people_dummies(campaign)
    return campaign


def require_device_form(name: str) -> None:
    """Refuse a randomizer that the analyst knows but no device can run; other names are for others to judge."""
    if name in RANDOMIZERS and name not in mechanisms.names():
        raise ConfigError(
            f"randomizer {name!r} has no form for devices, so no campaign can use it; "
            f"take one of {', '.join(mechanisms.names())}."
        )


def _randomizer_name(body: bytes) -> Any:
    """The name in [randomizer]; None in what is no campaign."""
    try:
        return tomllib.loads(body.decode())["randomizer"]["name"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
