"""All closed forms side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.account.bound import Bound, bracket_root
from dovetail.account.privacy_blanket import BlanketLaw
from dovetail.core.checks import (
    MOST_PEOPLE,
    flag,
    floats,
    not_negative_or_infinite,
    privacy_budget,
    probability,
    refuse,
    whole,
)
from dovetail.core.errors import DataError
from dovetail.core.special import Reals

# What every closed form has in common: the question, the regime and the verdict.


ROUNDING = 1.0 + 2.0**-44  # values are moved up by this factor: far above what a short formula loses


@dataclass(frozen=True)
class ShuffleParameters:
    """n honest reports, each epsilon0-private; wanted is epsilon at delta.

    Parameters
    ----------
    epsilon0 : float, above 0, at most 700, nats
    n : int, 1 .. 1e12
    delta : float, strictly between 0 and 1
        At 0 shuffling amplifies nothing and no formula has anything to say.
    """

    epsilon0: float
    n: int
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon0", privacy_budget("epsilon0", self.epsilon0))
        object.__setattr__(self, "n", whole("n", self.n, least=1, most=MOST_PEOPLE))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    def log_over_delta(self, numerator: float) -> float:
        """log(numerator / delta), also where the quotient overflows."""
        return math.log(numerator) - math.log(self.delta)

    def bound(self, name: str, epsilon: float, *, source: str) -> Bound:
        """The bound, or nothing where it is not below the local epsilon."""
        value = epsilon * ROUNDING
        if value < self.epsilon0:
            return Bound(name, value, source)
        return Bound.inapplicable(name, f"not informative: {value:.4g} is not below epsilon0", source=source)

    def out_of_regime(self, name: str, limit: float, formula: str, *, source: str) -> Bound | None:
        """Nothing, with the reason, where epsilon0 is above the limit of the theorem."""
        if self.epsilon0 <= limit:
            return None
        return Bound.inapplicable(
            name, f"needs epsilon0 <= {formula} = {limit:.4g}, got {self.epsilon0:g}", source=source
        )


# Balle et al.'s bounds: a tail inequality for the sum of what each report says.
#
# .. math:: \delta(\epsilon) \le \frac 1n E\left[ (v_1 + \dots + v_M)_+ \right], \qquad M \sim \mathrm{Bin}(n, g),
# \quad
#           v = Z_0 - e^{\epsilon} Z_1 \text{ on the support of mass } g


SOURCE = "Balle, Bell, Gascon, Nissim (2019), The Privacy Blanket of the Shuffle Model"
PAPER = "Balle et al. 2019"
GRID = 400  # points from 1e-8 epsilon0 to epsilon0; the bounds need not fall everywhere
MARGIN = 1e-9  # in log delta, for the rounding of the formula


@dataclass(frozen=True, eq=False)
class SummandBounds:
    """Mass g of the support, and largest value, width and variance of v there, or more, at each E = e^epsilon."""

    mass: float
    most: Reals
    width: Reals
    variance: Reals


SummandBoundsAt = Callable[[Reals], SummandBounds]


def hoeffding(epsilon0: float, *, n: int, delta: float, law: BlanketLaw | None = None, of: str = PAPER) -> Bound:
    r"""Balle et al.'s bound by Hoeffding's inequality, generic or for any upper law.

    .. math:: \delta = \frac{w^2}{4 a n} \left( 1 - g + g\, e^{-2 a^2 / w^2} \right)^n, \qquad
              a = \frac{e^\epsilon - 1}{g}, \quad w = \max v - \min v

    Solved for epsilon; the point returned was evaluated and keeps `delta`. For one fixed randomizer.

    Parameters
    ----------
    epsilon0, n, delta : as in `ShuffleParameters`
    law : BlanketLaw, optional
        An upper law of the randomizer; without it the paper's parameters for any randomizer.
    of : str
        What the law belongs to; becomes part of the name.

    Source
    ------
    Balle, Bell, Gascon, Nissim (2019), The Privacy Blanket of the Shuffle Model, CRYPTO, Theorem 5.4 (Hoeffding) with
    the generic parameters of the authors' code.
    """

    def log_delta(growth: Reals, shape: SummandBounds) -> Reals:
        a = growth / shape.mass
        square = shape.width**2
        return np.log(square / (4.0 * a)) + _log_mixture(n, shape.mass, 2.0 * a * a / square)

    return _solve(
        f"Hoeffding ({of})", ShuffleParameters(epsilon0, n, delta), log_delta, _summand_bounds(epsilon0, law)
    )


def bennett(epsilon0: float, *, n: int, delta: float, law: BlanketLaw | None = None, of: str = PAPER) -> Bound:
    r"""Balle et al.'s bound by Bennett's inequality, generic or for any upper law.

    .. math:: \delta = \frac{b}{n \log(1 + ab/c)} \left( 1 - g + g\, e^{-(c/b^2)\, \varphi(ab/c)} \right)^n, \qquad
              b = \max v + a, \quad c = \mathrm{Var}\, v, \quad \varphi(u) = (1 + u) \log(1 + u) - u

    Parameters
    ----------
    epsilon0, n, delta, law, of : as in `hoeffding`

    Examples
    --------
    >>> p, b = math.e, 1 / (math.e + 9)  # ten-ary randomized response at epsilon0 = 1
    >>> law = BlanketLaw([p, 1, 1], [1, p, 1], [b, b, 8 * b])
    >>> round(bennett(1.0, n=10_000, delta=1e-6, law=law).epsilon, 4)
    0.028

    Source
    ------
    As `hoeffding` (Bennett).
    """

    def log_delta(growth: Reals, shape: SummandBounds) -> Reals:
        a = growth / shape.mass
        b, c = shape.most + a, shape.variance
        u = a * b / c
        return np.log(b / np.log1p(u)) + _log_mixture(n, shape.mass, c / b**2 * bennett_function(u))

    return _solve(f"Bennett ({of})", ShuffleParameters(epsilon0, n, delta), log_delta, _summand_bounds(epsilon0, law))


def _log_mixture(n: int, mass: float, exponent: Reals) -> Reals:
    """log((1 - g + g e^-x)^n / n)."""
    return np.asarray(n * np.log1p(mass * np.expm1(-exponent)) - math.log(n))


def bennett_function(u: Reals) -> Reals:
    """(1 + u) log(1 + u) - u; below 1/100 its series, cut after a negative term: never above."""
    s = np.minimum(u, 0.01)
    series = s * s * (1 / 2 - s * (1 / 6 - s * (1 / 12 - s * (1 / 20 - s * (1 / 30 - s / 42)))))
    return np.where(u < 0.01, series, (1.0 + u) * np.log1p(u) - u)


def _summand_bounds(epsilon0: float, law: BlanketLaw | None) -> SummandBoundsAt:
    return _generic_bounds(epsilon0) if law is None else _bounds_of_law(law)


def _generic_bounds(epsilon0: float) -> SummandBoundsAt:
    """The published parameters: Z in [1/p, p] and g >= 1/p, and g set to 1 wherever a larger g is worse."""
    p = math.exp(min(epsilon0, 200.0))  # far above, where these bounds say nothing any more

    def shape(e: Reals) -> SummandBounds:
        return SummandBounds(1.0 / p, p * p - e, (e + 1.0) * (p * p - 1.0), p**3 * (e * e + 1.0) - 2.0 * e / p)

    return shape


def _bounds_of_law(law: BlanketLaw) -> SummandBoundsAt:
    """The law's own parameters, the worse of the two directions for each."""
    share, z0, z1 = law.mass / law.mass.sum(), law.z0[:, None], law.z1[:, None]

    def shape(e: Reals) -> SummandBounds:
        ways = np.stack([z0 - e * z1, z1 - e * z0])  # (2, atoms, points)
        centred = ways - np.einsum("a,dap->dp", share, ways)[:, None, :]
        variance = np.einsum("a,dap->dp", share, centred**2)
        most, least = ways.max(axis=1), ways.min(axis=1)
        return SummandBounds(
            float(law.mass.sum()), most.max(axis=0), (most - least).max(axis=0), variance.max(axis=0)
        )

    return shape


