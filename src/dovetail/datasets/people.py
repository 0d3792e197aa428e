"""Published tables of people: a census, block groups, patients, readers, streamers, trajectories, and papers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from dovetail.core.errors import DataError
from dovetail.datasets.download import DataSource, PublishedFile, data_folder, locate, parsed_as, require_columns

# Adult: an extract of the census of the United States of 1994.

ADULT = DataSource(
    "adult",
    "Adult (Becker, Kohavi 1996, CC BY 4.0) is published by the UCI Machine Learning Repository, "
    "doi:10.24432/C5XW20; take adult.data",
    {
        "adult.data": PublishedFile(
            "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        )
    },
)

ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
    "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
)  # fmt: skip
ADULT_NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")


def adult(path: str | Path | None = None) -> pl.DataFrame:
    """32,561 people: whether they earn more than 50,000 dollars a year, and what a census knows besides.

    Private: `income` ("<=50K" or ">50K").
    Public: `age` (years); `marital_status` is what the paper's attacker knows besides. The other twelve columns are
    the publisher's, with null where the census has no answer.

    Parameters
    ----------
    path : str or Path, optional
        adult.data or adult.test, or their folder; $DOVETAIL_DATA/adult if absent.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where the data come from.

    Examples
    --------
    >>> adult()["income"].value_counts(sort=True).rows()  # doctest: +SKIP
    [('<=50K', 24720), ('>50K', 7841)]

    Source
    ------
    Becker, Kohavi (1996), Adult, UCI Machine Learning Repository.
    """
    file = locate(ADULT, "adult.data", path=path)
    rows = [line.rstrip(".").split(", ") for line in _lines(file)]
    if not rows:
        raise DataError(f"{file}: has no records. {ADULT.where}.")
    bad = next((number for number, row in enumerate(rows, 1) if len(row) != len(ADULT_COLUMNS)), None)
    if bad is not None:
        raise DataError(
            f"{file}: must have {len(ADULT_COLUMNS)} columns in every record (see record {bad}). {ADULT.where}."
        )
    table = pl.DataFrame(rows, schema=dict.fromkeys(ADULT_COLUMNS, pl.String), orient="row")
    table = table.with_columns(pl.all().replace("?", None))
    with parsed_as("Adult", file):
        table = table.with_columns(pl.col(ADULT_NUMBERS).cast(pl.Int64))
    strange = table["income"].filter(~table["income"].is_in(["<=50K", ">50K"]).fill_null(False))
    if strange.len():
        raise DataError(f"{file}: income must be <=50K or >50K, got {strange[0]!r}. {ADULT.where}.")
    return table


def _lines(file: Path) -> list[str]:
    """Records; the publisher's test half opens with a comment, and both halves end with an empty line."""
    lines = (line.strip() for line in file.read_text(encoding="ascii", errors="replace").splitlines())
    return [line for line in lines if line and not line.startswith("|")]


# California housing: block groups of the census of 1990 and where they lie.


CALIFORNIA = DataSource(
    "california_housing",
    "California housing (Pace, Barry 1997, from public census aggregates) with the column ocean_proximity is "
    "published at https://github.com/ageron/handson-ml2/tree/master/datasets/housing; take housing.csv",
    {
        "housing.csv": PublishedFile(
            "https://raw.githubusercontent.com/ageron/handson-ml2/master/datasets/housing/housing.csv",
            "8a3727f4cf54ac1a327f69b1d5b4db54c5834ea81c6e4efc0d163300022a685e",
        )
    },
)

CALIFORNIA_COLUMNS = (
    "longitude", "latitude", "housing_median_age", "total_rooms", "total_bedrooms", "population", "households",
    "median_income", "median_house_value", "ocean_proximity",
)  # fmt: skip


