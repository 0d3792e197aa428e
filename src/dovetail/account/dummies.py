"""What dummies of the shuffler promise: one round, many rounds, and together with local noise."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dovetail.account.amplify import amplify
from dovetail.account.bound import bisect, bracket_root, log_ratio
from dovetail.account.expected_positive_part import expected_positive_part
from dovetail.account.gaussian_dummies import Message, message_delta, message_epsilon, message_for
from dovetail.core.certified import Bracket
from dovetail.core.checks import instance, privacy_budget, real, refuse, share, whole, word
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.special import binomial_pmf
from dovetail.randomize.krr import KRR
from dovetail.shuffle.sampling.dummies import (
    Dummies,
    GaussianDummies,
    SparseDummies,
    TruncatedGaussian,
    TruncatedGeometric,
    UserDummies,
)
from dovetail_protocol.dummies import SCALE

SOURCE = "Dummies of a trusted shuffler, truncated geometric (docs/theory/accuracy.md, section B)"
GAUSSIAN_SOURCE = "Dummies of a trusted shuffler, truncated discrete Gaussian (docs/theory/several-symbols.md)"
SPARSE_SOURCE = "Reports kept by chance among sparse dummies of a trusted shuffler (docs/theory/several-symbols.md)"
METHOD = "dummies of the shuffler"
MOST_ROUNDS = 100_000
MOST_SPARSE_ROUNDS = 10_000
WORTH_DELTA = 1.001  # how much more epsilon several batches together would promise without a delta
UP = 1.0 + 1e-9  # far beyond the rounding of sums of positive terms


Law = TruncatedGeometric | TruncatedGaussian | Message  # of the dummies of one question, or of several


def dummies_delta(noise: Law, epsilon: float, *, rounds: int = 1) -> float:
    r"""delta of T rounds at any epsilon, at least 0, rounded up; exact but for that. Of geometric dummies:

    .. math:: 1 - (1 - D_0)^{2T} + (1 - D_0)^{2T} \sum_{j=0}^{2T} \mathrm{Bin}(2T, \tfrac{1}{1+t})(j)
              \left(1 - e^{\epsilon - (j - T) \epsilon_r}\right)_+

    Off the ends of their laws the two shifted symbols are two binary randomized responses of epsilon_r / 2 each. Of
    Gaussian ones, and of several questions, as `message_delta`.

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
    if not isinstance(noise, TruncatedGeometric):
        return message_delta(_as_message(noise), epsilon, rounds=rounds)
    t = whole("rounds", rounds, least=1, most=MOST_ROUNDS)
    if not real("epsilon", epsilon) >= 0.0:
        raise refuse("epsilon", "at least 0", epsilon)
    least, whole_ = noise.least_parts
    missed = least / whole_
    fails = -math.expm1(2 * t * math.log1p(-missed))
    j = np.arange(2 * t + 1)
    gap = float(epsilon) - (j - t) * noise.epsilon
    lost = np.where(gap < 0.0, -np.expm1(np.minimum(gap, 0.0)), 0.0)
    inside = float(binomial_pmf(j, 2 * t, 1.0 / (1.0 + float(noise.ratio))) @ lost)
    return min(1.0, (fails + (1.0 - fails) * inside) * UP)


def _as_message(noise: TruncatedGaussian | Message) -> Message:
    if isinstance(noise, Message):
        return noise
    return Message(instance("noise", noise, TruncatedGaussian).scale, (1,), (noise.reach,))


def dummies_epsilon(noise: Law, delta: float, *, rounds: int = 1) -> float:
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
    if not isinstance(noise, TruncatedGeometric):
        return message_epsilon(_as_message(noise), delta, rounds=rounds)
    target, high = share("delta", delta), rounds * noise.epsilon
    if dummies_delta(noise, high, rounds=rounds) > target:
        return math.inf
    if dummies_delta(noise, 0.0, rounds=rounds) <= target:
        return 0.0
    return bisect(lambda e: dummies_delta(noise, e, rounds=rounds) <= target, 0.0, high, tolerance=1e-9)


