"""The inverse questions: how much local privacy loss the shuffler can absorb, and how many people that takes."""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from dovetail.account.accountant import Accountant
from dovetail.account.amplify import Subject
from dovetail.account.bound import bracket_root, log_ratio
from dovetail.account.clones import ClonePair
from dovetail.account.hidden_among_everybody import SEARCH
from dovetail.account.mechanism_law import everybody_law
from dovetail.account.privacy_loss import MechanismCurve, normal_spread
from dovetail.account.rounds import MOST_ROUNDS
from dovetail.core.checks import MOST_PEOPLE, flag, privacy_budget, refuse, share, whole
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.stages import Randomizer

MOST = 700.0
MARGIN = 1e-7  # the forward question asked with the answer stays below the wanted epsilon
TOLERANCE, COMPOSED = 1e-7, 1e-3
GUESSES = 10  # halvings of the range in which the first guess is looked for


def max_epsilon(
    *,
    epsilon: float,
    n: int,
    delta: float,
    adaptive: bool = False,
    randomizer: Randomizer | None = None,
    rounds: int = 1,
) -> float:
    r"""The largest local epsilon0 whose shuffled reports are still (epsilon, delta)-private.

    .. math:: \max \{ \epsilon_0 : \delta_{\mathrm{pair}}(\epsilon; \epsilon_0, n) \le \delta \}, \qquad
              \text{at least } \epsilon

    delta grows in epsilon0, so the last point at which delta_upper <= delta was evaluated is returned: rounded down.

    Parameters
    ----------
    epsilon : float, above 0, at most 700, nats
        Central epsilon that is wanted.
    n : int, 1 .. 1e12
        Honest reports in the batch.
    delta : float, at least 0, below 1
    adaptive : bool
        Whether an answer's randomizer may depend on earlier reports; then the clone pair is used.
    randomizer : Randomizer, optional
        One whose epsilon is varied: its own law may admit more.
    rounds : int, at least 1
        Collections of the same people, which compose to `epsilon`.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.

    Examples
    --------
    >>> round(max_epsilon(epsilon=1.0, n=100_000, delta=1e-6), 3)
    7.761
    >>> from dovetail.randomize.krr import KRR
    >>> round(max_epsilon(epsilon=0.1, n=100_000, delta=1e-6, randomizer=KRR(k=1024, epsilon=1.0)), 2)
    5.39

    Source
    ------
    As `ClonePair`; monotone in epsilon0 because a randomizer with less epsilon0 also has more.
    """
    epsilon, delta, adaptive = _check(epsilon, delta, adaptive)
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    times = _times(rounds, randomizer)
    if delta == 0.0 or epsilon >= MOST:
        return epsilon / times
    if randomizer is not None or times > 1:
        return _largest_composed(_Repeated(randomizer, times, delta, adaptive), epsilon, people)

    def room(epsilon0: float, *, coarse: bool) -> float:
        """Positive where epsilon0 is admissible; does not grow."""
        if epsilon0 <= epsilon:
            return 1.0  # shuffling never takes privacy away
        return -_log_delta_ratio(epsilon0, people, epsilon, delta, adaptive=adaptive, coarse=coarse)

    spread = 2.0 * math.log(1.0 / delta) + 1e-3
    guess = max(2.0 * math.asinh(0.5 * epsilon * math.sqrt(people / spread)), epsilon)
    steepness = spread * max(1.0, 0.5 * guess)
    near, _ = bracket_root(lambda e: room(e, coarse=True), guess, steepness=steepness, most=MOST, tolerance=1e-3)
    feasible, _ = bracket_root(
        lambda e: room(e, coarse=False), max(near, epsilon), steepness=steepness, most=MOST, tolerance=TOLERANCE
    )
    return max(feasible, epsilon)


