"""`dovetail memorize`: one file per verb for tests of memorization; options and printing, no mathematics."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import typer

app = typer.Typer(
    name="memorize",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""Does a model repeat its data: tests of generators and encoders that find memorization and promise nothing.

    copying: is a generated table, array or folder of images nearer to the training data than fresh data are. dejavu:
    does an encoder tell from the background what only its training images could have taught it. crop: the largest
    part of an image that meets no object. Verbs that print facts take --json. Passing a test is no privacy.
    """,
)
VERBS = ("copying", "dejavu", "crop")
for verb in VERBS:
    if any(module.name == verb for module in iter_modules(__path__)):
        import_module(f"{__name__}.{verb}").register(app)


def register(main: typer.Typer) -> None:
    """Add the group to the command line."""
    main.add_typer(app)
