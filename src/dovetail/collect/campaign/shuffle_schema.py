"""The [shuffle] table of a campaign, checked by the schema that the same table of `dovetail run` has."""

from __future__ import annotations

from typing import Any

from dovetail.core.errors import ConfigError
from dovetail.core.registries import SHUFFLERS
from dovetail.pipeline.config.parse import parse_section
from dovetail.pipeline.config.run_config import files_of
from dovetail.pipeline.config.sections import ShuffleSection
from dovetail_protocol.campaign import Campaign


def shuffle_section(campaign: Campaign) -> ShuffleSection:
    """The [shuffle] table as `dovetail run` reads it, without the public table, which only a campaign has.

    Raises
    ------
    ConfigError
        One line that names the campaign, what is wrong and the nearest known key.
    """
    rule, name = campaign.shuffle, f"the campaign {campaign.id}"
    raw: dict[str, Any] = {**rule.settings, "shuffler": rule.shuffler, "alpha": rule.alpha}
    if rule.groups:
        raw["groups"] = rule.groups
    try:
        section = parse_section(ShuffleSection, raw, name=name, at="shuffle")
    except ConfigError as error:
        raise ConfigError(str(error).splitlines()[0]) from None  # the first fault; an odd key may hold more lines
    if objection := _objection(section):
        raise ConfigError(f"{name}: [shuffle] {objection}.")
    return section


def _objection(section: ShuffleSection) -> str:
    """What only a campaign objects to: it always shuffles, once, by the public table that its owner has signed."""
    if not SHUFFLERS[section.shuffler].moves_reports:
        return f'a campaign must shuffle: `shuffler` "{section.shuffler}" would tell who sent what'
    if section.compare:
        return "`compare` is for rehearsals; remove it"
    for key, file in files_of(section).items():
        if file is not None:
            return f"`{key}` names a file that the owner does not sign; use `groups` of the `public` table"
    return ""
