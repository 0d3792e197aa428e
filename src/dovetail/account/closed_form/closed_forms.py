"""All closed forms side by side."""

from __future__ import annotations

import math

from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.bound import Bound
from dovetail.account.closed_form.blanket_bounds import bennett, hoeffding
from dovetail.account.closed_form.clones_bounds import (
    clones_focs,
    clones_workshop,
    stronger_published,
    stronger_tight,
)
from dovetail.account.closed_form.erlingsson import erlingsson
from dovetail.account.closed_form.shuffle_parameters import ShuffleParameters
from dovetail.core.checks import flag, whole

ADAPTIVE = (erlingsson, clones_workshop, clones_focs)
FIXED = (hoeffding, bennett, stronger_published, stronger_tight)


def closed_forms(
    epsilon0: float,
    *,
    n: int,
    delta: float,
    k: int | None = None,
    law: BlanketLaw | None = None,
    adaptive: bool = False,
) -> list[Bound]:
    """What each closed form says, or why it says nothing; names and order are stable.

    Parameters
    ----------
    epsilon0, n, delta : as in `ShuffleParameters`
    k : int, at least 2, optional
        Adds Hoeffding and Bennett for k-ary randomized response.
    law : BlanketLaw, optional
        Adds Hoeffding and Bennett for this upper law.
    adaptive : bool
        Whether a person's randomizer may be chosen after seeing earlier reports; the forms that need one fixed
        randomizer then say nothing.

    Raises
    ------
    ParameterError
        For parameters outside their ranges; a form that does not apply says so in its `reason`.

    Examples
    --------
    >>> for bound in closed_forms(1.0, n=10_000, delta=1e-6, k=10):
    ...     print(bound.name, bound.reason or round(bound.epsilon, 4))
    Erlingsson et al. 2019 needs epsilon0 <= 1/2 = 0.5, got 1
    clones (workshop) 0.3692
    clones (FOCS) 0.214
    Hoeffding (Balle et al. 2019) 0.1666
    Bennett (Balle et al. 2019) 0.1663
    stronger clones (published, recalled) 0.18
    stronger clones (closed form) 0.0699
    Hoeffding (k-RR) 0.0647
    Bennett (k-RR) 0.028
    """
    ShuffleParameters(epsilon0, n, delta)
    adaptive = flag("adaptive", adaptive)
    bounds = [form(epsilon0, n=n, delta=delta) for form in (*ADAPTIVE, *FIXED)]
    laws = [("k-RR", krr_upper_law(epsilon0, k))] if k is not None else []
    laws += [("law", law)] if law is not None else []
    for of, own in laws:
        bounds += [form(epsilon0, n=n, delta=delta, law=own, of=of) for form in (hoeffding, bennett)]
    if not adaptive:
        return bounds
    reason = "needs one fixed randomizer, chosen before any report is seen"
    free = len(ADAPTIVE)
    return bounds[:free] + [Bound.inapplicable(bound.name, reason, source=bound.source) for bound in bounds[free:]]


def krr_upper_law(epsilon0: float, k: int) -> BlanketLaw:
    """The upper law of k-ary randomized response, for real epsilon0: the worst pair of values hides in the rest."""
    k = whole("k", k, least=2, most=1 << 31)
    p = math.exp(epsilon0)
    atoms = [(p, 1.0, 1.0), (1.0, p, 1.0), (1.0, 1.0, k - 2.0)]
    z0, z1, weight = zip(*(atoms if k > 2 else atoms[:2]), strict=True)
    return BlanketLaw(z0, z1, [w / (p + k - 1.0) for w in weight])
