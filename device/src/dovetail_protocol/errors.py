"""Every exception that Dovetail raises, drawn once.

::

    DovetailError
    ├── ParameterError    (ValueError)   a parameter outside its range
    ├── DataError         (ValueError)   values, reports or tables that do not fit what was declared
    ├── ConfigError       (ValueError)   a configuration file that says something we do not understand
    ├── UnsupportedError                 a question that no theorem at hand answers
    ├── OutputError       (OSError)      a place that results must not or cannot go to
    │   ├── StorageError                 writing failed on the way; nothing was left half done
    │   └── UnreachableError             a server that does not answer, or not as itself
    └── MissingExtraError (ImportError)  an optional dependency is not installed

A message has one form: what is wrong, where, and what to do. The command line prints it as one line.
"""

from traceback import walk_tb

OURS = {"dovetail", "dovetail_protocol", "dovetail_device"}


class DovetailError(Exception):
    """Base of all errors raised on purpose by this package."""

    def __str__(self) -> str:
        return " ".join(line.strip() for line in super().__str__().splitlines())  # an array shows a line for each row

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows: the message, and the caller's own lines without ours."""
        theirs = [
            f"line {number} of {frame.f_code.co_name}, {frame.f_code.co_filename}"
            for frame, number in walk_tb(self.__traceback__)
            if frame.f_globals.get("__name__", "").partition(".")[0] not in OURS | {"IPython"}
        ]
        return [f"{type(self).__name__}: {self}", *theirs]


class ParameterError(DovetailError, ValueError):
    """A parameter outside its range: `` `name` must be <range>, got <value>. ``"""


class DataError(DovetailError, ValueError):
    """Data that do not fit what was declared: counts the offenders and shows the first ones."""


class ConfigError(DovetailError, ValueError):
    """A configuration that cannot be read: names the key and the nearest known one, a line for each fault."""

    __str__ = ValueError.__str__


class UnsupportedError(DovetailError):
    """No theorem at hand answers: names the theorem, the condition that fails and what to do now."""


class OutputError(DovetailError, OSError):
    """A place that results must not or cannot go to; the message names it."""


class StorageError(OutputError):
    """Writing failed on the way, such as on a full disk; nothing was left half done."""


class UnreachableError(OutputError):
    """A server that does not answer, or has no certificate that is trusted here; the message names it."""


class MissingExtraError(DovetailError, ImportError):
    """An optional dependency is missing; the message is the pip line that brings it."""
