"""Typed settings of mechanisms: one declaration for configuration files, command-line options, campaigns and help.

A setting is a field of a dataclass: its annotation is type and range, its default is the default, its help is the
first sentence about it in the docstring.
"""

from __future__ import annotations

import csv
import inspect
import re
from dataclasses import MISSING, dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt

Share = Annotated[float, Gt(0), Lt(1)]
Epsilon = Annotated[float, Gt(0), Le(700)]  # nats
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class _File:
    """Marks the path of a file to read; in a configuration file it is relative to that file."""

    of_stream: bool = False


@dataclass(frozen=True)
class _Column:
    """Marks the name of a public column of numbers."""


PublicColumn = Annotated[str, _Column()]
StreamFile = Annotated[str, _File(of_stream=True)]  # whose content is read with a stream of rounds, and goes with one


@dataclass(frozen=True)
class Parameter:
    """One setting.

    Parameters
    ----------
    name : str
    annotation : type, with its range
    default : value, or `dataclasses.MISSING`
    help : str
        One sentence.
    """

    name: str
    annotation: Any
    default: Any
    help: str

    @property
    def is_file(self) -> bool:
        """True if it names a file to read."""
        return bool(_marks(self.annotation, _File))

    @property
    def is_column(self) -> bool:
        """True if it names a public column of numbers."""
        return bool(_marks(self.annotation, _Column))

    @property
    def is_of_streams(self) -> bool:
        """True if it names a file that goes with streams only."""
        return any(file.of_stream for file in _marks(self.annotation, _File))

    @property
    def required(self) -> bool:
        """True if it has no default."""
        return self.default is MISSING


def parameters_of(kind: type, *, without: frozenset[str] = frozenset()) -> tuple[Parameter, ...]:
    """The settings that the fields of a dataclass declare.

    >>> @dataclass
    ... class Settings:
    ...     '''Parameters
    ...     ----------
    ...     votes : int, at least 1
    ...         Reports that vote. More are slower.
    ...     '''
    ...     votes: Count = 25
    >>> [(found.name, found.default, found.help) for found in parameters_of(Settings)]
    [('votes', 25, 'Reports that vote.')]
    """
    hints, sentences = get_type_hints(kind, include_extras=True), help_of(kind)
    return tuple(
        Parameter(field.name, hints[field.name], field.default, sentences.get(field.name, ""))
        for field in fields(kind)
        if field.init and field.name not in without
    )


def help_of(kind: type) -> dict[str, str]:
    """The first sentence about each parameter in docstrings of the house's form: of a class and of its base."""
    text = inspect.getdoc(kind) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}|\Z)", text, re.M | re.S)
    found = help_of(kind.__base__) if kind.__base__ else {}
    for names, body in re.findall(
        r"^(\w[\w, ]*?)(?: :[^\n]*)?\n((?: +[^\n]*\n?)*)", section.group(1) if section else "", re.M
    ):
        sentence = re.match(r".*?[.](?=\s|$)", " ".join(body.split()) + " ")
        for name in names.split(","):
            found[name.strip()] = sentence.group(0) if sentence else " ".join(body.split())
    return found


def _marks(annotation: Any, kind: type[Any]) -> list[Any]:
    """The marks of this kind inside an annotation."""
    return [
        found for part in get_args(annotation) for found in ([part] if isinstance(part, kind) else _marks(part, kind))
    ]


def split_names(text: str | None) -> list[str]:
    """Names between commas; a name that holds a comma stands in quotes.

    >>> split_names('never, "once, maybe", often'), split_names(None)
    (['never', 'once, maybe', 'often'], [])
    """
    lines = re.split(r"[\r\n]+", text or "")
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error:  # a name that is longer than any
        rows = [line.split(",") for line in lines]
    return [name.strip() for row in rows for name in row if name.strip()]


def plain_type(annotation: Any) -> Any:
    """The type of a setting without its range, and without None."""
    if get_origin(annotation) is Annotated:
        return plain_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return next(plain_type(part) for part in get_args(annotation) if part is not NoneType)
    return annotation
