"""Which shuffle a plan is for: of everybody, or inside groups; no other has a central guarantee to plan with."""

from __future__ import annotations

from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.registries import SHUFFLERS

_EVERYBODY = "uniform"  # by name: importing shufflers costs more than planning
_IN_GROUPS = "within_groups"


def name_of_shuffle(*, grouped: bool) -> str:
    """The shuffler whose guarantee is planned."""
    return _IN_GROUPS if grouped else _EVERYBODY


def check_shuffle(name: str, *, grouped: bool) -> None:
    """Refuse a shuffler that a plan's numbers would not hold for.

    Raises
    ------
    UnsupportedError
        Amplification by shuffling is proven for uniform shuffles; `plan-shuffle` plans the others.
    """
    kind = SHUFFLERS[name]
    if kind.name not in (name_of_shuffle(grouped=False), name_of_shuffle(grouped=True)):
        raise UnsupportedError(
            f"`shuffler` {kind.name!r} has no central guarantee to plan with: amplification by shuffling is proven "
            "for uniform shuffles, of everybody or inside groups. `dovetail plan-shuffle` plans its order; about one "
            "person it promises what one report promises."
        )
    if (kind.name == name_of_shuffle(grouped=True)) != grouped:
        raise ParameterError(
            f"`shuffler` {kind.name!r} shuffles everybody together: leave out `groups` and `smallest_group`."
            if grouped
            else f"`shuffler` {kind.name!r} needs `groups` or `smallest_group`: only its people hide each other."
        )
