"""The tables of docs/theory/accuracy.md on dummies: by the accountant to the digits that are printed, and simulated.

Everything at n = 100,000 and delta = 1e-6, at epsilon = 1 where nothing else is said. `expected.csv` holds what the
theory prints. `tables.csv` puts the accountant's number beside each cell; a relation of <= means that today's
accountant of k-ary randomized response admits a little more than the theory's did, within one percent.
`accuracy_tables.csv` has the standard deviations of counts over many simulated collections beside their formulas.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.account.accountant import Accountant
from dovetail.account.dummies import dummies_for_rounds, user_dummies_for
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.estimate import Estimate
from dovetail.estimate.dummies import estimate_with_dummies, estimate_with_user_dummies
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.plan.planner import plan_collection
from dovetail.randomize.krr import KRR
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies

SEED, N, DELTA, CLOSE = 2209, 100_000, 1e-6, 0.05
HELD = (0, 1000, 10_000)  # people behind the first three symbols
HOME = Path(__file__).parent


def values(d: int) -> np.ndarray:
    """Everybody's symbol: nobody holds the first, 1,000 people the second, 10,000 the third."""
    rest = 3 + np.arange(N - HELD[1] - HELD[2]) % (d - 3)
    return np.concatenate([np.full(HELD[1], 1), np.full(HELD[2], 2), rest]).astype(np.int64)


@cache
def krr(d: int) -> KRR:
    """k-ary randomized response that shuffling brings to epsilon = 1."""
    plan = plan_collection(question="frequency", k=d, n=N, epsilon=1.0, delta=DELTA, randomizer="krr")

    def promised(epsilon0: float) -> float:
        return Accountant(KRR(d, epsilon0), n=N).epsilon(DELTA)

    admitted = np.linspace(plan.epsilon0, 1.001 * plan.epsilon0, 101)  # the planner stops a ten-thousandth below
    return KRR(d, max(float(one) for one in admitted if promised(float(one)) <= 1.0))


@cache
def sent(d: int) -> UserDummies:
    """Dummies of people at epsilon = 1."""
    return user_dummies_for(k=d, epsilon=1.0, delta=DELTA, honest=N)


def krr_deviation(randomizer: KRR, count: int) -> float:
    """Of a count of so many people."""
    shares = np.array([count / N, 1.0 - count / N])
    channel = randomizer.channel()
    s, b = channel.keep / channel.total, channel.lie / channel.total
    return float(sqrt(N * (shares[0] * s * (1.0 - s) + shares[1] * b * (1.0 - b))) / (s - b))


def layered(epsilon0: float) -> float:
    """Standard deviation of a count of 0 with dummies at epsilon = 1 above k-RR of 16 symbols."""
    randomizer, dummies = KRR(16, epsilon0), Dummies(16, 1.0, DELTA)
    gain = randomizer.channel().contrast
    return sqrt(krr_deviation(randomizer, 0) ** 2 + dummies.variance / gain**2)


def accounted() -> Iterator[tuple[str, float]]:
    """Every printed cell, as the package has it."""
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        dummies = Dummies(2, epsilon, DELTA)
        yield f"dummies a symbol, epsilon {epsilon:g}", dummies.reach
        yield f"variance, epsilon {epsilon:g}", dummies.variance
    one = Dummies(16, 1.0, DELTA)
    yearly = dummies_for_rounds(k=16, epsilon=1.0, delta=DELTA, rounds=12, law="geometric")
    yield "delta, epsilon 1", float(one.noise.delta)
    yield "epsilon of a round, 12 rounds", yearly.epsilon
    yield "sd of a round, 12 rounds", sqrt(yearly.variance)
    yield "sd of a count, epsilon 1", sqrt(one.variance)
    for epsilon0 in (4, 6, 8):
        yield f"sd with k-RR beneath, epsilon0 {epsilon0}", layered(float(epsilon0))
    for d in (100, 1000):
        yield f"rate, d = {d}", sent(d).rate
    for d in (16, 1000):
        yield f"messages, d = {d}", 1.0 + sent(d).rate
        yield f"sd of a count, d = {d}", sqrt(sent(d).variance(N))
        for count in HELD:
            yield f"k-RR, sd of {count}, d = {d}", krr_deviation(krr(d), count)


def printed() -> pl.DataFrame:
    """The cells of the theory with what the accountant says, rounded as they are printed."""
    found, rows = dict(accounted()), []
    texts = pl.read_csv(HOME / "expected.csv", schema_overrides={"printed": pl.String})
    for section, cell, text, relation in texts.iter_rows():
        wanted, exact = float(text), found[cell]
        digits = len(text.partition("e")[0].replace(".", "").lstrip("0"))
        shown = float(f"{exact:.{digits - 1}e}")
        agrees = shown == wanted if relation == "=" else 0.99 * wanted <= shown <= wanted
        rows.append({"section": section, "cell": cell, "printed": text, "found": exact, "agrees": agrees})
    return pl.DataFrame(rows)


