"""Twitch: streamers who speak German, and their mutual friendships."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

from dovetail.core.checks import whole
from dovetail.core.errors import DataError
from dovetail.datasets.download import DataSource, locate, require_columns

SOURCE = DataSource(
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
    file = locate(SOURCE, "DE_target.csv", "musae_DE_target.csv", path=path)
    raw = _read(file, "new_id", "mature", "days", "views", "partner")
    table = raw.select(pl.col("new_id").alias("person"), "mature", "days", "views", "partner").sort("person")
    if not table.height or table["person"].to_list() != list(range(table.height)):
        raise DataError(f"{file}: new_id must number the streamers 0, 1, .. without gaps. {SOURCE.where}.")
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
        When there is no such file, or it is not in this form; says where the data come from.

    Examples
    --------
    >>> twitch_friendships().shape  # doctest: +SKIP
    (153138, 2)
    """
    file = locate(SOURCE, "DE_edges.csv", "musae_DE_edges.csv", path=path)
    pairs = _read(file, "from", "to").select(pl.col("from").alias("one"), pl.col("to").alias("other"))
    if not all(kind.is_integer() for kind in pairs.dtypes) or sum(pairs.null_count().row(0)):
        raise DataError(f"{file}: friends must be the numbers of streamers. {SOURCE.where}.")
    return pairs


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


def _read(file: Path, *columns: str) -> pl.DataFrame:
    try:
        table = pl.read_csv(file)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{file}: cannot be read as Twitch; {str(error).splitlines()[0]}") from None
    require_columns(file, table.columns, columns, source=SOURCE)
    return table
