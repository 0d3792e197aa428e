"""The alpha of several releases of one sequence, and of a mixture of shufflers."""

from collections.abc import Iterable
from functools import reduce

from dovetail.account.order_privacy.exact_alpha import exact_alpha
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import Shuffler
from dovetail.shuffle.groups.groups import Groups


def compose_releases(shufflers: Iterable[Shuffler], groups: Groups) -> OrderPrivacy:
    """The promise of independent releases of one sequence by different shufflers, for one common grouping.

    Each release is evaluated on `groups` and the alphas add. One permutation applied to whole records is one release;
    one permutation for each column is a release for each column.

    Source
    ------
    Meehan et al. (2022), Theorem A.2, by pointwise ratios (its proof takes every event for a product).
    """
    source = "Theorem 4.4 for one Mallows order, or invariance of a uniform shuffle"
    each = [OrderPrivacy(exact_alpha(shuffler, groups), groups, source=source) for shuffler in shufflers]
    if not each:
        return OrderPrivacy(0.0, groups, source="nothing is released")
    return reduce(OrderPrivacy.compose, each)


def mixture(guarantees: Iterable[OrderPrivacy]) -> OrderPrivacy:
    """The promise of a release by one of these mechanisms, drawn at random: the largest alpha (Lemma 2).

    >>> from dovetail.shuffle.identity import Identity
    >>> from dovetail.shuffle.uniform import Uniform
    >>> mixture([Uniform(3).guarantee, Identity(3).guarantee]).alpha
    inf

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Lemma 2.
    """
    each = list(guarantees)
    if not each or any(one.groups != each[0].groups for one in each):
        raise UnsupportedError(
            "Lemma 2 mixes mechanisms for the same groups; evaluate each on a common grouping (exact_alpha) first."
        )
    return OrderPrivacy(
        max(one.alpha for one in each),
        each[0].groups,
        source="mixture of " + ", ".join(f"[{one.source}]" for one in each),
        caveats=tuple(dict.fromkeys(caveat for one in each for caveat in one.caveats)),
    )
