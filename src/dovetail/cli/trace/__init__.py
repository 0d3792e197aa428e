"""`dovetail trace`: the verbs for location traces; options and printing, no mathematics."""

from __future__ import annotations

import typer

from dovetail.cli.trace import design, release

app = typer.Typer(
    name="trace",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""Location traces: noise for a whole trace that hides secret times although the times around them tell much.

    In order: fit (a kernel, to public or other people's traces), plan (which times are secret, at which budget or
    guarantee), protect (release traces), collect (of many people, shuffled), attack (rehearse: measured success of
    smoothers beside the guarantee), loss (numbers alone). Verbs that print facts take --json.
    """,
)
for verbs in (design, release):
    verbs.register(app)


def register(main: typer.Typer) -> None:
    """Add the group to the command line."""
    main.add_typer(app)
