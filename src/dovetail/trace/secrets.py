"""Which times are secret: a function of times alone, never of where somebody was.

Windows of time, or every time. "Every stop" would be read from the trace, and the noise would then tell where
the stops are; whoever wants that protects every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

import numpy as np

from dovetail.core.errors import ParameterError
from dovetail.trace.kernels.kernel import Floats


@dataclass(frozen=True)
class SecretTimes:
    """Secret windows.

    Parameters
    ----------
    windows : tuple of (start, end), seconds
        Both ends belong to the window. None at all: every time is a secret by itself.
    from_start : bool
        Whether the seconds count from the first point of a trace, or are Unix time.
    together : bool
        Whether all times of a window are one secret (what they tell together: also the direction of movement),
        or each is one by itself.

    Raises
    ------
    ParameterError
        For windows that end before they start, and several secrets at once that are not windows.

    Examples
    --------
    >>> SecretTimes(windows=((0.0, 60.0),), together=True).windows
    ((0.0, 60.0),)
    """

    windows: tuple[tuple[float, float], ...] = ()
    from_start: bool = True
    together: bool = False

    def __post_init__(self) -> None:
        for start, end in self.windows:
            if not (isfinite(start) and isfinite(end)):
                raise ParameterError(f"a secret window must have finite ends, got {start:g}..{end:g}.")
            if not start <= end:
                raise ParameterError(f"a secret window must not end before it starts, got {start:g}..{end:g}.")
        if self.together and not self.windows:
            raise ParameterError(
                "`together` goes with windows: a whole trace as one secret leaves nothing to release."
            )

    @classmethod
    def parse(cls, texts: list[str], *, together: bool) -> SecretTimes:
        """From START..END, in seconds from the start of a trace or as ISO times (UTC unless they say otherwise).

        >>> SecretTimes.parse(["600..660"], together=False).windows
        ((600.0, 660.0),)
        """
        pairs = [_window(text) for text in texts]
        if len({from_start for _, _, from_start in pairs}) > 1:
            raise ParameterError("secret windows must all be seconds from the start, or all be times; got both.")
        return cls(tuple((a, b) for a, b, _ in pairs), all(from_start for _, _, from_start in pairs), together)

    @property
    def every_time(self) -> bool:
        """Whether every time is secret."""
        return not self.windows

    def places(self, times: Floats) -> list[tuple[int, ...]]:
        """The secrets of a trace with these time stamps, as positions."""
        if self.every_time:
            return [(place,) for place in range(len(times))]
        stamps = times - times[0] if self.from_start else times
        found: list[tuple[int, ...]] = []
        for start, end in self.windows:
            inside = np.flatnonzero((stamps >= start) & (stamps <= end)).tolist()
            if not inside:
                raise ParameterError(
                    f"the secret window {start:g}..{end:g} holds no time stamp of the trace, whose times run from "
                    f"{stamps[0]:g} to {stamps[-1]:g}; choose a window that does."
                )
            found += [tuple(inside)] if self.together else [(place,) for place in inside]
        return list(dict.fromkeys(found))


def _window(text: str) -> tuple[float, float, bool]:
    start, dots, end = text.partition("..")
    if not dots:
        raise ParameterError(
            f"a secret window must be START..END, such as 600..660 or 2013-07-01T00:10..2013-07-01T00:11, got "
            f"{text!r}."
        )
    try:
        pair, from_start = (float(start), float(end)), True
    except ValueError:
        try:
            pair, from_start = (_unix(start), _unix(end)), False
        except ValueError:
            raise ParameterError(f"a secret window must be two numbers or two ISO times, got {text!r}.") from None
    return *pair, from_start


def _unix(text: str) -> float:
    stamp = datetime.fromisoformat(text.strip())
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
