"""The sections of a configuration: typed tables that refuse what does not fit together."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

RandomizerName = Literal["krr", "hadamard", "unary", "local_hashing", "laplace", "budget_laplace"]
ShufflerName = Literal["identity", "uniform", "within_groups", "mallows", "noisy_sort", "planar", "rase", "best"]
AttackName = Literal["majority", "correlation", "definetti"]
Epsilon = Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]


NUMERIC = ("laplace", "budget_laplace")


class Section(BaseModel):
    """A table of the file: frozen, typed, unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class DataSection(Section):
    """Where the table is, which column is private and what its values may be.

    With `time`, a column of whole-number stamps, the table is a stream: a row for each person (device) and round.
    """

    path: str | None = None
    person: str | None = None
    time: str | None = None
    private: str
    public: list[str] = []
    missing: str = "refuse"
    categories: list[str] | None = None
    lower: Finite | None = None
    upper: Finite | None = None
    grid: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @property
    def numeric(self) -> bool:
        """Whether the private column is a number with declared bounds."""
        return self.lower is not None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.lower is None) != (self.upper is None):
            raise ValueError("`lower` and `upper` are declared together or not at all")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise ValueError(f"`lower` must be below `upper`, got {self.lower!r} and {self.upper!r}")
        if self.numeric and self.categories is not None:
            raise ValueError("declare either `categories` or `lower` and `upper`, not both")
        if self.grid is not None and not self.numeric:
            raise ValueError("`grid` goes with `lower` and `upper`")
        if self.categories is not None and len(self.categories) < 2:
            raise ValueError("`categories` must name at least two")
        if self.categories is not None and len(set(self.categories)) < len(self.categories):
            raise ValueError("`categories` must be distinct")
        if self.missing != "refuse" and self.numeric:
            raise ValueError('`missing` must be "refuse" for numbers: there is no category to put them in')
        if self.missing != "refuse" and self.categories is not None and self.missing not in self.categories:
            raise ValueError(f'`missing` must be "refuse" or a declared category, got {self.missing!r}')
        stamps = [self.time] if self.time else []
        reserved = [name for name in [*self.public, *stamps] if re.fullmatch(r"report(_\d+)?", name)]
        if reserved:
            raise ValueError(f"public column {reserved[0]!r} has a name that the reports need; rename it")
        columns = [self.private, *self.public, *([self.person] if self.person else []), *stamps]
        twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
        if twice:
            raise ValueError(
                f"column {twice[0]!r} has more than one role among `private`, `public`, `person` and `time`"
            )
        if self.time is not None and self.person is None:
            raise ValueError("`time` makes a stream of rounds: name the column of devices as `person`")
        if self.time is not None and not self.numeric:
            raise ValueError("`time` makes a stream of rounds of numbers: declare `lower` and `upper`")
        return self


class RandomizeSection(Section):
    """What happens on the device."""

    randomizer: RandomizerName = "krr"
    epsilon: Epsilon
    beta: Share | None = None
    rho: Share | None = None
    precision: Literal["guaranteed", "published"] | None = None

    @property
    def numeric(self) -> bool:
        """Whether it randomizes numbers."""
        return self.randomizer in NUMERIC

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.randomizer == "budget_laplace":
            if self.beta is None or self.rho is None:
                raise ValueError("randomizer 'budget_laplace' needs the precision requirement `beta` and `rho`")
        elif any(part is not None for part in (self.beta, self.rho, self.precision)):
            raise ValueError("`beta`, `rho` and `precision` go with randomizer 'budget_laplace'")
        return self


class GroupsSection(Section):
    """Who must be indistinguishable by order: equal or near labels, or points within a radius, or nearest points."""

    labels: str | None = None
    points: Annotated[list[str], Field(min_length=1)] | None = None
    radius: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    nearest: Annotated[int, Field(ge=2)] | None = None

    @property
    def columns(self) -> list[str]:
        """The public columns that the groups are made of."""
        return [self.labels] if self.labels is not None else list(self.points or [])

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.labels is None) == (self.points is None):
            raise ValueError("`groups` takes either `labels` (one column) or `points` (columns of coordinates)")
        if self.labels is not None and self.nearest is not None:
            raise ValueError("`nearest` goes with `points`")
        if self.points is not None and (self.radius is None) == (self.nearest is None):
            raise ValueError("`points` takes either `radius` or `nearest`")
        return self


class ShuffleSection(Section):
    """What happens in between."""

    shuffler: ShufflerName = "uniform"
    alpha: Annotated[float, Field(ge=0)] | None = None
    groups: GroupsSection | None = None
    graph: str | None = None
    refine: Literal["blocks", "agglomerative"] | None = None
    k: Annotated[int, Field(ge=1)] | None = None
    compare: list[ShufflerName] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.graph is not None or self.refine is not None) and "rase" not in (self.shuffler, *self.compare):
            raise ValueError("`graph` and `refine` go with shuffler 'rase'")
        if self.graph is not None and self.groups is not None:
            raise ValueError("give either `groups` or `graph`, an edge list of people, not both")
        if (self.refine is None) != (self.k is None):
            raise ValueError("`refine` and `k`, the number of refined groups, go together")
        for name in (self.shuffler, *self.compare):
            known = self.groups is not None or (name == "rase" and self.graph is not None)
            if name not in ("identity", "uniform") and not known:
                raise ValueError(f"shuffler {name!r} needs `groups`{' or `graph`' if name == 'rase' else ''}")
            asks = name not in ("identity", "uniform", "within_groups") and (
                name != "rase" or self.refine is not None
            )
            if asks and self.alpha is None:
                raise ValueError(f"shuffler {name!r} needs `alpha`")
            if name == "planar" and (self.groups is None or len(self.groups.points or []) != 2):
                raise ValueError("shuffler 'planar' needs groups of `points` with two coordinates")
        return self


class PromiseSection(Section):
    """What the central guarantee is stated for."""

    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    honest: Annotated[int, Field(ge=1)] | None = None
    cap: Annotated[float, Field(gt=0)] | None = None


class EstimateSection(Section):
    """What the analyst wants."""

    by: list[str] = []
    min_group_size: Annotated[int, Field(ge=2)] = 50
    estimator: Literal["rao-blackwell", "best"] = "rao-blackwell"
    window: Annotated[int, Field(ge=1)] | None = None


class AttackSection(Section):
    """The attacks that a rehearsal mounts on itself; the first one is the headline."""

    attacks: Annotated[list[AttackName], Field(min_length=1)] = ["majority", "correlation", "definetti"]
    similar: list[str] = []
    votes: Annotated[int, Field(ge=1, le=1000)] = 25
    trials: Annotated[int, Field(ge=2)] = 50
    targets: Annotated[int, Field(ge=1)] = 10_000
