r"""The information of a release Z = X + noise about a secret, exact for any noise covariance G.

.. math:: J(G) = \tilde A' (D + G)^{-1} \tilde A, \qquad
          Z \mid X_S = x \sim N(\tilde A x + \mathrm{const}, D + G)

The log likelihood ratio of two values of the secret that differ by Delta is N(mu^2/2, mu^2) with mu^2 = Delta' J
Delta: the release is exactly mu-Gaussian-differentially private on that pair, and the loss of order
lambda is lambda mu^2 / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, inf, log, sqrt

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.optimize import brentq, minimize
from scipy.special import ndtr, ndtri

from dovetail.core.certified import Bracket
from dovetail.core.checks import positive, probability
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.special import gaussian_delta
from dovetail.core.verdict import LIMITS, UP, percent_up
from dovetail.trace.kernels import Floats, Kernel, scale_nugget

# A Gaussian prior seen from a secret: the regression on it and what it leaves open.
#
# .. math:: \tilde A = \Sigma E \Sigma_{ss}^{-1}, \qquad
#           D = \Sigma - \Sigma E \Sigma_{ss}^{-1} E' \Sigma = \mathrm{Cov}(X \mid X_S)
#
# The columns of E are those of the identity at the secret S. Rows and columns of D at S are 0, rows of A at S are I.


_NEARLY_ONE = 1e-9  # prior variance left, as a share, below which two times are one for a double


@dataclass(frozen=True, eq=False)
class Conditional:
    """The regression of a trace on a secret.

    Parameters
    ----------
    weights : float array (n, S), the matrix A
    residual : float array (n, n), the matrix D
    variance : float array (S, S), the prior covariance of the secret
    secret : tuple of int
        Positions of the secret, from 0.
    """

    weights: Floats
    residual: Floats
    variance: Floats
    secret: tuple[int, ...]


def condition(prior: Floats, secret: Sequence[int]) -> Conditional:
    """The regression of a trace with covariance `prior` (n, n) on its locations at `secret`.

    Raises
    ------
    ParameterError
        A position outside the trace, none, or one that is named twice.
    UnsupportedError
        Two secret times that the kernel cannot tell apart.
    """
    places = check_secret(secret, len(prior))
    rows = list(places)
    variance = prior[np.ix_(rows, rows)]
    scale = np.sqrt(np.diag(variance))
    if np.linalg.eigvalsh(variance / np.outer(scale, scale))[0] < _NEARLY_ONE:
        raise UnsupportedError(
            f"The secret times {places} hold nearly the same location under this kernel: name fewer of them."
        )
    weights = cho_solve(cho_factor(variance, lower=True), prior[rows]).T
    residual = prior - weights @ prior[rows]
    residual = 0.5 * (residual + residual.T)
    weights[rows] = np.eye(len(rows))
    residual[rows] = 0.0
    residual[:, rows] = 0.0
    return Conditional(weights, residual, variance, places)


def check_secret(secret: Sequence[int], n: int) -> tuple[int, ...]:
    """Positions of a secret, sorted; each inside a trace of n points and named once."""
    places = tuple(sorted(int(place) for place in secret))
    if not places:
        raise ParameterError("`secret` must name at least one point of the trace, got none.")
    if len(set(places)) < len(places):
        raise ParameterError(f"`secret` must name a point once, got {places}.")
    if places[0] < 0 or places[-1] >= n:
        raise ParameterError(f"`secret` must lie inside the trace, points 0 to {n - 1}, got {places}.")
    return places


def positive_factor(matrix: Floats, what: str) -> Floats:
    """Lower Cholesky factor; one clear line where the matrix is not positive definite in doubles."""
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except LinAlgError:
        raise UnsupportedError(
            f"{what} is singular in doubles: ask for a white floor (0.01 of the budget)."
        ) from None


_WORST_ERROR = 0.01


@dataclass(frozen=True, eq=False)
class Information:
    """J of a release, with the relative error of its arithmetic.

    Parameters
    ----------
    matrix : float array (S, S), 1 / (unit of a location)^2
    error : float
        Every quadratic form of `matrix` is right up to this share.
    """

    matrix: Floats
    error: float

    @property
    def largest(self) -> Bracket:
        """The largest eigenvalue of J: J itself for one secret location."""
        return self.bracket(float(np.linalg.eigvalsh(self.matrix)[-1]))

    def bracket(self, value: float) -> Bracket:
        """A quadratic form of J between its ends."""
        return Bracket(max(0.0, value * (1.0 - self.error)), value * (1.0 + self.error))

    def posterior(self, variance: Floats) -> Floats:
        r"""Posterior covariance of the secret, :math:`(\Sigma_{ss}^{-1} + J)^{-1}`."""
        # (Sss^-1 + J)^-1 = Sss (I + J Sss)^-1: no inverse of a prior that may be nearly singular
        found = np.linalg.solve(np.eye(len(variance)) + variance @ self.matrix, variance)
        return 0.5 * (found + found.T)


def information(seen: Conditional, noise: Floats) -> Information:
    """J of noise with covariance `noise` (n, n).

    The relative error is that of a Cholesky solution: at most 4 (n + 4) u tr(M) / mineig(M), u the unit roundoff, for
    M = D + G (Higham 2002, Accuracy and Stability of Numerical Algorithms, theorem 10.3), and 16 n u of what the
    rounding of D and the regression is amplified by: prior variance / mineig(M) + 1 / mineig(secret's correlation).

    Raises
    ------
    UnsupportedError
        D + G so nearly singular that a double says nothing: the noise wants a white floor.
    """
    middle = seen.residual + noise
    factor = positive_factor(middle, "The covariance of the release given the secret")
    root = solve_triangular(factor, seen.weights, lower=True)
    error = arithmetic_error(seen, middle)
    if error > _WORST_ERROR:
        raise UnsupportedError(
            f"The loss of this noise is known to {error:.0e} of itself in doubles: ask for a white floor (0.01 of "
            "the budget)."
        )
    return Information(root.T @ root, error)


def arithmetic_error(seen: Conditional, middle: Floats) -> float:
    """Relative error of a quadratic form of J, for M = `middle` (n, n); infinite where M is singular in doubles."""
    smallest = float(np.linalg.eigvalsh(middle)[0])
    spread = float(np.trace(middle)) / smallest if smallest > 0.0 else np.inf
    own = 4 * (len(middle) + 4) * np.finfo(float).eps * spread
    return float(own + 16 * len(middle) * np.finfo(float).eps * _amplified(seen, smallest))


def _amplified(seen: Conditional, smallest: float) -> float:
    scale = np.sqrt(np.diag(seen.variance))
    secret = float(np.linalg.eigvalsh(seen.variance / np.outer(scale, scale))[0])
    largest = max(float(np.diag(seen.variance).max()), float(np.diag(seen.residual).max()))
    return largest / smallest + 1.0 / secret if min(smallest, secret) > 0.0 else np.inf


def posterior_width(posterior: Floats) -> float:
    """Twice the smallest posterior standard deviation of the secret, over all directions: figure 5.2's measure."""
    return 2.0 * float(np.sqrt(max(0.0, np.linalg.eigvalsh(posterior)[0])))


# What mu-Gaussian differential privacy says, exactly: the curve of epsilon and delta, and posterior odds.
#
# .. math:: \delta(\epsilon) = \Phi(\mu/2 - \epsilon/\mu) - e^{\epsilon} \Phi(-\mu/2 - \epsilon/\mu)
#
# The loss of order lambda is lambda mu^2 / 2 for every lambda at once.
#
# Source
# ------
# Dong, Roth, Su (2022), Gaussian Differential Privacy, JRSS B 84(1), Corollary 1.


def delta_of(epsilon: float, *, mu: float) -> float:
    """Smallest delta of mu-Gaussian privacy at this epsilon, nats; rounded up by what the difference may lose.

    >>> round(delta_of(1.0, mu=1.0), 6)
    0.126937
    """
    return gaussian_delta(epsilon, mu=mu).upper


def protection(mu: float) -> dict[str, object]:
    """Say what mu-Gaussian privacy is in a word of the one scale, and how often a guess between two places is right.

    The word is the best whose limits of epsilon and delta the Gaussian keeps: delta at that epsilon is no more.

    >>> [protection(mu)["word"] for mu in (0.1, 0.5, 1.0, 3.0)]
    ['strong', 'moderate', 'weak', 'none']
    >>> protection(1.0)["sentence"]
    'weak: a guess between two places is right: blind 50%, from this at most 69.15%'
    """
    kept = [word for word, (epsilon, delta) in LIMITS.items() if mu < inf and delta_of(epsilon, mu=mu) <= delta]
    word, guess = (kept or ["none"])[0], float(ndtr(mu / 2)) * UP
    sentence = f"{word}: a guess between two places is right: blind 50%, from this at most {percent_up(guess)}"
    return {"word": word, "guess": min(1.0, guess), "sentence": sentence}


def epsilon_of(delta: float, *, mu: float) -> float:
    """Smallest epsilon of mu-Gaussian privacy at this delta, in (0, 1); rounded up.

    >>> round(epsilon_of(1e-5, mu=0.5), 3)
    1.993
    """
    probability("delta", delta)
    if delta_of(0.0, mu=mu) <= delta:
        return 0.0
    top = mu * mu / 2 + mu * 40.0
    found = brentq(lambda epsilon: delta_of(epsilon, mu=mu) - delta, 0.0, top, xtol=1e-12)
    return float(found) * (1.0 + 1e-9) + 1e-11


def mu_of(epsilon: float, *, delta: float) -> float:
    """Largest mu whose curve keeps delta at this epsilon; rounded down."""
    positive("epsilon", epsilon)
    probability("delta", delta)
    ends = log(min(1e-9, epsilon / 60)), log(2 * sqrt(epsilon) + 40.0)
    found = exp(brentq(lambda size: delta_of(epsilon, mu=exp(size)) - delta, *ends, xtol=1e-13))
    while delta_of(epsilon, mu=found) > delta:
        found *= 1.0 - 1e-9
    return found


def renyi_loss(order: float, *, mu: float) -> float:
    """Loss of order lambda, lambda mu^2 / 2; `order` above 1."""
    return order * mu * mu / 2


def posterior_odds(chance: float, *, mu: float) -> float:
    r"""Odds that the posterior of one value over another exceeds the prior's by, either way, with this chance.

    The log ratio is N(mu^2/2, mu^2), so this is the quantile of its absolute value.

    >>> round(posterior_odds(0.01, mu=0.2), 3), round(posterior_odds(0.1, mu=0.2), 3)
    (1.678, 1.392)
    """
    probability("chance", chance)
    if mu == 0.0:
        return 1.0
    middle, spread = mu * mu / 2, mu

    def beyond(value: float) -> float:
        return float(ndtr((middle - value) / spread) + ndtr((-value - middle) / spread)) - chance

    top = middle + spread * float(-ndtri(chance / 2)) + 1.0
    value = float(brentq(beyond, 0.0, top, xtol=1e-12))
    return exp(value) if value < 700.0 else inf


# The worst move of a secret: \sup \Delta' J \Delta when every secret location moves by at most 1.
#
# One location: maxeig J. Several in one coordinate: a convex function on a box, so a vertex is worst. Several in the
# plane, coordinates independent: a product of discs, and
#
# .. math:: \sup \le \min \Big\{ \sum_k w_k : \mathrm{diag}(w) \succeq J_i \text{ for every coordinate } i \Big\}
#
# which is never worse than S maxeig J, the bound of Theorem 5.3.3, and exact for S = 2 in one coordinate.


MOST_VERTICES = 10  # secret times whose 2^(S-1) sign vectors are listed


def worst_move(found: Sequence[Information]) -> Bracket:
    """The worst move, between its ends, of a secret with independent coordinates.

    Parameters
    ----------
    found : one Information for each coordinate, the same secret times in all of them
    """
    count = len(found[0].matrix)
    if count == 1:
        values = [one.largest for one in found]
        return Bracket(max(one.lower for one in values), max(one.upper for one in values))
    if len(found) == 1 and count <= MOST_VERTICES:
        return found[0].bracket(worst_vertex(found[0].matrix))
    lower = max(one.bracket(_some_vertex(one.matrix)).lower for one in found)
    weights = diagonal_bound([one.matrix for one in found])
    return Bracket(lower, max(lower, float(weights.sum()) * (1.0 + max(one.error for one in found))))


def worst_vertex(matrix: Floats) -> float:
    """max e' J e over sign vectors e, by listing them."""
    signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=len(matrix) - 1)])
    return float(np.einsum("ij,jk,ik->i", signs, matrix, signs).max())


