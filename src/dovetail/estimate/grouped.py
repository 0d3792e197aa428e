"""Estimates per public group, read off at the places of a group after an order-private shuffle.

Without a shuffle every report lies at its owner's place. After one, `mixing[a, b]` is the share of the reports at
the places of group a that people of group b sent. There are two honest ways on: widen the interval by what moved
(`solve` with a mixing, needs no assumption), or invert the mixing (`unmix`, unbiased where who moves does not depend
on the value).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import floats, instance, rectangular
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate, Estimator, Tally, tally_groups
from dovetail.core.stages import FrequencyRandomizer, Labels, NumericRandomizer, Reports
from dovetail.estimate.frequency import FrequencyEstimator, need_numbers, need_symbols
from dovetail.estimate.mean import MeanEstimator
from dovetail.randomize.sampling.domain import symbols

Mixing = NDArray[np.float64]  # (g, g), rows sum to 1

MOST_CONDITION = 1e6
MOST_GROUPS = 1 << 24


@final
@dataclass(frozen=True)
class GroupedEstimator:
    """An estimator applied to each of g groups of places.

    Laws: `tally` does not depend on the order within a group and adds over concatenation.

    Parameters
    ----------
    overall : Estimator
        For one group; it takes tallies with leading axes.
    groups : int, at least 1
    span : float
        Largest difference between two values, which bounds what one moved report can shift.
    """

    overall: Estimator
    groups: int
    span: float

    @classmethod
    def of_shares(cls, randomizer: FrequencyRandomizer, groups: int) -> Self:
        """Shares (g, k) of the symbols within each group."""
        return cls(FrequencyEstimator(randomizer), groups, 1.0)

    @classmethod
    def of_means(cls, randomizer: NumericRandomizer, groups: int) -> Self:
        """Means (g,) of a number within each group."""
        return cls(MeanEstimator(randomizer), groups, randomizer.upper - randomizer.lower)

    def tally(self, reports: Reports, labels: Labels) -> Tally:
        """Counts (g, width) of n (g,) reports; `labels` (n,) name the group of each place, 0..g-1."""
        batch, places = rectangular("reports", reports), symbols(labels, self.groups, name="labels")
        if np.shape(batch)[:1] != places.shape:
            raise DataError(f"`labels` must name a group for each of {batch.size:,} reports, got {places.size:,}.")
        return tally_groups(self.overall.tally, batch, places, self.groups)

    def solve(self, tally: Tally, mixing: ArrayLike | None = None) -> Estimate:
        r"""Estimates for each group, widened by `mixing` when a shuffle has moved reports between groups.

        .. math:: |\mathbb E \hat v_a - v_a| \le (1 - M_{aa}) \cdot \mathrm{span}

        Proof: the expectation is a weighted sum of values, sender j with weight
        m_j = Pr[the report of j lies at a place of a] / |a| <= 1/|a|. Compared with v_a, senders inside a lose
        1 - M_aa of weight in total and senders outside gain as much; for values counted from the lower end the two
        shifts have opposite signs.

        The reports at a group's places are then a random selection of people, so both errors are the population's.
        Conditional on the permutation that was drawn the bound holds with the share that really left; a shuffler that
        moves whole blocks together makes that share vary, and its largest value belongs into `mixing` then.
        """
        if np.any(np.asarray(tally.n) < 1):
            empty = ", ".join(map(str, np.flatnonzero(np.asarray(tally.n) < 1)[:3]))
            raise DataError(f"every group must have reports; there are none for group {empty}. Merge groups first.")
        plain = self.overall.solve(tally)
        if mixing is None:
            return plain
        left = np.maximum(1.0 - np.diag(row_stochastic(mixing, self.groups)), 0.0) * self.span
        spread = None if plain.spread is None else plain.spread.drawn(1.0 / np.asarray(tally.n)[..., None])
        return replace(
            plain,
            standard_error=plain.population_error,
            spread=spread,
            bias_bound=plain.bias_bound + left.reshape(-1, *(1,) * (plain.value.ndim - 1)),
        )


def unmix(estimate: Estimate, mixing: ArrayLike) -> Estimate:
    r"""Group values behind the mixed ones: solves M v = u.

    .. math:: \hat v = M^{-1} \hat u, \qquad \mathrm{se}^2 = (M^{-1} \circ M^{-1})\, \mathrm{pe}^2(\hat u)

    Unbiased when, within each group, who is moved does not depend on the value: the groups are unions of the
    shuffler's exchangeable units, and rows were permuted before anything index-dependent. Otherwise use the widened
    estimate of `solve`. Without correlations because the moves of one person are multinomial, with covariance
    diag(m) - m m^T below diag(m): treating the groups' places as independent is on the safe side.

    Parameters
    ----------
    estimate : Estimate
        Plain group estimates (g, ..), made without a mixing.
    mixing : float array (g, g), rows sum to 1

    Raises
    ------
    UnsupportedError
        When the condition number of the mixing exceeds a million: the groups can no longer be told apart.

    Examples
    --------
    >>> error = np.array([0.01, 0.01])
    >>> mixed = Estimate(np.array([0.6, 0.4]), error, np.array([100, 100]), error)
    >>> unmix(mixed, [[0.75, 0.25], [0.25, 0.75]]).value.round(9).tolist()
    [0.7, 0.3]
    """
    rows = row_stochastic(mixing, len(instance("estimate", estimate, Estimate).value))
    condition = float(np.linalg.cond(rows))
    if not condition <= MOST_CONDITION:
        raise UnsupportedError(
            f"The mixing has condition number {condition:.3g}, above {MOST_CONDITION:g}: after this shuffle the "
            "groups cannot be told apart. Use the widened estimate, fewer groups, or a larger alpha."
        )
    inverse = np.asarray(np.linalg.inv(rows), dtype=np.float64)
    error = np.sqrt(_multiply_groups(inverse**2, estimate.population_error**2))
    bias = np.broadcast_to(np.asarray(estimate.bias_bound, dtype=np.float64), estimate.value.shape)
    return replace(
        estimate,
        value=np.asarray(np.linalg.solve(rows, estimate.value), dtype=np.float64),
        standard_error=error,
        population_error=error,
        spread=None,
        bias_bound=_multiply_groups(np.abs(inverse), bias),
    )


def estimate_groups(
    randomizer: FrequencyRandomizer, reports: Reports, labels: Labels, mixing: ArrayLike | None = None
) -> Estimate:
    """Shares (g, k) within each group 0..g-1 of places; widened when a `mixing` is given (see `solve`).

    Raises
    ------
    ParameterError
        For a randomizer of numbers, and for a `mixing` that is no matrix of shares.
    DataError
        For a group without reports, and for labels that are not as many as the reports.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> krr = KRR(k=2, epsilon=3.0)
    >>> reports = krr.randomize([0] * 200 + [1] * 200, rng=simulation(1))
    >>> estimate_groups(krr, reports, [0] * 200 + [1] * 200).value.round(1).argmax(axis=1).tolist()
    [0, 1]
    """
    need_symbols(randomizer, instead="estimate_group_means")
    estimator = GroupedEstimator.of_shares(randomizer, _count_groups(labels, mixing))
    return estimator.solve(estimator.tally(reports, labels), mixing)


def estimate_group_means(
    randomizer: NumericRandomizer, reports: Reports, labels: Labels, mixing: ArrayLike | None = None
) -> Estimate:
    """Means (g,) within each group 0..g-1 of places; widened when a `mixing` is given (see `solve`).

    Raises
    ------
    ParameterError
        For a randomizer of symbols, and for a `mixing` that is no matrix of shares.
    DataError
        For a group without reports, and for labels that are not as many as the reports.

    Examples
    --------
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=10.0, epsilon=5.0, grid=1.0)
    >>> estimate_group_means(laplace, [1, 3, 5, 7], [0, 0, 1, 1]).value.tolist()
    [2.0, 6.0]
    """
    need_numbers(randomizer, instead="estimate_groups")
    estimator = GroupedEstimator.of_means(randomizer, _count_groups(labels, mixing))
    return estimator.solve(estimator.tally(reports, labels), mixing)


def row_stochastic(mixing: ArrayLike, groups: int) -> Mixing:
    """`mixing` as a valid matrix (groups, groups) of shares whose rows sum to 1 within 1e-9."""
    rows = floats("mixing", mixing)
    if rows.shape != (groups, groups):
        raise ParameterError(f"`mixing` must be a matrix ({groups}, {groups}), got shape {rows.shape}.")
    off = np.flatnonzero(~(np.abs(rows.sum(axis=1) - 1.0) <= 1e-9) | (rows < 0.0).any(axis=1))
    if off.size:
        raise ParameterError(f"`mixing` must have shares in rows that sum to 1, got row {off[0]}: {rows[off[0]]!r}.")
    return rows


def _count_groups(labels: Any, mixing: Any) -> int:
    if mixing is not None:
        return len(np.atleast_1d(rectangular("mixing", mixing)))
    places = symbols(labels, MOST_GROUPS, name="labels")
    return int(places.max()) + 1 if places.size else 1


def _multiply_groups(matrix: Mixing, values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.tensordot(matrix, values, axes=1))
