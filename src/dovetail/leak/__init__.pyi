"""The public names of `dovetail.leak`, once, with their home."""

from .exact import exact_vulnerability as exact_vulnerability
from .vulnerability import Vulnerability as Vulnerability

__all__: list[str]