def _some_vertex(matrix: Floats) -> float:
    """e' J e at a good sign vector, improved one sign at a time."""
    if len(matrix) <= MOST_VERTICES:
        return worst_vertex(matrix)
    signs = np.where(np.linalg.eigh(matrix)[1][:, -1] >= 0, 1.0, -1.0)
    for _ in range(len(matrix)):
        gains = -signs * (matrix @ signs) + np.diag(matrix)  # a quarter of what a flip gains
        if gains.max() <= 0.0:
            break
        signs[gains.argmax()] *= -1.0
    return float(signs @ matrix @ signs)


def diagonal_bound(matrices: Sequence[Floats]) -> Floats:
    """Weights w (S,) with diag(w) >= J for every J of `matrices`, of small sum: any such w is a valid bound."""
    sizes = np.mean([np.diag(one) for one in matrices], axis=0)

    def scaled(logs: Floats) -> tuple[Floats, float]:
        weights = np.exp(logs) * sizes
        root = 1.0 / np.sqrt(weights)
        return weights, max(float(np.linalg.eigvalsh(root[:, None] * one * root)[-1]) for one in matrices)

    def cost(logs: Floats) -> float:
        weights, largest = scaled(logs)
        return float(np.log(weights.sum()) + np.log(largest))

    starts = [np.zeros(len(sizes)), np.log(np.max([np.abs(one).sum(axis=1) for one in matrices], axis=0) / sizes)]
    best = min((minimize(cost, start, method="Powell").x for start in starts), key=cost)
    flat = np.log(np.ones(len(sizes)) / sizes)  # equal weights are the printed bound, S maxeig J
    weights, largest = scaled(min((best, *starts, flat), key=cost))
    return weights * largest * (1.0 + 1e-12)


