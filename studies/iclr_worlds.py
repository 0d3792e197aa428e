"""The four populations of section 5, from public data, and small made-up ones in their place for toys."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds
from studies.iclr import Points, World

from dovetail.attack.experiment.voter_selection import Places, select_voters
from dovetail.attack.majority import MajorityVote
from dovetail.core.checks import refuse, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.datasets.nested_crescents import nested_crescents
from dovetail.randomize.krr import KRR
from dovetail.shuffle.fitting.groups import Groups

KM = 111.195  # in a degree of latitude


def california(table: pl.DataFrame, given: dict[str, Any], rng: Entropy) -> World:
    """Nearness to the ocean follows the place; votes go to homes of the same price nearby. In km, on a plane."""
    east = (table["longitude"].to_numpy() + 119.5) * np.cos(np.radians(36.0)) * KM
    places = np.column_stack((east, (table["latitude"].to_numpy() - 36.0) * KM))
    price = table["median_house_value"].to_numpy()[:, None]
    near = given["california"]["near"]
    return on_plane(
        coded(table["ocean_proximity"]), places, near=near, similar=price, at=places, given=given, rng=rng
    )


def syn(table: pl.DataFrame, given: dict[str, Any], rng: Entropy, *, test: Points) -> World:
    """Eight nested labels; votes go to anybody nearby. `test` are places of people who do not take part."""
    places = table.select("x", "y").to_numpy()
    labels, at, near = table["label"].to_numpy(), np.vstack((places, test)), given["syn"]["near"]
    return on_plane(labels, places, near=near, similar=None, at=at, given=given, rng=rng)


def on_plane(
    values: NDArray[np.int64], places: Points, *, near: float, similar: Points | None, at: Points,
    given: dict[str, Any], rng: Entropy,
) -> World:  # fmt: skip
    """People of a map: near is within a radius, for voters, for the truth, and for groups."""
    krr, everybody = KRR(k=int(values.max()) + 1, epsilon=given["epsilon"]), np.arange(len(values))
    seats = select_voters(everybody, within=(places, near), similar=similar, votes=given["votes"], rng=rng)
    return World(
        krr=krr,
        values=values,
        places=places,
        attack=MajorityVote(krr, everybody, seats),
        near=Groups.within_radius(places, near),
        grouped=lambda size: Groups.within_radius(places, size),
        at=at,
    )


def adult(table: pl.DataFrame, given: dict[str, Any], rng: Entropy) -> World:
    """Income follows the age; votes go to people of about the same age and of the same marital status."""
    ages, krr = table["age"].to_numpy().astype(np.float64), KRR(k=2, epsilon=given["epsilon"])
    married = np.eye(table["marital_status"].n_unique())[coded(table["marital_status"])]
    everybody, near = np.arange(len(ages)), given["adult"]["near"]
    seats = select_voters(everybody, within=(ages, near), similar=married, votes=given["votes"], rng=rng)
    return World(
        krr=krr,
        values=coded(table["income"]),
        places=ages[:, None],
        attack=MajorityVote(krr, everybody, seats),
        near=Groups.from_labels(ages, near),
        grouped=lambda size: Groups.from_labels(ages, size),
        at=ages[:, None],
    )


def pudf(table: pl.DataFrame, hospitals: pl.DataFrame, given: dict[str, Any], rng: Entropy) -> World:
    """Who pays follows the hospital's place; votes go to bills of the same height in hospitals nearby. In km.

    `hospitals` has `hospital`, `latitude` and `longitude`. The commonest payers are values, all others one more.
    """
    chosen = given["pudf"]
    table = table.join(hospitals, on="hospital", how="inner").drop_nulls(["latitude", "longitude", "charges"])
    if len(table) < 2 or table["payment"].n_unique() < 2:
        raise DataError(
            "the discharges must name two payers and hold two patients with charges in hospitals whose places are "
            f"known, got {len(table):,} patients."
        )
    table = table[np.sort(rng.permutation(len(table))[: chosen["people"]])]
    most = table["payment"].value_counts(sort=True)["payment"][: chosen["payers"]].to_list()
    payers = coded(table["payment"].map_elements(lambda one: one if one in most else "other", return_dtype=pl.String))
    bills = np.log1p(np.maximum(table["charges"].to_numpy(), 0.0))[:, None]
    latitude, longitude = (table[name].to_numpy() for name in ("latitude", "longitude"))
    places = np.column_stack((longitude * np.cos(np.radians(31.0)) * KM, latitude * KM))
    return on_plane(payers, places, near=chosen["near"], similar=bills, at=places, given=given, rng=rng)


def coarsen_labels(labels: ArrayLike, *, ways: int) -> NDArray[np.int64]:
    """Labels 0..7 at a coarser scale: 8 (all), 4 (crescents) or 2 (clusters).

    >>> coarsen_labels([0, 3, 5, 7], ways=4).tolist()
    [0, 1, 2, 3]
    """
    if whole("ways", ways, least=2) not in (2, 4, 8):
        raise refuse("ways", "2, 4 or 8", ways)
    fine = np.asarray(labels)
    if fine.dtype.kind not in "iu" or (fine.size and not 0 <= fine.min() <= fine.max() <= 7):
        raise DataError(f"`labels` must be whole numbers 0..7, got {fine.dtype} up to {fine.max(initial=0)!r}.")
    return np.asarray(fine // (8 // ways), dtype=np.int64)


def friendship_axes(friendships: pl.DataFrame, n: int, *, axes: int = 16) -> NDArray[np.float64]:
    r"""Coordinates (n, axes) of people whose friends are alike: a public place for models that need numbers.

    .. math:: D^{-1/2} (A + I) D^{-1/2} \approx U S U^\top, \qquad t_i = \text{row } i \text{ of } U S

    with the adjacency matrix A, the degrees D of A + I, and the leading singular vectors.

    Parameters
    ----------
    friendships : data frame with `one` and `other`
    n : int
        People.
    axes : int, 1 to n - 1

    Notes
    -----
    The axes are unique up to sign, which is fixed so that each axis sums to at least 0.

    Raises
    ------
    DataError
        When a friend is none of the people 0..n-1.
    """
    n = whole("n", n, least=2)
    axes = whole("axes", axes, least=1, most=n - 1)
    one, other = (friendships[name].to_numpy() for name in ("one", "other"))
    people = np.concatenate((one, other))
    strange = people[(people < 0) | (people >= n)]
    if strange.size:
        raise DataError(f"`friendships` must be of people 0..{n - 1}, got {strange[0]}.")
    each = np.arange(n)
    cells = np.concatenate((one, other, each)), np.concatenate((other, one, each))
    near = coo_array((np.ones(cells[0].size), cells), shape=(n, n)).tocsr()
    scale = 1.0 / np.sqrt(near.sum(axis=1))
    u, s, _ = svds(near.multiply(scale[:, None]).multiply(scale).tocsr(), k=axes, v0=np.ones(n))
    places = (u * s)[:, ::-1]
    return np.asarray(places * np.where(places.sum(axis=0) < 0.0, -1.0, 1.0))


def twitch(people: pl.DataFrame, friendships: pl.DataFrame, given: dict[str, Any], rng: Entropy) -> World:
    """Explicit language follows friendships; votes go to friends. Groups are the nearest in friendship's axes."""
    n, krr = len(people), KRR(k=2, epsilon=given["epsilon"])
    places = friendship_axes(friendships, n, axes=given["twitch"]["axes"])
    friends = Groups.from_graph(friendships.select("one", "other").to_numpy(), n=n)
    return World(
        krr=krr,
        values=people["mature"].to_numpy().astype(np.int64),
        places=places,
        attack=MajorityVote(krr, np.arange(n), some_members(friends, given["votes"], rng)),
        near=friends,
        grouped=lambda size: Groups.nearest(places, int(size)),
        at=places,
    )


