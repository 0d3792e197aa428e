"""Local randomizers of one value: the parameters and exact samplers that both ends share.

The analyst's randomizers take their parameters from these classes and add arrays to them.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from inspect import signature
from typing import Any

from dovetail_protocol.checks import refuse
from dovetail_protocol.errors import ParameterError
from dovetail_protocol.mechanisms.base import Mechanism
from dovetail_protocol.mechanisms.budget_laplace import BudgetLaplace
from dovetail_protocol.mechanisms.hadamard import Hadamard
from dovetail_protocol.mechanisms.krr import KRR
from dovetail_protocol.mechanisms.laplace import Laplace
from dovetail_protocol.mechanisms.local_hashing import LocalHashing
from dovetail_protocol.mechanisms.unary import Unary

__all__ = [
    "KRR",
    "MECHANISMS",
    "BudgetLaplace",
    "Hadamard",
    "Laplace",
    "LocalHashing",
    "Mechanism",
    "Unary",
    "mechanism",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind for kind in (KRR, Hadamard, Unary, LocalHashing, Laplace, BudgetLaplace)
}


def mechanism(name: str, **parameters: Any) -> Mechanism:
    """The mechanism of this name, such as a campaign file gives it; unknown names and parameters are refused.

    >>> mechanism("krr", k=4, epsilon=1.0)
    KRR(k=4, epsilon=1.0)
    """
    kind = MECHANISMS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise refuse("mechanism", f"one of {', '.join(MECHANISMS)}{_nearest(name, MECHANISMS)}", name)
    known = signature(kind).parameters
    for given in parameters:
        if given not in known:
            raise ParameterError(
                f"{name} has no parameter `{given}`; it takes {', '.join(known)}{_nearest(given, known)}."
            )
    for wanted, parameter in known.items():
        if parameter.default is parameter.empty and wanted not in parameters:
            raise ParameterError(f"{name} needs the parameter `{wanted}`.")
    return kind(**parameters)


def _nearest(given: object, known: Iterable[str]) -> str:
    return f" (nearest: {get_close_matches(str(given), known, n=1, cutoff=0.0)[0]})"