def california_housing(path: str | Path | None = None) -> pl.DataFrame:
    """20,640 block groups, each of 600 to 3,000 people.

    Private: `ocean_proximity` (five classes) or `median_house_value` (dollars, cut at 500,001), as a study chooses.
    Public: `latitude`, `longitude` (degrees). The other columns are the publisher's; `total_bedrooms` has nulls.

    Parameters
    ----------
    path : str or Path, optional
        housing.csv or its folder; $DOVETAIL_DATA/california_housing if absent.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where the data come from.

    Examples
    --------
    >>> california_housing()["ocean_proximity"].value_counts(sort=True).rows()[:2]  # doctest: +SKIP
    [('<1H OCEAN', 9136), ('INLAND', 6551)]

    Source
    ------
    Pace, Barry (1997), Sparse Spatial Autoregressions, Statistics and Probability Letters 33(3).
    """
    file = locate(CALIFORNIA, "housing.csv", path=path)
    with parsed_as("California housing", file):
        table = pl.read_csv(file)
        require_columns(file, table.columns, CALIFORNIA_COLUMNS, source=CALIFORNIA)
        houses = table.select(pl.col(CALIFORNIA_COLUMNS[:-1]).cast(pl.Float64), CALIFORNIA_COLUMNS[-1])
    lost = houses.select(pl.any_horizontal(pl.col("latitude", "longitude").is_null())).to_series()
    if lost.any() or not houses.height:
        what = f"row {int(lost.arg_true()[0]) + 1} has no place" if houses.height else "has no rows"
        raise DataError(f"{file}: {what}. {CALIFORNIA.where}.")
    return houses


# The 1974 Redbook survey on extramarital affairs, in the file beside this module.


_CLASSES = ["none", "under 0.5", "0.5 to 2", "2 and more"]


def redbook() -> pl.DataFrame:
    """Load 6,366 married women: one sensitive answer, in two codings, and public columns.

    Private: `affair` (no, yes) and `affair_class` (the survey's measure of time spent in affairs, in four classes).
    Public: `age`, `years_married`, `education` (years) and `occupation` (code).

    Raises
    ------
    DataError
        Nowhere by itself: the rows ship with the package.

    Examples
    --------
    >>> redbook()["affair"].value_counts(sort=True).rows()
    [('no', 4313), ('yes', 2053)]

    Source
    ------
    Fair (1978), A Theory of Extramarital Affairs, Journal of Political Economy 86(1), 45-61. The author published the
    rows on his site and permitted others to pass them on, as `statsmodels.datasets.fair` (BSD-3-Clause) does; its
    columns affairs, age, yrs_married, educ and occupation are kept, in its order.
    """
    raw = pl.read_parquet(Path(__file__).with_name("redbook.parquet"))
    time = raw["affairs"]
    codes = (time > 0).cast(pl.Int64) + (time >= 0.5).cast(pl.Int64) + (time >= 2).cast(pl.Int64)
    return pl.DataFrame(
        {
            "affair": ["yes" if value > 0 else "no" for value in time],
            "affair_class": [_CLASSES[code] for code in codes],
            "age": raw["age"],
            "years_married": raw["years_married"],
            "education": raw["education"].cast(pl.Int64),
            "occupation": raw["occupation"].cast(pl.Int64),
        }
    )


# Texas hospital discharges: the public use data file, for which one applies.


TEXAS = DataSource(
    "texas",
    "The inpatient public use data file is given out by the Texas Department of State Health Services under a data "
    "use agreement: apply at https://www.dshs.texas.gov/center-health-statistics/texas-health-care-information-"
    "collection, and take the tab-delimited base data file",
)

TEXAS_COLUMNS = {
    "THCIC_ID": "hospital",
    "PAT_ZIP": "zip_code",
    "FIRST_PAYMENT_SRC": "payment",
    "TOTAL_CHARGES": "charges",
}


