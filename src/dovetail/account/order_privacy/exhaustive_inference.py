"""What an adversary learns from the order of a few people, by listing every sequence and every permutation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from itertools import permutations, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import Channel, Matrix
from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.stages import Shuffler
from dovetail.shuffle.sampling.permutations import inverse

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
    r"""What the order adds for an adversary who knows the bag of reports of a group and all reports outside it.

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
