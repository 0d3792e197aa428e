"""Optional dependencies: imported where they are used, with the pip line when they are missing."""

from importlib import import_module
from types import ModuleType

from dovetail.core.errors import MissingExtraError


def require(module: str, *, extra: str) -> ModuleType:
    """Import `module`, which the optional dependency set `extra` brings.

    Raises
    ------
    MissingExtraError
        With the pip line that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"This needs {package}, which is not installed: pip install 'dovetail-privacy[{extra}]'"
        ) from error
