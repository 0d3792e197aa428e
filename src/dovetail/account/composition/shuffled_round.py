"""A shuffled collection that is repeated, and what several of them add up to before any theorem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail.account.clones.approximate import total_variation
from dovetail.account.clones.stronger_clones import ClonePair, Kind
from dovetail.account.composition.mechanism_curve import MechanismCurve
from dovetail.account.mechanism_law import Mechanism, local_epsilon
from dovetail.core.checks import privacy_budget, refuse, share, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import Randomizer

MOST_ROUNDS = 10**9

Pairs = Sequence[tuple[ClonePair, int]]
Laws = Sequence[tuple[ClonePair | MechanismCurve, int]]


@dataclass(frozen=True)
class ShuffledRound:
    r"""One shuffled collection, or several alike, of the same people with fresh randomness and a fresh shuffle.

    The randomizer of a round may depend on everything released before, as long as it is one and the same for all
    people inside the round ("stronger clones"), or keeps the promise given the reports before ("clones").

    Parameters
    ----------
    epsilon0 : float, above 0, at most 700, nats
    n : int, 1 .. 1e12
        Honest reports in the batch of this round.
    times : int, at least 1
    kind : "stronger clones" or "clones"
        Default "stronger clones" for pure randomizers; with delta0 only "clones" is proved, and is the default.
    delta0 : float, at least 0, below 1
        What one report's pure guarantee may fail by.
    mechanism : Randomizer or Channel, optional
        What everybody runs, where that is known when the guarantee is stated: its own law may promise more. Which
        mechanism, n and how many rounds must not depend on earlier outputs then; what people are asked may. See `of`.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    UnsupportedError
        For "stronger clones" with a delta0, which no theorem covers.

    Examples
    --------
    >>> ShuffledRound(1.0, 10_000).pair.kind, ShuffledRound(1.0, 10_000, delta0=1e-15).pair.kind
    ('stronger clones', 'clones')
    """

    epsilon0: float
    n: int
    times: int = field(default=1, kw_only=True)
    kind: Kind | None = field(default=None, kw_only=True)
    delta0: float = field(default=0.0, kw_only=True)
    mechanism: Mechanism | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", whole("times", self.times, least=1, most=MOST_ROUNDS))
        object.__setattr__(self, "epsilon0", privacy_budget("epsilon0", self.epsilon0))
        object.__setattr__(self, "delta0", share("delta0", self.delta0))
        if self.mechanism is not None:
            _checked(self.mechanism)
        if self.kind is not None and not isinstance(self.kind, str):
            raise refuse("kind", '"stronger clones" or "clones"', self.kind)
        if self.delta0 > 0.0 and self.kind == "stronger clones":
            raise UnsupportedError(
                "Stronger clones are proved for pure local privacy (docs/theory/stronger-clones.md); "
                'with `delta0` above 0 use kind="clones".'
            )
        if self.mechanism is not None and not self._plain:
            raise UnsupportedError(
                "A mechanism's own law is proved for pure local privacy and one fixed randomizer in a round, with "
                "its own epsilon0; leave `mechanism` out for every other round."
            )
        object.__setattr__(self, "n", self.pair.n)

    @classmethod
    def of(cls, mechanism: Mechanism, n: int, *, times: int = 1) -> ShuffledRound:
        """Rounds of this mechanism, judged by its own law where it has one.

        Examples
        --------
        >>> from dovetail.randomize.krr import KRR
        >>> ShuffledRound.of(KRR(k=10, epsilon=1.0), 10_000, times=5).epsilon0
        1.0
        """
        _checked(mechanism)
        if isinstance(mechanism, Randomizer) and mechanism.guarantee.delta > 0.0:
            return cls(mechanism.guarantee.epsilon, n, times=times, delta0=mechanism.guarantee.delta)
        return cls(local_epsilon(mechanism), n, times=times, mechanism=mechanism)

    @property
    def dominating(self) -> ClonePair | MechanismCurve:
        """What dominates one such round, but for delta0."""
        return self.pair if self.mechanism is None else MechanismCurve(self.mechanism, self.n)

    @property
    def _plain(self) -> bool:
        """Whether nothing but the mechanism and n was said."""
        return (
            self.mechanism is not None
            and self.kind != "clones"
            and self.delta0 == 0.0
            and self.epsilon0 == local_epsilon(self.mechanism)
            and not (isinstance(self.mechanism, Randomizer) and self.mechanism.guarantee.delta > 0.0)
        )

    @property
    def pair(self) -> ClonePair:
        """The pair that dominates one such round, but for delta0."""
        return ClonePair(self.epsilon0, self.n, self.kind or ("clones" if self.delta0 else "stronger clones"))


def _checked(mechanism: object) -> None:
    if not isinstance(mechanism, Mechanism):
        raise refuse("mechanism", "a randomizer, a channel or several questions", mechanism)


def distinct_pairs(parts: Sequence[ShuffledRound]) -> Pairs:
    """Each pair once, with the number of its rounds."""
    count: Counter[ClonePair] = Counter()
    for part in parts:
        count[part.pair] += part.times
    return list(count.items())


def distinct_laws(parts: Sequence[ShuffledRound]) -> Laws:
    """What dominates each kind of round, once, with the number of its rounds."""
    count: Counter[ClonePair | MechanismCurve] = Counter()
    for part in parts:
        count[part.dominating] += part.times
    return list(count.items())


def total_slack(parts: Sequence[ShuffledRound]) -> float:
    """How far all rounds together may be from purely private ones."""
    return math.fsum(part.times * total_variation(part.pair, part.delta0) for part in parts)


def local_total(parts: Sequence[ShuffledRound]) -> tuple[float, float]:
    """The local promises of all rounds added up: what a colluding shuffler leaves."""
    return (
        math.fsum(part.times * part.epsilon0 for part in parts),
        math.fsum(part.times * part.delta0 for part in parts),
    )
