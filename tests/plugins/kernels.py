"""Of several processes of tests one compiles a kernel, and the others load what it has made.

In a new clone they would all compile the same loops at the same time, and twice over is most of the first tier.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dovetail.core import compiled

_mine = threading.RLock()


@contextmanager
def alone() -> Iterator[None]:
    """While no other process is in here: one at a time holds the file that all kernels come through."""
    import fcntl

    with _mine, Path(compiled.__file__).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ or os.name == "nt" or not compiled.COMPILED:
        return
    from numba.core.dispatcher import Dispatcher

    plain = Dispatcher.compile
    depth = threading.local()  # a kernel that calls another compiles that one inside

    def compile_alone(self: Any, signature: Any) -> Any:
        if getattr(depth, "inside", False):
            return plain(self, signature)
        depth.inside = True
        try:
            with alone():
                return plain(self, signature)
        finally:
            depth.inside = False

    Dispatcher.compile = compile_alone
