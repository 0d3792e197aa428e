"""The section [data], which says how a table is written and what its columns mean; the base of all sections."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from annotated_types import Len
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from dovetail.core.checks import nearest
from dovetail.core.errors import ConfigError

Finite = Annotated[float, Field(allow_inf_nan=False)]
Chosen = TypeVar("Chosen", bound="Section")


Letter = Annotated[str, Len(1, 1)]


Rows = Annotated[int, Field(ge=0, le=1000)]


class Section(BaseModel):
    """A table of the file: frozen, typed, unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def choose(cls, raw: Any) -> Self:
        """The section of a table; sections that name mechanisms also take what these declare."""
        return cls.model_validate(raw)


REPEATED_NOBODY = "`duplicates` is about people who stand in two rows: name their column"


class FileFormat(Section):
    """Format of a text file with a table; a Parquet file and a data frame say so themselves.

    Lines that are not UTF-8 are read in `fallback_encoding`, where one is named.
    `skip_rows` rows stand above the header, `header_rows` are the header (the names are in the first; 0: there is
    none), `footer_rows` end the file, such as totals; `columns` names the columns anew, in their order.
    """

    separator: Letter = ","
    quote: Letter = '"'
    encoding: str = "utf-8"
    fallback_encoding: str | None = None
    skip_rows: Rows = 0
    header_rows: Rows = 1
    footer_rows: Rows = 0
    columns: list[str] | None = None

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.separator == self.quote or self.separator in "\r\n" or self.quote in "\r\n":
            raise ValueError("`separator` and `quote` must be two different letters of one line")
        for key, name in (("encoding", self.encoding), ("fallback_encoding", self.fallback_encoding or "utf-8")):
            try:
                "".encode(name)
            except (LookupError, ValueError):  # unknown, or no encoding of text
                raise ValueError(
                    f"`{key}` must be a text encoding such as utf-8, utf-16 or windows-1252, got {name!r}"
                ) from None
        if self.fallback_encoding is not None and self.encoding.lower() != "utf-8":
            raise ValueError('`fallback_encoding` is for lines that are not UTF-8: it goes with `encoding` = "utf-8"')
        twice = [name for name, count in Counter(self.columns or ()).items() if count > 1]
        if twice:
            raise ValueError(f"`columns` must be distinct, got {twice[0]!r} twice")
        return self


