"""Fitted shufflers as files: one .npz with a JSON header, of public data only."""

from __future__ import annotations

import json
import math
import zipfile
from abc import abstractmethod
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, final, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.errors import DataError, StorageError, UnsupportedError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import SHUFFLERS, Reports, Shuffler
from dovetail.shuffle.fitting.components import FitProvenance, PartitionedOrder
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.ranges import Places, Ranges, first_equal_rows
from dovetail.shuffle.fitting.sensitivity import published_width_bound
from dovetail.shuffle.sampling.lehmer_code import Thetas

FORMAT = "dovetail shuffler"
VERSION = 2  # 1 had other names of fields

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]


class FittedShuffler(Shuffler):
    """A shuffler that can be saved and loaded: a frozen dataclass of numbers, arrays and further such dataclasses.

    Laws: what is loaded draws from the same distribution and gives the same guarantee as what was saved; loading
    builds the object anew, so the guarantee is checked again from the groups in the file.
    """

    @final
    def save(self, path: str | Path) -> None:
        """Write groups, reference order, noise and provenance to a .npz file; no report, no randomness.

        The file is public, as everything that shufflers are fitted to must be.
        """
        header: Header = {"format": FORMAT, "version": VERSION, "shuffler": self.name}
        arrays: Arrays = {}
        _pack(self, "", header, arrays)
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        try:
            with Path(path).open("wb") as file:
                np.savez(file, header=text, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}.") from error

    @final
    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The shuffler that `save` wrote, for example `Mallows.load(path)`; `load_shuffler` reads every kind."""
        header, arrays = read_archive(path)
        if header["shuffler"] != cls.name:
            raise UnsupportedError(f"{path}: holds a shuffler of the kind {header['shuffler']!r}, not {cls.name!r}.")
        return cls.from_archive(path, header, arrays)

    @final
    @classmethod
    def from_archive(cls, path: str | Path, header: Header, arrays: Arrays) -> Self:
        """The shuffler in the parts of a file; `path` is for errors."""
        try:
            shuffler: Self = _unpack(cls, "", header, arrays)
            return shuffler
        except (KeyError, TypeError, IndexError, OverflowError) as error:
            raise DataError(f"{path}: a damaged shuffler; {error!r}.") from error
        except DataError as error:
            raise DataError(f"{path}: {error}") from error


class LineShuffler(FittedShuffler):
    """A shuffler that is fitted to groups along a reference order s, component by component.

    Reports are set up in the order s, kappa disturbs the line, and everybody goes back: sigma(s(k)) = s(kappa(k)).
    """

    drawn_by_labels: ClassVar[bool] = True
    source: ClassVar[str]
    groups: Groups
    alpha: float
    line: PartitionedOrder
    provenance: FitProvenance

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of people."""
        return self.groups.n

    @property
    @final
    def order(self) -> Permutation:
        """The reference order (n,): order[k] is the person at place k."""
        return self.line.order

    @property
    @final
    def guarantee(self) -> OrderPrivacy:
        return self.provenance.guarantee(self.alpha, self.groups, self.source)

    @abstractmethod
    def _draw(self, rng: Entropy) -> Permutation:
        """kappa (n,) in places of the line."""

    @final
    def _permutation(self, rng: Entropy) -> Permutation:
        result = np.empty(self.n, dtype=np.int64)
        result[self.order] = self.order[self._draw(rng)]
        return result


