"""The inverse questions: how much local privacy loss the shuffler can absorb, and how many people that takes."""

import math

from dovetail.account.clones.stronger_clones import MOST_PEOPLE, ClonePair, Kind
from dovetail.account.clones.truncated_binomial import TruncatedBinomial
from dovetail.account.threshold_search import bracket_root, log_ratio
from dovetail.core.checks import privacy_budget, share, whole
from dovetail.core.errors import UnsupportedError

MOST = 700.0
MARGIN = 1e-7  # the forward question asked with the answer stays below the wanted epsilon
TOLERANCE = 1e-7


def max_epsilon(*, epsilon: float, n: int, delta: float, adaptive: bool = False) -> float:
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

    Raises
    ------
    ParameterError
        For parameters outside their ranges.

    Examples
    --------
    >>> round(max_epsilon(epsilon=1.0, n=100_000, delta=1e-6), 3)
    7.761

    Source
    ------
    As `ClonePair`; monotone in epsilon0 because a randomizer with less epsilon0 also has more.
    """
    _check(epsilon, delta)
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    if delta == 0.0 or epsilon >= MOST:
        return float(epsilon)

    def room(epsilon0: float, *, coarse: bool) -> float:
        """Positive where epsilon0 is admissible; does not grow."""
        if epsilon0 <= epsilon:
            return 1.0  # shuffling never takes privacy away
        return -_log_delta_ratio(ClonePair(epsilon0, people, _kind(adaptive)), epsilon, delta, coarse=coarse)

    spread = 2.0 * math.log(1.0 / delta) + 1e-3
    guess = max(2.0 * math.asinh(0.5 * epsilon * math.sqrt(people / spread)), epsilon)
    steepness = spread * max(1.0, 0.5 * guess)
    near, _ = bracket_root(lambda e: room(e, coarse=True), guess, steepness=steepness, most=MOST, tolerance=1e-3)
    feasible, _ = bracket_root(
        lambda e: room(e, coarse=False), max(near, epsilon), steepness=steepness, most=MOST, tolerance=TOLERANCE
    )
    return max(feasible, float(epsilon))


def min_people(*, epsilon0: float, epsilon: float, delta: float, adaptive: bool = False) -> int:
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
    adaptive : bool
        As in `max_epsilon`.

    Raises
    ------
    UnsupportedError
        When 1e12 people are not enough, or delta is 0 and epsilon below epsilon0.

    Examples
    --------
    >>> min_people(epsilon0=2.0, epsilon=0.5, delta=1e-6)
    661

    Source
    ------
    As `ClonePair`; delta falls in n.
    """
    privacy_budget("epsilon0", epsilon0)
    _check(epsilon, delta)
    if epsilon >= epsilon0:
        return 1
    if delta == 0.0:
        raise UnsupportedError(
            "At delta 0 shuffling amplifies nothing: lower epsilon0 to epsilon or allow some delta."
        )

    def shortfall(people: float, *, coarse: bool) -> float:
        """Positive where so many people are too few; does not grow."""
        if people < 1.0:
            return 1.0
        return _log_delta_ratio(ClonePair(epsilon0, int(people), _kind(adaptive)), epsilon, delta, coarse=coarse)

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


def _log_delta_ratio(pair: ClonePair, epsilon: float, delta: float, *, coarse: bool) -> float:
    """log(delta_upper / delta), by the blocks that the forward question would use, or by few."""
    blocks: TruncatedBinomial = pair.blocks(1e-8 * delta, 1.0) if coarse else pair.blocks_for(delta)
    return log_ratio(pair.upper(epsilon * (1.0 - MARGIN), blocks), delta)


def _kind(adaptive: bool) -> Kind:
    return "clones" if adaptive else "stronger clones"


def _check(epsilon: float, delta: float) -> None:
    privacy_budget("epsilon", epsilon)
    share("delta", delta)
