"""Streams: a fleet of devices reports round after round; each round is randomized, shuffled and estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.guarantee import LocalDP
from dovetail.core.numeric.rounding import round_up_to_double
from dovetail.core.stages import Reports
from dovetail.pipeline.files.table import as_frame
from dovetail.pipeline.stream.fleet import Fleet
from dovetail.pipeline.stream.fleet_values import Places, Values, next_stamp, split_rounds, values_on_roster
from dovetail.pipeline.stream.time_windows import FleetRound, TimeWindow, time_window


class FleetRun:
    r"""The rounds of one fleet, one after the other, and the window queries about them.

    A round is a stamp t = 1, 2, ..: every device with budget left randomizes its value, the shuffler releases the
    batch in an order that tells nothing inside a group, and the estimate is stored. Reports are not kept. Each
    report costs its device epsilon (basic composition):

    .. math:: \epsilon_i(t) = \epsilon \cdot \#\{s \le t : i \text{ reported in round } s\} \le \mathrm{cap}

    Whether a device reports depends on how often it did before, never on its value.

    Parameters
    ----------
    fleet : Fleet

    Notes
    -----
    A refused round changes nothing and may be sent again. Once its reports are drawn a round is charged, and it is
    over even if the shuffler or the estimator fails then: its estimate is missing, and the error goes on. Stamps may
    leave gaps; a window says which are missing.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> from dovetail.shuffle.rase import RASE
    >>> watts = Laplace(lower=0.0, upper=100.0, epsilon=2.0)
    >>> fleet = Fleet(("kettle", "oven", "lamp"), watts, RASE.fit([[0, 1], [1, 2]]), cap=4.0)
    >>> run, rng = FleetRun(fleet), simulation(1)
    >>> for t in (1, 2, 4):
    ...     done = run.submit(t, {"oven": 60.0, "lamp": 5.0}, rng=rng)
    >>> done.estimate, done.held_back  # two reports of 2 nats each were allowed
    (None, 2)
    >>> answer = run.time_window(4, width=4)
    >>> answer.missing, answer.estimate.n, run.guarantee.epsilon
    ((3, 4), 4, 4.0)

    Source
    ------
    Wang, Tao, Zou, RASE, Algorithm 3 and section III-A. The budget over rounds is ours.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._sent = np.zeros(len(fleet.roster), dtype=np.int64)
        self._rounds: dict[int, FleetRound] = {}

    def submit(self, t: int, values: Mapping[Any, float], *, rng: Entropy | None = None) -> FleetRound:
        """Run round t on the values of the devices that have one."""
        rng = entropy_or_system(rng)
        t = next_stamp(t, self.last)
        try:
            present, batch = values_on_roster(self.fleet, values)
            return self._run(t, np.flatnonzero(present), batch, rng, lambda t, batch: None)
        except DataError as error:
            raise DataError(f"round {t}: {error}") from None

    def submit_table(
        self,
        table: Any,
        *,
        device: str = "device",
        time: str = "time",
        value: str = "value",
        rng: Entropy | None = None,
        released: Callable[[int, Reports], None] = lambda t, batch: None,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> tuple[FleetRound, ...]:
        """Run all rounds of a table with one row per device and round, in order of time.

        Parameters
        ----------
        table : data frame
            Anything that speaks the Arrow interface (polars, pandas, duckdb, pyarrow).
        device, time, value : column names
            Device as on the roster, whole-number stamp, number; no empty cell.
        released : function of (stamp, reports)
            Gets each batch in its released order.
        progress : function of (rounds done, rounds)

        Raises
        ------
        DataError
            Before anything is released, when a row does not fit.
        """
        rng = entropy_or_system(rng)
        given = split_rounds(self.fleet, as_frame(table), device=device, time=time, value=value, last=self.last)
        done = []
        for t, places, values in given:
            done.append(self._run(t, places, values, rng, released))
            progress(len(done), len(given))
        return tuple(done)

    def replay_table(
        self,
        table: Any,
        batches: Mapping[int, Reports],
        *,
        device: str = "device",
        time: str = "time",
        value: str = "value",
        simulated: bool = False,
    ) -> tuple[FleetRound, ...]:
        """The rounds of a table whose batches (by stamp) were drawn before, from a seed if `simulated`."""
        given = split_rounds(self.fleet, as_frame(table), device=device, time=time, value=value, last=self.last)
        done = []
        for t, here, _ in given:
            senders, batch = here[self._allowed(here)], batches.get(t, np.empty(0))
            if len(batch) != senders.size:
                raise DataError(f"round {t}: {len(batch):,} reports were released, but {senders.size:,} are due.")
            self._charge(t, here, senders, simulated=simulated)
            done.append(self._keep(t, batch))
        return tuple(done)

    def time_window(self, t: int, *, width: int) -> TimeWindow:
        """Mean of the estimates of rounds t - width + 1 .. t; see `time_windows.time_window`."""
        t, width = whole("t", t, least=1), whole("width", width, least=1)
        if t > self.last:
            raise DataError(f"`t` must be at most {self.last:,}, the last round, got {t:,}.")
        stamps = range(max(1, t - width + 1), t + 1)
        return time_window((self._rounds[s] for s in stamps if s in self._rounds), t, width=width)

    @property
    def rounds(self) -> tuple[FleetRound, ...]:
        """All rounds so far."""
        return tuple(self._rounds.values())

    def estimates(self) -> pl.DataFrame:
        """The stored estimates, one row a round: t, value, standard_error, n, absent, held_back."""
        found = [each.estimate for each in self._rounds.values()]
        return pl.DataFrame(
            {
                "t": list(self._rounds),
                "value": [None if each is None else float(each.value) for each in found],
                "standard_error": [None if each is None else float(each.standard_error) for each in found],
                "n": [0 if each is None else each.n for each in found],
                "absent": [each.absent for each in self._rounds.values()],
                "held_back": [each.held_back for each in self._rounds.values()],
            }
        )

    @property
    def last(self) -> int:
        """Stamp of the last round; 0 before the first."""
        return next(reversed(self._rounds), 0)

    @property
    def spent(self) -> dict[str | int, float]:
        """Nats that each device has spent."""
        cost = {sent: self.cost(sent) for sent in np.unique(self._sent).tolist()}
        return dict(zip(self.fleet.roster, (cost[sent] for sent in self._sent.tolist()), strict=True))

    @property
    def guarantee(self) -> LocalDP:
        """What the reports of the device that sent the most promise together, about all of its values."""
        one, sent = self.fleet.randomizer.guarantee, int(self._sent.max())
        both = LocalDP(
            self.cost(sent),
            min(1.0, sent * one.delta),
            source=f"basic composition of {sent:,} reports, each [{one.source}]",
            caveats=one.caveats,
        )
        simulated = any(each.simulated for each in self._rounds.values())
        return both.drawn_from("simulation" if simulated else "device")

    def summary(self) -> dict[str, Any]:
        """Plain facts: rounds, reports, budget, and what the orders of all rounds may tell together."""
        alpha = self.fleet.shuffler.guarantee.alpha
        return {
            "devices": self._sent.size,
            "rounds": len(self._rounds),
            "reports": int(self._sent.sum()),
            "held_back": sum(each.held_back for each in self._rounds.values()),
            "absent": sum(each.absent for each in self._rounds.values()),
            "cap": self.fleet.cap,
            "largest_spent": self.cost(int(self._sent.max())),
            "devices_at_cap": int((self._sent >= self.fleet.most_reports).sum()),
            "alpha_of_a_round": alpha,
            "alpha_of_all_rounds": self.order_cost(len(self._rounds)),
        }

    def cost(self, sent: int) -> float:
        """Epsilon of so many reports, rounded up."""
        epsilon = self.fleet.randomizer.guarantee.epsilon
        return sent * epsilon if math.isinf(epsilon) and sent else round_up_to_double(sent * Fraction(epsilon or 0.0))

    def order_cost(self, rounds: int) -> float:
        """alpha of so many rounds, whose orders are independent, rounded up."""
        alpha = self.fleet.shuffler.guarantee.alpha
        return alpha if math.isinf(alpha) else round_up_to_double(rounds * Fraction(alpha))

    def _allowed(self, places: Places) -> NDArray[np.bool_]:
        """Who of these has budget left."""
        return self._sent[places] < self.fleet.most_reports

    def _run(
        self, t: int, places: Places, values: Values, rng: Entropy, released: Callable[[int, Reports], None]
    ) -> FleetRound:
        """One round of devices in roster order."""
        fleet, allowed = self.fleet, self._allowed(places)
        senders = places[allowed]
        batch = fleet.randomizer.randomize(values, rng)[allowed]  # also checks the values of those held back
        self._charge(t, places, senders, simulated=rng.provenance == "simulation")
        if senders.size:
            present = np.zeros(self._sent.size, dtype=np.bool_)
            present[senders] = True
            here = fleet.shuffler if present.all() else fleet.shuffler.restrict(present)
            batch = here.shuffle(batch, rng)
        done = self._keep(t, batch)
        released(t, batch)
        return done

    def _charge(self, t: int, places: Places, senders: Places, *, simulated: bool) -> None:
        """Store round t and what it cost its senders, before anybody looks at their reports."""
        self._sent[senders] += 1
        held_back = int(places.size - senders.size)
        self._rounds[t] = FleetRound(t, None, self._sent.size - places.size, held_back, simulated)

    def _keep(self, t: int, batch: Reports) -> FleetRound:
        """Store the estimate of the batch of round t."""
        if len(batch):
            estimate = self.fleet.estimate(self.fleet.randomizer, batch)
            self._rounds[t] = replace(self._rounds[t], estimate=estimate)
        return self._rounds[t]
