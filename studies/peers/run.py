"""Who else answers "n reports, epsilon0 each, shuffled: which epsilon at delta?", with what value and in what time.

The same question, the same stronger-clone pair: our certified bracket, the published algorithm of Feldman, McMillan
and Talwar (transcribed; their script is not on PyPI) with its own stopping rule, and dp_accounting with the pair
written out outcome by outcome, which needs n^2 / 2 outcomes. Other accountants on PyPI cannot express the question.
"""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import polars as pl
from benchmarks.amplify_speed import accounted, published
from studies.record import command, picture, record

from dovetail.account.clones import ClonePair
from dovetail.cli.progress import each
from dovetail.core.errors import MissingExtraError
from dovetail.core.extras import require

DELTA = 1e-6
QUESTIONS = ((1.0, 100), (1.0, 200), (4.0, 1000), (1.0, 10_000), (1.0, 100_000), (4.0, 100_000), (4.0, 1_000_000))
MOST_WRITTEN_OUT = 200


def timed(answer: Callable[[], float]) -> tuple[float, float]:
    """The answer and the seconds that it took."""
    start = perf_counter()
    return answer(), perf_counter() - start


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write peers.csv and .png: n to 1e6 in full, to 1e3 as a toy."""
    rows = []
    for epsilon0, n in each(QUESTIONS if full else QUESTIONS[:3], "ask every library"):
        pair = ClonePair(epsilon0, n)
        pair.epsilon(DELTA)  # compiled kernels are loaded once
        ends = pair.epsilon(DELTA)
        answers: dict[str, Callable[[], float]] = {"dovetail": lambda pair=pair: pair.epsilon(DELTA).upper}
        step = max(1, n // 10_000)
        answers["published algorithm"] = lambda e=epsilon0, n=n, step=step: published(e, n, DELTA, step=step)
        if n <= MOST_WRITTEN_OUT and installed():
            answers["dp_accounting"] = lambda e=epsilon0, n=n: accounted(e, n, DELTA)
        for name, answer in answers.items():
            value, seconds = timed(answer)
            rows.append(
                {
                    "epsilon0": epsilon0, "n": n, "who": name, "epsilon": value, "lower_end": ends.lower,
                    "over_ours": value / ends.upper, "milliseconds": 1e3 * seconds,
                }
            )  # fmt: skip
    table = pl.DataFrame(rows)
    table.write_csv(out / "peers.csv")
    picture(out / "peers.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=0, full=full)
    return table


def installed() -> bool:
    """Whether dp_accounting is there."""
    try:
        return require("dp_accounting", extra="interop") is not None
    except MissingExtraError:
        return False


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    peers = table.filter(pl.col("who") != "dovetail")
    times = table.pivot(on="who", index=["epsilon0", "n"], values="milliseconds")
    return {
        "no peer's upper bound is below ours by more than its discretization": bool(
            (peers["over_ours"] >= 1 - 1e-4).all()
        ),
        "nobody is below the certified lower end": bool((table["epsilon"] >= table["lower_end"] * (1 - 1e-4)).all()),
        "the published algorithm is slower": bool((times["published algorithm"] > times["dovetail"]).all()),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Value over ours, and time, by question."""
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4))
    labels = [f"{e:g}, {n:,}" for e, n in table.select("epsilon0", "n").unique(maintain_order=True).rows()]
    for (who,), rows in table.group_by("who", maintain_order=True):
        places = [labels.index(f"{e:g}, {n:,}") for e, n in rows.select("epsilon0", "n").rows()]
        axes[0].plot(places, rows["over_ours"], marker="o", linestyle="none", label=who)
        axes[1].plot(places, rows["milliseconds"], marker="o", linestyle="none", label=who)
    for axis, title in zip(axes, ("epsilon over ours", "milliseconds"), strict=True):
        axis.set_xticks(range(len(labels)), labels, rotation=45, ha="right")
        axis.set(title=title, xlabel="epsilon0, n")
    axes[1].set_yscale("log")
    axes[0].legend()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
