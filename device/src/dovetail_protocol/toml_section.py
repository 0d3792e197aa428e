"""Reading a table of TOML: each key once, with its range; what is left over is an error that names a known key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from dovetail_protocol import checks
from dovetail_protocol.errors import ConfigError, ParameterError

_MISSING: Any = object()


class Section:
    """One table of a TOML file under the dotted name `name`, empty for the top.

    Every reader takes `default` for a key that may be absent; without one an absent key is an error.
    """

    def __init__(self, name: str, found: dict[str, Any]) -> None:
        self._name, self._found, self._known = name, dict(found), list[str]()

    def __bool__(self) -> bool:
        return bool(self._found)

    def section(self, key: str, *, optional: bool = False) -> Section:
        """The table `key`; empty if it is absent and optional."""
        found = self._take(key, {} if optional else _MISSING)
        if not isinstance(found, dict):
            raise ConfigError(f"`{self._path(key)}` must be a table, written [{self._path(key)}].")
        return Section(self._path(key), found)

    def text(self, key: str, default: Any = _MISSING) -> Any:
        return self._read(key, default, _text)

    def choice(self, key: str, known: tuple[str, ...], default: Any = _MISSING) -> Any:
        found = self.text(key, default)
        if found not in known and found is not default:
            raise ConfigError(f"`{self._path(key)}` must be one of {', '.join(known)}, got {found!r}.")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of different texts; empty if absent."""
        found = self._take(key, [])
        if not isinstance(found, list) or not all(isinstance(item, str) and item for item in found):
            raise ConfigError(f"`{self._path(key)}` must be a list of texts.")
        if len(set(found)) < len(found):
            raise ConfigError(f"`{self._path(key)}` names something twice.")
        return tuple(found)

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of finite numbers."""
        found = self._take(key, _MISSING)
        if not isinstance(found, list):
            raise ConfigError(f"`{self._path(key)}` must be a list of numbers.")
        try:
            return tuple(checks.real(self._path(key), item) for item in found)
        except ParameterError as error:
            raise ConfigError(str(error)) from None

    def wholes(self, key: str, *, least: int) -> tuple[int, ...]:
        """A list of whole numbers; empty if absent."""
        found = self._take(key, [])
        if not isinstance(found, list):
            raise ConfigError(f"`{self._path(key)}` must be a list of whole numbers.")
        try:
            return tuple(checks.whole(self._path(key), item, least=least) for item in found)
        except ParameterError as error:
            raise ConfigError(str(error)) from None

    def names(self, key: str) -> tuple[str, ...]:
        """One text, or two that may be the same."""
        found = self._take(key, _MISSING)
        if not (isinstance(found, list) and 1 <= len(found) <= 2 and all(isinstance(item, str) for item in found)):
            raise ConfigError(f"`{self._path(key)}` must be a list of one or two texts.")
        return tuple(found)

    def tables(self, key: str) -> list[Section]:
        """A list of tables; empty if absent."""
        return self._tables(key, self._take(key, []))

    def lists_of_tables(self, key: str) -> list[list[Section]]:
        """A list of lists of tables; empty if absent."""
        found = self._take(key, [])
        if not isinstance(found, list):
            raise ConfigError(f"`{self._path(key)}` must be a list of lists of tables.")
        return [self._tables(key, each) for each in found]

    def _tables(self, key: str, found: Any) -> list[Section]:
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise ConfigError(f"`{self._path(key)}` must hold lists of tables.")
        return [Section(self._path(key), item) for item in found]

    def mapping(self, key: str) -> dict[str, Any]:
        """A table as it stands; empty if absent."""
        return self.section(key, optional=True).rest()

    def whole(self, key: str, *, least: int, most: int | None = None, default: Any = _MISSING) -> Any:
        return self._read(key, default, lambda path, found: checks.whole(path, found, least=least, most=most))

    def number(self, key: str) -> float:
        found: float = self._read(key, _MISSING, checks.real)
        return found

    def positive(self, key: str, default: Any = _MISSING) -> Any:
        return self._read(key, default, checks.positive)

    def seconds(self, key: str, *, least: float, default: Any = _MISSING) -> Any:
        """A duration of at most 30 years."""
        return self._read(key, default, lambda path, found: _seconds(path, found, least))

    def probability(self, key: str, default: Any = _MISSING) -> Any:
        return self._read(key, default, checks.probability)

    def not_negative(self, key: str, default: Any = _MISSING) -> Any:
        return self._read(key, default, checks.not_negative)

    def moment(self, key: str, default: Any = _MISSING) -> Any:
        """A date with time and offset, in UTC."""
        return self._read(key, default, _moment)

    def rest(self) -> dict[str, Any]:
        """Everything not read yet, which counts as read."""
        left = {key: value for key, value in self._found.items() if key not in self._known}
        self._known += left
        return left

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in self._found:
            if key not in self._known:
                hint = checks.nearest(key, sorted(self._known))
                end = "" if hint.endswith("?") else "."
                raise ConfigError(f"`{_line(self._path(key))}` is not a key of a campaign{hint}{end}")

    def _read(self, key: str, default: Any, check: Callable[[str, Any], Any]) -> Any:
        found = self._take(key, default)
        if found is default and key not in self._found:
            return default
        try:
            return check(self._path(key), found)
        except ParameterError as error:
            raise ConfigError(str(error)) from None

    def _take(self, key: str, default: Any) -> Any:
        self._known.append(key)
        if key not in self._found and default is _MISSING:
            where = f"in [{self._name}]" if self._name else "at the top"
            raise ConfigError(f"`{key}` is missing {where}.")
        return self._found.get(key, default)

    def _path(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise checks.refuse(name, "a text", value)
    return value


def _seconds(name: str, value: Any, least: float) -> float:
    wanted = f"a number of seconds from {least:g} to 1e9"
    result = checks.real(name, value, wanted=wanted)
    if not least <= result <= 1e9:
        raise checks.refuse(name, wanted, value)
    return result


def _line(key: str) -> str:
    """A key in one line, whatever somebody put between quotes."""
    return key.encode("unicode_escape").decode()[:80]


def _moment(name: str, value: Any) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise checks.refuse(name, "a date with time and offset, such as 2030-01-31T12:00:00Z", value)
    try:
        return value.astimezone(UTC)
    except OverflowError:  # in the year 1 or 9999, beyond it in UTC
        raise checks.refuse(name, "a date of the years 2 to 9998", value) from None
