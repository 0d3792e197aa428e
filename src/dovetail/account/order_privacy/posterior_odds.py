"""What the order of a release can tell: posterior odds and re-identification, as functions of alpha."""

import math
from collections.abc import Iterable

import numpy as np

from dovetail.core.bracket import Bracket
from dovetail.core.channel import Channel, Matrix
from dovetail.core.checks import MOST_PEOPLE, not_negative_or_infinite, refuse, whole
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.shuffle.groups.groups import Groups

_SLACK = 2.0**-49  # eight times the relative rounding of a handful of operations
_TINY = 1e-300  # below it doubles lose digits; [0, 1] is the same interval to any reader


def posterior_interval(prior: float, *, alpha: float) -> Bracket:
    r"""Where the belief in an event about one person can go when the order is seen.

    .. math:: \frac{p}{p + (1 - p) e^{\alpha}} \le \Pr[E \mid z, \{y_G\}, y_{\bar G}] \le
              \frac{p}{p + (1 - p) e^{-\alpha}}, \qquad p = \Pr[E \mid \{y_G\}, y_{\bar G}]

    For every prior and every correlation between people. It bounds what the order adds to what the unordered bag
    of the group's reports already tells, not what the bag tells.

    Parameters
    ----------
    prior : float in [0, 1]
        Belief of an adversary who knows the reports outside the group and the bag of those inside.
    alpha : float, at least 0, nats

    Raises
    ------
    ParameterError
        For a prior outside [0, 1], and an alpha below 0.

    Notes
    -----
    Both ends are rounded outwards. Certainty stays: prior 0 and prior 1 do not move, whatever alpha is.

    Examples
    --------
    >>> interval = posterior_interval(0.5, alpha=1.0)
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.2689, 0.7311)

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Theorem 4.1.
    """
    belief, bound = _belief(prior), not_negative_or_infinite("alpha", alpha)
    if belief in (0.0, 1.0):
        return Bracket(belief, belief)
    shrink = math.exp(-bound)
    if shrink < _TINY:
        return Bracket(0.0, 1.0)
    lower = belief * shrink / (belief * shrink + (1.0 - belief)) if belief * shrink > _TINY else 0.0
    return Bracket(_down(lower), min(1.0, _up(belief / (belief + (1.0 - belief) * shrink))))


def definetti_interval(prior: float, *, guarantee: OrderPrivacy) -> Bracket:
    r"""Where the belief that person i sent report j can go, against every de Finetti attack.

    .. math:: \Pr[\sigma(i) = j] \approx_{\alpha} \Pr[\sigma(i) = j \mid \sigma'], \qquad
              x \approx_{\alpha} y \iff e^{-\alpha} \le x / y \le e^{\alpha}

    The interval is the one of `posterior_interval`, which lies inside the property's.

    Parameters
    ----------
    prior : float in [0, 1]
    guarantee : OrderPrivacy
        For one group of everybody. Drawn from a simulation seed it bounds nothing.

    Raises
    ------
    UnsupportedError
        For smaller groups: a prior that is sure of everything but two people of different groups gains without limit.

    Examples
    --------
    >>> from dovetail.shuffle.uniform import Uniform
    >>> definetti_interval(0.25, guarantee=Uniform(4).guarantee).contains(0.25)
    True

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Property 1.
    """
    groups = guarantee.groups
    if groups is not None and not (isinstance(groups, Groups) and groups.largest == groups.n):
        raise UnsupportedError(
            "Property 1 bounds de Finetti attacks for one group of everybody, and this guarantee has smaller groups; "
            "use posterior_interval, which speaks about an adversary who knows the reports outside a group."
        )
    return posterior_interval(prior, alpha=guarantee.alpha if guarantee.protects else math.inf)


