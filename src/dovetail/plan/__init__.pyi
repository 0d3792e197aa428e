"""The public names of `dovetail.plan`, once, with their home."""

from .compare import MechanismComparison as MechanismComparison
from .compare import compare_mechanisms as compare_mechanisms
from .planner import CollectionPlan as CollectionPlan

__all__: list[str]