# Whom a loss is stated against: kernels of other length-scales and nuggets, an unknown mean, and one sighting.
#
# A design that is tuned to one kernel may tell much to an adversary who knows another one, or who knows a single
# other true location. So every loss is published for the whole list, each exactly, with that adversary's own prior.


OWN = "the kernel itself"
STRETCHES = (0.5, 1.0, 1.5, 2.0, 3.0)  # of the length-scale; 39 % of published fits hit their upper bound
NO_NUGGET = "no nugget"
NUGGETS = {NO_NUGGET: 0.0, "a tenth of the nugget": 0.1}  # fits to rough receivers take movement for nugget
UNKNOWN_MEAN = 100.0  # prior variance of an unknown mean, in variances of a location; the limit is bounded
MOST_LOST = 0.01  # relative error of a sighting's loss beyond which nothing is stated
TOLD = 1e-9  # prior variance left, as a share, below which a sighting itself tells the secret


@dataclass(frozen=True, eq=False)
class Adversary:
    """A prior that somebody may hold.

    Parameters
    ----------
    name : str
    prior : float array (n, n)
        Covariance, variance 1 at every point unless the mean is unknown.
    unknown_mean : bool
        Whether the variance of the mean is taken to its limit.
    """

    name: str
    prior: Floats
    unknown_mean: bool = False


