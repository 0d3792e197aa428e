"""The command line: one verb per stage; plain files in and out; one line per fault and never a traceback."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from typing import Annotated, NoReturn

import typer

from dovetail import __version__
from dovetail.cli.progress import is_terminal, watching
from dovetail.cli.verbs import VerbGroup, options_of
from dovetail.core.errors import DovetailError, StorageError, UnreachableError
from dovetail_protocol.terminal_text import printable

BAD_INPUT, FAILED = 2, 1
_INTERRUPTED = 130  # what typer makes of Ctrl-C
_LONGEST = 1200  # letters of an error

app = typer.Typer(
    name="dovetail",
    cls=VerbGroup,
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dovetail {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Private data collection: randomize on the device, shuffle in between, estimate at the analyst.

    Every verb reads and writes plain files, prints a readable table, and has --json for machines. Exit status: 0
    done, 2 bad usage or bad input (one line: what, where, what to do), 1 anything else.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(BAD_INPUT)


def main() -> None:
    """Run the command line and turn faults into one line and an exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter gets a question mark
            stream.reconfigure(errors="replace")
    signal.signal(signal.SIGTERM, _interrupt)
    status = invoke(sys.argv[1:])
    _close_output()
    sys.exit(status)


def _interrupt(*_: object) -> NoReturn:
    """Being terminated cleans up as Ctrl-C does."""
    raise KeyboardInterrupt


def _close_output() -> None:
    """The reader of the output may have stopped, as `head` does: what is left then goes nowhere, without a word."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def invoke(arguments: list[str]) -> int:
    """Run one command line; returns its exit status."""
    try:
        with watching(arguments):
            result = app(arguments, prog_name="dovetail", standalone_mode=False)
        if result == _INTERRUPTED:
            return _fail("interrupted; nothing was written.", FAILED)
        return result if isinstance(result, int) else 0
    except typer.TyperException as error:
        command = getattr(error, "ctx", None)
        hint = f" (see {command.command_path} --help)" if command is not None else ""
        return _fail(_in_one_line(error.format_message()) + hint, BAD_INPUT)
    except (StorageError, UnreachableError) as error:
        return _fail(str(error), FAILED)
    except DovetailError as error:
        return _fail(_as_typed(str(error), arguments), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; nothing was written.", FAILED)
    except MemoryError:
        return _fail("not enough memory for this table; nothing was written.", FAILED)
    except BrokenPipeError:
        return 0  # the reader has seen enough
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):  # as typer and rich take it
            return 0
        return left.code if isinstance(left.code, int) else 0
    except OSError as error:
        named = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{named}the system refused: {error.strerror or error}.", FAILED)
    except Exception as error:
        if os.environ.get("DOVETAIL_DEBUG"):
            raise
        return _fail(
            f"internal fault, {type(error).__name__}; run again with DOVETAIL_DEBUG=1 and report it.", FAILED
        )


def _in_one_line(message: str) -> str:
    r"""Put the words of typer or pydantic about an option on one line, in ours.

    >>> _in_one_line("Missing option '--question'. Choose from:\n\tfrequency,\n\tmean")
    "Missing option '--question'. Choose from: frequency, mean"
    >>> _in_one_line("Invalid value for '--n': Input should be a valid number, unable to parse string as a number")
    "Invalid value for '--n': must be a number"
    """
    text = " ".join(message.split()).replace(": Value error, ", ": ")
    text = re.sub(r", unable to parse string as an? \w+", "", text)
    text = text.replace("Input should be a valid integer", "must be a whole number")
    return text.replace("Input should be a valid", "must be a").replace("Input should be", "must be")


def _as_typed(message: str, arguments: list[str]) -> str:
    """A fault of a parameter, which is named as its option: if that was typed, or nothing else can have set it.

    >>> _as_typed("`delta0` must be below 1, got 2.0; see `k`.", ["account", "--delta0", "2"])
    '--delta0 must be below 1, got 2.0; see --k.'
    >>> _as_typed("`question.clip` must be greater than 0, got -1.0.", ["plan", "--clip", "-1"])
    '--clip must be greater than 0, got -1.0.'
    >>> _as_typed("`seed` is a key of a file, and `force` was typed.", ["run", "it.toml", "--force"])
    '`seed` is a key of a file, and --force was typed.'
    >>> _as_typed("it.toml: `k` must be above 1.", ["account", "--delta0", "2"])
    'it.toml: `k` must be above 1.'
    """
    options = {word.split("=")[0] for word in arguments if word.startswith("--")}
    if not re.match(r"\S+\.toml: ", message):  # a file names its own keys
        options |= options_of(arguments)

    def name(found: re.Match[str]) -> str:
        option = f"--{found[1].replace('_', '-')}"
        return option if option in options else found[0]

    return re.sub(r"`(?:\w+\.)?(\w+)`", name, message)


def _fail(message: str, status: int) -> int:
    error = "\x1b[1;31merror:\x1b[0m" if is_terminal(sys.stderr) and not os.environ.get("NO_COLOR") else "error:"
    for line in message.splitlines() or [""]:
        print(error, _shortened(printable(line)), file=sys.stderr)
    return status


def _shortened(line: str) -> str:
    """Leave out the middle of a line that repeats a huge value; its ends say what is wrong and what to do."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 4 :]}"
