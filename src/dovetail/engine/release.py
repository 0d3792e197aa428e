"""One run of a job in files, whatever is asked: the census, a release in five steps, a rehearsal, a release again."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dovetail.core.errors import OutputError, UnsupportedError
from dovetail.core.progress import Progress
from dovetail.engine.passes import EVERYBODY, PEOPLE, Census, PackPeople, UnpackPeople, join_prints
from dovetail.engine.processes import Engine
from dovetail.engine.processes import TaskSource as Source
from dovetail.engine.publication import MANIFEST, PARTS, Manifest, Staging, read_manifest, verify
from dovetail.engine.rows import Reader, Sealer, Secret
from dovetail.job.config import RunConfig
from dovetail.ledger.files import check_target
from dovetail.ledger.releases import LedgerEntry, ReleaseLedger, other_terms
from dovetail.report.document import PrivacyReport
from dovetail.report.html import render_html

TRUST = (
    "Drawn by {name} in {partitions} partitions; tasks that were tried again, {retried} here, draw the same reports.",
    "Randomization and shuffle ran in one place, {where}: anybody who runs it, or reads its memory meanwhile, can "
    "undo both, and is a party that must be trusted until the job has ended.",
    "The promise is computational: reports and their order are AES-256 of a secret that was drawn for this release, "
    "held in memory only, and forgotten.",
)
_FILES = {"report_json": "report.json", "report_html": "report.html", "sanitized": PARTS, "manifest": MANIFEST}
_ROWS = 1 << 20  # of a batch at most, so that a process stays small
_BYTES = 1 << 25  # of reports in a batch
_PEOPLE = 1 << 22  # of a partition of the census


def batch_rows(report_bytes: int = 0) -> int:
    """Rows of a batch."""
    return max(1, min(_ROWS, _BYTES // max(8, report_bytes)))


def people_parts(n: int) -> int:
    """Partitions of n people."""
    return max(1, -(-n // _PEOPLE))


@dataclass(frozen=True)
class Table:
    """A table as the first pass left it.

    Parameters
    ----------
    source : as the engine reads it
    census : what the first pass found out
    numbers : whether its people are numbers
    """

    source: Source
    census: Census
    numbers: bool


@dataclass(frozen=True)
class Run(ABC):
    """One run. What is drawn, counted and said is the question's; what is recorded and published, and when, is here.

    Parameters
    ----------
    engine : Engine
    staging : Staging
    ledger : ReleaseLedger
    secret : Secret
        Of this run.
    progress : function (step, done, total)
    """

    engine: Engine
    staging: Staging
    ledger: ReleaseLedger
    secret: Secret
    progress: Progress

    @property
    @abstractmethod
    def config(self) -> RunConfig:
        """The settings, of several questions those that they have in common and the first of them."""

    @abstractmethod
    def reader(self, *, numbers: bool) -> Reader:
        """The reader of batches; `numbers` as `People` has it."""

    @abstractmethod
    def source(self, table: Any) -> Source:
        """The table, looked at but not read; refused where it cannot be drawn."""

    @abstractmethod
    def fit(self, census: Census) -> None:
        """Refuse what does not go with so many people."""

    @abstractmethod
    def entry(self, census: Census, number: int) -> LedgerEntry:
        """The entry of the ledger, but for its manifest."""

    @abstractmethod
    def draw(self, table: Table) -> tuple[Any, Manifest]:
        """Draw a release: what it tells, and its files, which lie in the staging folder."""

    @abstractmethod
    def recall(self, manifest: Manifest, folder: Path, census: Census) -> Any:
        """Read what a recorded release tells, from its files."""

    @abstractmethod
    def report(
        self, census: Census, learned: Any, engine: dict[str, Any], *, history: tuple[LedgerEntry, ...] = (),
        reproduced: bool = False,
    ) -> PrivacyReport:  # fmt: skip
        """The report of a release."""

    @abstractmethod
    def rehearsed(self, table: Table) -> PrivacyReport:
        """The report of a rehearsal, with the truth."""

    def rehearse(self, table: Any) -> PrivacyReport:
        """Estimates beside the truth; nothing is kept."""
        check_target(self.staging.target, force=None)
        report = self.rehearsed(self._read(table))
        self.staging.clear(self.ledger)
        return report

    def _read(self, table: Any) -> Table:
        source = self.source(table)
        census, numbers = self._census(source)
        self.fit(census)
        return Table(source, census, numbers)

    def release(self, table: Any, *, new_release: bool) -> PrivacyReport:
        """The recorded release of this table under these terms, or a fresh one."""
        check_folder(self.staging.target)
        found = self._read(table)
        entries = self.ledger.entries()
        entry = self.entry(found.census, max((one.number for one in entries), default=0) + 1)
        same = [one for one in entries if one.table == entry.table]
        exact = [one for one in same if one.request == entry.request]
        people = join_prints(self.staging.folder / PEOPLE)
        related = [one for one in entries if one in same or self.ledger.meets(one, people)]
        if exact and not new_release:
            return self._again(found.census, exact, related)
        if not new_release:
            self._refuse_repeats(same, related, people)
        return self._draw(found, entry, related)

    def _census(self, source: Source) -> tuple[Census, bool]:
        """The first pass; again where names of people turn out to be numbers and others."""
        for numbers in (True, False):
            reader, parts = self.reader(numbers=numbers), people_parts(source.n)
            sealer = Sealer(Secret.fresh())
            folder = str(self.staging.folder / PEOPLE)
            found = self.engine.exchange(
                source, PackPeople(reader, sealer, parts), UnpackPeople(sealer, parts, folder), parts=parts + 1,
                rows=batch_rows(), staging=self.staging.folder, progress=partial(self.tell, "check the table"),
            )  # fmt: skip
            census = Census.of(found.summaries, reader)
            if not census.mixed:
                break
        return census, numbers

    def tell(self, what: str, step: str, done: int, total: int) -> None:
        self.progress(what if "exchange" in step else f"{what}: {step}", done, total)

    def _refuse_repeats(self, same: list[LedgerEntry], related: list[LedgerEntry], people: Any) -> None:
        if same:
            raise other_terms(same)
        if any(not one.manifest and self.ledger.same_people(one, people) for one in related):
            raise UnsupportedError(
                "Exactly these people were released before without --engine, where tables are recognised in another "
                "form; a fresh draw adds its budget to that: use --new-release if you mean it."
            )

    def _draw(self, table: Table, entry: LedgerEntry, related: list[LedgerEntry]) -> PrivacyReport:
        """The five steps."""
        if read_manifest(self.staging.target) is not None:
            raise OutputError(f"{self.staging.target}: holds another release; name another place with --out.")
        staging = self.staging
        self.progress("note in the ledger", 0, 1)
        staging.note(self.ledger, entry)
        learned, manifest = self.draw(table)
        entry = replace(entry, manifest=manifest.digest)
        report = self.report(table.census, learned, manifest.engine, history=(*related, entry))
        report = replace(report, files=_FILES)
        document = report.document()
        text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
        staging.write("report.json", text.encode())
        staging.write("report.html", render_html(document).encode())
        self.progress("write the manifest", 0, 1)
        staging.seal(manifest)
        self.progress("record the release", 0, 1)
        self.ledger.record_staged(entry, staging.folder / PEOPLE / EVERYBODY, manifest.content)
        self.progress("publish", 0, 1)
        staging.publish(self.ledger)
        self.progress("publish", 1, 1)
        return report

    def _again(self, census: Census, exact: list[LedgerEntry], related: list[LedgerEntry]) -> PrivacyReport:
        """The report of the recorded release, whose files are what they were."""
        target = self.staging.target
        self.staging.clear(self.ledger)
        manifest = read_manifest(target)
        entry = next((one for one in exact if manifest is not None and one.manifest == manifest.digest), None)
        if manifest is None or entry is None:
            raise OutputError(
                f"{target}: release {exact[-1].number} of this table was published to another place; name that with "
                "--out, or draw afresh with --new-release: budgets add."
            )
        verify(manifest, target)
        learned = self.recall(manifest, target, census)
        history = (*(one for one in related if one != entry), entry)
        report = self.report(census, learned, manifest.engine, history=history, reproduced=True)
        return replace(report, files=_FILES)


def check_folder(target: Path) -> None:
    """Refuse a target that holds anything but a release in files."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise OutputError(f"{target}: exists and is not a folder; name another place with --out.")
    if target.exists() and any(target.iterdir()) and read_manifest(target) is None:
        raise OutputError(f"{target}: is not empty, and holds no release in files; name another place with --out.")