def dummies_for_rounds(
    *, k: int, epsilon: float, delta: float, rounds: int, law: str = "better"
) -> Dummies | GaussianDummies:
    """The dummies of one round of several about the same people that together are (epsilon, delta)-private.

    Parameters
    ----------
    law : "geometric", "gaussian" or "better"
        Of the numbers of dummies; the better one has the smaller variance: Gaussian from about five rounds on.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and where a symbol would need more dummies than are drawn.

    Examples
    --------
    >>> monthly = dummies_for_rounds(k=4, epsilon=1.0, delta=1e-6, rounds=12)
    >>> type(monthly).__name__, round(monthly.variance**0.5, 1)
    ('GaussianDummies', 20.7)
    """
    word("law", law, ("geometric", "gaussian", "better"), '"geometric", "gaussian" or "better"')
    many, wanted = whole("rounds", rounds, least=1, most=MOST_ROUNDS), share("delta", delta)
    epsilon = privacy_budget("epsilon", epsilon)
    found: list[Dummies | GaussianDummies] = []
    refused: ParameterError | None = None
    for kind, made in (("geometric", _geometric), ("gaussian", _gaussian)):
        if law in (kind, "better"):
            try:
                found.append(made(k, epsilon, wanted, many))
            except ParameterError as error:  # one of them may be wider than is drawn where the other is not
                refused = refused or error
    if not found:
        assert refused is not None
        raise refused
    return min(found, key=lambda one: one.variance)


def _gaussian(k: int, epsilon: float, delta: float, rounds: int) -> GaussianDummies:
    return GaussianDummies(k, message_for(weights=(1,), epsilon=epsilon, delta=delta, rounds=rounds).laws[0])


def _geometric(k: int, epsilon: float, delta: float, rounds: int) -> Dummies:
    if rounds == 1:
        return Dummies(k, epsilon, delta)
    found = [_for_rounds(k, epsilon, delta, rounds, part) for part in (0.05, 0.15, 0.4)]
    return min(found, key=lambda one: one.variance)


def _for_rounds(k: int, epsilon: float, delta: float, rounds: int, part: float) -> Dummies:
    """The largest epsilon of a round found where failures take this part of delta."""
    alone = part * delta / rounds
    least, most = epsilon / rounds, min(epsilon, 2.0 * epsilon / math.sqrt(rounds))

    def keeps(each: float) -> bool:
        return dummies_delta(Dummies(k, each, alone).noise, epsilon, rounds=rounds) <= delta

    return Dummies(k, bisect(keeps, most, least, tolerance=1e-4), alone)


