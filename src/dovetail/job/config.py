"""The configuration of a run: TOML, typed, with no key that is silently ignored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from dovetail.account.compose import CHANGES, WORD
from dovetail.core.checks import nearest
from dovetail.core.errors import ConfigError, ParameterError
from dovetail.core.noise import NOISES
from dovetail.core.question import QUESTIONS, Question
from dovetail.core.registry import Declared, Registry
from dovetail.core.stages import ATTACKS, RANDOMIZERS, SHUFFLERS, Randomizer
from dovetail.job.together import STRINGS, choices_of
from dovetail.question.vector import check_clip
from dovetail.randomize.sampling.open_reports import randomizer_kind
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail.table.data_section import RULES, Chosen, DataSection, Section, parse_section, read_toml

# The sections of a configuration: typed tables that refuse what does not fit together.
#
# What mechanisms can be set comes from their declarations: a section takes the keys of those that it names.


MOST_MIXED = 40.0  # epsilon of a person among others with other epsilons


class _MechanismSection(Section):
    """A section whose further keys are the settings of the mechanisms that it names."""

    registry: ClassVar[Registry[Any]]

    @classmethod
    def named(cls, raw: dict[str, Any]) -> list[type[Declared]]:
        """The mechanisms that a table names."""
        raise NotImplementedError  # abstract: pydantic's metaclass leaves no room for ABC

    @classmethod
    def choose(cls, raw: Any) -> Self:
        if not isinstance(raw, dict):
            return cls.model_validate(raw)
        raw = {key: value for key, value in raw.items() if value is not None}  # as TOML has it
        try:
            model = with_settings(cls, tuple(cls.named(raw)))
        except ParameterError as error:
            raise ValueError(str(error)) from None
        for key in raw:
            if key not in model.model_fields:
                _refuse_settings_of_others(key, cls.registry)
                raise PydanticCustomError("unknown_key", "unknown", {"key": key, "known": [*model.model_fields]})
        chosen: Self = model.model_validate(raw)
        return chosen

    def settings_of(self, kind: type[Declared]) -> dict[str, Any]:
        """The settings of one mechanism in this section; none of one that it does not name."""
        return {one.name: getattr(self, one.name) for one in kind.settings() if one.name in type(self).model_fields}


def _refuse_settings_of_others(key: str, registry: Registry[Any]) -> None:
    """ValueError for a key that belongs to mechanisms which are not named."""
    takers = [repr(kind.name) for kind in registry if any(one.name == key for one in kind.settings())]
    if takers:
        raise ValueError(f"`{key}` goes with {registry.kind} {' or '.join(takers)}")


@cache
def with_settings(section: type[Chosen], kinds: tuple[type[Declared], ...]) -> type[Chosen]:
    """`section` with the settings of these mechanisms as further keys."""
    own = {one.name: one for kind in kinds for one in kind.settings() if one.name not in section.model_fields}
    keys: dict[str, Any] = {one.name: (one.annotation, ... if one.required else one.default) for one in own.values()}
    return create_model(section.__name__, __base__=section, **keys)


def _chosen(section: type[Section]) -> BeforeValidator:
    return BeforeValidator(lambda raw: raw if isinstance(raw, section) else section.choose(raw))


class RandomizeSection(_MechanismSection):
    """The randomizer, which runs on the device.

    With `by`, a public column, `epsilons` sets the epsilon of people by its texts; all others have `epsilon`.
    """

    registry: ClassVar[Registry[Any]] = RANDOMIZERS
    randomizer: str = "krr"
    epsilon: Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)]
    by: str | None = None
    epsilons: dict[str, Annotated[float, Field(gt=0, le=MOST_MIXED, allow_inf_nan=False)]] = Field(default={})

    @classmethod
    def named(cls, raw: dict[str, Any]) -> list[type[Declared]]:
        return [randomizer_kind(raw.get("randomizer", "krr"))]

    @property
    def kind(self) -> type[Randomizer]:
        """The class of the randomizer."""
        return randomizer_kind(self.randomizer)

    @model_validator(mode="after")
    def _classes(self) -> Self:
        if (self.by is None) != (not self.epsilons):
            raise ValueError("`by` names the public column whose texts `epsilons` lists: give both or neither")
        if self.by is not None and self.randomizer != "krr":
            raise ValueError('`by` goes with randomizer "krr"')
        if self.by is not None and self.epsilon > MOST_MIXED:
            raise ValueError(f"`epsilon` must be at most {MOST_MIXED:g} beside `by`, got {self.epsilon!r}")
        return self


_LATER_KEYS = ("lists", "edges", "hops", "ids", "also")


class GroupsSection(Section):
    """Who must be indistinguishable by order: people with equal or near labels, within a radius, or nearest.

    Groups by names come from a file of two columns beside the configuration: `lists`, a group and one of its people
    in each row, or `edges`, two people in each row, whose neighbourhoods are the groups. `ids` is the column that
    names people in the file, [data] `person` or a public one; a name that the table does not have is in no group. The
    groups of each table in `also` are kept besides: [[shuffle.groups.also]] with the same keys.
    """

    labels: str | None = Field(default=None, description="Public column: groups of equal (or near) labels.")
    points: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="Public columns of coordinates, separated by commas."
    )
    radius: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Groups within this distance."
    )
    nearest: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="Groups of this many nearest people, the owner included."
    )
    lists: str | None = Field(default=None, description="File of groups: a group and one of its people in each row.")
    edges: str | None = Field(default=None, description="File of a network: two people in each row.")
    hops: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="With edges: groups of everybody within this many steps; default 1."
    )
    ids: str | None = Field(
        default=None, description="Column that names people in lists or edges: that of people, or a public one."
    )
    also: list[GroupsSection] = Field(default=[])

    @property
    def columns(self) -> list[str]:
        """The public columns that the groups are made of."""
        own = [one for one in (self.labels, self.ids) if one is not None]
        return list(dict.fromkeys([*own, *(self.points or []), *(name for one in self.also for name in one.columns)]))

    @property
    def measured(self) -> list[str]:
        """Those of them that must be numbers."""
        own = [self.labels] if self.labels is not None and self.radius else self.points or []
        return list(dict.fromkeys([*own, *(name for one in self.also for name in one.measured)]))

    @property
    def kinds(self) -> list[GroupsSection]:
        """This grouping and those that are kept besides."""
        return [self, *(kind for one in self.also for kind in one.kinds)]

    @property
    def by_values(self) -> bool:
        """True if one grouping is all, and the values of public columns decide it."""
        return self.ids is None and not self.also

    @property
    def files(self) -> list[str]:
        """The files of all groupings."""
        return [path for one in self.kinds for path in (one.lists, one.edges) if path is not None]

    def with_files(self, place: Callable[[str], str]) -> Self:
        """The same with another path for each file."""
        paths = {key: getattr(self, key) for key in ("lists", "edges")}
        moved = {key: place(path) for key, path in paths.items() if path is not None}
        return self.model_copy(update={**moved, "also": [one.with_files(place) for one in self.also]})

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        named = self.lists is not None or self.edges is not None
        if sum(one is not None for one in (self.labels, self.points, self.lists, self.edges)) != 1:
            raise ValueError(
                "`groups` takes either `labels` (one column), `points` (columns of coordinates), `lists` or `edges` "
                "(a file each)"
            )
        if named == (self.ids is None):
            raise ValueError("`ids`, the column that names people, goes with `lists` or `edges`")
        if self.points is None and self.nearest is not None:
            raise ValueError("`nearest` goes with `points`")
        if named and self.radius is not None:
            raise ValueError("`radius` goes with `labels` or `points`")
        if self.edges is None and self.hops is not None:
            raise ValueError("`hops` goes with `edges`")
        if self.points is not None and (self.radius is None) == (self.nearest is None):
            raise ValueError("`points` takes either `radius` or `nearest`")
        return self

    @model_serializer(mode="wrap")
    def _without_unset(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """In the form that releases and campaigns record: later keys only where they are set."""
        found: dict[str, Any] = serialize(self)
        return {key: value for key, value in found.items() if value or key not in _LATER_KEYS}


class ShuffleSection(_MechanismSection):
    """The shuffler, between devices and the analyst."""

    registry: ClassVar[Registry[Any]] = SHUFFLERS
    shuffler: str = "uniform"
    alpha: Annotated[float, Field(ge=0)] | None = None
    groups: GroupsSection | None = None
    compare: list[str] = Field(default=[])

    @classmethod
    def named(cls, raw: dict[str, Any]) -> list[type[Declared]]:
        compare = raw.get("compare", [])
        return [
            SHUFFLERS[name]
            for name in (raw.get("shuffler", "uniform"), *(compare if isinstance(compare, list) else []))
        ]

    @property
    def named_columns(self) -> dict[str, str]:
        """The public column of numbers that each setting names."""
        kinds = [SHUFFLERS[name] for name in (self.shuffler, *self.compare)]
        names = [one.name for kind in kinds for one in kind.settings() if one.is_column]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def columns(self) -> list[str]:
        """All public columns that shufflers are fitted to."""
        groups = [] if self.groups is None else self.groups.columns
        return list(dict.fromkeys([*groups, *self.named_columns.values()]))

    def beside(self, folder: Path) -> Self:
        """The same with paths of files as seen from the folder of the configuration."""
        moved: dict[str, Any] = {name: _beside(folder, path) for name, path in files_of(self).items()}
        if self.groups is not None:
            moved["groups"] = self.groups.with_files(lambda path: str(_beside(folder, path)))
        return self.model_copy(update=moved)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        coordinates = None if self.groups is None else len(self.groups.points or [])
        for name in (self.shuffler, *self.compare):
            kind = SHUFFLERS[name]
            objection = kind.objection(alpha=self.alpha, coordinates=coordinates, settings=self.settings_of(kind))
            if objection:
                raise ValueError(objection)
        return self


class PromiseSection(Section):
    """The terms of the central guarantee, and who makes the noise that it rests on.

    `trust`: "local", every person's own report; "shuffler", which adds dummies so that the batch is
    (`epsilon`, `delta`)-private, and reads every answer together with the analyst; "users", who send dummies
    themselves, so that it is as long as `honest` of them do (default: all).

    `dummies` of the shuffler: "geometric"; "gaussian", with less noise where people are asked five times and more;
    "digits", for the mean of a number among many people; "sparse", few of them, for long lists, without a delta where
    a person sends up to five symbols.
    `rounds` releases about the same people keep `epsilon` and `delta` together.
    """

    trust: Literal["local", "shuffler", "users"] = "local"
    epsilon: Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    dummies: Literal["geometric", "gaussian", "digits", "sparse"] = "geometric"
    rounds: Annotated[int, Field(ge=1, le=100_000)] = 1
    honest: Annotated[int, Field(ge=1)] | None = None
    cap: Annotated[float, Field(gt=0)] | None = None
    spread: Annotated[int, Field(ge=1, le=1 << 31)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.trust == "local") != (self.epsilon is None):
            raise ValueError(
                '`epsilon` is what the dummies of `trust` = "shuffler" or "users" promise: give both or neither'
            )
        if self.trust != "shuffler" and (self.dummies != "geometric" or self.rounds > 1):
            raise ValueError('`dummies` and `rounds` go with `trust` = "shuffler", which adds the dummies')
        if self.dummies == "sparse" and self.rounds > 1:
            raise ValueError('`dummies` = "sparse" are for one release: `rounds` must be 1')
        if self.spread is not None and self.cap is None:
            raise ValueError("`spread` divides what `cap` pays for among so many rounds: set `cap` too")
        return self

    @property
    def noise(self) -> str:
        """The name of the noise that it asks for, epsilons by class apart."""
        return self.trust if self.dummies == "geometric" else self.dummies  # others are the shuffler's


class QuestionSection(_MechanismSection):
    """The question; without it shares of answers, or the mean of a number with `lower` and `upper` in [data]."""

    registry: ClassVar[Registry[Any]] = QUESTIONS
    ask: str | None = None

    @classmethod
    def named(cls, raw: dict[str, Any]) -> list[type[Declared]]:
        return [QUESTIONS[raw["ask"]]] if "ask" in raw else []


class EstimateSection(Section):
    """The estimates that the analyst wants."""

    by: list[str] = Field(default=[])
    min_group_size: Annotated[int, Field(ge=2)] = 50
    estimator: Literal["rao-blackwell", "best"] = "rao-blackwell"
    window: Annotated[int, Field(ge=1)] | None = None
    unbiased: bool = False


class AttackSection(_MechanismSection):
    """The attacks that a rehearsal mounts on itself; the best one is the headline."""

    registry: ClassVar[Registry[Any]] = ATTACKS
    attacks: Annotated[list[str], Field(min_length=1)] = Field(default=["likelihood", "majority"])
    similar: list[str] = Field(default=[])
    trials: Annotated[int, Field(ge=2)] = 50
    targets: Annotated[int, Field(ge=1)] = 10_000

    @classmethod
    def named(cls, raw: dict[str, Any]) -> list[type[Declared]]:
        attacks = raw.get("attacks", cls.model_fields["attacks"].default)
        return [ATTACKS[name] for name in attacks] if isinstance(attacks, list) else []


AnyRandomizeSection = Annotated[SerializeAsAny[RandomizeSection], _chosen(RandomizeSection)]
AnyQuestionSection = Annotated[SerializeAsAny[QuestionSection], _chosen(QuestionSection)]
AnyShuffleSection = Annotated[SerializeAsAny[ShuffleSection], _chosen(ShuffleSection)]
AnyAttackSection = Annotated[SerializeAsAny[AttackSection], _chosen(AttackSection)]


# The section [memoize] of a configuration: one permanent answer for all rounds, for values that never change.


class MemoizeSection(Section):
    """Everybody draws one answer and sends it in every round. All rounds together promise what one does.

    `constant_values` = true is your word that nobody's value changes over them; without it nothing can be promised.
    `time` names the column of rounds of a table that has a row for each person and round, which is held to that word;
    without it the table has one row for each person.
    """

    time: str | None = None
    constant_values: bool = False

    def refuse_others(self, config: Any) -> None:
        """ValueError where the assumption is not made, and for what would break it."""
        if not self.constant_values:
            raise ValueError(CHANGES.replace(WORD, "[memoize] takes `constant_values` = true"))
        if self.time is not None and config.data.person is None:
            raise ValueError("[memoize] follows people over rounds: name their column as `person`")
        shuffle = config.shuffle
        for place, given in {
            "[data] time": config.data.time is not None,
            '[promise] trust = "shuffler"': config.promise.trust != "local",
            "[promise] cap": config.promise.cap is not None,
            "[shuffle] compare": bool(shuffle.compare),
            "[shuffle] alpha": shuffle.alpha is not None,
            f"[data] the column of rounds {self.time!r} as public, private or person": self.time is not None
            and self.time in (config.data.private, config.data.person, *config.data.public),
        }.items():
            if given:
                raise ValueError(
                    f"{place} does not go with [memoize]: only rounds that are mixed evenly, without fresh noise, "
                    "are post-processing of permanent answers"
                )


# The section [vector] of a configuration: the private column holds arrays, and their mean is asked for.


DEFAULT = "closest_direction"


class VectorSection(Section):
    """Ask for the mean of people's vectors of `dimension` numbers, each shortened to Euclidean length `clip`.

    Both are public, chosen before vectors are seen. `randomizer` names what each device runs, whose settings are
    further keys; `epsilon` is of one report, `delta` of the shuffled batch, with `honest` people (default: all).
    """

    dimension: Annotated[int, Field(ge=1, le=65_536)]
    clip: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    randomizer: str = DEFAULT
    epsilon: Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)]
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    honest: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        check_clip(self.clip)
        return self

    @classmethod
    def choose(cls, raw: Any) -> Self:
        if not isinstance(raw, dict):
            return cls.model_validate(raw)
        try:
            kind = VECTOR_RANDOMIZERS[raw.get("randomizer", DEFAULT)]
        except ParameterError as error:
            raise ValueError(str(error)) from None
        model = with_settings(cls, (kind,))
        for key in raw:
            if key not in model.model_fields:
                raise PydanticCustomError("unknown_key", "unknown", {"key": key, "known": [*model.model_fields]})
        chosen: Self = model.model_validate(raw)
        return chosen

    def spelled_out(self, given: set[str]) -> dict[str, Section]:
        """The sections [question], [randomize] and [promise] that say the same; ValueError beside others."""
        for name in ("question", "randomize", "promise", "attack", "strings"):
            if name in given:
                raise ValueError(
                    f"[{name}] does not go with [vector], which says randomizer, epsilon, delta and honest itself"
                )
        settings = {one.name: getattr(self, one.name) for one in VECTOR_RANDOMIZERS[self.randomizer].settings()}
        return {
            "question": QuestionSection.choose({"ask": "vector", "dimension": self.dimension, "clip": self.clip}),
            "randomize": RandomizeSection.choose(
                {"randomizer": self.randomizer, "epsilon": self.epsilon, **settings}
            ),
            "promise": PromiseSection(delta=self.delta, honest=self.honest),
        }


def _refuse_unlike_arrays(data: DataSection) -> None:
    """ValueError for what [data] cannot say of a column of arrays."""
    for name in ("categories", "lower", "time", "labels", "unconfirmed"):
        if getattr(data, name) not in (None, [], {}):
            raise ValueError(f"[data] {name} does not go with [vector]: remove one of them")
    if data.duplicates != "refuse" or data.missing != "refuse":
        raise ValueError('[vector] takes one whole array of each person: `duplicates` and `missing` are "refuse"')


AnyVectorSection = Annotated[
    SerializeAsAny[VectorSection],
    BeforeValidator(lambda raw: raw if isinstance(raw, VectorSection) else VectorSection.choose(raw)),
]


# The section [strings] of a configuration: the private column holds texts, and there is no list of categories.


class StringsSection(Section):
    """Which strings do many people hold? Disjoint groups of people are asked for one byte more each.

    `epsilon` and `delta` are of the whole search. `trust`: "shuffler", whose dummies hide exact counts, so that no
    string is found that nobody holds, "users", who send dummies themselves, or "local", every person's own report.
    `dummies` of the shuffler: "geometric", "gaussian", or "sparse", which can pass for a string, as those of people
    can. `levels` bytes of a string are asked for, and `keep` beginnings go on to the next level, with dummies of
    people no more than these hide.
    """

    epsilon: Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)]
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    trust: Literal["shuffler", "local", "users"] = "shuffler"
    dummies: Literal["geometric", "gaussian", "sparse"] = "geometric"
    levels: Annotated[int, Field(ge=1, le=64)] = 8
    keep: Annotated[int, Field(ge=1, le=1024)] = 256

    @property
    def noise(self) -> str:
        """The name of the noise that it asks for."""
        return self.promise.noise

    @property
    def promise(self) -> PromiseSection:
        """What it says of the noise, as other questions say it; every person's own promises by itself."""
        epsilon = None if self.trust == "local" else self.epsilon
        return PromiseSection(trust=self.trust, epsilon=epsilon, delta=self.delta, dummies=self.dummies)

    def refuse_others(self, given: set[str], data: Any, *, release: bool) -> None:
        """ValueError for what does not go with strings."""
        for name in ("randomize", "shuffle", "promise", "estimate", "attack", "memoize"):
            if name in given:
                raise ValueError(f"[{name}] does not go with [strings], which says epsilon, delta and trust itself")
        for name in ("categories", "lower", "time", "public"):
            if getattr(data, name) not in (None, [], ()):
                raise ValueError(f"[data] {name} does not go with [strings]: remove one of them")
        if data.person is None:
            raise ValueError(
                "[strings] asks groups of people by a hash of their names: name their column as `person`"
            )
        if self.trust != "shuffler" and self.dummies != "geometric":
            raise ValueError('[strings] `dummies` go with `trust` = "shuffler", which adds them: remove one of them')
        if release and not NOISES[self.noise].bounded:
            raise ValueError(
                'a release of strings needs [strings] trust = "shuffler" with dummies = "geometric" or "gaussian": '
                "other noise finds strings that nobody holds"
            )


