"""Public classes of people with different epsilons in one campaign: one alphabet, and sealed reports that look alike.

A device states its class in the outer envelope, under its signature: the shuffler reads it and hands on how many
people of each class a batch holds. What is sealed to the analyzer says nothing about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail_protocol.checks import nearest, privacy_budget
from dovetail_protocol.errors import ConfigError, ParameterError
from dovetail_protocol.mechanism import Mechanism
from dovetail_protocol.toml_section import Section

MOST = 16
MOST_EPSILON = 40.0  # of a class: beyond, the accountant's doubles lose the others beside her
KIND = "krr"  # all classes of it have one alphabet, and hide each other


@dataclass(frozen=True)
class EpsilonClass:
    """One class by its name, and the local epsilon of its reports; its number is its place in the campaign."""

    name: str
    epsilon: float


def read_classes(section: Section, mechanism: Mechanism) -> tuple[EpsilonClass, ...]:
    """The classes of a campaign from the smallest epsilon on; none where the section is absent."""
    if not section:
        return ()
    if mechanism.name != KIND:
        raise ConfigError(
            f"[classes] go with the randomizer {KIND}: only there do reports of any epsilon look alike."
        )
    found = sorted((_read(name, given) for name, given in section.rest().items()), key=lambda each: each.epsilon)
    if not 2 <= len(found) <= MOST:
        raise ConfigError(f"[classes] must name 2 to {MOST} classes, got {len(found)}.")
    if len({each.epsilon for each in found}) < len(found):
        raise ConfigError("[classes] names two classes of one epsilon: they are one class.")
    if found[-1].epsilon != mechanism.epsilon:
        largest = found[-1].epsilon
        raise ConfigError(
            f"`randomizer.epsilon` must be the largest of [classes], {largest!r}, got {mechanism.epsilon!r}."
        )
    return tuple(found)


def find_class(campaign: str, classes: Sequence[EpsilonClass], name: str | None) -> int:
    """The number of the class of this name; without a name 0, the class with the smallest epsilon."""
    if name is None:
        return 0
    known = [each.name for each in classes]
    if not known:
        raise ConfigError(f"the campaign {campaign} has no classes: leave the class out.")
    if name not in known:
        hint = nearest(name, known)
        raise ConfigError(
            f"`class` must be one of {', '.join(known)}, got {name!r}{hint if hint.endswith('?') else '.'}"
        )
    return known.index(name)


def _read(name: str, given: object) -> EpsilonClass:
    if not (0 < len(name) <= 32 and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)):
        shown = name.encode("unicode_escape").decode()[:40]
        raise ConfigError(f"a name in [classes] must be 1 to 32 letters, digits, - or _, got {shown!r}.")
    try:
        return EpsilonClass(name, privacy_budget(f"classes.{name}", given, most=MOST_EPSILON))
    except ParameterError as error:
        raise ConfigError(str(error)) from None