def dummies_guarantee(
    dummies: Dummies | GaussianDummies | Message,
    *,
    n: int,
    delta: float | None = None,
    rounds: int = 1,
    randomizer: KRR | None = None,
    honest: int | None = None,
) -> CentralDP:
    r"""Guarantee of a batch with dummies, and against whom.

    The promise holds against the analyst with any number of participants, if the shuffler adds the dummies once and
    as specified and keeps their numbers and its randomness secret. Shuffler and analyst together read every answer,
    or, with local noise, what the local guarantee leaves. With k-ary randomized response underneath (gamma the
    probability of a truthful report) the smaller of its own amplification and of

    .. math:: \delta(\log(1 + \gamma (E - 1))) \le \gamma\, \delta_{\mathrm{dummies}}(\log E)

    Parameters
    ----------
    dummies : Dummies, GaussianDummies or Message
        Those of a message are of the questions that a person answers in it, each shuffled by itself.
    n : int
        People in a round; public.
    delta : float, optional
        Default that of `Dummies`; others have none of their own.
    rounds : int
        Rounds about the same people, with fresh dummies each; or symbols that a person sends at once, of separate
        lists.
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
    if not isinstance(dummies, GaussianDummies | Message):
        dummies = instance("dummies", dummies, Dummies)
    if delta is None and not isinstance(dummies, Dummies):
        raise ParameterError("`delta` must be given for Gaussian dummies: they have none of their own.")
    wanted = dummies.delta if delta is None else share("delta", delta)  # type: ignore[union-attr]
    law: Law = dummies if isinstance(dummies, Message) else dummies.noise
    rounds = whole("rounds", rounds, least=1, most=MOST_ROUNDS)
    randomizer = None if randomizer is None else instance("randomizer", randomizer, KRR)
    if randomizer is not None and rounds > 1:
        raise UnsupportedError("rounds with dummies and local noise have no common account here; use one of them.")
    gamma = 1.0 if randomizer is None else randomizer.channel().contrast * (1.0 + 1e-12)
    if randomizer is not None and isinstance(dummies, Message):
        raise UnsupportedError("local noise below dummies of several questions has no account; use one of them.")
    if randomizer is not None and randomizer.k != dummies.k:  # type: ignore[union-attr]
        raise UnsupportedError(f"dummies of {dummies.k:,} symbols do not fit {randomizer.k:,} of the randomizer.")  # type: ignore[union-attr]
    alone = dummies_epsilon(law, min(wanted / gamma, 1.0 - 1e-9), rounds=rounds)
    if math.isinf(alone):
        most = rounds * law.epsilon if isinstance(law, TruncatedGeometric) else 1e6
        least = dummies_delta(law, most, rounds=rounds)
        raise UnsupportedError(f"no epsilon keeps delta {wanted:g} with these dummies: take at least {least:.3g}.")
    both = math.log1p(gamma * math.expm1(alone)) * UP if alone < 700.0 else alone
    questions = len(law.weights) if isinstance(law, Message) else 1
    exact = 1.0 - 4e-6 - 2e-11 * rounds * questions  # but for rounding, and what the grid splits
    lines, source, least = (both, both, math.inf), _source(law), both * max(exact, 0.0)
    people, trusted = whole("n", n, least=1), n if honest is None else whole("honest", honest, least=1, most=n)
    hidden = 1  # honest people that the promise needs: nobody but the person herself
    if randomizer is not None:
        local = amplify(randomizer, n=people, delta=wanted, honest=trusted)
        lines = (min(both, local.all), min(both, local.honest), randomizer.epsilon)
        least = min(least, local.numeric.lower)
        hidden = 1 if both <= local.honest else trusted
        source = _source(law) if both <= local.honest else f"{local.source}; dummies are post-processing"
    return CentralDP(
        all=lines[0], honest=lines[1], colluding=lines[2], delta=wanted, n=people, honest_n=hidden,
        method=METHOD, source=source, numeric=Bracket(min(least, lines[1]), lines[1]), attack_lower=0.0,
        trust="shuffler",
    )  # fmt: skip


def _source(law: Law) -> str:
    return SOURCE if isinstance(law, TruncatedGeometric) else GAUSSIAN_SOURCE


def sparse_guarantee(dummies: SparseDummies, *, n: int, rounds: int = 1, delta: float = 0.0) -> CentralDP:
    r"""Guarantee of batches with sparse dummies, against the analyst with any number of participants.

    .. math:: \frac{P}{Q} = \frac{L(a)}{L(b)}, \qquad L(0) = 1 - \beta, \quad
              L(a) = (1 - \beta) e^{\epsilon} \ (a \ge 1)

    The likelihood of a count depends on her only through whether it is 0 less the others' reports: two values. It
    protects taking part at about epsilon / 2, and g people together at g epsilon. So the loss of a batch is epsilon,
    -epsilon or 0, and that of several is a sum of such: see `sparse_delta`.

    Parameters
    ----------
    n : int
        People; public, while the number of reports that were kept is a secret of the shuffler.
    rounds : int
        Batches about the same people, each with coins and dummies of its own.
    delta : float
        Of several batches together, where it lowers epsilon by a thousandth; one batch needs none, and has none.

    Raises
    ------
    ParameterError
        For no sparse dummies, for fewer than one person, and for numbers outside their ranges.

    Examples
    --------
    >>> promise = sparse_guarantee(SparseDummies(k=1_000_000, epsilon=1.0), n=1000)
    >>> promise.epsilon <= 1.0, promise.delta, promise.trust
    (True, 0.0, 'shuffler')

    Source
    ------
    docs/theory/several-symbols.md, Theorems P1 and P4.
    """
    dummies, people = instance("dummies", dummies, SparseDummies), whole("n", n, least=1)
    many = whole("rounds", rounds, least=1, most=MOST_SPARSE_ROUNDS)
    wanted = share("delta", delta) if many > 1 and delta else 0.0
    most = many * _sparse_loss(dummies) * UP ** (many > 1)
    if wanted:
        exact = bisect(
            lambda epsilon: sparse_delta(dummies, epsilon, rounds=many) <= wanted, 0.0, most, tolerance=1e-9
        )
        most, wanted = (exact, wanted) if most > WORTH_DELTA * exact else (most, 0.0)
    return CentralDP(
        all=most, honest=most, colluding=math.inf, delta=wanted, n=people, honest_n=1, method=METHOD,
        source=SPARSE_SOURCE, numeric=Bracket(most * (1.0 - 1e-6), most), attack_lower=0.0, trust="shuffler",
    )  # fmt: skip


def sparse_delta(dummies: SparseDummies, epsilon: float, *, rounds: int = 1) -> float:
    r"""Least delta with which batches with sparse dummies keep epsilon together, rounded up.

    .. math:: \delta(\epsilon') = \sum_j \Pr[J = j] \bigl(1 - e^{\epsilon' - j \epsilon}\bigr)_+, \qquad
              J = J_1 + \dots + J_T, \quad \Pr[J_t = 1] = (1 - (1 - q)(1 - \beta)) (1 - q), \quad
              \Pr[J_t = -1] = (1 - q)(1 - \beta) q

    Examples
    --------
    >>> round(sparse_delta(SparseDummies(k=4, epsilon=0.1025), 1.0, rounds=12) * 1e6, 1)
    1.0

    Source
    ------
    docs/theory/several-symbols.md, Theorem P4.
    """
    many = whole("rounds", rounds, least=1, most=MOST_SPARSE_ROUNDS)
    loss, wanted = _sparse_loss(dummies), real("epsilon", epsilon)
    gains = np.arange(-many, many + 1) * (loss * UP) - wanted
    above = gains > 0.0
    return float(_trinomial(dummies.kept, dummies.more, many)[above] @ -np.expm1(-gains[above])) * UP


def sparse_for_rounds(*, k: int, epsilon: float, delta: float, rounds: int) -> SparseDummies:
    """The sparse dummies of one round of several about the same people that together are (epsilon, delta)-private.

    Symbols of a person count as rounds. Where delta makes no difference of a thousandth they do without.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.

    Examples
    --------
    >>> round(sparse_for_rounds(k=4, epsilon=1.0, delta=1e-6, rounds=12).epsilon, 4)
    0.1025
    """
    many, wanted = whole("rounds", rounds, least=1, most=MOST_SPARSE_ROUNDS), share("delta", delta)
    epsilon = privacy_budget("epsilon", epsilon, most=40.0)
    if many == 1:
        return SparseDummies(k, epsilon)

    def keeps(each: float) -> bool:
        return sparse_delta(SparseDummies(k, each), epsilon, rounds=many) <= wanted

    least = epsilon / many * (1.0 - 1e-6)
    found = bisect(keeps, min(epsilon, 4.0 * epsilon / math.sqrt(many)), least, tolerance=1e-6)
    return SparseDummies(k, found if found * many > WORTH_DELTA * epsilon else least)


def _sparse_loss(dummies: SparseDummies) -> float:
    """Bound the privacy loss of a batch: log(1 + beta / (q (1 - beta)))."""
    return min(dummies.epsilon, math.log1p(float(dummies.kept / (dummies.more * (1 - dummies.kept)))) * UP)


@lru_cache(maxsize=64)
def _trinomial(kept: Fraction, more: Fraction, rounds: int) -> NDArray[np.float64]:
    """Pr[J = j], j = -rounds .. rounds: sums of positive terms, which lose no digit."""
    empty = (1 - more) * (1 - kept)  # that nothing of her answer is there
    found, power, left = np.ones(1), np.array([float(empty * more), 0.0, float((1 - empty) * (1 - more))]), rounds
    power[1] = float(1 - empty * more - (1 - empty) * (1 - more))
    while left:
        if left & 1:
            found = np.convolve(found, power)
        left >>= 1
        if left:
            power = np.convolve(power, power)
    return found


# What dummies promise that people send themselves, and how often each has to send one.


USER_SOURCE = "Dummies that people send, uniform symbols with a probability (docs/theory/accuracy.md, section C3)"
USER_METHOD = "dummies of people"
MOST_PEOPLE = 10**9
MOST_EPSILON = 20.0
TOLERANCE = 1e-5  # relative, of what is searched for
FIXED = MOST_EPSILON * 2.0 ** (-np.arange(49) / 8.0)  # epsilons that are tried where bounds fall and rise again


@dataclass(frozen=True)
class UserDummiesLaw:
    r"""Privacy profile of a batch with the dummies of h honest people, the victim's included.

    .. math:: \delta(\epsilon) = k\, E_M\left[\frac{E (A - e^\epsilon B)_+}{M + 1}\right], \qquad
              M \sim \mathrm{Bin}(h, \mathrm{rate}), \quad (A, B) \sim \mathrm{multinomial}(M + 1; \tfrac1k, \tfrac1k)

    Equality for every data set: her message lies uniformly among M + 1 uniform ones. It is 1/n times the expected
    positive part of a sum of n = h + 1 independent copies of k / rate, -E k / rate or 0, the first two with
    probability rate / k each: a message that shows the one value, the other, or none of them.

    Parameters
    ----------
    k, honest : int
    rate : float
    symbols : int
        That a person sends, m. Another person's are changed one after the other, each among the same dummies:
        delta_m(epsilon) is at most the sum of e^(i epsilon / m) delta(epsilon / m), i = 0 .. m - 1.
    """

    k: int
    honest: int
    rate: float
    symbols: int = 1

    def ends(self, epsilon: float) -> Bracket:
        """Ends of delta at `epsilon`, at least 0; the lower one is that of people who differ in one symbol."""
        alone = self._one(epsilon)
        if self.symbols == 1:
            return alone
        best = math.inf  # what holds at a smaller epsilon holds here
        for smaller in FIXED[epsilon >= FIXED]:
            if (found := self._several(float(smaller))) >= best:
                break
            best = found
        # in between no less than at the next one: a bound that fell and rose again would refuse what it had allowed
        above = min(best, self._several(float(min(FIXED[epsilon <= FIXED], default=epsilon))))
        return Bracket(alone.lower, min(1.0, max(above, min(best, self._several(epsilon)))))

    def _several(self, epsilon: float) -> float:
        part = epsilon / self.symbols
        return math.fsum(math.exp(i * part) for i in range(self.symbols)) * self._one(part).upper * UP

    def _one(self, epsilon: float) -> Bracket:
        each, share = self.k / self.rate, self.rate / self.k
        values, masses = np.array([each, -math.exp(epsilon) * each, 0.0]), np.array([share, share, 1.0 - 2.0 * share])
        found = expected_positive_part(values, np.maximum(masses, 0.0), self.honest + 1)
        return Bracket(min(1.0, found.lower / UP), min(1.0, found.upper * UP))

    def delta(self, epsilon: float) -> float:
        """Upper end of delta at `epsilon`."""
        return self.ends(epsilon).upper

    def epsilon(self, delta: float) -> float:
        """The least epsilon found that keeps `delta`; infinite where none up to 20 does."""
        slack = math.log(1.0 / max(delta, 1e-300))
        guess = 2.0 * math.sqrt(slack * self.k / (self.honest * self.rate + 1.0))
        tried = min(4.0 * guess, MOST_EPSILON)
        # a plateau may lie so close below `delta` that the rounding at 20, larger than that at less, hides it
        most = next((one for one in (MOST_EPSILON, tried, *FIXED.tolist()) if self.delta(one) <= delta), math.inf)
        if most == math.inf:
            return most
        if self.delta(0.0) <= delta:
            return 0.0
        return bracket_root(
            lambda e: log_ratio(self.delta(e), delta), min(guess, 0.5 * most),
            steepness=2.0 * slack + 1.0, most=most, tolerance=TOLERANCE,
        )[1]  # fmt: skip

    def epsilon_lower(self, delta: float, *, found: float) -> float:
        """An epsilon that the theorem's own value is not below: tried a little below the one that was found."""
        tried = (part * found for part in (0.998, 0.99, 0.95, 0.8))
        return next((one for one in tried if self.ends(one).lower > delta), 0.0)


