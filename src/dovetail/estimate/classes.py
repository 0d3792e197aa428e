"""Budget classes: people who chose different epsilons, each class estimated by itself and combined by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import MOST_PEOPLE, rectangular, refuse, whole
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.frequency import project_shares
from dovetail.estimate.mean import estimate_mean
from dovetail.randomize.krr import KRR

Weights = Literal["size", "inverse_variance"]


@final
@dataclass(frozen=True)
class BudgetClassMean:
    """The mean of each budget class, and of everybody.

    Parameters
    ----------
    overall : Estimate
    classes : mapping from class name to Estimate
    weights : mapping from class name to its weight in `overall`; they sum to 1
    """

    overall: Estimate
    classes: Mapping[str, Estimate]
    weights: Mapping[str, float]


def combine_classes(classes: Mapping[str, Estimate], *, weights: Weights = "size") -> BudgetClassMean:
    r"""Mean over disjoint classes of people from the estimate of each class.

    .. math:: \hat\mu = \sum_c w_c \hat\mu_c, \qquad \mathrm{se}^2 = \sum_c w_c^2\, \mathrm{se}_c^2, \qquad
              w_c = \frac{n_c}{\sum n} \quad \text{or} \quad w_c \propto \frac{1}{\mathrm{se}_c^2}

    Only size weights estimate the mean of the people. Inverse-variance weights are less noisy and estimate the
    weighted mean sum w_c mean_c(x), another number unless all classes have the same mean; ask for them by name.

    Parameters
    ----------
    classes : mapping from class name to Estimate, at least one, each of at least two people
    weights : "size" or "inverse_variance"

    Examples
    --------
    Fifty people each, with values near 20 under little noise and 120 under much: their mean is 70.

    >>> import numpy as np
    >>> def some(value, scale):
    ...     return Estimate(np.array(value), np.array(scale), 50, np.array(scale))
    >>> two = {"open": some(20.0, 10.0), "shy": some(120.0, 100.0)}
    >>> float(combine_classes(two).overall.value)
    70.0
    >>> round(float(combine_classes(two, weights="inverse_variance").overall.value), 2)
    20.99
    """
    if not classes:
        raise ParameterError("`classes` must hold at least one class, got none.")
    if weights not in get_args(Weights):
        raise refuse("weights", '"size" (the mean of the people) or "inverse_variance" (another number)', weights)
    for name, estimate in classes.items():
        _refuse_alone(name, int(estimate.n))
    value, error, population, bias, n = (
        np.array([float(getattr(estimate, name)) for estimate in classes.values()])
        for name in ("value", "standard_error", "population_error", "bias_bound", "n")
    )
    share: Any = n if weights == "size" else error**-2.0
    share = share / share.sum()
    overall = Estimate(
        value=np.asarray(share @ value),
        standard_error=np.sqrt(share**2 @ error**2),
        n=int(n.sum()),
        population_error=np.sqrt(share**2 @ population**2),
        bias_bound=float(share @ bias),
    )
    return BudgetClassMean(overall, dict(classes), dict(zip(classes, share.tolist(), strict=True)))


def estimate_classes(
    randomizers: Mapping[str, NumericRandomizer], reports: Reports, labels: ArrayLike, *, weights: Weights = "size"
) -> BudgetClassMean:
    """Means of the values in each public budget class and of everybody.

    After a shuffle nobody knows which budget a report had, so classes are shuffled by themselves and their names
    travel with the reports. A class of one person is refused: shuffling it hides nothing.

    Parameters
    ----------
    randomizers : mapping from class name to the randomizer of that class
    reports : int array (n,)
    labels : array (n,) of class names, one per report; names are text

    Raises
    ------
    ParameterError
        For other weights than those named.
    DataError
        For reports and labels that do not go together.
    UnsupportedError
        For a class of one person, which a shuffle would not hide.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> kinds = {"open": Laplace(0.0, 10.0, epsilon=8.0), "shy": Laplace(0.0, 10.0, epsilon=1.0)}
    >>> first = kinds["open"].randomize([2.0] * 1000, simulation(1))
    >>> other = kinds["shy"].randomize([6.0] * 1000, simulation(2))
    >>> result = estimate_classes(kinds, np.append(first, other), ["open"] * 1000 + ["shy"] * 1000)
    >>> low, high = result.overall.interval()
    >>> bool(low < 4.0 < high), result.weights
    (True, {'open': 0.5, 'shy': 0.5})
    """
    if not isinstance(randomizers, Mapping):
        raise DataError("`randomizers` must be a mapping from names of classes to randomizers.")
    batch, names = rectangular("reports", reports), np.asarray(labels, dtype=object)
    if names.ndim != 1 or batch.shape[:1] != names.shape:
        raise DataError(f"`labels` must name a class for each report, got shapes {names.shape} and {batch.shape}.")
    if not all(isinstance(name, str) for name in (*randomizers, *names.tolist())):
        raise DataError("`randomizers` and `labels` must name classes by text.")
    unknown = sorted(set(names.tolist()) - set(randomizers))
    if unknown:
        raise DataError(f"`labels` must be among {sorted(randomizers)}, got {unknown[0]!r}.")
    members = {name: batch[names == name] for name in randomizers}
    for name, part in members.items():
        _refuse_alone(name, len(part))
    return combine_classes(
        {name: estimate_mean(randomizers[name], part) for name, part in members.items()}, weights=weights
    )


def _refuse_alone(name: str, n: int) -> None:
    if n < 2:
        raise UnsupportedError(
            f"Budget class {name!r} has {n} members: shuffling hides nobody among fewer than two. Merge it into a "
            "class with a smaller epsilon before the collection."
        )


# Shares where people use k-ary randomized response with different epsilons and reports carry no class.


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


def estimate_mixture_counts(
    classes: Sequence[tuple[int, KRR]], counts: NDArray[np.int64], *, drawn: bool = False
) -> Estimate:
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
    drawn : bool
        Whether they are those of a uniform sample of the people. Then B is right on average, nothing is biased, and

        .. math:: G^2 \mathrm{pe}^2 = G^2 \mathrm{se}^2 + n \left[\overline{b^2} + \bar\gamma f_j
                  \max_c (2 b_c + \gamma_c) - (\bar b + \bar\gamma f_j)^2\right]

        bounds the variance of the chance b + gamma [x = j] that a person reports j, over people of any relation
        between class and value.
    """
    pairs = _read(classes)
    sizes = np.array([count for count, _ in pairs], dtype=np.int64)
    b = np.array([one.channel().s for _, one in pairs])
    gamma = np.array([one.channel().contrast for _, one in pairs])
    k, n, people = pairs[0][1].k, int(counts.sum()), int(sizes.sum())
    if counts.shape != (k,) or not 1 <= n <= people:
        raise DataError(f"`counts` must be of {k:,} symbols and of 1 to {people:,} reports, got {n:,}.")
    every = sizes * (n / people)
    least, most = (every if drawn else _keep(sizes, np.argsort(side * b), n) for side in (1.0, -1.0))

    def shares(uniform: float) -> Values:
        return np.asarray((counts - uniform) / (n - k * uniform))

    value = shares(float(every @ b))
    bias = np.max([np.abs(shares(float(kept @ b)) - value) for kept in (least, most)]) if n < people else 0.0
    weight = float(most @ gamma)
    likely = project_shares(value)
    noise = (most @ (b * (1.0 - b)) + weight * likely * float((1.0 - 2.0 * b - gamma).max())) / weight**2
    sampling = likely * (1.0 - likely) * float(most @ gamma**2) / weight**2
    if drawn:
        mean, truthful = float(every @ b) / n, weight / n * likely
        chances = float(every @ b**2) / n + truthful * float((2.0 * b + gamma).max()) - (mean + truthful) ** 2
        sampling = np.maximum(chances, 0.0) * n / weight**2
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
