"""A fleet: who reports what, with how much noise, in which order, and for how long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import not_negative_or_infinite, refuse, whole
from dovetail.core.display.display import mute
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import NumericRandomizer, Reports, Shuffler
from dovetail.estimate.mean import estimate_mean
from dovetail_protocol.budget import affordable

MOST_SPREAD = 1 << 31


@mute
@dataclass(frozen=True)
class Fleet:
    """Who reports what, with how much noise, for how long.

    Parameters
    ----------
    roster : sequence of names, or of whole numbers, each once
        The public list of devices: their places in every round.
    randomizer : NumericRandomizer
        Runs on the device; the same for all of them.
    shuffler : fitted for the roster, such as `RASE.fit(groups)`
    cap : float, nats
        A device stops reporting before its epsilons, as decimals, add up to more than this. `math.inf` is no cap.
    estimate : function of (randomizer, reports)
        The fusion center's estimator of the mean.
    spread : int, rounds, optional
        Rounds over which a device spreads the reports that its cap pays for, instead of falling silent with all
        others when it is spent: it answers in a public random subset of them, see `turns`.

    Raises
    ------
    ParameterError
        For a cap or spread outside its range.
    DataError
        For a name that occurs twice, and for a shuffler fitted for another number of devices.

    Examples
    --------
    >>> from dovetail.randomize.laplace import Laplace
    >>> from dovetail.shuffle.uniform import Uniform
    >>> laplace = Laplace(lower=0.0, upper=1.0, epsilon=0.5)
    >>> Fleet(roster=("a", "b", "c"), randomizer=laplace, shuffler=Uniform(3), cap=5.0).cap
    5.0
    """

    roster: tuple[str, ...] | tuple[int, ...]
    randomizer: NumericRandomizer
    shuffler: Shuffler
    cap: float
    estimate: Callable[[Any, Reports], Estimate] = estimate_mean
    spread: int | None = None

    def __post_init__(self) -> None:
        given: Any = self.roster
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise DataError(f"`roster` must be a sequence of names, got {type(given).__name__}.")
        roster: tuple[Any, ...] = tuple(each.item() if isinstance(each, np.generic) else each for each in given)
        kinds = {type(each) for each in roster}
        if kinds not in ({str}, {int}):
            got = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nobody"
            raise DataError(f"`roster` must name devices by text, or all of them by whole numbers, got {got}.")
        if len(set(roster)) != len(roster):
            raise DataError(f"`roster` must name each device once; {len(roster) - len(set(roster)):,} are repeated.")
        if self.shuffler.n != len(roster):
            raise DataError(f"`shuffler` must be fitted for the {len(roster):,} devices, got {self.shuffler.n:,}.")
        cap, epsilon = not_negative_or_infinite("cap", self.cap), self.randomizer.guarantee.epsilon
        if cap < epsilon:
            raise refuse("cap", f"at least the {epsilon:g} nats of one report", self.cap)
        if self.spread is not None:
            whole("spread", self.spread, least=1, most=MOST_SPREAD)
        object.__setattr__(self, "roster", roster)
        object.__setattr__(self, "cap", cap)

    @cached_property
    def places(self) -> dict[Any, int]:
        """The place of each device on the roster."""
        return {device: place for place, device in enumerate(self.roster)}

    @property
    def most_reports(self) -> float:
        """Reports that one device may send: cap / epsilon, rounded down exactly, as devices of a campaign count."""
        return math.inf if math.isinf(self.cap) else affordable(self.cap, self.randomizer.guarantee.epsilon)

    def turns(self, places: ArrayLike, stamps: ArrayLike) -> NDArray[np.bool_]:
        r"""Whether the device at each of these places answers in the round with the stamp beside it.

        .. math:: ((t - 1)\, m + o_i) \bmod T < m

        for the m reports that the cap pays for, T = `spread` and a start o_i below T that is read off the SHA-256 of
        the device's name: exactly m of any T rounds in a row, as evenly as can be, and as many devices in each round
        as in any other but for chance. It is public, so that it hides nobody and nothing is claimed for it.
        """
        place, t = np.asarray(places, np.int64), np.asarray(stamps, np.int64)
        if self.spread is None or self.most_reports >= self.spread:
            return np.ones(np.broadcast(place, t).shape, dtype=np.bool_)
        most = int(self.most_reports)
        turn: NDArray[np.bool_] = ((t - 1) % self.spread * most + self._starts[place]) % self.spread < most
        return turn

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where each device begins, from its name alone."""
        assert self.spread is not None
        digests = (sha256(f"dovetail turn\0{device}".encode()).digest()[:16] for device in self.roster)
        return np.array([int.from_bytes(digest, "big") % self.spread for digest in digests], dtype=np.int64)
