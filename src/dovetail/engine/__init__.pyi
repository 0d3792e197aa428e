"""The public names of `dovetail.engine`, once, with their home."""

from .run import run as run

__all__: list[str]
