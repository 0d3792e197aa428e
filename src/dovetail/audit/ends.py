"""Bounds on the smallest epsilon of a mechanism at a delta: a witness from below, a proof from above."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from dovetail.account.accountant import Accountant
from dovetail.account.renyi import renyi_epsilon
from dovetail.core.checks import positive, privacy_budget, probability, refuse
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import Randomizer

LOCAL = "The local promises add up (Dwork and Roth, 2014, Theorem 3.16)"
REACHED = "Reached where all n reports fall into the set in which one report reaches its own epsilon"
LOST = 1e-13  # relative: far above what these short formulas lose
MOST = 700.0  # of a local epsilon, nats
TAIL, MOST_TERMS = 39.0, 2_000_000  # of discrete Gaussian noise: beyond so many deviations a double is 0
SUMMED, SUMMED_TO = (
    1e-9,
    600.0,
)  # relative: above what sums of so many terms lose; nats, where a double still holds them


@dataclass(frozen=True)
class Ends:
    """Ends of the smallest epsilon that holds at the delta that was asked about.

    Parameters
    ----------
    lower : float, nats
        The witness reaches it, so that no claim below it is true; rounded down.
    upper : float or None, nats
        Proved, rounded up; None where no theorem here bounds it.
    witness : str
        What reaches `lower`, in words.
    source : str
        The theorem of `upper`, or of `lower` where there is no upper end.
    """

    lower: float
    upper: float | None
    witness: str
    source: str


# Reports of people: shuffled, or each in the open, which is a batch of one.


def report_ends(
    subjects: Sequence[Randomizer | float], *, n: int, honest: int | None, rounds: int, delta: float
) -> Ends:
    """Ends for reports that are shuffled among n people, one batch for each of the subjects in each of the rounds.

    A float stands for any randomizer with that promise. At delta = 0 both ends are the sum of the local promises for
    it: let A be the reports where one of them reaches its ratio e^epsilon0; the event "all n reports in A" has that
    ratio too, no matter what the others hold.

    >>> ends = report_ends([8.0], n=1000, honest=None, rounds=1, delta=1e-5)
    >>> round(ends.lower, 3), round(ends.upper, 3)
    (7.999, 8.0)
    """
    first, *others = [Accountant(one, n=n, honest=honest, rounds=rounds) for one in subjects]
    accountant = reduce(Accountant.compose, others, first)
    total = as_written(*(_promise(one) for one in subjects), times=rounds)
    upper = min(accountant.epsilon(delta), total)
    if delta == 0.0:  # what each of them reaches in one round adds up
        reached = [Accountant(one, n=n, honest=honest).attack(0.0) for one in subjects]
        lower = min(as_written(*reached, times=rounds), upper)
        return Ends(lower, upper, f"{_named(subjects)}, and the event that all reports fall into one set", REACHED)
    lower = min(accountant.attack(delta), upper)
    bounds = [bound for bound in accountant.bounds(delta) if bound.epsilon is not None]
    best = min(bounds, key=lambda bound: float(bound.epsilon or 0.0), default=None)
    around = ", everybody else on one value" if n > 1 else ""
    return Ends(lower, upper, f"{_named(subjects)}{around}", LOCAL if best is None else best.source)


def sampled_ends(epsilon0: float, *, rate: float, delta: float) -> Ends:
    r"""Ends for any pure mechanism with promise epsilon0, run on a random sample of the people.

    .. math:: \epsilon = \ln \max\{1, 1 + r (p - 1) - \delta (p + 1)\}, \qquad p = e^{\epsilon_0}

    Poisson sampling where a person is added or removed; a sample of fixed size where her value is replaced.

    >>> ends = sampled_ends(1.0, rate=0.1, delta=0.0)
    >>> round(ends.lower, 6), round(ends.upper, 6)
    (0.158565, 0.158565)
    """
    gain = probability("rate", rate) * math.expm1(privacy_budget("epsilon0", epsilon0))
    spent = delta * (math.exp(epsilon0) + 1.0)
    lost = LOST * (gain + spent)
    lower, upper = (math.log1p(max(0.0, gain - spent + slack)) for slack in (-lost, lost))
    return Ends(
        lower * (1.0 - LOST),
        upper * (1.0 + LOST),
        f'binary randomized response with epsilon0 = {epsilon0:g} to "is she in the sample"',
        "Balle, Barthe, Gaboardi (2018), Privacy Amplification by Subsampling, Theorems 8 and 9",
    )


def split_ends(promises: Sequence[float], *, moves: bool, delta: float) -> Ends:
    """Ends for pure mechanisms, each on a part of the people, where every person is in one part.

    Where nothing that is protected decides which part (not `moves`), a change is in one of them. Where her value
    does, as with a histogram that has a budget for each cell, a replaced value leaves one part and enters another:
    the two largest promises add up, and binary responses to "is she in it" reach that.

    >>> [split_ends([1.0, 1.0, 0.5], moves=moves, delta=0.0).upper for moves in (False, True)]
    [1.0, 2.0]
    """
    largest = sorted(promises, reverse=True)[: 2 if moves else 1]
    ends = report_ends(largest, n=1, honest=None, rounds=1, delta=delta)
    words = "a value that leaves one part and enters another" if len(largest) > 1 else "a change in one part"
    return replace(ends, witness=f"{ends.witness}, for {words}")


def sampled_noise_ends(ends_at: Callable[[float], Ends], *, rate: float, delta: float) -> Ends:
    r"""Ends for noise on the sum over a random sample; `ends_at` are those of the noise on everybody, by delta.

    .. math:: e^{\epsilon} = 1 + r (e^{\epsilon_1(\delta / r)} - 1)

    The witness: everybody else adds 0, so that the answer is a mixture of the noise around 0 and, with probability r,
    around what she adds. For an event A, (1-r) Q(A) + r P(A) - E Q(A) = r (P(A) - E_1 Q(A)) with E = 1 + r (E_1 - 1).

    >>> ends = sampled_noise_ends(lambda delta: laplace_ends(1.0, 1.0, rounds=1, delta=delta), rate=0.1, delta=0.0)
    >>> round(ends.lower, 6), round(ends.upper, 6)
    (0.158565, 0.158565)
    """
    share = probability("rate", rate)
    source = "Balle, Barthe, Gaboardi (2018), Privacy Amplification by Subsampling, Theorems 8 and 9"
    if delta >= share:
        return Ends(0.0, 0.0, "nobody is in the sample with more than delta", source)
    low, high = (ends_at(delta / share * (1.0 + slack)) for slack in (LOST, -LOST))
    upper = None if high.upper is None else _diluted(high.upper, share) * (1.0 + LOST)
    witness = f"{low.witness}, everybody else adding 0"
    return Ends(_diluted(low.lower, share) * (1.0 - LOST), upper, witness, source)


def _diluted(epsilon: float, rate: float) -> float:
    return epsilon + math.log(rate) if epsilon > MOST else math.log1p(rate * math.expm1(epsilon))


# Noise on a number: `sensitivity` is how far one person moves it, `scale` the noise's own.


def gaussian_ends(ratio: float, *, rounds: int, delta: float) -> Ends:
    r"""Ends for Gaussian noise; `ratio` is the L2 sensitivity over the standard deviation, `rounds` releases.

    .. math:: \delta(\epsilon) = \Phi(\mu/2 - \epsilon/\mu) - e^{\epsilon} \Phi(-\mu/2 - \epsilon/\mu), \qquad
              \mu = \sqrt{T} \, D / s

    >>> ends = gaussian_ends(1.0, rounds=1, delta=1e-5)
    >>> round(ends.lower, 6), round(ends.upper, 6)
    (4.377178, 4.377178)
    """
    from dovetail.core.special import gaussian_delta

    source = "Balle, Wang (2018), Improving the Gaussian Mechanism, Theorem 8"
    witness = "the likelihoods of two neighbouring numbers, compared"
    if delta == 0.0:
        return _never_pure(source)
    below, above = math.sqrt(rounds) * ratio * (1.0 - LOST), math.sqrt(rounds) * ratio * (1.0 + LOST)
    most = above * above / 2.0 + 45.0 * above  # there delta is below every double
    lower = _crossing(lambda epsilon: gaussian_delta(epsilon, mu=below).lower <= delta, most)[0]
    upper = _crossing(lambda epsilon: gaussian_delta(epsilon, mu=above).upper <= delta, most)[1]
    return Ends(lower, upper, witness, source)


def discrete_gaussian_ends(sensitivity: float, deviation: float, *, rounds: int, delta: float) -> Ends:
    r"""Ends for discrete Gaussian noise on a whole number, of probability proportional to exp(-y^2 / (2 s^2)).

    .. math:: \delta(\epsilon) = \Pr[Y > \epsilon s^2/D - D/2] - e^{\epsilon} \Pr[Y > \epsilon s^2/D + D/2]

    Smaller shifts tell less: the best tests are thresholds for every shift, and their power grows in it. For several
    releases the lower end is that of one, the upper end that of concentrated differential privacy.

    >>> ends = discrete_gaussian_ends(1, 1.0, rounds=1, delta=1e-5)
    >>> round(ends.lower, 4), round(ends.upper, 4)
    (4.4302, 4.4302)

    Raises
    ------
    UnsupportedError
        Where the sum has more than `MOST_TERMS` terms on each side.
    """
    if not float(sensitivity).is_integer():
        raise refuse("sensitivity", "a whole number for discrete noise", sensitivity)
    source = "Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy, Theorem 7"
    witness = "the likelihoods of two neighbouring numbers, compared"
    if delta == 0.0:
        return _never_pure(source)
    reach = math.ceil(TAIL * deviation + sensitivity)
    if reach > MOST_TERMS:
        raise UnsupportedError(f"Discrete Gaussian noise is summed up to {MOST_TERMS:,} terms, not {reach:,}")
    masses = np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2)
    tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0) / masses.sum()  # of y and above

    def delta_at(epsilon: float, slack: float) -> float:
        meets = epsilon * deviation * deviation / sensitivity
        near, far = (
            float(tails[min(max(math.floor(meets + side * sensitivity / 2) + 1 + reach, 0), tails.size - 1)])
            for side in (-1, 1)
        )
        lost = math.exp(epsilon) * far
        return near - lost + slack * (near + lost)

    ratio = sensitivity / deviation
    lower = _crossing(lambda epsilon: delta_at(epsilon, -SUMMED) <= delta, SUMMED_TO)[0]
    if rounds == 1 and delta_at(SUMMED_TO, SUMMED) <= delta:
        return Ends(
            lower, _crossing(lambda epsilon: delta_at(epsilon, SUMMED) <= delta, SUMMED_TO)[1], witness, source
        )
    orders = 1.0 + np.geomspace(1e-3, 1e6, 4000)
    upper = renyi_epsilon(orders, orders * (0.5 * rounds * ratio * ratio * (1.0 + LOST)), delta=delta)
    source = "Canonne, Kamath, Steinke (2020), Theorem 4 and Proposition 12"
    return Ends(min(lower, upper), upper, f"{witness}, in one release", source)


def laplace_ends(sensitivity: float, scale: float, *, rounds: int, delta: float) -> Ends:
    r"""Ends for Laplace noise, of density proportional to exp(-abs(y) / b).

    .. math:: \delta(\epsilon) = 1 - e^{(\epsilon - D/b)/2}

    For several releases at delta above 0 the lower end is that of one, the upper end that of any pure mechanism.

    >>> [round(laplace_ends(1.0, 2.0, rounds=1, delta=delta).upper, 6) for delta in (0.0, 0.1)]
    [0.5, 0.289279]
    """
    once = 2.0 * math.log1p(-delta)
    source = "delta(epsilon) = 1 - exp((epsilon - D/b)/2), by integration of the two densities"
    return _pure_noise_ends(sensitivity, scale, once, once, rounds=rounds, delta=delta, source=source)


def geometric_ends(sensitivity: float, scale: float, *, rounds: int, delta: float) -> Ends:
    r"""Ends for two-sided geometric noise on a whole number, of probability proportional to exp(-abs(y) / b).

    .. math:: \epsilon \ge D/b + \ln(1 - \delta (1 + e^{-1/b})), \qquad
              \epsilon \le D/b + \ln(1 - \delta (1 + e^{-D/b}))

    The witness is the event that the noise is at most 0; both ends are equal at D = 1.

    >>> ends = geometric_ends(1, 1.0, rounds=1, delta=0.01)
    >>> round(ends.lower, 6) == round(ends.upper, 6)
    True
    """
    if not float(sensitivity).is_integer():
        raise refuse("sensitivity", "a whole number for geometric noise", sensitivity)
    source = "Events of binary randomized response, which dominates every pure mechanism"
    steps = (1.0, float(sensitivity))
    below, above = (_log(1.0 - delta * (1.0 + math.exp(-step / scale))) for step in steps)
    return _pure_noise_ends(sensitivity, scale, below, above, rounds=rounds, delta=delta, source=source)


def count_ends(sensitivity: float, deviation: float, *, delta: float) -> Ends:
    r"""The lower end for every unbiased answer with this standard deviation.

    .. math:: \epsilon \ge 2 \operatorname{asinh}(D / (2 s))

    Under a pure epsilon the chi-square of neighbours is at most (e^epsilon - 1)^2 / e^epsilon, and two means that
    differ by D need D^2 / s^2 of it.

    >>> round(count_ends(1.0, 0.5, delta=0.0).lower, 6)
    1.762747

    Raises
    ------
    UnsupportedError
        With delta above 0, where chi-square can be infinite.
    """
    if delta > 0.0:
        raise UnsupportedError("The accuracy of an answer bounds a pure epsilon only; take delta = 0")
    lower = 2.0 * math.asinh(sensitivity / (2.0 * deviation)) * (1.0 - LOST)
    witness = f"no unbiased answer has a standard deviation of {deviation:g} with less"
    return Ends(lower, None, witness, "Hammersley, Chapman, Robbins bound on the variance of an unbiased estimate")


def _pure_noise_ends(
    sensitivity: float, scale: float, below: float, above: float, *, rounds: int, delta: float, source: str
) -> Ends:
    """Ends that lie by so much (below 0) from the pure D/b, once; several releases compose."""
    once = float(written(sensitivity) / written(scale))
    total = float(written(sensitivity) * rounds / written(scale))
    witness = "the likelihoods of two neighbouring numbers, compared"
    if delta == 0.0:
        return Ends(total, total, witness, "The largest ratio of the two laws is exp(D/b) in each release")
    lost = LOST * (once - below)
    lower = max(0.0, once + below - lost) if below > -math.inf else 0.0
    if rounds == 1:
        upper = max(0.0, once + above + LOST * (once - above)) if above > -math.inf else 0.0
        return Ends(lower, upper, witness, source)
    upper, theorem = total * (1.0 + LOST), LOCAL
    if once * (1.0 + LOST) <= MOST:
        composed = report_ends([once * (1.0 + LOST)], n=1, honest=None, rounds=rounds, delta=delta)
        upper, theorem = min(upper, composed.upper or upper), composed.source
    return Ends(lower, upper, f"{witness}, in one release", theorem)


# Numbers as they are written: 3 releases of 0.1 are 0.3, and 3 over 10 is 0.3.


def written(value: float) -> Fraction:
    """The decimal number that was written, exactly.

    >>> float(written(0.1) * 3), 0.1 * 3
    (0.3, 0.30000000000000004)
    """
    return Fraction(repr(float(value)))


def as_written(*values: float, times: int = 1) -> float:
    """A multiple of the sum of numbers as they were written, to the nearest double."""
    return float(sum(map(written, values), Fraction(0)) * times)


def noise_ratio(sensitivity: float, scale: float) -> float:
    """Sensitivity over scale."""
    return float(written(positive("sensitivity", sensitivity)) / written(positive("scale", scale)))


def _promise(subject: Randomizer | float) -> float:
    return subject if isinstance(subject, float) else float(subject.guarantee.epsilon)


def _named(subjects: Sequence[Randomizer | float]) -> str:
    words = [
        f"a randomized response with epsilon0 = {one:g}" if isinstance(one, float) else one.label for one in subjects
    ]
    return ", ".join(dict.fromkeys(words))


def _never_pure(source: str) -> Ends:
    return Ends(math.inf, None, "far out the ratio of the two likelihoods is above every bound", source)


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _crossing(keeps: Callable[[float], bool], most: float) -> tuple[float, float]:
    """Points beside each other, the claim still broken at the first and kept at the second; 0 twice if it always is.

    `keeps(most)` is the caller's word.
    """
    if keeps(0.0):
        return 0.0, 0.0
    low, high = 0.0, most
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return low, high
