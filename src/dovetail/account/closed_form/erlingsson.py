"""The earliest amplification results."""

from __future__ import annotations

import math

from dovetail.account.bound import Bound
from dovetail.account.closed_form.shuffle_parameters import ShuffleParameters

ERLINGSSON = "Erlingsson et al. 2019"


def erlingsson(epsilon0: float, *, n: int, delta: float) -> Bound:
    r"""The first amplification theorem; also for randomizers chosen after seeing earlier reports.

    .. math:: \epsilon = 12 \epsilon_0 \sqrt{\frac{\log(1/\delta)}{n}}, \qquad
              \epsilon_0 \le \tfrac12, \; n \ge 1000, \; \delta \le \tfrac1{100}

    Parameters
    ----------
    epsilon0, n, delta : as in `ShuffleParameters`

    Examples
    --------
    >>> round(erlingsson(0.1, n=1_000_000, delta=1e-6).epsilon, 5)
    0.00446

    Source
    ------
    Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta (2019), Amplification by Shuffling, SODA, as in the
    public code of Balle et al. (2019).
    """
    source = "Erlingsson et al. (2019), Amplification by Shuffling, SODA"
    parameters = ShuffleParameters(epsilon0, n, delta)
    out = parameters.out_of_regime(ERLINGSSON, 0.5, "1/2", source=source)
    if out:
        return out
    if parameters.n < 1000 or parameters.delta > 0.01:
        reason = f"needs n >= 1000 and delta <= 0.01, got {parameters.n} and {parameters.delta:g}"
        return Bound.inapplicable(ERLINGSSON, reason, source=source)
    epsilon = 12.0 * parameters.epsilon0 * math.sqrt(parameters.log_over_delta(1.0) / parameters.n)
    return parameters.bound(ERLINGSSON, epsilon, source=source)


def random_check_ins(epsilon0: float, *, n: int, delta: float) -> float:
    r"""The curve of random check-ins, for figures only: recalled from memory, promises nothing.

    .. math:: \epsilon = \frac{e^{3 \epsilon_0} (e^{\epsilon_0} - 1)^2}{2n}
              + e^{3 \epsilon_0 / 2} (e^{\epsilon_0} - 1) \sqrt{\frac{2 \log(1/\delta)}{n}}

    Parameters
    ----------
    epsilon0 : float, above 0, at most 100, nats
    n, delta : as in `ShuffleParameters`

    Source
    ------
    Recalled, not checked against the text: Balle, Kairouz, McMahan, Thakkar, Thakurta (2020), Privacy Amplification
    via Random Check-Ins, NeurIPS.
    """
    parameters = ShuffleParameters(epsilon0, n, delta)
    root = math.exp(1.5 * parameters.epsilon0) * math.expm1(parameters.epsilon0) / math.sqrt(parameters.n)
    return 0.5 * root * root + root * math.sqrt(2.0 * parameters.log_over_delta(1.0))
