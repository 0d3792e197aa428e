"""The first tier runs with every change (`make test`), the second before a release (`make exhaust`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

EXHAUST = pytest.mark.exhaust


def tiered(cases: Iterable[Any], first: Callable[[Any], bool]) -> list[Any]:
    """The cases of a parametrization; those that are not `first` run in the second tier alone."""
    rows = [(case, case if isinstance(case, tuple) else (case,)) for case in cases]
    return [pytest.param(*row, marks=() if first(case) else EXHAUST) for case, row in rows]


def one_in(nth: int, cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrization; all but the first and every nth after it run in the second tier alone."""
    rows = list(cases)
    return tiered(rows, first=lambda case: any(case is one for one in rows[::nth]))
