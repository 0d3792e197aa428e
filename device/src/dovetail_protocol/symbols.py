"""Whole numbers in 0..count-1, as values and in reports; a refusal never repeats what it refuses."""

from numbers import Real
from typing import Any

from dovetail_protocol.errors import DataError


def symbol(value: Any, count: int, *, name: str = "value") -> int:
    """`value` as an int in 0..count-1: any whole number, and booleans where there are two.

    >>> symbol(2.0, 3)
    2
    """
    number = isinstance(value, Real) and (count == 2 or not isinstance(value, bool))
    if not (number and 0 <= value < count and int(value) == value):
        raise DataError(f"`{name}` must be a whole number in 0..{count - 1}.")
    return int(value)


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
