"""Options that several verbs take."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, make_dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from dovetail.core.registry import Declared
from dovetail.core.settings import Parameter, plain_type, split_names
from dovetail.core.stages import RANDOMIZERS, SHUFFLERS

if TYPE_CHECKING:
    from dovetail.table.reader import TableReader


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def as_whole(value: float | None) -> Any:
    """1e6 as the whole number that it is; other text is refused by the caller."""
    return int(value) if value is not None and float(value).is_integer() else value


# Verbs: what they take stands in the signature, also as dataclasses, whose fields are listed one by one.


def add_verbs(app: typer.Typer, verbs: Mapping[str, Any]) -> None:
    """Add verbs, and groups of them, to the command line or to a group of it, by name."""
    for name, verb in verbs.items():
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name)
        else:
            app.command(name)(flatten(verb))


def verb_group(name: str, help: str) -> typer.Typer:
    """A group of verbs, which prints its help where none is named."""
    return typer.Typer(
        name=name, help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )  # fmt: skip


def flatten(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb with every parameter that is a dataclass replaced by its fields, in the same order.

    A field is written as an option is: `name: Annotated[type, typer.Option(help=..)] = default`. Where the dataclass
    is at home in a layer that knows no command line, the help alone stands there: `Annotated[type, ".."]`.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @functools.wraps(verb)
    def command(**options: Any) -> Any:
        made = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return verb(**made, **options)

    signature = inspect.signature(verb)
    found = [option for each in signature.parameters.values() for option in _options(each, hints[each.name])]
    command.__signature__ = signature.replace(parameters=found)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in found}
    del command.__wrapped__
    return command


def _options(parameter: inspect.Parameter, hint: Any) -> Iterator[inspect.Parameter]:
    kind = inspect.Parameter.KEYWORD_ONLY
    if not is_dataclass(hint):
        yield parameter.replace(kind=kind, annotation=_plainly(hint))
        return
    hints = get_type_hints(hint, include_extras=True)
    for field in fields(hint):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(field.name, kind, default=default, annotation=_plainly(_as_option(hints[field.name])))


def _as_option(hint: Any) -> Any:
    """An option with this help, where a type is annotated with nothing but a sentence."""
    said = getattr(hint, "__metadata__", ())
    return Annotated[hint.__origin__, typer.Option(help=said[0])] if said and isinstance(said[0], str) else hint


def _plainly(hint: Any) -> Any:
    """An option whose type is named as people name it, and that takes numbers as they write them."""
    if get_origin(hint) is not Annotated or not isinstance(get_args(hint)[1], OptionInfo):
        return hint
    kind, option = plain_type(hint), copy(get_args(hint)[1])
    if option.metavar is None:
        option.metavar = next((word for known, word in _TYPES if kind == known), None)
    if kind is float and option.parser is None and option.min is None and option.max is None:
        option.parser = number
    return Annotated[get_args(hint)[0], option]


_TYPES = ((float, "NUMBER"), (int, "COUNT"), (str, "TEXT"), (Path, "PATH"), (list[str], "TEXT"), (list[Path], "PATH"))
_DECIMAL_COMMA = re.compile(r"-?0,[0-9]+(e-?[0-9]+)?", re.IGNORECASE)  # after 0 it cannot stand for thousands


class Percent(float):
    """A share that was written with a percent sign."""


def number(text: str) -> float:
    """A number as people write it: 0.03, 3e-2 or 0,03.

    >>> number("0,03"), number("1e6")
    (0.03, 1000000.0)
    >>> number("1,000")
    Traceback (most recent call last):
    ValueError: must be a number such as 0.03 or 1e6, got '1,000'
    """
    bare = str(text).strip()
    try:
        return float(bare.replace(",", ".") if _DECIMAL_COMMA.fullmatch(bare) else bare)
    except ValueError:
        raise ValueError(f"must be a number such as 0.03 or 1e6, got {text!r}") from None


def as_share(text: str) -> float:
    """A probability or a share as people write it, also in percent.

    >>> as_share("3%"), as_share("0,5 %"), as_share("0.03")
    (0.03, 0.005, 0.03)
    """
    bare = str(text).strip()
    if not bare.endswith("%"):
        return number(bare)
    return Percent(Decimal(repr(number(bare[:-1]))).scaleb(-2))


# Options that mechanisms declare, one for each setting of a randomizer, shuffler or attack; and groups of people.


def settings_group(name: str, kinds: Iterable[type[Declared]]) -> type:
    """A dataclass with an option for each setting of these mechanisms, none of them required.

    The help of an option names the mechanisms that take it; which ones do is checked with the configuration.
    """
    found: dict[str, tuple[Any, dict[str, list[str]]]] = {}
    for kind in kinds:
        for one in kind.settings():
            if not one.is_file:
                told = found.setdefault(one.name, (one, {}))[1]
                told.setdefault(f"{one.help}{_default(one)}", []).append(kind.name)
    options = [
        (
            one.name,
            Annotated[
                plain_type(one.annotation) | None,
                typer.Option(help=" ".join(f"{', '.join(takers)}: {text}" for text, takers in told.items())),
            ],
            None,
        )
        for one, told in found.values()
    ]
    return make_dataclass(name, options, frozen=True)


def _default(one: Parameter) -> str:
    return "" if one.required or one.default is None else f" Default: {one.default}."


if TYPE_CHECKING:
    RandomizerSettings = Any
    ShufflerSettings = Any
else:
    _DECLARED = {"RandomizerSettings": RANDOMIZERS, "ShufflerSettings": SHUFFLERS}

    def __getattr__(name: str) -> type:
        if name not in _DECLARED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return settings_group(
            name, _DECLARED[name]
        )  # loads every mechanism, and numba: only for verbs that take them


RandomizerName = Annotated[
    str,
    typer.Option(
        help=f"What randomizes each value: {', '.join(RANDOMIZERS.names())}.",
        autocompletion=lambda incomplete: [name for name in RANDOMIZERS.names() if name.startswith(incomplete)],
    ),
]


def chosen(settings: Any) -> dict[str, Any]:
    """The settings that were given."""
    return given(asdict(settings))


def section_options(name: str, section: Any, *keys: str) -> type:
    """A dataclass with an option for each of these keys of a section of a configuration, none of them required.

    Help and type are those of the key; a list is one text with commas. `section()` gives the keys that were given.
    """
    known = section.model_fields
    kinds = {key: plain_type(known[key].annotation) for key in keys}
    lists = {key for key, kind in kinds.items() if get_origin(kind) is list}
    options = [
        (key, Annotated[(str if key in lists else kind) | None, typer.Option(help=known[key].description)], None)
        for key, kind in kinds.items()
    ]

    def table(self: Any) -> dict[str, Any]:
        return given(
            {key: split_names(value) or None if key in lists else value for key, value in vars(self).items()}
        )

    return make_dataclass(name, options, frozen=True, namespace={"section": table})


# How the text files that a verb reads are written: the options that [data] has keys for.


_TAB = ("tab", "\\t")


@dataclass(frozen=True)
class TableOptions:
    """Separator, encoding and decimal mark; as an option, `encoding` is a setting of unary."""

    separator: Annotated[
        str | None, typer.Option(help='CSV: what separates the fields, such as ";" or tab; default a comma.')
    ] = None
    text_encoding: Annotated[str | None, typer.Option(help="CSV: such as windows-1252 or utf-16; default UTF-8.")] = (
        None
    )
    decimal: Annotated[
        Literal[".", ","] | None, typer.Option(help="CSV: decimal mark of numbers; default a point.")
    ] = None

    def section(self) -> dict[str, Any]:
        """The keys of [data], of those that are given."""
        separator = "\t" if self.separator in _TAB else self.separator
        said = {"separator": separator, "encoding": self.text_encoding, "decimal": self.decimal}
        return {key: value for key, value in said.items() if value is not None}

    def reader(self, *paths: Path) -> TableReader:
        """Reader of these tables."""
        from dovetail.core.errors import ParameterError
        from dovetail.table.data_section import FileFormat, parse_section
        from dovetail.table.reader import TableReader

        keys = self.section()
        decimal = keys.pop("decimal", ".")
        if len(keys.get("separator", ",")) != 1:
            raise ParameterError(f"--separator must be one letter or tab, got {self.separator!r}.")
        found = TableReader(parse_section(FileFormat, keys, name="options"), decimal)
        found.check([str(path) for path in paths])
        return found