def adversary_kernels(kernel: Kernel) -> dict[str, Kernel]:
    """The kernel itself first, then stretched ones, then those with less nugget where it has one."""
    others = {f"length x {factor:g}": kernel.stretched(factor) for factor in STRETCHES if factor != 1.0}
    nuggets = {name: scale_nugget(kernel, factor) for name, factor in NUGGETS.items()}
    return {OWN: kernel, **others, **{name: other for name, other in nuggets.items() if other != kernel}}


def adversaries(kernel: Kernel, times: Floats) -> list[Adversary]:
    """The kernel itself first, then the others, then one for whom the mean of the trace is unknown."""
    kernels = adversary_kernels(kernel)
    found = [Adversary(name, model.matrix(times)) for name, model in kernels.items()]
    return [*found, Adversary("unknown mean", found[0].prior + UNKNOWN_MEAN, unknown_mean=True)]


def limit_of_mean(prior: Floats, secret: Sequence[int]) -> Floats:
    r"""Bound on what J (S, S) of a mean of variance `UNKNOWN_MEAN` lacks of its limit, an unknown mean.

    .. math:: J_\infty = V_\infty^{-1} - P_\infty \le V_c^{-1} - P_\infty = J_c + h h' / (q (1 + c q)), \quad
              h = \Sigma_{ss}^{-1} 1, \quad q = 1' h

    with V the posterior covariance of the secret, which grows with c, and P its prior precision,
    :math:`\Sigma_{ss}^{-1} - h h' / (1/c + q)`.
    """
    rows = list(secret)
    h = np.linalg.solve(prior[np.ix_(rows, rows)], np.ones(len(rows)))
    return np.asarray(np.outer(h, h) / (h.sum() * (1.0 + UNKNOWN_MEAN * h.sum())))


