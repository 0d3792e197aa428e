"""The reference of the configuration, from the models that check it."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def _plain(annotation: Any) -> str:
    """A type in the words of a TOML file: without what only the checker reads."""
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _plain(parts[0])
    if get_origin(annotation) is Literal:
        return " or ".join(json.dumps(part) for part in parts)
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_plain(part) for part in parts if part is not NoneType)
    if get_origin(annotation) is list:
        return f"list of {_plain(parts[0])}"
    if get_origin(annotation) is dict:
        return f"table of {_plain(parts[1])}"
    return WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _range(field: Any) -> str:
    """The bounds of a number, from its annotations."""
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    holders = [*field.metadata, *(one for part in get_args(field.annotation) for one in _metadata(part))]
    return ", ".join(
        f"{word} {getattr(one, key):g}"
        for one in holders
        for key, word in words.items()
        if isinstance(getattr(one, key, None), int | float)
    )


def _metadata(part: Any) -> list[Any]:
    found = [*getattr(part, "__metadata__", ())]
    return [inner for one in found for inner in (getattr(one, "metadata", None) or [one])]


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return ""
    if field.default is PydanticUndefined or isinstance(field.default, BaseModel):
        return ""
    return f"`{json.dumps(field.default)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def section(model: type[BaseModel], name: str) -> str:
    """One table of the file: what its model says, and its keys."""
    rows = [
        f"| `{key}` | {_cell(_plain(field.annotation))} | {_range(field)} | {_cell(_default(field))} |"
        for key, field in model.model_fields.items()
        if key not in RUN_SECTIONS
    ]
    text = inspect.cleandoc(model.__doc__ or "")
    return "\n".join(
        [f"## {name}", "", text, "", "| key | type | range | default |", "| --- | --- | --- | --- |", *rows, ""]
    )


RUN_SECTIONS = ("data", "randomize", "shuffle", "promise", "estimate", "attack", "vector")


def run_sections(root: Path) -> str:
    """The configuration of `dovetail run`, section by section."""
    from dovetail.job import config as sections
    from dovetail.job.config import RunConfig, VectorSection
    from dovetail.job.questions import QuestionsHead, SharedData

    models = {
        "The file itself": RunConfig,
        "[data]": sections.DataSection,
        "[randomize]": sections.RandomizeSection,
        "[shuffle]": sections.ShuffleSection,
        "[shuffle] groups": sections.GroupsSection,
        "[promise]": sections.PromiseSection,
        "[estimate]": sections.EstimateSection,
        "[attack]": sections.AttackSection,
        "[vector]": VectorSection,
        "A file with [[questions]]": QuestionsHead,
        "[data] beside [[questions]]": SharedData,
    }
    return "\n".join(section(model, name) for name, model in models.items())


def mechanisms(root: Path) -> str:
    """Every mechanism that a configuration can name, with the settings that it declares."""
    from dovetail.core.stages import ATTACKS, RANDOMIZERS, SHUFFLERS
    from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS

    parts = []
    registries = {
        "Randomizers": RANDOMIZERS, "Randomizers of vectors": VECTOR_RANDOMIZERS, "Shufflers": SHUFFLERS,
        "Attacks": ATTACKS,
    }  # fmt: skip
    for title, registry in registries.items():
        parts += [f"## {title}", "", "| name | what it is | its settings |", "| --- | --- | --- |"]
        for kind in registry:
            settings = ", ".join(f"`{one.name}`" + (" (required)" if one.required else "") for one in kind.settings())
            parts.append(f"| `{kind.name}` | {_cell(kind.label)} | {settings} |")
        parts.append("")
    return "\n".join(parts)
