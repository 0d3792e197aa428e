"""Dovetail: randomize on the device, shuffle in between, estimate at the analyst.

Names are loaded when they are first used, so that the parts that need no arrays start without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "dovetail.core.entropy": ("Entropy", "device", "simulation"),
    "dovetail.core.errors": ("DovetailError",),
    "dovetail.core.bracket": ("Bracket",),
    "dovetail.core.channel": ("Channel", "DenseChannel", "KRRChannel"),
    "dovetail.core.estimate": ("Estimate",),
    "dovetail.core.guarantee": ("CentralDP", "LocalDP", "OrderPrivacy"),
    "dovetail.randomize.krr": ("KRR",),
    "dovetail.randomize.hadamard": ("Hadamard",),
    "dovetail.randomize.unary": ("Unary",),
    "dovetail.randomize.hashing": ("LocalHashing",),
    "dovetail.randomize.laplace": ("Laplace",),
    "dovetail.shuffle.groups": ("Groups",),
    "dovetail.shuffle.uniform": ("Identity", "Uniform", "WithinGroups"),
    "dovetail.shuffle.mallows": ("Mallows",),
    "dovetail.shuffle.noisy_sort": ("NoisySort",),
    "dovetail.shuffle.planar": ("PlanarLaplace",),
    "dovetail.shuffle.best": ("best_shuffler",),
    "dovetail.shuffle.portfolio": ("best_order",),
    "dovetail.shuffle.saving": ("load", "save"),
    "dovetail.account.order": ("posterior_interval", "reidentification_bound"),
    "dovetail.estimate.frequency": ("estimate_frequencies",),
    "dovetail.estimate.grouped": ("estimate_group_means", "estimate_groups", "unmix"),
    "dovetail.estimate.mean": ("estimate_mean",),
    "dovetail.estimate.simplex": ("project_to_simplex",),
    "dovetail.account.amplify": ("amplify",),
    "dovetail.account.calibrate": ("max_epsilon",),
    "dovetail.leak.vulnerability": ("vulnerability",),
    "dovetail.attack.majority": ("majority_vote", "voters"),
    "dovetail.pipeline.run": ("run",),
    "dovetail.report.document": ("PrivacyReport",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "KRR",
    "Bracket",
    "CentralDP",
    "Channel",
    "DenseChannel",
    "DovetailError",
    "Entropy",
    "Estimate",
    "Groups",
    "Hadamard",
    "Identity",
    "KRRChannel",
    "Laplace",
    "LocalDP",
    "LocalHashing",
    "Mallows",
    "NoisySort",
    "OrderPrivacy",
    "PlanarLaplace",
    "PrivacyReport",
    "Unary",
    "Uniform",
    "WithinGroups",
    "amplify",
    "best_order",
    "best_shuffler",
    "device",
    "estimate_frequencies",
    "estimate_group_means",
    "estimate_groups",
    "estimate_mean",
    "load",
    "majority_vote",
    "max_epsilon",
    "posterior_interval",
    "project_to_simplex",
    "reidentification_bound",
    "run",
    "save",
    "simulation",
    "unmix",
    "voters",
    "vulnerability",
]

if TYPE_CHECKING:
    from dovetail.account.amplify import amplify
    from dovetail.account.calibrate import max_epsilon
    from dovetail.account.order import posterior_interval, reidentification_bound
    from dovetail.attack.majority import majority_vote, voters
    from dovetail.core.bracket import Bracket
    from dovetail.core.channel import Channel, DenseChannel, KRRChannel
    from dovetail.core.entropy import Entropy, device, simulation
    from dovetail.core.errors import DovetailError
    from dovetail.core.estimate import Estimate
    from dovetail.core.guarantee import CentralDP, LocalDP, OrderPrivacy
    from dovetail.estimate.frequency import estimate_frequencies
    from dovetail.estimate.grouped import estimate_group_means, estimate_groups, unmix
    from dovetail.estimate.mean import estimate_mean
    from dovetail.estimate.simplex import project_to_simplex
    from dovetail.leak.vulnerability import vulnerability
    from dovetail.pipeline.run import run
    from dovetail.randomize.hadamard import Hadamard
    from dovetail.randomize.hashing import LocalHashing
    from dovetail.randomize.krr import KRR
    from dovetail.randomize.laplace import Laplace
    from dovetail.randomize.unary import Unary
    from dovetail.report.document import PrivacyReport
    from dovetail.shuffle.best import best_shuffler
    from dovetail.shuffle.groups import Groups
    from dovetail.shuffle.mallows import Mallows
    from dovetail.shuffle.noisy_sort import NoisySort
    from dovetail.shuffle.planar import PlanarLaplace
    from dovetail.shuffle.portfolio import best_order
    from dovetail.shuffle.saving import load, save
    from dovetail.shuffle.uniform import Identity, Uniform, WithinGroups


def __getattr__(name: str) -> Any:
    """Load a public name from the module that it lives in."""
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'dovetail' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
