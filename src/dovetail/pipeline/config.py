"""The configuration of a run: TOML, typed, with no key that is silently ignored."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dovetail.core.errors import ConfigError

RandomizerName = Literal["krr", "hadamard", "unary", "local_hashing", "laplace"]
ShufflerName = Literal["identity", "uniform", "within_groups", "mallows", "noisy_sort", "planar", "best"]
Epsilon = Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


Chosen = TypeVar("Chosen", bound="Section")


class Section(BaseModel):
    """A table of the file: frozen, typed, unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class DataSection(Section):
    """Where the table is, which column is private and what its values may be."""

    path: str | None = None
    person: str | None = None
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
        reserved = [name for name in self.public if re.fullmatch(r"report(_\d+)?", name)]
        if reserved:
            raise ValueError(f"public column {reserved[0]!r} has a name that the reports need; rename it")
        columns = [self.private, *self.public, *([self.person] if self.person else [])]
        twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
        if twice:
            raise ValueError(f"column {twice[0]!r} has more than one role among `private`, `public` and `person`")
        return self


class RandomizeSection(Section):
    """What happens on the device."""

    randomizer: RandomizerName = "krr"
    epsilon: Epsilon


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
    compare: list[ShufflerName] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in (self.shuffler, *self.compare):
            if name not in ("identity", "uniform") and self.groups is None:
                raise ValueError(f"shuffler {name!r} needs `groups`")
            if name not in ("identity", "uniform", "within_groups") and self.alpha is None:
                raise ValueError(f"shuffler {name!r} needs `alpha`")
            if name == "planar" and (self.groups is None or len(self.groups.points or []) != 2):
                raise ValueError("shuffler 'planar' needs groups of `points` with two coordinates")
        return self


class PromiseSection(Section):
    """What the central guarantee is stated for."""

    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    honest: Annotated[int, Field(ge=1)] | None = None


class EstimateSection(Section):
    """What the analyst wants."""

    by: list[str] = []
    min_group_size: Annotated[int, Field(ge=2)] = 50


class AttackSection(Section):
    """The majority vote attack that a rehearsal mounts on itself."""

    similar: list[str] = []
    votes: Annotated[int, Field(ge=1, le=1000)] = 25
    trials: Annotated[int, Field(ge=2)] = 50
    targets: Annotated[int, Field(ge=1)] = 10_000


class RunConfig(Section):
    """One run, from the table to the report."""

    schema_version: Literal[1]
    title: str | None = None
    mode: Literal["rehearsal", "release"]
    seed: Annotated[int, Field(ge=0)] | None = None
    data: DataSection
    randomize: RandomizeSection
    shuffle: ShuffleSection = ShuffleSection()
    promise: PromiseSection = PromiseSection()
    estimate: EstimateSection = EstimateSection()
    attack: AttackSection = AttackSection()

    @property
    def numbers(self) -> list[str]:
        """Public columns that must be numbers."""
        groups = self.shuffle.groups
        measured = [] if groups is None or (groups.labels is not None and not groups.radius) else groups.columns
        return list(dict.fromkeys([*measured, *self.attack.similar]))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        release = self.mode == "release"
        if release and self.seed is not None:
            raise ValueError("a release draws from the operating system and refuses `seed`; remove it")
        if release and not self.data.numeric and self.data.categories is None:
            raise ValueError("a release must declare `categories` (for numbers: `lower`, `upper`) in [data]")
        if release and self.shuffle.compare:
            raise ValueError("`compare` is for rehearsals: a release uses one shuffler")
        if release and self.shuffle.shuffler == "identity":
            raise ValueError('a release must shuffle: `shuffler` "identity" would publish who sent what')
        if release and "attack" in self.model_fields_set:
            raise ValueError("[attack] needs the truth and is for rehearsals only; remove it")
        if self.data.numeric != (self.randomize.randomizer == "laplace"):
            wanted = "laplace" if self.data.numeric else "krr, hadamard, unary or local_hashing"
            raise ValueError(
                f"randomizer {self.randomize.randomizer!r} does not fit the private column: use {wanted}"
                + ("" if self.data.numeric else ", or declare `lower` and `upper` in [data]")
            )
        wanted_columns = {
            "[shuffle] groups": self.shuffle.groups.columns if self.shuffle.groups else [],
            "[estimate] by": self.estimate.by,
            "[attack] similar": self.attack.similar,
        }
        for place, names in wanted_columns.items():
            for name in names:
                if name not in self.data.public:
                    raise ValueError(
                        f"{place}: column {name!r} is not listed in [data] public{nearest(name, self.data.public)}"
                    )
        return self


def nearest(name: str, known: list[str]) -> str:
    """A hint that names the nearest known word, or lists what is known."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(known[:12])}" if known else ""


def load_config(path: str | Path) -> RunConfig:
    """Read and check a TOML file; data paths in it are relative to the file.

    Raises
    ------
    ConfigError
        One line that names the file, the key, what is wrong and the nearest known key.
    """
    place = Path(path)
    try:
        text = place.read_bytes().decode("utf-8-sig")
        raw = tomllib.loads(text)
    except FileNotFoundError:
        raise ConfigError(f"{place}: no such file.") from None
    except IsADirectoryError:
        raise ConfigError(f"{place}: is a directory; name the TOML file inside it.") from None
    except OSError as error:
        raise ConfigError(f"{place}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{place}: is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{place}: is not TOML: {error}.") from None
    config = parse_config(raw, name=str(place))
    if config.data.path is not None and not Path(config.data.path).is_absolute():
        data = config.data.model_copy(update={"path": str(place.parent / config.data.path)})
        config = config.model_copy(update={"data": data})
    return config


def parse_config(raw: dict[str, Any], *, name: str = "configuration") -> RunConfig:
    """Check a configuration given as a dictionary."""
    return parse_section(RunConfig, raw, name=name)


def parse_section(section: type[Chosen], raw: dict[str, Any], *, name: str) -> Chosen:
    """Check one section by itself."""
    try:
        return section.model_validate(raw)
    except ValidationError as error:
        lines = dict.fromkeys(_line(item, section) for item in error.errors(include_url=False))
        raise ConfigError("\n".join(f"{name}: {line}" for line in lines)) from None


def _line(item: Any, root: type[Section]) -> str:
    location = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        model = _model_at(item["loc"][:-1], root)
        known = [] if model is None else list(model.model_fields)
        return f"unknown key `{location}`{nearest(str(item['loc'][-1]), known)}".removesuffix(".")
    if item["type"] == "missing":
        return f"`{location}` is missing."
    if item["type"] == "value_error":
        return f"{'[' + location + '] ' if location else ''}{item['ctx']['error']}."
    if item["type"] in ("model_type", "model_attributes_type"):
        return f"`{location}` must be a table, such as [section] or {{ key = value }}, got {item['input']!r}."
    wanted = item["msg"].removeprefix("Input should be ").removeprefix("Value should be ")
    return f"`{location}` must be {wanted}, got {item['input']!r}."


def _model_at(location: tuple[Any, ...], root: type[Section]) -> type[BaseModel] | None:
    """The model that a location in the file belongs to."""
    models: dict[str, type[BaseModel]] = {
        "data": DataSection,
        "randomize": RandomizeSection,
        "shuffle": ShuffleSection,
        "promise": PromiseSection,
        "estimate": EstimateSection,
        "attack": AttackSection,
        "groups": GroupsSection,
    }
    return models.get(str(location[-1])) if location else root
