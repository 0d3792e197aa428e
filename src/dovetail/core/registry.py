"""Registries of randomizers, shufflers and attacks: the files of a folder, and other distributions' entry points.

A file is named after what it declares, so that the names are known before anything is imported. Nothing else lists
mechanisms: configuration, command line, planner, report and the tests of the laws ask here.
"""

from __future__ import annotations

import pkgutil
import sys
from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, TypeVar, final

from dovetail.core.checks import nearest, refuse
from dovetail.core.errors import UnsupportedError
from dovetail.core.settings import Parameter, parameters_of


class Declared(ABC):
    """Base of classes that say of themselves what others need to use them.

    `name` stands in configurations and is the name of the file; `label` stands in sentences. Parameters that users
    choose are typed fields with ranges, and their help is read from the docstring: see `settings`.
    """

    name: ClassVar[str]
    label: ClassVar[str]

    @classmethod
    def settings(cls) -> tuple[Parameter, ...]:
        """Settings that users choose, besides those of its kind: the fields of the class `Settings`."""
        chosen: type | None = getattr(cls, "Settings", None)
        return () if chosen is None else parameters_of(chosen)

    @classmethod
    def contradiction(cls) -> str:
        """Say what a class of another distribution claims wrongly; the laws hold the built-in ones."""
        return ""


Kind = TypeVar("Kind", bound=Declared)


@final
@dataclass(frozen=True)
class Registry(Generic[Kind]):
    """All classes of one kind, by name.

    Parameters
    ----------
    kind : str
        For sentences: "randomizer".
    base : type
        The abstract class that they implement.
    package : str
        The folder of the built-in ones: each file that is not a package declares the class that it is named after.
    group : str
        Entry points of other distributions: `name = "module:Class"`.
    """

    kind: str
    base: type[Any]
    package: str
    group: str

    def names(self) -> tuple[str, ...]:
        """All names, the built-in ones first; nothing of them is imported."""
        return (*self._files(), *self._foreign())

    def __iter__(self) -> Iterator[type[Kind]]:
        """Those that can be loaded: a broken distribution is refused when its mechanism is named, and only then."""
        for name in self.names():
            try:
                yield self[name]
            except UnsupportedError:
                continue

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> type[Kind]:
        """The class of this name.

        Raises
        ------
        ParameterError
            For an unknown name, with the nearest known one.
        UnsupportedError
            For an entry point that cannot be loaded or declares something else.
        """
        if name in self._files():
            module = import_module(f"{self.package}.{name}")
            kind: type[Kind] = next(found for found in vars(module).values() if self._declares(found, name))
            return kind
        foreign = self._foreign()
        if not isinstance(name, str) or name not in foreign:
            known = self.names()
            hint = nearest(name, known)
            raise refuse(self.kind, f"one of {', '.join(known)}", name, hint=hint if hint.endswith("?") else "")
        return self._load(foreign[name])

    def _files(self) -> tuple[str, ...]:
        return _files(self.package)

    def _foreign(self) -> dict[str, EntryPoint]:
        """Entry points by name; a built-in one keeps its name, and of several with one name none is taken."""
        points = _points(self.group, tuple(sys.path))
        found = {point.name: point for point in points if [other.name for other in points].count(point.name) == 1}
        return {name: found[name] for name in sorted(found) if name not in self._files()}

    def _declares(self, found: object, name: str) -> bool:
        return isinstance(found, type) and issubclass(found, self.base) and found.__dict__.get("name") == name

    def _load(self, point: EntryPoint) -> type[Kind]:
        where = f"{self.kind} {point.name!r} ({point.value})"
        try:
            found = point.load()
        except Exception as error:
            raise UnsupportedError(f"{where} cannot be loaded: {type(error).__name__}: {error}.") from None
        if not self._declares(found, point.name):
            wanted = f'must be a {self.base.__name__} with name = "{point.name}"'
            raise UnsupportedError(f"{where} {wanted}, got {found!r}.")
        checked: type[Kind] = found
        try:
            wrong = checked.contradiction()
        except Exception as error:
            wrong = f"its examples fail with {type(error).__name__}: {error}."
        if wrong:
            raise UnsupportedError(f"{where} is refused: {wrong}")
        return checked


@cache
def _points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points that distributions on this path declare; finding them reads a file of each."""
    return tuple(entry_points(group=group))


@cache
def _files(package: str) -> tuple[str, ...]:
    """Modules of a folder, without its folders."""
    paths = import_module(package).__path__
    return tuple(sorted(found.name for found in pkgutil.iter_modules(paths) if not found.ispkg))
