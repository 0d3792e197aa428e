"""Which estimate goes with which randomizer: a wrong pair is refused with the name of the right function."""

from typing import Any

from dovetail.core.errors import ParameterError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer


def need_symbols(randomizer: Any, *, instead: str) -> None:
    """Refuse what is no randomizer of symbols; numbers go to the function `instead`."""
    _need(randomizer, FrequencyRandomizer, NumericRandomizer, "symbols", "dt.KRR(k=2, epsilon=1.0)", instead)


def need_numbers(randomizer: Any, *, instead: str) -> None:
    """Refuse what is no randomizer of numbers; symbols go to the function `instead`."""
    example = "dt.Laplace(lower=0.0, upper=1.0, epsilon=1.0)"
    _need(randomizer, NumericRandomizer, FrequencyRandomizer, "numbers", example, instead)


def _need(randomizer: Any, wanted: type, other: type, what: str, example: str, instead: str) -> None:
    if isinstance(randomizer, wanted):
        return
    made = randomizer if isinstance(randomizer, type) else type(randomizer)
    if issubclass(made, other):
        end = f"got one of {'numbers' if what == 'symbols' else 'symbols'}, {made.__name__}: use {instead}"
    elif issubclass(made, wanted):
        end = f"got the class {made.__name__} itself: give it its parameters"
    else:
        end = f"such as {example}, got a value of type {made.__name__}"
    raise ParameterError(f"`randomizer` must be a randomizer of {what}, {end}.")
