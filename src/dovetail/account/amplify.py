"""What a shuffled collection promises: the central guarantee, by the tightest theorem that covers it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dovetail.account.attack_lower_bound import attack_lower
from dovetail.account.bound import Bound
from dovetail.account.clones import NAME as APPROXIMATE
from dovetail.account.clones import SOURCE as CLONES
from dovetail.account.clones import ClonePair, Kind, amplify_approximate
from dovetail.account.closed_forms import closed_forms
from dovetail.account.mechanism_law import (
    Mechanism,
    blanket_law,
    competing_bounds,
    everybody_bound,
    law_bounds,
    mechanism_attack,
    mechanism_law,
)
from dovetail.account.questions import ChosenWord, SampledBlock, SeveralQuestions
from dovetail.core.certified import Bracket
from dovetail.core.channel import Channel
from dovetail.core.checks import MOST_PEOPLE, flag, privacy_budget, refuse, share, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.special import Reals
from dovetail.core.stages import Randomizer
from dovetail.randomize.sampling.vector_randomizer import GaussianSteps, HeldBlock, HeldWord, VectorRandomizer
from dovetail.randomize.vectors.gaussian import gaussian_channel

SOURCES: dict[Kind, str] = {
    "stronger clones": (
        "Blanket of max(R0, R1): stronger-clone pair for one fixed pure randomizer "
        "(docs/theory/stronger-clones.md), after Feldman, McMillan, Talwar (2022)"
    ),
    "clones": (
        "Feldman, McMillan, Talwar (2021), Hiding Among the Clones, Theorem 2.1 of the workshop version, "
        "evaluated numerically"
    ),
}
Subject = Randomizer | Channel | SeveralQuestions | float
FIXED_ONLY = "holds for one fixed randomizer only, not for adaptive use"


def amplify(
    randomizer: Subject,
    *,
    n: int,
    delta: float,
    honest: int | None = None,
    adaptive: bool = False,
    delta0: float = 0.0,
) -> CentralDP:
    r"""The central guarantee of n reports after a uniform shuffle: the smallest valid bound, and which one it is.

    .. math:: \epsilon = \min\{\epsilon_0, \; \inf\{e : \delta_{\mathrm{pair}}(e; \epsilon_0, n) \le \delta\}, \;
              \inf\{e : \delta_{\mathrm{mechanism}}(e; n) \le \delta\}\}

    Everybody uses this one randomizer, once, independently, and the batch is permuted uniformly before anybody
    looks. When people bring their own randomizers nothing here applies: a report can then name its sender.

    Parameters
    ----------
    randomizer : Randomizer, Channel, several questions, or epsilon0 as a float above 0 and at most 700, nats
        A float stands for any randomizer with that promise; a mechanism is judged by its own law where it has one.
    n : int, 1 .. 1e12
        Valid reports of distinct people in the batch.
    delta : float, at least 0, below 1
        At 0 shuffling amplifies nothing and epsilon0 is returned.
    honest : int, 1 .. n, optional
        How many of these people are assumed to follow the protocol and keep their reports secret; default all.
    adaptive : bool
        Whether a person's randomizer may be chosen after seeing the reports before hers (the same promise epsilon0,
        values in random order); the clone pair holds then, nothing tighter is used.
    delta0 : float, at least 0, below 1
        What the local promise may fail by, next to epsilon0 as a float; a randomizer brings its own.

    Raises
    ------
    UnsupportedError
        When delta0 is so large that neither shuffling nor the local promise gives anything at this delta.

    Examples
    --------
    >>> promise = amplify(1.0, n=10_000, delta=1e-6, honest=5_000)
    >>> promise.method, round(promise.all, 4), round(promise.honest, 4)
    ('hidden among everybody', 0.038, 0.0552)
    >>> from dovetail.randomize.krr import KRR
    >>> promise = amplify(KRR(k=10, epsilon=1.0), n=10_000, delta=1e-6)
    >>> promise.method, round(promise.all, 4)
    ('k-ary randomized response', 0.0233)

    Source
    ------
    The theorem of the chosen bound, bound in the guarantee.
    """
    problem = AmplificationProblem.of(randomizer, delta=delta, delta0=delta0, adaptive=adaptive)
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    trusted = people if honest is None else whole("honest", honest, least=1, most=people)
    bound = problem.tightest(trusted)
    everybody = bound if trusted == people else problem.tightest(people)
    attack = min(problem.attack(trusted, guess=_epsilon_of(bound)), _epsilon_of(bound))
    return CentralDP(
        all=min(_epsilon_of(everybody), _epsilon_of(bound)),
        honest=_epsilon_of(bound),
        colluding=problem.epsilon0,
        delta=problem.delta,
        n=people,
        honest_n=trusted,
        method=bound.name,
        source=bound.source,
        numeric=Bracket(_numeric_lower(bound, attack), _epsilon_of(bound)),
        attack_lower=attack,
        caveats=problem.caveats,
    )


def list_bounds(
    randomizer: Subject, *, n: int, delta: float, adaptive: bool = False, delta0: float = 0.0
) -> list[Bound]:
    """Every bound on the central epsilon side by side: what it says, or why it says nothing.

    Parameters
    ----------
    as in `amplify`; `n` counts the honest

    Raises
    ------
    ParameterError
        For parameters outside their ranges; a bound that does not apply says so in its `reason`.

    Examples
    --------
    >>> for bound in list_bounds(4.0, n=10_000, delta=1e-6)[:4]:
    ...     print(bound.name, bound.reason or round(bound.epsilon, 3))
    stronger clones 0.411
    hidden among everybody 0.407
    clones 0.601
    Erlingsson et al. 2019 needs epsilon0 <= 1/2 = 0.5, got 4
    """
    problem = AmplificationProblem.of(randomizer, delta=delta, delta0=delta0, adaptive=adaptive)
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    return problem.certified_bounds(people) + problem.other_bounds(people)


def sent_law(mechanism: VectorRandomizer) -> SeveralQuestions | Channel | None:
    """A mechanism with the privacy loss of a report of a vector, and a law; None where only its promise is known."""
    held = mechanism.sampled
    if isinstance(held, GaussianSteps):
        return gaussian_channel(steps=held.steps, sigma=held.sigma)
    if isinstance(held, HeldBlock):
        return SampledBlock((held.response,), blocks=held.blocks, energy=held.energy)
    if isinstance(held, HeldWord) and held.response.k == 2:
        return SampledBlock((held.response,), blocks=1 << 62)  # the one word that was drawn is sent, with a sign
    return None if held is None else ChosenWord((held.response,), planar=mechanism.d > 1)


@dataclass(frozen=True)
class AmplificationProblem:
    """One question, read once: whose promise, at which delta, in which model."""

    mechanism: Mechanism | None
    epsilon0: float
    delta0: float
    delta: float
    adaptive: bool
    caveats: tuple[str, ...] = ()

    @classmethod
    def of(cls, subject: Subject, *, delta: float, delta0: float, adaptive: bool) -> AmplificationProblem:
        target, slack, adaptive = share("delta", delta), share("delta0", delta0), flag("adaptive", adaptive)
        if isinstance(subject, VectorRandomizer):
            sent, promise = sent_law(subject), subject.guarantee
            if sent is not None:
                return cls.of(sent, delta=delta, delta0=delta0, adaptive=adaptive)
            return cls(None, privacy_budget("epsilon0", promise.epsilon), max(slack, promise.delta), target, adaptive)
        if isinstance(subject, Randomizer):
            promise = subject.guarantee
            local = privacy_budget("epsilon0", promise.epsilon)
            return cls(subject, local, max(slack, promise.delta), target, adaptive, promise.caveats)
        if isinstance(subject, Channel):
            if math.isinf(subject.epsilon):
                mechanism_law(subject, n=1)  # says which entries are to blame
            if subject.epsilon == 0.0 and slack == 0.0:
                return cls(subject, 0.0, slack, target, adaptive)
            return cls(subject, privacy_budget("epsilon0", subject.epsilon), slack, target, adaptive)
        if isinstance(subject, SeveralQuestions):
            local = privacy_budget("epsilon0", subject.epsilon)
            return cls(subject, local, slack, target, adaptive, subject.caveats)
        return cls(None, privacy_budget("epsilon0", subject), slack, target, adaptive)

    def certified_bounds(self, n: int) -> list[Bound]:
        """The certified bounds of which the smallest decides."""
        if self.epsilon0 == 0.0:
            return [Bound("local", 0.0, "All rows of the channel are the same: a report tells nothing", lower=0.0)]
        if self.delta0 > 0.0:
            found = amplify_approximate(self.epsilon0, self.delta0, n=n, delta=self.delta)
            without = [Bound.inapplicable(APPROXIMATE, found.reason, source=CLONES)] if found.name == "local" else []
            return [*without, found]
        if self.adaptive:
            return [self.pair("clones", n)]
        everybody = everybody_bound(self.subject, n=n, delta=self.delta)
        if self.mechanism is None:
            return [self.pair("stronger clones", n), everybody]
        return [*law_bounds(self.mechanism, n=n, delta=self.delta), everybody, self.pair("stronger clones", n)]

    def other_bounds(self, n: int) -> list[Bound]:
        """Bounds beside them: never smaller, not certified, or not valid here."""
        if self.delta0 > 0.0 or self.epsilon0 == 0.0:
            return []
        if self.adaptive:
            beside = Bound.inapplicable("stronger clones", FIXED_ONLY, source=SOURCES["stronger clones"])
        else:
            beside = self.pair("clones", n)
        if self.delta == 0.0:
            return [beside]
        law = None if self.mechanism is None else blanket_law(self.mechanism)
        return [beside, *closed_forms(self.epsilon0, n=n, delta=self.delta, law=law, adaptive=self.adaptive)]

    def pair(self, kind: Kind, n: int) -> Bound:
        """Bound of a clone pair."""
        ends = ClonePair(self.epsilon0, n, kind).epsilon(self.delta)
        return Bound(kind, ends.upper, SOURCES[kind], lower=ends.lower)

    @property
    def subject(self) -> Mechanism | float:
        """The randomizer where it is known, else its promise."""
        return self.epsilon0 if self.mechanism is None else self.mechanism

    @property
    def fixed(self) -> bool:
        """True if everybody uses one randomizer with a pure promise: theorems about mechanisms hold."""
        return not self.adaptive and self.delta0 == 0.0 and self.epsilon0 > 0.0

    def competing_bounds(self, n: int) -> list[Bound]:
        """As `certified_bounds`, without those of which one evaluation shows that they are larger."""
        if self.mechanism is None or not self.fixed:
            return self.certified_bounds(n)
        found = competing_bounds(self.mechanism, n=n, delta=self.delta)
        best = min((bound.epsilon for bound in found if bound.epsilon is not None), default=self.epsilon0)
        pair = ClonePair(self.epsilon0, n)
        if self.delta > 0.0 and pair.upper(best, pair.blocks_for(self.delta)) > self.delta:
            return found
        return [*found, self.pair("stronger clones", n)]

    def tightest(self, n: int) -> Bound:
        """The smallest of the competing bounds."""
        found = self.competing_bounds(n)
        best = min(found, key=lambda bound: math.inf if bound.epsilon is None else bound.epsilon)
        if best.epsilon is None:
            raise UnsupportedError(
                f"{best.source}: {best.reason}. Use a larger delta (from {self.delta0:g} the local promise holds), "
                "fewer people, or a smaller delta0."
            )
        return best

    def epsilon(self, n: int) -> float:
        """The smallest epsilon that is proved: the value of `tightest`."""
        return _epsilon_of(self.tightest(n))

    def attack(self, n: int, *, guess: float) -> float:
        """Epsilon that an attack reaches: on this randomizer if known, else on the worst with this promise."""
        if self.epsilon0 == 0.0:
            return 0.0
        if self.mechanism is None or self.adaptive:
            return attack_lower(self.epsilon0, n, self.delta, guess=guess)
        return mechanism_attack(self.mechanism, n=n, delta=self.delta, guess=guess)


def _numeric_lower(bound: Bound, attack: float) -> float:
    """Bound the theorem's own value from below: by an attack where nothing better is known."""
    return min(attack if bound.lower is None else bound.lower, _epsilon_of(bound))