def _solve(
    name: str,
    parameters: ShuffleParameters,
    log_delta: Callable[[Reals, SummandBounds], Reals],
    shape: SummandBoundsAt,
) -> Bound:
    """The smallest epsilon found at which the formula keeps delta: evaluated there."""

    def log_ratio(epsilon: Reals) -> Reals:
        with np.errstate(all="ignore"):  # a formula that overflows says nothing
            value = log_delta(np.expm1(epsilon), shape(np.exp(epsilon))) - math.log(parameters.delta) + MARGIN
        return np.where(np.isnan(value), np.inf, value)

    grid = parameters.epsilon0 * np.geomspace(1e-8, 1.0 - 1e-9, GRID)
    good = np.flatnonzero(log_ratio(grid) <= 0.0)
    if good.size == 0:
        return Bound.inapplicable(name, "not informative: keeps delta at no epsilon below epsilon0", source=SOURCE)
    first = float(grid[good[0]])
    _, epsilon = bracket_root(
        lambda e: float(log_ratio(np.array([e]))[0]), 0.98 * first, steepness=10.0, most=first, tolerance=1e-6
    )
    return parameters.bound(name, epsilon, source=SOURCE)


# Closed forms of the clone theorems: as published, as restated, and a tight one.


WORKSHOP, FOCS = "clones (workshop)", "clones (FOCS)"
PUBLISHED, TIGHT = "stronger clones (published, recalled)", "stronger clones (closed form)"


