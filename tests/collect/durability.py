"""What a program does to the disk, step by step: a power cut may come between any two steps."""

import os
import stat
from collections.abc import Callable

import pytest


def disk_steps(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
    """The calls of these functions of `os` from now on; a sync says whether it was of a file or of a folder."""
    steps: list[str] = []

    def note(name: str) -> None:
        real: Callable[..., object] = getattr(os, name)

        def noted(*arguments: object, **named: object) -> object:
            what = name
            if name == "fsync":
                what = "sync folder" if stat.S_ISDIR(os.fstat(arguments[0]).st_mode) else "sync file"  # type: ignore[arg-type]
            steps.append(what)
            return real(*arguments, **named)

        monkeypatch.setattr(os, name, noted)

    for name in names:
        note(name)
    return steps
