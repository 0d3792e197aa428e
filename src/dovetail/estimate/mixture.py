"""Shares where people use k-ary randomized response with different epsilons and reports carry no class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import MOST_PEOPLE, refuse, whole
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import Reports
from dovetail.estimate.simplex import project_shares
from dovetail.randomize.krr import KRR

Values = NDArray[np.float64]


def estimate_mixture(classes: Sequence[tuple[int, KRR]], reports: Reports) -> Estimate:
    r"""The gamma-weighted shares (k,) among all people: all that reports without their classes tell.

    .. math:: \hat f_j = \frac{\mathrm{count}_j - \sum_i b_i}{G}, \qquad G = \sum_i \gamma_i, \qquad
              \mathbb E[\hat f_j] = \frac1G \sum_i \gamma_i [x_i = j], \qquad
              \gamma_i = \frac{p_i - 1}{p_i + k - 1}

    People with a large epsilon weigh more. **These are the plain shares only where class and value are unrelated**;
    if they may be related, shuffle public classes apart and combine them by size. The standard error is an upper
    bound for any relation:

    .. math:: G^2 \mathrm{se}^2 = \sum_i b_i (1 - b_i) + G f_j \max_c (1 - 2 b_c - \gamma_c)

    Parameters
    ----------
    classes : several (people, KRR), all of one k
        Public.
    reports : int array (n,)
        As many as all classes have people.

    Raises
    ------
    ParameterError
        For classes of different k, or none.
    DataError
        For another number of reports, and for reports that are no symbols.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> careful, open = KRR(k=2, epsilon=1.0), KRR(k=2, epsilon=4.0)
    >>> values = [0] * 900 + [1] * 100
    >>> reports = [*careful.randomize(values, simulation(1)), *open.randomize(values, simulation(2))]
    >>> estimate_mixture([(1000, careful), (1000, open)], np.array(reports)).value.round(2).tolist()
    [0.91, 0.09]
    """
    pairs = _read(classes)
    people = sum(count for count, _ in pairs)
    batch = pairs[0][1].check_reports(reports)
    if batch.size != people:
        raise DataError(f"`reports` must be those of the {people:,} people of all classes, got {batch.size:,}.")
    return estimate_mixture_counts(pairs, np.bincount(batch, minlength=pairs[0][1].k))


def estimate_mixture_counts(classes: Sequence[tuple[int, KRR]], counts: NDArray[np.int64]) -> Estimate:
    r"""The same from how often each symbol came, where some reports are missing and nobody knows of which class.

    .. math:: \hat f_j(B) = \frac{\mathrm{count}_j - B}{n - k B}, \qquad B = \sum_{i \text{ valid}} b_i

    B is taken in proportion. It is largest if the most truthful people are missing, and smallest if the least
    truthful ones are; the estimate is monotone in between, so that `bias_bound` is how far either end is off. The
    standard error is that of the largest B, where the sum of b (1 - b) is largest and G smallest.

    Parameters
    ----------
    classes : several (people, KRR), all of one k
        Who has sent something, public.
    counts : int array (k,)
        Of the reports that are valid: at least one, at most as many as people.
    """
    pairs = _read(classes)
    sizes = np.array([count for count, _ in pairs], dtype=np.int64)
    b = np.array([one.channel().s for _, one in pairs])
    gamma = np.array([one.channel().contrast for _, one in pairs])
    k, n, people = pairs[0][1].k, int(counts.sum()), int(sizes.sum())
    if counts.shape != (k,) or not 1 <= n <= people:
        raise DataError(f"`counts` must be of {k:,} symbols and of 1 to {people:,} reports, got {n:,}.")
    least, most = (_keep(sizes, np.argsort(side * b), n) for side in (1.0, -1.0))

    def shares(uniform: float) -> Values:
        return np.asarray((counts - uniform) / (n - k * uniform))

    value = shares(float(sizes @ b) * n / people)
    bias = np.max([np.abs(shares(float(kept @ b)) - value) for kept in (least, most)]) if n < people else 0.0
    weight = float(most @ gamma)
    likely = project_shares(value)
    noise = (most @ (b * (1.0 - b)) + weight * likely * float((1.0 - 2.0 * b - gamma).max())) / weight**2
    sampling = likely * (1.0 - likely) * float(most @ gamma**2) / weight**2
    return Estimate(
        value=value,
        standard_error=np.sqrt(noise),
        n=n,
        population_error=np.sqrt(noise + sampling),
        bias_bound=float(bias),
    )


def _keep(sizes: NDArray[np.int64], order: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The first n people, class by class in this order."""
    kept = np.zeros_like(sizes)
    kept[order] = np.diff(np.minimum(np.cumsum(sizes[order]), n), prepend=0)
    return kept


def _read(classes: Sequence[tuple[int, KRR]]) -> list[tuple[int, KRR]]:
    try:
        pairs = [(whole("classes", count, least=0, most=MOST_PEOPLE), one) for count, one in classes]
    except (TypeError, ValueError):
        pairs = []
    if not pairs or not all(isinstance(one, KRR) and one.k == pairs[0][1].k for _, one in pairs):
        raise refuse("classes", "pairs of people and dt.KRR of one k", classes)
    return pairs
