"""Window queries: the mean of the stored estimates of the latest rounds, with its standard error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dovetail.core.checks import whole
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate


@dataclass(frozen=True)
class FleetRound:
    """What the fusion center keeps of one round.

    Parameters
    ----------
    t : int, at least 1
        The round's stamp.
    estimate : Estimate or None
        None when nobody could report, or the shuffler or the estimator failed.
    absent : int
        Devices of the roster that sent nothing.
    held_back : int
        Devices that had a value and did not report because their budget is spent.
    simulated : bool
        Whether the randomness came from a seed: such a round protects nobody.
    resting : int
        Devices that had a value and did not report because it was not their turn.
    """

    t: int
    estimate: Estimate | None
    absent: int
    held_back: int
    simulated: bool
    resting: int = 0


@dataclass(frozen=True)
class TimeWindow:
    """The answer to a window query.

    Parameters
    ----------
    t, width : int
        The window is t - width + 1 .. t.
    estimate : Estimate
        Its n counts the reports of all its rounds.
    missing : tuple of int
        Stamps in the window without an estimate; the mean is over the others.
    """

    t: int
    width: int
    estimate: Estimate
    missing: tuple[int, ...]


def time_window(rounds: Iterable[FleetRound], t: int, *, width: int) -> TimeWindow:
    r"""The mean of the estimates of the rounds t - width + 1 .. t.

    .. math:: \mathrm{Win}(t, w) = \frac1w \sum_{s = t-w+1}^{t} \hat\mu_s, \qquad
              \mathrm{se} = \frac1w \sqrt{\sum_s \mathrm{se}_s^2}

    over the w rounds that have an estimate; the others are named in `missing`. The noise of different rounds is
    independent. The people are the same, so the population error is the mean of the rounds' errors: an upper bound,
    reached when everybody's values stay as they are.

    Parameters
    ----------
    rounds : the rounds in the window, in any order, with others or without

    Raises
    ------
    DataError
        When no round in the window has an estimate.

    Source
    ------
    Wang, Tao, Zou, RASE, section III-A, Eq. (4) and below.
    """
    t, width = whole("t", t, least=1), whole("width", width, least=1)
    if width > t:
        raise DataError(f"`width` must be at most t = {t:,}, as rounds begin at 1, got {width:,}.")
    held = {each.t: each.estimate for each in rounds if t - width < each.t <= t and each.estimate is not None}
    if not held:
        raise DataError(f"no round from {t - width + 1:,} to {t:,} has an estimate.")
    parts = [held[s] for s in sorted(held)]
    errors = np.array([part.standard_error for part in parts])
    mean = Estimate(
        value=np.mean([part.value for part in parts], axis=0),
        standard_error=np.sqrt((errors**2).sum(axis=0)) / len(parts),
        n=sum(part.n for part in parts),
        population_error=np.mean([part.population_error for part in parts], axis=0),
        bias_bound=np.mean([part.bias_bound for part in parts], axis=0),
    )
    missing = tuple(s for s in range(t - width + 1, t + 1) if s not in held)
    return TimeWindow(t, width, mean, missing)
