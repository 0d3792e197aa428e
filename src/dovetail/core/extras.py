"""Optional dependencies: imported where they are used; what is missing is named with the pip line that brings it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from dovetail.core.errors import MissingExtraError

NAME = "dovetail-privacy"
Read = Callable[[], str | None]


def _direct_url() -> str | None:
    from importlib.metadata import distribution

    return distribution(NAME).read_text("direct_url.json")


def pip_line(extra: str, *, read: Read = _direct_url) -> str:
    """How to add an optional dependency set to this installation: from its checkout, its wheel, or an index.

    `read` gives what the installer recorded of where this package came from (PEP 610).
    """
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        recorded = read()
    except PackageNotFoundError:
        return f"install the extra `{extra}` that pyproject.toml lists"
    if recorded is None:
        return f"pip install '{NAME}[{extra}]'"
    origin = json.loads(recorded)
    place = urlsplit(origin["url"])
    if place.scheme != "file":
        return f"install it again from {origin['url']} with the extra `{extra}`"
    path = url2pathname(place.path) + f"[{extra}]"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}{shlex.quote(path)}"


def require(module: str, *, extra: str) -> ModuleType:
    """Import `module`, which the optional dependency set `extra` brings.

    Raises
    ------
    MissingExtraError
        With the pip line that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(f"This needs {package}, which is not installed: {pip_line(extra)}") from error


# polars, imported when a table is first touched: accounting, plans and servers run where it is not installed.


__all__ = ["no_columns", "pl"]

if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        """Stands for the module until one of its names is asked for."""

        def __getattr__(self, name: str) -> Any:
            try:
                found = getattr(import_module("polars"), name)
            except ImportError as error:
                raise MissingExtraError("Tables need polars, which is not installed: pip install polars") from error
            self.__dict__[name] = found  # asked once
            return found

    pl = _Polars()


def no_columns() -> pl.DataFrame:
    """A table without columns; where polars is not installed nothing, which plans and servers do not look into."""
    try:
        return pl.DataFrame()
    except MissingExtraError:
        return cast("pl.DataFrame", None)
