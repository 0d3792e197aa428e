"""A rehearsal in a process of its own, which says how far it is and can be ended: `python -m` with two paths."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

from dovetail.core.errors import DovetailError

_PAUSE = 0.1  # seconds between two lines about the same step


def work(config: Path, out: Path) -> dict[str, Any]:
    """Run the rehearsal; what is to be said at the end."""
    from dovetail.job.run import run

    last: list[Any] = ["", 0.0]

    def progress(step: str, done: int, total: int) -> None:
        now = time.monotonic()
        if step != last[0] or now - last[1] > _PAUSE:
            last[:] = [step, now]
            tell({"step": step, "done": done, "total": total})

    try:
        run(config, out=out, progress=progress)
    except DovetailError as error:
        return {"failed": str(error)}
    except MemoryError:
        return {"failed": "not enough memory for this table."}
    except Exception as error:
        return {"failed": f"internal fault, {type(error).__name__}; `dovetail run` says more with DOVETAIL_DEBUG=1."}
    return {"finished": True}


def tell(line: dict[str, Any]) -> None:
    """One line for the server."""
    print(json.dumps(line), flush=True)


def _end_with_the_server() -> None:
    """The server holds the other end of standard input: when it is gone, so are we."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with_the_server, daemon=True).start()
    tell(work(Path(sys.argv[1]), Path(sys.argv[2])))
