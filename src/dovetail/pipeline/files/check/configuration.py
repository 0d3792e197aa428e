"""The configuration that reads a checked table, annotated: what a person has to confirm is marked."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import Any

from dovetail.pipeline.files.check.check_table import TableCheck
from dovetail.pipeline.files.check.column import Column, Kind
from dovetail.pipeline.files.check.domain.noise import delta_for

MARK = "CONFIRM"
_WIDE = 112  # letters in a line
_FEW = 50  # values of a column that may be grouped by
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n"}
_LAYOUT = {
    "separator": "what separates fields",
    "quote": "what stands around texts",
    "encoding": "of the text; see that marked letters are right",
    "skip_rows": f"{MARK}: rows above the header that are left out",
    "header_rows": f"{MARK}: rows that name and explain the columns",
    "footer_rows": f"{MARK}: rows at the end that are no people",
    "columns": "names of the columns, in their order, instead of the header's",
    "decimal": "what stands before the fraction of a number",
    "thousands": "what stands between thousands",
    "units": "what may stand around numbers",
    "missing_spellings": "texts that stand for no value, besides blanks",
    "duplicates": "of a person who stands in two rows",
}


def write_configuration(found: TableCheck, place: Path) -> str:
    """The text of a TOML file at `place` that `run` takes: a rehearsal at once, a release when it is confirmed."""
    sections = [_head(found), _data(found, place), _labels(found), _randomize(found), _rest(found)]
    return "\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _head(found: TableCheck) -> list[str]:
    return [
        f"# Written by `dovetail check` for {_bare(found.path.name)}: {found.n:,} rows. Lines marked {MARK} were",
        "# read off the table or guessed: look at each. This file may say what people wrote: keep it private.",
        "schema_version = 1",
        'mode = "rehearsal"  # knows the truth, for planning; "release" is what leaves the house',
        "",
    ]


def _data(found: TableCheck, place: Path) -> list[str]:
    asked, said = found.asked, found.settings
    lines = ["[data]", f"path = {_text(_beside(found.path, place))}"]
    lines += [_line(key, said[key], note) for key, note in _LAYOUT.items() if key in said]
    if asked.private is None:
        lines.append(_line("private", "", f"{MARK}: the column to protect, one of {', '.join(_choices(found))}"))
    else:
        lines.append(_line("private", asked.private, "the column that is protected"))
    if asked.person is not None:
        lines.append(_line("person", asked.person, "names people; nobody may stand in two rows; never released"))
    lines.append(_line("public", list(asked.public), _public_note(found)))
    if "missing" in said:
        lines.append(_line("missing", said["missing"], f"{MARK}: the category of a missing answer"))
    if "categories" in said:
        lines.append(
            _line(
                "categories",
                said["categories"],
                _declare(found, "categories", "every answer that the question offers"),
            )
        )
    for key in ("lower", "upper"):
        if key in said:
            lines.append(_line(key, said[key], _declare(found, key, f"the {key} bound of anybody's number")))
    if found.unconfirmed:
        note = f"{MARK}: delete this line when you have; a release is refused until then"
        lines.append(_line("unconfirmed", list(found.unconfirmed), note))
    return [*lines, ""]


def _declare(found: TableCheck, key: str, what: str) -> str:
    if key not in found.unconfirmed:
        return what
    source = "read off the private column" if key == "categories" else "a guess"
    return f"{MARK}: {source}; declare {what} without looking at the table"


def _public_note(found: TableCheck) -> str:
    fit = [
        name for name, column in found.columns.items()
        if not found.asked.has_role(name) and _may_group(column)
    ]  # fmt: skip
    offer = f", such as {', '.join(_text(name) for name in fit[:8])}" if fit else ""
    return f"opt-in: columns that are no secret{offer}; all others are dropped"


def _may_group(column: Column) -> bool:
    return column.kind in (Kind.CATEGORY, Kind.NUMBER) and 2 <= column.distinct <= _FEW


def _choices(found: TableCheck) -> list[str]:
    fit = [name for name, column in found.columns.items() if column.kind in (Kind.CATEGORY, Kind.NUMBER)]
    return [_text(name) for name in fit if name != found.asked.person][:20]


def _labels(found: TableCheck) -> list[str]:
    lines = []
    for name, labels in found.settings.get("labels", {}).items():
        private = "; not repeated in any report" if name == found.asked.private else ""
        lines.append(f"[data.labels.{_text(name)}]  # {MARK}: spelling = label{private}")
        lines += [f"{_text(spelling)} = {_text(label)}" for spelling, label in labels.items()]
        lines.append("")
    return lines


def _randomize(found: TableCheck) -> list[str]:
    note = "local epsilon of each report, nats: `dovetail plan` says what it buys"
    if found.noise is None:
        return ["[randomize]", _line("epsilon", found.asked.epsilon, note), ""]
    best = _line("randomizer", found.noise.randomizer, "the best for these people and this budget")
    note = f"nats; an estimate is off by up to {found.noise.error95:.3g} (95 %); `dovetail plan` says what else"
    return ["[randomize]", best, _line("epsilon", found.asked.epsilon, note), ""]


def _rest(found: TableCheck) -> list[str]:
    return [
        "[shuffle]",
        'shuffler = "uniform"  # docs/samples shows those that keep people near their public neighbours',
        "",
        "[promise]",
        f"delta = {delta_for(found.n):g}  # well below one over the number of people",
        "",
        "[estimate]",
        "by = []  # public columns to estimate by",
    ]


def _line(key: str, value: Any, note: str) -> str:
    """A key with its note beside it, or above it where the line would be long."""
    line = f"{key} = {_value(value)}"
    return f"{line}  # {note}" if len(line) + len(note) < _WIDE else f"# {note}\n{line}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _text(text: str) -> str:
    """A basic string of TOML; letters that cannot be told apart by eye are written as their numbers."""
    return '"' + "".join(map(_letter, text)) + '"'


def _letter(letter: str) -> str:
    if letter in _ESCAPED:
        return _ESCAPED[letter]
    if letter == " " or unicodedata.category(letter)[0] in "LNPS":
        return letter
    return f"\\u{ord(letter):04X}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08X}"


def _bare(text: str) -> str:
    """A text for a comment."""
    return _text(text)[1:-1]


def _beside(table: Path, place: Path) -> str:
    """The path of the table as the configuration sees it."""
    try:
        return Path(os.path.relpath(table.absolute(), place.absolute().parent)).as_posix()
    except ValueError:  # another drive of Windows
        return table.absolute().as_posix()
