"""The reference of the command line, from the verbs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def walk(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Every verb below a command, with its context, in the order of the help."""
    for name in command.list_commands(context):
        verb = command.get_command(context, name)
        inner = type(context)(verb, info_name=name, parent=context)
        yield verb, inner
        if hasattr(verb, "list_commands"):
            yield from walk(verb, inner)


def _option(parameter: Any, context: Any) -> str:
    """One entry of a definition list."""
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    names, text = record
    return f"`{' '.join(names.split())}`\n: {' '.join((text or '').split())}\n"


def _escaped(text: str) -> str:
    return text.replace("<", "\\<").replace("*", "\\*").replace("[", "\\[")


def _section(verb: Any, context: Any) -> str:
    path = context.command_path
    level = "#" * (1 + path.count(" "))
    help_text = inspect.cleandoc(verb.help or "").replace("\b\n", "")
    options = [_option(parameter, context) for parameter in verb.params if parameter.name != "help"]
    parts = [f"{level} {path}", _escaped(help_text)]
    if not hasattr(verb, "list_commands"):
        parts.append("```text\n" + verb.get_usage(context) + "\n```")
    return "\n\n".join([*parts, *(_escape_option(one) for one in options if one)])


def _escape_option(entry: str) -> str:
    name, _, text = entry.partition("\n: ")
    return f"{name}\n: {_escaped(text)}"


def verbs(root: Path) -> str:
    """Every verb with its options."""
    import typer.main

    from dovetail.cli.main import app

    command = typer.main.get_command(app)
    with command.make_context("dovetail", [], resilient_parsing=True) as context:
        return "\n\n".join(_section(verb, inner) for verb, inner in walk(command, context))