def min_people(
    *,
    epsilon0: float,
    epsilon: float,
    delta: float,
    adaptive: bool = False,
    randomizer: Randomizer | None = None,
    rounds: int = 1,
) -> int:
    r"""The smallest number of honest people that makes epsilon0-private reports (epsilon, delta)-private.

    .. math:: \min \{ n : \delta_{\mathrm{pair}}(\epsilon; \epsilon_0, n) \le \delta \}

    Evaluated at the answer, the upper end of delta keeps `delta`; evaluated at one person less, it does not. The
    blocks leave about 1e-4 of epsilon, so about 2e-4 of n may be asked too much, and nothing where n is a few
    thousand and less and every count is summed.

    Parameters
    ----------
    epsilon0 : float, above 0, at most 700, nats
        Local privacy of one report.
    epsilon : float, above 0, at most 700, nats
        Central epsilon that is wanted.
    delta : float, at least 0, below 1
    adaptive, randomizer, rounds
        As in `max_epsilon`; the randomizer is taken at `epsilon0`. The answer is then evaluated, and at most a
        thousandth too large.

    Raises
    ------
    UnsupportedError
        When 1e12 people are not enough, or delta is 0 and epsilon below epsilon0.

    Examples
    --------
    >>> min_people(epsilon0=2.0, epsilon=0.5, delta=1e-6)
    589

    Source
    ------
    As `ClonePair`; delta falls in n.
    """
    epsilon0 = privacy_budget("epsilon0", epsilon0)
    epsilon, delta, adaptive = _check(epsilon, delta, adaptive)
    times = _times(rounds, randomizer)
    if epsilon >= epsilon0 * times:
        return 1
    if delta == 0.0:
        raise UnsupportedError(
            "At delta 0 shuffling amplifies nothing: lower epsilon0 to epsilon or allow some delta."
        )

    if randomizer is not None or times > 1:
        return _fewest_composed(_Repeated(randomizer, times, delta, adaptive), epsilon0, epsilon)

    def shortfall(people: float, *, coarse: bool) -> float:
        """Positive where so many people are too few; does not grow."""
        if people < 1.0:
            return 1.0
        return _log_delta_ratio(epsilon0, int(people), epsilon, delta, adaptive=adaptive, coarse=coarse)

    if shortfall(MOST_PEOPLE, coarse=False) > 0.0:
        raise UnsupportedError(
            f"{MOST_PEOPLE:.0e} people, the most this package counts with, are not enough for epsilon {epsilon:g} at "
            f"delta {delta:g} from epsilon0 {epsilon0:g}: lower epsilon0 or ask for less."
        )
    steepness = math.log(1.0 / delta) + 0.5
    guess = 2.0 * steepness * (2.0 * math.sinh(min(0.5 * epsilon0, 300.0)) / epsilon) ** 2
    most = float(MOST_PEOPLE)
    _, near = bracket_root(lambda n: shortfall(n, coarse=True), guess, steepness=steepness, most=most, tolerance=1e-3)
    low, high = bracket_root(
        lambda n: shortfall(n, coarse=False), near, steepness=steepness, most=most, tolerance=1e-6
    )
    few, enough = int(low), int(high)
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (middle, enough) if shortfall(middle, coarse=False) > 0.0 else (few, middle)
    return enough


@dataclass(frozen=True)
class _Repeated:
    """Several rounds of one randomizer, or of any with its promise."""

    randomizer: Randomizer | None
    rounds: int
    delta: float
    adaptive: bool

    def log_ratio(self, epsilon0: float, n: int, epsilon: float) -> float:
        """At most 0 where the rounds keep `epsilon`; infinite where no randomizer has this epsilon0."""
        subject = self._subject(epsilon0)
        if subject is None:
            return math.inf
        repeated = Accountant(subject, n=n, rounds=self.rounds, adaptive=self.adaptive)
        return repeated.log_ratio(epsilon * (1.0 - MARGIN), delta=self.delta)

    def spread(self, epsilon0: float, n: int) -> float:
        """About the standard deviation of the losses of all rounds together: a guess."""
        subject = self._subject(epsilon0)
        if subject is None:
            return math.inf
        curve = MechanismCurve(cast(Any, subject), n)
        return min(curve.clones.gaussian_scale if self.adaptive else curve.gaussian_scale, epsilon0) * math.sqrt(
            self.rounds
        )

    def _subject(self, epsilon0: float) -> Subject | None:
        if self.randomizer is None or self.adaptive:
            return epsilon0
        changed: Any = self.randomizer
        try:
            return cast(Randomizer, replace(changed, epsilon=epsilon0))
        except ParameterError:
            return None


