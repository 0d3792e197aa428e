"""Budget classes: people who chose different epsilons, each class estimated by itself and combined by size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.checks import rectangular, refuse
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.mean import estimate_mean

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
