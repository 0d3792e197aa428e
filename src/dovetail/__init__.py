"""Dovetail: randomize on the device, shuffle in between, estimate at the analyst.

Names are loaded when they are first used, so that the parts that need no arrays start without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "dovetail.core.entropy": ("Entropy", "simulation", "system_entropy"),
    "dovetail.core.errors": ("DovetailError",),
    "dovetail.core.bracket": ("Bracket",),
    "dovetail.core.channel": ("Channel", "DenseChannel", "KRRChannel"),
    "dovetail.core.estimate": ("Estimate",),
    "dovetail.core.guarantee": ("CentralDP", "LocalDP", "OrderPrivacy"),
    "dovetail.randomize.krr": ("KRR",),
    "dovetail.randomize.hadamard": ("Hadamard",),
    "dovetail.randomize.unary": ("Unary",),
    "dovetail.randomize.local_hashing": ("LocalHashing",),
    "dovetail.randomize.laplace": ("Laplace",),
    "dovetail.randomize.budget_laplace": ("BudgetLaplace",),
    "dovetail.shuffle.groups.groups": ("Groups",),
    "dovetail.shuffle.identity": ("Identity",),
    "dovetail.shuffle.uniform": ("Uniform",),
    "dovetail.shuffle.within_groups": ("WithinGroups",),
    "dovetail.shuffle.mallows": ("Mallows",),
    "dovetail.shuffle.noisy_sort": ("NoisySort",),
    "dovetail.shuffle.planar_laplace": ("PlanarLaplace",),
    "dovetail.shuffle.best": ("best_shuffler",),
    "dovetail.shuffle.reference_order.candidates": ("best_order",),
    "dovetail.shuffle.load": ("load_shuffler",),
    "dovetail.shuffle.rase": ("RASE",),
    "dovetail.estimate.frequency": ("estimate_frequencies",),
    "dovetail.estimate.grouped": ("estimate_group_means", "estimate_groups", "unmix"),
    "dovetail.estimate.mean": ("estimate_mean",),
    "dovetail.estimate.simplex": ("project_to_simplex",),
    "dovetail.estimate.best_mean": ("best_mean",),
    "dovetail.estimate.bootstrap": ("bootstrap_mean",),
    "dovetail.estimate.median": ("estimate_median",),
    "dovetail.estimate.aggregates": (
        "estimate_count_above",
        "estimate_quantile",
        "estimate_sum",
        "estimate_variance",
    ),
    "dovetail.estimate.budget_classes": ("estimate_classes",),
    "dovetail.estimate.local": ("CalibratedTrees", "Debiased", "GroupShares", "hit_rate", "local_error"),
    "dovetail.account.order_privacy.posterior_odds": ("posterior_interval", "reidentification_bound"),
    "dovetail.account.amplify": ("amplify", "list_bounds"),
    "dovetail.account.calibrate": ("max_epsilon", "min_people"),
    "dovetail.account.compose": ("compose", "composed_delta"),
    "dovetail.account.composition.shuffled_round": ("ShuffledRound",),
    "dovetail.account.interop": ("renyi_curve", "to_dp_accounting"),
    "dovetail.account.closed_form.closed_forms": ("closed_forms",),
    "dovetail.leak.vulnerability": ("Vulnerability", "vulnerability"),
    "dovetail.leak.exact.fractions": ("exact_vulnerability",),
    "dovetail.attack.majority": ("MajorityVote",),
    "dovetail.attack.experiment.voters": ("voters",),
    "dovetail.attack.reidentify.forest": ("ForestAttack", "Records", "reidentify", "release_rounds"),
    "dovetail.attack.experiment.result": ("Attacked", "mount"),
    "dovetail.attack.correlation": ("Correlation", "Smoothness", "learn_smoothness"),
    "dovetail.attack.definetti": ("DeFinetti",),
    "dovetail.attack.reidentify.subset": (
        "SubsetSearch",
        "best_subset_success",
        "reidentify_subset",
        "subset_bound",
    ),
    "dovetail.plan.planner": ("CollectionPlan", "plan_collection"),
    "dovetail.plan.compare.mechanisms": ("Comparison", "compare_mechanisms"),
    "dovetail.pipeline.run": ("run",),
    "dovetail.pipeline.stream.fleet": ("Campaign",),
    "dovetail.pipeline.stream.fleet_run": ("Rounds",),
    "dovetail.report.document": ("PrivacyReport",),
    "dovetail.datasets.refit": ("appliance_load", "read_refit"),
    "dovetail.datasets.synthetic_loads": ("synthetic_loads",),
    "dovetail.datasets.adult": ("adult",),
    "dovetail.datasets.twitch": ("twitch", "twitch_friendships"),
    "dovetail.datasets.california": ("california_housing",),
    "dovetail.datasets.sml2010": ("sml2010",),
    "dovetail.datasets.nested_crescents": ("nested_crescents",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "KRR",
    "RASE",
    "Attacked",
    "Bracket",
    "BudgetLaplace",
    "CalibratedTrees",
    "Campaign",
    "CentralDP",
    "Channel",
    "CollectionPlan",
    "Comparison",
    "Correlation",
    "DeFinetti",
    "Debiased",
    "DenseChannel",
    "DovetailError",
    "Entropy",
    "Estimate",
    "ForestAttack",
    "GroupShares",
    "Groups",
    "Hadamard",
    "Identity",
    "KRRChannel",
    "Laplace",
    "LocalDP",
    "LocalHashing",
    "MajorityVote",
    "Mallows",
    "NoisySort",
    "OrderPrivacy",
    "PlanarLaplace",
    "PrivacyReport",
    "Records",
    "Rounds",
    "ShuffledRound",
    "Smoothness",
    "SubsetSearch",
    "Unary",
    "Uniform",
    "Vulnerability",
    "WithinGroups",
    "adult",
    "amplify",
    "appliance_load",
    "best_mean",
    "best_order",
    "best_shuffler",
    "best_subset_success",
    "bootstrap_mean",
    "california_housing",
    "closed_forms",
    "compare_mechanisms",
    "compose",
    "composed_delta",
    "estimate_classes",
    "estimate_count_above",
    "estimate_frequencies",
    "estimate_group_means",
    "estimate_groups",
    "estimate_mean",
    "estimate_median",
    "estimate_quantile",
    "estimate_sum",
    "estimate_variance",
    "exact_vulnerability",
    "hit_rate",
    "learn_smoothness",
    "list_bounds",
    "load_shuffler",
    "local_error",
    "max_epsilon",
    "min_people",
    "mount",
    "nested_crescents",
    "plan_collection",
    "posterior_interval",
    "project_to_simplex",
    "read_refit",
    "reidentification_bound",
    "reidentify",
    "reidentify_subset",
    "release_rounds",
    "renyi_curve",
    "run",
    "simulation",
    "sml2010",
    "subset_bound",
    "synthetic_loads",
    "system_entropy",
    "to_dp_accounting",
    "twitch",
    "twitch_friendships",
    "unmix",
    "voters",
    "vulnerability",
]

if TYPE_CHECKING:
    from dovetail.account.amplify import amplify, list_bounds
    from dovetail.account.calibrate import max_epsilon, min_people
    from dovetail.account.closed_form.closed_forms import closed_forms
    from dovetail.account.compose import compose, composed_delta
    from dovetail.account.composition.shuffled_round import ShuffledRound
    from dovetail.account.interop import renyi_curve, to_dp_accounting
    from dovetail.account.order_privacy.posterior_odds import posterior_interval, reidentification_bound
    from dovetail.attack.correlation import Correlation, Smoothness, learn_smoothness
    from dovetail.attack.definetti import DeFinetti
    from dovetail.attack.experiment.result import Attacked, mount
    from dovetail.attack.experiment.voters import voters
    from dovetail.attack.majority import MajorityVote
    from dovetail.attack.reidentify.forest import ForestAttack, Records, reidentify, release_rounds
    from dovetail.attack.reidentify.subset import (
        SubsetSearch,
        best_subset_success,
        reidentify_subset,
        subset_bound,
    )
    from dovetail.core.bracket import Bracket
    from dovetail.core.channel import Channel, DenseChannel, KRRChannel
    from dovetail.core.entropy import Entropy, simulation, system_entropy
    from dovetail.core.errors import DovetailError
    from dovetail.core.estimate import Estimate
    from dovetail.core.guarantee import CentralDP, LocalDP, OrderPrivacy
    from dovetail.datasets.adult import adult
    from dovetail.datasets.california import california_housing
    from dovetail.datasets.nested_crescents import nested_crescents
    from dovetail.datasets.refit import appliance_load, read_refit
    from dovetail.datasets.sml2010 import sml2010
    from dovetail.datasets.synthetic_loads import synthetic_loads
    from dovetail.datasets.twitch import twitch, twitch_friendships
    from dovetail.estimate.aggregates import estimate_count_above, estimate_quantile, estimate_sum, estimate_variance
    from dovetail.estimate.best_mean import best_mean
    from dovetail.estimate.bootstrap import bootstrap_mean
    from dovetail.estimate.budget_classes import estimate_classes
    from dovetail.estimate.frequency import estimate_frequencies
    from dovetail.estimate.grouped import estimate_group_means, estimate_groups, unmix
    from dovetail.estimate.local import CalibratedTrees, Debiased, GroupShares, hit_rate, local_error
    from dovetail.estimate.mean import estimate_mean
    from dovetail.estimate.median import estimate_median
    from dovetail.estimate.simplex import project_to_simplex
    from dovetail.leak.exact.fractions import exact_vulnerability
    from dovetail.leak.vulnerability import Vulnerability, vulnerability
    from dovetail.pipeline.run import run
    from dovetail.pipeline.stream.fleet import Campaign
    from dovetail.pipeline.stream.fleet_run import Rounds
    from dovetail.plan.compare.mechanisms import Comparison, compare_mechanisms
    from dovetail.plan.planner import CollectionPlan, plan_collection
    from dovetail.randomize.budget_laplace import BudgetLaplace
    from dovetail.randomize.hadamard import Hadamard
    from dovetail.randomize.krr import KRR
    from dovetail.randomize.laplace import Laplace
    from dovetail.randomize.local_hashing import LocalHashing
    from dovetail.randomize.unary import Unary
    from dovetail.report.document import PrivacyReport
    from dovetail.shuffle.best import best_shuffler
    from dovetail.shuffle.groups.groups import Groups
    from dovetail.shuffle.identity import Identity
    from dovetail.shuffle.load import load_shuffler
    from dovetail.shuffle.mallows import Mallows
    from dovetail.shuffle.noisy_sort import NoisySort
    from dovetail.shuffle.planar_laplace import PlanarLaplace
    from dovetail.shuffle.rase import RASE
    from dovetail.shuffle.reference_order.candidates import best_order
    from dovetail.shuffle.uniform import Uniform
    from dovetail.shuffle.within_groups import WithinGroups


def __getattr__(name: str) -> Any:
    """Load a public name from the module that it lives in."""
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'dovetail' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
