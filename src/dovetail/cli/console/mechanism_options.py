"""Options that mechanisms declare, one for each setting of a randomizer, shuffler or attack; and groups of people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, make_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import typer

from dovetail.cli.console.options import given
from dovetail.core.registries import RANDOMIZERS, SHUFFLERS
from dovetail.core.registry import Declared
from dovetail.core.settings import Parameter, split_names


def settings_group(name: str, kinds: Iterable[type[Declared]]) -> type:
    """A dataclass with an option for each setting of these mechanisms, none of them required.

    The help of an option names the mechanisms that take it; which ones do is checked with the configuration.
    """
    found: dict[str, tuple[Any, list[str]]] = {}
    for kind in kinds:
        for one in kind.settings():
            if not one.is_file:
                found.setdefault(one.name, (one, []))[1].append(kind.name)
    options = [
        (
            one.name,
            Annotated[
                _plain(one.annotation) | None, typer.Option(help=f"{', '.join(takers)}: {one.help}{_default(one)}")
            ],
            None,
        )
        for one, takers in found.values()
    ]
    return make_dataclass(name, options, frozen=True)


def _default(one: Parameter) -> str:
    return "" if one.required or one.default is None else f" Default: {one.default}."


def _plain(annotation: Any) -> Any:
    """The type of a setting as the command line reads it: without its range, and without None."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return next(_plain(part) for part in get_args(annotation) if part is not NoneType)
    return annotation


if TYPE_CHECKING:
    RandomizerSettings = Any
    ShufflerSettings = Any
else:
    RandomizerSettings = settings_group("RandomizerSettings", RANDOMIZERS)
    ShufflerSettings = settings_group("ShufflerSettings", SHUFFLERS)

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


@dataclass(frozen=True)
class GroupOptions:
    """Who must be indistinguishable by order: the table `groups` of a configuration."""

    labels: Annotated[str | None, typer.Option(help="Public column: groups of equal (or near) labels.")] = None
    points: Annotated[str | None, typer.Option(help="Public columns of coordinates, separated by commas.")] = None
    radius: Annotated[float | None, typer.Option(help="Groups within this distance.")] = None
    nearest: Annotated[int | None, typer.Option(help="Groups of this many nearest people, the owner included.")] = (
        None
    )

    def section(self) -> dict[str, Any]:
        """The table `groups`; empty where no option was given."""
        return given(asdict(self) | {"points": split_names(self.points) if self.points else None})


def shuffle_section(shuffler: str | None, alpha: float | None, groups: GroupOptions, settings: Any) -> dict[str, Any]:
    """The section [shuffle], by default best with alpha, within_groups with groups alone, otherwise uniform."""
    found = groups.section()
    name = shuffler or ("uniform" if not found else "within_groups" if alpha is None else "best")
    return given({"shuffler": name, "alpha": alpha, "groups": found or None, **chosen(settings)})
