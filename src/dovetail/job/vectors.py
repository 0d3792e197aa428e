"""A run on a column of arrays: the mean of shortened vectors, and the privacy report."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy.special import ndtri

from dovetail.account.amplify import amplify
from dovetail.account.mechanisms.gaussian import gaussian_channel
from dovetail.account.questions import ChosenWord, SampledBlock
from dovetail.core.channel import DenseChannel
from dovetail.core.checks import nearest
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, system_entropy
from dovetail.core.errors import ConfigError, DataError, DovetailError, UnsupportedError
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.progress import Progress
from dovetail.core.special import Reals
from dovetail.job.config import RunConfig, VectorSection
from dovetail.job.evaluate import LEVEL, order_evaluation
from dovetail.job.rehearse import ReleasedTable, report_of
from dovetail.ledger.releases import ReleaseLedger, ReleaseRequest, everybody
from dovetail.randomize.vectors.shared.vector_randomizer import (
    VECTOR_RANDOMIZERS,
    GaussianSteps,
    HeldBlock,
    HeldWord,
    VectorRandomizer,
    VectorReports,
    relative_lengths,
)
from dovetail.report.document import Estimates, Evaluation, IntervalEstimates, Missing, PrivacyReport
from dovetail.report.number_format import percent, upward
from dovetail.shuffle.uniform import Uniform
from dovetail.table.check import TableCheck
from dovetail.table.columns import Declared, Problem, Status, column_called
from dovetail.table.data_section import DataSection
from dovetail.table.reader import as_frame, as_text, read_table, refuse_duplicates, refuse_missing, rows_of
from dovetail.table.released import report_columns

# From a table to people's vectors: a column of arrays in Parquet or a data frame, or arrays in .npy and .npz.


NUMPY = (".npy", ".npz")


@mute
@dataclass(frozen=True, eq=False)
class People:
    """Vectors (n, d) and names (n,), where there are some, in a random order that is not that of the table."""

    vectors: Reals
    names: list[str]

    @property
    def identity(self) -> bytes:
        """What tells these people and vectors from others, whatever their order."""
        names = self.names or [""] * len(self.vectors)
        rows = np.ascontiguousarray(self.vectors + 0.0)  # no zero has a sign
        prints = (sha256(name.encode() + b"\0" + row.tobytes()) for name, row in zip(names, rows, strict=True))
        return b"".join(sorted(one.digest() for one in prints))


def read_vectors(data: DataSection, dimension: int, rng: Entropy, *, table: Any = None) -> People:
    """Read and check the column of arrays; then permute the rows with `rng`.

    Raises
    ------
    DataError
        In one line, for a table without such a column, and for arrays that are missing, of another length, or that
        hold what is no finite number: counted, with the first places.
    """
    given, names = _given(data, table)
    vectors = _rectangle(given, data.private, dimension)
    if not len(vectors):
        raise DataError("the table has no rows.")
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if broken.size:
        raise DataError(
            f"{_called(data.private)}: {broken.size:,} of {len(vectors):,} arrays hold a missing, infinite or NaN "
            f"number (first at rows {rows_of(pl.Series(broken))}); leave these people out or correct the table."
        )
    if names is not None:
        if len(names) != len(vectors):
            raise DataError(f"person {data.person!r} names {len(names):,} people for {len(vectors):,} arrays.")
        try:
            refuse_duplicates(names)
        except DataError as error:  # which row is kept cannot be set here
            raise DataError(f"{str(error).partition(', or set')[0].rstrip('.')}.") from None
    order = rng.permutation(len(vectors))
    return People(vectors[order], [] if names is None else as_text(names[order]).to_list())


def _given(data: DataSection, table: Any) -> tuple[Any, pl.Series | None]:
    """The private column as it is, and that of names."""
    suffix = "" if data.path is None else Path(data.path).suffix.lower()
    if isinstance(table, np.ndarray) or (table is None and suffix in NUMPY):
        return _from_numpy(data, table)
    if table is None and data.path is not None and suffix not in (".parquet", ".pq") and Path(data.path).is_file():
        raise DataError(f"{data.path}: [vector] needs a column of arrays: save it as Parquet, .npy or .npz.")
    frame = read_table(data.path, written=data) if table is None else as_frame(table)
    for name in (data.private, data.person):
        if name is not None and name not in frame.columns:
            raise DataError(f"the table has no column {name!r}{nearest(name, frame.columns)}.")
    return frame[data.private], None if data.person is None else frame[data.person]


def _from_numpy(data: DataSection, table: Any) -> tuple[Any, pl.Series | None]:
    found = table
    if table is None:
        try:
            found = np.load(str(data.path), allow_pickle=False)
            if not isinstance(found, np.ndarray):
                with found:
                    found = {name: found[name] for name in found.files}
        except FileNotFoundError:
            raise DataError(f"{data.path}: no such file.") from None
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            raise DataError(f"{data.path}: is not readable as arrays of numbers, as numpy writes them.") from None
    if isinstance(found, np.ndarray):
        if data.person is not None:
            raise DataError(f"an array has no column {data.person!r}: leave out `person`, or use .npz or Parquet.")
        return found, None
    for name in (data.private, data.person):
        if name is not None and name not in found:
            raise DataError(f"{data.path}: has no array {name!r}{nearest(name, list(found))}.")
    return found[data.private], None if data.person is None else pl.Series(data.person, found[data.person])


def _rectangle(given: Any, name: str, dimension: int) -> Reals:
    """Vectors (n, dimension) as floats; numbers that are missing become NaN."""
    if isinstance(given, np.ndarray):
        return _of_array(given, name, dimension)
    kind = given.dtype
    inner = getattr(kind, "inner", None)
    if inner is None or not inner.is_numeric():
        plain = "; of plain numbers declare `lower` and `upper` in [data] instead" if kind.is_numeric() else ""
        raise DataError(
            f"{_called(name)} has type {kind}: [vector] needs arrays of numbers, such as List(Float64){plain}."
        )
    refuse_missing(given, _called(name))
    lists = given.arr.to_list() if isinstance(kind, pl.Array) else given
    lengths = lists.list.len().to_numpy()
    _refuse_lengths(lengths, name, dimension)
    flat = lists.explode().cast(pl.Float64).to_numpy()
    return np.asarray(flat, dtype=np.float64).reshape(len(lengths), dimension)


def _of_array(given: np.ndarray, name: str, dimension: int) -> Reals:
    if given.dtype.kind not in "iuf" or given.ndim != 2:
        raise DataError(
            f"{_called(name)} must be an array of numbers, a row for each person; got shape {given.shape} of "
            f"{given.dtype}."
        )
    _refuse_lengths(np.full(len(given), given.shape[1]), name, dimension)
    return given.astype(np.float64)


def _refuse_lengths(lengths: np.ndarray, name: str, dimension: int) -> None:
    wrong = np.flatnonzero(lengths != dimension)
    if not wrong.size:
        return
    seen = np.unique(lengths)
    if seen.size == 1:
        raise DataError(f"{_called(name)}: arrays have {seen[0]:,} numbers, and `dimension` is {dimension:,}.")
    raise DataError(
        f"{_called(name)}: {wrong.size:,} of {len(lengths):,} arrays do not have {dimension:,} numbers (first at "
        f"rows {rows_of(pl.Series(wrong))}; lengths from {seen[0]:,} to {seen[-1]:,}); all must be equally long."
    )


def _called(name: str) -> str:
    return f"private column {name!r}"


# What a report on a mean of vectors says: errors of the whole vector and of one coordinate, clipping, promises.


IS_VECTOR = Missing("answers are vectors of numbers, of which no list of guesses can be made")
PIECE = 1 << 20  # coordinates that are looked at at once
NO_TRUTH = Missing("how many vectors were shortened, and how far off the mean is, would tell of private values")


@dataclass(frozen=True)
class VectorErrors:
    """Errors of the whole mean in Euclidean length, and of one coordinate; the truth of a rehearsal beside them.

    `error` and `coordinate_error` bound root mean squares of what randomizing brings in, `error95` its length with
    probability 95 %, `bias` the length of the bias. `off` is the length by which this rehearsal's estimate is off the
    mean of shortened vectors, `clipping` that by which shortening moved the mean.
    """

    error: float
    coordinate_error: float
    error95: float
    bias: float
    length: float
    off: float | Missing
    clipped: int | Missing
    clipping: float | Missing


@dataclass(frozen=True, eq=False)
class Truth:
    """What a rehearsal knows: the mean (d,) of shortened vectors, how many were, and how far that moved the mean."""

    mean: Reals
    clipped: int
    clipping: float

    @classmethod
    def of(cls, mechanism: VectorRandomizer, vectors: Reals) -> Truth:
        """In pieces: many long vectors fill the memory as they are."""
        n, count = len(vectors), max(1, PIECE // mechanism.d)
        mean, moved, clipped = np.zeros(mechanism.d), np.zeros(mechanism.d), 0
        for start in range(0, n, count):
            rows = vectors[start : start + count]
            held = mechanism.radius * mechanism.shortened(rows)
            mean += held.sum(axis=0) / n
            moved += ((held - rows) / n).sum(axis=0)
            clipped += int(np.count_nonzero(relative_lengths(rows, mechanism.radius) > 1.0))
        return cls(mean, clipped, float(np.linalg.norm(moved)))


@dataclass(frozen=True)
class VectorEstimates(Estimates):
    """Coordinates of a mean with their intervals, and what they are together."""

    vector: VectorErrors | None = None


def evaluation_of(
    mechanism: VectorRandomizer, reports: VectorReports, central: CentralDP | Missing, *, truth: Truth | None,
    provenance: str,
) -> Evaluation:  # fmt: skip
    """Every metric that applies to vectors."""
    n = len(reports)
    lenses = ("attacks", "learnability", "sections")
    unmeasured: dict[str, Any] = {} if truth is None else dict.fromkeys(lenses, IS_VECTOR)
    shuffler = Uniform(n)
    return Evaluation(
        shuffler=shuffler.name,
        local=mechanism.guarantee.drawn_from(provenance),
        central=central if isinstance(central, Missing) else central.drawn_from(provenance),
        order=order_evaluation(shuffler, provenance=provenance),
        leakage=IS_VECTOR,
        estimates=_estimates(mechanism, mechanism.estimate(reports), n, truth),
        **unmeasured,
    )


def _estimates(mechanism: VectorRandomizer, value: Reals, n: int, truth: Truth | None) -> VectorEstimates:
    noise = mechanism.coordinate_error(n)
    drawn = mechanism.radius * (1.0 / n) ** 0.5  # no coordinate of a shortened vector is further from 0
    z, reach = float(ndtri(0.5 + LEVEL / 2.0)), mechanism.bias
    half = z * noise + reach
    everybody = IntervalEstimates(
        labels=[f"coordinate {place}" for place in range(mechanism.d)],
        value=value.tolist(),
        standard_error=[noise] * mechanism.d,
        population_error=[float(np.hypot(noise, drawn))] * mechanism.d,
        interval=[(v - half, v + half) for v in value.tolist()],
        possible=value.tolist(),
        bias_bound=reach,
        n=n,
        truth=None if truth is None else truth.mean.tolist(),
    )
    return VectorEstimates(
        "mean", LEVEL, everybody, Missing("a mean of vectors is estimated for everybody"), withheld=[],
        estimator=Missing("a mean of vectors has one estimator"), better=Missing("not asked of vectors"),
        vector=_errors(mechanism, value, n, truth),
    )  # fmt: skip


def _errors(mechanism: VectorRandomizer, value: Reals, n: int, truth: Truth | None) -> VectorErrors:
    found = VectorErrors(
        error=mechanism.error(n),
        coordinate_error=mechanism.coordinate_error(n),
        error95=mechanism.error95(n),
        bias=mechanism.bias,
        length=float(np.linalg.norm(value)),
        off=NO_TRUTH,
        clipped=NO_TRUTH,
        clipping=NO_TRUTH,
    )
    if truth is None:
        return found
    off = float(np.linalg.norm(value - truth.mean))
    return replace(found, off=off, clipped=truth.clipped, clipping=truth.clipping)


def collection_of(mechanism: VectorRandomizer, private: str, *, n: int) -> dict[str, Any]:
    """Who and what."""
    return {
        "n": n,
        "private": private,
        "public": [],
        "kind": "vector",
        "dimension": mechanism.d,
        "clip": mechanism.radius,
    }


def randomizer_of(mechanism: VectorRandomizer) -> dict[str, Any]:
    """What each device does."""
    chosen = {one.name: getattr(mechanism, one.name) for one in mechanism.settings()}
    return {
        "name": mechanism.name, "label": mechanism.label, "epsilon": mechanism.guarantee.epsilon,
        "report_bits": mechanism.report_bits, "parameters": chosen,
    }  # fmt: skip


def assumptions_of(mechanism: VectorRandomizer, *, n: int, truth: Truth | None) -> tuple[str, ...]:
    """What the numbers rest on, and what shortening did."""
    lines = [
        "Each person sends exactly one report, about one vector.",
        f"The length to which vectors are shortened, {mechanism.radius:g}, was chosen before they were seen.",
        "What is estimated is the mean of shortened vectors: long ones pull less than they would.",
    ]
    if truth is None:
        return (
            *lines,
            "How many vectors were shortened is not told: that would be an exact count of private values.",
        )
    return (*lines, (
        f"In this rehearsal {truth.clipped:,} of {n:,} vectors ({percent(truth.clipped / n)}) were longer than that "
        f"and were shortened, which moved their mean by {truth.clipping:.3g} in Euclidean length."
    ))  # fmt: skip


def steps_of(mechanism: VectorRandomizer, central: CentralDP | Missing) -> tuple[dict[str, str], ...]:
    """What each step promises."""
    local = mechanism.guarantee
    slack = "" if local.delta == 0.0 else f", slack delta {upward(local.delta)}"
    return (
        {
            "stage": "randomize",
            "what": f"Each device shortens its vector to length {mechanism.radius:g} and reports {mechanism.label}.",
            "guarantee": f"{upward(local.epsilon)}-local differential privacy{slack}",
            "theorem": local.source,
        },
        {
            "stage": "shuffle",
            "what": "The batch is shuffled uniformly.",
            "guarantee": f"none beyond the local one: {central.reason}" if isinstance(central, Missing)
            else f"({upward(central.epsilon)}, {upward(central.delta)})-differential privacy",
            "theorem": "" if isinstance(central, Missing) else central.source,
        },
        {
            "stage": "estimate",
            "what": "Reports stand for vectors, whose mean is an unbiased estimate.",
            "guarantee": "post-processing: costs no privacy",
            "theorem": "docs/theory/several-questions.md",
        },
    )  # fmt: skip


# The mean of people's vectors, what each of them is promised, and how far off it may be.


@dataclass(frozen=True, eq=False)
class VectorMean:
    """An estimated mean.

    Parameters
    ----------
    value : float array (d,)
        Of vectors that are clipped to the radius.
    error : float
        Bound on the root mean squared Euclidean error that randomizing brings in.
    coordinate_error : float
        The same for one coordinate: of each, or on average over coordinates where the randomizer rotates publicly.
    bias : float
        Bound on the Euclidean norm of the bias.
    local : LocalDP
        Of one report.
    central : CentralDP
        Of all reports in uniformly random order.
    n : int
    """

    value: Reals
    error: float
    coordinate_error: float
    bias: float
    local: LocalDP
    central: CentralDP
    n: int


def estimate_vector_mean(
    vectors: ArrayLike,
    *,
    radius: float,
    epsilon: float,
    delta: float,
    honest: int | None = None,
    randomizer: str = "closest_direction",
    rng: Entropy | None = None,
    **settings: Any,
) -> VectorMean:
    """The mean of vectors, one person each, from locally private and shuffled reports.

    Each vector is shortened to Euclidean norm `radius`, as gradients are in federated learning, and reported by
    `ClosestDirection` unless another randomizer is named. The order of reports is not used: release them shuffled.

    Parameters
    ----------
    vectors : float array (n, d), d up to 65,536
    radius : float, above 0
        Public, chosen before vectors are seen.
    epsilon : float, above 0 and at most 700, nats
        Of one report, whoever looks at it.
    delta : float, at least 0, below 1
        Of the central guarantee.
    honest : int, optional
        People assumed honest; default all.
    randomizer : str
        closest_direction, with the smallest error, rotated_blocks or any other that is registered.
    settings
        Those of the randomizer, such as `seed` of rotated_blocks.

    Raises
    ------
    DataError
        For vectors that are no finite numbers (n, d).
    ParameterError
        For an unknown randomizer, and parameters outside their ranges.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> people = np.full((20_000, 8), [0.5, 0.0, 0.0, 0.0, -0.5, 0.0, 0.0, 0.5])
    >>> found = estimate_vector_mean(people, radius=1.0, epsilon=4.0, delta=1e-6, rng=simulation(1))
    >>> float(np.linalg.norm(found.value - people[0])) < 3 * found.error
    True
    >>> round(found.error, 3), round(found.central.epsilon, 2)
    (0.015, 0.18)

    Source
    ------
    docs/theory/several-questions.md.
    """
    rows = np.asarray(vectors)
    kind: Any = VECTOR_RANDOMIZERS[randomizer]
    mechanism: VectorRandomizer = kind(
        d=rows.shape[-1] if rows.ndim == 2 else 1, radius=radius, epsilon=epsilon, **settings
    )
    reports = mechanism.randomize(rows, rng)
    return VectorMean(
        value=mechanism.estimate(reports),
        error=mechanism.error(len(rows)),
        coordinate_error=mechanism.coordinate_error(len(rows)),
        bias=mechanism.bias,
        local=mechanism.guarantee,
        central=shuffled_vectors(mechanism, n=len(rows), delta=delta, honest=honest),
        n=len(rows),
    )


def shuffled_vectors(mechanism: VectorRandomizer, *, n: int, delta: float, honest: int | None = None) -> CentralDP:
    """What n reports of vectors promise after a uniform shuffle.

    Raises
    ------
    UnsupportedError
        Where neither shuffling nor the local promise gives anything at this delta.
    """
    subject, promise = accounted(mechanism), mechanism.guarantee
    if subject is None:
        return amplify(promise.epsilon, n=n, delta=delta, honest=honest, delta0=promise.delta)
    return amplify(subject, n=n, delta=delta, honest=honest)


def accounted(mechanism: VectorRandomizer) -> ChosenWord | SampledBlock | DenseChannel | None:
    """What has the privacy loss of a report and a law of its own; None where only its promise is known."""
    held = mechanism.sampled
    if isinstance(held, GaussianSteps):
        return gaussian_channel(steps=held.steps, sigma=held.sigma)
    if isinstance(held, HeldBlock):
        return SampledBlock((held.response,), blocks=held.blocks, energy=held.energy)
    if isinstance(held, HeldWord) and held.response.k == 2:
        return SampledBlock((held.response,), blocks=1 << 62)  # the one word that was drawn is sent, with a sign
    return None if held is None else ChosenWord((held.response,))


@mute
@dataclass(frozen=True)
class Drawn:
    """The shuffled reports; for a release also how they stand in the ledger."""

    reports: VectorReports
    released: ReleasedTable | None = None


def run_vectors(
    settings: RunConfig, rng: Entropy, ledger: ReleaseLedger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    """The report on a mean of vectors; a rehearsal beside the truth, a release recorded in the ledger."""
    asked = settings.vector
    assert asked is not None  # checked by the caller
    try:
        mechanism = asked.mechanism()
    except DovetailError as error:
        raise ConfigError(f"[vector] {error}") from None
    progress("read the table", 0, 1)
    people = read_vectors(settings.data, asked.dimension, rng, table=table)
    progress("read the table", 1, 1)
    n = len(people.vectors)
    if asked.honest is not None and asked.honest > n:
        raise ConfigError(f"`vector.honest` must be at most the {n:,} people of the table, got {asked.honest:,}.")
    if settings.mode == "release":
        drawn = _released(people, asked, mechanism, rng, ledger, new_release=new_release, progress=progress)
    else:
        drawn = Drawn(_shuffled(people, mechanism, rng, progress))
    return _report(settings, asked, mechanism, people, drawn, rng)


def _shuffled(people: People, mechanism: VectorRandomizer, rng: Entropy, progress: Progress) -> VectorReports:
    """Everybody's report, in a random order of its own."""
    n, count = len(people.vectors), max(1, PIECE // mechanism.d)
    pieces = []
    for start in range(0, n, count):
        progress("randomize vectors", start, n)
        pieces.append(mechanism.randomize(people.vectors[start : start + count], rng))
    progress("randomize vectors", n, n)
    return np.concatenate(pieces)[rng.permutation(n)]


def _released(
    people: People, asked: VectorSection, mechanism: VectorRandomizer, rng: Entropy, ledger: ReleaseLedger,
    *, new_release: bool, progress: Progress,
) -> Drawn:  # fmt: skip
    """The recorded release of these vectors under these terms, or a fresh one.

    The ledger adds epsilons alone: where the promise has a delta, what several releases promise is not bounded there.
    """
    promise = mechanism.guarantee
    request = ReleaseRequest(
        table=people.identity,
        terms=b"vector" + asked.model_dump_json(exclude={"delta", "honest"}).encode(),
        groups=everybody(people.names),
        people=people.names,
        epsilon=promise.epsilon if promise.delta == 0.0 else inf,
        alpha=0.0,
        n=len(people.vectors),
        shuffler=Uniform.name,
    )
    answer = ledger.answer(
        request, new_release=new_release, draw=lambda: to_frame(_shuffled(people, mechanism, rng, progress))
    )
    reports = from_frame(answer.reports)
    return Drawn(reports, ReleasedTable.of(answer, reports))


def to_frame(reports: VectorReports) -> pl.DataFrame:
    """Reports as columns: report, or report_0, report_1, .."""
    if reports.ndim == 1:
        return pl.DataFrame({"report": reports})
    return pl.DataFrame({f"report_{part}": reports[:, part] for part in range(reports.shape[1])})


def from_frame(table: pl.DataFrame) -> VectorReports:
    """The inverse of `to_frame`."""
    names = report_columns(table)
    return table["report"].to_numpy() if names == ["report"] else table.select(names).to_numpy()


def _central(mechanism: VectorRandomizer, asked: VectorSection, n: int) -> CentralDP | Missing:
    try:
        return shuffled_vectors(mechanism, n=n, delta=asked.delta, honest=asked.honest)
    except UnsupportedError as error:
        return Missing(str(error).rstrip("."))


def _report(
    settings: RunConfig, asked: VectorSection, mechanism: VectorRandomizer, people: People, drawn: Drawn, rng: Entropy
) -> PrivacyReport:
    n, released = len(people.vectors), drawn.released
    truth = None if released is not None else Truth.of(mechanism, people.vectors)
    central = _central(mechanism, asked, n)
    evaluation = evaluation_of(mechanism, drawn.reports, central, truth=truth, provenance=rng.provenance)
    config = settings.model_dump(mode="json", include={"schema_version", "mode", "title", "vector"})
    return report_of(
        settings.title or f"Mean of {settings.data.private}",
        evaluation if released is None else released.compose(evaluation),
        released,
        rng,
        collection=collection_of(mechanism, settings.data.private, n=n),
        randomizer=randomizer_of(mechanism),
        assumptions=assumptions_of(mechanism, n=n, truth=truth),
        steps=steps_of(mechanism, central),
        config=config,
        sanitized_description={"vector": config["vector"], "private": settings.data.private},
    )


# `dovetail check CONFIG.toml` of a mean of vectors: what `run` would refuse, and what shortening would do.


MANY = 0.5  # of all vectors: if more are shortened, the length is rather a wish than a bound


def check_vectors(config: RunConfig, asked: VectorSection, *, progress: Progress) -> TableCheck:
    """The arrays are read as `run` reads them."""
    data, problems, n = config.data, list[Problem](), 0
    where = column_called(data.private)
    progress("read the table", 0, 1)
    try:
        mechanism = asked.mechanism()
        vectors = read_vectors(data, asked.dimension, system_entropy()).vectors
        n = len(vectors)
        longer = int(np.count_nonzero(relative_lengths(vectors, asked.clip) > 1.0))
        told = f"{longer:,} of {n:,} vectors ({percent(longer / n)}) are longer than {asked.clip:g} and get shortened"
        remedy = "a larger `clip` shortens fewer and costs as much more noise; choose it without looking at a release"
        problems.append(Problem(told, where, remedy, Status.CONFIRM if longer > MANY * n else Status.NOTE))
        error = mechanism.error(n)
        if error > asked.clip:
            what = f"the noise, {error:.3g} in Euclidean length, is larger than every vector"
            problems.append(Problem(what, where, "allow a larger epsilon, or ask more people", Status.NOTE))
    except DovetailError as error:
        what, _, remedy = str(error).rstrip(".").partition("; ")
        problems.append(Problem(what, "run", remedy or "correct the table or the configuration", Status.STOPS))
    progress("read the table", 1, 1)
    declared = Declared(data.private, data.person, (), None, None, None, asked.epsilon)
    return TableCheck(Path(str(data.path)), n, {}, declared, tuple(problems), {}, (), None)
