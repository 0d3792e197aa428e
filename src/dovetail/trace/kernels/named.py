"""Kernels by name: `matern32`, `rbf*periodic`, `matern32+white`; and their form in files, both ways."""

from __future__ import annotations

from typing import Any

from dovetail.core.checks import nearest
from dovetail.core.errors import DataError, ParameterError
from dovetail.trace.kernels.combined import Product, Sum
from dovetail.trace.kernels.kernel import Kernel
from dovetail.trace.kernels.stationary import RBF, Matern32, Matern52, Periodic, White

SMOOTH = {kind.kind: kind for kind in (RBF, Matern32, Matern52)}
NAMES = [*SMOOTH, Periodic.kind, White.kind]


def kernel_of(name: str, *, length: float, period: float | None = None) -> Kernel:
    """The kernel of a name, every part with the same length-scale to begin with.

    Parameters
    ----------
    name : str
        Names joined by * (product) and + (sum of equal weights; * binds first).
    length : float, above 0, seconds
        For `periodic` in a product or sum: without a unit, and then 1.
    period : float, above 0, seconds
        Wanted by `periodic`.

    Raises
    ------
    ParameterError
        For a name that no kernel has, and `periodic` without a period.

    Examples
    --------
    >>> kernel_of("matern32", length=60.0)
    Matern32(length=60.0)
    """
    terms = [[part.strip() for part in term.split("*")] for term in name.split("+")]
    if len(terms) == len(terms[0]) == 1:
        return _single(terms[0][0], length, period)
    lengths = {Periodic.kind: 1.0}
    factors = [tuple(_single(part, lengths.get(part, length), period) for part in term) for term in terms]
    parts = tuple(term[0] if len(term) == 1 else Product(term) for term in factors)
    return parts[0] if len(parts) == 1 else Sum(parts, (1.0,) * len(parts))


def _single(name: str, length: float, period: float | None) -> Kernel:
    if name == White.kind:
        return White()
    if name == Periodic.kind:
        if period is None:
            raise ParameterError("`period` must be the seconds after which a periodic kernel repeats, got none.")
        return Periodic(length=length, period=period)
    if name not in SMOOTH:
        raise ParameterError(
            f"`kernel` must be made of {', '.join(NAMES)} joined by + and *, got {name!r}{nearest(name, NAMES)}"
        )
    return SMOOTH[name](length=length)


def kernel_from_dict(form: Any) -> Kernel:
    """The kernel that `Kernel.as_dict` described."""
    try:
        kind = form["kind"]
        if kind == "sum":
            return Sum(tuple(kernel_from_dict(part) for part in form["parts"]), tuple(map(float, form["weights"])))
        if kind == "product":
            return Product(tuple(kernel_from_dict(part) for part in form["parts"]))
        if kind == Periodic.kind:
            return Periodic(length=float(form["length"]), period=float(form["period"]))
        return White() if kind == White.kind else SMOOTH[kind](length=float(form["length"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"`kernel` must be as `dovetail trace fit` writes it; {type(error).__name__} at {error}."
        ) from None
