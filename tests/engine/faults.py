"""Tasks that fail on their first attempt, for engines to try again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


def first_attempt() -> bool:
    """Whether Spark runs this task for the first time."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.attemptNumber() == 0


@dataclass(frozen=True)
class FailingPack:
    """Packs, and fails at once on the first attempt."""

    pack: Any

    def __call__(self, frame: Any) -> Any:
        blobs = self.pack(frame)
        if first_attempt():
            raise RuntimeError("a fault that was asked for")
        return blobs


@dataclass(frozen=True)
class FailingUnpack:
    """Writes its file, and fails afterwards on the first attempt."""

    unpack: Any

    def __call__(self, part: int, blobs: list[bytes]) -> Any:
        summary = self.unpack(part, blobs)
        if first_attempt():
            raise RuntimeError("a fault that was asked for")
        return summary


@dataclass(frozen=True)
class DyingPack:
    """Packs, and ends its process the first time that anybody does so."""

    pack: Any
    flag: str

    def __call__(self, frame: Any) -> Any:
        import os

        blobs = self.pack(frame)
        try:
            Path(self.flag).touch(exist_ok=False)
        except FileExistsError:
            return blobs
        os._exit(9)


@dataclass(frozen=True)
class KillingUnpack:
    """Unpacks, and the first time kills the machine that it runs on: the executor's JVM, its parent's parent."""

    unpack: Any
    flag: str

    def __call__(self, part: int, blobs: list[bytes]) -> Any:
        import os
        import signal

        try:
            Path(self.flag).touch(exist_ok=False)
        except FileExistsError:
            return self.unpack(part, blobs)
        daemon = os.getppid()
        above = next(
            line for line in Path(f"/proc/{daemon}/status").read_text().splitlines() if line.startswith("PPid")
        )
        os.kill(int(above.split()[1]), signal.SIGKILL)
        return self.unpack(part, blobs)


@dataclass(frozen=True)
class WaitingUnpack:
    """Unpacks; of the first partition, the first attempt waits until another one has done the same."""

    unpack: Any
    flag: str

    def __call__(self, part: int, blobs: list[bytes]) -> Any:
        from tests.waiting import until

        flag = Path(self.flag)
        if part == 0 and first_attempt():
            until(flag.exists)
        summary = self.unpack(part, blobs)
        if part == 0 and not first_attempt():
            flag.touch()
        return summary
