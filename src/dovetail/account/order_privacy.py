"""What the order of a release can tell: posterior odds and re-identification, as functions of alpha."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import permutations, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.certified import Bracket
from dovetail.core.channel import Channel, Matrix
from dovetail.core.checks import MOST_PEOPLE as MOST_PEOPLE_
from dovetail.core.checks import not_negative_or_infinite, refuse, whole
from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.sampling.permutations import inverse

_SLACK = 2.0**-49  # eight times the relative rounding of a handful of operations
_TINY = 1e-300  # below it doubles lose digits; [0, 1] is the same interval to any reader


def posterior_interval(prior: float, *, alpha: float) -> Bracket:
    r"""Interval of the posterior belief in an event about one person, given the order.

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
    r"""Interval of the posterior belief that person i sent report j, against every de Finetti attack.

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
    size = whole("r", r, least=1, most=MOST_PEOPLE_)
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


# The alpha of a shuffler for other groups than those that it was fitted for.


def exact_alpha(shuffler: Shuffler, groups: Groups) -> float:
    r"""Exact alpha of the order for other groups than those that the shuffler was fitted for.

    .. math:: \alpha'(G') = \theta \cdot \Delta(s^{-1}(G'))

    for one Mallows order (`Mallows.single`), exactly. With components and atoms it is infinite for a group that
    meets two components, exact for unions of atoms and an upper bound for the others; for noisy sorts and planar
    noise it is an upper bound throughout. The uniform shuffle keeps alpha = 0 for everybody, the uniform shuffle
    inside groups for every group inside one of them and nothing for the others, the identity nothing.

    Parameters
    ----------
    shuffler : Shuffler
    groups : Groups of the same people

    Raises
    ------
    UnsupportedError
        For shufflers for which no theorem gives it.

    Notes
    -----
    Rounded up to a double.

    Examples
    --------
    >>> from dovetail.shuffle.mallows import Mallows
    >>> shuffler = Mallows.single(Groups.from_labels([30, 31, 32, 33], radius=1), alpha=2.0)
    >>> exact_alpha(shuffler, Groups.from_lists([[0, 3]], 4))
    3.3333333333333335

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Theorem 4.4; exact with the exact Kendall sensitivity.
    """
    if shuffler.n != groups.n:
        raise DataError(f"`groups` must be of {shuffler.n:,} people, as the shuffler, got {groups.n:,}.")
    return shuffler.exact_alpha(groups) if len(groups) else 0.0


# The alpha of several releases of one sequence, and of a mixture of shufflers.


def compose_releases(shufflers: Iterable[Shuffler], groups: Groups) -> OrderPrivacy:
    """The promise of independent releases of one sequence by different shufflers, for one common grouping.

    Each release is evaluated on `groups` and the alphas add. One permutation applied to whole records is one release;
    one permutation for each column is a release for each column.

    Source
    ------
    Meehan et al. (2022), Theorem A.2, by pointwise ratios (its proof takes every event for a product).
    """
    source = "Theorem 4.4 for one Mallows order, or invariance of a uniform shuffle"
    each = [OrderPrivacy(exact_alpha(shuffler, groups), groups, source=source) for shuffler in shufflers]
    if not each:
        return OrderPrivacy(0.0, groups, source="nothing is released")
    return reduce(OrderPrivacy.compose, each)


def mixture(guarantees: Iterable[OrderPrivacy]) -> OrderPrivacy:
    """The promise of a release by one of these mechanisms, drawn at random: the largest alpha (Lemma 2).

    >>> from dovetail.shuffle.identity import Identity
    >>> from dovetail.shuffle.uniform import Uniform
    >>> mixture([Uniform(3).guarantee, Identity(3).guarantee]).alpha
    inf

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Lemma 2.
    """
    each = list(guarantees)
    if not each or any(one.groups != each[0].groups for one in each):
        raise UnsupportedError(
            "Lemma 2 mixes mechanisms for the same groups; evaluate each on a common grouping (exact_alpha) first."
        )
    return OrderPrivacy(
        max(one.alpha for one in each),
        each[0].groups,
        source="mixture of " + ", ".join(f"[{one.source}]" for one in each),
        caveats=tuple(dict.fromkeys(caveat for one in each for caveat in one.caveats)),
    )


# What an adversary learns from the order of a few people, by listing every sequence and every permutation.


Beliefs = NDArray[np.float64]  # (people, values, sequences of reports)

MOST_PEOPLE = 8
MOST_CELLS = 4_000_000


def inferential_loss(channel: Channel, *, prior: ArrayLike, shuffler: Shuffler) -> float:
    r"""Local inferential privacy loss of the released order: how far odds about one value can move.

    .. math:: L = \max_{i, a, b, z} \log \frac{\Pr[z \mid x_i = a]}{\Pr[z \mid x_i = b]}

    The adversary knows the prior alone. The bag of reports is part of what is released, so this can exceed every
    alpha: for what the order adds see `informed_loss`.

    Parameters
    ----------
    channel : Channel of k values
        The randomizer that everybody uses.
    prior : float array (k, .., k), one axis per person, sums to 1
        Joint law of everybody's values; people may be correlated.
    shuffler : Shuffler of n people

    Raises
    ------
    UnsupportedError
        When the sequences and permutations are too many to list.

    Notes
    -----
    Infinite where a release rules a value out. O(n! m^n + k^n m^n + m^{2n}) for m reports.

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Definition A.1, with the release for y.
    """
    beliefs = _beliefs(channel, prior, shuffler.n)
    law = _release_law(shuffler, channel.shape[1])
    return _largest_ratio(beliefs @ law, beliefs.sum(axis=-1))


def informed_loss(channel: Channel, *, prior: ArrayLike, shuffler: Shuffler, group: ArrayLike) -> float:
    r"""Loss of the order to an adversary who knows the bag of reports of a group and all reports outside it.

    .. math:: \max_{i, a, b, z} \log \frac{\Pr[z \mid x_i = a, \{y_G\}, y_{\bar G}]}
              {\Pr[z \mid x_i = b, \{y_G\}, y_{\bar G}]} \le \alpha

    Theorem 4.1 promises the bound for every prior. Parameters as in `inferential_loss`; `group` is the set of people.
    """
    n, reports = shuffler.n, channel.shape[1]
    inside = np.unique(np.asarray(group, dtype=np.int64))
    if inside.size and not 0 <= inside[0] <= inside[-1] < n:
        raise DataError(f"`group` must hold people 0..{n - 1}, got {inside.tolist()}.")
    beliefs, law = _beliefs(channel, prior, n), _release_law(shuffler, reports)
    known = _sequences(reports, n)
    known[:, inside] = np.sort(known[:, inside], axis=1)
    case = np.unique(known, axis=0, return_inverse=True)[1].reshape(-1)
    each = (np.flatnonzero(case == number) for number in range(case.max() + 1))
    return max(_largest_ratio(beliefs[..., own] @ law[own], beliefs[..., own].sum(axis=-1)) for own in each)


@dataclass(frozen=True, eq=False)
class TwoOrders:
    r"""Two orders and a release that tells them apart as well as any: Property 2's adversary.

    .. math:: \log \frac{\Pr[\sigma = \mathrm{rare} \mid \mathrm{seen}]}{\Pr[\sigma = \mathrm{rare}]}
              = R - \log(1 + t\, (e^R - 1)), \qquad R = \log \frac{\Pr[\mathrm{seen} \mid \mathrm{rare}]}
              {\Pr[\mathrm{seen} \mid \mathrm{common}]}

    for prior mass t on the rare order and 1 - t on the common one. As t falls to 0 the gain rises to R, so a
    mechanism that blocks every de Finetti attack at alpha must be (alpha, everybody)-private. With t = 1/2, as the
    paper has it, the gain is at most log 2, and nothing follows.

    Parameters
    ----------
    rare, common, seen : int arrays (n,)
        Report rare[i] or common[i] is person i's; place i of the release holds report seen[i].
    log_ratio : float, nats
        R: the exact alpha for one group of everybody.
    """

    rare: Permutation
    common: Permutation
    seen: Permutation
    log_ratio: float

    def gain(self, prior: float) -> float:
        """Log ratio of the posterior to the prior of the rare order, for prior mass in (0, 1] on it; nats."""
        if math.isinf(self.log_ratio):
            return -math.log(prior)
        return self.log_ratio - math.log1p(prior * math.expm1(self.log_ratio))


def two_orders(shuffler: Shuffler) -> TwoOrders:
    """The worst pair of orders for this shuffler of few people.

    >>> from dovetail.shuffle.identity import Identity
    >>> two_orders(Identity(3)).gain(0.01) > 4
    True

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Property 2, with another prior than its proof.
    """
    table = _permutations(shuffler.n)
    weights = np.array([shuffler.log_weight(row) for row in table])
    likely, unlikely = table[weights.argmax()], table[weights.argmin()]
    rare = unlikely[inverse(likely)]  # seen = rare after likely = common after unlikely
    ratio = float(weights.max() - weights.min())
    return TwoOrders(rare, np.arange(shuffler.n, dtype=np.int64), unlikely, ratio)


def _permutations(n: int) -> NDArray[np.int64]:
    """All permutations (n!, n)."""
    if n > MOST_PEOPLE:
        raise UnsupportedError(
            f"Too many orders to enumerate: at most {MOST_PEOPLE} people, got {n:,}; use exact_alpha."
        )
    return np.array(list(permutations(range(n))), dtype=np.int64).reshape(-1, n)


def _sequences(symbols: int, n: int) -> NDArray[np.int64]:
    """All sequences (symbols^n, n), in lexicographic order."""
    return np.array(list(product(range(symbols), repeat=n)), dtype=np.int64).reshape(-1, n)


def _beliefs(channel: Channel, prior: ArrayLike, n: int) -> Beliefs:
    """Pr[x_i = a, y] for each person i, value a and sequence of reports y."""
    values, reports = channel.shape
    if max(values, reports) ** n * reports**n > MOST_CELLS:
        raise UnsupportedError(
            f"Too many sequences to enumerate: {n} people with {values} values and {reports} reports need more than "
            f"{MOST_CELLS:,} cells; use posterior_interval, which bounds the loss for every prior."
        )
    law = np.asarray(prior, dtype=np.float64)
    if law.shape != (values,) * n or not (law >= 0.0).all() or abs(law.sum() - 1.0) > 1e-9:
        raise DataError(
            f"`prior` must be probabilities of shape {(values,) * n} that sum to 1, got shape {law.shape} "
            f"with sum {law.sum():.6g}."
        )
    batch = reduce(lambda one, other: np.asarray(np.kron(one, other)), [channel.matrix()] * n)
    joint = law.reshape(-1, 1) * batch
    held = _sequences(values, n).T[:, None, :] == np.arange(values)[None, :, None]
    return np.asarray(held.astype(np.float64) @ joint)


def _release_law(shuffler: Shuffler, reports: int) -> Matrix:
    """Pr[z | y] for all sequences y and z (reports^n, reports^n)."""
    n = shuffler.n
    table, sequences = _permutations(n), _sequences(reports, n)
    place = reports ** np.arange(n - 1, -1, -1)
    result = np.zeros((len(sequences), len(sequences)))
    for permutation in table:
        weight = math.exp(shuffler.log_weight(permutation))
        result[np.arange(len(sequences)), sequences[:, permutation] @ place] += weight
    return result


def _largest_ratio(seen: Beliefs, before: NDArray[np.float64]) -> float:
    """max over i, a, b, z of log Pr[z | x_i = a] / Pr[z | x_i = b] from Pr[x_i = a, z] and Pr[x_i = a]."""
    losses = [0.0]
    for joint, held in zip(seen, before, strict=True):
        likelihood = joint[held > 0.0] / held[held > 0.0, None]
        likelihood = likelihood[:, likelihood.max(axis=0, initial=0.0) > 0.0]
        if likelihood.size:
            with np.errstate(divide="ignore"):
                losses.append(float(np.log(likelihood.max(axis=0) / likelihood.min(axis=0)).max()))
    return max(losses)
