"""Synthetic appliance loads: devices with habits, for studies without REFIT at hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import positive, real, refuse, whole
from dovetail.core.entropy import Entropy, entropy_or_system

Loads = NDArray[np.float64]  # (rounds, devices), watts

DAY = 1440.0


def synthetic_loads(
    devices: int,
    rounds: int,
    *,
    lower: float = 3.9,
    upper: float = 178.3,
    minutes: float = 10.0,
    start: float = 0.0,
    fleet: int = 0,
    rng: Entropy | None = None,
) -> Loads:
    r"""Watts (rounds, devices) of appliances, each with a signature of its own.

    .. math:: x_i(t) = s_i (1 + j) + b_i(t)\, p_i (1 + j'), \qquad
              \Pr[i \text{ starts}] = r_i \bigl(1 + \cos(2\pi (t - h_i))\bigr), \qquad
              \Pr[i \text{ stops}] = 1 / d_i

    * standby s_i: 0 to 5 % of the range above `lower`;
    * running power p_i: 10 to 80 % of the range, the same whenever it runs;
    * duty cycle: runs of d_i = 1 to 12 rounds on average (geometric); starting rates r_i of 1 to 20 % a round;
    * daily pattern: starts are likeliest at the hour h_i and never happen twelve hours later;
    * jitter j, j' of at most 5 %, uniform and independent, so that no value leaves [lower, upper].

    Parameters
    ----------
    devices, rounds : int, at least 1
    lower, upper : float, watts
        Public range; the default is that of the training houses in the RASE paper's Table I.
    minutes : float, above 0
        Length of a round.
    start : float, minutes
        Time of day of the first round.
    fleet : int, at least 0
        Which signatures: equal fleets have equal devices, so that an attacker's history and the attacked days can be
        drawn one after the other from one `rng`.

    Notes
    -----
    Before the first round everything is off: of what runs at the same hour on later days, a tenth runs in the first
    round, four fifths in the sixth and all from about the twentieth on. Leave these out where that matters.

    Raises
    ------
    ParameterError
        For numbers outside these ranges.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> loads = synthetic_loads(64, 144, rng=simulation(1))
    >>> loads.shape, bool(loads.min() >= 3.9), bool(loads.max() <= 178.3)
    ((144, 64), True, True)

    Source
    ------
    Ours; the shape of the data follows Murray, Stankovic, Stankovic (2017), Scientific Data 4.
    """
    rng = entropy_or_system(rng)
    devices, rounds = whole("devices", devices, least=1), whole("rounds", rounds, least=1)
    lower, upper, minutes = real("lower", lower), real("upper", upper), positive("minutes", minutes)
    if not upper > lower:
        raise refuse("upper", f"above `lower` = {lower!r}", upper)
    span, draw = upper - lower, np.random.default_rng(whole("fleet", fleet, least=0))
    standby, power = span * draw.uniform(0.0, 0.05, devices), span * draw.uniform(0.1, 0.8, devices)
    length, rate, peak = draw.uniform(1, 12, devices), draw.uniform(0.01, 0.2, devices), draw.uniform(0, DAY, devices)
    time = real("start", start) + minutes * np.arange(rounds)[:, None]
    starts = rate * (1.0 + np.cos(2 * np.pi * (time - peak) / DAY))
    luck = np.random.default_rng(rng.words(4))
    coins = luck.random((rounds, devices))
    running = np.empty((rounds, devices), dtype=np.bool_)
    now = coins[0] < starts[0]
    for t in range(rounds):
        now = running[t] = np.where(now, coins[t] >= 1.0 / length, coins[t] < starts[t])
    jitter = luck.uniform(0.95, 1.05, (2, rounds, devices))
    return np.asarray(lower + standby * jitter[0] + running * power * jitter[1])
