"""The job: a table in many files goes in; a release in many files, estimates and a privacy report come out."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from dovetail.core.entropy import system_entropy
from dovetail.core.errors import OutputError, UnsupportedError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.progress import Progress, silent
from dovetail.core.stages import Labels, NumericRandomizer, Shuffler
from dovetail.engine.fitted_orders import NoisyPlaces
from dovetail.engine.job import Job, Order
from dovetail.engine.orders import Fitted
from dovetail.engine.passes import (
    EVERYBODY,
    PEOPLE,
    Census,
    PackPeople,
    PackReports,
    UnpackPeople,
    UnpackReports,
    counted,
    join_prints,
    report_bytes,
)
from dovetail.engine.processes import Engine, Processes, default_workers, need_workers
from dovetail.engine.processes import TaskSource as Source
from dovetail.engine.publication import MANIFEST, PARTS, Manifest, Staging, need_space, read_manifest, staged, verify
from dovetail.engine.rows import Sealer, Secret
from dovetail.engine.source import Source as Files
from dovetail.engine.spark import Spark, session_of, start
from dovetail.engine.supported import estimator_of, refuse_large, refuse_unsupported
from dovetail.job.config import RunConfig
from dovetail.job.evaluate import (
    LEVEL,
    NO_ORDER,
    bayes_leakage,
    better_randomizer,
    central_guarantee,
    mixing_of,
    order_evaluation,
    shares_of,
    span_of,
)
from dovetail.job.rehearse import ReleasedTable, collection_report
from dovetail.job.run import keep_apart, settings_of
from dovetail.ledger.releases import LedgerEntry, ReleaseLedger
from dovetail.report.document import Estimates, Evaluation, IntervalEstimates, Missing, PrivacyReport
from dovetail.report.html import render_html

# From the tally of the released files to the privacy report.


TRUST = (
    "Drawn by {name} in {partitions} partitions; tasks that were tried again, {retried} here, draw the same reports.",
    "Randomization and shuffle ran in one place, {where}: whoever runs it, or reads its memory during the job, can "
    "undo both, and is a party that must be trusted until the job has ended.",
    "The promise is computational: reports and their order are AES-256 of a secret that was drawn for this release, "
    "held in memory only, and forgotten.",
)
IN_FILES = Missing("the reports lie in files, which are too large to be held: see files")


def scale_report(
    job: Job,
    census: Census,
    ordered: Order,
    tally: Tally,
    *,
    history: tuple[LedgerEntry, ...],
    reproduced: bool,
    engine: dict[str, Any],
) -> PrivacyReport:
    """The report of a release in files, as `run` makes it of one in memory.

    Parameters
    ----------
    ordered : the order of the release
    tally : counts (g, width) of n (g,) released reports
    history : every release of some of these people, this one last
    engine : what drew it
    """
    collection = job.collection(census)
    order = ordered.shuffler if isinstance(ordered, Fitted) else cast(Shuffler, ordered)
    found = _estimates(job, census, ordered, tally)
    made = replace(collection, fit=lambda public: order)
    evaluation = Evaluation(
        shuffler=order.name,
        local=job.randomizer.guarantee.drawn_from("device"),
        central=central_guarantee(
            job.randomizer, order, delta=collection.delta, honest=collection.honest, provenance="device"
        ),
        order=order_evaluation(order, provenance="device"),
        leakage=bayes_leakage(
            job.randomizer,
            order,
            honest=collection.honest,
            shares=np.asarray(found.overall.possible),
            law="estimated",
        ),
        estimates=replace(found, better=better_randomizer(job.randomizer, n=census.n, delta=collection.delta)),
    )
    empty = pl.DataFrame()
    released = ReleasedTable(empty, np.empty(0), empty, history, history[-1].number, reproduced)
    report = collection_report(made, released.compose(evaluation), released, system_entropy(), engine=engine)
    trust = tuple(line.format(**engine) for line in TRUST)
    return replace(report, sanitized=IN_FILES, assumptions=(*report.assumptions, *trust))


def _estimates(job: Job, census: Census, order: Order, tally: Tally) -> Estimates:
    """Estimates over everybody and, where they were asked for, within each public group."""
    numeric, wanted = isinstance(job.randomizer, NumericRandomizer), job.config.estimate
    labels, span = list(job.categories or ["mean"]), span_of(job.randomizer)
    overall = estimator_of(job.randomizer, 1).overall.solve(Tally(tally.counts.sum(axis=0), int(np.sum(tally.n))))
    groups: list[IntervalEstimates] | Missing = Missing("no grouping column was asked for: list it in [estimate] by")
    withheld: list[dict[str, Any]] = []
    if wanted.by and job.group is None:
        groups = Missing(NO_ORDER)
    elif wanted.by:
        names, sizes = list(census.groups), np.array(list(census.groups.values()))
        kept = np.flatnonzero(sizes >= wanted.min_group_size)
        small = {"groups": int(sizes.size - kept.size), "people": int(sizes.sum() - sizes[kept].sum())}
        withheld = [{"by": job.group, **small}] if small["groups"] else []
        kept = kept[_in_order(job, names, kept)]
        within = _solve(job, order, tally, kept)
        groups = [
            shares_of(within.group(row), labels, None, by=job.group, group=names[place], span=span)
            for row, place in enumerate(kept.tolist())
        ]
    return Estimates(
        "mean" if numeric else "share", LEVEL, shares_of(overall, labels, None, span=span), groups, withheld,
        estimator=Missing("the Rao-Blackwell mean adds up over files" if numeric else "shares have one estimator"),
    )  # fmt: skip


def _in_order(job: Job, names: list[str], kept: Labels) -> Labels:
    """The groups that are kept in the order of their names: of their numbers, where the names must be numbers."""
    if job.group not in job.config.numbers:
        return np.arange(kept.size)
    return np.argsort(np.array([float(names[place]) for place in kept]), kind="stable")


def _solve(job: Job, order: Order, tally: Tally, kept: Labels) -> Estimate:
    """Estimates within the groups that are kept; where reports move between groups, widened by how many do."""
    if not kept.size:
        return estimator_of(job.randomizer, 1).solve(
            Tally(tally.counts.sum(axis=0)[None], np.array([np.sum(tally.n)]))
        )
    counts, n = tally.counts[kept], np.asarray(tally.n)[kept]
    if not isinstance(order, Fitted):
        return estimator_of(job.randomizer, kept.size).solve(Tally(counts, n))
    row = np.full(len(tally.counts), kept.size)
    row[kept] = np.arange(kept.size)
    if (row == kept.size).any():  # the groups that are too small, together
        rest = row == kept.size
        counts = np.concatenate([counts, tally.counts[rest].sum(axis=0, keepdims=True)])
        n = np.append(n, np.asarray(tally.n)[rest].sum())
    mixing = mixing_of(order.shuffler, np.repeat(row, order.line.sizes), str(job.group))
    return estimator_of(job.randomizer, len(n)).solve(Tally(counts, n), mixing)


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
