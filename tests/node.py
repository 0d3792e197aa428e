"""The TypeScript client, where it is built: programs of Node that tests start."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

CLIENT = Path(__file__).parents[1] / "clients" / "typescript"
ESBUILD = str(CLIENT / "node_modules" / ".bin" / "esbuild")
NOT_BUILT = "the TypeScript client is not built"
needs_client = pytest.mark.skipif(
    shutil.which("node") is None or not (CLIENT / "dist" / "index.js").exists(), reason=NOT_BUILT
)


class Node:
    """A program of Node that answers each line of JSON with one."""

    def __init__(self, program: Path, *arguments: str) -> None:
        self._process = subprocess.Popen(
            ["node", str(program), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ask(self, question: Any) -> Any:
        self.tell(question)
        return self.told()

    def tell(self, line: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def told(self) -> Any:
        """Its next line."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
