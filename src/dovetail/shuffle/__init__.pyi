"""The public names of `dovetail.shuffle`, once, with their home."""

from .dummies.dummies import Dummies as Dummies
from .reference_order.candidates import best_order as best_order

__all__: list[str]
