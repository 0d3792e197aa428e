"""The sections of a configuration: typed tables that refuse what does not fit together.

What mechanisms can be set comes from their declarations: a section takes the keys of those that it names.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from annotated_types import Len
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny, create_model, model_validator
from pydantic_core import PydanticCustomError

from dovetail.core.checks import nearest
from dovetail.core.errors import ParameterError
from dovetail.core.registries import ATTACKS, RANDOMIZERS, SHUFFLERS
from dovetail.core.registry import Declared, Registry
from dovetail.core.stages import Randomizer

MOST_MIXED = 40.0  # epsilon of a person among others with other epsilons

Chosen = TypeVar("Chosen", bound="Section")

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Letter = Annotated[str, Len(1, 1)]
Rows = Annotated[int, Field(ge=0, le=1000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Section(BaseModel):
    """A table of the file: frozen, typed, unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def choose(cls, raw: Any) -> Self:
        """The section of a table; sections that name mechanisms also take what these declare."""
        return cls.model_validate(raw)


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
        """What this section says about the settings of one mechanism."""
        return {one.name: getattr(self, one.name) for one in kind.settings()}


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


class FileFormat(Section):
    """How a text file holds a table; a Parquet file and a data frame say so themselves.

    `skip_rows` rows stand above the header, `header_rows` are the header (the names are in the first; 0: there is
    none), `footer_rows` end the file, such as totals; `columns` names the columns anew, in their order.
    """

    separator: Letter = ","
    quote: Letter = '"'
    encoding: str = "utf-8"
    skip_rows: Rows = 0
    header_rows: Rows = 1
    footer_rows: Rows = 0
    columns: list[str] | None = None

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.separator == self.quote or self.separator in "\r\n" or self.quote in "\r\n":
            raise ValueError("`separator` and `quote` must be two different letters of one line")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):  # unknown, or no encoding of text
            raise ValueError(
                f"`encoding` must be a text encoding such as utf-8, utf-16 or windows-1252, got {self.encoding!r}"
            ) from None
        twice = [name for name, count in Counter(self.columns or ()).items() if count > 1]
        if twice:
            raise ValueError(f"`columns` must be distinct, got {twice[0]!r} twice")
        return self


class Spellings(Section):
    """How values are spelled, in a text file and in columns of text.

    `missing_spellings` stand for no value in every column. `labels` maps spellings to labels, column by column, after
    that: "" on the left is a missing value, "" on the right makes one.
    """

    decimal: Literal[".", ","] = "."
    thousands: Literal["", ".", ",", "'", " "] = ""
    units: list[str] = []
    missing_spellings: list[str] = []
    labels: dict[str, dict[str, str]] = {}

    @property
    def plain_numbers(self) -> bool:
        """Whether numbers are spelled as programs spell them."""
        return self.decimal == "." and not self.thousands and not self.units

    @model_validator(mode="after")
    def _unambiguous(self) -> Self:
        if self.decimal == self.thousands:
            raise ValueError(f"`decimal` and `thousands` must differ, got {self.decimal!r} for both")
        if any(not unit.strip() or any(letter.isdigit() for letter in unit) for unit in self.units):
            raise ValueError(f'`units` must be texts without digits, such as "%", got {self.units!r}')
        return self


class DataSection(FileFormat, Spellings):
    """Where the table is, which column is private and what its values may be.

    With `time`, a column of whole-number stamps, the table is a stream: a row for each person (device) and round.
    `unconfirmed` names the keys that were read off the table and not yet confirmed by a person: a release refuses it.
    `table` names a table of Spark's catalogue instead of a `path`.
    """

    path: str | None = None
    table: str | None = None
    person: str | None = None
    time: str | None = None
    private: str
    public: list[str] = []
    missing: str = "refuse"
    categories: list[str] | None = None
    lower: Finite | None = None
    upper: Finite | None = None
    grid: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    duplicates: Literal["refuse", "first", "last"] = "refuse"
    unconfirmed: list[str] = []

    @property
    def numeric(self) -> bool:
        """Whether the private column is a number with declared bounds."""
        return self.lower is not None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.path is not None and self.table is not None:
            raise ValueError("name either `path` or, of Spark's catalogue, `table`, not both")
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
        if not self.private:
            raise ValueError("`private` must name the column to protect, got ''")
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
        if self.duplicates != "refuse" and (self.person is None or self.time is not None):
            raise ValueError("`duplicates` is about people who stand in two rows: name their column as `person`")
        self._check_labels(columns)
        return self

    def _check_labels(self, columns: list[str]) -> None:
        """ValueError for labels of columns without a role, and for labels that no category is called."""
        for name in self.labels:
            if name not in columns:
                raise ValueError(f"[data.labels] column {name!r} has no role in [data]{nearest(name, columns)}")
        known = self.categories or []
        for label in self.labels.get(self.private, {}).values() if known else ():
            if label and label not in known:
                raise ValueError(
                    f"[data.labels] {label!r} is not among the declared categories{nearest(label, known)}"
                )
        for key in self.unconfirmed:
            if key not in type(self).model_fields:
                raise ValueError(f"`unconfirmed` must name keys of [data], got {key!r}")


