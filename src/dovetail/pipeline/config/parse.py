"""Checking a section of a configuration: one line for each fault, with the nearest known key."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from dovetail.core.checks import nearest
from dovetail.core.errors import ConfigError
from dovetail.pipeline.config.sections import Chosen, Section

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
    """Check one section by itself; `name` is the file, `at` the table in it that errors name."""
    try:
        return section.choose(raw)
    except ValueError as problem:
        error = problem if isinstance(problem, ValidationError) else _as_validation(problem, section)
        lines = dict.fromkeys(_line(item, section, at) for item in error.errors(include_url=False))
        raise ConfigError("\n".join(f"{name}: {line}" for line in lines)) from None


def _as_validation(problem: ValueError, section: type[Section]) -> ValidationError:
    """A fault about the section as a whole, in the form of those about its keys."""
    kind = problem if isinstance(problem, PydanticCustomError) else "value_error"
    context = {} if isinstance(problem, PydanticCustomError) else {"error": problem}
    return ValidationError.from_exception_data(
        section.__name__, [{"type": kind, "loc": (), "input": None, "ctx": context}]
    )


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
    return f"`{location}` must be {wanted}, got {item['input']!r}."


def _model_at(location: tuple[Any, ...], model: type[BaseModel]) -> type[BaseModel]:
    """The model of the table that a location in the file names."""
    for part in location:
        field = model.model_fields.get(str(part))
        found = [] if field is None else [field.annotation, *get_args(field.annotation)]
        model = next((each for each in found if isinstance(each, type) and issubclass(each, BaseModel)), model)
    return model