def _epsilon_of(bound: Bound) -> float:
    assert bound.epsilon is not None  # `tightest` has refused otherwise
    return bound.epsilon


# The central epsilon along a grid of people, local epsilons or deltas.


MOST_POINTS = 100_000


@dataclass(frozen=True, eq=False)
class Curve:
    """Ends of epsilon at each point of a grid; all arrays have the grid's shape.

    Parameters
    ----------
    epsilon0, n, delta : float arrays
        The grid.
    lower, upper : float arrays
        What an attack reaches, and what `amplify` promises, at each point.
    """

    epsilon0: Reals
    n: Reals
    delta: Reals
    lower: Reals
    upper: Reals


def curve(
    *,
    epsilon0: ArrayLike,
    n: ArrayLike,
    delta: ArrayLike,
    adaptive: bool = False,
) -> Curve:
    """`amplify` of any randomizer on a grid: whichever of the three is an array, or several that broadcast.

    Parameters
    ----------
    epsilon0 : float or array, above 0, at most 700, nats
    n : int or array, 1 .. 1e12
        Honest reports in the batch.
    delta : float or array, at least 0, below 1
    adaptive : bool
        Whether an answer's randomizer may depend on earlier reports; then the clone pair is used.

    Notes
    -----
    About ten milliseconds a point.

    Examples
    --------
    >>> curve(epsilon0=1.0, n=[100, 10_000, 1_000_000], delta=1e-6).upper.round(4).tolist()
    [0.4887, 0.038, 0.0031]
    """
    axes = [np.asarray(axis) for axis in (epsilon0, n, delta)]
    try:
        e0, people, deltas = np.broadcast_arrays(*axes)
    except ValueError:
        shapes = ", ".join(str(axis.shape) for axis in axes)
        raise refuse("epsilon0, n and delta", "arrays that broadcast", f"shapes {shapes}") from None
    if not 1 <= e0.size <= MOST_POINTS:
        raise refuse("the grid", f"of 1 to {MOST_POINTS} points", e0.size)
    lower, upper = np.empty(e0.shape), np.empty(e0.shape)
    for at in np.ndindex(e0.shape):
        problem = AmplificationProblem.of(e0[at].item(), delta=deltas[at].item(), delta0=0.0, adaptive=adaptive)
        among = whole("n", people[at].item(), least=1, most=MOST_PEOPLE)
        promised = problem.epsilon(among)
        lower[at], upper[at] = min(problem.attack(among, guess=promised), promised), promised
    return Curve(e0.astype(np.float64), people.astype(np.float64), deltas.astype(np.float64), lower, upper)