def clones_workshop(epsilon0: float, *, n: int, delta: float) -> Bound:
    r"""The clone theorem as first published; also for randomizers chosen after seeing earlier reports.

    .. math:: \epsilon = \log\left(1 + (1 - e^{-2\epsilon_0}) \left( 8 \sqrt{\frac{e^{\epsilon_0}
              \log(4/\delta)}{n}} + \frac{8 e^{\epsilon_0}}{n} \right) \right), \qquad
              \epsilon_0 \le \log \frac{n}{16 \log(4/\delta)}

    Parameters
    ----------
    epsilon0, n, delta : as in `ShuffleParameters`

    Notes
    -----
    The regime is the corrected one: the paper has log(2/delta).

    Examples
    --------
    >>> round(clones_workshop(1.0, n=10_000, delta=1e-6).epsilon, 4)
    0.3692
    >>> clones_workshop(9.0, n=10_000, delta=1e-6).reason
    'needs epsilon0 <= log(n/(16 log(4/delta))) = 3.716, got 9'

    Source
    ------
    Feldman, McMillan, Talwar (2021), Hiding Among the Clones, workshop version, Theorem 2.1, equation (1).
    """
    source = "Feldman, McMillan, Talwar (2021), Hiding Among the Clones, workshop version, equation (1)"
    return _clones(WORKSHOP, ShuffleParameters(epsilon0, n, delta), -math.expm1(-2.0 * epsilon0), source=source)


def clones_focs(epsilon0: float, *, n: int, delta: float) -> Bound:
    r"""`clones_workshop` with tanh(epsilon0 / 2) in place of 1 - e^{-2 epsilon0}: up to four times tighter.

    Source
    ------
    Feldman, McMillan, Talwar (2021), Hiding Among the Clones, FOCS, as restated in the later literature.
    """
    source = "Feldman, McMillan, Talwar (2021), Hiding Among the Clones, FOCS, closed form"
    return _clones(FOCS, ShuffleParameters(epsilon0, n, delta), math.tanh(0.5 * epsilon0), source=source)


def _clones(name: str, parameters: ShuffleParameters, factor: float, *, source: str) -> Bound:
    log_term = parameters.log_over_delta(4.0)
    limit = math.log(parameters.n / (16.0 * log_term))
    out = parameters.out_of_regime(name, limit, "log(n/(16 log(4/delta)))", source=source)
    if out:
        return out
    share = math.exp(parameters.epsilon0) / parameters.n
    return parameters.bound(name, math.log1p(8.0 * factor * (math.sqrt(share * log_term) + share)), source=source)


