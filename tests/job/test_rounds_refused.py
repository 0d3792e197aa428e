"""What does not fit a stream of rounds is refused in time; what was drawn is charged whatever fails afterwards."""

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import ArrayLike
from tests.job.fleets import OWN, ROSTER, VALUES, fleet_run, long

from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import Reports
from dovetail.job.fleet import Fleet, FleetRun, time_window
from dovetail.randomize.laplace import Laplace
from dovetail.shuffle.rase import RASE


@pytest.mark.parametrize(
    ("t", "width", "named"), [(6, 1, "`t`"), (0, 1, "`t`"), (5, 6, "`width`"), (5, 0, "`width`")]
)
def test_windows_outside_of_the_rounds_are_refused(t: int, width: int, named: str) -> None:
    run = fleet_run()
    run.submit(5, VALUES, rng=simulation(1))
    with pytest.raises((DataError, ParameterError), match=named):
        run.time_window(t, width=width)
    with pytest.raises(DataError, match="no round from 2 to 3 has an estimate"):
        time_window(run.rounds, 3, width=2)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (pl.col("value").replace(5.0, 101.0), r"`value` must be numbers in \[0.0, 100.0\]; 3 of 12 are not"),
        (pl.col("value").replace(5.0, math.nan), "3 of 12 are not"),
        (pl.col("value").replace(5.0, None), "column 'value' must have no empty cells, got 3"),
        (pl.col("value").cast(pl.String), "column 'value' must hold numbers"),
        (
            pl.col("device").replace("lamp", "toaster"),
            "3 rows name devices that are not on the roster, first 'toaster'",
        ),
        (pl.col("device").replace("lamp", "oven"), "3 rows repeat one, the first 'oven' in round 1"),
        (pl.col("time").cast(pl.Float64), "whole-number stamps"),
        (pl.col("time") - 1, "`t` must be a whole number, at least 1"),
    ],
)
def test_a_table_with_a_wrong_row_releases_nothing(change: pl.Expr, wanted: str) -> None:
    run = fleet_run()
    table = long(np.tile(list(VALUES.values()), (3, 1))).with_columns(change)
    with pytest.raises((DataError, ParameterError), match=wanted):
        run.submit_table(table, rng=simulation(1))
    assert run.rounds == () and set(run.spent.values()) == {0.0}


@pytest.mark.parametrize(
    ("t", "values", "wanted"),
    [
        (3, VALUES, "above 3, the last round, got 3: time goes forward"),
        (2, VALUES, "time goes forward"),
        (1.5, VALUES, "`t` must be a whole number"),
        (True, VALUES, "`t` must be a whole number"),
        (4, {"toaster": 1.0}, "round 4: 1 device is not on the roster, first 'toaster'"),
        (4, {"oven": math.nan}, "round 4: `values` must be numbers"),
        (4, {"oven": -1.0}, "round 4: `values` must be numbers"),
        (4, {"oven": "1"}, "round 4: `values` must be numbers"),
        (4, {"oven": None}, "round 4: `values` must be numbers"),
        (4, {"oven": True, "lamp": 1.0}, "1 of 2 are not, the first of device 'oven'"),
        (4, {"oven": [1.0, 2.0], "lamp": 1.0}, "1 of 2 are not, the first of device 'oven'"),
        (4, {"lamp": 1.0, "oven": np.bool_(True)}, "1 of 2 are not, the first of device 'oven'"),
        (4, {"lamp": 1.0, "oven": 10**400}, "1 of 2 are not, the first of device 'oven'"),
        (1e300, VALUES, "`t` must be a whole number, at least 1 and at most 9223372036854775807"),
    ],
)
def test_a_wrong_round_changes_nothing_and_may_come_again(t: Any, values: Any, wanted: str) -> None:
    run = fleet_run()
    run.submit(3, {"oven": 1.0}, rng=simulation(1))
    with pytest.raises((DataError, ParameterError), match=wanted):
        run.submit(t, values, rng=simulation(1))
    assert run.last == 3 and sum(run.spent.values()) == 1.0
    run.submit(4, VALUES, rng=simulation(1))


def test_refusals_name_devices_and_no_values() -> None:
    secret = 1234.5
    row = {"device": ["oven"], "time": [1], "value": [secret]}
    for send in (
        lambda: fleet_run().submit(1, {"lamp": 1.0, "oven": secret}, rng=simulation(1)),
        lambda: fleet_run().submit_table(pl.DataFrame(row), rng=simulation(1)),
    ):
        with pytest.raises(DataError, match="the first of device 'oven'") as refused:
            send()
        assert str(secret) not in str(refused.value)


