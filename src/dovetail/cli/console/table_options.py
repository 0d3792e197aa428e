"""How the text files that a verb reads are written: the options that [data] has keys for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from dovetail.pipeline.files.table_reader import TableReader

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
        """What reads these tables."""
        from dovetail.core.errors import ParameterError
        from dovetail.pipeline.config.parse import parse_section
        from dovetail.pipeline.config.sections import FileFormat
        from dovetail.pipeline.files.table_reader import TableReader

        keys = self.section()
        decimal = keys.pop("decimal", ".")
        if len(keys.get("separator", ",")) != 1:
            raise ParameterError(f"--separator must be one letter or tab, got {self.separator!r}.")
        found = TableReader(parse_section(FileFormat, keys, name="options"), decimal)
        found.check([str(path) for path in paths])
        return found
