"""The public names of `dovetail.pipeline`, once, with their home."""

from .release_ledger import ReleaseLedger as ReleaseLedger
from .stream.fleet import Fleet as Fleet
from .stream.fleet_run import FleetRun as FleetRun

__all__: list[str]