class RandomizeSection(_MechanismSection):
    """What happens on the device.

    With `by`, a public column, `epsilons` sets the epsilon of people by its texts; all others have `epsilon`.
    """

    registry: ClassVar[Registry[Any]] = RANDOMIZERS
    randomizer: str = "krr"
    epsilon: Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)]
    by: str | None = None
    epsilons: dict[str, Annotated[float, Field(gt=0, le=MOST_MIXED, allow_inf_nan=False)]] = {}

    @classmethod
    def named(cls, raw: dict[str, Any]) -> list[type[Declared]]:
        return [RANDOMIZERS[raw.get("randomizer", "krr")]]

    @property
    def kind(self) -> type[Randomizer]:
        """The class of the randomizer."""
        return RANDOMIZERS[self.randomizer]

    @model_validator(mode="after")
    def _classes(self) -> Self:
        if (self.by is None) != (not self.epsilons):
            raise ValueError("`by` names the public column whose texts `epsilons` lists: give both or neither")
        if self.by is not None and self.randomizer != "krr":
            raise ValueError('`by` goes with randomizer "krr"')
        if self.by is not None and self.epsilon > MOST_MIXED:
            raise ValueError(f"`epsilon` must be at most {MOST_MIXED:g} beside `by`, got {self.epsilon!r}")
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


class ShuffleSection(_MechanismSection):
    """What happens in between."""

    registry: ClassVar[Registry[Any]] = SHUFFLERS
    shuffler: str = "uniform"
    alpha: Annotated[float, Field(ge=0)] | None = None
    groups: GroupsSection | None = None
    compare: list[str] = []

    @classmethod
    def named(cls, raw: dict[str, Any]) -> list[type[Declared]]:
        compare = raw.get("compare", [])
        return [
            SHUFFLERS[name]
            for name in (raw.get("shuffler", "uniform"), *(compare if isinstance(compare, list) else []))
        ]

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
    """What the central guarantee is stated for, and who makes the noise that it rests on.

    `trust`: "local", every person's own report; "shuffler", which adds dummies so that the batch is
    (`epsilon`, `delta`)-private, and reads every answer together with the analyst; "users", who send dummies
    themselves, so that it is as long as `honest` of them do (default: all).
    """

    trust: Literal["local", "shuffler", "users"] = "local"
    epsilon: Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    honest: Annotated[int, Field(ge=1)] | None = None
    cap: Annotated[float, Field(gt=0)] | None = None
    spread: Annotated[int, Field(ge=1, le=1 << 31)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.trust == "local") != (self.epsilon is None):
            raise ValueError(
                '`epsilon` is what the dummies of `trust` = "shuffler" or "users" promise: give both or neither'
            )
        if self.spread is not None and self.cap is None:
            raise ValueError("`spread` divides what `cap` pays for among so many rounds: set `cap` too")
        return self


class EstimateSection(Section):
    """What the analyst wants."""

    by: list[str] = []
    min_group_size: Annotated[int, Field(ge=2)] = 50
    estimator: Literal["rao-blackwell", "best"] = "rao-blackwell"
    window: Annotated[int, Field(ge=1)] | None = None
    unbiased: bool = False


class AttackSection(_MechanismSection):
    """The attacks that a rehearsal mounts on itself; the first one is the headline."""

    registry: ClassVar[Registry[Any]] = ATTACKS
    attacks: Annotated[list[str], Field(min_length=1)] = ["sender_posterior", "majority", "correlation", "definetti"]
    similar: list[str] = []
    trials: Annotated[int, Field(ge=2)] = 50
    targets: Annotated[int, Field(ge=1)] = 10_000

    @classmethod
    def named(cls, raw: dict[str, Any]) -> list[type[Declared]]:
        attacks = raw.get("attacks", cls.model_fields["attacks"].default)
        return [ATTACKS[name] for name in attacks] if isinstance(attacks, list) else []


AnyRandomizeSection = Annotated[SerializeAsAny[RandomizeSection], _chosen(RandomizeSection)]
AnyShuffleSection = Annotated[SerializeAsAny[ShuffleSection], _chosen(ShuffleSection)]
AnyAttackSection = Annotated[SerializeAsAny[AttackSection], _chosen(AttackSection)]
