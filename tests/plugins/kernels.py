"""Of several processes of tests one compiles a file or a kernel, and the others load what it has made.

In a new clone they would all compile the same files and loops at the same time, which is a third of the first tier.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dovetail.core import compiled

_mine = threading.RLock()
_one_of_several = "PYTEST_XDIST_WORKER" in os.environ and os.name != "nt"


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """While no other process is in here with the same file."""
    import fcntl

    with place.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def alone_with_kernels() -> Iterator[None]:
    """One process and thread at a time holds the file that all kernels come through."""
    with _mine, alone(Path(compiled.__file__)):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """All collect the same files in the same order: who comes second finds a file compiled."""
    if not (_one_of_several and isinstance(collector, pytest.Module)):
        return (yield)
    with alone(collector.path):
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    if not (_one_of_several and compiled.COMPILED):
        return
    from numba.core.dispatcher import Dispatcher

    plain = Dispatcher.compile
    depth = threading.local()  # a kernel that calls another compiles that one inside

    def compile_alone(self: Any, signature: Any) -> Any:
        if getattr(depth, "inside", False):
            return plain(self, signature)
        depth.inside = True
        try:
            with alone_with_kernels():
                return plain(self, signature)
        finally:
            depth.inside = False

    Dispatcher.compile = compile_alone
