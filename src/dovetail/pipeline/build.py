"""From the configuration to the objects of each stage."""

from __future__ import annotations

import math
from collections.abc import Callable

import polars as pl

from dovetail.core.entropy import Entropy, device, simulation
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Shuffler
from dovetail.pipeline.config import GroupsSection, RunConfig
from dovetail.pipeline.table import Survey
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.hashing import LocalHashing
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.unary import Unary
from dovetail.shuffle.best import best_shuffler
from dovetail.shuffle.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.uniform import Identity, Uniform, WithinGroups

FREQUENCY: dict[str, Callable[..., FrequencyRandomizer]] = {
    "krr": KRR,
    "hadamard": Hadamard,
    "unary": Unary,
    "local_hashing": LocalHashing,
}


def build_randomizer(
    config: RunConfig, categories: tuple[str, ...] | None
) -> FrequencyRandomizer | NumericRandomizer:
    """The randomizer that every device runs."""
    epsilon = config.randomize.epsilon
    if categories is None:
        lower, upper = config.data.lower, config.data.upper
        assert lower is not None and upper is not None
        return Laplace(lower, upper, epsilon=epsilon, grid=config.data.grid)
    return build_frequency(config.randomize.randomizer, k=len(categories), epsilon=epsilon)


def build_frequency(name: str, *, k: int, epsilon: float) -> FrequencyRandomizer:
    """A randomizer of k symbols by its name."""
    return FREQUENCY[name](k=k, epsilon=epsilon)


def build_groups(section: GroupsSection, survey: Survey) -> Groups:
    """Groups from public columns; labels that are no numbers can only be equal."""
    if section.labels is None:
        points = survey.numbers(section.columns)
        if section.nearest is not None:
            return Groups.nearest(points, section.nearest)
        assert section.radius is not None
        return Groups.within_radius(points, section.radius)
    if section.radius:
        return Groups.from_labels(survey.numbers([section.labels])[:, 0], radius=section.radius)
    codes = survey.public[section.labels].cast(pl.String).rank("dense").to_numpy()
    return Groups.from_labels(codes)


def build_shuffler(name: str, *, n: int, groups: Groups | None, alpha: float | None) -> Shuffler:
    """A shuffler by its name, fitted to public groups."""
    if name == "identity":
        return Identity(n)
    if name == "uniform":
        return Uniform(n)
    assert groups is not None  # the configuration has been checked
    if name == "within_groups":
        return WithinGroups(groups)
    wanted = math.inf if alpha is None else alpha
    return best_shuffler(groups, alpha=wanted) if name == "best" else Mallows.fit(groups, alpha=wanted)


def fresh(config: RunConfig) -> Entropy:
    """The door to randomness that this run goes through."""
    return device() if config.seed is None else simulation(config.seed)
