"""What Gaussian dummies of the shuffler promise a person who sends several symbols: exact sums of losses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dovetail.account.bound import bracket_root, log_ratio
from dovetail.account.privacy_loss import PrivacyLossDistribution, Terms, convolve_near, smallest_of_sum
from dovetail.core.checks import instance, privacy_budget, real, refuse, share, whole, wholes
from dovetail.core.discrete_noise import can_draw
from dovetail.randomize.vectors.gaussian import largest_mu
from dovetail.shuffle.sampling.dummies import MOST_GAUSSIAN_REACH, TruncatedGaussian

MOST_ROUNDS = 100_000
MOST_QUESTIONS = 100_000
MOST_WEIGHT = 1 << 20
MOST_LOSS = 1e9
UP = 1.0 + 1e-9  # far beyond the rounding of sums of positive terms
UNIT = 2.0**-53
FAILURES = 2.0**-7  # the part of delta that ends of the laws take: more makes noise wider, less makes dummies more
FINE = 12  # bits of a variance that is searched
POINTS, SEARCH = 256, 64  # places of the grid in a typical loss; where a variance is searched
LONGEST_SUM = 2**21  # about the most places for the sum


@dataclass(frozen=True)
class Message:
    r"""The dummies of a message of several symbols, one for each question, which are shuffled apart.

    .. math:: Z_q = s_q + N_q, \qquad \Pr[N_q = k] \propto e^{-k^2 w_q / (2 v)}, \quad |k| \le s_q

    A question of a larger weight gets less noise, and more of the loss. Losses are whole multiples of 1/v.

    Parameters
    ----------
    scale : Fraction
        v.
    weights : tuple of int, one for each question, at least 1
    reaches : tuple of int, one for each question, at least 1
        s_q.

    Raises
    ------
    ParameterError
        For numbers outside their ranges.

    Examples
    --------
    >>> message = Message(Fraction(40), weights=(1, 4), reaches=(40, 20))
    >>> [round(law.variance, 1) for law in message.laws]
    [40.0, 10.0]

    Source
    ------
    docs/theory/several-symbols.md.
    """

    scale: Fraction
    weights: tuple[int, ...]
    reaches: tuple[int, ...]
    kinds: Counter[tuple[int, int]] = field(init=False, repr=False, compare=False)  # questions of (weight, reach)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", wholes("weights", self.weights, least=1, most=MOST_WEIGHT))
        object.__setattr__(self, "reaches", wholes("reaches", self.reaches, least=1, most=MOST_GAUSSIAN_REACH))
        if not len(self.weights) == len(self.reaches) <= MOST_QUESTIONS:
            raise refuse("reaches", f"one for each of {len(self.weights):,} weights", self.reaches)
        object.__setattr__(self, "kinds", Counter(zip(self.weights, self.reaches, strict=True)))
        for weight, reach in self.kinds:
            TruncatedGaussian(instance("scale", self.scale, Fraction) / weight, reach)

    @classmethod
    def of(cls, laws: Sequence[TruncatedGaussian]) -> Message:
        """The message whose questions have dummies of these laws: v is their least common multiple.

        >>> Message.of([TruncatedGaussian(Fraction(40), 40), TruncatedGaussian(Fraction(25, 2), 20)]).weights
        (5, 16)
        """
        scales = [law.scale for law in laws]
        v = Fraction(math.lcm(*(one.numerator for one in scales)), math.gcd(*(one.denominator for one in scales)))
        return cls(v, tuple(int(v / one) for one in scales), tuple(law.reach for law in laws))

    @property
    def laws(self) -> tuple[TruncatedGaussian, ...]:
        """Of the dummies of each question."""
        return tuple(
            TruncatedGaussian(self.scale / weight, reach)
            for weight, reach in zip(self.weights, self.reaches, strict=True)
        )


def message_delta(message: Message, epsilon: float, *, rounds: int = 1, together: int = 1) -> float:
    r"""delta at any epsilon, at least 0, rounded up: of T rounds, against the analyst with any number of people.

    .. math:: \delta(\epsilon) \le \sum_q 2 T \Pr[N_q > s_q - g] + \sum_S \Pr[S]
              \left(1 - e^{\epsilon - g (g T w + S) / v}\right)_+, \qquad S = \sum_q w_q (N_q + N'_q)

    over T questions each, N restricted to -s..s - g, w the sum of weights. With g = 1, equality but for rounding and
    products of failures where every symbol of a person changes. Losses lie on one lattice. Where more than
    256 of its places lie in a typical loss, masses are split onto fewer (`_half`), for some millionths of epsilon;
    what transforms may err is charged.

    Parameters
    ----------
    together : int
        g people who all move between the same two symbols in each question; other moves of theirs are not proved.

    Raises
    ------
    ParameterError
        For numbers outside their ranges.

    Examples
    --------
    >>> message = message_for(weights=(1,) * 12, epsilon=1.0, delta=1e-6)
    >>> message.reaches[0], round(float(message.scale), 0), f"{message_delta(message, 1.0):.1g}"
    (124, 429.0, '1e-06')

    Source
    ------
    docs/theory/several-symbols.md.
    """
    instance("message", message, Message)
    many = whole("rounds", rounds, least=1, most=MOST_ROUNDS)
    people = whole("together", together, least=1, most=1_000)
    if not real("epsilon", epsilon) >= 0.0:
        raise refuse("epsilon", "at least 0", epsilon)
    if any(2 * reach < people for reach in message.reaches):
        return 1.0  # so many people move a count beyond its dummies
    return _delta_of(_terms(message, many, people), float(epsilon))


def _delta_of(terms: Terms, epsilon: float) -> float:
    at = min(epsilon, MOST_LOSS)  # delta falls in epsilon
    return min(1.0, convolve_near(terms, delta=1e-300, epsilon=at).upper(at) * UP)


def message_epsilon(message: Message, delta: float, *, rounds: int = 1) -> float:
    """The least epsilon found with `message_delta` at most `delta`; infinite where no epsilon keeps it.

    Raises
    ------
    ParameterError
        For a delta outside [0, 1), and rounds outside 1 to 100,000.

    Examples
    --------
    >>> message = message_for(weights=(1,) * 12, epsilon=1.0, delta=1e-6)
    >>> 0.999 < message_epsilon(message, 1e-6) <= 1.0
    True
    """
    target, many = share("delta", delta), whole("rounds", rounds, least=1, most=MOST_ROUNDS)
    terms = _terms(instance("message", message, Message), many, 1)
    if sum(times * pld.infinity for pld, times in terms) * UP >= target:
        return math.inf
    most = sum(times * float(pld.losses[-1]) for pld, times in terms) * UP  # beyond, only failures are left
    found = smallest_of_sum(terms, delta=target / UP, most=most)
    return math.inf if found is None else found


def message_for(*, weights: Sequence[int], epsilon: float, delta: float, rounds: int = 1) -> Message:
    """The Gaussian dummies with the least variance found that are (epsilon, delta)-private over all rounds together.

    Parameters
    ----------
    weights : ints, one for each question, at least 1
        How precise it has to be: its counts have variance v / weight.
    epsilon : float, above 0, nats
    delta : float, above 0, below 1
    rounds : int
        About the same people, with fresh dummies each.

    Raises
    ------
    ParameterError
        For numbers outside their ranges, and where noise would have to be wider than can be drawn.

    Examples
    --------
    >>> tree = message_for(weights=(1,) * 5, epsilon=1.0, delta=1e-6)
    >>> round(float(tree.scale) ** 0.5, 1), tree.reaches
    (13.4, (80, 80, 80, 80, 80))
    """
    many, budget = whole("rounds", rounds, least=1, most=MOST_ROUNDS), privacy_budget("epsilon", epsilon)
    if not (slack := share("delta", delta)) > 0.0:
        raise refuse("delta", "above 0: dummies of the shuffler are bounded", delta)
    return _message_for(wholes("weights", weights, least=1, most=MOST_WEIGHT), budget, slack, many)


@lru_cache(maxsize=64)
def _message_for(weights: tuple[int, ...], epsilon: float, delta: float, rounds: int) -> Message:
    """Searches v, and lets reaches grow with its root: at fixed reaches delta does not fall in v."""
    normal = 2.0 * rounds * sum(weights) / max(largest_mu(epsilon, delta), 1e-9) ** 2  # by normal noise

    def tried(scale: float) -> Message:
        return _scaled(weights, scale, epsilon, delta, rounds)

    def excess(scale: float) -> float:
        return log_ratio(_delta_of(_terms(tried(scale), rounds, 1, points=SEARCH), epsilon), delta)

    guess, steepness = min(normal * (1.0 + 2.0**-FINE), 2.0**30), 0.5 - math.log(delta)
    return tried(bracket_root(excess, guess, steepness=steepness, most=2.0**31, tolerance=2.0**-FINE)[1])


def _scaled(weights: tuple[int, ...], scale: float, epsilon: float, delta: float, rounds: int) -> Message:
    """Of about this variance, with the least reaches that lie beyond what `FAILURES` of delta allow."""
    bits = max(0, FINE - math.floor(math.log2(scale)))
    v = Fraction(math.ceil(scale * 2.0**bits), 1 << bits)
    if not can_draw(v):
        asked = f"{len(weights) * rounds:,} questions"
        raise refuse("epsilon", f"larger for {asked}: noise is at most 2^15 wide", epsilon)
    kinds = Counter(weights)
    allowed = FAILURES * delta / (2.0 * rounds)

    def ends(z: float) -> float:
        roots = sum(many * math.sqrt(w / (2.0 * math.pi * float(v))) for w, many in kinds.items())
        return roots * math.exp(-0.5 * z * z)

    z = 0.0
    while ends(z) > allowed:
        z += 2.0**-6
    reaches = {w: min(MOST_GAUSSIAN_REACH, max(1, math.ceil(z * math.sqrt(float(v) / w)))) for w in kinds}
    return Message(v, weights, tuple(reaches[w] for w in weights))


def _terms(message: Message, rounds: int, together: int, *, points: int = POINTS) -> Terms:
    """The loss of one of the two counts that a question moves, and how many of its kind there are."""
    losses, scale = 2 * rounds * len(message.weights), float(message.scale)
    typical = math.sqrt(scale * sum(message.weights) / len(message.weights))  # in steps of the lattice
    stride = max(1, math.floor(max(typical / points, 16.0 * typical * math.sqrt(losses) / LONGEST_SUM)))
    return [
        (_half(message.scale, weight, reach, together, stride), 2 * rounds * many)
        for (weight, reach), many in message.kinds.items()
    ]


@lru_cache(maxsize=1024)
def _half(scale: Fraction, weight: int, reach: int, together: int, stride: int) -> PrivacyLossDistribution:
    r"""g (g w / 2 + w N) / v, N restricted to -s..s - g, on every `stride`-th place of the lattice.

    A loss l between two such places a < b is one of both by chance, so that P and Q keep their masses:

    .. math:: p_a + p_b = p, \qquad p_a e^{-a} + p_b e^{-b} = p e^{-l}

    Whoever forgets which it was has the law on the lattice, so this one dominates.
    """
    g, s, v = together, reach, float(scale)
    masses, step = TruncatedGaussian(scale / weight, s).masses, g / v
    kept = masses[: 2 * s + 1 - g]
    cells, beyond = np.divmod(weight * np.arange(kept.size), stride)
    farther = kept * (np.expm1(-step * beyond) / math.expm1(-step * stride))
    size = int(cells[-1]) + 2
    split = np.bincount(cells, kept - farther, size) + np.bincount(cells + 1, farther, size)
    return PrivacyLossDistribution(
        step=step * stride, start=step * weight * (0.5 * g - s),
        masses=np.asarray(split, dtype=np.float64),
        infinity=math.fsum(masses[2 * s + 1 - g :]) * UP,
        error=16.0 * UNIT * (stride + 0.5 * weight * s * s / v),
    )  # fmt: skip
