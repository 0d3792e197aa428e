"""The public names of `dovetail.job`, once, with their home."""

from .fleet import Fleet as Fleet
from .fleet import FleetRun as FleetRun

__all__: list[str]
