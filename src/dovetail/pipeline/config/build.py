"""From the configuration to the objects of each stage."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, simulation, system_entropy
from dovetail.core.errors import ParameterError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Shuffler
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.config.sections import GroupsSection
from dovetail.pipeline.files.table import Survey
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from dovetail.shuffle.best import best_shuffler
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace
from dovetail.shuffle.rase import RASE, Refinement
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

Points = NDArray[np.float64]  # (n, d)

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
    if categories is None:
        return build_numeric(config)
    return build_frequency(config.randomize.randomizer, k=len(categories), epsilon=config.randomize.epsilon)


def build_numeric(config: RunConfig) -> NumericRandomizer:
    """The randomizer of a number in the declared range."""
    data, asked = config.data, config.randomize
    assert data.lower is not None and data.upper is not None  # the configuration has been checked
    if asked.randomizer == "laplace":
        return Laplace(data.lower, data.upper, epsilon=asked.epsilon, grid=data.grid)
    assert asked.beta is not None and asked.rho is not None
    return BudgetLaplace(
        data.lower, data.upper, asked.epsilon, beta=asked.beta, rho=asked.rho,
        precision=asked.precision or "guaranteed", grid=data.grid,
    )  # fmt: skip


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


def build_shuffler(
    name: str,
    *,
    n: int,
    groups: Any,
    alpha: float | None,
    points: Points | None = None,
    refine: Refinement | None = None,
    k: int | None = None,
) -> Shuffler:
    """A shuffler by its name, fitted to public groups and, where there are some, public points (n, d).

    `rase` takes a graph of people in place of groups; `refine` and `k` are for it alone.
    """
    if name == "identity":
        return Identity(n)
    if name == "uniform":
        return Uniform(n)
    assert groups is not None  # the configuration has been checked
    if name == "within_groups":
        return WithinGroups(groups)
    if name == "rase":
        return RASE.fit(groups, alpha=alpha or 0.0, refine=refine, k=k)
    wanted = math.inf if alpha is None else alpha
    if name == "planar":
        if points is None:
            raise ParameterError("shuffler planar moves points in the plane: it needs two columns of coordinates.")
        return PlanarLaplace.fit(groups, alpha=wanted, points=points)
    fits: dict[str, Callable[..., Shuffler]] = {
        "mallows": Mallows.fit,
        "noisy_sort": NoisySort.fit,
        "best": best_shuffler,
    }
    return fits[name](groups, alpha=wanted, points=points)


def public_points(section: GroupsSection | None, survey: Survey) -> Points | None:
    """The coordinates that groups of points are made of, for shufflers that can use them."""
    if section is None or section.points is None:
        return None
    return survey.numbers(section.points)


def fresh(config: RunConfig) -> Entropy:
    """The door to randomness that this run goes through."""
    return system_entropy() if config.seed is None else simulation(config.seed)
