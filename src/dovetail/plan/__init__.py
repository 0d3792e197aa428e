"""From requirements to a collection: accuracy, risk and number of people, solved in any direction.

`plan_collection` is a name of `dovetail` itself; it gives a `CollectionPlan`. Here: `compare_mechanisms`, which
gives a `MechanismComparison` of mechanisms of equal accuracy by what they leak.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
