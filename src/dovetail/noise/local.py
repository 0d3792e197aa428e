"""Every person's own noise, the same for everybody: nobody has to be trusted, and shuffling adds to the promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dovetail.account.amplify import amplify
from dovetail.core.channel import Channel, KRRChannel
from dovetail.core.errors import UnsupportedError
from dovetail.core.estimate import Estimate, Tally, sum_reach, two_binomials
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People, Weights
from dovetail.core.special import binomial_law
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Randomizer, Reports, Shuffler
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.estimate.frequency import FrequencyEstimator, project_shares
from dovetail.estimate.mean import MeanEstimator, VectorEstimator
from dovetail.leak.linkage import Linkage, linkage, linkage_bound, pure_epsilon
from dovetail.randomize.sampling.vector_randomizer import VectorRandomizer

# What a shuffle adds to a local promise.
#
# Amplification holds inside blocks of people who can be relabelled without changing the law of the order, and
# shuffled leakage is exact for a uniform shuffle; neither is promised for anything else
# (docs/theory/bounds-on-attacks.md).


_NOT_SHUFFLED = "nothing is shuffled: the local guarantee is all there is"
_NOT_UNIFORM = "this order is released, and no people are known who could be exchanged in it unnoticed"
_NO_LEAKAGE = "the shuffled guess is computed for uniform shuffles only; this order is released"
_ALONE_IN_ORDER = (
    "this order is released, and for somebody nobody else could stand in it (in exactly the same groups, or at the "
    "same point), so she is in no uniform shuffle: for her the local guarantee is all that is proven"
)
ALONE = "somebody is shuffled with nobody else: for that person the local guarantee is all there is"


def smallest_batch(shuffler: Shuffler) -> int | Missing:
    """Number of reports that are shuffled uniformly with each person's own, in the worst case."""
    block = shuffler.smallest_block
    if block is None or not shuffler.acting.moves_reports:
        return Missing(_NOT_UNIFORM if block is None else _NOT_SHUFFLED)
    if block == 1 and not _mixes_evenly(shuffler):
        return Missing(_ALONE_IN_ORDER)
    return block


def _mixes_evenly(shuffler: object) -> bool:
    """True if places are mixed uniformly; the orders of releases in files are, and number no places."""
    return not isinstance(shuffler, Shuffler) or shuffler.uniform_blocks() is not None


def honest_batch(shuffler: Shuffler, honest: int | None) -> int | Missing:
    """Of a uniformly mixed batch, the honest people, if all the others sit in it."""
    batch = smallest_batch(shuffler) if _mixes_evenly(shuffler) else Missing(_NO_LEAKAGE)
    if isinstance(batch, Missing) or honest is None:
        return batch
    return max(1, batch - max(0, shuffler.n - honest))


def central_guarantee(
    randomizer: Randomizer, shuffler: Shuffler, *, delta: float, honest: int | None
) -> CentralDP | Missing:
    """(epsilon, delta) after shuffling; groups that are shuffled by themselves are quoted at the smallest one.

    With fewer honest people than reports, all the others are assumed to sit in the smallest group.
    """
    batch = smallest_batch(shuffler)
    if isinstance(batch, Missing):
        return batch
    trusted = batch if honest is None else max(1, batch - max(0, shuffler.n - honest))
    return Missing(ALONE) if batch == 1 else amplify(randomizer, n=batch, delta=delta, honest=trusted)


def linkage_of(
    randomizer: FrequencyRandomizer | NumericRandomizer | VectorRandomizer,
    shuffler: Shuffler,
    *,
    honest: int | None = None,
    shares: NDArray[np.float64] | None = None,
) -> Linkage | Missing:
    """The chance of naming a person's report, for the smallest block that is mixed evenly."""
    batch = honest_batch(shuffler, honest)
    if isinstance(batch, Missing):
        return batch
    try:
        if shares is None:  # nothing is known of the law of answers
            return linkage_bound(pure_epsilon(randomizer), n=batch)
        assert not isinstance(randomizer, VectorRandomizer)  # whose values have no shares
        return linkage(randomizer, n=batch, prior=shares)
    except UnsupportedError as error:
        return Missing(str(error))


def report_covariance(channel: Channel, shares: NDArray[np.float64], worth: Weights) -> NDArray[np.float64]:
    r"""How m sums over one report each vary together (m, m), averaged over people with these `shares` (k,).

    .. math:: \sum_x f_x \Bigl[\sum_y W(y \mid x)\, a_y a_y^T - \bar a_x \bar a_x^T\Bigr], \qquad
              \bar a_x = \sum_y W(y \mid x)\, a_y

    Parameters
    ----------
    worth : float array (m, outputs)
        What a report adds to each sum, a_y.
    """
    if isinstance(channel, KRRChannel):  # of many answers without their matrix
        inside = channel.s * worth.sum(axis=1, keepdims=True) + channel.contrast * worth
    else:
        inside = worth @ np.asarray(channel.matrix()).T  # (m, k)
    return np.asarray((worth * sent_shares(channel, shares)) @ worth.T - (inside * shares) @ inside.T)


