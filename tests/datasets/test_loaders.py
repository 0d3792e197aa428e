"""Public data sets are read as published, with their private and public columns; other files are one line."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from dovetail import datasets
from dovetail.core.errors import DataError
from dovetail.datasets.houses import sml2010
from dovetail.datasets.people import (
    adult,
    arxiv_abstracts,
    california_housing,
    geolife,
    texas,
    twitch,
    twitch_friendships,
)
from dovetail.shuffle.fitting.groups import Groups

PERSON = "39, State-gov, 77516, Bachelors, 13, Never-married, ?, Not-in-family, White, Male, 2174, 0, 40, Peru, <=50K"
ADULT = f"|1x3 Cross validator\n{PERSON}.\n{PERSON.replace('39', '50').replace('<=', '>')}\n\n"
TARGET = "id,days,mature,views,partner,new_id\n7,1149,True,12,False,1\n8,20,False,5,True,0\n9,3,True,9,False,2\n"
HOUSES = (
    "longitude,latitude,housing_median_age,total_rooms,total_bedrooms,population,households,median_income,"
    "median_house_value,ocean_proximity\n-122.23,37.88,41,880,,322,126,8.3,452600,NEAR BAY\n"
)
CLIMATE = "#  1:Date 2:Time 3:Temperature_Comedor_Sensor 4:Lighting \n13/03/2012 11:45 18.1875 0 \n"
DISCHARGES = (
    "RECORD_ID\tTHCIC_ID\tPAT_ZIP\tFIRST_PAYMENT_SRC\tTOTAL_CHARGES\n1\t000100\t77001\tMC \t1234.50\n"
    "2\t000100\t77002\t*\t9.00\n3\t000200\t\tHM\t\n"
)


def test_adult_has_ages_incomes_and_gaps(tmp_path: Path) -> None:
    (tmp_path / "adult.test").write_text(ADULT)
    table = adult(tmp_path / "adult.test")
    assert table["income"].to_list() == ["<=50K", ">50K"] and table["age"].to_list() == [39, 50]
    assert table["occupation"].null_count() == 2 and table["marital_status"][0] == "Never-married"


def test_abstracts_have_titles_and_archives(tmp_path: Path) -> None:
    place = tmp_path / "arxiv_2007_2000.parquet"
    pl.DataFrame({"title": ["On x"], "abstract": ["We show x."], "archive": ["math"], "id": ["1"]}).write_parquet(
        place
    )
    assert arxiv_abstracts(tmp_path).row(0) == ("On x", "We show x.", "math", "1")
    pl.DataFrame({"title": ["On x"]}).write_parquet(place)
    with pytest.raises(DataError, match="has no column 'abstract'"):
        arxiv_abstracts(tmp_path)


@pytest.mark.exhaust
def test_streamers_are_numbered_like_their_friendships(tmp_path: Path) -> None:
    (tmp_path / "musae_DE_target.csv").write_text(TARGET)
    (tmp_path / "musae_DE_edges.csv").write_text("from,to\n0,2\n1,2\n")
    table, friends = twitch(tmp_path), twitch_friendships(tmp_path)
    assert table["person"].to_list() == [0, 1, 2] and table["mature"].to_list() == [False, True, True]
    assert table.columns == ["person", "mature", "days", "views", "partner"] and "id" not in table.columns
    groups = Groups.from_graph(friends.to_numpy(), n=3)
    assert sorted(groups.members(g).tolist() for g in range(len(groups))) == [[0, 1, 2], [0, 2], [1, 2]]


def test_block_groups_have_places_and_gaps(tmp_path: Path) -> None:
    (tmp_path / "housing.csv").write_text(HOUSES)
    table = california_housing(tmp_path)
    assert table.select("latitude", "longitude", "ocean_proximity").row(0) == (37.88, -122.23, "NEAR BAY")
    assert table["total_bedrooms"].to_list() == [None] and table["population"].dtype == pl.Float64


def test_climate_has_times_and_stretches(tmp_path: Path) -> None:
    for name in ("NEW-DATA-1.T15.txt", "NEW-DATA-2.T15.txt"):
        (tmp_path / name).write_text(CLIMATE)
    table = sml2010(tmp_path)
    assert table["stretch"].to_list() == [1, 2] and str(table["time"][0]) == "2012-03-13 11:45:00"
    assert table.columns == ["time", "stretch", "temperature_comedor_sensor", "lighting"]
    assert sml2010(tmp_path / "NEW-DATA-2.T15.txt")["stretch"].to_list() == [2]


def test_trajectories_have_people_times_and_the_selection_of_the_paper(tmp_path: Path) -> None:
    header = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"

    def write(person: str, name: str, steps: list[int]) -> None:
        place = tmp_path / "Data" / person / "Trajectory"
        place.mkdir(parents=True, exist_ok=True)
        places = [f"{39.9 + step / 1e5},{116.3 + step / 1e5},0,492,39744.1,2008-10-23" for step in steps]
        clocks = [f"02:{53 + step // 60:02d}:{step % 60:02d}" for step in steps]
        points = [f"{one},{clock}" for one, clock in zip(places, clocks, strict=True)]
        (place / f"{name}.plt").write_text(header + "\n".join(points) + "\n")

    write("000", "one", [0, 100, 100, 300])
    write("000", "short", [0, 60])
    write("001", "long", list(range(0, 301, 5)))
    table = geolife(tmp_path)
    assert table.columns == ["trace", "person", "time", "latitude", "longitude"]
    assert table["trace"].unique(maintain_order=True).to_list() == ["000-one", "000-short", "001-long"]
    first = table.filter(trace="000-one")
    assert first["time"].to_list() == [1224730380, 1224730480, 1224730680]  # the second at 100 s is left out
    assert first.row(0)[3:] == (39.9, 116.3)
    chosen = geolife(tmp_path / "Data", most_points=50, seconds=(270, 330))
    assert chosen["trace"].unique().to_list() == ["000-one"]
    assert geolife(tmp_path, most_points=2).is_empty()
    with pytest.raises(DataError, match=r"no such file\. .*published"):
        geolife(tmp_path / "nothing")
    (tmp_path / "Data" / "001" / "Trajectory" / "odd.plt").write_text(header + "a,b\n")
    with pytest.raises(DataError, match=r"odd\.plt: cannot be read as a \.plt file"):
        geolife(tmp_path)


def test_discharges_without_a_payer_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "PUDF_base1.txt").write_text(DISCHARGES)
    table = texas(tmp_path / "PUDF_base1.txt")
    assert table.rows() == [("000100", "77001", "MC", 1234.5), ("000200", None, "HM", None)]


@pytest.mark.parametrize(
    ("load", "name", "text", "wanted"),
    [
        (adult, "adult.data", "1, 2\n", "must have 15 columns .* record 1"),
        (adult, "adult.data", "", "has no records"),
        (adult, "adult.data", PERSON.replace("39", "old"), "cannot be read as Adult"),
        (adult, "adult.data", PERSON.replace("<=50K", "rich"), "income must be <=50K or >50K, got 'rich'"),
        (twitch, "DE_target.csv", "days,mature\n1,True\n", "has no column 'new_id' and 2 more"),
        (twitch, "DE_target.csv", TARGET.replace("False,2", "False,5"), "new_id must number the streamers"),
        (twitch, "DE_target.csv", "", "cannot be read as Twitch"),
        (twitch_friendships, "DE_edges.csv", "a,b\n1,2\n", "has no column 'from'"),
        (twitch_friendships, "DE_edges.csv", "from,to\n1,x\n", "friends must be the numbers of streamers"),
        (twitch_friendships, "DE_edges.csv", "from,to\n1,\n", "friends must be the numbers of streamers"),
        (california_housing, "housing.csv", HOUSES.splitlines()[0] + "\n", "housing.csv: has no rows"),
        (california_housing, "housing.csv", HOUSES.replace("37.88", ""), "row 1 has no place"),
        (california_housing, "housing.csv", "latitude\n1\n", "has no column 'longitude'"),
        (california_housing, "housing.csv", HOUSES.replace("880", "many"), "cannot be read as California"),
        (sml2010, "x.txt", "", "has no column 'date'"),
        (sml2010, "x.txt", CLIMATE + "1 2 3\n", "must have 4 columns .* line 3"),
        (sml2010, "x.txt", CLIMATE.replace("18.1875", "warm"), "cannot be read as SML2010"),
        (texas, "base.txt", "a\tb\n1\t2\n", "has no column 'THCIC_ID' and 3 more.* apply at https"),
        (texas, "base.txt", DISCHARGES.replace("9.00", "much"), "cannot be read as base data"),
    ],
)
def test_other_files_are_one_line(
    tmp_path: Path, load: Callable[[Path], pl.DataFrame], name: str, text: str, wanted: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=wanted) as caught:
        load(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("load", [adult, twitch, twitch_friendships, california_housing, sml2010, texas])
def test_without_data_the_publisher_is_named(load: Callable[[Path], pl.DataFrame], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such file\. .*(published|given out)"):
        load(tmp_path / "nothing.csv")


def test_the_description_names_every_loader_and_its_columns(tmp_path: Path) -> None:
    """Rows of docs/datasets.md against loaders; the ones that need no file, or have their own tests, by name only."""
    here = Path(__file__).parents[2]
    text = (here / "docs" / "datasets.md").read_text()
    rows = {row[0].strip("` "): row[1:] for row in re.findall(r"^\| (`\w+`)(.*)\|(.*)\|(.*)\|$", text, re.M)}
    modules = {path.stem for path in (here / "src/dovetail/datasets").glob("*.py")} - {"__init__", "download"}
    assert {getattr(datasets, name).__module__.rpartition(".")[2] for name in rows} == modules
    files = {"adult.data": PERSON, "DE_target.csv": TARGET, "DE_edges.csv": "from,to\n0,2\n", "housing.csv": HOUSES}
    files["base.txt"] = DISCHARGES
    loads = (adult, twitch, twitch_friendships, california_housing, texas)
    for load, (name, content) in zip(loads, files.items(), strict=True):
        (tmp_path / name).write_text(content)
        (described,) = (row for key, row in rows.items() if key == load.__name__)
        columns = set(re.findall(r"`(\w+)`", described[1] + described[2]))
        assert columns and columns <= set(load(tmp_path / name).columns), load.__name__


@pytest.mark.skipif("'DOVETAIL_DATA' not in os.environ", reason="needs the public data sets")
def test_the_real_files_are_complete() -> None:
    assert os.environ["DOVETAIL_DATA"]
    people = adult()
    assert people.height == 32_561 and round((people["income"] == ">50K").mean(), 4) == 0.2408  # type: ignore[arg-type]
    streamers, friends = twitch(), twitch_friendships()
    assert (streamers.height, friends.height, friends.n_unique()) == (9_498, 153_138, 153_138)
    assert friends.max().row(0)[1] == 9_497 and (friends["one"] != friends["other"]).all()
    houses = california_housing()
    assert houses.height == 20_640 and houses["total_bedrooms"].null_count() == 207
    assert houses["latitude"].is_between(32, 42).all() and houses["ocean_proximity"].n_unique() == 5
    climate = sml2010()
    assert climate["stretch"].value_counts(sort=True)["count"].to_list() == [2_764, 1_373]
    assert climate["temperature_comedor_sensor"].is_between(5, 35).all()
    steps = climate.filter(stretch=2)["time"].diff().drop_nulls().dt.total_minutes()
    assert dict(steps.value_counts().iter_rows()) == {15: 1_370, 30: 2}
