"""The public names of `dovetail.pipeline`, once, with their home."""

from .stream.fleet import Campaign as Campaign
from .stream.fleet_run import Rounds as Rounds

__all__: list[str]
