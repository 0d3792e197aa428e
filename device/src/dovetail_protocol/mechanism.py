"""The base of mechanisms: parameters, a sampler for one value, and a report of fixed length."""

import pkgutil
from abc import ABC, abstractmethod
from functools import cache
from importlib import import_module
from inspect import signature
from math import floor, isfinite, nan
from numbers import Real
from typing import Any, ClassVar, final

from dovetail_protocol.checks import nearest, refuse
from dovetail_protocol.errors import DataError, ParameterError
from dovetail_protocol.exact_thresholds import WORD, Words

# Whole numbers in 0..count-1, as values and in reports; a refusal never repeats what it refuses.


def symbol(value: Any, count: int, *, name: str = "value") -> int:
    """`value` as an int in 0..count-1: any whole number, and booleans where there are two.

    >>> symbol(2.0, 3)
    2
    """
    number = isinstance(value, Real) and (count == 2 or not isinstance(value, bool))
    if not (number and 0 <= value < count and int(value) == value):
        raise DataError(f"`{name}` must be a whole number in 0..{count - 1}.")
    return int(value)


def numbers(value: Any, count: int, *, name: str = "value") -> tuple[float, ...]:
    """So many finite numbers as floats, from a sequence or an array of them.

    >>> numbers([1, 0.5], 2)
    (1.0, 0.5)
    """
    try:
        if isinstance(value, (str, bytes, dict, set)) or len(value) != count:
            raise TypeError
        if any(isinstance(one, bool) or not isinstance(one, Real) for one in value):
            raise TypeError
        found = tuple(float(one) for one in value)
    except (TypeError, OverflowError):
        found = (nan,)
    if not all(map(isfinite, found)):
        raise DataError(f"`{name}` must be {count:,} finite numbers.")
    return found


def size(count: int) -> int:
    """Bytes that hold any of 0..count-1.

    >>> [size(count) for count in (2, 256, 257)]
    [1, 1, 2]
    """
    return ((count - 1).bit_length() + 7) // 8


def pack(report: Any, count: int) -> bytes:
    """A report in 0..count-1 as `size(count)` bytes, big endian."""
    return symbol(report, count, name="report").to_bytes(size(count))


def unpack(data: bytes, count: int) -> int:
    """The number that `pack` has made these bytes of."""
    return symbol(int.from_bytes(exactly(data, size(count))), count, name="report")


def exactly(data: Any, length: int) -> bytes:
    """`data`, which must be so many bytes."""
    if not isinstance(data, bytes) or len(data) != length:
        raise DataError(f"An encoded report of this mechanism must be {length:,} bytes.")
    return data


_HOME = "dovetail_protocol.mechanisms"


class Mechanism(ABC):
    """A local randomizer of one person's value; frozen parameters that the device and the analyst share.

    Laws: one report is epsilon-differentially private for the realized integer thresholds; its law is the channel or
    log density that the analyst's randomizer of the same name publishes; `encode` makes `report_bytes` bytes of every
    report, so that the length of a message says nothing; `decode(encode(report)) == report`.

    The samplers are exact but not constant-time: who can time this process is not kept out.
    """

    name: ClassVar[str]
    epsilon: float

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """Length of an encoded report, the same for every value."""

    def stated(self) -> dict[str, Any]:
        """Every parameter by its name, those that were left to a default as what it makes of them."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    @abstractmethod
    def check(self, value: Any) -> Any:
        """`value` in the type that is randomized; DataError, which does not repeat the value, if it is not one."""

    @abstractmethod
    def randomize(self, value: Any, words: Words) -> Any:
        """The report of one value, which is checked first."""

    @abstractmethod
    def encode(self, report: Any) -> bytes:
        """`report` as `report_bytes` bytes, big endian; DataError for what `randomize` never makes."""

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """The report of these bytes; DataError for what no device could send."""


class GridMechanism(Mechanism):
    """A mechanism of a number in a range, which is rounded at random to a public grid."""

    lower: float
    upper: float

    @property
    @abstractmethod
    def steps(self) -> int:
        """m, grid steps from `lower` to `upper`."""

    @property
    @final
    def step(self) -> float:
        """Width of one grid step."""
        return (self.upper - self.lower) / self.steps

    @final
    def check(self, value: Any) -> float:
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not (number and self.lower <= value <= self.upper):
            raise DataError(f"`value` must be a number in [{self.lower!r}, {self.upper!r}].")
        return float(value)

    @final
    def point(self, value: Any, word: int) -> int:
        """Grid point 0..m beside a value: the upper one with the probability that makes the mean the value."""
        scaled = (self.check(value) - self.lower) / (self.upper - self.lower) * self.steps
        below = floor(scaled)
        return below + (word < int((scaled - below) * WORD))


@cache
def names() -> tuple[str, ...]:
    """Names of all mechanisms that a device can run."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(import_module(_HOME).__path__)))


def kind_of(name: str) -> type[Mechanism]:
    """The mechanism of this name; an unknown one is refused with the nearest known one."""
    if not isinstance(name, str) or name not in names():
        raise refuse("mechanism", f"one of {', '.join(names())}", name, hint=nearest(name, names()))
    module = import_module(f"{_HOME}.{name}")
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


def stated_in_full(name: str, **parameters: Any) -> Mechanism:
    """The same, but what is worked out where it is left out has to be given: a signed file depends on no default.

    >>> stated_in_full("laplace", lower=0.0, upper=8.0, epsilon=1.0)
    Traceback (most recent call last):
    dovetail_protocol.errors.ParameterError: laplace needs the parameter `grid`, such as grid = 0.25.
    """
    made = mechanism(name, **parameters)
    for wanted, parameter in signature(type(made)).parameters.items():
        if parameter.default is None and parameters.get(wanted) is None:
            raise ParameterError(
                f"{name} needs the parameter `{wanted}`, such as {wanted} = {made.stated()[wanted]}."
            )
    return made


def _near(given: str, known: Any) -> str:
    hint = nearest(given, known)
    return hint if hint.endswith("?") else "."
