"""The job: a table in many files goes in; a release in many files, estimates and a privacy report come out."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast, final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.errors import ConfigError, DataError, OutputError, UnsupportedError
from dovetail.core.estimate import Tally
from dovetail.core.missing import Missing
from dovetail.core.progress import Progress, silent
from dovetail.core.stages import Labels, Shuffler
from dovetail.engine.job import Job, Order
from dovetail.engine.orders import Fitted
from dovetail.engine.passes import (
    SAMPLED,
    Census,
    PackReports,
    PackSample,
    Truth,
    UnpackReports,
    UnpackSample,
    with_row_counts,
)
from dovetail.engine.processes import Engine, Processes, default_workers, need_workers
from dovetail.engine.processes import TaskSource as Source
from dovetail.engine.publication import Manifest, need_space, staged
from dovetail.engine.release import TRUST, Run, Table, batch_rows
from dovetail.engine.rows import Reader, Sealer, Secret
from dovetail.engine.source import Source as Files
from dovetail.engine.spark import Spark, session_of, start
from dovetail.engine.strings import StringsRun
from dovetail.engine.supported import refuse_large, refuse_unsupported
from dovetail.job.build import build_collection, fresh
from dovetail.job.collection import Collection
from dovetail.job.config import RunConfig
from dovetail.job.evaluate import NO_ORDER, NOT_GROUPED, Beside, mixing_of
from dovetail.job.messages import Tallies
from dovetail.job.questions import QuestionsConfig, description_of, questions_of, report_of_tallies
from dovetail.job.rehearse import ReleasedTable, rehearse, write_report
from dovetail.job.run import keep_apart, settings_of
from dovetail.ledger.releases import LedgerEntry, ReleaseLedger
from dovetail.report.document import NO_DIGEST, Evaluation, PrivacyReport

# From the tally of the released files to the privacy report.


Told = Callable[[str | None], list[list[float]]]

IN_FILES = Missing("the reports lie in files, which are too large to be held: see files")


def scale_report(
    job: Job,
    census: Census,
    ordered: Order,
    tallies: Tallies,
    *,
    history: tuple[LedgerEntry, ...] = (),
    reproduced: bool = False,
    engine: dict[str, Any],
    truth: Told | None = None,
) -> PrivacyReport:
    """The report of what was drawn in files, as `run` makes it of what was drawn in memory.

    Parameters
    ----------
    ordered : the order of the release
    tallies : of each question, counts (g, width) of n (g,) released reports
    history : every release of some of these people, this one last; none of a rehearsal
    engine : what drew it
    truth : function of a group, or of None for everybody
        What is true for each question; in a rehearsal.
    """
    order = ordered.shuffler if isinstance(ordered, Fitted) else cast(Shuffler, ordered)
    made, empty = job.collection(census).through(lambda public: order), pl.DataFrame()
    released = None
    if history:
        released = ReleasedTable(empty, np.empty(0), empty, history, history[-1].number, reproduced)
    columns = [_columns(job, census, ordered, q, tally, truth) for q, tally in enumerate(tallies.parts)]
    report = report_of_tallies(
        made, tallies.parts, columns, released, fresh(job.asked), wanted=job.config.estimate,
        truths=None if truth is None else truth(None), drawn=tallies.drawn, engine=engine,
    )  # fmt: skip
    trust = tuple(line.format(**engine) for line in TRUST) if history else ()
    sanitized = IN_FILES if history else report.sanitized
    return replace(report, sanitized=sanitized, table=NO_DIGEST, assumptions=(*report.assumptions, *trust))


def _columns(
    job: Job, census: Census, order: Order, q: int, tally: Tally, truth: Told | None
) -> list[Beside] | Missing:
    """The public groups beside the reports to a question, where estimates by group were asked for."""
    if not job.config.estimate.by:
        return NOT_GROUPED
    if job.group is None:
        return Missing(NO_ORDER)
    names, sizes = list(census.groups), np.array(list(census.groups.values()))
    at = np.arange(sizes.size)
    if job.group in job.config.numbers:  # in the order of their numbers
        at = np.argsort(np.array([float(name) for name in names]), kind="stable")

    def pooled(row: Labels) -> Tally:
        counts = np.zeros((int(row.max()) + 1, *tally.counts.shape[1:]), dtype=tally.counts.dtype)
        n = np.zeros(len(counts), dtype=np.int64)
        np.add.at(counts, row, tally.counts[at])
        np.add.at(n, row, tally.n[at])
        return Tally(counts, n)

    def mixing(row: Labels) -> NDArray[np.float64] | None:
        if not isinstance(order, Fitted):
            return None
        return mixing_of(order.shuffler, np.repeat(row[np.argsort(at)], order.line.sizes), str(job.group))

    named = [names[place] for place in at]
    return [
        Beside(
            job.group, named, sizes[at], np.asarray(tally.n)[at], pooled, mixing,
            truth=lambda group: None if truth is None else truth(named[group])[q],
        )
    ]  # fmt: skip


SAMPLE = 10_000  # people whom a rehearsal in files attacks
ON_A_SAMPLE = (
    "Attacks and sections are measured on a random sample of {m:,} of the {n:,} people, who are randomized and "
    "shuffled by themselves."
)


def on_a_sample(config: RunConfig, sample: pl.DataFrame, *, n: int, progress: Progress) -> Evaluation | Missing:
    """The evaluation of a random sample of the n people, in one memory; or why there is none."""
    honest, m = config.promise.honest, sample.height
    if honest is not None:
        scaled = config.promise.model_copy(update={"honest": max(1, honest * m // n)})
        config = config.model_copy(update={"promise": scaled})
    rng = fresh(config)
    try:
        collection = build_collection(config, rng, table=sample)
        report = rehearse(collection, estimate=config.estimate, attack=config.attack, rng=rng, progress=progress)
    except (UnsupportedError, DataError) as error:
        return Missing(f"of a random sample of {m:,} people: {str(error).rstrip('.')}")
    return report.evaluation


def run(
    config: str | Path | dict[str, Any] | RunConfig | QuestionsConfig,
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
    """Draw a release of a table in many files, or rehearse one, with randomness that is keyed by person.

    Parameters
    ----------
    config : path of a TOML file, dictionary, RunConfig or QuestionsConfig
        `[data] path` is a Parquet file, a folder of them, or a glob; `person` names a column.
    out : folder
        Receives report.json, report.html, the folder `sanitized` and the list `_DOVETAIL`: all of them or none; of a
        rehearsal the report alone.
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
    settings, target = questions_of(config) or settings_of(config), Path(out)
    target = target if target.name not in ("", "..") else target.resolve()  # a name, to stage beside
    refuse_unsupported(settings)
    private = ReleaseLedger(Path(ledger)) if ledger is not None else ReleaseLedger.default()
    keep_apart(target, private)
    rehearsal = settings.mode == "rehearsal"
    if rehearsal and new_release:
        raise ConfigError("`new_release` is for releases; a rehearsal is drawn afresh unless it names a `seed`.")
    secret = Secret.fresh() if settings.seed is None else Secret.simulated(settings.seed)
    key = secret.of("people") if rehearsal else private.people_key()
    with staged(target, private) as staging, closing(make_engine(engine, workers, master, table)) as runs:
        one: Run
        if isinstance(settings, RunConfig) and settings.strings is not None:
            one = StringsRun(runs, staging, private, secret, progress, settings, key)
        else:
            one = _Reports(runs, staging, private, secret, progress, Job(settings, key))
        report = one.rehearse(table) if rehearsal else one.release(table, new_release=new_release)
    return write_report(report, target, force=False, progress=progress) if rehearsal else report


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


