"""Refinement: does one channel leak at most what another does, against every adversary?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, hstack, kron, vstack

from dovetail.core.errors import UnsupportedError
from dovetail.leak.qif.arithmetic import Numbers
from dovetail.leak.qif.inputs import TOLERANCE, ChannelLike, check_size, same_secrets

MOST_UNKNOWNS = 300_000


@dataclass(frozen=True, eq=False)
class Refinement:
    """The answer, with its evidence.

    Parameters
    ----------
    holds : bool
    witness : float array (outputs, outputs of the other), row-stochastic, or None
        R with other = channel R: how to turn the one into the other. Only if it holds.
    residual : float
        Sum of the absolute entries of other - channel R for the best R found; computed from R itself.
    gain : float array (outputs of the other, secrets), entries from 0 to 2, or None
        An adversary to whom the other channel is worth more, at the uniform prior. Only if it does not hold.
    gap : float
        Her advantage, V_gain[other] - V_gain[channel] at the uniform prior, computed from `gain`; 0 if it holds.
    """

    holds: bool
    witness: Numbers | None
    residual: float
    gain: Numbers | None
    gap: float


def refined_by(channel: ChannelLike, other: ChannelLike) -> Refinement:
    r"""Is V_g[pi > channel] >= V_g[pi > other] for every prior and gain?

    .. math:: C \sqsubseteq D \iff D = CR \text{ for some row-stochastic } R

    .. math:: \min_R \lVert CR - D \rVert_1 = \max_{|G| \le 1} \Big( \sum_{x, z} G[z, x] D[x, z]
              - \sum_y \max_z \sum_x G[z, x] C[x, y] \Big)

    One linear program answers both ways: R is its solution, G its dual. Both are checked here and not taken on trust.
    `witness` is also the factorization of `other` through `channel`.

    Parameters
    ----------
    channel, other : Channel or array, with the same secrets
        Fractions are read as floats.

    Raises
    ------
    UnsupportedError
        Above 300,000 unknowns, and where the program cannot tell: the residual is above 1e-9, the gap not.

    Examples
    --------
    >>> bool(refined_by([[0.75, 0.25], [0.25, 0.75]], [[0.625, 0.375], [0.375, 0.625]]).holds)
    True
    >>> found = refined_by([[0.75, 0.25], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]])
    >>> found.holds, round(found.gap, 9)
    (False, 0.5)

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), Analyzing the Shuffle Model Through the Lens of Quantitative
    Information Flow, CSF, Theorem 4. The norm and its dual: linear programming duality.
    """
    first, second = (each.astype(np.float64) for each in same_secrets(channel, other))
    witness, gain = _solve(first, second)
    residual = float(np.abs(first @ witness - second).sum())
    advantage = float((np.einsum("zx,xz->", gain, second) - (gain @ first).max(axis=0).sum()) / len(first))
    if residual <= TOLERANCE:
        return Refinement(True, witness, residual, None, 0.0)
    if advantage > TOLERANCE / len(first):
        return Refinement(False, None, residual, gain, advantage)
    raise UnsupportedError(
        f"The linear program cannot tell: residual {residual:.1e}, gap {advantage:.1e}. Round the channels to fewer "
        "digits, or compare their vulnerabilities."
    )


def _solve(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    """The best R, and the dual G shifted to entries from 0 to 2."""
    (secrets, outputs), wanted = first.shape, second.shape[1]
    check_size(
        outputs * wanted + 2 * secrets * wanted,
        "The linear program",
        "reduce the channels first.",
        most=MOST_UNKNOWNS,
    )
    product = kron(coo_array(first), eye_array(wanted))  # R by rows -> C R by rows
    slack = eye_array(secrets * wanted)
    sums = kron(eye_array(outputs), coo_array(np.ones((1, wanted))))
    blank = coo_array((outputs, 2 * secrets * wanted))
    found = linprog(
        np.repeat([0.0, 1.0], [outputs * wanted, 2 * secrets * wanted]),
        A_eq=vstack([hstack([product, slack, -slack]), hstack([sums, blank])]).tocsr(),
        b_eq=np.concatenate([second.ravel(), np.ones(outputs)]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        raise UnsupportedError(f"The linear program was not solved: {found.message}")
    weights = np.maximum(found.x[: outputs * wanted].reshape(outputs, wanted), 0.0)  # checked by the residual
    dual = found.eqlin.marginals[: secrets * wanted].reshape(secrets, wanted).T
    return np.asarray(weights / weights.sum(axis=1, keepdims=True)), np.asarray(np.clip(dual, -1.0, 1.0) + 1.0)
