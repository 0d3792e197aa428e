"""The configuration of a run: TOML, typed, with no key that is silently ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dovetail.core.checks import nearest
from dovetail.core.errors import ConfigError
from dovetail.core.registries import RANDOMIZERS, SHUFFLERS
from dovetail.pipeline.config.memoize_section import MemoizeSection
from dovetail.pipeline.config.parse import parse_section, read_toml
from dovetail.pipeline.config.sections import (
    AnyAttackSection,
    AnyRandomizeSection,
    AnyShuffleSection,
    AttackSection,
    DataSection,
    EstimateSection,
    PromiseSection,
    Section,
    ShuffleSection,
)
from dovetail.pipeline.evaluate.vectors.section import AnyVectorSection
from dovetail.pipeline.strings.section import StringsSection


class RunConfig(Section):
    """One run, from the table to the report."""

    schema_version: Literal[1]
    title: str | None = None
    mode: Literal["rehearsal", "release"]
    seed: Annotated[int, Field(ge=0)] | None = None
    data: DataSection
    randomize: AnyRandomizeSection | None = None
    shuffle: AnyShuffleSection = ShuffleSection()
    promise: PromiseSection = PromiseSection()
    estimate: EstimateSection = EstimateSection()
    attack: AnyAttackSection = AttackSection.choose({})
    strings: StringsSection | None = None
    vector: AnyVectorSection | None = None
    memoize: MemoizeSection | None = None

    @property
    def numbers(self) -> list[str]:
        """Public columns that must be numbers."""
        groups = self.shuffle.groups
        measured = [] if groups is None or (groups.labels is not None and not groups.radius) else groups.columns
        return list(dict.fromkeys(measured))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        release = self.mode == "release"
        if release and self.seed is not None:
            raise ValueError("a release draws from the operating system and refuses `seed`; remove it")
        if self.vector is not None:
            self.vector.refuse_others(self.model_fields_set, self.data)
            return self
        if self.strings is not None:
            self.strings.refuse_others(self.model_fields_set, self.data, release=release)
            return self
        if release and not self.data.numeric and self.data.categories is None:
            raise ValueError("a release must declare `categories` (for numbers: `lower`, `upper`) in [data]")
        if release and self.data.unconfirmed:
            keys = ", ".join(f"`{key}`" for key in self.data.unconfirmed)
            raise ValueError(
                f"a release declares {keys} in [data] without looking at the table: confirm or correct them, then "
                "delete `unconfirmed`"
            )
        if release and self.shuffle.compare:
            raise ValueError("`compare` is for rehearsals: a release uses one shuffler")
        if release and not SHUFFLERS[self.shuffle.shuffler].moves_reports:
            raise ValueError(
                f'a release must shuffle: `shuffler` "{self.shuffle.shuffler}" would publish who sent what'
            )
        if release and "attack" in self.model_fields_set:
            raise ValueError("[attack] needs the truth and is for rehearsals only; remove it")
        if self.memoize is not None:
            self.memoize.refuse_others(self)
        self._trusted()
        self._by_class()
        question = "mean" if self.data.numeric else "frequency"
        if self.randomize is not None and question != self.randomize.kind.question:
            *most, last = [kind.name for kind in RANDOMIZERS if kind.question == question]
            wanted = f"{', '.join(most)} or {last}"
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
            "[randomize] by": [self.randomize.by] if self.randomize is not None and self.randomize.by else [],
            "[attack] similar": self.attack.similar,
        }
        for place, names in wanted_columns.items():
            for name in names:
                if name not in self.data.public:
                    raise ValueError(
                        f"{place}: column {name!r} is not listed in [data] public{nearest(name, self.data.public)}"
                    )
        return self

    def _trusted(self) -> None:
        """Whether what is collected fits to who makes the noise."""
        if self.promise.trust == "local":
            if self.randomize is None:
                raise ValueError(
                    '[randomize] is missing: without local noise, set [promise] trust = "shuffler" or "users"'
                )
            return
        needs = f'[promise] trust = "{self.promise.trust}"'
        if self.data.numeric and self.randomize is not None:
            raise ValueError(f"{needs} goes without [randomize] for numbers: they are rounded to a grid and sent")
        if self.promise.trust == "users" and self.randomize is not None:
            raise ValueError(f"{needs} goes without [randomize]: people send their answers as they are")
        if self.randomize is not None and self.randomize.randomizer != "krr":
            raise ValueError(f'{needs} goes without [randomize], or with randomizer "krr" as a second layer')
        places = {
            "[data] time": self.data.time is not None,
            "[estimate] estimator": self.estimate.estimator != "rao-blackwell",
            **self._other_shuffles,
            **self._of_one_table,
        }
        self._refuse(places, f"does not go with {needs}; remove it")

    def _by_class(self) -> None:
        """Whether what is asked for goes with epsilons that differ: reports are mixed and carry no class."""
        if self.randomize is None or self.randomize.by is None:
            return
        places = {
            f'[promise] trust = "{self.promise.trust}"': self.promise.trust != "local",
            "[data] time": self.data.time is not None,
            **self._other_shuffles,
            **self._of_one_table,
        }
        self._refuse(places, "does not go with [randomize] by; remove one of them")

    def _stream_or_table(self) -> None:
        """Whether what is asked for goes with rounds of a stream, or with one table."""
        if self.data.time is None:
            only = {
                "[promise] cap": self.promise.cap,
                "[estimate] window": self.estimate.window,
                "[estimate] unbiased": self.estimate.unbiased or None,
            } | {f"[shuffle] {name}": value for name, value in files_of(self.shuffle, of_streams=True).items()}
            given = {place: value is not None for place, value in only.items()}
            self._refuse(given, "is for streams: name the column of stamps, [data] time, or remove it")
            return
        self._refuse(self._of_one_table, "is for single tables, not for streams; remove it")
        if self.promise.cap is not None and self.randomize and self.promise.cap < self.randomize.epsilon:
            raise ValueError(
                f"[promise] cap must be at least the {self.randomize.epsilon:g} nats of one report, "
                f"got {self.promise.cap!r}"
            )

    @property
    def _other_shuffles(self) -> dict[str, bool]:
        """The place of a shuffle of other people than everybody, and whether there is one."""
        return {f'[shuffle] shuffler = "{self.shuffle.shuffler}"': self.shuffle.shuffler != "uniform"}

    @property
    def _of_one_table(self) -> dict[str, bool]:
        """Places of what needs to know whose report is whose, and whether they are given."""
        return {
            "[shuffle] compare": bool(self.shuffle.compare),
            "[estimate] by": bool(self.estimate.by),
            "[attack]": "attack" in self.model_fields_set,
        }

    @staticmethod
    def _refuse(places: dict[str, bool], why: str) -> None:
        """Refuse the first place that is given."""
        for place, given in places.items():
            if given:
                raise ValueError(f"{place} {why}")


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
    files = {name: _beside(place, path) for name, path in files_of(config.shuffle).items()}
    return config.model_copy(update={"data": data, "shuffle": config.shuffle.model_copy(update=files)})


def files_of(section: ShuffleSection, *, of_streams: bool = False) -> dict[str, str | None]:
    """The files that the settings of shufflers name; with `of_streams` those that go with streams only."""
    kinds = [SHUFFLERS[name] for name in (section.shuffler, *section.compare)]
    settings = [one for kind in kinds for one in kind.settings() if one.is_file]
    names = [one.name for one in settings if one.is_of_streams or not of_streams]
    return {name: getattr(section, name) for name in dict.fromkeys(names)}


def _beside(config: Path, path: str | None) -> str | None:
    """A path in a configuration is relative to it; an address is not."""
    return path if path is None or "://" in path else str(config.parent / path)


def parse_config(raw: dict[str, Any], *, name: str = "configuration") -> RunConfig:
    """Check a configuration given as a dictionary."""
    if "questions" in raw:
        raise ConfigError(
            f"{name}: [[questions]] go with `run` and `plan-questions` alone, on one table and without --engine."
        )
    return parse_section(RunConfig, raw, name=name)
