"""What may be promised: theorems turned into numbers that round against us.

`amplify`, `max_epsilon`, `min_people` and `compose` are names of `dovetail` itself. Here: `list_bounds` and
`closed_forms` (every published bound beside ours), `Round`, `composed_delta` and `Composition` (rounds of several
kinds), `renyi_curve` and `to_dp_accounting` (other accountants), `posterior_interval` and `reidentification_bound`
(what an order promise means).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