def read_archive(path: str | Path) -> tuple[Header, Arrays]:
    """Header, with format, version and kind checked, and arrays of a saved shuffler."""
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop("header")))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or 'not a saved shuffler'}.") from error
    except (ValueError, KeyError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a saved shuffler.") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT or "shuffler" not in header:
        raise DataError(f"{path}: not a saved shuffler.")
    version = header.get("version")
    if version != VERSION:
        raise UnsupportedError(
            f"{path}: written in version {version!r} of the format, this is version {VERSION}; fit and save it again."
        )
    return header, arrays


def _pack(value: Any, prefix: str, header: Header, arrays: Arrays) -> None:
    """The constructor's fields of a value: arrays to `arrays`, plain ones to `header`, names joined by dots."""
    for field in fields(value):
        name, item = prefix + field.name, getattr(value, field.name)
        if not field.init:
            continue
        if isinstance(item, np.ndarray):
            arrays[name] = item
        elif is_dataclass(item):
            _pack(item, f"{name}.", header, arrays)
        else:
            header[name] = item


def _unpack(kind: type[Any], prefix: str, header: Header, arrays: Arrays) -> Any:
    """The value that `_pack` took apart; the type of a field says what it is made of."""
    given: dict[str, Any] = {}
    types = get_type_hints(kind)
    for field in fields(kind):
        name = prefix + field.name
        if not field.init:
            continue
        if is_dataclass(types[field.name]):
            given[field.name] = _unpack(types[field.name], f"{name}.", header, arrays)
        elif kind is FitProvenance and name not in header:
            continue  # words about the fit that older files lack; they are no part of the law
        else:
            item = arrays[name] if name in arrays else header[name]
            given[field.name] = tuple(item) if isinstance(item, list) else item  # JSON knows no tuples
    return kind(**given)


# The summary of a shuffler that is fitted to groups along a reference order.


_LISTED = 8


def smallest_theta(thetas: Thetas, line: PartitionedOrder) -> float:
    """The smallest theta above 0 of a component; 0 when all are uniform, infinite when nobody moves."""
    moving = thetas[line.sizes > 1]
    return float(moving[moving > 0.0].min(initial=math.inf)) if (moving > 0.0).any() or not moving.size else 0.0


def summarize(
    shuffler: Shuffler,
    line: PartitionedOrder,
    shift: Thetas,
    *,
    thetas: Thetas,
    provenance: FitProvenance,
    width: int,
    sensitivity: int,
) -> dict[str, Any]:
    """Summary of a shuffler along a line whose components move people by `shift` (components,) on average."""
    groups: Groups = shuffler.groups  # type: ignore[attr-defined]
    sizes, alpha, theta_n = line.sizes, shuffler.guarantee.alpha, smallest_theta_n(thetas, line)
    moved = np.minimum(shift, (sizes - 1 / sizes) / 3)
    found = {
        "shuffler": shuffler.name,
        "n": line.n,
        "alpha": alpha,
        "width": width,
        "sensitivity": sensitivity,
        "paper_sensitivity": published_width_bound(width),
        "theta": smallest_theta(thetas, line),
        "theta_n": theta_n,
        "thetas": [float(theta) for theta in thetas[sizes > 1][:_LISTED]],
        "components": int(groups.components().max(initial=-1)) + 1,
        "largest_group": groups.largest,
        "groups": len(groups),
        "ungrouped": int((~groups.grouped).sum()),
        "mean_displacement": float((moved * sizes).sum() / line.n),
        "near_uniform": bool(line.has_several_atoms.any()) and theta_n < 1.0,
    }
    if len(groups) and math.isfinite(alpha):
        kept = retained_share(groups, line, shift)
        found |= {"retained_mean": float(kept.mean()), "retained_min": float(kept.min())}
    if found["near_uniform"]:
        found["warning"] = (
            f"theta * n = {theta_n:.2g} is below 1: the shuffle is nearly uniform and little can be learned "
            "about places. Use smaller groups, a larger alpha, or Uniform, which amplifies differential privacy."
        )
    return found | provenance.summary()


def smallest_theta_n(thetas: Thetas, line: PartitionedOrder) -> float:
    """theta n of the component with the smallest one, components of a single atom apart.

    Nothing but a uniform shuffle is possible inside an atom.
    """
    theta, mixed = smallest_theta(thetas, line), line.has_several_atoms
    if math.isinf(theta) or not mixed.any():
        return theta * line.n
    return float((thetas * line.sizes)[mixed].min())


def retained_share(groups: Groups, line: PartitionedOrder, shift: Thetas) -> NDArray[np.float64]:
    r"""Predicted share (groups,) of a group of l people that keeps a report of the group.

    .. math:: \max\bigl(1 - d / l, \; l / n_c\bigr)

    with d the mean displacement (2 log 2 / theta for Mallows), for a group that stands together.
    """
    part, members = line.component_of(groups), groups.sizes
    with np.errstate(invalid="ignore"):
        return np.asarray(np.maximum(1.0 - shift[part] / members, members / line.sizes[part]))


# Batches in which some people are missing: the same shuffler for those who are there.


Present = NDArray[np.bool_]  # (n,)


def check_present(present: ArrayLike, n: int) -> Present:
    """`present` as an array of truth values (n,), at least one of them true."""
    given = np.asarray(present)
    if given.shape != (n,) or given.dtype != np.bool_:
        raise DataError(f"`present` must be {n:,} truth values, got shape {given.shape} of {given.dtype}.")
    if not given.any():
        raise DataError("`present` must hold at least one person, got nobody.")
    return given


def restrict_groups(
    groups: Groups, present: Present, provenance: FitProvenance
) -> tuple[Groups, Places, FitProvenance]:
    """The groups of the people that are present, renumbered in their order.

    Also which of the old groups they are, and the provenance that says how many lost members.
    """
    rows, old = _restrict(groups.rows, present), groups.rows.sizes
    keep, shrunk = rows.sizes >= 2, rows.sizes < old
    owners = _restrict(groups.owners, present)
    kept, owned = rows.take(keep), owners.take(keep)
    kept = kept if groups.contiguous else kept.materialize()
    first = np.flatnonzero(_firsts(kept, groups.contiguous))
    restricted = replace(
        groups,
        n=int(present.sum()),
        rows=kept.take(first) if groups.contiguous else kept.take(first).materialize(),
        owners=owned.take(first).materialize(),
        dropped=groups.dropped + int((~keep).sum()),
    )
    missing = replace(
        provenance,
        fitted=groups.n if provenance.fitted is None else provenance.fitted,
        shrunken=provenance.shrunken + int(shrunk.sum()),
        dissolved=provenance.dissolved + int((~keep).sum()),
    )
    return restricted, np.flatnonzero(keep)[first], missing


def _restrict(rows: Ranges, present: Present) -> Ranges:
    """Rows without the people that are missing; people are renumbered."""
    here = present[rows.people]
    before = np.concatenate(([0], np.cumsum(here)))
    number = (np.cumsum(present) - 1).astype(np.int32)
    return Ranges(number[rows.people[here]], before[rows.starts], before[rows.stops])


def _firsts(rows: Ranges, contiguous: bool) -> NDArray[np.bool_]:
    """Mark the rows that equal no earlier one."""
    if contiguous:
        pairs = np.column_stack((rows.starts, rows.stops))
        first = np.zeros(len(rows), dtype=np.bool_)
        first[np.unique(pairs, axis=0, return_index=True)[1]] = True
        return first
    return np.asarray(first_equal_rows(rows) == np.arange(len(rows)))


# Reports that come in any order: places belong to the public roster, not to the order of arrival.


def sort_to_roster(devices: ArrayLike, reports: ArrayLike, *, n: int) -> tuple[Present, Reports]:
    """Mark who is present (n,), and sort their reports by the roster, so that arrival leaves no trace.

    Parameters
    ----------
    devices : int array (m,)
        Roster number 0..n-1 of the sender of each report, each at most once.
    reports : array (m, ..)

    Examples
    --------
    >>> present, batch = sort_to_roster([2, 0], [7.5, 3.0], n=3)
    >>> present.tolist(), batch.tolist()
    ([True, False, True], [3.0, 7.5])
    """
    who, batch = np.asarray(devices), np.asarray(reports)
    if who.shape == (0,):
        who = who.astype(np.int64)  # an empty list has no type
    if who.ndim != 1 or who.dtype.kind not in "iu" or batch.shape[:1] != who.shape:
        raise DataError(
            f"`devices` must be one whole number for each report, got shape {who.shape} of {who.dtype} "
            f"for reports of shape {batch.shape}."
        )
    if who.size and (who.min() < 0 or who.max() >= n):
        bad = np.flatnonzero((who < 0) | (who >= n))
        raise DataError(f"`devices` must be 0..{n - 1}; {bad.size:,} are not, the first is {who[bad[0]]}.")
    seats = np.bincount(who, minlength=n)
    if (seats > 1).any():
        raise DataError(f"`devices` must report once a round; {int((seats > 1).sum()):,} report more than once.")
    return seats.astype(np.bool_), batch[np.argsort(who)]


# Reading a saved shuffler whatever its kind.


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