@dataclass(frozen=True)
class Case:
    """One protocol: which estimate it makes of the people in `values(d)`, and the theory's deviations."""

    protocol: str
    d: int
    theory: tuple[float, float, float]
    draw: Callable[[np.ndarray, Entropy], Estimate]


def cases(sizes: tuple[int, ...]) -> Iterator[Case]:
    """The rows of the table in section C, and the layers of section B."""
    for d in sizes:
        people, added, randomizer = sent(d), Dummies(d, 1.0, DELTA), krr(d)
        yield Case("dummies of people", d, (sqrt(people.variance(N)),) * 3, _by_people(people))
        yield Case("dummies of the shuffler", d, (sqrt(added.variance),) * 3, _by_shuffler(added, None))
        deviations = [krr_deviation(randomizer, count) for count in HELD]
        yield Case(
            "k-RR", d, (deviations[0], deviations[1], deviations[2]),
            lambda held, rng, one=randomizer: estimate_frequencies(one, one.randomize(held, rng)),  # type: ignore[misc]
        )  # fmt: skip
    for epsilon0 in (4.0, 6.0, 8.0):
        beneath, added = KRR(16, epsilon0), Dummies(16, 1.0, DELTA)
        extra = added.variance / beneath.channel().contrast ** 2
        both = [sqrt(krr_deviation(beneath, count) ** 2 + extra) for count in HELD]
        yield Case(
            f"dummies above k-RR at {epsilon0:g}", 16, (both[0], both[1], both[2]), _by_shuffler(added, beneath)
        )


def _by_people(dummies: UserDummies) -> Callable[[np.ndarray, Entropy], Estimate]:
    return lambda held, rng: estimate_with_user_dummies(dummies, dummies.add(held, rng), n=N)


def _by_shuffler(dummies: Dummies, beneath: KRR | None) -> Callable[[np.ndarray, Entropy], Estimate]:
    def draw(held: np.ndarray, rng: Entropy) -> Estimate:
        reports = held if beneath is None else beneath.randomize(held, rng)
        return estimate_with_dummies(dummies, dummies.add(reports, rng), n=N, randomizer=beneath)

    return draw


def simulated(trials: int, sizes: tuple[int, ...]) -> pl.DataFrame:
    """Standard deviations of the three counts over so many collections."""
    rng, rows = simulation(SEED), []
    for case in cases(sizes):
        held = values(case.d)
        found = np.array([case.draw(held, rng).value[:3] * N - HELD for _ in range(trials)])
        for count, theory, errors in zip(HELD, case.theory, found.T, strict=True):
            sd = float(np.sqrt(np.mean(errors**2)))
            rows.append(
                {"protocol": case.protocol, "d": case.d, "count": count, "theory": theory, "simulated": sd,
                 "trials": trials, "ratio": sd / theory}
            )  # fmt: skip
    return pl.DataFrame(rows)


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write accuracy_tables.csv, tables.csv and accuracy_tables.png: 2,500 collections in full, 800 as a toy."""
    table = simulated(2500, (16, 1000)) if full else simulated(800, (16,))
    table.write_csv(out / "accuracy_tables.csv")
    printed().write_csv(out / "tables.csv")
    picture(out / "accuracy_tables.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table and in what the accountant says."""
    close = CLOSE if int(table["trials"][0]) >= 2500 else 2.0 * CLOSE
    flat = table.filter(pl.col("protocol").str.starts_with("dummies of"))
    return {
        "every printed cell is the accountant's, or a little above it": bool(printed()["agrees"].all()),
        "simulated deviations are those of the formulas": bool(((table["ratio"] - 1.0).abs() <= close).all()),
        "dummies are as accurate for frequent symbols as for rare ones": bool(
            (flat.group_by("protocol", "d").agg(r=pl.col("simulated").max() / pl.col("simulated").min())["r"] < 1.15)
            .all()
        ),
    }  # fmt: skip


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Standard deviation of a count against how many people hold the symbol."""
    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    for (protocol, d), rows in table.group_by(["protocol", "d"], maintain_order=True):
        if not str(protocol).startswith("dummies above"):
            [line] = axis.plot(rows["count"] + 10, rows["theory"], label=f"{protocol}, {d:,} symbols")
            axis.plot(rows["count"] + 10, rows["simulated"], "o", color=line.get_color())
    axis.set(xscale="log", yscale="log", ylabel="standard deviation of the count at epsilon = 1")
    axis.set(xticks=[10, 1010, 10_010], xticklabels=["0", "1,000", "10,000"], xlabel="people who hold the symbol")
    axis.set(ylim=(2, 400), yticks=[3, 6.5, 10, 20, 50], yticklabels=["3", "6.5", "10", "20", "50"])
    axis.minorticks_off()
    axis.legend(title="line: theory, dot: simulated", loc="upper left", ncols=2)
    return figure


if __name__ == "__main__":
    command(main, __doc__)
