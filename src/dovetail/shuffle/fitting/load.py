"""Reading a saved shuffler whatever its kind."""

from pathlib import Path

from dovetail.core.errors import UnsupportedError
from dovetail.core.registries import SHUFFLERS
from dovetail.shuffle.fitting.fitted_shuffler import FittedShuffler, read_archive


def load_shuffler(path: str | Path) -> FittedShuffler:
    """The shuffler that `FittedShuffler.save` wrote; `Mallows.load` and the like read files of their own kind."""
    header, arrays = read_archive(path)
    name = str(header["shuffler"])
    if name in SHUFFLERS:
        kind = SHUFFLERS[name]
        if issubclass(kind, FittedShuffler):
            return kind.from_archive(path, header, arrays)
    raise UnsupportedError(f"{path}: holds a shuffler of the unknown kind {name!r}.")
