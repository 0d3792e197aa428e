"""The job: a table in many files goes in; a release in many files, estimates and a privacy report come out."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.errors import OutputError, UnsupportedError
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.progress import Progress, silent
from dovetail.pipeline.release_entry import LedgerEntry
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.pipeline.run import keep_apart, settings_of
from dovetail.report.document import PrivacyReport
from dovetail.report.render.html import render_html
from dovetail.scale.engines.engine import Engine, Source
from dovetail.scale.engines.processes import Processes, default_workers, need_workers
from dovetail.scale.engines.spark import Spark, session_of, start
from dovetail.scale.job import Job, Order
from dovetail.scale.orders.noisy_places import NoisyPlaces
from dovetail.scale.passes.census import EVERYBODY, PEOPLE, Census, PackPeople, UnpackPeople, join_prints
from dovetail.scale.passes.draw import PackReports, UnpackReports, report_bytes
from dovetail.scale.passes.places import counted
from dovetail.scale.publish.manifest import MANIFEST, PARTS, Manifest, read_manifest, verify
from dovetail.scale.publish.publication import Staging, staged
from dovetail.scale.report import scale_report
from dovetail.scale.secrets import Sealer, Secret
from dovetail.scale.source import Source as Files
from dovetail.scale.storage import need_space
from dovetail.scale.supported import refuse_large, refuse_unsupported

_FILES = {"report_json": "report.json", "report_html": "report.html", "sanitized": PARTS, "manifest": MANIFEST}


def run(
    config: str | Path | dict[str, Any] | RunConfig,
    *,
    out: str | Path,
    table: Any = None,
    engine: str | None = None,
    workers: int | None = None,
    master: str | None = None,
    new_release: bool = False,
    ledger: str | Path | None = None,
    progress: Progress = silent,
) -> PrivacyReport:
    """Draw a release of a table in many files, with randomness that is keyed by person.

    Parameters
    ----------
    config : path of a TOML file, dictionary or RunConfig
        `[data] path` is a Parquet file, a folder of them, or a glob; `person` names a column.
    out : folder
        Receives report.json, report.html, the folder `sanitized` and the list `_DOVETAIL`: all of them or none.
    table : Spark data frame, optional
        Of a session that you have, classic or Connect; instead of the configured path.
    engine : "processes" or "spark", optional
        Default: Spark for a Spark data frame, and processes otherwise.
    workers : int, at least 1, optional
        Processes; default: the cores that this process may use. With 1 it works by itself.
    master : text, optional
        Where Spark is, such as "local[4]" (the default, with all cores), "spark://host:7077" or "sc://host:15002".
    new_release : bool
        Draw afresh although this table has been released before; budgets add.
    ledger : folder, optional
        The private release ledger; default: DOVETAIL_LEDGER or the user's application folder.
    progress : function (step, done, total), optional

    Returns
    -------
    PrivacyReport
        Its `engine` says what drew it.

    Raises
    ------
    ConfigError, DataError, UnsupportedError, OutputError, StorageError
        One line: what, where, what to do. Nothing is released.

    Notes
    -----
    A program of yours that asks for several workers starts below `if __name__ == "__main__":`.

    Examples
    --------
    >>> import polars as pl
    >>> from tempfile import TemporaryDirectory
    >>> table = pl.DataFrame({"id": range(200), "answer": ["no", "yes"] * 100})
    >>> with TemporaryDirectory() as folder:
    ...     table.write_parquet(f"{folder}/table.parquet")
    ...     data = {"path": f"{folder}/*.parquet", "person": "id", "private": "answer", "categories": ["no", "yes"]}
    ...     asked = {"schema_version": 1, "mode": "release", "data": data, "randomize": {"epsilon": 2.0}}
    ...     report = run(asked, out=f"{folder}/out", ledger=f"{folder}/ledger", workers=1)
    >>> report.engine["name"], report.evaluation.estimates.overall.n
    ('processes', 200)
    """
    settings, target = settings_of(config), Path(out)
    refuse_unsupported(settings)
    private = ReleaseLedger(Path(ledger)) if ledger is not None else ReleaseLedger.default()
    keep_apart(target, private)
    job = Job(settings, private.people_key())
    with staged(target, private) as staging, closing(make_engine(engine, workers, master, table)) as runs:
        return _Run(job, runs, staging, private, progress).release(table, new_release=new_release)


def make_engine(engine: str | None, workers: int | None, master: str | None, table: Any) -> Engine:
    """The engine of this name; a Spark data frame brings its own."""
    kind = engine or (Processes.name if table is None else Spark.name)
    if kind not in (Processes.name, Spark.name):
        raise UnsupportedError(f"`engine` must be {Processes.name!r} or {Spark.name!r}, got {kind!r}.")
    if kind == Processes.name:
        if master is not None:
            raise UnsupportedError("`master` goes with engine 'spark'.")
        return Processes(default_workers() if workers is None else need_workers(workers))
    if workers is not None:
        raise UnsupportedError("`workers` goes with engine 'processes'; Spark's are those of its master.")
    return start(master or "local[*]") if table is None else Spark(session_of(table))


@dataclass(frozen=True)
class _Run:
    """One run of a job."""

    job: Job
    engine: Engine
    staging: Staging
    ledger: ReleaseLedger
    progress: Progress

    def release(self, table: Any, *, new_release: bool) -> PrivacyReport:
        """The recorded release of this table under these terms, or a fresh one."""
        check_folder(self.staging.target)
        source = self.engine.source(self.job.config.data, table)
        if isinstance(source, Files):
            source.require_answers()
        size = report_bytes(self.job.randomizer)
        need_space(self.staging.folder.parent, source.n * (2 * 16 + 8 + 2 * size))
        refuse_large(self.job.randomizer, n=source.n, groups=1)
        census, numbers = self._census(source)
        apart = len(census.groups) if self.job.group else 1
        refuse_large(self.job.randomizer, n=census.n, groups=apart, labels=len(census.groups))
        self.job.collection(census)  # refuses what does not fit so many people
        entries = self.ledger.entries()
        entry = self.job.entry(census, self.ledger, max((one.number for one in entries), default=0) + 1)
        same = [one for one in entries if one.table == entry.table]
        exact = [one for one in same if one.request == entry.request]
        people = join_prints(self.staging.folder / PEOPLE)
        related = [one for one in entries if one in same or self.ledger.meets(one, people)]
        if exact and not new_release:
            return self._again(census, exact, related)
        if not new_release:
            self._refuse_repeats(same, related, people)
        return self._draw(source, census, entry, related, numbers)

    def _census(self, source: Source) -> tuple[Census, bool]:
        """The first pass; again where names of people turn out to be numbers and others."""
        for numbers in (True, False):
            reader, parts = self.job.reader(numbers=numbers), self.job.people_parts(source.n)
            sealer = Sealer(Secret.fresh())
            folder = str(self.staging.folder / PEOPLE)
            found = self.engine.exchange(
                source, PackPeople(reader, sealer, parts), UnpackPeople(sealer, parts, folder), parts=parts + 1,
                rows=self.job.rows(0), staging=self.staging.folder, progress=partial(self._tell, "check the table"),
            )  # fmt: skip
            census = Census.of(found.summaries, reader)
            if not census.mixed:
                break
        return census, numbers

    def _tell(self, what: str, step: str, done: int, total: int) -> None:
        self.progress(what if "exchange" in step else f"{what}: {step}", done, total)

    def _refuse_repeats(self, same: list[LedgerEntry], related: list[LedgerEntry], people: Any) -> None:
        if same:
            raise UnsupportedError(
                f"These private values were released before ({len(same)} times, epsilon "
                f"{sum(one.epsilon for one in same):g} in all) under other terms; a fresh draw adds its budget to "
                "that: use --new-release if you mean it."
            )
        if any(not one.manifest and self.ledger.same_people(one, people) for one in related):
            raise UnsupportedError(
                "Exactly these people were released before without --engine, where tables are recognised in another "
                "form; a fresh draw adds its budget to that: use --new-release if you mean it."
            )

    def _draw(
        self, source: Source, census: Census, entry: LedgerEntry, related: list[LedgerEntry], numbers: bool
    ) -> PrivacyReport:
        """The five steps."""
        if read_manifest(self.staging.target) is not None:
            raise OutputError(f"{self.staging.target}: holds another release; name another place with --out.")
        job, staging, size = self.job, self.staging, report_bytes(self.job.randomizer)
        order, secret = self._fitted(census), Secret.fresh()
        layout = job.layout(census, order)
        self.progress("note in the ledger", 0, 1)
        staging.note(self.ledger, entry)
        if isinstance(layout, NoisyPlaces):
            layout = counted(
                self.engine, source, layout, job.reader(numbers=numbers), secret, rows=job.rows(0),
                staging=staging.folder, progress=partial(self._tell, "count the places"),
            )  # fmt: skip
        found = self.engine.exchange(
            source,
            PackReports(job.reader(numbers=numbers), secret, job.randomizer, layout),
            UnpackReports(
                secret, job.randomizer, layout, job.categories, job.columns, str(staging.parts), job.description()
            ),
            parts=layout.parts + 1, rows=job.rows(size), staging=staging.folder, progress=self.progress,
        )  # fmt: skip
        *parts, totals = found.summaries
        if (totals["n"], int(totals["fingerprint"])) != (census.n, census.fingerprint):
            raise OutputError("the table has changed while it was read; nothing was released.")
        engine = {**self.engine.describe(), "partitions": layout.parts, "retried": found.retried,
                  "computational": "AES-256"}  # fmt: skip
        manifest = Manifest(staging.name, census.n, census.groups, engine, parts)
        self.progress("write the report", 0, 1)
        tally = self.engine.count(manifest.files(staging.release), job.tally(census), progress=self.progress)
        if int(np.sum(tally.n)) != census.n:
            raise OutputError("the files hold other reports than were drawn; nothing was released.")
        entry = replace(entry, manifest=manifest.digest)
        report = scale_report(job, census, order, tally, history=(*related, entry), reproduced=False, engine=engine)
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

    def _fitted(self, census: Census) -> Order:
        self.progress("fit the order", 0, 1)
        return self.job.order(census)

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
        tally = self.engine.count(manifest.files(target), self.job.tally(census), progress=self.progress)
        history = (*(one for one in related if one != entry), entry)
        order = self._fitted(census)
        report = scale_report(
            self.job, census, order, tally, history=history, reproduced=True, engine=manifest.engine
        )
        return replace(report, files=_FILES)


def check_folder(target: Path) -> None:
    """Refuse a target that holds anything but a release in files."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise OutputError(f"{target}: exists and is not a folder; name another place with --out.")
    if target.exists() and any(target.iterdir()) and read_manifest(target) is None:
        raise OutputError(f"{target}: is not empty, and holds no release in files; name another place with --out.")
