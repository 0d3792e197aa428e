"""What so many people give at this budget: the best randomizer for the private column, and its error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dovetail.core.errors import ParameterError
from dovetail.core.registries import RANDOMIZERS
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.plan.accuracy import predict_accuracy

_NEAR = 1.05  # errors this close to the least are as good: then the shortest report is


@dataclass(frozen=True)
class Noise:
    """A randomizer, and what an estimate is off with probability 95 % at most."""

    randomizer: str
    error95: float


def least_noise(people: int, epsilon: float, **domain: Any) -> Noise | None:
    """The best randomizer for a domain (`k`, or `lower` and `upper`); None where none can be built."""
    found = [(predict_accuracy(made, n=people).error95, made) for made in _built(people, epsilon, domain)]
    if not found:
        return None
    least = min(error for error, _ in found)
    near = [(made.report_bits, error, made.name) for error, made in found if error <= _NEAR * least]
    _, error, name = min(near)
    return Noise(name, error)


def delta_for(people: int) -> float:
    """A power of ten well below one over the number of people."""
    return 10.0 ** -max(6, len(str(people)) + 1)


def _built(people: int, epsilon: float, domain: dict[str, Any]) -> Iterator[FrequencyRandomizer | NumericRandomizer]:
    """Every kind for this domain that needs no further settings and is no burden."""
    question = "frequency" if "k" in domain else "mean"
    for kind in RANDOMIZERS:
        if kind.question != question or any(one.required for one in kind.settings()):
            continue
        if "k" in domain and issubclass(kind, FrequencyRandomizer) and kind.burden(domain["k"], people):
            continue
        build: Any = kind
        try:
            yield build(epsilon=epsilon, **domain)
        except ParameterError:
            continue
