"""The private ledger of traces: a repeat replays its release, and another release of the same person composes.

It holds what was released anyway, when, and with which noise (all of it functions of public times), beside keyed
fingerprints of points and people, under a key that never leaves the folder. Losses of several releases do not
add: the ledger gives the noise of the earlier ones, and the joint loss is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from dovetail.core.display import mute
from dovetail.ledger.releases import EntryStore, Prints, ReleaseLedger, fingerprint, fingerprints
from dovetail.trace.kernels import Floats
from dovetail.trace.noise import TraceNoise, joint_noise
from dovetail.trace.plan import TracePlan
from dovetail.trace.trace import TangentPlane, Trace, coarse_cells

_ARRAYS = "release.npz"
MOST_STORED = 2000  # rows of a covariance that is kept

_NONE: Prints = np.empty(0, dtype=np.uint64)


@mute
@dataclass(frozen=True)
class TraceEntry:
    """One release: what it answered, what it cost by itself and what it promised; no locations but released ones.

    Parameters
    ----------
    number : int
    terms : str
        Keyed fingerprint of the request.
    mu : float
    n : int
        Points.
    step, radius : float, metres
    secrets : list of list of int
        Points of each secret, from 0.
    """

    number: int
    terms: str
    mu: float
    n: int
    step: float
    radius: float
    secrets: list[list[int]]
    schema_version: int = 1


@mute
@dataclass(frozen=True, eq=False)
class StoredRelease:
    """A release as the ledger holds it.

    Parameters
    ----------
    entry : TraceEntry
    times : float array (n,), seconds
    points : float array (n, d), metres: what was released
    noise : float array (n d, n d), square metres: its covariance, coordinates of a point side by side; of no rows for
        traces that are too long to be composed
    """

    entry: TraceEntry
    times: Floats
    points: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class Marks:
    """By what a trace is known again; keyed, sorted fingerprints.

    Parameters
    ----------
    prints : uint64 array
        Of its exact points in the plane, and of the person's name.
    cells : uint64 array
        Of its points to a second and a coarse cell.
    named : bool
        Whether a person is named.
    n : int
        Points.
    """

    prints: Prints
    cells: Prints
    named: bool
    n: int


def about_the_same(mine: Sequence[Marks], theirs: Sequence[Marks]) -> list[list[int]]:
    """For each of mine the numbers of those of theirs that are about the same person.

    A name or an exact point is enough. Otherwise half of the points of the shorter trace must lie in the same cells
    at the same seconds, and not both may name a person: two people in one car are two people.
    """
    holders: dict[int, list[int]] = {}
    for number, one in enumerate(theirs):
        for each in (*one.prints.tolist(), *one.cells.tolist()):
            holders.setdefault(each, []).append(number)
    found = []
    for one in mine:
        sure = {number for each in one.prints.tolist() for number in holders.get(each, ())}
        shared = Counter(number for each in one.cells.tolist() for number in holders.get(each, ()))
        alike = {
            number
            for number, count in shared.items()
            if 2 * count >= min(one.n, theirs[number].n) and not (one.named and theirs[number].named)
        }
        found.append(sorted(sure | alike))
    return found


def _sorted_prints(contents: Sequence[bytes], key: bytes) -> Prints:
    return np.unique(fingerprints(contents, key))


def unrecorded(plan: TracePlan, design: TraceNoise, times: Floats) -> StoredRelease:
    """Entry of a release before its points are drawn; number 0."""
    secrets = [list(one.places) for one in design.guarantee.secrets]
    entry = TraceEntry(0, "", design.guarantee.mu, len(times), plan.grid, plan.radius, secrets)
    d = plan.prior.dimensions
    noise = joint_noise(design) if d * len(times) <= MOST_STORED else np.empty((0, 0))
    return StoredRelease(entry, times, np.empty((0, d)), noise)


@dataclass(frozen=True)
class TraceLedger:
    """A folder of releases, readable by its owner only.

    Parameters
    ----------
    folder : Path
    """

    folder: Path

    @classmethod
    def default(cls) -> TraceLedger:
        """A room of the release ledger: DOVETAIL_LEDGER, or the user's application folder."""
        return cls(ReleaseLedger.default().folder / "traces")

    @property
    def _store(self) -> EntryStore:
        return EntryStore(self.folder, "ledger of traces")

    def earlier(self, trace: Trace, person: str | None, *, plane: TangentPlane | None = None) -> list[StoredRelease]:
        """Every release that is about the same person, by name or by its points."""
        return self.earlier_of_all([trace], [person], plane=plane)[0]

    def earlier_of_all(
        self, traces: Sequence[Trace], people: Sequence[str | None], *, plane: TangentPlane | None = None
    ) -> list[list[StoredRelease]]:
        """The same for many traces; the ledger is read once."""
        entries = self._entries()
        mine = [self._marks(*each, plane, fresh=not entries) for each in zip(traces, people, strict=True)]
        wanted = np.unique(np.concatenate([part for one in mine for part in (one.prints, one.cells)] or [_NONE]))
        stored = [self._stored_marks(entry, wanted) for entry in entries]
        read: dict[int, StoredRelease] = {}
        found = []
        for numbers in about_the_same(mine, stored):
            read |= {number: self._read(entries[number]) for number in numbers if number not in read}
            found.append([read[number] for number in numbers])
        return found

    def same(self, found: list[StoredRelease], trace: Trace, terms: str) -> StoredRelease | None:
        """The release that answers exactly this request."""
        wanted = self.print_of_terms(trace, terms)
        return next((one for one in reversed(found) if one.entry.terms == wanted), None)

    def linked(
        self, traces: Sequence[Trace], people: Sequence[str | None], *, plane: TangentPlane | None = None
    ) -> list[list[int]]:
        """For each trace the others, in order, that are about the same person, by name or by their points."""
        mine = [self._marks(*each, plane, fresh=False) for each in zip(traces, people, strict=True)]
        return [sorted(set(others) - {number}) for number, others in enumerate(about_the_same(mine, mine))]

    def record(
        self, trace: Trace, person: str | None, plan: TracePlan, design: TraceNoise, points: Floats
    ) -> TraceEntry:
        """Keep a release before anybody sees it; the entry."""
        entries, made = self._entries(), unrecorded(plan, design, trace.times)
        marks = self._marks(trace, person, plan.prior.plane, fresh=not entries)
        number = max((entry.number for entry in entries), default=0) + 1
        entry = replace(made.entry, number=number, terms=self.print_of_terms(trace, plan.terms()))

        def fill(scratch: Path) -> None:
            np.savez(
                scratch / _ARRAYS, prints=marks.prints, cells=marks.cells, named=marks.named, times=trace.times,
                points=points, noise=made.noise,
            )  # fmt: skip

        self._store.put(number, asdict(entry), fill)
        return entry

    def print_of_terms(self, trace: Trace, terms: str) -> str:
        """Keyed fingerprint of a request: the trace and everything that shapes its release."""
        content = np.column_stack([trace.times, trace.points]).tobytes() + terms.encode()
        return fingerprint(content, self._store.key(fresh=False))

    def _marks(self, trace: Trace, person: str | None, plane: TangentPlane | None, *, fresh: bool) -> Marks:
        key = self._store.key(fresh=fresh)
        contents = [row.tobytes() for row in np.column_stack([trace.times, trace.points])]
        contents += [] if person is None else [b"person " + person.encode()]
        cells = [b"cell " + row.tobytes() for row in coarse_cells(trace, plane)]
        return Marks(_sorted_prints(contents, key), _sorted_prints(cells, key), person is not None, trace.n)

    def _stored_marks(self, entry: TraceEntry, wanted: Prints) -> Marks:
        """Marks of a release, no more than what is wanted; releases of earlier versions have no cells."""

        def read(place: Path) -> Marks:
            with np.load(place / _ARRAYS, allow_pickle=False) as arrays:
                named = bool(arrays["named"]) if "named" in arrays else True
                cells = np.intersect1d(wanted, arrays["cells"]) if "cells" in arrays else _NONE
                return Marks(np.intersect1d(wanted, arrays["prints"]), cells, named, entry.n)

        return self._store.read(entry.number, read)

    def _entries(self) -> list[TraceEntry]:
        return self._store.records(lambda record: TraceEntry(**record))

    def _read(self, entry: TraceEntry) -> StoredRelease:
        def read(place: Path) -> StoredRelease:
            with np.load(place / _ARRAYS, allow_pickle=False) as arrays:
                times, points, noise = (np.asarray(arrays[one], np.float64) for one in ("times", "points", "noise"))
            if len(times) != entry.n or len(points) != entry.n:
                raise ValueError(f"{len(points)} points instead of {entry.n} in release {entry.number}")
            return StoredRelease(entry, times, points, noise)

        return self._store.read(entry.number, read)
