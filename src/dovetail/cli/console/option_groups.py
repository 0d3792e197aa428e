"""Options in groups: a verb takes dataclasses, and the command line lists their fields one by one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def flatten(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb with every parameter that is a dataclass replaced by its fields, in the same order.

    A field is written as an option is: `name: Annotated[type, typer.Option(help=..)] = default`.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @functools.wraps(verb)
    def command(**options: Any) -> Any:
        made = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return verb(**made, **options)

    signature = inspect.signature(verb)
    found = [option for each in signature.parameters.values() for option in _options(each, hints[each.name])]
    command.__signature__ = signature.replace(parameters=found)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in found}
    del command.__wrapped__
    return command


def _options(parameter: inspect.Parameter, hint: Any) -> Iterator[inspect.Parameter]:
    kind = inspect.Parameter.KEYWORD_ONLY
    if not is_dataclass(hint):
        yield parameter.replace(kind=kind, annotation=hint)
        return
    hints = get_type_hints(hint, include_extras=True)
    for field in fields(hint):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(field.name, kind, default=default, annotation=hints[field.name])
