"""The experiment of section 5 for any population: shuffle, attack by a vote, learn with trees, trial after trial."""

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from studies.resumable import Cell, Row, resumed

from dovetail.attack.experiment.run_attack import VULNERABLE_AT
from dovetail.attack.majority import MajorityVote
from dovetail.core.entropy import Entropy, Permutation, simulation
from dovetail.core.stages import Shuffler
from dovetail.estimate.frequency import project_shares
from dovetail.estimate.local import CalibratedTrees, GroupShares, local_error
from dovetail.randomize.krr import KRR
from dovetail.shuffle.best import best_shuffler
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.uniform import Uniform

Points = NDArray[np.float64]  # (n, d)
Shares = NDArray[np.float64]  # (m, k)
Also = Callable[[Shares, NDArray[np.int64], Entropy], Row]


@dataclass(frozen=True, eq=False)
class World:
    """A population as the study sees it.

    Parameters
    ----------
    krr : KRR
        What everybody uses.
    values : int array (n,)
        Private.
    places : float array (n, d)
        Public: where people are; `at` adds places at which the law is wanted besides.
    attack : MajorityVote
    near : Groups
        Who counts as near each person when the truth at a place is counted.
    grouped : function of a size
        The groups that a shuffler protects.
    """

    krr: KRR
    values: NDArray[np.int64]
    places: Points
    attack: MajorityVote
    near: Groups
    grouped: Callable[[float], Groups]
    at: Points


def published(groups: Groups, *, alpha: float) -> Mallows:
    """Algorithm 1 as printed: one breadth-first order and theta = alpha / (w (w + 1) / 2)."""
    exact = Mallows.single(groups, alpha=alpha)
    bound = exact.width * (exact.width + 1) // 2
    return Mallows.single(groups, alpha=alpha * exact.sensitivity / bound)


ENDS: dict[str, Callable[[int], Shuffler]] = {"LDP": Identity, "uniform": Uniform}
MECHANISMS: dict[str, Callable[[Groups, float, Points], Shuffler]] = {
    "published": lambda groups, alpha, points: published(groups, alpha=alpha),
    "exact": lambda groups, alpha, points: Mallows.fit(groups, alpha=alpha, points=points),
    "best": lambda groups, alpha, points: best_shuffler(groups, alpha=alpha, points=points),
}


def settings(study: str, *, full: bool) -> dict[str, Any]:
    """The parameters in the study's config.toml at this size."""
    given = tomllib.loads((Path(study).with_name("config.toml")).read_text())
    sizes = {"full": given.pop("full"), "toy": given.pop("toy")}
    return {**given, **sizes["full" if full else "toy"]}


def experiment(
    worlds: dict[str, Callable[[], World]],
    sweeps: dict[str, list[tuple[float, float]]],
    given: dict[str, Any],
    *,
    out: Path,
    also: Also = lambda shares, reports, rng: {},
) -> pl.DataFrame:
    """One row for each mechanism at each (alpha, size) of each set, and for the two ends; out/cells.jsonl grows."""
    made = {name: cache(make) for name, make in worlds.items()}
    cells: list[Cell] = []
    for name, sweep in sweeps.items():
        cases = [(end, None, None) for end in ENDS] + [(way, *case) for case in sweep for way in MECHANISMS]
        cells += [{"set": name, "mechanism": way, "alpha": alpha, "size": size} for way, alpha, size in cases]

    def measure(cell: Cell) -> Row:
        return measured(made[cell["set"]](), cell, given, also=also)

    return pl.DataFrame(resumed(out / "cells.jsonl", cells, measure, parameters=given), infer_schema_length=None)


def measured(world: World, cell: Cell, given: dict[str, Any], *, also: Also) -> Row:
    """Means and standard deviations over trials, and what the shuffler is."""
    n = len(world.values)
    if cell["mechanism"] in ENDS:
        size, shuffler = None, ENDS[cell["mechanism"]](n)
    else:
        groups = world.grouped(cell["size"])
        size, shuffler = mean_size(groups), MECHANISMS[cell["mechanism"]](groups, cell["alpha"], world.places)
    truth = GroupShares(world.near, world.krr.k).shares(world.values, simulation(0))
    seeds = partial(derived, given["seed"], cell["set"])
    trials = pl.DataFrame(
        [
            trial(world, shuffler, truth=truth, given=given, seeds=partial(seeds, number), also=also)
            for number in range(given["trials"])
        ]
    )
    overall = np.bincount(world.values, minlength=world.krr.k) / n
    found: Row = {"group_size": size, "shuffler": shuffler.name, "theta_n": theta_n(shuffler)}
    found["lambda_overall"] = local_error(np.tile(overall, (n, 1)), truth)
    for name in trials.columns:
        found[name], found[f"{name}_sd"] = trials[name].mean(), trials[name].std()
    return found


def trial(
    world: World, shuffler: Shuffler, *, truth: Shares, given: dict[str, Any], seeds: Callable[[str], Entropy],
    also: Also,
) -> Row:  # fmt: skip
    """One order, and everything that is done with it; equal luck for every mechanism, so that only orders differ."""
    order = shuffler.permutation(seeds("order"))
    right = success(world, order, randomizations=given["randomizations"], rng=seeds("attack"))
    vulnerable = right >= VULNERABLE_AT
    rare = world.values != np.bincount(world.values).argmax()
    rng = seeds("learning")
    batch = world.krr.randomize(world.values, rng)[order]
    laws = CalibratedTrees(world.places, world.krr.k, at=world.at).shares(batch, rng)
    known = project_shares(world.krr.channel().invert(laws))
    return {
        "rho": float(vulnerable.mean()),
        "rho_rare": float(vulnerable[rare].mean()),
        "success": float(right.mean()),
        "lambda": local_error(known[: len(truth)], truth),
        "lambda_reports": local_error(laws[: len(truth)], truth),
        "moved": moved(world.places, order) / moved(world.places, seeds("far").permutation(len(order))),
        **also(laws, batch, rng),
    }


def success(world: World, order: Permutation, *, randomizations: int, rng: Entropy) -> NDArray[np.float64]:
    """Share of the randomizations of one order in which each person's value is guessed (n,)."""
    right = np.zeros(len(world.values))
    for _ in range(randomizations):
        reports = world.krr.randomize(world.values, rng)
        right += world.attack.guess(reports[order], rng) == world.values
    return right / randomizations


def moved(places: Points, order: Permutation) -> float:
    """Mean distance between where a report is released and where it came from."""
    return float(np.linalg.norm(places[order] - places, axis=1).mean())


def mean_size(groups: Groups) -> float:
    """People in a person's group, on average; who has none is alone."""
    owned = groups.owners.sizes
    return float((groups.n - owned.sum() + (groups.sizes * owned).sum()) / groups.n)


def theta_n(shuffler: Shuffler) -> float | None:
    """theta times n of the largest component; for noise, of the Mallows order that moves people as far."""
    if not isinstance(shuffler, Mallows | NoisySort):
        return None
    largest = shuffler.line.sizes.argmax()
    return float(2.0 * math.log(2.0) * shuffler.line.sizes[largest] / shuffler.displacements()[largest])


def derived(*names: object) -> Entropy:
    """A stream of its own for each list of names."""
    return simulation(int.from_bytes(sha256(repr(names).encode()).digest()[:8]))
