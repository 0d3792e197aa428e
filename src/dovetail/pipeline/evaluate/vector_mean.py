"""The mean of people's vectors, what each of them is promised, and how far off it may be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dovetail.account.amplify import amplify
from dovetail.account.composition.questions import SampledBlock
from dovetail.core.entropy import Entropy
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.numeric.special import Reals
from dovetail.randomize.vectors.rotated_blocks import RotatedBlocks


@dataclass(frozen=True, eq=False)
class VectorMean:
    """An estimated mean.

    Parameters
    ----------
    value : float array (d,)
        Of vectors that are clipped to the radius.
    error : float
        Bound on the root mean squared Euclidean error that randomizing brings in.
    bias : float
        Bound on the Euclidean norm of the bias, on average over the public signs.
    local : LocalDP
        Of one report.
    central : CentralDP
        Of all reports in uniformly random order.
    n : int
    """

    value: Reals
    error: float
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
    seed: int = 0,
    rng: Entropy | None = None,
) -> VectorMean:
    """The mean of vectors, one person each, from locally private and shuffled reports.

    Each vector is shortened to Euclidean norm `radius`, as gradients are in federated learning, and one block of its
    rotated signs is reported (`RotatedBlocks`). The order of reports is not used: release them shuffled.

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
    seed : int, at least 0
        Public, of the rotation.

    Raises
    ------
    DataError
        For vectors that are no finite numbers (n, d).

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> people = np.full((20_000, 8), [0.5, 0.0, 0.0, 0.0, -0.5, 0.0, 0.0, 0.5])
    >>> found = estimate_vector_mean(people, radius=1.0, epsilon=4.0, delta=1e-6, rng=simulation(1))
    >>> float(np.linalg.norm(found.value - people[0])) < 3 * found.error
    True
    >>> round(found.error, 3), round(found.central.epsilon, 2)
    (0.037, 0.25)

    Source
    ------
    docs/theory/several-questions.md.
    """
    rows = np.asarray(vectors)
    mechanism = RotatedBlocks(rows.shape[-1] if rows.ndim == 2 else 1, radius, epsilon, seed=seed)
    reports = mechanism.randomize(rows, rng)
    sampled = SampledBlock((mechanism.response,), blocks=mechanism.blocks)
    return VectorMean(
        value=mechanism.estimate(reports),
        error=mechanism.error(len(rows)),
        bias=mechanism.bias,
        local=mechanism.guarantee,
        central=amplify(sampled, n=len(rows), delta=delta, honest=honest),
        n=len(rows),
    )
