"""Frequent strings in files: a pass for each level, whose batch is published nowhere but in what it finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
import polars as pl

from dovetail.core.entropy import KeyedEntropy
from dovetail.core.errors import ConfigError, OutputError, ParameterError, UnsupportedError
from dovetail.core.keyed_hash import hashes_of
from dovetail.engine.job import survey_of
from dovetail.engine.passes import Census, by_part
from dovetail.engine.processes import Blobs, Summary
from dovetail.engine.processes import TaskSource as Source
from dovetail.engine.publication import Manifest, digest_of, need_space
from dovetail.engine.release import TRUST, Run, Table, batch_rows, people_parts
from dovetail.engine.rows import Asked, People, Reader, Sealer, Secret
from dovetail.engine.source import Source as Files
from dovetail.job.build import fresh
from dovetail.job.config import RunConfig, StringsSection
from dovetail.job.rehearse import ReleasedTable
from dovetail.job.strings import (
    FrequentStrings,
    Level,
    Search,
    Tally,
    Truth,
    common_from,
    describe_search,
    found_table,
    promise_of_dummies,
    refuse_small,
    search_levels,
    strings_report,
    strings_terms,
)
from dovetail.ledger.releases import LedgerEntry, recorded_promise
from dovetail.report.document import PrivacyReport
from dovetail.shuffle.uniform import Uniform

# A level is counted, not written: how often each symbol came is all that a uniformly shuffled batch tells.


@dataclass(frozen=True)
class PackLevel:
    """Reports of the people of a level, as a tally of the batch."""

    reader: Reader
    secret: Secret
    level: Level

    def __call__(self, frame: pl.DataFrame) -> Blobs:
        rows = self.reader.exactly(frame)
        assert rows.groups is not None  # levels
        mine = (rows.groups == str(self.level.number)).to_numpy()
        rng = KeyedEntropy(self.secret.of("randomize"), rows.ids[mine])
        tally = self.level.tally(rows.values[0][mine].tolist(), rng)
        symbols = np.flatnonzero(tally)
        sent = {
            "n": rows.n, "fingerprint": str(self.reader.fingerprint(rows)), "people": int(mine.sum()),
            "symbols": symbols.tolist(), "counts": tally[symbols].tolist(),
        }  # fmt: skip
        return [(0, Sealer(self.secret).seal(json.dumps(sent).encode(), 0))]


@dataclass(frozen=True)
class UnpackLevel:
    """The tally of the whole level, with what the shuffler adds: what leaves this task is what the analyst sees."""

    secret: Secret
    level: Level

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        sealer, dummies = Sealer(self.secret), KeyedEntropy(self.secret.of("dummies"), np.arange(1))  # one stream
        tally = self.level.tally([], dummies)
        sent = [json.loads(sealer.open(blob, part)) for blob in blobs]
        for one in sent:
            tally[one["symbols"]] += one["counts"]
        return {
            "n": sum(one["n"] for one in sent),
            "fingerprint": str(sum(int(one["fingerprint"]) for one in sent) % (1 << 128)),
            "people": sum(one["people"] for one in sent),
            "tally": self.level.complete(tally, dummies).tolist(),
        }


# A rehearsal counts everybody's string, each in the one task to which a keyed hash of it leads.


@dataclass(frozen=True)
class PackTexts:
    """Strings of a batch with how many people hold each, by partition."""

    reader: Reader
    secret: Secret
    parts: int

    def __call__(self, frame: pl.DataFrame) -> Blobs:
        texts = pl.Series("text", self.reader.exactly(frame).values[0], dtype=pl.String)
        counted, sealer = texts.value_counts(), Sealer(self.secret)
        words = hashes_of(counted["text"], self.secret.of("texts"), 8).view(np.uint64).reshape(-1)
        part = ((words >> np.uint64(32)) * np.uint64(self.parts) >> np.uint64(32)).astype(np.int64)
        packed = [(place, counted[chosen].write_ipc(None).getvalue()) for place, chosen in by_part(part)]
        return [(place, sealer.seal(content, place)) for place, content in packed]


@dataclass(frozen=True)
class UnpackTexts:
    """Numbers that are true of the strings of a partition, and no string."""

    secret: Secret
    search: Search
    least: float

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        frames = [pl.read_ipc(Sealer(self.secret).open(blob, part)) for blob in blobs]
        held = pl.concat(frames).group_by("text").agg(pl.sum("count")).rows() if frames else []
        truth = Truth.of(self.search, dict(held), self.least)
        return {"held": truth.held.tolist(), "common": truth.common, "hit": truth.hit}


@contextmanager
def _about_strings() -> Iterator[None]:
    """Refuse in the name of [strings] what cannot be searched."""
    try:
        yield
    except (ParameterError, UnsupportedError) as error:
        raise ConfigError(f"[strings] {error}") from None


@final
@dataclass(frozen=True)
class StringsRun(Run):
    """A search for frequent strings.

    Parameters
    ----------
    asked : RunConfig
    key : bytes
        Of the release ledger.
    """

    asked: RunConfig
    key: bytes

    @property
    def config(self) -> RunConfig:
        return self.asked

    @property
    def _strings(self) -> StringsSection:
        assert self.asked.strings is not None
        return self.asked.strings

    def reader(self, *, numbers: bool) -> Reader:
        asked = Asked(self.asked.data, texts=True)
        return Reader((asked,), People(self.key, numbers), levels=self._strings.levels)

    def source(self, table: Any) -> Source:
        source = self.engine.source(self.asked.data, table)
        if isinstance(source, Files):
            source.require_answers()
        need_space(self.staging.folder.parent, source.n * 2 * 16)
        return source

    def fit(self, census: Census) -> None:
        sizes = self._sizes(census)
        with _about_strings():
            refuse_small(sizes, self._strings)
            if self.asked.mode == "release":
                promise_of_dummies(sizes, self._strings)

    def _sizes(self, census: Census) -> list[int]:
        """People of each level."""
        return [census.groups.get(str(level), 0) for level in range(self._strings.levels)]

    def entry(self, census: Census, number: int) -> LedgerEntry:
        marks = (
            f"table in files: {census.n} {census.fingerprint}".encode(), b"in files" + strings_terms(self._strings),
            f"in files [] {census.grouping}".encode(),
        )  # fmt: skip
        table, terms, groups = map(self.ledger.fingerprint, marks)
        batch = recorded_promise(promise_of_dummies(self._sizes(census), self._strings))
        return LedgerEntry(number, table, terms, np.inf, 0.0, groups, census.n, Uniform.name, batch=batch)

    def draw(self, table: Table) -> tuple[Search, Manifest]:
        answer, engine = self._search(table)
        found, staging = found_table(answer.found), self.staging
        target = staging.parts / "part-00000.parquet"
        found.write_parquet(target, metadata={"dovetail": json.dumps(describe_search(self.asked))})
        part = {
            "name": target.name, "rows": found.height, "bytes": target.stat().st_size, "sha256": digest_of(target),
        }  # fmt: skip
        manifest = Manifest(staging.name, found.height, {}, engine, [part])
        return self.recall(manifest, staging.release, table.census), manifest

    def recall(self, manifest: Manifest, folder: Path, census: Census) -> Search:
        (file,) = manifest.files(folder)
        return Search.recorded(pl.read_parquet(file), self._sizes(census), self._strings)

    def report(
        self, census: Census, learned: Search, engine: dict[str, Any], *, history: tuple[LedgerEntry, ...] = (),
        reproduced: bool = False,
    ) -> PrivacyReport:  # fmt: skip
        table = found_table(learned.found)
        released = ReleasedTable(table, np.empty(0), pl.DataFrame(), history, history[-1].number, reproduced)
        report = self._told(census, learned, engine, released)
        return replace(report, assumptions=(*report.assumptions, *(line.format(**engine) for line in TRUST)))

    def rehearsed(self, table: Table) -> PrivacyReport:
        answer, engine = self._search(table)
        search = Search.of(answer, self._strings)
        return self._told(table.census, search, engine, None, truth=self._truth(table, search))

    def _told(
        self, census: Census, search: Search, engine: dict[str, Any], released: ReleasedTable | None, **rest: Any
    ) -> PrivacyReport:
        survey = survey_of(self.asked.data, census)
        return strings_report(self.asked, survey, search, released, fresh(self.asked), engine=engine, **rest)

    def _search(self, table: Table) -> tuple[FrequentStrings, dict[str, Any]]:
        """Search level by level: the strings that are found, and a record of what drew them."""
        retried = list[int]()

        def ask(level: Level) -> Tally:
            secret, reader = Secret(self.secret.of(f"level {level.number}")), self.reader(numbers=table.numbers)
            found = self.engine.exchange(
                table.source, PackLevel(reader, secret, level), UnpackLevel(secret, level), parts=1,
                rows=batch_rows(), staging=self.staging.folder,
                progress=partial(self.tell, f"ask for byte {level.number + 1}"),
            )  # fmt: skip
            counted, census = found.summaries[0], table.census
            if (counted["n"], int(counted["fingerprint"]), counted["people"]) != (
                census.n, census.fingerprint, level.n
            ):  # fmt: skip
                raise OutputError("the table has changed while it was read; nothing was released.")
            retried.append(found.retried)
            return np.array(counted["tally"])

        with _about_strings():
            answer = search_levels(self._sizes(table.census), ask, self._strings)
        drawn = {"partitions": len(retried), "retried": sum(retried), "computational": "AES-256"}
        return answer, {**self.engine.describe(), **drawn}

    def _truth(self, table: Table, search: Search) -> Truth:
        """The truth about everybody's string."""
        secret, parts = Secret(self.secret.of("truth")), people_parts(table.census.n)
        found = self.engine.exchange(
            table.source, PackTexts(self.reader(numbers=table.numbers), secret, parts),
            UnpackTexts(secret, search, common_from(self._strings, table.census.n)), parts=parts, rows=batch_rows(),
            staging=self.staging.folder, progress=partial(self.tell, "count the strings"),
        )  # fmt: skip
        each = [Truth(np.array(one["held"], dtype=np.int64), one["common"], one["hit"]) for one in found.summaries]
        return sum(each[1:], each[0])