def user_dummies_for(*, k: int, epsilon: float, delta: float, honest: int, symbols: int = 1) -> UserDummies:
    """The dummies that make a batch (epsilon, delta)-private where at least `honest` people send theirs.

    Parameters
    ----------
    k : int, 2 to 2^24
    epsilon : float, above 0, at most 20, nats
    delta : float, above 0, below 1
    honest : int, up to 1e9
        People whose symbol and whose dummies arrive; set it below the number that is expected: each who drops out
        takes noise away.
    symbols : int, at least 1
        That a person sends, of these k.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and where so few people cannot hide anybody with a dummy each.

    Examples
    --------
    >>> round(user_dummies_for(k=1000, epsilon=1.0, delta=1e-6, honest=100_000).rate, 3)
    0.427
    """
    values, wanted = whole("k", k, least=2, most=1 << 24), privacy_budget("epsilon", epsilon, most=MOST_EPSILON)
    sent = whole("symbols", symbols, least=1, most=1 << 16)
    if not (slack := share("delta", delta)) > 0.0:
        raise refuse("delta", "above 0: dummies of people are no more than so many", delta)
    people = whole("honest", honest, least=1, most=MOST_PEOPLE)
    floor = least_dummies(values, wanted * (1.0 - 2.0 * TOLERANCE), slack, symbols=sent)
    if people < floor:
        raise refuse(
            "honest",
            f"at least {floor:,} for {values:,} values at epsilon {wanted:g} and delta {slack:g}, with "
            f"{'two' if sent == 1 else sent + 1} messages a person",
            people,
        )
    tighter = wanted * (1.0 - 2.0 * TOLERANCE)  # so that the promise that is found again is not above what is asked
    _, rate = bracket_root(
        lambda x: log_ratio(UserDummiesLaw(values, people, x, sent).delta(tighter), slack), 1.01 * floor / people,
        steepness=math.log(1.0 / slack) + 0.5, most=1.0, tolerance=TOLERANCE,
    )  # fmt: skip
    return UserDummies(values, math.ceil(rate * SCALE) / SCALE)


