"""`dovetail text`: sentence privacy of documents, one file per verb; options and printing, no mechanism."""

from __future__ import annotations

import typer

from dovetail.cli.text import attack, candidates, evaluate, plan, protect

app = typer.Typer(
    name="text",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""Sentence privacy of documents: a document is released as one public embedding that hides any one sentence.

    In order: candidates (from public documents), plan (which epsilon is enough), evaluate and attack (what released
    embeddings are good for, and what they give away), protect (private documents).
    """,
)
for verb in (candidates, plan, evaluate, attack, protect):
    verb.register(app)


def register(main: typer.Typer) -> None:
    """Add the group to the command line."""
    main.add_typer(app)
