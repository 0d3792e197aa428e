"""The most that any attacker can reach who knows the shares of values given the public columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.account.accountant import Accountant
from dovetail.account.clones import ClonePair
from dovetail.account.closed_forms import guess_bounds
from dovetail.attack.experiment.run_attack import People, check_people, check_values
from dovetail.core.channel import KRRChannel
from dovetail.core.checks import refuse, share
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, Labels, Shuffler
from dovetail.leak.query import listed_channel, people_in_reach
from dovetail.leak.vulnerability import vulnerability
from dovetail.shuffle.fitting.groups import Groups

Shares = NDArray[np.float64]  # (classes, k) or (m,)

ONE_REPORT = "Bayes vulnerability of one report"
SHUFFLED = "Bayes vulnerability of the shuffled block"
CENTRAL = "central guarantee of the shuffled block"
ORDER = "order privacy alpha on top of the central guarantee of the group"
MOST_LONELY = 0.5
MOST_SIZES = 16  # of batches for which a central guarantee is asked
OWN_LAW_FROM = 4000  # people: the randomizer's own law takes long for fewer, and stronger clones serve
MOST_BLOCKS = 100  # whose vulnerability is summed exactly
BLOCK_WORK = 200_000
MOST_JOINT = 100_000_000  # cells of all classes' joint laws
DELTA = 1e-6
_UP = 1.0 + 1e-12


@dataclass(frozen=True)
class SuccessBound:
    """What no attack can exceed on average.

    Parameters
    ----------
    value : float
        Mean over the targets of the best possible guess.
    blind : float
        Of the best guess from public data alone.
    source : str
        The theorems that decide, most targets first.

    Raises
    ------
    ParameterError
        For a value or a blind guess that is no probability.

    Examples
    --------
    >>> SuccessBound(value=0.88, blind=0.75, source="Bayes vulnerability of one report").value
    0.88
    """

    value: float
    blind: float
    source: str

    def __post_init__(self) -> None:
        for name, chance in (("value", self.value), ("blind", self.blind)):
            if not 0.0 <= chance <= 1.0:
                raise refuse(name, "a probability", chance)


def success_bound(
    randomizer: FrequencyRandomizer,
    shuffler: Shuffler,
    values: ArrayLike,
    *,
    targets: ArrayLike,
    known: ArrayLike,
    delta: float = DELTA,
) -> SuccessBound:
    r"""Bayes-optimal success against `targets` of attackers to whom people of one public class are alike.

    .. math:: \frac{1}{m} \sum_i \min\left\{ \sum_y \max_x \pi_{t(i) x} W(y \mid x),\;
              V_{NS}(\pi_{t(i)}, m_i),\; G(\pi_{t(i)}, \epsilon_{m_i}, \delta),\;
              \frac{e^\alpha g_i}{1 + (e^\alpha - 1) g_i} \right\}

    pi_t are the shares of the values among the targets of public class t. One report tells the first term, whatever
    the shuffle; a block of m_i people that is mixed evenly the second, where all of them are of one class, and the
    third, `guess_bound` at its central guarantee; the order inside a group of m_i people multiplies the odds of the
    third, g_i, by e^alpha at most.

    Parameters
    ----------
    values : int array (n,), codes 0..k-1
        The truth, for the shares.
    targets : int array (m,)
    known : int array (n,)
        Number of everybody's public class: people of whom the attacker knows the same.
    delta : float in (0, 1)
        Of the central guarantees.

    Raises
    ------
    UnsupportedError
        Where most targets are the only ones of their class: no law of their values given public data is known.

    Notes
    -----
    Holds on average over tables whose values are independent given the public classes. On this very table no rule
    that answers by class and own report exceeds the first term, because its shares are those of the targets.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> from dovetail.shuffle.identity import Identity
    >>> table = {"values": [0, 0, 0, 1] * 25, "targets": range(100), "known": [0] * 100}
    >>> found = success_bound(KRR(k=2, epsilon=2.0), Identity(100), **table)
    >>> round(found.value, 4), found.blind, found.source
    (0.8808, 0.75, 'Bayes vulnerability of one report')

    Source
    ------
    docs/theory/bounds-on-attacks.md
    """
    share("delta", delta)
    held = check_values(values, randomizer.k, shuffler)
    who = check_people("targets", np.asarray(targets), n=held.size)
    classes = np.asarray(known)
    if classes.shape != held.shape or classes.dtype.kind not in "iu":
        raise DataError(f"`known` must be a class for each of {held.size:,} people, got shape {classes.shape}.")
    classes = np.unique(classes, return_inverse=True)[1]
    seen, mine = np.unique(classes[who], return_inverse=True)
    counts = np.zeros((len(seen), randomizer.k))
    np.add.at(counts, (mine, held[who]), 1.0)
    sizes = counts.sum(axis=1)
    lonely = float((sizes[mine] == 1).mean())
    if lonely > MOST_LONELY:
        raise UnsupportedError(
            f"{lonely:.0%} of the targets are the only ones with their public data, so no law of their values given "
            "these is known"
        )
    scene = _Scene(randomizer, shuffler, who, mine, counts / sizes[:, None], classes, seen, delta)
    names = [name for name, _ in scene.candidates()]
    table = np.array([bounds for _, bounds in scene.candidates()])
    best = table.argmin(axis=0)
    decide = [
        place for place in np.argsort(-np.bincount(best, minlength=len(names))) if (best == place).mean() >= 0.01
    ]
    value = float(min(1.0, table.min(axis=0).mean() * _UP))
    blind = float(counts.max(axis=1).sum() / who.size)
    return SuccessBound(value, blind, "; ".join(names[place] for place in decide))


@dataclass(frozen=True, eq=False)
class _Scene:
    """Targets (m,) with the row (m,) of their class in the shares (classes, k); everybody's class (n,)."""

    randomizer: FrequencyRandomizer
    shuffler: Shuffler
    targets: People
    mine: Labels
    shares: Shares
    classes: Labels
    seen: Labels
    delta: float

    def candidates(self) -> Iterator[tuple[str, Shares]]:
        """Each bound that applies, for every target (m,)."""
        yield ONE_REPORT, np.minimum(1.0, self._one_report()[self.mine])
        blocks = self.shuffler.uniform_blocks()
        alike = self.shuffler.exchangeable_blocks()
        if alike is not None and self.shuffler.acting.moves_reports:
            block = np.unique(alike, return_inverse=True)[1]
            if blocks is not None:
                yield SHUFFLED, self._shuffled(block)
            yield CENTRAL, self._hidden_among(np.bincount(block)[block][self.targets])
        if blocks is not None:
            return
        order = self.shuffler.guarantee
        if order.alpha < np.inf:
            bag = self._hidden_among(largest_groups(order.groups, self.shuffler.n)[self.targets])
            yield ORDER, np.minimum(1.0, bag / (bag + (1.0 - bag) * np.exp(-order.alpha)) * _UP)

    def _one_report(self) -> Shares:
        """Of each class (classes,): the best guess from a report whose sender is known."""
        channel, shares = listed_channel(self.randomizer), self.shares
        if isinstance(channel, KRRChannel):
            return _krr_guess(shares, channel)
        if channel is None or shares.size * channel.shape[1] > MOST_JOINT:
            return guess_bounds(shares, epsilon=self.randomizer.guarantee.epsilon)
        law = np.asarray(channel.matrix())
        return np.array([(row[:, None] * law).max(axis=0).sum() for row in shares]) * _UP

    def _hidden_among(self, sizes: Labels) -> Shares:
        """The best guess (m,) of each target who is shuffled uniformly among `sizes` (m,) people."""
        found = np.ones(len(sizes))
        steps = np.unique(np.quantile(sizes, np.linspace(0.0, 1.0, MOST_SIZES), method="lower"))
        floor = steps[np.searchsorted(steps, sizes, side="right") - 1]  # fewer people hide less
        for size in steps:
            here = floor == size
            epsilon = self._central_epsilon(int(size))
            found[here] = guess_bounds(self.shares, epsilon=epsilon, delta=self.delta)[self.mine[here]]
        return found

    def _central_epsilon(self, n: int) -> float:
        if n >= OWN_LAW_FROM:
            return Accountant(self.randomizer, n=n).epsilon(self.delta)
        local = self.randomizer.guarantee.epsilon
        return local if n == 1 else min(local, ClonePair(local, n).epsilon(self.delta).upper)

    def _shuffled(self, block: Labels) -> Shares:
        """The exact sum (m,) where everybody in a target's block is of her class; 1 elsewhere."""
        found, channel = np.ones(len(self.targets)), listed_channel(self.randomizer)
        least, most = np.full(block.max() + 1, self.classes.max() + 1), np.full(block.max() + 1, -1)
        np.minimum.at(least, block, self.classes)
        np.maximum.at(most, block, self.classes)
        alike, size = least == most, np.bincount(block)
        mine = block[self.targets]
        wanted = np.unique(mine[alike[mine]])
        if channel is None or len(wanted) > MOST_BLOCKS:
            return found
        for one in wanted:
            here, row = mine == one, self.shares[int(np.searchsorted(self.seen, least[one]))]
            m = people_in_reach(channel, int(size[one]), work=BLOCK_WORK)
            try:
                seen = vulnerability(channel, n=m, prior=row)
            except UnsupportedError:
                continue
            found[here] = min(1.0, seen.randomized_shuffled_bracket.upper)
        return found


def largest_groups(groups: object, n: int) -> Labels:
    """Size (n,) of the largest group that holds each person; None stands for one group of everybody."""
    if not isinstance(groups, Groups):
        return np.full(n, n)
    found = np.ones(n, dtype=np.int64)
    for row in np.argsort(groups.sizes, kind="stable"):
        found[groups.members(int(row))] = groups.sizes[row]
    return found


def _krr_guess(shares: Shares, channel: KRRChannel) -> Shares:
    """Sum over y of max over x of pi_x W(y | x), for k-ary randomized response."""
    keep, lie = channel.keep / channel.total, channel.lie / channel.total
    top = np.sort(shares, axis=1)[:, -2:]
    first = shares.argmax(axis=1)
    rivals = np.repeat(top[:, 1:], shares.shape[1], axis=1)
    rivals[np.arange(len(shares)), first] = top[:, 0]
    return np.asarray(np.maximum(keep * shares, lie * rivals).sum(axis=1) * _UP)
