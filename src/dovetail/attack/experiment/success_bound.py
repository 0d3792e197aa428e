"""The most that any attacker can reach who knows the shares of values given the public columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.account.accountant import Accountant
from dovetail.account.closed_forms import guess_bounds
from dovetail.attack.experiment.run_attack import People, check_people, check_values
from dovetail.core.channel import Channel, DenseChannel, KRRChannel
from dovetail.core.checks import refuse, share, whole
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.stages import FrequencyRandomizer, Labels, NumericRandomizer, Shuffler
from dovetail.leak.adversaries import known_others_leakage
from dovetail.leak.exact import IndependentReports
from dovetail.leak.query import listed_channel, people_in_reach
from dovetail.shuffle.fitting.groups import Groups

Shares = NDArray[np.float64]  # (classes, k) or (m,)

ONE_REPORT = "Bayes vulnerability of one report"
LOCAL = "local epsilon of one report"
SHUFFLED = "Bayes vulnerability of the shuffled block"
CENTRAL = "central guarantee of the shuffled block"
PROMISED = "central guarantee of the batch"
ORDER = "order privacy alpha on top of the central guarantee of the group"
MOST_LONELY = 0.5
MOST_SIZES = 16  # of batches for which a central guarantee is asked
OWN_LAW_FROM = 4000  # people: the randomizer's own law takes long for fewer, and that of any randomizer serves
MOST_PAIRS = 3_000  # of blocks and classes whose best guess is summed exactly
MOST_LAW = 10_000  # cells of a channel for that
BLOCK_WORK = 200_000
MOST_JOINT = 100_000_000  # cells of all classes' joint laws
DELTA = 1e-6
_UP = 1.0 + 1e-12


@dataclass(frozen=True)
class SuccessBound:
    """Upper bound on the average success of every attack.

    Parameters
    ----------
    value : float
        Mean over the targets of the best possible guess.
    blind : float
        Of the best guess from public data alone.
    source : str
        The theorems that decide, most targets first.
    exact : bool
        Whether `value` is what the best of all guesses reaches, not only a bound.

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
    exact: bool = False

    @property
    def told(self) -> str:
        """The theorems, and whether the value is exact."""
        return f"{self.source}; exact: the best of all attacks reaches it" if self.exact else self.source

    def __post_init__(self) -> None:
        for name, chance in (("value", self.value), ("blind", self.blind)):
            if not 0.0 <= chance <= 1.0:
                raise refuse(name, "a probability", chance)


