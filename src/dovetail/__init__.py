"""Dovetail: randomize on the device, shuffle in between, estimate at the analyst.

The names are listed in `__init__.pyi` and loaded when they are first used, so that what needs no arrays starts
without them. Submodules with names of their own: `account`, `attack`, `datasets`, `engine`, `estimate`, `leak`,
`plan` and `shuffle`; `job` is imported by its own name.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
