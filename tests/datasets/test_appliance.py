"""REFIT is read as published, and the synthetic loads have the habits that they were given."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studies.table1.loads import load_statistics, pivot_rounds

from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.datasets.houses import appliance_load, read_refit, synthetic_loads

CLEAN = """Time,Unix,Aggregate,Appliance1,Appliance2,Issues
2013-10-09 13:06:17,1381323977,523,74,0,0
2013-10-09 13:06:31,1381323991,526,75,10,0
2013-10-09 13:07:05,1381324025,540,76,20,0
2013-10-09 13:07:40,1381324060,999,999,999,1
2014-01-01 00:00:00,1388534400,9,100,4,0
"""
EXTRACT = """Time,Aggregate,Kettle,Microwave
2014-03-01 00:00:00,55.2,0.0,1.5
2014-03-01 00:01:00,55.3,2000.0,
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "CLEAN_House5.csv").write_text(CLEAN)
    (tmp_path / "REFIT_House20_2014-03.csv").write_text(EXTRACT)
    (tmp_path / "notes.txt").write_text("nothing")
    return tmp_path


def test_both_forms_are_read_without_totals_and_marked_rows(folder: Path) -> None:
    table = read_refit(folder)
    assert table.columns == ["time", "house", "device", "watts"]
    assert table.filter(device="house5 Appliance1")["watts"].to_list() == [74.5, 76.0, 100.0]
    assert table.filter(device="house20 Microwave")["watts"].to_list() == [1.5]  # an empty cell is no reading
    assert set(table["device"]) == {"house5 Appliance1", "house5 Appliance2", "house20 Kettle", "house20 Microwave"}


def test_steps_are_means_of_what_they_hold(folder: Path) -> None:
    table = read_refit(folder / "CLEAN_House5.csv", every="1h")
    assert table.filter(device="house5 Appliance2")["watts"].to_list() == [10.0, 4.0]
    assert [str(time) for time in table["time"].unique().sort()] == ["2013-10-09 13:00:00", "2014-01-01 00:00:00"]


def test_files_of_one_house_make_one_table(folder: Path) -> None:
    """Steps that two files share weigh readings, not files."""
    more = "Time,Aggregate,Kettle,Toaster\n2014-03-01 00:30:00,9,500.0,7.0\n"
    (folder / "REFIT_House20_2014-03b.csv").write_text(more)
    table = read_refit(folder, every="1h").filter(house=20)
    assert dict(table.select("device", "watts").iter_rows()) == {
        "house20 Kettle": 2500.0 / 3,
        "house20 Microwave": 1.5,
        "house20 Toaster": 7.0,
    }


def test_the_statistics_are_those_of_table_1(folder: Path) -> None:
    house = load_statistics(read_refit(folder)).row(0, named=True)
    assert house == {"house": 5, "sensors": 2, "lowest": 4.0, "highest": 100.0, "months": 2, "readings": 6}


def test_rounds_hold_every_device(folder: Path) -> None:
    wide, devices = pivot_rounds(read_refit(folder / "REFIT_House20_2014-03.csv"))
    assert devices == ["house20 Kettle", "house20 Microwave"] and wide["t"].to_list() == [1]
    assert wide.select(devices).row(0) == (0.0, 1.5)


def test_what_is_not_there_says_where_it_comes_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOVETAIL_DATA", raising=False)
    with pytest.raises(DataError, match=r"DOVETAIL_DATA must name .* doi:10\.15129"):
        appliance_load()
    monkeypatch.setenv("DOVETAIL_DATA", str(folder))
    with pytest.raises(DataError, match=r"no such file\. REFIT"):
        appliance_load()
    (folder / "appliance_load").mkdir()
    with pytest.raises(DataError, match="holds no CLEAN_House"):
        appliance_load()
    (folder / "CLEAN_House5.csv").rename(folder / "appliance_load" / "CLEAN_House5.csv")
    assert appliance_load(houses=[5], every="1m").height == 6
    with pytest.raises(DataError, match="no file of house 7"):
        appliance_load(houses=[5, 7])
    with pytest.raises(DataError, match="at least one file"):
        read_refit()


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("load.csv", CLEAN, "the name must hold House<number>"),
        ("CLEAN_House1.csv", "a,b\n1,2\n", "must have a column Time"),
        ("CLEAN_House1.csv", "Time,Aggregate\n2014-03-01 00:00:00,2\n", "one for each appliance"),
        ("CLEAN_House1.csv", "Time,Kettle\nnoon,2\n", "cannot be read as REFIT"),
        ("CLEAN_House1.csv", "", "cannot be read as REFIT"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, text: str, wanted: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=wanted):
        read_refit(tmp_path / name)


