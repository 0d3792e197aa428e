"""The public names of `dovetail.shuffle`, once, with their home."""

from .dummies.dummies import Dummies as Dummies
from .dummies.user_dummies import UserDummies as UserDummies
from .reference_order.candidates import best_order as best_order

__all__: list[str]