def texas(path: str | Path) -> pl.DataFrame:
    """One row for each discharge that names its payer.

    Private: `payment` (code of the first source of payment).
    Public: `hospital` (code) and `zip_code` of the patient; `charges` (dollars) is what the paper's attacker knows
    besides. The file has no coordinates: join those of the hospitals.

    Parameters
    ----------
    path : str or Path
        A base data file, tab-delimited. The agreement forbids to pass it on, so it has no place at home.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where to apply.

    Notes
    -----
    Written from the published list of columns and tested on rows of that form, not on the file itself.

    Examples
    --------
    >>> from dovetail.core.errors import DataError
    >>> try:
    ...     texas("nowhere.txt")
    ... except DataError as error:
    ...     print(str(error)[:26])
    nowhere.txt: no such file.

    Source
    ------
    Texas Health Care Information Collection, Inpatient Public Use Data File, base data; the paper uses about 29,000
    psychiatric patients of it, whose selection it does not describe.
    """
    file = locate(TEXAS, path=path)
    with parsed_as("base data", file):
        raw = pl.read_csv(file, separator="\t", infer_schema=False, encoding="utf8-lossy", quote_char=None)
        require_columns(file, raw.columns, TEXAS_COLUMNS, source=TEXAS)
        known = raw.select(pl.col(old).str.strip_chars().alias(new) for old, new in TEXAS_COLUMNS.items())
        table = known.with_columns(pl.col("charges").replace("", None).cast(pl.Float64))
    return table.filter(~pl.col("payment").is_in(["", "*", "`"]))


# Twitch: streamers who speak German, and their mutual friendships.

TWITCH = DataSource(
    "twitch",
    "The Twitch networks (Rozemberczki, Allen, Sarkar 2019, MIT) are published by SNAP, "
    "https://snap.stanford.edu/data/twitch-social-networks.html; take musae_DE_target.csv and musae_DE_edges.csv",
)


def twitch(path: str | Path | None = None) -> pl.DataFrame:
    """9,498 streamers; row i is person i of `twitch_friendships`.

    Private: `mature` (whether explicit language is used).
    Public: `person` (0..n-1), and what everybody sees: `days` (age of the account), `views`, `partner`.

    Parameters
    ----------
    path : str or Path, optional
        Folder of the two files, or the file of streamers; $DOVETAIL_DATA/twitch if absent.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where the data come from.

    Examples
    --------
    >>> int(twitch()["mature"].sum())  # doctest: +SKIP
    5742

    Source
    ------
    Rozemberczki, Allen, Sarkar (2019), Multi-Scale Attributed Node Embedding; German subset.
    """
    file = locate(TWITCH, "DE_target.csv", "musae_DE_target.csv", path=path)
    raw = _streamers(file, "new_id", "mature", "days", "views", "partner")
    table = raw.select(pl.col("new_id").alias("person"), "mature", "days", "views", "partner").sort("person")
    if not table.height or table["person"].to_list() != list(range(table.height)):
        raise DataError(f"{file}: new_id must number the streamers 0, 1, .. without gaps. {TWITCH.where}.")
    return table


def twitch_friendships(path: str | Path | None = None) -> pl.DataFrame:
    """153,138 mutual friendships, each once: columns `one` and `other`, both `person` of `twitch`; public.

    `Groups.from_graph(friendships.to_numpy(), n=9498)` puts everybody among their friends.

    Parameters
    ----------
    path : str or Path, optional
        Folder of the two files, or the file of friendships; $DOVETAIL_DATA/twitch if absent.

    Raises
    ------
    DataError
        As `twitch`.

    Examples
    --------
    >>> twitch_friendships().shape  # doctest: +SKIP
    (153138, 2)
    """
    file = locate(TWITCH, "DE_edges.csv", "musae_DE_edges.csv", path=path)
    pairs = _streamers(file, "from", "to").select(pl.col("from").alias("one"), pl.col("to").alias("other"))
    if not all(kind.is_integer() for kind in pairs.dtypes) or sum(pairs.null_count().row(0)):
        raise DataError(f"{file}: friends must be the numbers of streamers. {TWITCH.where}.")
    return pairs


def _streamers(file: Path, *columns: str) -> pl.DataFrame:
    with parsed_as("Twitch", file):
        table = pl.read_csv(file)
    require_columns(file, table.columns, columns, source=TWITCH)
    return table


# GeoLife: trajectories of 182 people, by the path at which a user has them.

GEOLIFE = DataSource(
    "geolife",
    "GeoLife GPS Trajectories 1.3 (Zheng, Xie, Ma 2010) is published by Microsoft Research for research; take its "
    "folder Data, which has a folder for each person",
)
GEOLIFE_HEADER = 6  # lines before the points of a .plt file
GEOLIFE_COLUMNS = ("latitude", "longitude", "none", "feet", "days", "date", "clock")


