"""Reading a saved shuffler whatever its kind."""

from pathlib import Path

from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import SHUFFLERS
from dovetail.shuffle.fitting.fitted_shuffler import FittedShuffler, read_archive


def load_shuffler(path: str | Path) -> FittedShuffler:
    """The shuffler that `FittedShuffler.save` wrote; `Mallows.load` and the like read files of their own kind.

    Raises
    ------
    DataError, UnsupportedError
        For files that are no saved shuffler, are damaged, or hold a kind that is not known here.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from dovetail.shuffle.uniform import Uniform
    >>> with TemporaryDirectory() as folder:
    ...     Uniform(5).save(Path(folder) / "fitted.npz")
    ...     load_shuffler(Path(folder) / "fitted.npz")
    Uniform(n=5)
    """
    header, arrays = read_archive(path)
    name = str(header["shuffler"])
    if name in SHUFFLERS:
        kind = SHUFFLERS[name]
        if issubclass(kind, FittedShuffler):
            return kind.from_archive(path, header, arrays)
    raise UnsupportedError(f"{path}: holds a shuffler of the unknown kind {name!r}.")
