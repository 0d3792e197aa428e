"""What a person says about a table on the page, checked."""

from __future__ import annotations

from starlette.datastructures import QueryParams

from dovetail.core.checks import privacy_budget
from dovetail.core.errors import ParameterError
from dovetail.core.settings import split_names
from dovetail.pipeline.files.check.declared import Declared
from dovetail.web.planner.question import number_of

EPSILON = "2"


def declared_of(query: QueryParams) -> Declared:
    """Roles of columns, categories, bounds and epsilon from an address; what is both private and public is private.

    Raises
    ------
    ParameterError
        In one line, for what does not go together.
    """
    private, person = query.get("private") or None, query.get("person") or None
    if private is not None and private == person:
        raise ParameterError(f"{private!r} cannot both be private and name people.")
    public = tuple(name for name in dict.fromkeys(query.getlist("public")) if name not in (private, person))
    categories = _categories(query.get("categories", ""))
    lower, upper = (
        number_of(name, text) if (text := query.get(name, "").strip()) else None for name in ("lower", "upper")
    )
    if (lower is None) != (upper is None):
        raise ParameterError("`lower` and `upper` are declared together or not at all.")
    if lower is not None and categories is not None:
        raise ParameterError("declare either `categories` or `lower` and `upper`, not both.")
    if lower is not None and upper is not None and not lower < upper:
        raise ParameterError(f"`lower` must be below `upper`, got {lower:g} and {upper:g}.")
    epsilon = privacy_budget("epsilon", number_of("epsilon", query.get("epsilon", "").strip() or EPSILON))
    return Declared(private, person, public, categories, lower, upper, epsilon)


def _categories(text: str) -> tuple[str, ...] | None:
    names = tuple(split_names(text))
    if not names:
        return None
    if len(set(names)) < max(2, len(names)):
        raise ParameterError("`categories` must name at least two different answers.")
    return names