def geolife(
    path: str | Path | None = None, *, most_points: int | None = None, seconds: tuple[float, float] | None = None
) -> pl.DataFrame:
    """One row for each point, as `dovetail trace` reads tables of traces.

    Private: where and when. Columns: `trace`, `person`, `time` (Unix seconds), `latitude`, `longitude`.

    Parameters
    ----------
    path : str or Path, optional
        The folder Data, or one that holds it; $DOVETAIL_DATA/geolife if absent.
    most_points : int, optional
        Keep traces of fewer points; the paper takes 50.
    seconds : (float, float), optional
        Keep traces that last as long; the paper takes (270, 330).

    Raises
    ------
    DataError
        When there is no such folder, or a file is not in this form; says where the data come from.

    Notes
    -----
    Written from the publisher's description and tested on files of that form, not on the data themselves.

    Examples
    --------
    >>> table = geolife(most_points=50, seconds=(270, 330))  # doctest: +SKIP

    Source
    ------
    Zheng, Xie, Ma (2010), GeoLife: A Collaborative Social Networking Service among User, Location and Trajectory,
    IEEE Data Engineering Bulletin 33. The selection: Meehan (2023), The Primacy of Applied Privacy, E.1.4.
    """
    home = data_folder(GEOLIFE.folder, GEOLIFE.where) if path is None else Path(path)
    files = sorted(home.rglob("Trajectory/*.plt"))
    if not files:
        raise DataError(f"{home}: no such file. {GEOLIFE.where}.")
    low, high = seconds or (-np.inf, np.inf)
    kept = [
        trace
        for trace in map(_trace, files)
        if (most_points is None or trace.height < most_points)
        and low <= float(trace["time"][-1] - trace["time"][0]) <= high
    ]
    return pl.concat(kept) if kept else _trace(files[0]).clear()


def _trace(file: Path) -> pl.DataFrame:
    person = file.parent.parent.name
    with parsed_as("a .plt file", file):
        raw = pl.read_csv(
            file, has_header=False, skip_rows=GEOLIFE_HEADER, new_columns=GEOLIFE_COLUMNS, infer_schema=False
        )
        stamps = pl.concat_str("date", pl.lit(" "), "clock").str.to_datetime("%Y-%m-%d %H:%M:%S", time_zone="UTC")
        table = raw.select(
            trace=pl.lit(f"{person}-{file.stem}"),
            person=pl.lit(person),
            time=stamps.dt.epoch("s"),
            latitude=pl.col("latitude").cast(pl.Float64),
            longitude=pl.col("longitude").cast(pl.Float64),
        )
    if not table.height:
        raise DataError(f"{file}: cannot be read as a .plt file; it has no points.")
    return table.unique("time", keep="first", maintain_order=True)


# Papers: arXiv's abstracts of spring 2007, with the archive that they were sent to.

ARXIV = DataSource(
    "arxiv_abstracts",
    "arXiv publishes its metadata under CC0 1.0 (https://info.arxiv.org/help/bulk_data.html); any Parquet file with "
    "the columns title, abstract and archive will do",
)
ARXIV_COLUMNS = ("title", "abstract", "archive")


def arxiv_abstracts(path: str | Path | None = None) -> pl.DataFrame:
    """2,000 papers of spring 2007, without their authors.

    Private: `abstract` (a document of 1 to 20 sentences). Public: `archive` (such as "math"), `title`.

    Parameters
    ----------
    path : str or Path, optional
        arxiv_2007_2000.parquet or its folder; $DOVETAIL_DATA/arxiv_abstracts if absent.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where the data come from.

    Examples
    --------
    >>> arxiv_abstracts().columns[:3]  # doctest: +SKIP
    ['id', 'title', 'abstract']

    Source
    ------
    arXiv.org, metadata of submissions, CC0 1.0.
    """
    file = locate(ARXIV, "arxiv_2007_2000.parquet", path=path)
    try:
        table = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):
        raise DataError(f"{file}: cannot be read as Parquet. {ARXIV.where}.") from None
    require_columns(file, table.columns, ARXIV_COLUMNS, source=ARXIV)
    return table
