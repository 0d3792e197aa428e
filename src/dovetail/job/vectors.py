"""The mean of people's vectors, what each of them is promised, and how far off it may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dovetail.account.amplify import amplify
from dovetail.core.entropy import Entropy
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.special import Reals
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS, VectorRandomizer


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
        Of one report, no matter who looks at it.
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
        central=amplify(mechanism, n=len(rows), delta=delta, honest=honest),
        n=len(rows),
    )
