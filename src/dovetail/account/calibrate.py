"""The inverse question: how much local privacy loss the shuffler can absorb."""

import math

from dovetail.account.clones import MOST_PEOPLE, RESOLUTION, ClonePair, Kind, log_ratio
from dovetail.account.solve import straddle
from dovetail.core.checks import privacy_budget, real, refuse, whole

MOST = 700.0
MARGIN = 1e-6  # the forward question asked with the answer stays below the wanted epsilon
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

    Examples
    --------
    >>> round(max_epsilon(epsilon=1.0, n=100_000, delta=1e-6), 3)
    7.761

    Source
    ------
    As `ClonePair`; monotone in epsilon0 because a randomizer with less epsilon0 also has more.
    """
    privacy_budget("epsilon", epsilon)
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    if not 0.0 <= real("delta", delta) < 1.0:
        raise refuse("delta", "at least 0 and below 1", delta)
    if delta == 0.0 or epsilon >= MOST:
        return float(epsilon)
    kind: Kind = "clones" if adaptive else "stronger clones"
    aim = epsilon * (1.0 - MARGIN)

    def room(epsilon0: float) -> float:
        """Positive where epsilon0 is admissible; does not grow."""
        if epsilon0 <= epsilon:
            return 1.0  # shuffling never takes privacy away
        pair = ClonePair(epsilon0, people, kind)
        return -log_ratio(pair.upper(aim, pair.blocks(1e-8 * delta, RESOLUTION)), delta)

    spread = 2.0 * math.log(1.0 / delta) + 1e-3
    guess = max(2.0 * math.asinh(0.5 * epsilon * math.sqrt(people / spread)), epsilon)
    steepness = spread * max(1.0, 0.5 * guess)
    feasible, _ = straddle(room, guess, steepness=steepness, most=MOST, tolerance=TOLERANCE)
    return max(feasible, float(epsilon))
