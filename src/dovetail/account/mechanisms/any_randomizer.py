r"""Any randomizer with a pure promise epsilon0, of which nothing else is known: five kinds of reports are the worst.

One output y counts by (R_a(y), R_c(y), R_t(y)), whose entries differ by factors of at most p. What it adds to the
exposure is convex and homogeneous in them, so it is largest where y is split into the six extreme rays, those with
entries 1 and p. Weights of the rays that make R_a, R_c and R_t laws are mixtures of five vertices.
"""

from __future__ import annotations

import math

import numpy as np

from dovetail.account.privacy_blanket import LARGEST, BlanketLaw, DeclaredLaw, Exposure, Type
from dovetail.core.errors import UnsupportedError


def any_exposures(epsilon0: float) -> list[Exposure]:
    r"""One pair of values, others of each vertex; mu = (R_a + R_c) / (2p), of mass 1/p, whatever they are.

    .. math:: \frac{(p,1,1) + (1,p,p)}{p+1}, \quad \frac{(p,1,p) + (1,p,1)}{p+1}, \quad
              \frac{(p,1,1) + (1,p,1) + (1,1,p)}{p+2}, \quad
              \frac{(p,1,p) + (1,p,p) + (p,p,1)}{2p+1}, \quad \frac{(1,1,p) + (p,p,1)}{p+1}

    The first one comes first: no law of dH/dmu is larger than its own in convex order.

    Examples
    --------
    >>> [one] = any_exposures(1.0)
    >>> one.spreads.round(4).tolist()  # binary, three-way response, ..; stronger clones have 1.588
    [1.0862, 1.0862, 1.2515, 0.3375, 0.0]

    Source
    ------
    docs/theory/hidden-among-everybody.md.
    """
    if epsilon0 > LARGEST:
        raise UnsupportedError(
            f"Needs epsilon0 at most {LARGEST:g}, got {epsilon0:g}: no crowd hides more; the local promise holds."
        )
    q = math.exp(-epsilon0)  # rays are divided by p: none of them leaves the doubles
    first, second, neither = (1.0, q, q), (q, 1.0, q), (q, q, 1.0)
    not_first, not_second, both = (q, 1.0, 1.0), (1.0, q, 1.0), (1.0, 1.0, q)
    vertices = ([first, not_first], [not_second, second], [first, second, neither],
                [not_second, not_first, both], [neither, both])  # fmt: skip
    return [Exposure.of([_type(rays, q) for rays in vertices])]


def _type(rays: list[tuple[float, float, float]], q: float) -> Type:
    columns = np.array(rays)
    a, c, t = (columns / columns.sum(axis=0)).T
    return 0.5 * q * (a + c), a, c, t


def worst_dataset_for(epsilon0: float) -> BlanketLaw:
    """The most exposed known collection of any mechanism with this promise: binary or three-way response.

    Examples
    --------
    >>> round(worst_dataset_for(4.0).epsilon0, 9)
    4.0
    """
    tiny = math.exp(-epsilon0)
    binary = BlanketLaw([math.exp(epsilon0), tiny], [1.0, 1.0], [tiny / (1.0 + tiny), 1.0 / (1.0 + tiny)])
    p, b = math.exp(epsilon0), tiny / (1.0 + 2.0 * tiny)
    third = BlanketLaw([p, 1.0, tiny], [1.0, p, tiny], [b, b, 1.0 / (1.0 + 2.0 * tiny)])
    return max(binary, third, key=lambda law: law.spread)


LAW = DeclaredLaw(float, "any randomizer", dataset=worst_dataset_for, exposures=any_exposures)