def sightings(seen: Conditional, prior: Floats, noise: Floats) -> Floats:
    r"""Largest eigenvalue of J when the true location at one other time t is known too, for each t; (n,).

    .. math:: D_t = D - d d' / D_{tt}, \; \tilde A_t = \tilde A - d \tilde A_{t \cdot} / D_{tt}, \; d = D_{\cdot t}

    the regression of :math:`\Sigma - \Sigma_{\cdot t} \Sigma_{t \cdot} / \Sigma_{tt}`. At the secret itself 0;
    infinite where the sighting alone tells the secret, or where doubles know it worse than to a hundredth. Each
    number has the arithmetic's error, at most a hundredth, added.
    """
    middle = seen.residual + noise
    factor, error = cho_factor(middle, lower=True), arithmetic_error(seen, middle)
    inverse = cho_solve(factor, np.eye(len(prior)))
    found = np.zeros(len(prior))
    for t in range(len(prior)):
        if t in seen.secret:
            continue
        known = residual_given(seen, prior, t)
        if known is None:
            found[t] = np.inf
            continue
        column, weights = known
        solved = inverse @ column
        left = seen.residual[t, t] - column @ solved
        half = weights.T @ solved
        matrix = weights.T @ inverse @ weights + np.outer(half, half) / left
        # what the solution is wrong by grows by the cancellation in `left`
        lost = error * (1.0 + seen.residual[t, t] / max(left, 1e-300)) + _subtracted(
            len(prior), seen.residual[t, t], left, prior[t, t]
        )
        largest = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[-1]
        found[t] = largest * (1.0 + lost) if lost <= MOST_LOST else np.inf
    return found


def _subtracted(n: int, variance: float, left: float, scale: float) -> float:
    """Relative error of what two subtractions leave of a variance: D_tt of the prior's, then `left` of D_tt."""
    return float(16 * n * np.finfo(float).eps * (variance / left + scale / variance)) if left > 0.0 else np.inf


def residual_given(seen: Conditional, prior: Floats, t: int) -> tuple[Floats, Floats] | None:
    """The column d and the weights A_t when the location at t is known; None where that tells the secret."""
    column = seen.residual[:, t]
    if column[t] < TOLD * prior[t, t]:
        return None
    return column, seen.weights - np.outer(column, seen.weights[t]) / column[t]


def with_sighting(seen: Conditional, prior: Floats, t: int) -> Conditional | None:
    """The regression on the secret when the location at t is known too; None where that tells the secret."""
    known = residual_given(seen, prior, t)
    if known is None:
        return None
    column, weights = known
    residual = seen.residual - np.outer(column, column) / column[t]
    residual[t] = 0.0
    residual[:, t] = 0.0
    weights[t] = 0.0
    return Conditional(weights, residual, seen.variance, seen.secret)


# The loss of one noise covariance against one secret, for every adversary on a list.


SIGHTING = "one sighting"


@dataclass(frozen=True)
class AdversaryLoss:
    """Loss to one adversary, for locations of prior variance 1 and moves of at most 1.

    Parameters
    ----------
    name : str
    loss : Bracket
        Largest eigenvalue of J.
    move : Bracket
        The worst move of all secret locations together.
    width : float or None
        Twice the smallest posterior standard deviation.
    note : str
        For a sighting: the point that was seen.
    """

    name: str
    loss: Bracket
    move: Bracket
    width: float | None
    note: str = ""


def losses(known: Sequence[Adversary], secret: Sequence[int], noise: Floats) -> list[AdversaryLoss]:
    """Loss of a secret for each adversary, the kernel itself first, the worst single sighting last."""
    found = []
    for one in known:
        seen = condition(one.prior, secret)
        told = information(seen, noise)
        if one.unknown_mean:
            told = Information(told.matrix + limit_of_mean(known[0].prior, secret), told.error)
        width = posterior_width(told.posterior(seen.variance))
        found.append(AdversaryLoss(one.name, told.largest, worst_move([told]), width))
    return [*found, _worst_sighting(known[0].prior, secret, noise)]


def _worst_sighting(prior: Floats, secret: Sequence[int], noise: Floats) -> AdversaryLoss:
    seen = condition(prior, secret)
    values = sightings(seen, prior, noise)
    if len(values) == len(seen.secret):
        raise UnsupportedError("The secret is the whole trace: there is no other time to be seen at.")
    place = int(np.argmax(values))
    worst = float(values[place]) * (1.0 + 1e-6)
    # S maxeig J bounds every move; a finer bound is not worth a search for each time
    largest = Bracket(0.0 if np.isinf(worst) else float(values[place]) * (1.0 - 2.0 * MOST_LOST), worst)
    return AdversaryLoss(SIGHTING, largest, Bracket(largest.lower, worst * len(seen.secret)), None, f"point {place}")
