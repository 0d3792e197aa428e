"""Households of two people of one class and one of another, shuffled inside: what one gains who learns the shares.

Shares of both classes are drawn uniformly, values of them, reports by k-ary randomized response. The Bayes optimum
of somebody who knows nothing but the release weighs 4,000 draws of shares by their likelihood; it shares no code with
the attack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from studies.record import command, picture, record

from dovetail.attack.experiment.run_attack import run_attack
from dovetail.attack.experiment.success_bound import success_bound
from dovetail.attack.likelihood import Likelihood
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.stages import FrequencyRandomizer, Knowledge, Shuffler
from dovetail.datasets import adult, twitch, twitch_friendships
from dovetail.randomize.krr import KRR
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.within_groups import WithinGroups

CLASSES, K, SEED = (0, 0, 1), 3, 5
LOW, STREAMERS = 6_000, 600  # the part of the network
WEIGHED = 4_000  # draws of the shares
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Release(Knowledge):
    """Classes are public, and the release that is attacked has been seen."""

    kinds: NDArray[np.int64]
    reports: NDArray[np.int64]

    def places(self, targets: NDArray[np.int64], *, votes: int, rng: Entropy) -> NDArray[np.int64]:
        raise NotImplementedError

    def points(self) -> Reals:
        return self.kinds[:, None].astype(np.float64)

    def classes(self) -> NDArray[np.int64]:
        return self.kinds

    def release(self, randomizer: FrequencyRandomizer, shuffler: Shuffler, rng: Entropy) -> NDArray[np.int64]:
        return self.reports


KINDS = list(combinations_with_replacement(range(K), len(CLASSES)))  # of a household's reports, sorted


def joint_law(shares: Reals, channel: Reals) -> Reals:
    """Chance (draws, kinds, people, k) of what a household releases, with the value of each of its people."""
    sent = shares @ channel
    found = np.zeros((len(shares), len(KINDS), len(CLASSES), K))
    for place, kind in enumerate(KINDS):
        for order in set(permutations(kind)):
            chance = np.array([sent[:, c, y] for c, y in zip(CLASSES, order, strict=True)])
            for j, (c, y) in enumerate(zip(CLASSES, order, strict=True)):
                others = np.delete(chance, j, axis=0).prod(axis=0)
                found[:, place, j] += others[:, None] * shares[:, c] * channel[:, y]
    return found


def case(epsilon: float, households: int, releases: int) -> dict[str, Any]:
    """Mean success of the three attackers, and the standard error of what the attack misses."""
    rng, krr = np.random.default_rng([SEED, households, round(10 * epsilon)]), KRR(K, epsilon)
    channel = np.asarray(krr.channel().matrix())
    weighed = joint_law(rng.dirichlet(np.ones(K), size=(WEIGHED, 2)), channel)
    alone = weighed[:, :, 0].sum(axis=2)  # chance of each release
    number = {kind: place for place, kind in enumerate(KINDS)}
    shuffler = WithinGroups(Groups.from_labels(np.repeat(np.arange(households), len(CLASSES))))
    everybody = np.arange(households * len(CLASSES))
    right = []
    for release in range(releases):
        shares = rng.dirichlet(np.ones(K), size=2)
        values = np.array([[rng.choice(K, p=shares[c]) for c in CLASSES] for _ in range(households)])
        reports = np.sort([[rng.choice(K, p=channel[v]) for v in row] for row in values], axis=1)
        seen = np.array([number[tuple(row)] for row in reports.tolist()])
        logs = np.log(alone)[:, seen].sum(axis=1)
        weights = np.exp(logs - logs.max())
        learned = np.einsum("s,smjv->mjv", weights / weights.sum(), weighed / alone[:, :, None, None]).argmax(axis=2)
        known = joint_law(shares[None], channel)[0].argmax(axis=2)
        public = Release(np.tile(CLASSES, households), reports.ravel())
        attack = Likelihood.prepare(public, krr, shuffler, targets=everybody, rng=simulation(release))
        guesses = attack.guess(reports.ravel(), simulation(release)).reshape(values.shape)
        right.append([float((told == values).mean()) for told in (guesses, learned[seen], known[seen])])
    ours, optimum, knowing = np.mean(right, axis=0)
    missed = np.array(right)[:, 1] - np.array(right)[:, 0]
    return {
        "epsilon": epsilon, "households": households, "attack": ours, "learning_optimum": optimum,
        "known_shares": knowing, "missed": float(missed.mean()), "error": float(missed.std() / np.sqrt(releases)),
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Public(Release):
    """Classes and their shares are public; a release of its own is learned from where shares are not known."""

    values: NDArray[np.int64]

    def shares(self, k: int) -> Reals:
        counts = np.zeros((int(self.kinds.max()) + 1, k))
        np.add.at(counts, (self.kinds, self.values), 1.0)
        return np.asarray((counts / counts.sum(axis=1, keepdims=True))[self.kinds])


def people() -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.int64], Shuffler]]:
    """Name, public classes, values and shuffler: Adult's other half in random households, and a part of a network."""
    rows = adult()
    half = rows[rows.height // 2 :].sample(3000, seed=SEED)
    income, sex, age = (half[name].cast(pl.String).rank("dense").to_numpy() - 1 for name in ("income", "sex", "age"))
    married = (half["marital_status"] == "Married-civ-spouse").to_numpy()
    for size, kinds, name in ((3, sex, "sex"), (3, married, "married"), (6, 2 * married + sex, "sex and married")):
        households = WithinGroups(Groups.from_labels(np.arange(3000) // size))
        yield f"Adult, {name}, in {size}", kinds.astype(np.int64), income.astype(np.int64), households
    yield "Adult, age, in ages", age.astype(np.int64), income.astype(np.int64), WithinGroups(Groups.from_labels(age))
    streamers, friends = twitch()[LOW : LOW + STREAMERS], twitch_friendships().select("one", "other").to_numpy()
    near = friends[((friends >= LOW) & (friends < LOW + STREAMERS)).all(axis=1)] - LOW
    old = (streamers["days"] > streamers["days"].median()).to_numpy()
    kinds = (2 * streamers["partner"].cast(pl.Int64).to_numpy() + old).astype(np.int64)
    values = streamers["mature"].cast(pl.Int64).to_numpy()
    kinds = np.unique(kinds, return_inverse=True)[1].ravel()
    yield "Twitch, partner and days", kinds, values, NoisySort.fit(Groups.from_graph(near, n=STREAMERS), alpha=64.0)


def public_tables() -> pl.DataFrame:
    """The attack with learned and with known shares, the bound and the blind guess."""
    found = []
    for name, kinds, values, shuffler in people():
        everybody = np.arange(len(kinds))
        for epsilon in (1.0, 3.0):
            krr, row = KRR(2, epsilon), {"table": name, "n": len(kinds), "epsilon": epsilon}
            for shares in ("learned", "known"):
                seen = shuffler.shuffle(krr.randomize(values, simulation(SEED)), simulation(SEED))
                public = Public(kinds, seen, values)
                attack = Likelihood.prepare(
                    public, krr, shuffler, targets=everybody, rng=simulation(SEED), shares=shares
                )
                row[shares] = run_attack(
                    attack, krr, values, shuffler, shuffles=4, randomizations=2, rng=simulation(1)
                ).success
            bound = success_bound(krr, shuffler, values, targets=everybody, known=kinds)
            found.append({**row, "bound": bound.value, "exact": bound.exact, "blind": bound.blind})
    return pl.DataFrame(found)


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write learned_shares.csv: 60 releases of 30, 100 and 400 households in full, 4 of 30 as a toy.

    In full also public_tables.csv, of people whom nothing was tuned on.
    """
    if full:
        public_tables().write_csv(out / "public_tables.csv")
    sizes, releases = ((30, 100, 400), 60) if full else ((30,), 4)
    table = pl.DataFrame([case(epsilon, n, releases) for epsilon in (0.5, 1.0) for n in sizes])
    table.write_csv(out / "learned_shares.csv")
    picture(out / "learned_shares.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """How often a value is guessed, by the attack, by the optimum of those who learn, and with shares known."""
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.6), sharey=True)
    for axis, epsilon in zip(axes, (0.5, 1.0), strict=True):
        rows = table.filter(pl.col("epsilon") == epsilon)
        for name, label in (
            ("attack", "likelihood attack"),
            ("learning_optimum", "optimum of those who learn"),
            ("known_shares", "shares known"),
        ):
            axis.plot(rows["households"].cast(pl.String), rows[name], "o-", label=label)
        axis.set(xlabel="households", title=f"epsilon {epsilon:g}")
    axes[0].set(ylabel="guesses that are right", ylim=(0.0, 0.75))
    axes[1].legend()
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the README claims; an error is one standard error."""
    missed, error = table["missed"], table["error"]
    return {
        "the attack misses less than .01 of the optimum of those who learn": bool((missed < 0.01 + 3 * error).all()),
        "knowing the shares is worth more than the attack misses": bool(
            (table["known_shares"] - table["attack"] > 2 * missed).all()
        ),
    }


if __name__ == "__main__":
    command(main, __doc__)