class Spellings(Section):
    """Spelling of values, in a text file and in columns of text.

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
        """True if numbers are spelled as programs spell them."""
        return self.decimal == "." and not self.thousands and not self.units

    @model_validator(mode="after")
    def _unambiguous(self) -> Self:
        if self.decimal == self.thousands:
            raise ValueError(f"`decimal` and `thousands` must differ, got {self.decimal!r} for both")
        if any(not unit.strip() or any(letter.isdigit() for letter in unit) for unit in self.units):
            raise ValueError(f'`units` must be texts without digits, such as "%", got {self.units!r}')
        return self


Ranges = dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False, strict=False)]]
RULES = ("refuse", "drop")  # for missing answers; any other text is the category that they count as


class DataSection(FileFormat, Spellings):
    """Section [data]: the place of the table, its private column, and the values that this may hold.

    With `time`, a column of whole-number stamps, the table is a stream: a row for each person (device) and round.
    `unconfirmed` names the keys that were read off the table and not yet confirmed by a person: a release refuses it.
    `table` names a table of Spark's catalogue instead of a `path`. `ranges` gives widths for public columns of
    numbers: each is replaced by the lower end of its range, so that fewer people are alone.
    """

    path: str | None = None
    table: str | None = None
    person: str | None = Field(default=None, description="Column that names people: nobody may stand in two rows.")
    time: str | None = None
    private: str
    public: list[str] = Field(
        default=[], description="Public columns to keep beside the reports, separated by commas."
    )
    missing: str = Field(
        default="refuse",
        description="refuse (the default), drop (leave these people out), or the category for missing values.",
    )
    categories: list[str] | None = Field(default=None, description="Declared categories, separated by commas.")
    lower: Finite | None = Field(default=None, description="Numbers: declared lower bound.")
    upper: Finite | None = Field(default=None, description="Numbers: declared upper bound.")
    grid: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Numbers: grid step; default a 32nd of the range for laplace."
    )
    clip: bool = Field(default=False, description="Numbers: move those outside the bounds to the nearest bound.")
    ranges: Ranges = {}
    duplicates: Literal["refuse", "first", "last"] = "refuse"
    unconfirmed: list[str] = []

    @property
    def numeric(self) -> bool:
        """True if the private column is a number with declared bounds."""
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
        if self.missing not in RULES and self.time is not None:
            raise ValueError(f'`missing` must be "refuse" or "drop" for streams, got {self.missing!r}')
        if self.missing in RULES and self.missing in (self.categories or ()):
            raise ValueError(f'`missing` = "{self.missing}" is a rule: call the category of this name otherwise')
        if self.missing not in (*RULES, *(self.categories or [self.missing])):
            raise ValueError(f'`missing` must be "refuse", "drop" or a declared category, got {self.missing!r}')
        if self.clip and not self.numeric:
            raise ValueError("`clip` is for numbers: it goes with `lower` and `upper`")
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
        if self.duplicates != "refuse" and self.person is None:
            raise ValueError(f"{REPEATED_NOBODY} as `person`")
        if self.duplicates != "refuse" and self.time is not None:
            raise ValueError(
                "`duplicates` does not go with `time`: in a stream a person stands in a row of each round"
            )
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
        for name in self.ranges:
            if name not in self.public:
                raise ValueError(f"`ranges` are of public columns, got {name!r}{nearest(name, self.public)}")
        for key in self.unconfirmed:
            if key not in type(self).model_fields:
                raise ValueError(f"`unconfirmed` must name keys of [data], got {key!r}")


class Decisions(FileFormat, Spellings):
    """Keys of [data], and a randomizer, that a person decides on while a table is checked."""

    person: str | None = None
    missing: str | None = None
    clip: bool = False
    ranges: Ranges = {}
    duplicates: Literal["first", "last"] | None = None
    randomize: dict[Literal["randomizer"], str] = {}


def read_decisions(lines: Sequence[str]) -> dict[str, Any]:
    """Lines of TOML below [data] as keys with their values.

    Raises
    ------
    ConfigError
        In one line, for what is no TOML.
    """
    try:
        return tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--set must be a line of TOML, such as 'missing = \"drop\"': {error}.") from None


# Values and keys as TOML spells them.


_ESCAPED = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n"}


def toml_value(value: Any) -> str:
    r"""A text, number, boolean or list as TOML spells it.

    >>> print(toml_value(["a", 'b "c"']), toml_value(True))
    ["a", "b \"c\""] true
    """
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml_text(key)} = {toml_value(one)}' for key, one in value.items())} }}"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def toml_text(text: str) -> str:
    """A basic string of TOML; letters that cannot be told apart by eye are written as their numbers."""
    return '"' + "".join(map(_letter, text)) + '"'


def labels_header(column: str) -> str:
    """The line above the labels of a column."""
    return f"[data.labels.{toml_text(column)}]"


def _letter(letter: str) -> str:
    if letter in _ESCAPED:
        return _ESCAPED[letter]
    if letter == " " or unicodedata.category(letter)[0] in "LNPS":
        return letter
    return f"\\u{ord(letter):04X}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08X}"


# Checking a section of a configuration: one line for each fault, with the nearest known key.


_TABLES = (".csv", ".data", ".tsv", ".txt", ".parquet", ".pq")


def read_toml(place: Path) -> dict[str, Any]:
    """The tables of a TOML file; ConfigError says in one line what is wrong with it."""
    if place.suffix.lower() in _TABLES and place.is_file():
        raise ConfigError(f"{place}: is a table: `dovetail check {place} --private COLUMN` writes its configuration.")
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


def parse_section(section: type[Chosen], raw: dict[str, Any], *, name: str, at: str = "") -> Chosen:
    """Check one section by itself; `name` is the file, if there is one, `at` the table in it that errors name."""
    try:
        return section.choose(raw)
    except ValueError as problem:
        error = problem if isinstance(problem, ValidationError) else _as_validation(problem, section)
        lines = dict.fromkeys(_line(item, section, at) for item in error.errors(include_url=False))
        raise ConfigError("\n".join(f"{name}: {line}" if name else line for line in lines)) from None


def _as_validation(problem: ValueError, section: type[Section]) -> ValidationError:
    """A fault about the section as a whole, in the form of those about its keys."""
    kind = problem if isinstance(problem, PydanticCustomError) else "value_error"
    context = {} if isinstance(problem, PydanticCustomError) else {"error": problem}
    return ValidationError.from_exception_data(
        section.__name__, [{"type": kind, "loc": (), "input": None, "ctx": context}]
    )


_WANTED = {
    "a valid string": "a text",
    "a valid list": "a list",
    "a valid dictionary": "a table",
    "a valid number": "a number",
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
}


def _line(item: Any, root: type[Section], at: str) -> str:
    location = ".".join([*([at] if at else []), *(str(part) for part in item["loc"])])
    if item["type"] == "unknown_key":
        key = f"{location}." * bool(location) + item["ctx"]["key"]
        return f"unknown key `{key}`{nearest(item['ctx']['key'], item['ctx']['known'])}"
    if item["type"] == "extra_forbidden":
        known = list(_model_at(item["loc"][:-1], root).model_fields)
        return f"unknown key `{location}`{nearest(str(item['loc'][-1]), known)}".removesuffix(".")
    if item["type"] == "too_short":
        return f"`{location}` must have at least {item['ctx']['min_length']} entry, got {item['input']!r}."
    if item["type"] == "missing":
        return f"`{location}` is missing."
    if item["type"] == "value_error":
        text = str(item["ctx"]["error"])
        return f"{'[' + location + '] ' if location else ''}{text}{'' if text.endswith(('.', '?')) else '.'}"
    if item["type"] in ("model_type", "model_attributes_type"):
        return f"`{location}` must be a table, such as [section] or {{ key = value }}, got {item['input']!r}."
    wanted = item["msg"].removeprefix("Input should be ").removeprefix("Value should be ")
    wanted = _WANTED.get(wanted.partition(", ")[0], wanted)
    return f"`{location}` must be {wanted}, got {item['input']!r}."


def _model_at(location: tuple[Any, ...], model: type[BaseModel]) -> type[BaseModel]:
    """The model of the table that a location in the file names."""
    for part in location:
        field = model.model_fields.get(str(part))
        found = [] if field is None else [field.annotation, *get_args(field.annotation)]
        model = next((each for each in found if isinstance(each, type) and issubclass(each, BaseModel)), model)
    return model
