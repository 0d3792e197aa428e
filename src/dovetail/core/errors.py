"""The tree of errors of `dovetail_device.errors` under this package's own name: both ends raise the same classes."""

from dovetail_device.errors import (
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