def stronger_published(epsilon0: float, *, n: int, delta: float) -> Bound:
    r"""The published closed form for stronger clones, recalled from memory: to compare with, never to promise.

    .. math:: \epsilon = \log\left(1 + (e^{\epsilon_0} - 1) \left( 4 \sqrt{\frac{2 \log(4/\delta)}{(e^{\epsilon_0}
              + 1) n}} + \frac 4n \right) \right), \qquad \epsilon_0 \le \log\left( \frac{n}{8 \log(2/\delta)} - 1
              \right)

    Source
    ------
    Recalled, not checked against the text: Feldman, McMillan, Talwar (2022), Stronger Privacy Amplification by
    Shuffling for Renyi and Approximate Differential Privacy.
    """
    source = "recalled, not checked: Feldman, McMillan, Talwar (2022), Stronger Privacy Amplification by Shuffling"
    parameters = ShuffleParameters(epsilon0, n, delta)
    room = parameters.n / (8.0 * parameters.log_over_delta(2.0)) - 1.0
    limit = math.log(room) if room > 0.0 else -math.inf
    out = parameters.out_of_regime(PUBLISHED, limit, "log(n/(8 log(2/delta)) - 1)", source=source)
    if out:
        return out
    p = math.exp(parameters.epsilon0)
    spread = 4.0 * math.sqrt(2.0 * parameters.log_over_delta(4.0) / ((p + 1.0) * parameters.n)) + 4.0 / parameters.n
    return parameters.bound(PUBLISHED, math.log1p(math.expm1(parameters.epsilon0) * spread), source=source)


def stronger_tight(epsilon0: float, *, n: int, delta: float) -> Bound:
    r"""A closed form for one fixed randomizer, within a constant factor of the numerical bound.

    .. math:: \epsilon = \log\left(1 + \frac{2 t (r + 1)}{W - t r}\right), \qquad t = \tanh(\epsilon_0/2), \quad
              r = \sqrt{2 W L}, \quad L = \log(2/\delta)

    .. math:: W = (n - 1) q - \sqrt{\min(2q, \tfrac12) (n - 1) L}, \qquad q = \frac{2}{e^{\epsilon_0} + 1}

    Fewer than W clones come with probability at most delta / 2 (Chernoff, Hoeffding); given C' >= W of them, more
    than (C' + sqrt(2 C' L)) / 2 heads with probability at most delta / 2. On the rest the loss is at most
    log(1 + (p - 1)(a - b) / (m + (p - 1) b)) with a - b <= sqrt(2 C' L) + 1, m >= C' and 2 b >= C' - sqrt(2 C' L),
    which falls in C'. It needs W > t r and W > 0.

    Examples
    --------
    >>> round(stronger_tight(1.0, n=10_000, delta=1e-6).epsilon, 4)
    0.0699

    Source
    ------
    Chernoff's and Hoeffding's inequalities on the pair of `ClonePair`.
    """
    source = "Chernoff and Hoeffding on the stronger-clone pair"
    parameters = ShuffleParameters(epsilon0, n, delta)
    log_term, tiny = parameters.log_over_delta(2.0), math.exp(-parameters.epsilon0)
    q, t = 2.0 * tiny / (1.0 + tiny), math.tanh(0.5 * parameters.epsilon0)
    certain = (parameters.n - 1) * q - math.sqrt(min(2.0 * q, 0.5) * (parameters.n - 1) * log_term)
    r = math.sqrt(2.0 * max(certain, 0.0) * log_term)
    if certain <= t * r:
        reason = f"needs more clones than {2.0 * t * t * log_term:.4g} for certain, got {max(certain, 0.0):.4g}"
        return Bound.inapplicable(TIGHT, reason, source=source)
    return parameters.bound(TIGHT, math.log1p(2.0 * t * (r + 1.0) / (certain - t * r)), source=source)


# The earliest amplification results.


ERLINGSSON = "Erlingsson et al. 2019"


