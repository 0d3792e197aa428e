"""The same job on more rows than one machine holds: `run` draws a release on several processes or on Apache Spark.

Randomness is keyed by person, so that a task which is tried again draws the same reports; what travels between the
tasks is sealed; the files that are published are those that were counted.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
