"""The public names of `dovetail.plan`, once, with their home."""

from .compare.mechanisms import Comparison as Comparison, compare_mechanisms as compare_mechanisms
from .planner import CollectionPlan as CollectionPlan

__all__: list[str]
