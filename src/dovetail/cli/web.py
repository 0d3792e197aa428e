"""`dovetail web`: the planner and the reader in a browser."""

from __future__ import annotations

from typing import Annotated

import typer


def _web(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where it listens; 0 takes a free one.")] = 8470,
    host: Annotated[
        str, typer.Option(help="Address of this machine to listen at; others than loopback can be reached by others.")
    ] = "127.0.0.1",
    open: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """The planner and the reader in a browser: plan, check a table, rehearse, compare; all on this machine.

    Prints a link that lets one browser in, once, so that other users of this machine are kept out. Listens on
    loopback and asks nothing of any other machine. Tables that you open lie in a temporary folder, which is deleted
    when Ctrl-C or SIGTERM ends the server. Rehearses only; `dovetail run` releases.

    Example: dovetail web --no-open
    """
    from dovetail.web.app import serve

    serve(host=host, port=port, browse=open, tell=typer.echo)


VERBS = {"web": _web}
