"""Shufflers, one file each: what reorders a batch, and what its order then guarantees.

What a batch says about values is in `estimate`.

The shufflers, `Groups` and `load_shuffler` are names of `dovetail` itself. Here: `best_order`, a reference order of
small sensitivity, `Dummies`, `GaussianDummies`, `SeveralDummies` and `SparseDummies`, which a trusted shuffler
adds, `TruncatedGaussian`, the law of two of them, and `UserDummies`, which people send.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