class RunConfig(Section):
    """One run, from the table to the report."""

    schema_version: Literal[1]
    title: str | None = None
    mode: Literal["rehearsal", "release"]
    seed: Annotated[int, Field(ge=0)] | None = None
    data: DataSection
    question: AnyQuestionSection = QuestionSection()
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
        measured = [] if self.shuffle.groups is None else self.shuffle.groups.measured
        return list(dict.fromkeys([*measured, *self.shuffle.named_columns.values()]))

    @property
    def question_kind(self) -> type[Question]:
        """The kind of question: of [question], or for the private column that [data] declares."""
        number = "number" if self.data.missing in RULES else "nonresponse"
        return QUESTIONS[self.question.ask or (number if self.data.numeric else "shares")]

    def published(self, data: set[str]) -> dict[str, Any]:
        """The sections that a report repeats, as they were written, without the seed and these keys of [data]."""
        spelled_out = () if self.vector is None else ("question", "randomize", "promise")
        return self.model_dump(mode="json", exclude={"data": data, "seed": True, **dict.fromkeys(spelled_out, True)})

    @property
    def choices(self) -> tuple[str, str, str]:
        """Question, noise and order, as the table of what goes together has them."""
        if self.strings is not None:
            return STRINGS, self.strings.noise, self.shuffle.shuffler
        noise = self.promise.noise if self.memoize is None else "memoized"
        if self.randomize is not None and self.randomize.by is not None and self.promise.trust == "local":
            noise = "classes"  # memoized or not
        return self.question_kind.name, noise, self.shuffle.shuffler

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.mode == "release" and self.seed is not None:
            raise ValueError("a release draws from the operating system and refuses `seed`; remove it")
        if self.vector is not None:
            for name, section in self.vector.spelled_out(self.model_fields_set).items():
                object.__setattr__(self, name, section)
        if self.strings is not None:
            self.strings.refuse_others(self.model_fields_set, self.data, release=self.mode == "release")
            return self
        if self.question_kind.of_arrays:
            _refuse_unlike_arrays(self.data)
        if self.mode == "release":
            self._released()
        if self.memoize is not None:
            self.memoize.refuse_others(self)
        self._trusted()
        self._by_class()
        self._asked_of_column()
        self._randomized_for_question()
        self._stream_or_table()
        apart = choices_of(self).refusal if self.data.time is None else None
        if apart is not None:
            raise ValueError(apart)
        self._listed()
        return self

    def _released(self) -> None:
        """Refuse what is for rehearsals, and what a release has to declare."""
        if not self.question_kind.of_arrays and not self.data.numeric and self.data.categories is None:
            raise ValueError("a release must declare `categories` (for numbers: `lower`, `upper`) in [data]")
        if self.data.unconfirmed:
            keys = ", ".join(f"`{key}`" for key in self.data.unconfirmed)
            raise ValueError(
                f"a release declares {keys} in [data] without looking at the table: confirm or correct them, then "
                "delete `unconfirmed`"
            )
        if self.shuffle.compare:
            raise ValueError("`compare` is for rehearsals: a release uses one shuffler")
        if not SHUFFLERS[self.shuffle.shuffler].moves_reports:
            raise ValueError(
                f'a release must shuffle: `shuffler` "{self.shuffle.shuffler}" would publish who sent what'
            )
        if "attack" in self.model_fields_set:
            raise ValueError("[attack] needs the truth and is for rehearsals only; remove it")

    def _asked_of_column(self) -> None:
        """Refuse a question that is not about what [data] declares."""
        asked = self.question_kind
        if not asked.of_arrays and self.data.numeric != asked.of_numbers:
            raise ValueError(
                f'[question] ask = "{asked.name}" is about {asked.label}: declare '
                + ("`categories`" if self.data.numeric else "`lower` and `upper`")
                + " in [data]"
            )
        if self.data.numeric and asked.takes_gaps != (self.data.missing not in RULES):
            raise ValueError(
                f'[question] ask = "{asked.name}" is about people without a number, too: say what that is called, '
                '`missing` = "no answer" in [data]'
                if asked.takes_gaps
                else f"`missing` = {self.data.missing!r} of numbers goes with their mean alone: without [question], "
                'or with ask = "nonresponse"; otherwise it is "refuse" or "drop"'
            )

    def _randomized_for_question(self) -> None:
        """Refuse a randomizer or an estimator of another question."""
        asked, question = self.question_kind, self.question_kind.needs
        if self.randomize is not None and question != self.randomize.kind.question:
            *most, last = [
                kind.name
                for kind in (*RANDOMIZERS, *VECTOR_RANDOMIZERS)
                if kind.question == question and (not asked.needs_names or getattr(kind, "names_values", False))
            ]
            wanted = f"{', '.join(most)} or {last}" if most else last
            raise ValueError(
                f"randomizer {self.randomize.randomizer!r} does not fit the private column: use {wanted}"
                + ("" if self.data.numeric else ", or declare `lower` and `upper` in [data]")
            )
        if (
            self.randomize is not None
            and asked.needs_names
            and not getattr(self.randomize.kind, "names_values", False)
        ):
            raise ValueError(
                f'{asked.label} needs reports that name an answer: use randomizer "krr", or [promise] trust'
            )
        if self.estimate.estimator != "rao-blackwell" and question != "mean":
            raise ValueError("[estimate] estimator is for the mean of a number; every other question has one")

    def _listed(self) -> None:
        """Refuse columns that [data] does not list as public."""
        wanted_columns = {
            "[shuffle] groups": self.shuffle.groups.columns if self.shuffle.groups else [],
            **{f"[shuffle] {key}": [name] for key, name in self.shuffle.named_columns.items()},
            "[estimate] by": self.estimate.by,
            "[randomize] by": [self.randomize.by] if self.randomize is not None and self.randomize.by else [],
            "[attack] similar": self.attack.similar,
        }
        for place, names in wanted_columns.items():
            for name in names:
                if name not in self.data.public and not (place == "[shuffle] groups" and name == self.data.person):
                    raise ValueError(
                        f"{place}: column {name!r} is not listed in [data] public{nearest(name, self.data.public)}"
                    )

    def _trusted(self) -> None:
        """Refuse what does not fit to who makes the noise."""
        if self.promise.trust == "local":
            if self.randomize is None:
                raise ValueError(
                    '[randomize] is missing: without local noise, set [promise] trust = "shuffler" or "users"'
                )
            return
        needs = f'[promise] trust = "{self.promise.trust}"'
        if self.question_kind.needs == "mean" and self.randomize is not None:
            raise ValueError(f"{needs} goes without [randomize] for numbers: they are rounded to a grid and sent")
        if self.promise.trust == "users" and self.randomize is not None:
            raise ValueError(f"{needs} goes without [randomize]: people send their answers as they are")
        second = self.randomize is not None
        if second and (self.promise.dummies in ("sparse", "digits") or self.promise.rounds > 1):
            raise ValueError(f"{needs} goes without [randomize] beside `rounds`, and for sparse `dummies` or digits")
        if self.randomize is not None and self.randomize.randomizer != "krr":
            raise ValueError(f'{needs} goes without [randomize], or with randomizer "krr" as a second layer')
        places = {
            "[data] time": self.data.time is not None,
            "[data] grid": self.data.grid is not None and self.promise.dummies == "digits",
            "[estimate] estimator": self.estimate.estimator != "rao-blackwell",
            **self._other_shuffles,
            **self._of_one_table,
        }
        self._refuse(places, f"does not go with {needs}; remove it")

    def _by_class(self) -> None:
        """Refuse what does not go with epsilons that differ: reports are mixed and carry no class."""
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
        """Refuse what does not go with rounds of a stream, or with one table."""
        if self.data.time is None:
            only = {
                "[promise] cap": self.promise.cap,
                "[estimate] window": self.estimate.window,
                "[estimate] unbiased": self.estimate.unbiased or None,
            } | {f"[shuffle] {name}": value for name, value in files_of(self.shuffle, of_streams=True).items()}
            given = {place: value is not None for place, value in only.items()}
            self._refuse(given, "is for streams: name the column of stamps, [data] time, or remove it")
            return
        attacked = {"[attack]": "attack" in self.model_fields_set}
        self._refuse(self._of_one_table | attacked, "is for single tables, not for streams; remove it")
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
    data = config.data.model_copy(update={"path": _beside(place.parent, config.data.path)})
    return config.model_copy(update={"data": data, "shuffle": config.shuffle.beside(place.parent)})


def files_of(section: ShuffleSection, *, of_streams: bool = False) -> dict[str, str | None]:
    """The files that the settings of shufflers name; with `of_streams` those that go with streams only."""
    kinds = [SHUFFLERS[name] for name in (section.shuffler, *section.compare)]
    settings = [one for kind in kinds for one in kind.settings() if one.is_file]
    names = [one.name for one in settings if one.is_of_streams or not of_streams]
    return {name: getattr(section, name) for name in dict.fromkeys(names)}


def _beside(folder: Path, path: str | None) -> str | None:
    """A path in a configuration is relative to its folder; an address is not."""
    return path if path is None or "://" in path else str(folder / path)


def parse_config(raw: dict[str, Any], *, name: str = "configuration") -> RunConfig:
    """Check a configuration given as a dictionary."""
    if "questions" in raw:
        raise ConfigError(f"{name}: [[questions]] go with `run`, `check` and `plan-questions` alone.")
    return parse_section(RunConfig, raw, name=name)