def reidentification_bound(*, epsilon: float, alpha: float, r: int, k: int) -> float:
    r"""Largest chance of picking out the reports of k people among the r of their group.

    .. math:: \Pr[\text{wins}] \le \frac{1}{1 + m e^{-(2 k \epsilon + \alpha)}}, \qquad
              m = \left\lfloor \frac{r - k}{k} \right\rfloor, \quad k < r / 2

    The adversary names k places of the release and wins if more than k/2 of them hold reports of the k people.
    At 2 k epsilon much above alpha the bag of reports leaks, and no shuffler helps.

    Parameters
    ----------
    epsilon : float, at least 0, nats
        Local guarantee of one randomizer that everybody uses; for different randomizers see `exchange_epsilon`.
    alpha : float, at least 0, nats
    r : int, at least 1
        People in the group.
    k : int, 1 .. r
        People looked for; from r/2 on the theorem says nothing and the bound is 1.

    Raises
    ------
    ParameterError
        For losses below 0, and for k outside 1 .. r.

    Notes
    -----
    Rounded up. The paper says "epsilon-LDP" and argues by group privacy. What holds is the exchange of two people's
    reports, which needs a common randomizer: if one person answers in {a, b} and the others in {c, d}, all
    uniformly, then epsilon = 0 and the adversary always wins.

    Examples
    --------
    >>> round(reidentification_bound(epsilon=0.0, alpha=0.0, r=3, k=1), 12)
    0.333333333333

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Theorem 4.2, with a common randomizer.
    """
    local, order = not_negative_or_infinite("epsilon", epsilon), not_negative_or_infinite("alpha", alpha)
    size = whole("r", r, least=1, most=MOST_PEOPLE)
    looked_for = whole("k", k, least=1, most=size)
    if 2 * looked_for >= size:
        return 1.0
    others = (size - looked_for) // looked_for
    loses = _down(others * math.exp(-_up(2 * looked_for * local + order)))
    return min(1.0, _up(1.0 / (1.0 + loses)))


def exchange_epsilon(channels: Iterable[Channel]) -> float:
    r"""The epsilon with which Theorem 4.2 holds when people use different randomizers.

    .. math:: 2 \epsilon = \max_{i, j, x, x', y, y'}
              \log \frac{W_i(y \mid x)\, W_j(y' \mid x')}{W_i(y' \mid x)\, W_j(y \mid x')}

    For one common epsilon-LDP randomizer it is at most epsilon. Infinite where a report betrays its randomizer.

    Parameters
    ----------
    channels : channels with the same reports, at least one
        Each randomizer in use once.

    Examples
    --------
    >>> from dovetail.core.channel import DenseChannel
    >>> coin, other = DenseChannel([[0.5, 0.5, 0, 0]]), DenseChannel([[0, 0, 0.5, 0.5]])
    >>> exchange_epsilon([coin]), exchange_epsilon([coin, other])
    (0.0, inf)

    Source
    ------
    The proof of Theorem 4.2 (A.6): a swap of two people's reports changes the likelihood by this ratio at most.
    """
    steps = [_largest_steps(channel.matrix()) for channel in channels]
    if not steps or len({step.shape for step in steps}) > 1:
        shapes = sorted({step.shape[0] for step in steps})
        raise DataError(f"`channels` must be at least one, with the same reports; got numbers of reports {shapes}.")
    with np.errstate(invalid="ignore"):  # an impossible pair of reports: -inf, even where the other ratio is inf
        pairs = [first + second.T for first in steps for second in steps]
    return max(0.0, max(float(np.nan_to_num(pair, nan=-np.inf, posinf=np.inf).max()) for pair in pairs) / 2.0)


def _belief(prior: float) -> float:
    value = not_negative_or_infinite("prior", prior)
    if value > 1.0:
        raise refuse("prior", "a number in [0, 1]", prior)
    return value


def _largest_steps(rows: Matrix) -> Matrix:
    """D[y, y'] = max over x with W(y | x) > 0 of log W(y | x) / W(y' | x); -inf where there is no such x."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(rows)
        steps = np.where(rows[:, :, None] > 0.0, logs[:, :, None] - logs[:, None, :], -np.inf)
    return np.asarray(steps.max(axis=0))


def _up(value: float) -> float:
    return math.nextafter(value * (1.0 + _SLACK), math.inf)


def _down(value: float) -> float:
    return max(0.0, math.nextafter(value * (1.0 - _SLACK), 0.0))
