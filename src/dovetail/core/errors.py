"""The tree of errors of `dovetail_protocol.errors` by this package's own name: both ends raise the same classes."""

from dovetail_protocol.errors import (
    ConfigError,
    DataError,
    DovetailError,
    MissingExtraError,
    OutputError,
    ParameterError,
    StorageError,
    UnreachableError,
    UnsupportedError,
)

__all__ = [
    "ConfigError",
    "DataError",
    "DovetailError",
    "MissingExtraError",
    "OutputError",
    "ParameterError",
    "StorageError",
    "UnreachableError",
    "UnsupportedError",
]
