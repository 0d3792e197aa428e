"""The alpha of a shuffler for other groups than those that it was fitted for."""

from dovetail.core.errors import DataError
from dovetail.core.stages import Shuffler
from dovetail.shuffle.groups.groups import Groups


def exact_alpha(shuffler: Shuffler, groups: Groups) -> float:
    r"""What the order promises to other groups than those that the shuffler was fitted for.

    .. math:: \alpha'(G') = \theta \cdot \Delta(s^{-1}(G'))

    for one Mallows order (`Mallows.single`), exactly. With components and atoms it is infinite for a group that
    meets two components, exact for unions of atoms and an upper bound for the others; for noisy sorts and planar
    noise it is an upper bound throughout. The uniform shuffle keeps alpha = 0 for everybody, the uniform shuffle
    inside groups for every group inside one of them and nothing for the others, the identity nothing.

    Parameters
    ----------
    shuffler : Shuffler
    groups : Groups of the same people

    Raises
    ------
    UnsupportedError
        For shufflers for which no theorem gives it.

    Notes
    -----
    Rounded up to a double.

    Examples
    --------
    >>> from dovetail.shuffle.mallows import Mallows
    >>> shuffler = Mallows.single(Groups.from_labels([30, 31, 32, 33], radius=1), alpha=2.0)
    >>> exact_alpha(shuffler, Groups.from_lists([[0, 3]], 4))
    3.3333333333333335

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Theorem 4.4; exact with the exact Kendall sensitivity.
    """
    if shuffler.n != groups.n:
        raise DataError(f"`groups` must be of {shuffler.n:,} people, as the shuffler, got {groups.n:,}.")
    return shuffler.exact_alpha(groups) if len(groups) else 0.0
