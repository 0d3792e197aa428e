"""The public names of `dovetail.shuffle`, once, with their home."""

from .sampling.dummies import Dummies as Dummies
from .sampling.dummies import GaussianDummies as GaussianDummies, TruncatedGaussian as TruncatedGaussian
from .sampling.dummies import SeveralDummies as SeveralDummies, SparseDummies as SparseDummies
from .sampling.dummies import UserDummies as UserDummies
from .fitting.best_order import best_order as best_order

__all__: list[str]