@pytest.mark.skipif("'DOVETAIL_DATA' not in os.environ", reason="needs the public data sets")
def test_the_real_extracts_are_complete() -> None:
    assert os.environ["DOVETAIL_DATA"]
    table = appliance_load(houses=[2], every="1d")
    facts = load_statistics(table).row(0, named=True)
    assert (facts["sensors"], facts["months"]) == (4, 10)
    assert table["watts"].is_between(0.0, 4000.0).all()


def test_equal_seeds_and_fleets_give_equal_loads() -> None:
    one = synthetic_loads(5, 50, rng=simulation(1))
    np.testing.assert_array_equal(one, synthetic_loads(5, 50, rng=simulation(1)))
    assert (one != synthetic_loads(5, 50, rng=simulation(2))).any()
    assert (one != synthetic_loads(5, 50, fleet=1, rng=simulation(1))).any()


def test_loads_stay_in_their_range_and_devices_keep_their_signature() -> None:
    rng = simulation(3)
    power, runs = [], []
    for _ in range(2):
        loads = synthetic_loads(40, 3000, lower=10.0, upper=110.0, rng=rng)
        assert loads.min() >= 10.0 and loads.max() <= 110.0
        running = loads > loads.min(axis=0) + 9.0  # running takes 9.5 W at least, standby varies by half a watt
        power.append((loads * running).sum(axis=0) / running.sum(axis=0))
        runs.append(running.sum(axis=0))
    jitter = 100 * 0.05 / np.sqrt(3)  # standard deviation of uniform jitter of 5 % is at most that
    assert (np.abs(power[0] - power[1]) < 7 * jitter * np.sqrt(1 / runs[0] + 1 / runs[1])).all()
    assert np.std(power[0]) > 10.0  # and devices differ


def test_everything_is_off_before_the_first_round_and_twenty_rounds_forget_that() -> None:
    """Running devices beside those at the same hour of the next day; 16,000 devices, shares good to .02."""
    today, tomorrow = np.zeros(60), np.zeros(60)
    for fleet in range(40):
        loads = synthetic_loads(400, 204, fleet=fleet, rng=simulation(fleet))
        running = (loads > 3.9 + 174.4 * 0.06).mean(axis=1)
        today, tomorrow = today + running[:60], tomorrow + running[144:]
    ratio = today / tomorrow
    assert ratio[0] < 0.15 and 0.7 < ratio[5] < 0.9
    assert abs(ratio[20:].mean() - 1.0) < 0.03


@pytest.mark.exhaust
def test_devices_start_at_their_hour_of_the_day() -> None:
    """The Rayleigh statistic of the hours of starts, which is exponential with mean 1 without a daily habit."""
    loads = synthetic_loads(20, 144 * 200, rng=simulation(4))
    running = loads > loads.min(axis=0) + 15.0
    starts = ~running[:-1] & running[1:]
    hour = np.exp(2j * np.pi * np.arange(1, len(loads)) / 144)
    rayleigh = np.abs((hour[:, None] * starts).sum(axis=0)) ** 2 / starts.sum(axis=0)
    assert (rayleigh > np.log(20 / 1e-9)).all()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"minutes": 0.0}, "`minutes`"),
        ({"upper": 1.0}, "`upper`"),
        ({"fleet": -1}, "`fleet`"),
        ({"start": "8"}, "`start`"),
        ({"lower": np.nan}, "`lower`"),
    ],
)
def test_impossible_loads_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterError, match=named):
        synthetic_loads(3, 3, rng=simulation(1), **options)
    with pytest.raises(ParameterError, match="`devices`"):
        synthetic_loads(0, 3, rng=simulation(1))


def test_all_houses_of_a_folder_are_read_and_told_apart(tmp_path: Path) -> None:
    """REFIT has houses 1 to 21 without 14, as the paper splits them."""
    houses = [house for house in range(1, 22) if house != 14]
    for house in houses:
        (tmp_path / f"CLEAN_House{house}.csv").write_text(CLEAN.replace(",100,4,0", f",{100 + house},4,0"))
    table = load_statistics(read_refit(tmp_path))
    assert table["house"].to_list() == houses and table["highest"].to_list() == [100.0 + house for house in houses]
    assert (table["sensors"] == 2).all() and (table["readings"] == 6).all()
