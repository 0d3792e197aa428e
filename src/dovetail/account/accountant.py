"""The accountant: what shuffled reports reveal at most and at least, in one round or in many."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.account.amplify import AmplificationProblem, Subject
from dovetail.account.bound import Bound, log_ratio
from dovetail.account.clones import ClonePair, Kind, too_large_reason
from dovetail.account.compose import compose, compose_upper, composed_delta, composed_epsilon, composed_log_ratio
from dovetail.account.expected_positive_part import POINTS
from dovetail.account.mechanism_law import law_delta, law_epsilon
from dovetail.account.rounds import MOST_ROUNDS, ShuffledRound, total_slack
from dovetail.core.checks import MOST_PEOPLE, real, refuse, share, whole
from dovetail.core.errors import UnsupportedError

SHARPER = 1e-3  # share of a known delta at which its sources are asked again
LEAST = 1e-200  # below, a delta is no longer made sharper


@dataclass(frozen=True)
class Accountant:
    r"""Privacy of n shuffled reports of each person's value, in any direction: epsilon, delta, attack, bounds.

    .. math:: \delta(\epsilon) = \sup_{x \sim x'} D_{e^\epsilon}(P_x \| P_{x'})

    `amplify`, `max_epsilon`, `min_people` and `compose` are its short forms.

    Parameters
    ----------
    subject : Randomizer, Channel, several questions, or epsilon0 as a float above 0 and at most 700, nats
        What everybody runs; a float stands for any randomizer with that promise.
    n : int, 1 .. 1e12
        Valid reports of distinct people in the batch.
    honest : int, 1 .. n, optional
        How many of them follow the protocol and keep their reports secret; default all. Every answer is about these.
    rounds : int, at least 1
        Collections of the same people, each with fresh randomness and a shuffle of its own.
    adaptive, delta0
        As in `amplify`.
    others : several Accountant
        Collections that the same people take part in besides; `compose` adds one.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    UnsupportedError
        Where no theorem covers the subject, with what is true then.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> weekly = Accountant(KRR(k=10, epsilon=1.0), n=10_000, rounds=52)
    >>> once = Accountant(4.0, n=10_000)
    >>> [round(each.epsilon(1e-6), 3) for each in (weekly, once, weekly.compose(once))]
    [0.196, 0.407, 0.459]
    >>> weekly.attack(1e-6) <= weekly.epsilon(1e-6), weekly.delta(0.2) < 1e-6 < weekly.delta(0.19)
    (True, True)

    Source
    ------
    The theorem of each bound, named in `bounds`.
    """

    subject: Subject
    n: int = field(kw_only=True)
    honest: int | None = field(default=None, kw_only=True)
    rounds: int = field(default=1, kw_only=True)
    adaptive: bool = field(default=False, kw_only=True)
    delta0: float = field(default=0.0, kw_only=True)
    others: tuple[Accountant, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        people = whole("n", self.n, least=1, most=MOST_PEOPLE)
        if self.honest is not None:
            whole("honest", self.honest, least=1, most=people)
        whole("rounds", self.rounds, least=1, most=MOST_ROUNDS)
        self._problem(0.0)  # refuses what cannot be accounted for

    def epsilon(self, delta: float, *, points: int = POINTS) -> float:
        """An epsilon at which at most `delta` was evaluated: what may be guaranteed, rounded up.

        With fewer `points` of the grid it comes sooner, and is at most a ten-thousandth larger.

        Raises
        ------
        UnsupportedError
            When a local delta is so large that nothing is guaranteed at `delta`.
        """
        if not self._once:
            return self._composed_epsilon(delta)
        problem = self._problem(delta)
        if not problem.fixed:
            return problem.epsilon(self.trusted)
        known = min(ClonePair(problem.epsilon0, self.trusted).epsilon(problem.delta).upper, problem.epsilon0)
        return law_epsilon(problem.subject, n=self.trusted, delta=problem.delta, points=points, known=known)

    def delta(self, epsilon: float, *, near: float | None = None, points: int = POINTS) -> float:
        """At least the delta at `epsilon`, at most 1.

        Where only the side of a delta `near` is asked for, less work is done once that is seen.
        """
        if not real("epsilon", epsilon) >= 0.0:
            raise refuse("epsilon", "at least 0", epsilon)
        problem = self._problem(0.0 if near is None else near)
        if not self._once or problem.delta0 > 0.0:
            return composed_delta(self.parts, epsilon=epsilon).upper if self.parts else 0.0
        if problem.epsilon0 <= epsilon:
            return 0.0
        kind: Kind = "clones" if self.adaptive else "stronger clones"
        pair = ClonePair(problem.epsilon0, self.trusted, kind)
        found = pair.delta(epsilon).upper if near is None else pair.upper(epsilon, pair.blocks_for(near))
        if not problem.fixed or (near is not None and found <= near):
            return found
        asked = found * SHARPER if near is None else near
        while True:  # until it was asked about a delta that it does not reach
            own = law_delta(problem.subject, epsilon, n=self.trusted, delta=asked, points=points)
            if near is not None or asked < LEAST:
                return min(found, own)
            if own > asked:  # far from what was asked, so once more near what it is
                return min(found, own, law_delta(problem.subject, epsilon, n=self.trusted, delta=own, points=points))
            asked *= SHARPER

    def attack(self, delta: float) -> float:
        """An epsilon that a collection fixed in advance reaches, so no bound can be below; 0 where none is known."""
        if not self._once:
            return compose(self.parts, delta=delta).attack_lower if self.parts else 0.0
        problem = self._problem(delta)
        most = problem.epsilon(self.trusted)
        return min(problem.attack(self.trusted, guess=most), most)

    def bounds(self, delta: float) -> list[Bound]:
        """Every bound on epsilon side by side: what it says, or why it says nothing."""
        if self._once:
            problem = self._problem(delta)
            return problem.certified_bounds(self.trusted) + problem.other_bounds(self.trusted)
        if not self.parts:
            return []
        found = compose_upper(self.parts, delta=delta)
        best = Bound(found.method, found.epsilon, found.source, found.reason, found.lower)
        return [best, *(one for one in (found.basic, found.advanced, found.renyi) if one.name != best.name)]

    def compose(self, other: Accountant) -> Accountant:
        """Both collections about the same people, together."""
        if not isinstance(other, Accountant):
            raise refuse("other", "an Accountant", other)
        return replace(self, others=(*self.others, other))

    def log_ratio(self, epsilon: float, *, delta: float, points: int = POINTS) -> float:
        """At most 0 where `epsilon(delta)` is at most `epsilon`, by one evaluation: for searches.

        The log of delta at `epsilon` over what it may be; the ratio of the epsilons where no delta is allowed.

        Examples
        --------
        >>> from dovetail.randomize.krr import KRR
        >>> known = Accountant(KRR(k=10, epsilon=1.0), n=10_000)
        >>> [known.log_ratio(epsilon, delta=1e-6) <= 0.0 for epsilon in (0.023, 0.024)]
        [False, True]
        """
        if not self._once and self.parts and total_slack(self.parts) == 0.0:
            return composed_log_ratio(self.parts, epsilon=epsilon, delta=delta)
        if delta == 0.0 or not self._once or self._problem(delta).delta0 > 0.0:
            return log_ratio(self.epsilon(delta, points=points), epsilon)
        return log_ratio(self.delta(epsilon, near=share("delta", delta), points=points), delta)

    @property
    def trusted(self) -> int:
        """Number of honest people."""
        return self.n if self.honest is None else self.honest

    @property
    def parts(self) -> tuple[ShuffledRound, ...]:
        """All rounds, but for those that tell nothing."""
        problem, others = self._problem(0.0), tuple(part for other in self.others for part in other.parts)
        if problem.epsilon0 == 0.0:
            return others
        if problem.mechanism is not None and problem.fixed:
            return (ShuffledRound.of(problem.mechanism, self.trusted, times=self.rounds), *others)
        kind: Kind | None = "clones" if self.adaptive else None
        mine = ShuffledRound(problem.epsilon0, self.trusted, times=self.rounds, kind=kind, delta0=problem.delta0)
        return (mine, *others)

    @property
    def _once(self) -> bool:
        return self.rounds == 1 and not self.others

    def _problem(self, delta: float) -> AmplificationProblem:
        return AmplificationProblem.of(self.subject, delta=delta, delta0=self.delta0, adaptive=self.adaptive)

    def _composed_epsilon(self, delta: float) -> float:
        if not self.parts:
            return 0.0
        found = composed_epsilon(self.parts, delta=delta)
        if found is None:
            reason = too_large_reason(total_slack(self.parts), delta)
            raise UnsupportedError(f"{reason}. Use a larger delta or a smaller delta0.")
        return found
