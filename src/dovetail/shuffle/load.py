"""Reading a saved shuffler whatever its kind."""

from pathlib import Path

from dovetail.core.errors import UnsupportedError
from dovetail.shuffle.fitting.fitted_shuffler import FittedShuffler, read_archive
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar_laplace import PlanarLaplace
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

_KINDS: dict[str, type[FittedShuffler]] = {
    kind.name: kind for kind in (Identity, Uniform, WithinGroups, Mallows, NoisySort, PlanarLaplace)
}


def load_shuffler(path: str | Path) -> FittedShuffler:
    """The shuffler that `FittedShuffler.save` wrote; `Mallows.load` and the like read files of their own kind."""
    header, arrays = read_archive(path)
    kind = _KINDS.get(str(header["shuffler"]))
    if kind is None:
        raise UnsupportedError(f"{path}: holds a shuffler of the unknown kind {header['shuffler']!r}.")
    return kind.from_archive(path, header, arrays)