def _largest_composed(repeated: _Repeated, epsilon: float, n: int) -> float:
    """The last epsilon0 at which the rounds were seen to keep `epsilon`."""
    sure = epsilon / repeated.rounds  # local promises add up
    spread = normal_spread(epsilon, repeated.delta)
    low, high = sure, min(max(2.0 * math.asinh(0.5 * spread * math.sqrt(n)), sure), MOST)
    for _ in range(GUESSES):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if repeated.spread(middle, n) < spread else (low, middle)

    def room(epsilon0: float) -> float:
        return 1.0 if epsilon0 <= sure else -repeated.log_ratio(epsilon0, n, epsilon)

    steepness = (2.0 * math.log(1.0 / repeated.delta) + 1e-3) * max(1.0, 0.5 * low)
    return max(sure, bracket_root(room, low, steepness=steepness, most=MOST, tolerance=COMPOSED)[0])


def _fewest_composed(repeated: _Repeated, epsilon0: float, epsilon: float) -> int:
    """The last n at which the rounds were seen to keep `epsilon`."""

    def excess(people: float) -> float:
        return 1.0 if people < 1.0 else repeated.log_ratio(epsilon0, math.ceil(people), epsilon)

    steepness, most = math.log(1.0 / repeated.delta) + 0.5, float(MOST_PEOPLE)
    guess = 2.0 * repeated.rounds * steepness * (2.0 * math.sinh(min(0.5 * epsilon0, 300.0)) / epsilon) ** 2
    for _ in range(2):  # the spread falls with the root of n
        people = math.ceil(min(max(guess, 1.0), most))
        guess = people * (repeated.spread(epsilon0, people) / normal_spread(epsilon, repeated.delta)) ** 2
    found = bracket_root(excess, guess, steepness=steepness, most=most, tolerance=COMPOSED)[1]
    if found == most and excess(most) > 0.0:
        raise UnsupportedError(
            f"{MOST_PEOPLE:.0e} people, the most this package counts with, are not enough for epsilon {epsilon:g} at "
            f"delta {repeated.delta:g} from {repeated.rounds} rounds of epsilon0 {epsilon0:g}: ask for less."
        )
    return math.ceil(found)


def _log_delta_ratio(epsilon0: float, n: int, epsilon: float, delta: float, *, adaptive: bool, coarse: bool) -> float:
    """log(delta_upper / delta), by the bounds that the forward question would use, or by few blocks of clones."""
    pair = ClonePair(epsilon0, n, "clones" if adaptive else "stronger clones")
    asked = epsilon * (1.0 - MARGIN)
    found = pair.upper(asked, pair.blocks(1e-8 * delta, 1.0) if coarse else pair.blocks_for(delta))
    if not coarse and not adaptive and found > delta:
        with suppress(UnsupportedError):
            found = min(found, everybody_law(epsilon0, n=n, delta=delta).upper(epsilon * (1.0 - 2.0 * SEARCH)))
    return log_ratio(found, delta)


def _check(epsilon: float, delta: float, adaptive: bool) -> tuple[float, float, bool]:
    return privacy_budget("epsilon", epsilon), share("delta", delta), flag("adaptive", adaptive)


def _times(rounds: int, randomizer: Randomizer | None) -> int:
    """How many rounds of it, if it is a randomizer whose epsilon can be varied."""
    if randomizer is not None and not isinstance(randomizer, Randomizer):
        raise refuse("randomizer", "a randomizer, whose epsilon is varied", randomizer)
    return whole("rounds", rounds, least=1, most=MOST_ROUNDS)
