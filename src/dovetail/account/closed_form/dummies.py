"""What dummies of the shuffler promise: one round, many rounds, and together with local noise."""

from __future__ import annotations

import math

import numpy as np

from dovetail.account.amplify import amplify
from dovetail.core.bracket import Bracket
from dovetail.core.checks import instance, privacy_budget, real, refuse, share, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.randomize.krr import KRR
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail.shuffle.dummies.truncated_geometric import TruncatedGeometric

SOURCE = "Dummies of a trusted shuffler, truncated geometric (docs/theory/accuracy.md, section B)"
METHOD = "dummies of the shuffler"
MOST_ROUNDS = 100_000
UP = 1.0 + 1e-9  # far beyond the rounding of sums of positive terms


def dummies_delta(noise: TruncatedGeometric, epsilon: float, *, rounds: int = 1) -> float:
    r"""delta of T rounds at any epsilon, at least 0, rounded up; exact but for that.

    .. math:: 1 - (1 - D_0)^{2T} + (1 - D_0)^{2T} \sum_{j=0}^{2T} \mathrm{Bin}(2T, \tfrac{1}{1+t})(j)
              \left(1 - e^{\epsilon - (j - T) \epsilon_r}\right)_+

    Off the ends of their laws the two shifted symbols are two binary randomized responses of epsilon_r / 2 each.

    Raises
    ------
    ParameterError
        For rounds outside 1 to 100,000.

    Examples
    --------
    >>> law = TruncatedGeometric.calibrated(epsilon=1.0, delta=1e-6)
    >>> f"{dummies_delta(law, law.epsilon):.3g}", f"{dummies_delta(law, 0.0):.2f}"
    ('6.72e-07', '0.24')
    """
    from scipy.stats import binom

    t = whole("rounds", rounds, least=1, most=MOST_ROUNDS)
    if not real("epsilon", epsilon) >= 0.0:
        raise refuse("epsilon", "at least 0", epsilon)
    missed = float(instance("noise", noise, TruncatedGeometric).least)
    fails = -math.expm1(2 * t * math.log1p(-missed))
    j = np.arange(2 * t + 1)
    gap = float(epsilon) - (j - t) * noise.epsilon
    lost = np.where(gap < 0.0, -np.expm1(np.minimum(gap, 0.0)), 0.0)
    inside = float(binom.pmf(j, 2 * t, 1.0 / (1.0 + float(noise.ratio))) @ lost)
    return min(1.0, (fails + (1.0 - fails) * inside) * UP)


def dummies_epsilon(noise: TruncatedGeometric, delta: float, *, rounds: int = 1) -> float:
    """The least epsilon found with `dummies_delta` at most `delta`; infinite where no epsilon keeps it.

    Raises
    ------
    ParameterError
        For a delta outside [0, 1), and rounds outside 1 to 100,000.

    Examples
    --------
    >>> law = TruncatedGeometric.calibrated(epsilon=0.1, delta=1e-8)
    >>> round(dummies_epsilon(law, 1e-6, rounds=12), 2)
    0.98
    """
    rounds = whole("rounds", rounds, least=1, most=MOST_ROUNDS)
    target, high = share("delta", delta), rounds * instance("noise", noise, TruncatedGeometric).epsilon
    if dummies_delta(noise, high, rounds=rounds) > target:
        return math.inf
    low = 0.0
    if dummies_delta(noise, low, rounds=rounds) <= target:
        return 0.0
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        keeps = dummies_delta(noise, middle, rounds=rounds) <= target
        low, high = (low, middle) if keeps else (middle, high)
    return high


def dummies_for_rounds(*, k: int, epsilon: float, delta: float, rounds: int) -> Dummies:
    """The dummies of one round of several about the same people that together are (epsilon, delta)-private.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and where a symbol would need more than 4,096 dummies.

    Examples
    --------
    >>> monthly = dummies_for_rounds(k=4, epsilon=1.0, delta=1e-6, rounds=12)
    >>> round(monthly.epsilon, 3), round(monthly.variance**0.5, 1)
    (0.102, 27.6)
    """
    many, wanted = whole("rounds", rounds, least=1, most=MOST_ROUNDS), share("delta", delta)
    epsilon = privacy_budget("epsilon", epsilon)
    if many == 1:
        return Dummies(k, epsilon, delta)
    found = [_for_rounds(k, epsilon, wanted, many, part) for part in (0.05, 0.15, 0.4)]
    return min(found, key=lambda one: one.variance)