class Broken(Exception):
    """What a failing estimator or shuffler raises."""


def failing(randomizer: Laplace, reports: Reports) -> Estimate:
    """An estimator that shows the reports and fails."""
    raise Broken(reports)


@dataclass(frozen=True)
class NoOrder:
    """A shuffler that fails."""

    n = len(ROSTER)
    guarantee = RASE.fit(OWN).guarantee

    def shuffle(self, reports: ArrayLike, rng: Entropy) -> Reports:
        raise Broken(reports)

    def restrict(self, present: ArrayLike) -> Any:
        raise Broken(present)


@pytest.mark.parametrize("how", ["estimator", "shuffler", "callback", "replay"])
def test_reports_are_charged_whatever_fails_after_they_are_drawn(how: str) -> None:
    laplace = Laplace(lower=0.0, upper=100.0, epsilon=1.0)
    fails = how in ("estimator", "replay")
    shuffler: Any = NoOrder() if how == "shuffler" else RASE.fit(OWN)
    run = FleetRun(Fleet(ROSTER, laplace, shuffler, 2.0, failing if fails else Fleet.estimate))
    table = pl.DataFrame({"device": ["oven", "lamp"], "time": [1, 1], "value": [1.0, 2.0]})

    def stop(t: int, batch: Reports) -> None:
        raise Broken(batch)

    for t in range(1, 6):
        with pytest.raises(Broken) if t < 3 else nullcontext():
            now = table.with_columns(time=pl.lit(t))
            if how == "replay":
                run.replay_table(now, {t: np.array([3, 4])} if t < 3 else {})
            elif how == "callback" and t < 3:
                run.submit_table(now, rng=simulation(t), released=stop)
            else:
                run.submit(t, {"oven": 1.0, "lamp": 2.0}, rng=simulation(t))
        assert run.last == t and run.spent["oven"] == run.spent["lamp"] == min(t, 2)
        with pytest.raises(DataError, match="time goes forward"):
            run.submit(t, VALUES, rng=simulation(t))
    if how != "callback":
        assert [each.estimate for each in run.rounds] == [None] * 5
    assert [each.held_back for each in run.rounds] == [0, 0, 2, 2, 2]


def test_missing_columns_and_empty_tables_are_refused() -> None:
    with pytest.raises(DataError, match="no column 'value'"):
        fleet_run().submit_table(pl.DataFrame({"device": ["oven"], "time": [1]}), rng=simulation(1))
    with pytest.raises(DataError, match="no rows"):
        fleet_run().submit_table(long(np.ones((1, 4))).clear(), rng=simulation(1))
    with pytest.raises(DataError, match="devices must be String"):
        fleet_run().submit_table(pl.DataFrame({"device": [1], "time": [1], "value": [1.0]}), rng=simulation(1))
    late = pl.DataFrame({"device": ["oven"], "time": pl.Series([2**63], dtype=pl.UInt64), "value": [1.0]})
    with pytest.raises(ParameterError, match="`t` must be a whole number, at least 1 and at most"):
        fleet_run().submit_table(late, rng=simulation(1))
    numbered = FleetRun(Fleet((0, 1, 2, 3), fleet_run().fleet.randomizer, RASE.fit(OWN), math.inf))
    with pytest.raises(DataError, match="devices must be Int64 as on the roster, got Boolean"):
        numbered.submit_table(
            pl.DataFrame({"device": [True, False], "time": [1, 1], "value": [1.0, 2.0]}), rng=simulation(1)
        )


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"cap": 0.5}, "`cap` must be at least the 1 nats"),
        ({"cap": math.nan}, "`cap` must be"),
        ({"roster": ("a", "b", "a", "c")}, "1 are repeated"),
        ({"roster": ("a", "b", "c", 5)}, "got int, str"),
        ({"roster": ()}, "got nobody"),
        ({"roster": "abcd"}, "`roster` must be a sequence of names, got str"),
        ({"roster": b"abcd"}, "`roster` must be a sequence of names, got bytes"),
        ({"roster": None}, "`roster` must be a sequence of names, got NoneType"),
        ({"roster": 4}, "`roster` must be a sequence of names, got int"),
        ({"roster": ("a", "b")}, "`shuffler` must be fitted for the 2 devices, got 4"),
    ],
)
def test_impossible_fleets_are_refused(options: dict[str, Any], wanted: str) -> None:
    given: dict[str, Any] = {"roster": ROSTER, "cap": math.inf} | options
    with pytest.raises((DataError, ParameterError), match=wanted):
        Fleet(randomizer=Laplace(lower=0.0, upper=1.0, epsilon=1.0), shuffler=RASE.fit(OWN), **given)
