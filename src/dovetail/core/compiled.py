"""Loops as machine code where numba is installed (extra `fast`), and as they are written where it is not.

numba and its compiler take half as much disk as all the rest. Nothing needs them but speed: every kernel is
Python that does the same without. Machine code is made at a kernel's first call, never at an import, and kept for
the machine (`cache=True`: beside the sources, or in the user's cache folder where those cannot be written).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any

import numpy as np

from dovetail.core.extras import pip_line, require


def hint() -> str:
    """Say how to make loops fast in this installation."""
    return f"Without numba, loops run as plain Python. Much faster with it: {pip_line('fast')}"


def is_compiled() -> bool:
    """True if kernels become machine code in this process."""
    disabled = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")  # numba's own switch: to compare, to debug
    return not disabled and find_spec("numba") is not None


COMPILED = is_compiled()


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with these options, or the function as it is.

    Words of 64 bits wrap around in machine code without a word, and numpy's would warn of it: that is silenced. What
    is inlined is called by kernels alone, where it is silent already.

    Examples
    --------
    >>> @njit(cache=False)
    ... def twice(word):
    ...     return word * np.uint64(2)
    >>> int(twice(np.uint64(2**63 + 1)))
    2
    """
    if COMPILED:
        return require("numba", extra="fast").njit(**options)  # type: ignore[no-any-return]
    return lambda kernel: kernel if options.get("inline") == "always" else _quiet(kernel)


def _quiet(kernel: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(kernel)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return kernel(*arguments)

    return run
