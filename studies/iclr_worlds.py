"""The four populations of section 5, from public data, and small made-up ones in their place for toys."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from studies.iclr import Points, World

from dovetail.attack.experiment.voter_selection import Places, select_voters
from dovetail.attack.majority import MajorityVote
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.datasets.nested_crescents import nested_crescents
from dovetail.datasets.twitch import friendship_axes
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


def pudf(table: pl.DataFrame, given: dict[str, Any], rng: Entropy) -> World:
    """Who pays follows the region of a patient's address; votes go to bills of the same height in the region.

    Regions are the first three digits of the postal code. The commonest payers are values, all others one more.
    """
    chosen = given["pudf"]
    table = table.with_columns(region=pl.col("zip_code").str.slice(0, 3).cast(pl.Float64, strict=False))
    table = table.drop_nulls(["region", "charges"])
    if len(table) < 2 or table["payment"].n_unique() < 2:
        raise DataError(
            "the discharges must name two payers and hold two patients with a postal code and charges, "
            f"got {len(table):,} patients."
        )
    table = table[np.sort(rng.permutation(len(table))[: chosen["people"]])]
    most = table["payment"].value_counts(sort=True)["payment"][: chosen["payers"]].to_list()
    payers = coded(table["payment"].map_elements(lambda one: one if one in most else "other", return_dtype=pl.String))
    regions, bills = table["region"].to_numpy(), np.log1p(np.maximum(table["charges"].to_numpy(), 0.0))[:, None]
    krr, everybody, near = (
        KRR(k=int(payers.max()) + 1, epsilon=given["epsilon"]),
        np.arange(len(table)),
        chosen["near"],
    )
    seats = select_voters(everybody, within=(regions, near), similar=bills, votes=given["votes"], rng=rng)
    return World(
        krr=krr,
        values=payers,
        places=regions[:, None],
        attack=MajorityVote(krr, everybody, seats),
        near=Groups.from_labels(regions, near),
        grouped=lambda size: Groups.from_labels(regions, size),
        at=regions[:, None],
    )


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
