"""Every listed mutant must die: `python -m tests.mutants` changes copies of the tree and runs the tests named for it.

The working tree is never edited. First the named tests must pass unchanged; then each mutant is applied alone to a
copy, and only its own tests run, until the first fails. Exit status 1 and a list at the end: mutants that survive,
entries that no longer fit the sources, tests that fail without any mutant.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tests.mutants.catalogue import REPOSITORY, Mutant, faults, load_mutants
from tests.mutants.homes import load_homes

COPIED = ("src", "device", "tests", "docs", "studies", "benchmarks", "deploy")
# collection of doctests and distribution over processes cost more than the tests do; no example is drawn anew, and
# none fails for being slow; nothing is told of what differs, which for long lists takes hours where `CI` is set
PYTEST = ("-m", "pytest", "-o", "addopts=", "--import-mode=importlib", "--strict-markers", "-q", "-x", "--tb=line",
          "--assert=plain", "--hypothesis-profile=ci", "-p", "no:cacheprovider", "-p", "no:xdist")  # fmt: skip
PASSED, FAILED = 0, 1  # pytest's exit statuses; any other says that the tests did not run
ENDLESS = 1800.0  # seconds after which a run is given up
KILLED = "killed"
_NOTICED = re.compile(r"^(FAILED|ERROR) \S+::", re.M)  # in a test, or in what it is set up with; never an import


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: killed, survived, or why nothing can be said."""

    name: str
    fingerprint: str
    verdict: str
    seconds: float

    @property
    def line(self) -> str:
        return f"{self.verdict:8} {self.seconds:6.1f} s  {self.name}"


