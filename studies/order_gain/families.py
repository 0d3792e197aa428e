"""The families of public data on which reference orders are compared, each a function of n and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx
import numpy as np

from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.neighbours import Points


@dataclass(frozen=True)
class Instance:
    """One grouping, and the coordinates it was made from where there are any."""

    groups: Groups
    points: Points | None


def interval(n: int, seed: int) -> Instance:
    """Uniform points on a line with about 30 people within r = 15 / n, held as plain lists: the labels are hidden."""
    points = np.random.default_rng(seed).random((n, 1))
    near = np.abs(points - points.T) <= 15 / n if n <= 2000 else None
    if near is not None:
        return Instance(Groups.from_lists([np.flatnonzero(row).tolist() for row in near], n), points)
    windows = Groups.from_labels(points[:, 0], 15 / n)
    return Instance(hidden(windows), points)


def hidden(windows: Groups) -> Groups:
    """The same groups without the order that they came with."""
    flat, owners = windows.rows.materialize(), windows.owners.materialize()
    return Groups(windows.n, flat, owners, windows.dropped, lined=False)


def square(n: int, seed: int) -> Instance:
    """Uniform points in the unit square with about 30 people within reach."""
    points = np.random.default_rng(seed).random((n, 2))
    return Instance(Groups.within_radius(points, np.sqrt(30 / (np.pi * n))), points)


def nearest(n: int, seed: int) -> Instance:
    """Uniform points in the unit square, the 20 nearest people of each."""
    points = np.random.default_rng(seed).random((n, 2))
    return Instance(Groups.nearest(points, 20), points)


def grid(n: int, seed: int) -> Instance:
    """A square grid whose labels are shuffled, radius 3.01 cells."""
    side = round(np.sqrt(n))
    cells = np.stack(np.divmod(np.arange(side * side), side), axis=1).astype(float)
    points = np.random.default_rng(seed).permutation(cells)
    return Instance(Groups.within_radius(points, 3.01), points)


def strip(n: int, seed: int) -> Instance:
    """Uniform points in a strip of 1 x 1/8 with about 30 people within reach."""
    points = np.random.default_rng(seed).random((n, 2)) / (1, 8)
    return Instance(Groups.within_radius(points, np.sqrt(30 / (8 * np.pi * n))), points)


def _network(graph: nx.Graph, n: int, seed: int) -> Instance:
    """Closed neighbourhoods of a graph whose labels are shuffled."""
    label = np.random.default_rng(seed).permutation(n)
    edges = label[np.array(graph.edges(), dtype=np.int64)]
    return Instance(Groups.from_graph(edges, n=n), None)


def ring(n: int, seed: int) -> Instance:
    """A ring in which each person knows the ten nearest (Watts and Strogatz with p = 0)."""
    return _network(nx.watts_strogatz_graph(n, 10, 0.0, seed=seed), n, seed)


def small_world(n: int, seed: int) -> Instance:
    """Watts and Strogatz with k = 10, p = 0.05."""
    return _network(nx.watts_strogatz_graph(n, 10, 0.05, seed=seed), n, seed)


def preferential(n: int, seed: int) -> Instance:
    """Preferential attachment (Barabasi and Albert) with m = 3."""
    return _network(nx.barabasi_albert_graph(n, 3, seed=seed), n, seed)


FAMILIES: dict[str, Callable[[int, int], Instance]] = {
    "interval": interval,
    "square": square,
    "nearest": nearest,
    "grid": grid,
    "strip": strip,
    "ring": ring,
    "small world": small_world,
    "preferential": preferential,
}
