"""What a report on a mean of vectors says: errors of the whole vector and of one coordinate, clipping, promises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from dovetail.core.guarantee import CentralDP
from dovetail.core.numeric.special import Reals
from dovetail.pipeline.evaluate.estimates import LEVEL
from dovetail.pipeline.evaluate.guarantees import order_evaluation
from dovetail.randomize.vectors.shared.vector_randomizer import VectorRandomizer, VectorReports, relative_lengths
from dovetail.report.document import Estimates, Evaluation, IntervalEstimates, Missing
from dovetail.report.number_format import percent, upward
from dovetail.shuffle.uniform import Uniform

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
    lenses = ("attacks", "learnability", "copying", "label_inference")
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