def least_dummies(k: int, epsilon: float, delta: float, *, symbols: int = 1) -> int:
    """The least number of dummies found that hides a person: as many honest people have to send one at least."""
    low, high = 0, 16
    while UserDummiesLaw(k, high, 1.0, symbols).delta(epsilon) > delta:
        low, high = high, 2 * high
        if high > 2 * MOST_PEOPLE:
            raise refuse("epsilon", f"larger: it takes dummies of more than {MOST_PEOPLE:,} people", epsilon)
    while high - low > 1:
        middle = (low + high) // 2
        enough = UserDummiesLaw(k, middle, 1.0, symbols).delta(epsilon) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


@lru_cache(maxsize=256)
def most_values(*, epsilon: float, delta: float, honest: int) -> int:
    """The most values of which so many honest people hide one among a dummy each; 0 where they do not hide two.

    >>> most_values(epsilon=1.0, delta=1e-6, honest=10_000)
    234
    """
    people = whole("honest", honest, least=1, most=MOST_PEOPLE)
    tighter = privacy_budget("epsilon", epsilon, most=MOST_EPSILON) * (1.0 - 2.0 * TOLERANCE)
    fit = bisect_left(range(2, 1 << 24), True, key=lambda k: UserDummiesLaw(k, people, 1.0).delta(tighter) > delta)
    return fit + 1 if fit else 0


