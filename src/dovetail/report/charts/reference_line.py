"""A value that a chart is read against."""

from typing import NamedTuple


class ReferenceLine(NamedTuple):
    """A named horizontal or vertical line."""

    label: str
    kind: str
    value: float