def success_bound(
    randomizer: FrequencyRandomizer | NumericRandomizer,
    shuffler: Shuffler,
    values: ArrayLike,
    *,
    k: int | None = None,
    targets: ArrayLike,
    known: ArrayLike,
    promise: CentralDP | Missing | None = None,
    delta: float = DELTA,
) -> SuccessBound:
    r"""Bayes-optimal success against `targets` of attackers to whom people of one public class are alike.

    .. math:: \frac{1}{m} \sum_i \min\left\{ \sum_y \max_x \pi_{t(i) x} W(y \mid x),\;
              V_i(\pi_{t(1)}, \ldots),\; G(\pi_{t(i)}, \epsilon_{m_i}, \delta),\;
              \frac{e^\alpha g_i}{1 + (e^\alpha - 1) g_i} \right\}

    pi_t are the shares of the values among the targets of public class t. One report tells the first term, whatever
    the shuffle; a block that is mixed evenly the second, summed over its histograms, and, where that is out of reach,
    the third, `guess_bound` at its central guarantee; the order inside a group of m_i people multiplies the odds of
    the third, g_i, by e^alpha at most.

    Parameters
    ----------
    values : int array (n,), codes 0..k-1
        The truth, for the shares.
    k : int, optional
        Of a randomizer of numbers: the codes say which part of the range a number is in.
    targets : int array (m,)
    known : int array (n,)
        Number of everybody's public class: people of whom the attacker knows the same.
    promise : CentralDP or Missing, optional
        Of a batch whose answers more than the randomizer hides, such as dummies: then it takes the place of the
        blocks and the order. Missing where nothing is promised.
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
    number = randomizer.k if k is None and isinstance(randomizer, FrequencyRandomizer) else whole("k", k, least=2)
    held = check_values(values, number, shuffler)
    who = check_people("targets", np.asarray(targets), n=held.size)
    classes = np.asarray(known)
    if classes.shape != held.shape or classes.dtype.kind not in "iu":
        raise DataError(f"`known` must be a class for each of {held.size:,} people, got shape {classes.shape}.")
    classes = np.unique(classes, return_inverse=True)[1]
    seen, mine = np.unique(classes[who], return_inverse=True)
    counts = np.zeros((len(seen), number))
    np.add.at(counts, (mine, held[who]), 1.0)
    sizes = counts.sum(axis=1)
    lonely = float((sizes[mine] == 1).mean())
    if lonely > MOST_LONELY:
        raise UnsupportedError(
            f"{lonely:.0%} of the targets are the only ones with their public data, so no law of their values given "
            "these is known"
        )
    scene = _Scene(randomizer, shuffler, who, mine, counts / sizes[:, None], classes, seen, held, delta, promise)
    candidates = list(scene.candidates())
    names = [name for name, _ in candidates]
    table = np.array([bounds for _, bounds in candidates])
    best = table.argmin(axis=0)
    decide = [
        place for place in np.argsort(-np.bincount(best, minlength=len(names))) if (best == place).mean() >= 0.01
    ]
    value = float(min(1.0, table.min(axis=0).mean() * _UP))
    blind = float(counts.max(axis=1).sum() / who.size)
    return SuccessBound(value, blind, "; ".join(names[place] for place in decide), exact=scene.exact)


@dataclass(frozen=True, eq=False)
class _Scene:
    """Targets (m,) with the row (m,) of their class in the shares (classes, k); everybody's class (n,)."""

    randomizer: FrequencyRandomizer | NumericRandomizer
    shuffler: Shuffler
    targets: People
    mine: Labels
    shares: Shares
    classes: Labels
    seen: Labels
    values: Labels
    delta: float
    promise: CentralDP | Missing | None

    def candidates(self) -> Iterator[tuple[str, Shares]]:
        """Each bound that applies, for every target (m,)."""
        yield ONE_REPORT if self._listed else LOCAL, np.minimum(1.0, self._one_report()[self.mine])
        if isinstance(self.promise, CentralDP):
            hidden = guess_bounds(self.shares, epsilon=self.promise.epsilon, delta=self.promise.delta)
            yield PROMISED, hidden[self.mine]
        if self.promise is not None:
            return
        blocks = self.shuffler.uniform_blocks()
        alike = self.shuffler.exchangeable_blocks()
        if alike is not None and self.shuffler.acting.moves_reports:
            block = np.unique(alike, return_inverse=True)[1]
            if blocks is not None:
                yield SHUFFLED, self._in_blocks[0]
            if not self.exact:
                yield CENTRAL, self._hidden_among(np.bincount(block)[block][self.targets])
        if blocks is not None:
            return
        order = self.shuffler.guarantee
        if order.alpha < np.inf:
            bag = self._hidden_among(largest_groups(order.groups, self.shuffler.n)[self.targets])
            yield ORDER, np.minimum(1.0, bag / (bag + (1.0 - bag) * np.exp(-order.alpha)) * _UP)

    @cached_property
    def channel(self) -> Channel | None:
        """Law of a report given each value; None where reports are numbers, or too many to be listed."""
        return listed_channel(self.randomizer) if isinstance(self.randomizer, FrequencyRandomizer) else None

    @property
    def exact(self) -> bool:
        """True if everybody's best guess is known, and not only bounded."""
        return self.promise is None and bool(self._in_blocks[1].all())

    @property
    def _listed(self) -> bool:
        """True if the best guess from one report is summed over all reports, not only bounded."""
        channel = self.channel
        return channel is not None and (
            isinstance(channel, KRRChannel) or self.shares.size * channel.shape[1] <= MOST_JOINT
        )

    def _one_report(self) -> Shares:
        """Of each class (classes,): the best guess from a report whose sender is known."""
        channel, shares = self.channel, self.shares
        if isinstance(channel, KRRChannel):
            return _krr_guess(shares, channel)
        if channel is None or not self._listed:
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
        return local if n == 1 else Accountant(local, n=n).epsilon(self.delta)

    @cached_property
    def _in_blocks(self) -> tuple[Shares, NDArray[np.bool_]]:
        """The best guess (m,) in a block that is mixed evenly, 1 if out of reach, and whether everybody is counted.

        The others' reports are independent draws of their classes' laws. Of a block with too many histograms, some of
        the others are left out, as if their reports were known: then it is a bound.
        """
        found, exact = np.ones(len(self.targets)), np.zeros(len(self.targets), dtype=bool)
        blocks, channel = self.shuffler.uniform_blocks(), self.channel
        if blocks is None or channel is None or channel.shape[0] * channel.shape[1] > MOST_LAW:
            return found, exact
        law = merge_kinds(np.asarray(channel.matrix()))
        block = np.unique(blocks, return_inverse=True)[1]
        shares, alike = np.unique(self.everybody, axis=0, return_inverse=True)
        classes = alike.ravel()[self.classes]  # those with the same shares are one: what is computed is of shares
        wide = len(shares)
        pairs, number = np.unique(block * wide + classes, return_counts=True)
        ends = np.searchsorted(pairs, np.arange(block.max() + 2) * wide)
        mine = block[self.targets] * wide + classes[self.targets]
        wanted, where = np.unique(mine, return_inverse=True)
        known: dict[tuple[int, bytes, bytes], tuple[float, bool]] = {}
        values, full = np.ones(len(wanted)), np.zeros(len(wanted), dtype=bool)
        for row, pair in enumerate(wanted):
            here = slice(ends[pair // wide], ends[pair // wide + 1])
            who, own = pairs[here] % wide, int(pair % wide)
            others = number[here] - (who == own)
            key = (own, who.tobytes(), others.tobytes())
            if len(known) > MOST_PAIRS:
                return found, exact
            if key not in known:
                known[key] = _beside(law, shares[own], shares[who], others)
            values[row], full[row] = known[key]
        return values[where.ravel()], full[where.ravel()]

    @cached_property
    def everybody(self) -> Shares:
        """Shares (all classes, k): among the targets of a class, or among its people where there is no target."""
        counts = np.zeros((int(self.classes.max()) + 1, self.shares.shape[1]))
        np.add.at(counts, (self.classes, self.values), 1.0)
        shares: Shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        shares[self.seen] = self.shares
        return shares


def _beside(law: Shares, prior: Shares, shares: Shares, others: Labels) -> tuple[float, bool]:
    """The best guess of a value with this prior (k,), beside `others` (classes,) with these shares (classes, k)."""
    people = int(others.sum())
    reach = people_in_reach(DenseChannel(law), people + 1, work=BLOCK_WORK) - 1
    kept = np.minimum(others, np.maximum(0, reach - (np.cumsum(others) - others)))
    # sums without a library of linear algebra, whose last digits differ from processor to processor
    sent = (shares[:, :, None] * law).sum(axis=1)
    groups = [IndependentReports(int(count), row) for row, count in zip(sent, kept, strict=True) if count]
    joint = prior[:, None] * law
    try:
        more = known_others_leakage(joint, groups).upper if groups else float((joint.max(axis=0)).sum() - prior.max())
    except UnsupportedError:
        return 1.0, False
    return min(1.0, float(prior.max()) + more), int(kept.sum()) == people


def merge_kinds(law: Shares) -> Shares:
    """The law (k, kinds) with reports added up that say the same."""
    seen = law[:, law.sum(axis=0) > 0.0]
    _, kind = np.unique(np.round(seen / seen.sum(axis=0), 12), axis=1, return_inverse=True)
    return np.array([np.bincount(kind.ravel(), row) for row in seen])


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
