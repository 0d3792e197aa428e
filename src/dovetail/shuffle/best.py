"""Which shuffler to use when only the groups and the promise are given."""

from dovetail.shuffle.checks import not_negative
from dovetail.shuffle.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.uniform import WithinGroups


def best_shuffler(groups: Groups, *, alpha: float) -> WithinGroups | Mallows:
    """The shuffler that keeps alpha for these groups and moves reports the least, as far as we know.

    Disjoint groups: `WithinGroups`. It promises alpha = 0, less than any alpha asked for, and no report leaves its
    group, so everything that order privacy allows to be learned is kept exactly; no mechanism beats either side.
    Overlapping groups: `Mallows` with the exact sensitivity.

    Examples
    --------
    >>> best_shuffler(Groups.from_labels(["a", "b", "a"]), alpha=1.0).name
    'within_groups'
    >>> best_shuffler(Groups.from_labels([1, 2, 3], radius=1), alpha=1.0).name
    'mallows'
    """
    not_negative("alpha", alpha)
    return WithinGroups.fit(groups) if groups.disjoint else Mallows.fit(groups, alpha=alpha)
