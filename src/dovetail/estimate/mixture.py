"""Shares where people use k-ary randomized response with different epsilons and reports carry no class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.core.checks import refuse, whole
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import Reports
from dovetail.estimate.simplex import project_shares
from dovetail.randomize.krr import KRR


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
    pairs = [(whole("classes", count, least=1), one) for count, one in classes]
    if not pairs or not all(isinstance(one, KRR) and one.k == pairs[0][1].k for _, one in pairs):
        raise refuse("classes", "pairs of people and dt.KRR of one k", classes)
    people, first = sum(count for count, _ in pairs), pairs[0][1]
    batch = first.check_reports(reports)
    if batch.size != people:
        raise DataError(f"`reports` must be those of the {people:,} people of all classes, got {batch.size:,}.")
    counts = np.array([count for count, _ in pairs], dtype=np.float64)
    gamma = np.array([one.channel().contrast for _, one in pairs])
    b = np.array([one.channel().s for _, one in pairs])
    weight = float(counts @ gamma)
    value = (np.bincount(batch, minlength=first.k) - counts @ b) / weight
    shares = project_shares(value)
    noise = (counts @ (b * (1.0 - b)) + weight * shares * float((1.0 - 2.0 * b - gamma).max())) / weight**2
    sampling = shares * (1.0 - shares) * float(counts @ gamma**2) / weight**2
    return Estimate(
        value=value,
        standard_error=np.sqrt(noise),
        n=people,
        population_error=np.sqrt(noise + sampling),
    )
