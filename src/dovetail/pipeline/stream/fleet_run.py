"""Streams: a fleet of devices reports round after round; each round is randomized, shuffled and estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.checks import real, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.guarantee import LocalDP
from dovetail.core.numeric.rounding import round_up_to_double
from dovetail.core.stages import Reports
from dovetail.pipeline.files.table import as_frame
from dovetail.pipeline.stream.fleet import Campaign
from dovetail.pipeline.stream.time_windows import Round, Window, window
from dovetail.shuffle.fitting.missing_people import Present
from dovetail.shuffle.fitting.roster_order import sort_to_roster

Values = NDArray[np.float64]
Places = NDArray[np.int64]

_LAST = (1 << 63) - 1  # a stamp is an int64 in tables


class Rounds:
    r"""The rounds of one campaign, one after the other, and the window queries about them.

    A round is a stamp t = 1, 2, ..: every device with budget left randomizes its value, the shuffler releases the
    batch in an order that tells nothing inside a group, and the estimate is stored. Reports are not kept. Each
    report costs its device epsilon (basic composition):

    .. math:: \epsilon_i(t) = \epsilon \cdot \#\{s \le t : i \text{ reported in round } s\} \le \mathrm{cap}

    Whether a device reports depends on how often it did before, never on its value.

    Parameters
    ----------
    campaign : Campaign

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
    >>> fleet = Campaign(("kettle", "oven", "lamp"), watts, RASE.fit([[0, 1], [1, 2]]), cap=4.0)
    >>> rounds, rng = Rounds(fleet), simulation(1)
    >>> for t in (1, 2, 4):
    ...     done = rounds.submit(t, {"oven": 60.0, "lamp": 5.0}, rng=rng)
    >>> done.estimate, done.held_back  # two reports of 2 nats each were allowed
    (None, 2)
    >>> answer = rounds.window(4, width=4)
    >>> answer.missing, answer.estimate.n, rounds.guarantee.epsilon
    ((3, 4), 4, 4.0)

    Source
    ------
    Wang, Tao, Zou, RASE, Algorithm 3 and section III-A. The budget over rounds is ours.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self._place = {device: place for place, device in enumerate(campaign.roster)}
        self._sent = np.zeros(len(campaign.roster), dtype=np.int64)
        self._rounds: dict[int, Round] = {}

    def submit(self, t: int, values: Mapping[Any, float], *, rng: Entropy | None = None) -> Round:
        """Run round t on the values of the devices that have one."""
        rng = entropy_or_system(rng)
        t = self._next(t)
        try:
            present, batch = self._row(values)
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
    ) -> tuple[Round, ...]:
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
        times, places, values = self._sorted(as_frame(table), device, time, value)
        done, bounds = [], _bounds(times)
        for start, stop in pairwise(bounds):
            done.append(self._run(int(times[start]), places[start:stop], values[start:stop], rng, released))
            progress(len(done), len(bounds) - 1)
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
    ) -> tuple[Round, ...]:
        """The rounds of a table whose batches (by stamp) were drawn before, from a seed if `simulated`."""
        times, places, _ = self._sorted(as_frame(table), device, time, value)
        done = []
        for start, stop in pairwise(_bounds(times)):
            t, here = int(times[start]), places[start:stop]
            senders, batch = here[self._allowed(here)], batches.get(t, np.empty(0))
            if len(batch) != senders.size:
                raise DataError(f"round {t}: {len(batch):,} reports were released, but {senders.size:,} are due.")
            self._charge(t, here, senders, simulated=simulated)
            done.append(self._keep(t, batch))
        return tuple(done)

    def window(self, t: int, *, width: int) -> Window:
        """Mean of the estimates of rounds t - width + 1 .. t; see `windows.window`."""
        t, width = whole("t", t, least=1), whole("width", width, least=1)
        if t > self.last:
            raise DataError(f"`t` must be at most {self.last:,}, the last round, got {t:,}.")
        stamps = range(max(1, t - width + 1), t + 1)
        return window((self._rounds[s] for s in stamps if s in self._rounds), t, width=width)

    @property
    def rounds(self) -> tuple[Round, ...]:
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
        return dict(zip(self.campaign.roster, (cost[sent] for sent in self._sent.tolist()), strict=True))

    @property
    def guarantee(self) -> LocalDP:
        """What the reports of the device that sent the most promise together, about all of its values."""
        one, sent = self.campaign.randomizer.guarantee, int(self._sent.max())
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
        alpha = self.campaign.shuffler.guarantee.alpha
        return {
            "devices": self._sent.size,
            "rounds": len(self._rounds),
            "reports": int(self._sent.sum()),
            "held_back": sum(each.held_back for each in self._rounds.values()),
            "absent": sum(each.absent for each in self._rounds.values()),
            "cap": self.campaign.cap,
            "largest_spent": self.cost(int(self._sent.max())),
            "devices_at_cap": int((self._sent >= self.campaign.most_reports).sum()),
            "alpha_of_a_round": alpha,
            "alpha_of_all_rounds": self.order_cost(len(self._rounds)),
        }

    def cost(self, sent: int) -> float:
        """Epsilon of so many reports, rounded up."""
        epsilon = self.campaign.randomizer.guarantee.epsilon
        return sent * epsilon if math.isinf(epsilon) and sent else round_up_to_double(sent * Fraction(epsilon or 0.0))

    def order_cost(self, rounds: int) -> float:
        """alpha of so many rounds, whose orders are independent, rounded up."""
        alpha = self.campaign.shuffler.guarantee.alpha
        return alpha if math.isinf(alpha) else round_up_to_double(rounds * Fraction(alpha))

    def _next(self, t: int) -> int:
        t = whole("t", t, least=1, most=_LAST)
        if t <= self.last:
            raise DataError(f"`t` must be above {self.last:,}, the last round, got {t:,}: time goes forward.")
        return t

    def _allowed(self, places: Places) -> NDArray[np.bool_]:
        """Who of these has budget left."""
        return self._sent[places] < self.campaign.most_reports

    def _run(
        self, t: int, places: Places, values: Values, rng: Entropy, released: Callable[[int, Reports], None]
    ) -> Round:
        """One round of devices in roster order."""
        campaign, allowed = self.campaign, self._allowed(places)
        senders = places[allowed]
        batch = campaign.randomizer.randomize(values, rng)[allowed]  # also checks the values of those held back
        self._charge(t, places, senders, simulated=rng.provenance == "simulation")
        if senders.size:
            present = np.zeros(self._sent.size, dtype=np.bool_)
            present[senders] = True
            here = campaign.shuffler if present.all() else campaign.shuffler.restrict(present)
            batch = here.shuffle(batch, rng)
        done = self._keep(t, batch)
        released(t, batch)
        return done

    def _charge(self, t: int, places: Places, senders: Places, *, simulated: bool) -> None:
        """Store round t and what it cost its senders, before anybody looks at their reports."""
        self._sent[senders] += 1
        held_back = int(places.size - senders.size)
        self._rounds[t] = Round(t, None, self._sent.size - places.size, held_back, simulated)

    def _keep(self, t: int, batch: Reports) -> Round:
        """Store the estimate of the batch of round t."""
        if len(batch):
            estimate = self.campaign.estimate(self.campaign.randomizer, batch)
            self._rounds[t] = replace(self._rounds[t], estimate=estimate)
        return self._rounds[t]

    def _row(self, values: Mapping[Any, float]) -> tuple[Present, Values]:
        """Who has a value, and the values in roster order."""
        unknown = [device for device in values if device not in self._place]
        if unknown:
            raise DataError(f"{len(unknown):,} devices are not on the roster, first {unknown[0]!r}.")
        x = np.array([_number(value) for value in values.values()], dtype=np.float64)
        self._refuse_outside("values", x, list(values))
        places = np.array([self._place[device] for device in values], np.int64)
        return sort_to_roster(places, x, n=self._sent.size)

    def _refuse_outside(self, name: str, x: Values, devices: Any) -> None:
        """Values outside the range are refused by the names of their devices: an error tells nobody's value."""
        lower, upper = self.campaign.randomizer.lower, self.campaign.randomizer.upper
        bad = np.flatnonzero(~((x >= lower) & (x <= upper)))  # NaN too
        if bad.size:
            raise DataError(
                f"`{name}` must be numbers in [{lower!r}, {upper!r}]; {bad.size:,} of {x.size:,} are not, the first "
                f"of device {devices[int(bad[0])]!r}."
            )

    def _sorted(self, frame: pl.DataFrame, *names: str) -> tuple[Places, Places, Values]:
        """Stamps, places and values in order of time and roster; every row is checked first."""
        for name in names:
            if name not in frame.columns:
                raise DataError(f"the table has no column {name!r}.")
            empty = frame[name].null_count()
            if empty:
                raise DataError(f"column {name!r} must have no empty cells, got {empty:,}.")
        device, time, value = (frame[name] for name in names)
        if not time.dtype.is_integer():
            raise DataError(
                f"column {names[1]!r} must hold whole-number stamps 1, 2, .. of rounds, got {time.dtype}."
            )
        if not frame.height:
            raise DataError("the table has no rows.")
        self._next(int(time.min()))  # type: ignore[arg-type]
        self._next(int(time.max()))  # type: ignore[arg-type]
        if not value.dtype.is_numeric():
            raise DataError(f"column {names[2]!r} must hold numbers, got {value.dtype}.")
        x = value.cast(pl.Float64)
        self._refuse_outside(names[2], x.to_numpy(), device)
        rows = pl.DataFrame({"t": time.cast(pl.Int64), "place": self._places(device), "x": x})
        rows = rows.sort("t", "place")
        times, places = rows["t"].to_numpy(), rows["place"].to_numpy()
        twice = (np.diff(times) == 0) & (np.diff(places) == 0)
        if twice.any():
            first = int(np.flatnonzero(twice)[0])
            raise DataError(
                f"a device must report once a round; {int(twice.sum()):,} rows repeat one, the first "
                f"{self.campaign.roster[places[first]]!r} in round {times[first]}."
            )
        return times, places, rows["x"].to_numpy()

    def _places(self, device: pl.Series) -> pl.Series:
        roster = pl.Series(self.campaign.roster)
        try:
            if device.dtype == pl.Boolean:  # polars would compare with 0 and 1
                raise pl.exceptions.SchemaError
            places = device.replace_strict(roster, range(len(roster)), default=None, return_dtype=pl.Int64)
        except pl.exceptions.PolarsError:
            raise DataError(f"devices must be {roster.dtype} as on the roster, got {device.dtype}.") from None
        unknown = device.filter(places.is_null())
        if len(unknown):
            raise DataError(f"{len(unknown):,} rows name devices that are not on the roster, first {unknown[0]!r}.")
        return places


def _number(value: Any) -> float:
    """`value` as a finite float; NaN for anything else."""
    try:
        return real("value", value)
    except (ParameterError, OverflowError):
        return math.nan


def _bounds(times: Places) -> list[int]:
    """Where each round begins in sorted stamps, and where the last one ends."""
    return [0, *(1 + np.flatnonzero(np.diff(times))).tolist(), times.size]
