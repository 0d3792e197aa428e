"""Local randomizers of one value, one file each, named after the mechanism: parameters and exact samplers.

The analyst's randomizers take their parameters from these classes and add arrays to them. What all of them share
lives one folder up.
"""

import pkgutil
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any

from dovetail_protocol.checks import nearest, refuse
from dovetail_protocol.errors import ParameterError
from dovetail_protocol.mechanism import Mechanism


@cache
def names() -> tuple[str, ...]:
    """Names of all mechanisms that a device can run."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def kind_of(name: str) -> type[Mechanism]:
    """The mechanism of this name; an unknown one is refused with the nearest known one."""
    if not isinstance(name, str) or name not in names():
        raise refuse("mechanism", f"one of {', '.join(names())}", name, hint=nearest(name, names()))
    module = import_module(f"{__name__}.{name}")
    kind: type[Mechanism] = next(found for found in vars(module).values() if getattr(found, "name", None) == name)
    return kind


def mechanism(name: str, **parameters: Any) -> Mechanism:
    """The mechanism of this name, such as a campaign file gives it; unknown names and parameters are refused.

    >>> mechanism("krr", k=4, epsilon=1.0)
    KRR(k=4, epsilon=1.0)
    """
    kind = kind_of(name)
    known = signature(kind).parameters
    for given in parameters:
        if given not in known:
            raise ParameterError(
                f"{name} has no parameter `{given}`; it takes {', '.join(known)}{_near(given, known)}"
            )
    for wanted, parameter in known.items():
        if parameter.default is parameter.empty and wanted not in parameters:
            raise ParameterError(f"{name} needs the parameter `{wanted}`.")
    return kind(**parameters)


def _near(given: str, known: Any) -> str:
    hint = nearest(given, known)
    return hint if hint.endswith("?") else "."
