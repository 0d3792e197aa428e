"""What dummies promise that people send themselves, and how often each has to send one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.account.blanket.expected_positive_part import expected_positive_part
from dovetail.account.threshold_search import bracket_root, log_ratio
from dovetail.core.bracket import Bracket
from dovetail.core.checks import instance, privacy_budget, refuse, share, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.shuffle.dummies.user_dummies import UserDummies
from dovetail_protocol.wire.sent_dummies import SCALE

SOURCE = "Dummies that people send, uniform symbols with a probability (docs/theory/accuracy.md, section C3)"
METHOD = "dummies of people"
MOST_PEOPLE = 10**9
MOST_EPSILON = 20.0
TOLERANCE = 1e-5  # relative, of what is searched for
UP = 1.0 + 1e-9  # far beyond the rounding of sums of positive terms


@dataclass(frozen=True)
class UserDummiesLaw:
    r"""What a batch tells of one of its people, with the dummies of h honest ones, hers included.

    .. math:: \delta(\epsilon) = k\, E_M\left[\frac{E (A - e^\epsilon B)_+}{M + 1}\right], \qquad
              M \sim \mathrm{Bin}(h, \mathrm{rate}), \quad (A, B) \sim \mathrm{multinomial}(M + 1; \tfrac1k, \tfrac1k)

    Equality for every data set: her message lies uniformly among M + 1 uniform ones. It is 1/n times the expected
    positive part of a sum of n = h + 1 independent copies of k / rate, -E k / rate or 0, the first two with
    probability rate / k each: a message that shows the one value, the other, or none of them.

    Parameters
    ----------
    k, honest : int
    rate : float
    """

    k: int
    honest: int
    rate: float

    def ends(self, epsilon: float) -> Bracket:
        """Ends of delta at `epsilon`, at least 0."""
        each, share = self.k / self.rate, self.rate / self.k
        values, masses = np.array([each, -math.exp(epsilon) * each, 0.0]), np.array([share, share, 1.0 - 2.0 * share])
        found = expected_positive_part(values, np.maximum(masses, 0.0), self.honest + 1)
        return Bracket(min(1.0, found.lower / UP), min(1.0, found.upper * UP))

    def delta(self, epsilon: float) -> float:
        """Upper end of delta at `epsilon`."""
        return self.ends(epsilon).upper

    def epsilon(self, delta: float) -> float:
        """The least epsilon found that keeps `delta`; infinite where none up to 20 does."""
        if self.delta(MOST_EPSILON) > delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        slack = math.log(1.0 / delta)
        guess = 2.0 * math.sqrt(slack * self.k / (self.honest * self.rate + 1.0))
        return bracket_root(
            lambda e: log_ratio(self.delta(e), delta), min(guess, 0.5 * MOST_EPSILON),
            steepness=2.0 * slack + 1.0, most=MOST_EPSILON, tolerance=TOLERANCE,
        )[1]  # fmt: skip

    def epsilon_lower(self, delta: float, *, found: float) -> float:
        """An epsilon that the theorem's own value is not below: tried a little below the one that was found."""
        tried = (part * found for part in (0.998, 0.99, 0.95, 0.8))
        return next((one for one in tried if self.ends(one).lower > delta), 0.0)


def user_dummies_for(*, k: int, epsilon: float, delta: float, honest: int) -> UserDummies:
    """The dummies that make a batch (epsilon, delta)-private where at least `honest` people send theirs.

    Parameters
    ----------
    k : int, 2 to 2^24
    epsilon : float, above 0, at most 20, nats
    delta : float, above 0, below 1
    honest : int, up to 1e9
        People whose symbol and whose dummies arrive; set it below the number that is expected: each who drops out
        takes noise away.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and where so few people cannot hide anybody with two messages each.

    Examples
    --------
    >>> round(user_dummies_for(k=1000, epsilon=1.0, delta=1e-6, honest=100_000).rate, 3)
    0.427
    """
    symbols, wanted = whole("k", k, least=2, most=1 << 24), privacy_budget("epsilon", epsilon, most=MOST_EPSILON)
    if not (slack := share("delta", delta)) > 0.0:
        raise refuse("delta", "above 0: dummies of people are no more than so many", delta)
    people = whole("honest", honest, least=1, most=MOST_PEOPLE)
    floor = least_dummies(symbols, wanted * (1.0 - 2.0 * TOLERANCE), slack)
    if people < floor:
        raise refuse(
            "honest",
            f"at least {floor:,} for {symbols:,} values at epsilon {wanted:g} and delta {slack:g}, with two messages "
            "a person",
            people,
        )
    tighter = wanted * (1.0 - 2.0 * TOLERANCE)  # so that the promise that is found again is not above what is asked
    _, rate = bracket_root(
        lambda x: log_ratio(UserDummiesLaw(symbols, people, x).delta(tighter), slack), 1.01 * floor / people,
        steepness=math.log(1.0 / slack) + 0.5, most=1.0, tolerance=TOLERANCE,
    )  # fmt: skip
    return UserDummies(symbols, math.ceil(rate * SCALE) / SCALE)


def least_dummies(k: int, epsilon: float, delta: float) -> int:
    """The least number of dummies found that hides a person: as many honest people have to send one at least."""
    low, high = 0, 16
    while UserDummiesLaw(k, high, 1.0).delta(epsilon) > delta:
        low, high = high, 2 * high
        if high > 2 * MOST_PEOPLE:
            raise refuse("epsilon", f"larger: it takes dummies of more than {MOST_PEOPLE:,} people", epsilon)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if UserDummiesLaw(k, middle, 1.0).delta(epsilon) <= delta else (middle, high)
    return high


def user_dummies_guarantee(dummies: UserDummies, *, n: int, delta: float, honest: int | None = None) -> CentralDP:
    """What a batch with dummies of its people promises, and against whom.

    It holds against the analyst and everybody else together, if at least `honest` people follow the protocol and both
    their symbol and their dummies arrive, and the shuffler mixes the messages and tells nobody whose they are. A
    malicious person can only add what hides the others better, and shift a count by the cap of two. Shuffler and
    analyst together read every answer: there is no local promise.

    Parameters
    ----------
    n : int
        People whose messages are in the batch; public.
    honest : int, optional
        Of them; default all.

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
    law = UserDummiesLaw(dummies.k, trusted, dummies.rate)
    some = law.epsilon(slack)
    if math.isinf(some):
        raise UnsupportedError(
            f"no epsilon up to {MOST_EPSILON:g} keeps delta {slack:g} with the dummies of {trusted:,} honest people."
        )
    every = some if trusted == people else min(some, UserDummiesLaw(dummies.k, people, dummies.rate).epsilon(slack))
    return CentralDP(
        all=every, honest=some, colluding=math.inf, delta=slack, n=people, honest_n=trusted, method=METHOD,
        source=SOURCE, numeric=Bracket(min(some, law.epsilon_lower(slack, found=some)), some), attack_lower=0.0,
        trust="users",
    )  # fmt: skip
