"""Rehearsals: one after the other, each in a process of its own, which can be followed and ended."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from dovetail.collect.http import Refusal
from dovetail.core.errors import DataError, DovetailError
from dovetail.web.uploads import new_id

State = Literal["waiting", "running", "done", "failed", "cancelled"]
MOST_WAITING = 4
MOST_KEPT = 24
_OPEN = ("waiting", "running")


@dataclass
class Job:
    """One rehearsal and how far it is."""

    id: str
    name: str
    folder: Path
    state: State = "waiting"
    step: str = "waiting for its turn"
    done: int = 0
    total: int = 1
    said: str = ""
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def open(self) -> bool:
        """True if there is something to wait for."""
        return self.state in _OPEN

    @property
    def report(self) -> Path:
        """The folder of the report."""
        return self.folder / f"report-{self.id}"


class Jobs:
    """All rehearsals of a session; one runs at a time, so that the planner stays quick."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._jobs = folder, dict[str, Job]()
        self._turn = asyncio.Lock()

    def __getitem__(self, id: str) -> Job:
        if id not in self._jobs:
            raise Refusal("not_found", "there is no such rehearsal.")
        return self._jobs[id]

    def all(self) -> list[Job]:
        """Every rehearsal of the session, in the order in which they were begun."""
        return list(self._jobs.values())

    def start(self, name: str, folder: Path, config: str) -> Job:
        """Write the configuration into the table's folder and rehearse.

        Raises
        ------
        DataError
            When too many are waiting.
        """
        if sum(job.open for job in self._jobs.values()) > MOST_WAITING:
            raise DataError(f"{MOST_WAITING} rehearsals wait already; wait for one, or cancel one.")
        job = Job(new_id(), name, folder)
        place = folder / f"survey-{job.id}.toml"
        place.write_text(config, encoding="utf-8")
        self._jobs[job.id] = job
        for old in [one for one in self._jobs.values() if not one.open][: max(0, len(self._jobs) - MOST_KEPT)]:
            del self._jobs[old.id]
        job.task = asyncio.create_task(self._run(job, place))
        return job

    async def cancel(self, job: Job) -> None:
        """End it, wherever it is; its half report goes with it."""
        if job.open and job.task is not None:
            job.state, job.said = "cancelled", "cancelled; nothing was written."
            job.task.cancel()
            await asyncio.gather(job.task, return_exceptions=True)

    async def of_folder(self, folder: Path) -> None:
        """Cancel those that read a folder, which is about to go."""
        for job in [one for one in self._jobs.values() if one.folder == folder]:
            await self.cancel(job)

    async def stop(self) -> None:
        """End all, also processes that have told their last and are about to end."""
        for job in self._jobs.values():
            await self.cancel(job)
        ending = [job.task for job in self._jobs.values() if job.task is not None]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _run(self, job: Job, config: Path) -> None:
        async with self._turn:
            job.state, job.step = "running", "starting"
            inside = {"TMPDIR": str(self._folder), "DOVETAIL_LEDGER": str(self._folder / "ledger")}
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "dovetail.web.jobs", str(config), str(job.report),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env={**os.environ, **inside},
            )  # fmt: skip
            assert process.stdout is not None
            try:
                async for line in process.stdout:
                    _hear(job, line)
                await process.wait()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            if job.state == "running":
                job.state, job.said = "failed", "the rehearsal ended without a word; the terminal may say why."


def _hear(job: Job, line: bytes) -> None:
    """Hear what the process says."""
    try:
        told: dict[str, Any] = json.loads(line)
    except ValueError:
        return
    if "failed" in told:
        job.state, job.said = "failed", str(told["failed"]).replace(f"{job.folder}{os.sep}", "")
    elif "finished" in told:
        job.state = "done"
    else:
        job.step, job.done, job.total = str(told["step"]), int(told["done"]), max(1, int(told["total"]))


# The process of one rehearsal: it says how far it is, one line each, and can be ended: `python -m` with two paths.

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