def sent_shares(channel: Channel, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of a report of people who answer with these `shares` (k,)."""
    if isinstance(channel, KRRChannel):
        return np.asarray(channel.s + channel.contrast * shares)
    return np.asarray(shares @ np.asarray(channel.matrix()))


@final
@dataclass(frozen=True)
class Local(Noise):
    """Each device runs the same randomizer.

    Parameters
    ----------
    own : FrequencyRandomizer, NumericRandomizer or VectorRandomizer
    """

    own: FrequencyRandomizer | NumericRandomizer | VectorRandomizer
    name: ClassVar[str] = "local"
    label: ClassVar[str] = "every person's own noise"
    trust: ClassVar[str] = "local"
    estimator: ClassVar[dict[str, str] | Missing] = Missing("shares have one estimator")
    unfit: ClassVar[Mapping[str, str]] = {}
    by_devices: ClassVar[bool] = True

    @property
    def randomizer(self) -> Any:  # of vectors, too
        return self.own

    @property
    def accounted(self) -> Any:
        return self.own

    def central(self, shuffler: Shuffler, people: People, *, delta: float) -> CentralDP | Missing:
        try:
            return central_guarantee(self.own, shuffler, delta=delta, honest=people.honest)
        except UnsupportedError as error:
            if self.own.guarantee.delta == 0.0:
                raise
            return Missing(str(error).rstrip("."))  # of a local delta that is too large for any theorem

    def tally(self, reports: Reports) -> Tally:
        return self._estimator.tally(reports)

    def expected(self, shares: NDArray[np.float64], people: People) -> Tally:
        return Tally(people.n * (sent_shares(self._named.channel(), shares)), people.n)

    def error(self, people: People) -> float:
        if isinstance(self.own, VectorRandomizer):
            return self.own.error(people.n)
        return predict_accuracy(self.own, n=people.n).standard_error

    def shares(self, tally: Tally, people: People) -> Estimate:
        return self._estimator.solve(tally)

    mean = shares

    @property
    def _estimator(self) -> FrequencyEstimator | MeanEstimator | VectorEstimator:
        if isinstance(self.own, FrequencyRandomizer):
            return FrequencyEstimator(self.own)
        return VectorEstimator(self.own) if isinstance(self.own, VectorRandomizer) else MeanEstimator(self.own)

    @property
    def _named(self) -> FrequencyRandomizer:
        if not isinstance(self.own, FrequencyRandomizer) or not self.own.names_values:
            raise UnsupportedError(
                f"{self.own.label}: counts do not tell how errors of two answers go together; use krr."
            )
        return self.own

    def moments(self, tally: Tally, weights: Weights, people: People) -> tuple[NDArray[Any], NDArray[Any]]:
        krr, n = self._named, int(tally.n)
        shares = np.asarray(krr.invert(tally.counts, n))
        worth = weights @ krr.invert(np.eye(krr.k), np.ones(krr.k)).T
        return weights @ shares, report_covariance(krr.channel(), project_shares(shares), worth) / n

    def reach(
        self, weights: Weights, sizes: Weights, held: NDArray[np.int64], people: People, *, tail: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sigma = self.deviation(weights, sizes, people)
        return sum_reach(lambda times: self.law(times, weights, sizes, held, people), sigma, tail)

    def _spread(self, sizes: Weights) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Chances that a report lies in the first class, of people outside it and inside, and what a share gains."""
        channel = self._named.channel()
        assert isinstance(channel, KRRChannel)
        outside = channel.s * sizes[:, 0]
        return outside, outside + channel.contrast, channel.contrast

    def deviation(self, weights: Weights, sizes: Weights, people: People) -> NDArray[np.float64]:
        outside, inside, gain = self._spread(sizes)
        apart = np.abs(weights[:, 0] - weights[:, -1]) / gain
        return np.asarray(apart * np.sqrt(np.maximum(outside * (1 - outside), inside * (1 - inside)) / people.n))

    def null_law(self, people: People) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        channel = self._named.channel()
        if not isinstance(channel, KRRChannel):
            return super().null_law(people)
        sent, masses = binomial_law(people.n, channel.s)
        return (sent - people.n * channel.s) / channel.contrast, masses

    def law(
        self, times: NDArray[np.float64], weights: Weights, sizes: Weights, held: NDArray[np.int64], people: People
    ) -> NDArray[np.complex128]:
        r"""Characteristic functions (held, sums, times) of errors of sums that weigh alike outside the first class.

        .. math:: \hat F - F = \frac{w}{\gamma n} (H - \mathrm{E} H), \qquad
                  H \sim \mathrm{Bin}(n - m, s d) + \mathrm{Bin}(m, s d + \gamma), \quad m \text{ people inside}
        """
        outside, inside, gain = self._spread(sizes)
        step = times * ((weights[:, 0] - weights[:, -1]) / (gain * people.n))[:, None]
        return two_binomials(step, outside, inside, held, people.n)

    def linkage(self, shuffler: Shuffler, people: People, shares: NDArray[np.float64] | None) -> Linkage | Missing:
        return linkage_of(self.own, shuffler, honest=people.honest, shares=shares)

    def assumptions(self, people: People, *, delta: float, central: CentralDP | Missing) -> tuple[str, ...]:
        lines = ["Each person sends exactly one report, and everybody uses the same randomizer independently."]
        if isinstance(central, CentralDP):
            lines.append(
                f"The shuffler keeps the order to itself, and {central.honest_n:,} of {central.n:,} people that are "
                "shuffled together follow the protocol; otherwise the local guarantee is all that remains."
            )
        return tuple(lines)
