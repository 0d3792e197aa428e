"""The reference of the command line, from the verbs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
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
    help_text = inspect.cleandoc(verb.help or "").replace("\b\n", "")
    options = [_option(parameter, context) for parameter in verb.params if parameter.name != "help"]
    parts = [f"# {context.command_path}", _escaped(help_text)]
    if hasattr(verb, "list_commands"):
        parts.append(_listed([(one, inner) for one, inner in walk(verb, context) if inner.parent is context]))
    else:
        parts.append("```text\n" + verb.get_usage(context) + "\n```")
    return "\n\n".join([*parts, *(_escape_option(one) for one in options if one)])


def _escape_option(entry: str) -> str:
    name, _, text = entry.partition("\n: ")
    return f"{name}\n: {_escaped(text)}"


def _listed(verbs: list[tuple[Any, Any]], folder: str = "") -> str:
    """A line for each verb, with a link to its page."""
    rows = []
    for verb, context in verbs:
        first = " ".join(inspect.cleandoc(verb.help or "").split("\n\n")[0].split()).replace("|", "\\|")
        rows.append(f"| [{context.command_path}]({folder}{_name(context)}.md) | {_escaped(first)} |")
    return "\n".join(["| verb | what it does |", "| --- | --- |", *rows])


def _name(context: Any) -> str:
    return str(context.command_path).replace(" ", "-")


@contextmanager
def _every() -> Iterator[list[tuple[Any, Any]]]:
    import typer.main

    from dovetail.cli.main import app

    command = typer.main.get_command(app)
    with command.make_context("dovetail", [], resilient_parsing=True) as context:
        yield list(walk(command, context))


def verbs(root: Path) -> str:
    """A line for each verb, and where its page is."""
    with _every() as found:
        pages = "\n".join(f"cli/{_name(context)}" for _, context in found)
        return f"{_listed(found, 'cli/')}\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```"


def pages() -> dict[str, str]:
    """The page of each verb, with its options, by its place below `docs`."""
    with _every() as found:
        return {f"reference/cli/{_name(context)}.md": _section(verb, context) + "\n" for verb, context in found}
