"""The configuration of a run: TOML, typed, with no key that is silently ignored."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from dovetail.core.checks import nearest
from dovetail.core.errors import ConfigError
from dovetail.pipeline.config.sections import (
    NUMERIC,
    AttackSection,
    DataSection,
    EstimateSection,
    PromiseSection,
    RandomizeSection,
    Section,
    ShuffleSection,
)

Chosen = TypeVar("Chosen", bound=Section)


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
        if self.data.numeric != self.randomize.numeric:
            wanted = " or ".join(NUMERIC) if self.data.numeric else "krr, hadamard, unary or local_hashing"
            raise ValueError(
                f"randomizer {self.randomize.randomizer!r} does not fit the private column: use {wanted}"
                + ("" if self.data.numeric else ", or declare `lower` and `upper` in [data]")
            )
        if self.estimate.estimator != "rao-blackwell" and not self.data.numeric:
            raise ValueError("[estimate] estimator is for numbers; shares have one")
        self._stream_or_table()
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

    def _stream_or_table(self) -> None:
        if self.data.time is None:
            only = {
                "[promise] cap": self.promise.cap,
                "[estimate] window": self.estimate.window,
                "[shuffle] graph": self.shuffle.graph,
            }
            for place, value in only.items():
                if value is not None:
                    raise ValueError(f"{place} is for streams: name the column of stamps, [data] time, or remove it")
            return
        for place, given in {
            "[shuffle] compare": bool(self.shuffle.compare),
            "[estimate] by": bool(self.estimate.by),
            "[attack]": "attack" in self.model_fields_set,
        }.items():
            if given:
                raise ValueError(f"{place} is for single tables, not for streams; remove it")
        if self.promise.cap is not None and self.promise.cap < self.randomize.epsilon:
            raise ValueError(
                f"[promise] cap must be at least the {self.randomize.epsilon:g} nats of one report, "
                f"got {self.promise.cap!r}"
            )


def load_config(path: str | Path) -> RunConfig:
    """Read and check a TOML file; paths in it are relative to the file.

    Raises
    ------
    ConfigError
        One line that names the file, the key, what is wrong and the nearest known key.
    """
    place = Path(path)
    config = parse_config(read_toml(place), name=str(place))
    data = config.data.model_copy(update={"path": _beside(place, config.data.path)})
    shuffle = config.shuffle.model_copy(update={"graph": _beside(place, config.shuffle.graph)})
    return config.model_copy(update={"data": data, "shuffle": shuffle})


def read_toml(place: Path) -> dict[str, Any]:
    """The tables of a TOML file; ConfigError says in one line what is wrong with it."""
    try:
        return tomllib.loads(place.read_bytes().decode("utf-8-sig"))
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


def _beside(config: Path, path: str | None) -> str | None:
    """A path in a configuration is relative to it."""
    return None if path is None else str(config.parent / path)


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
        known = list(_model_at(item["loc"][:-1], root).model_fields)
        return f"unknown key `{location}`{nearest(str(item['loc'][-1]), known)}".removesuffix(".")
    if item["type"] == "too_short":
        return f"`{location}` must have at least {item['ctx']['min_length']} entry, got {item['input']!r}."
    if item["type"] == "missing":
        return f"`{location}` is missing."
    if item["type"] == "value_error":
        return f"{'[' + location + '] ' if location else ''}{item['ctx']['error']}."
    if item["type"] in ("model_type", "model_attributes_type"):
        return f"`{location}` must be a table, such as [section] or {{ key = value }}, got {item['input']!r}."
    wanted = item["msg"].removeprefix("Input should be ").removeprefix("Value should be ")
    return f"`{location}` must be {wanted}, got {item['input']!r}."


def _model_at(location: tuple[Any, ...], model: type[BaseModel]) -> type[BaseModel]:
    """The model of the table that a location in the file names."""
    for part in location:
        field = model.model_fields.get(str(part))
        found = [] if field is None else [field.annotation, *get_args(field.annotation)]
        model = next((each for each in found if isinstance(each, type) and issubclass(each, BaseModel)), model)
    return model