def _for_rounds(k: int, epsilon: float, delta: float, rounds: int, part: float) -> Dummies:
    """The largest epsilon of a round found where failures take this part of delta."""
    alone = part * delta / rounds
    low, high = epsilon / rounds, min(epsilon, 2.0 * epsilon / math.sqrt(rounds))
    best = Dummies(k, low, alone)
    while high - low > 1e-4 * low:
        middle = 0.5 * (low + high)
        tried = Dummies(k, middle, alone)
        if dummies_delta(tried.noise, epsilon, rounds=rounds) <= delta:
            low, best = middle, tried
        else:
            high = middle
    return best


def dummies_guarantee(
    dummies: Dummies,
    *,
    n: int,
    delta: float | None = None,
    rounds: int = 1,
    randomizer: KRR | None = None,
    honest: int | None = None,
) -> CentralDP:
    r"""What a batch with dummies promises, and against whom.

    The promise holds against the analyst with any number of participants, if the shuffler adds the dummies once and
    as specified and keeps their numbers and its randomness secret. Shuffler and analyst together read every answer,
    or, with local noise, what the local guarantee leaves. With k-ary randomized response underneath (gamma the
    probability of a truthful report) the smaller of its own amplification and of

    .. math:: \delta(\log(1 + \gamma (E - 1))) \le \gamma\, \delta_{\mathrm{dummies}}(\log E)

    Parameters
    ----------
    dummies : Dummies
    n : int
        People in a round; public.
    delta : float, optional
        Default that of the dummies.
    rounds : int
        Rounds about the same people, with fresh dummies each.
    randomizer : KRR, optional
        Local noise, of one round.
    honest : int, optional
        As in `amplify`, for the amplification of the local noise.

    Raises
    ------
    UnsupportedError
        Where no epsilon keeps delta, and for rounds with local noise.

    Examples
    --------
    >>> promise = dummies_guarantee(Dummies(k=16, epsilon=1.0, delta=1e-6), n=100_000)
    >>> promise.trust, round(promise.epsilon, 4), promise.colluding
    ('shuffler', 1.0, inf)

    Source
    ------
    docs/theory/accuracy.md, section B.
    """
    dummies = instance("dummies", dummies, Dummies)
    wanted = dummies.delta if delta is None else share("delta", delta)
    rounds = whole("rounds", rounds, least=1, most=MOST_ROUNDS)
    randomizer = None if randomizer is None else instance("randomizer", randomizer, KRR)
    if randomizer is not None and rounds > 1:
        raise UnsupportedError("rounds with dummies and local noise have no common account here; use one of them.")
    gamma = 1.0 if randomizer is None else randomizer.channel().contrast * (1.0 + 1e-12)
    if randomizer is not None and randomizer.k != dummies.k:
        raise UnsupportedError(f"dummies of {dummies.k:,} symbols do not fit {randomizer.k:,} of the randomizer.")
    alone = dummies_epsilon(dummies.noise, min(wanted / gamma, 1.0 - 1e-9), rounds=rounds)
    if math.isinf(alone):
        least = dummies_delta(dummies.noise, rounds * dummies.noise.epsilon, rounds=rounds)
        raise UnsupportedError(f"no epsilon keeps delta {wanted:g} with these dummies: take at least {least:.3g}.")
    both = math.log1p(gamma * math.expm1(alone)) * UP if alone < 700.0 else alone
    lines, source, least = (both, both, math.inf), SOURCE, both * (1.0 - 1e-6)  # exact but for rounding
    people, trusted = whole("n", n, least=1), n if honest is None else whole("honest", honest, least=1, most=n)
    hidden = 1  # honest people that the promise needs: nobody but the person herself
    if randomizer is not None:
        local = amplify(randomizer, n=people, delta=wanted, honest=trusted)
        lines = (min(both, local.all), min(both, local.honest), randomizer.epsilon)
        least = min(least, local.numeric.lower)
        hidden = 1 if both <= local.honest else trusted
        source = SOURCE if both <= local.honest else f"{local.source}; dummies are post-processing"
    return CentralDP(
        all=lines[0], honest=lines[1], colluding=lines[2], delta=wanted, n=people, honest_n=hidden,
        method=METHOD, source=source, numeric=Bracket(min(least, lines[1]), lines[1]), attack_lower=0.0,
        trust="shuffler",
    )  # fmt: skip
