"""The main job on tables and streams: randomize, shuffle, estimate, evaluate, publish.

`run`, `Collection`, `rehearse` and `release` are names of `dovetail` itself. Here: a `Fleet` of devices that report
again and again, and its `FleetRun`. What was spent is remembered by the private ledger, `dovetail.ledger.releases`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