_Learned = tuple[Order, Tallies]


@final
@dataclass(frozen=True)
class _Reports(Run):
    """Reports of every person, drawn in one pass."""

    job: Job

    @property
    def config(self) -> RunConfig:
        return self.job.config

    def reader(self, *, numbers: bool) -> Reader:
        return self.job.reader(numbers=numbers)

    def source(self, table: Any) -> Source:
        source = self.engine.source(self.config.data, table, self.job.further)
        if isinstance(source, Files):
            source.require_answers([one.columns[0] for one in self.reader(numbers=True).asked if one.arrays])
        elif self.job.keeps_rows:
            raise UnsupportedError(
                "--engine: rows of a data frame on Spark stand in no order that could be kept; name Parquet files "
                "with [data] `path`."
            )
        messages = self.job.messages(max(2, source.n))
        need_space(self.staging.folder.parent, source.n * sum(2 * 16 + 8 + 2 * one.size for one in messages))
        for one in self._asked(max(2, source.n)):
            refuse_large(one, n=source.n, groups=1)
        return source

    def _asked(self, n: int) -> list[Any]:
        return [part.noise.randomizer for message in self.job.messages(n) for part in message.parts]

    def fit(self, census: Census) -> None:
        apart = len(census.groups) if self.job.group else 1
        for one in self._asked(census.n):
            refuse_large(one, n=census.n, groups=apart, labels=len(census.groups))
        made = self.job.collection(census)  # refuses what does not fit so many people
        if self.config.mode == "release":
            made.refuse_drowned()

    def entry(self, census: Census, number: int) -> LedgerEntry:
        return self.job.entry(census, self.ledger, number)

    def draw(self, table: Table) -> tuple[_Learned, Manifest]:
        learned, manifest, _ = self._exchange(table, Truth())
        return learned, manifest

    def recall(self, manifest: Manifest, folder: Path, census: Census) -> _Learned:
        return self._fitted(census), self._counted(manifest, folder, census)

    def _counted(self, manifest: Manifest, folder: Path, census: Census) -> Tallies:
        """The tallies of the files, with how many people drew each question where the files do not tell."""
        tallies = self.engine.count(manifest.files(folder), self.job.tally(census), progress=self.progress)
        return replace(tallies, drawn=tuple(manifest.drawn) or None)

    def report(
        self, census: Census, learned: _Learned, engine: dict[str, Any], *, history: tuple[LedgerEntry, ...] = (),
        reproduced: bool = False,
    ) -> PrivacyReport:  # fmt: skip
        return scale_report(self.job, census, *learned, history=history, reproduced=reproduced, engine=engine)

    def rehearsed(self, table: Table) -> PrivacyReport:
        """The truth is counted in the same pass; attacks run on a sample."""
        job, census = self.job, table.census
        truth = Truth(job.questions, grouped=job.group is not None and bool(job.config.estimate.by))
        learned, manifest, counted = self._exchange(table, truth)

        @cache
        def told(group: str | None) -> list[list[float]]:
            return truth.recalled(counted, group)

        report = scale_report(job, census, *learned, engine=manifest.engine, truth=told)
        made = job.collection(census)
        if isinstance(made, Collection) and made.hidden is None:
            sample = self._sample(table)
            found = on_a_sample(job.config, sample, n=census.n, progress=self.progress)
            names = ("attacks", "learnability", "sections")
            measured: dict[str, Any] = {name: getattr(found, name, found) for name in names}
            said = ON_A_SAMPLE.format(m=sample.height, n=census.n)
            evaluation = replace(report.evaluation, **measured)
            report = replace(report, evaluation=evaluation, assumptions=(*report.assumptions, said))
        return report

    def _sample(self, table: Table) -> pl.DataFrame:
        """The rows of a random sample of people, in the order of their names."""
        most, reader = min(1 << 64, (SAMPLE << 64) // table.census.n) - 1, self.reader(numbers=table.numbers)
        self.engine.exchange(
            table.source, PackSample(reader, self.secret, most), UnpackSample(self.secret, str(self.staging.folder)),
            parts=1, rows=batch_rows(), staging=self.staging.folder, progress=partial(self.tell, "draw a sample"),
        )  # fmt: skip
        sealed = (self.staging.folder / SAMPLED).read_bytes()
        return pl.read_ipc(Sealer(self.secret).open(sealed, 0)).sort(reader.person)

    def _exchange(self, table: Table, truth: Truth) -> tuple[_Learned, Manifest, dict[str, int]]:
        """Draw the reports and count them: what was learned, the files, and what was counted of the truth."""
        census, order = table.census, self._fitted(table.census)
        batches = self.job.batches(census, order, self.secret)
        for batch in batches:
            batch.added()  # refused here where no task could hold them
        job, staging, reader = self.job, self.staging, self.reader(numbers=table.numbers)
        said = json.dumps(description_of(job.collection(census), fresh(job.asked).provenance))
        batches = with_row_counts(
            self.engine, table.source, batches, reader, rows=batch_rows(), staging=staging.folder,
            progress=partial(self.tell, "count the places"),
        )  # fmt: skip
        found = self.engine.exchange(
            table.source,
            PackReports(reader, self.secret, batches, truth),
            UnpackReports(self.secret, batches, job.columns, str(staging.parts), said),
            parts=batches[-1].end + 1, rows=batch_rows(max(batch.message.size for batch in batches)),
            staging=staging.folder, progress=self.progress,
        )  # fmt: skip
        *parts, totals = found.summaries
        if (totals["n"], int(totals["fingerprint"])) != (census.n, census.fingerprint):
            raise OutputError("the table has changed while it was read; nothing was released.")
        sent = census.n * len(batches) + totals["beside"] + sum(len(batch.added()[1]) for batch in batches)
        engine = {**self.engine.describe(), "partitions": batches[-1].end, "retried": found.retried,
                  "computational": "AES-256"}  # fmt: skip
        drawn = [totals["drawn"].get(str(q), 0) for q in range(len(batches))] if len(batches) > 1 else []
        groups = census.groups if job.columns else {}
        manifest = Manifest(staging.name, sent, groups, engine, parts, drawn=drawn if any(drawn) else [])
        self.progress("write the report", 0, 1)
        tallies = self._counted(manifest, staging.release, census)
        if tallies.rows != sent:
            raise OutputError("the files hold other reports than were drawn; nothing was released.")
        return (order, tallies), manifest, totals["truth"]

    def _fitted(self, census: Census) -> Order:
        self.progress("fit the order", 0, 1)
        return self.job.order(census)