def some_members(groups: Groups, votes: int, rng: Entropy) -> Places:
    """Everybody, and up to votes - 1 members of their group at random."""
    seats = np.full((groups.n, votes), -1, dtype=np.int64)
    seats[:, 0] = np.arange(groups.n)
    for row in range(len(groups)):
        members = groups.members(row)
        for owner in groups.owners.row(row):
            others = members[members != owner]
            chosen = others[rng.permutation(len(others))[: votes - 1]]
            seats[owner, 1 : 1 + len(chosen)] = chosen
    return seats


def coded(labels: ArrayLike) -> NDArray[np.int64]:
    """Codes 0..k-1 in the order of the alphabet."""
    return np.unique(np.asarray(labels).astype(str), return_inverse=True)[1].astype(np.int64)


def pretend_california(n: int, rng: Entropy) -> pl.DataFrame:
    """Crescents of 30 km for regions, prices that follow them."""
    map_ = nested_crescents(n, rng=rng)
    return pl.DataFrame(
        {
            "longitude": -119.5 + map_["x"] * 30.0 / KM,
            "latitude": 36.0 + map_["y"] * 30.0 / KM,
            "ocean_proximity": (map_["label"] // 2).cast(pl.String),
            "median_house_value": map_["label"] * 1000.0 + rng.below(1000, n),
        }
    )


def pretend_texas(n: int, rng: Entropy) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Discharges with the columns of `texas`, and the places of hospitals, in the stead of a file nobody may pass on.

    Hospitals lie around a few towns; each town has a payer who pays for two in three of its patients, and each payer
    bills of its own height.
    """
    hospitals, towns, payers = 40, 8, ("09", "12", "HM", "MA", "MC", "ZZ")
    middle = np.column_stack((26 + rng.below(9, towns), -105 + rng.below(10, towns)))
    town = np.arange(hospitals) % towns
    spread = (np.column_stack((rng.below(1000, hospitals), rng.below(1000, hospitals))) - 500) / 500 * 10 / KM
    places = middle[town] + spread  # within about 10 km
    seen = rng.below(hospitals, n)
    paid = np.where(rng.below(3, n) < 2, town[seen] % len(payers), rng.below(len(payers), n))
    names = np.array([f"{number:06d}" for number in range(100, 100 + hospitals)])
    table = pl.DataFrame(
        {
            "hospital": names[seen],
            "zip_code": [f"77{one:03d}" for one in seen],
            "payment": np.array(payers)[paid],
            "charges": 1000.0 * 2.0**paid + rng.below(500, n),
        }
    )
    return table, pl.DataFrame({"hospital": names, "latitude": places[:, 0], "longitude": places[:, 1]})


def pretend_adult(n: int, rng: Entropy) -> pl.DataFrame:
    """Ages 20 to 79; those from 40 on mostly earn much, and more so when married."""
    ages, wed, luck = 20 + rng.below(60, n), rng.below(2, n), rng.below(100, n)
    rich = luck < np.where(ages >= 40, 50 + 30 * wed, 5 + 5 * wed)
    return pl.DataFrame({"age": ages, "marital_status": wed.astype(str), "income": np.where(rich, ">50K", "<=50K")})


def pretend_twitch(n: int, rng: Entropy) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two circles of friends, with strangers in one friendship of ten; explicit language in one of them."""
    pairs = np.column_stack((np.repeat(np.arange(n), 6), rng.below(n, 6 * n)))
    stranger = (pairs.sum(axis=1) % 2 == 1) & (rng.below(10, len(pairs)) > 0)
    pairs[stranger, 1] = (pairs[stranger, 1] + 1) % n
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return pl.DataFrame({"mature": np.arange(n) % 2}), pl.DataFrame(pairs, schema=["one", "other"], orient="row")