def erlingsson(epsilon0: float, *, n: int, delta: float) -> Bound:
    r"""The first amplification theorem; also for randomizers chosen after seeing earlier reports.

    .. math:: \epsilon = 12 \epsilon_0 \sqrt{\frac{\log(1/\delta)}{n}}, \qquad
              \epsilon_0 \le \tfrac12, \; n \ge 1000, \; \delta \le \tfrac1{100}

    Parameters
    ----------
    epsilon0, n, delta : as in `ShuffleParameters`

    Examples
    --------
    >>> round(erlingsson(0.1, n=1_000_000, delta=1e-6).epsilon, 5)
    0.00446

    Source
    ------
    Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta (2019), Amplification by Shuffling, SODA, as in the
    public code of Balle et al. (2019).
    """
    source = "Erlingsson et al. (2019), Amplification by Shuffling, SODA"
    parameters = ShuffleParameters(epsilon0, n, delta)
    out = parameters.out_of_regime(ERLINGSSON, 0.5, "1/2", source=source)
    if out:
        return out
    if parameters.n < 1000 or parameters.delta > 0.01:
        reason = f"needs n >= 1000 and delta <= 0.01, got {parameters.n} and {parameters.delta:g}"
        return Bound.inapplicable(ERLINGSSON, reason, source=source)
    epsilon = 12.0 * parameters.epsilon0 * math.sqrt(parameters.log_over_delta(1.0) / parameters.n)
    return parameters.bound(ERLINGSSON, epsilon, source=source)


def random_check_ins(epsilon0: float, *, n: int, delta: float) -> float:
    r"""The curve of random check-ins, for figures only: recalled from memory, promises nothing.

    .. math:: \epsilon = \frac{e^{3 \epsilon_0} (e^{\epsilon_0} - 1)^2}{2n}
              + e^{3 \epsilon_0 / 2} (e^{\epsilon_0} - 1) \sqrt{\frac{2 \log(1/\delta)}{n}}

    Parameters
    ----------
    epsilon0 : float, above 0, at most 100, nats
    n, delta : as in `ShuffleParameters`

    Source
    ------
    Recalled, not checked against the text: Balle, Kairouz, McMahan, Thakkar, Thakurta (2020), Privacy Amplification
    via Random Check-Ins, NeurIPS.
    """
    parameters = ShuffleParameters(epsilon0, n, delta)
    root = math.exp(1.5 * parameters.epsilon0) * math.expm1(parameters.epsilon0) / math.sqrt(parameters.n)
    return 0.5 * root * root + root * math.sqrt(2.0 * parameters.log_over_delta(1.0))


ADAPTIVE = (erlingsson, clones_workshop, clones_focs)
FIXED = (hoeffding, bennett, stronger_published, stronger_tight)


def closed_forms(
    epsilon0: float,
    *,
    n: int,
    delta: float,
    k: int | None = None,
    law: BlanketLaw | None = None,
    adaptive: bool = False,
) -> list[Bound]:
    """Bounds of all closed forms, or why one says nothing; names and order are stable.

    Parameters
    ----------
    epsilon0, n, delta : as in `ShuffleParameters`
    k : int, at least 2, optional
        Adds Hoeffding and Bennett for k-ary randomized response.
    law : BlanketLaw, optional
        Adds Hoeffding and Bennett for this upper law.
    adaptive : bool
        Whether a person's randomizer may be chosen after seeing earlier reports; the forms that need one fixed
        randomizer then say nothing.

    Raises
    ------
    ParameterError
        For parameters outside their ranges; a form that does not apply says so in its `reason`.

    Examples
    --------
    >>> for bound in closed_forms(1.0, n=10_000, delta=1e-6, k=10):
    ...     print(bound.name, bound.reason or round(bound.epsilon, 4))
    Erlingsson et al. 2019 needs epsilon0 <= 1/2 = 0.5, got 1
    clones (workshop) 0.3692
    clones (FOCS) 0.214
    Hoeffding (Balle et al. 2019) 0.1666
    Bennett (Balle et al. 2019) 0.1663
    stronger clones (published, recalled) 0.18
    stronger clones (closed form) 0.0699
    Hoeffding (k-RR) 0.0647
    Bennett (k-RR) 0.028
    """
    ShuffleParameters(epsilon0, n, delta)
    adaptive = flag("adaptive", adaptive)
    bounds = [form(epsilon0, n=n, delta=delta) for form in (*ADAPTIVE, *FIXED)]
    laws = [("k-RR", krr_upper_law(epsilon0, k))] if k is not None else []
    laws += [("law", law)] if law is not None else []
    for of, own in laws:
        bounds += [form(epsilon0, n=n, delta=delta, law=own, of=of) for form in (hoeffding, bennett)]
    if not adaptive:
        return bounds
    reason = "needs one fixed randomizer, chosen before any report is seen"
    free = len(ADAPTIVE)
    return bounds[:free] + [Bound.inapplicable(bound.name, reason, source=bound.source) for bound in bounds[free:]]