def user_dummies_guarantee(
    dummies: UserDummies, *, n: int, delta: float, honest: int | None = None, symbols: int = 1
) -> CentralDP:
    """Guarantee of a batch with dummies of its people, and against whom.

    It holds against the analyst and everybody else together, if at least `honest` people follow the protocol and both
    their symbol and their dummies arrive, and the shuffler mixes the messages and tells nobody whose they are. A
    malicious person can only add what hides the others better, and shift counts by the cap of m + 1 messages with m
    symbols. Shuffler and analyst together read every answer: there is no local promise.

    Parameters
    ----------
    n : int
        People whose messages are in the batch; public.
    honest : int, optional
        Of them; default all.
    symbols : int
        That a person sends.

    Raises
    ------
    UnsupportedError
        Where no epsilon keeps delta: too few of them are honest.

    Examples
    --------
    >>> dummies = user_dummies_for(k=16, epsilon=1.0, delta=1e-6, honest=90_000)
    >>> promise = user_dummies_guarantee(dummies, n=100_000, delta=1e-6, honest=90_000)
    >>> promise.trust, 0.999 < promise.honest <= 1.0, round(promise.all, 2), promise.colluding
    ('users', True, 0.93, inf)

    Source
    ------
    docs/theory/accuracy.md, section C3.
    """
    people, slack = whole("n", n, least=1, most=MOST_PEOPLE), share("delta", delta)
    dummies = instance("dummies", dummies, UserDummies)
    if not slack > 0.0:
        raise refuse("delta", "above 0: dummies of people are no more than so many", delta)
    trusted = people if honest is None else whole("honest", honest, least=1, most=people)
    law = UserDummiesLaw(dummies.k, trusted, dummies.rate, symbols)
    some = law.epsilon(slack)
    if math.isinf(some):
        raise UnsupportedError(
            f"no epsilon up to {MOST_EPSILON:g} keeps delta {slack:g} with the dummies of {trusted:,} honest people."
        )
    every = some if trusted == people else min(some, replace(law, honest=people).epsilon(slack))
    return CentralDP(
        all=every, honest=some, colluding=math.inf, delta=slack, n=people, honest_n=trusted, method=USER_METHOD,
        source=USER_SOURCE, numeric=Bracket(min(some, law.epsilon_lower(slack, found=some)), some), attack_lower=0.0,
        trust="users",
    )  # fmt: skip
