"""Closed forms of the clone theorems: as published, as restated, and a tight one."""

from __future__ import annotations

import math

from dovetail.account.bound import Bound
from dovetail.account.closed_form.shuffle_parameters import ShuffleParameters

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
