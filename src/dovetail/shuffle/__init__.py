"""What happens in between: groups, reference orders and shufflers.

The shufflers and `Groups` are names of `dovetail` itself. Here: `best_order` (a reference order of small
sensitivity), `save` and `load` (a fitted shuffler as a file).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
