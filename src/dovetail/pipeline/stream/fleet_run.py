"""Streams: a fleet of devices reports round after round; each round is randomized, shuffled and estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from threading import RLock
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.core.numeric.rounding import round_up_to_double
from dovetail.core.stages import Reports
from dovetail.pipeline.files.table import as_frame
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.pipeline.stream.fleet import Fleet
from dovetail.pipeline.stream.fleet_budget import FleetBudget
from dovetail.pipeline.stream.fleet_ledger import FleetLedger
from dovetail.pipeline.stream.fleet_values import Places, Values, next_stamp, split_rounds, values_on_roster
from dovetail.pipeline.stream.time_windows import FleetRound, TimeWindow, time_window


class FleetRun:
    r"""The rounds of one fleet, one after the other, and the window queries about them.

    A round is a stamp t = 1, 2, ..: every device with budget left randomizes its value, the shuffler releases the
    batch in an order that tells nothing inside a group, and the estimate is stored. Reports are not kept. Each
    report costs its device epsilon (basic composition):

    .. math:: b_i + \epsilon \cdot \#\{s \le t : i \text{ reported in round } s\} \le \mathrm{cap}

    after b_i in earlier releases. Whether a device reports depends on how often it did before and on its turn, never
    on its value.

    Parameters
    ----------
    fleet : Fleet
    before : sequence of Fraction (n,), nats, optional
        What each device of the roster has spent already; default what the ledger says, or nothing.
    ledger : ReleaseLedger, optional
        Spending begins there, and each round is recorded there before its reports leave: several runs, one after the
        other or at once, keep one cap. What a device said in a round of an earlier run is not drawn again.
    about : str
        What the values are, so that the ledger tells the rounds of one quantity from those of another: the name of
        the private column.

    Raises
    ------
    DataError
        For rounds that do not go forward, and for values and spent budgets that are not those of the fleet's devices.
    UnsupportedError
        For simulated draws into a ledger.

    Notes
    -----
    A refused round changes nothing and may be sent again. Once its reports are drawn a round is charged, and it is
    over even if the ledger, the shuffler or the estimator fails then: its estimate is missing, and the error goes on.
    Stamps may leave gaps; a window says which are missing. Safe between threads, which run one round after the other.

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

    def __init__(
        self,
        fleet: Fleet,
        *,
        before: Sequence[Fraction] | None = None,
        ledger: ReleaseLedger | None = None,
        about: str = "value",
    ) -> None:
        if before is not None and ledger is not None:
            raise DataError("`before` is for runs without a ledger, which knows it better.")
        self.fleet, self.budget = fleet, FleetBudget(fleet, before)
        self._rounds: dict[int, FleetRound] = {}
        self._lock, self._running = RLock(), False
        self._record = None if ledger is None else FleetLedger(fleet, ledger, about)

    def submit(self, t: int, values: Mapping[Any, float], *, rng: Entropy | None = None) -> FleetRound:
        """Run round t on the values of the devices that have one."""
        rng = self._entropy(rng)
        with self._alone():
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
        rng = self._entropy(rng)
        with self._alone():
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
        """The rounds of a table whose batches (by stamp) were drawn before, from a seed if `simulated`.

        Raises
        ------
        DataError
            When a batch does not fit; also for a run with a ledger, which has charged these rounds already.
        """
        if self._record is not None:
            raise DataError("rounds are replayed in a run without a ledger: `before` is what was spent until then.")
        with self._alone():
            given = split_rounds(self.fleet, as_frame(table), device=device, time=time, value=value, last=self.last)
            done = []
            for t, here, _ in given:
                senders, batch = here[self.budget.allows(t, here)], batches.get(t, np.empty(0))
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
        """The stored estimates, one row a round: t, value, standard_error, n, absent, held_back, resting."""
        found = [each.estimate for each in self._rounds.values()]
        return pl.DataFrame(
            {
                "t": list(self._rounds),
                "value": [None if each is None else float(each.value) for each in found],
                "standard_error": [None if each is None else float(each.standard_error) for each in found],
                "n": [0 if each is None else each.n for each in found],
                "absent": [each.absent for each in self._rounds.values()],
                "held_back": [each.held_back for each in self._rounds.values()],
                "resting": [each.resting for each in self._rounds.values()],
            }
        )

    @property
    def last(self) -> int:
        """Stamp of the last round; 0 before the first."""
        return next(reversed(self._rounds), 0)

    @property
    def spent(self) -> dict[str | int, float]:
        """Nats that each device has spent, earlier releases included, in decimals as budgets are written."""
        return dict(zip(self.fleet.roster, self.budget.totals(), strict=True))

    @property
    def guarantee(self) -> LocalDP:
        """What the reports of the device that spent the most promise together, about all of its values."""
        one, earlier = self.fleet.randomizer.guarantee, self.budget.largest_before
        sent = int(self.budget.sent.max())
        after = f", after at most {earlier:g} nats of a device in earlier releases" if earlier else ""
        both = LocalDP(
            self.budget.promised,
            min(1.0, sent * one.delta),
            source=f"basic composition of {sent:,} reports, each [{one.source}]{after}",
            caveats=one.caveats,
        )
        simulated = any(each.simulated for each in self._rounds.values())
        return both.drawn_from("simulation" if simulated else "device")

    def summary(self) -> dict[str, Any]:
        """Plain facts: rounds, reports, budget, and what the orders of all rounds may tell together."""
        alpha, everybody = self.fleet.shuffler.guarantee.alpha, np.arange(len(self.fleet.roster))
        return {
            "devices": everybody.size,
            "rounds": len(self._rounds),
            "reports": int(self.budget.sent.sum()),
            "held_back": sum(each.held_back for each in self._rounds.values()),
            "resting": sum(each.resting for each in self._rounds.values()),
            "absent": sum(each.absent for each in self._rounds.values()),
            "cap": self.fleet.cap,
            "spread": self.fleet.spread,
            "spent_before": self.budget.largest_before,
            "largest_spent": max(self.budget.totals()),
            "devices_at_cap": int(self.budget.is_spent(everybody).sum()),
            "alpha_of_a_round": alpha,
            "alpha_of_all_rounds": self.order_cost(len(self._rounds)),
        }

    def order_cost(self, rounds: int) -> float:
        """alpha of so many rounds, whose orders are independent, rounded up."""
        alpha = self.fleet.shuffler.guarantee.alpha
        return alpha if math.isinf(alpha) else round_up_to_double(rounds * Fraction(alpha))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; and within it, no round inside another."""
        with self._lock:
            if self._running:
                raise DataError("a round of this fleet is being run; what it calls must not start another.")
            self._running = True
            try:
                yield
            finally:
                self._running = False

    def _entropy(self, rng: Entropy | None) -> Entropy:
        rng = entropy_or_system(rng)
        if self._record is not None and rng.provenance == "simulation":
            raise UnsupportedError("what a ledger records is drawn from the operating system: leave out `rng`.")
        return rng

    def _run(
        self, t: int, places: Places, values: Values, rng: Entropy, released: Callable[[int, Reports], None]
    ) -> FleetRound:
        """One round of devices in roster order."""
        if self._record is not None:
            self.budget.add(self._record.news())
        fleet, allowed = self.fleet, self.budget.allows(t, places)
        senders = places[allowed]
        if self._record is not None:
            self._record.refuse_released(t, senders)
        batch = fleet.randomizer.randomize(values, rng)[allowed]  # also checks the values of those held back
        self._charge(t, places, senders, simulated=rng.provenance == "simulation")
        if senders.size:
            present = np.zeros(len(fleet.roster), dtype=np.bool_)
            present[senders] = True
            here = fleet.shuffler if present.all() else fleet.shuffler.restrict(present)
            batch = here.shuffle(batch, rng)
        if self._record is not None and senders.size:
            self._record.add(t, senders, batch)
        done = self._keep(t, batch)
        released(t, batch)
        return done

    def _charge(self, t: int, places: Places, senders: Places, *, simulated: bool) -> None:
        """Store round t and what it cost its senders, before anybody looks at their reports."""
        turn = self.fleet.turns(places, t)
        held_back, resting = int((turn & self.budget.is_spent(places)).sum()), int((~turn).sum())
        self.budget.charge(senders)
        self._rounds[t] = FleetRound(t, None, len(self.fleet.roster) - places.size, held_back, simulated, resting)

    def _keep(self, t: int, batch: Reports) -> FleetRound:
        """Store the estimate of the batch of round t."""
        if len(batch):
            estimate = self.fleet.estimate(self.fleet.randomizer, batch)
            self._rounds[t] = replace(self._rounds[t], estimate=estimate)
        return self._rounds[t]