class Tree:
    """A copy of the tree in which one mutant at a time lives."""

    def __init__(self, folder: Path, root: Path = REPOSITORY) -> None:
        self.folder = folder
        for name in COPIED:
            if (root / name).is_dir():  # times are kept, so compiled kernels beside the sources stay valid
                shutil.copytree(root / name, folder / name)
        for path in root.iterdir():
            if path.is_file():
                shutil.copy2(path, folder / path.name)

    def run(self, tests: Sequence[str], **changes: str) -> tuple[int, str]:
        """Pytest's exit status on these tests in this copy, and what it said; -1 when they do not end."""
        paths = os.pathsep.join(str(self.folder / part) for part in ("src", "device/src", "."))
        usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        surroundings = usual | {"PYTHONPATH": paths} | changes
        command = [sys.executable, *PYTEST, *tests]
        with subprocess.Popen(
            command, cwd=self.folder, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as run:  # fmt: skip
            try:
                said, _ = run.communicate(timeout=ENDLESS)
            except subprocess.TimeoutExpired:
                return -1, f"no end after {ENDLESS} s"
            finally:
                with suppress(ProcessLookupError):  # servers that a test has started and cannot stop any more
                    os.killpg(run.pid, signal.SIGKILL)
                shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)
        return run.returncode, said.decode(errors="replace")

    def judge(self, mutant: Mutant) -> str:
        """Whether the named tests notice the mutant."""
        path = self.folder / mutant.file
        original, times = path.read_text(), path.stat()
        path.write_text(mutant.applied(original))
        os.utime(path, (times.st_atime, times.st_mtime + 10.0))  # byte code is known by size and second
        try:
            with self._compiled_anew(mutant.file):  # and its byte code is not written
                for _ in range(2):  # a machine that is short of memory or room breaks a run, seldom two
                    status, said = self.run(mutant.tests, PYTHONDONTWRITEBYTECODE="1")
                    noticed = status == FAILED and _NOTICED.search(said) is not None
                    if noticed or status in (PASSED, -1):
                        break
        finally:
            path.write_text(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if noticed:
            return KILLED
        broken = f"BROKEN {status} {' | '.join(said.strip().splitlines()[-4:])[-400:]}"
        return {PASSED: "SURVIVED", -1: "ENDLESS"}.get(status, broken)

    @contextmanager
    def _compiled_anew(self, file: str) -> Iterator[None]:
        """Put compiled loops aside that hold those of a file; all others stay, for compiling takes long."""
        aside = self.folder / "aside"
        aside.mkdir(exist_ok=True)
        moved = [(path, aside / str(number)) for number, path in enumerate(self._compiled(file))]
        for path, place in moved:
            path.rename(place)
        try:
            yield
        finally:
            for path in self._compiled(file):
                path.unlink()
            for path, place in moved:
                place.rename(path)

    def _compiled(self, file: str) -> list[Path]:
        """Compiled loops of a file, and of every file with loops that imports from it."""
        texts = {path: path.read_text() for path in (self.folder / "src").rglob("*.py")}
        looped = {path: text for path, text in texts.items() if "njit" in text}
        found, todo = set[Path](), [self.folder / file]
        while todo:
            path = todo.pop()
            found.add(path)
            name = ".".join(path.with_suffix("").parts[len(self.folder.parts) + 1 :])
            todo += [other for other, text in looped.items() if f"from {name} import" in text and other not in found]
        return [made for path in found for made in path.parent.glob(f"__pycache__/{path.stem}.*.nb?")]


def fingerprint(mutant: Mutant, root: Path = REPOSITORY) -> str:
    """What a verdict depends on: the entry, the file and the tests; another verdict needs another of these."""
    files = sorted({mutant.file, *(test.partition("::")[0] for test in mutant.tests)})
    parts = [repr(mutant), *((root / file).read_text() for file in files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def run_all(mutants: Sequence[Mutant], *, workers: int, output: Path, root: Path = REPOSITORY) -> list[Outcome]:
    """Every mutant's outcome, in the order in which they end; each also becomes a line of `output`."""
    lock, total, done = Lock(), len(mutants), []
    with tempfile.TemporaryDirectory(prefix="dovetail-mutants-") as scratch:
        trees: SimpleQueue[Tree] = SimpleQueue()
        for number in range(workers):
            trees.put(Tree(Path(scratch) / str(number), root))

        def judge(mutant: Mutant) -> None:
            tree, start = trees.get(), time.monotonic()
            try:
                verdict = tree.judge(mutant)
            finally:
                trees.put(tree)
            outcome = Outcome(mutant.name, fingerprint(mutant, root), verdict, round(time.monotonic() - start, 1))
            with lock, output.open("a") as record:
                done.append(outcome)
                record.write(json.dumps(asdict(outcome)) + "\n")
                print(f"{len(done):4}/{total} {outcome.line}", flush=True)

        def check(part: int) -> str:
            mine = [test for test in tests if files.index(test.partition("::")[0]) % workers == part]
            if not mine:  # pytest would run everything
                return ""
            tree = trees.get()
            status, said = tree.run(mine)
            trees.put(tree)
            return "" if status == PASSED else said

        tests = sorted({test for mutant in mutants for test in mutant.tests})
        files = sorted({test.partition("::")[0] for test in tests})
        print(f"{len(tests)} tests of {len(files)} files, unchanged ..", flush=True)
        with ThreadPoolExecutor(workers) as pool:
            if failed := [said for said in pool.map(check, range(workers)) if said]:
                raise SystemExit("\n".join([*failed, "The named tests fail without any mutant."]))
            list(pool.map(judge, mutants))
    return done


def settled(output: Path) -> set[str]:
    """Fingerprints of the mutants that an earlier run has seen die."""
    if not output.exists():
        return set()
    records = [json.loads(line) for line in output.read_text().splitlines()]
    return {record["fingerprint"] for record in records if record["verdict"] == KILLED}


def chosen(mutants: Sequence[Mutant], *, only: str, shard: str) -> list[Mutant]:
    """The mutants whose name or tests contain `only`; of those, the i-th of n parts for `shard` i/n."""
    part, parts = (int(number) for number in shard.split("/"))
    if not 1 <= part <= parts:
        raise SystemExit(f"`--shard` must be i/n with 1 <= i <= n, got {shard}.")
    return [m for m in mutants if only in m.name or any(only in test for test in m.tests)][part - 1 :: parts]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="a stage, or any part of a file, line or test")
    parser.add_argument("--shard", default="1/1", help="i/n: the i-th of n equal parts")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "mutants.jsonl")
    parser.add_argument("--resume", action="store_true", help="leave out what died before, if nothing has changed")
    asked = parser.parse_args()
    mutants = chosen([*load_mutants(), *load_homes()], only=asked.only, shard=asked.shard)
    if wrong := faults(mutants):
        print(*wrong, sep="\n")
        return 1
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    known = settled(asked.output) if asked.resume else set()
    if not asked.resume:
        asked.output.unlink(missing_ok=True)
    left = [mutant for mutant in mutants if fingerprint(mutant) not in known]
    print(f"{len(mutants)} mutants, {len(mutants) - len(left)} of them settled before; record: {asked.output}")
    start = time.monotonic()
    outcomes = run_all(left, workers=asked.workers, output=asked.output) if left else []
    alive = [outcome for outcome in outcomes if outcome.verdict != KILLED]
    print(f"{len(mutants) - len(alive)} of {len(mutants)} mutants died, {time.monotonic() - start:.0f} s")
    print(*(outcome.line for outcome in alive), sep="\n")
    return 1 if alive or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