def krr_upper_law(epsilon0: float, k: int) -> BlanketLaw:
    """The upper law of k-ary randomized response, for real epsilon0: the worst pair of values hides in the rest."""
    k = whole("k", k, least=2, most=1 << 31)
    p = math.exp(epsilon0)
    atoms = [(p, 1.0, 1.0), (1.0, p, 1.0), (1.0, 1.0, k - 2.0)]
    z0, z1, weight = zip(*(atoms if k > 2 else atoms[:2]), strict=True)
    return BlanketLaw(z0, z1, [w / (p + k - 1.0) for w in weight])


# What an (epsilon, delta) promise leaves to guess, given the prior: the best guess against its worst mechanism.


_SLACK = 1.0 + 1e-12  # above the rounding of a sum of shares, themselves rounded


def guess_bound(prior: ArrayLike, *, epsilon: float, delta: float = 0.0) -> float:
    r"""Largest chance of guessing a value that is drawn from `prior`, whatever else is known.

    .. math:: \max_j \left[ \delta + (1 - \delta) \frac{e^\epsilon}{e^\epsilon - 1 + j}
              (\pi_{(1)} + \dots + \pi_{(j)}) \right], \qquad \pi_{(1)} \ge \pi_{(2)} \ge \dots

    Reached by randomized response among the j likeliest values that fails openly with probability delta. With
    epsilon = delta = 0 it is the blind guess.

    Parameters
    ----------
    prior : float array (k,), at least 0, sum 1
        Belief of somebody who may know everything but this person's report.
    epsilon : float, at least 0, nats
    delta : float in [0, 1]

    Raises
    ------
    ParameterError
        For a promise outside its range.
    DataError
        For a prior that is none.

    Notes
    -----
    *Proof.* Let a_x = Pr[guess x | x]. The promise leaves Pr[guess x | x'] >= m_x = (a_x - delta)_+ e^-epsilon, and
    the guesses at each x' sum to at most 1: a_x' + sum_{x != x'} m_x <= 1. So a_x <= delta + e^epsilon m_x, and with
    M the sum of all m_x every m_x is at most (1 - delta - M) / (e^epsilon - 1). The largest sum of pi_x a_x is that
    of a linear program whose corners give the j likeliest values equal m_x = (1 - delta) / (e^epsilon - 1 + j).
    Rounded up.

    Examples
    --------
    >>> round(guess_bound([0.5, 0.5], epsilon=1.0), 4), round(guess_bound([0.9, 0.1], epsilon=1.0), 4)
    (0.7311, 0.9)

    Source
    ------
    The proof above.
    """
    shares = floats("prior", prior)
    if shares.ndim != 1 or not shares.size or not (shares >= 0.0).all() or abs(shares.sum() - 1.0) > 1e-9:
        raise DataError(f"`prior` must be probabilities (k,) that sum to 1, got {prior!r}.")
    return float(guess_bounds(shares[None], epsilon=epsilon, delta=delta)[0])


def guess_bounds(priors: NDArray[np.float64], *, epsilon: float, delta: float = 0.0) -> NDArray[np.float64]:
    """`guess_bound` of each row of `priors` (m, k)."""
    loss, slack = not_negative_or_infinite("epsilon", epsilon), not_negative_or_infinite("delta", delta)
    if slack > 1.0:
        raise refuse("delta", "in [0, 1]", delta)
    best_first = -np.sort(-priors, axis=1)
    told = np.cumsum(best_first, axis=1) / (1.0 + np.arange(priors.shape[1]) * math.exp(-loss))
    return np.asarray(np.minimum(1.0, (slack + (1.0 - slack) * told.max(axis=1)) * _SLACK))
