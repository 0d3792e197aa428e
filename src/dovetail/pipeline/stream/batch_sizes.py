"""How many reports were shuffled together in each round, and what all rounds together promise after shuffling."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.account.amplify import amplify
from dovetail.account.compose import Composition, compose_upper
from dovetail.account.composition.shuffled_round import ShuffledRound
from dovetail.core.bracket import Bracket
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import Randomizer, Shuffler
from dovetail.pipeline.evaluate.guarantees import smallest_batch
from dovetail.report.document import Missing

ALONE = "in some round somebody is shuffled with nobody else: there the local guarantee is all there is"


@dataclass(frozen=True, eq=False)
class Batches:
    """Sizes of the uniformly shuffled batches of all rounds.

    Parameters
    ----------
    sizes : data frame with the columns group, time, n
        One row for each group and round with at least one report.
    n, honest : int
        People on the roster, and how many of them are assumed honest; the others may sit in any batch.
    """

    sizes: pl.DataFrame
    n: int
    honest: int

    @classmethod
    def of(cls, shuffler: Shuffler, sent: pl.DataFrame, *, honest: int | None) -> Batches | Missing:
        """Batches of the reports `sent` (place, time), where the shuffler is uniform inside disjoint groups."""
        size = smallest_batch(shuffler)
        if isinstance(size, Missing):
            return size
        label = shuffler.exchangeable_blocks()
        assert label is not None  # there is a smallest batch
        group = pl.Series("group", label[sent["place"].to_numpy()])
        sizes = sent.with_columns(group).group_by("group", "time").agg(n=pl.len())
        return cls(sizes, shuffler.n, shuffler.n if honest is None else honest)

    @property
    def absent(self) -> int:
        """People that are not assumed honest."""
        return self.n - self.honest

    @property
    def smallest(self) -> int:
        """Reports in the smallest batch of any round."""
        return int(self.sizes["n"].min())  # type: ignore[arg-type]

    @property
    def alone(self) -> int:
        """Reports that were shuffled with no other."""
        return int((self.sizes["n"] == 1).sum())

    @property
    def counted(self) -> dict[int, int]:
        """What n the central promise counts in each round: honest reports in its smallest batch, really sent."""
        least = self.sizes.group_by("time").agg(pl.col("n").min())
        return {t: max(1, n - self.absent) for t, n in least.select("time", "n").iter_rows()}

    def of_a_round(self, randomizer: Randomizer, *, delta: float) -> CentralDP | Missing:
        """(epsilon, delta) of a round, quoted at the smallest batch of any."""
        if self.smallest == 1:
            return Missing(ALONE)
        return amplify(randomizer, n=self.smallest, delta=delta, honest=max(1, self.smallest - self.absent))

    def of_all_rounds(self, randomizer: Randomizer, *, most: int, delta: float) -> CentralDP | Missing:
        """(epsilon, delta) about all values of one device that sent at most `most` reports: the rounds compose."""
        one, profile = randomizer.guarantee, self._profile(most)
        everybody = _composed(randomizer, profile, delta)
        honest = _composed(randomizer, np.maximum(1, profile - self.absent), delta) if self.absent else everybody
        if everybody.epsilon is None or honest.epsilon is None:
            return Missing(honest.reason or everybody.reason)
        return CentralDP(
            all=min(everybody.epsilon, honest.epsilon),
            honest=honest.epsilon,
            colluding=most * one.epsilon,
            delta=delta,
            n=self.n,
            honest_n=self.honest,
            method=honest.method,
            source=honest.source,
            numeric=Bracket(honest.lower or 0.0, honest.epsilon),
            attack_lower=0.0,
            neighbours="replace all values of one device",
        )

    def _profile(self, most: int) -> NDArray[np.int64]:
        """Sizes (at most `most`,) of batches that are no larger than those of any device, smallest first.

        Place by place the smallest over the groups, each with its own batches in ascending order: fewer people and
        more rounds only weaken the promise. Rounded down to powers of two, so that few different rounds compose.
        """
        ordered = self.sizes.sort("group", "n").with_columns(rank=pl.int_range(pl.len()).over("group"))
        worst = ordered.filter(pl.col("rank") < most).group_by("rank").agg(pl.col("n").min()).sort("rank")
        sizes = np.minimum.accumulate(worst["n"].to_numpy()[::-1])[::-1]
        return 2 ** np.floor(np.log2(sizes)).astype(np.int64)


def _composed(randomizer: Randomizer, sizes: NDArray[np.int64], delta: float) -> Composition:
    def rounds(n: int, times: int) -> ShuffledRound:
        return ShuffledRound.of(randomizer, n, times=times)

    try:
        return compose_upper([rounds(n, times) for n, times in Counter(sizes.tolist()).items()], delta=delta)
    except UnsupportedError:  # too different for one grid: all of them like the smallest
        return compose_upper([rounds(int(sizes.min()), len(sizes))], delta=delta)
