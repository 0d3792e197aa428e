"""A release in files is the one that an oracle draws in memory, whatever the batches, partitions and engines."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.faults import DyingPack
from tests.engine.oracle import KEY, SECRET, config, released, table, write_table
from tests.statistics import expect_broken, expect_law
from tests.tiers import one_in, tiered

from dovetail.core.entropy import keyed_prints
from dovetail.core.errors import DataError, OutputError, StorageError
from dovetail.core.progress import silent
from dovetail.engine import source
from dovetail.engine.job import Job
from dovetail.engine.orders import Layout, codes_of, sorted_order
from dovetail.engine.passes import (
    Batch,
    Census,
    PackPeople,
    PackReports,
    UnpackPeople,
    UnpackReports,
    with_row_counts,
)
from dovetail.engine.processes import Engine, Exchanged, Processes
from dovetail.engine.processes import TaskSource as Source
from dovetail.engine.publication import Manifest
from dovetail.engine.rows import Sealer, Secret
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.job.config import parse_config
from dovetail.job.questions import description_of, questions_of
from dovetail.table.released import from_columns

KINDS = ["krr", "unary", "hadamard", "local_hashing", "subset_selection", "laplace"]


def census_of(job: Job, source: Source, staging: Path, engine: Engine, *, parts: int = 3, rows: int = 100) -> Census:
    reader, sealer = job.reader(numbers=True), Sealer(Secret(SECRET))
    (staging / "people").mkdir(parents=True, exist_ok=True)
    pack, unpack = PackPeople(reader, sealer, parts), UnpackPeople(sealer, parts, str(staging / "people"))
    found = engine.exchange(source, pack, unpack, parts=parts + 1, rows=rows, staging=staging, progress=silent)
    return Census.of(found.summaries, reader)


def draw(
    settings: dict[str, Any], staging: Path, *, parts: int = 4, rows: int = 100, engine: Engine | None = None
) -> tuple[Job, Census, Exchanged]:
    """The first and the second pass of a job, under known keys."""
    job, runs = Job(questions_of(settings) or parse_config(settings), KEY), engine or Processes(1)
    source = runs.source(job.config.data, None, job.further)
    census = census_of(job, source, staging, runs)
    secret, reader = Secret(SECRET), job.reader(numbers=True)
    batches = with_row_counts(
        runs, source, job.batches(census, job.order(census), secret, parts=parts), reader, rows=rows,
        staging=staging, progress=silent,
    )  # fmt: skip
    (staging / "sanitized").mkdir()
    said = json.dumps(description_of(job.collection(census), "device"))
    pack = PackReports(reader, secret, batches)
    unpack = UnpackReports(secret, batches, job.columns, str(staging / "sanitized"), said)
    end = batches[-1].end + 1
    found = runs.exchange(source, pack, unpack, parts=end, rows=rows, staging=staging, progress=silent)
    return job, census, found


def randomizer_of(job: Job) -> Any:
    return job.parts(300)[0].noise.randomizer


def files(staging: Path) -> list[Path]:
    return sorted((staging / "sanitized").glob("*.parquet"))


def reports(staging: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(file) for file in files(staging)])


@pytest.mark.parametrize(
    ("randomizer", "shuffler"),
    tiered(
        product(KINDS, ["uniform", "within_groups", "noisy_sort", "mallows", "planar", "identity"]),
        first=lambda case: case[0] == "krr" or case in (("unary", "uniform"), ("laplace", "within_groups")),
    ),
)
def test_every_randomizer_gives_the_reports_of_the_oracle(randomizer: str, shuffler: str, tmp_path: Path) -> None:
    people = table(100)
    settings = config(write_table(tmp_path / "in", people), randomizer=randomizer, shuffler=shuffler)
    job, census, found = draw(settings, tmp_path / "out")
    assert reports(tmp_path / "out").equals(released(people, randomizer_of(job), shuffle=job.config.shuffle))
    assert found.summaries[-1]["fingerprint"] == str(census.fingerprint)


@pytest.mark.parametrize(("parts", "rows", "text"), one_in(3, [(1, 1000, False), (7, 1, False), (64, 37, True)]))
def test_batches_and_partitions_change_nothing(parts: int, rows: int, text: bool, tmp_path: Path) -> None:
    people = table(150, text=text)
    first = config(write_table(tmp_path / "in", people), shuffler="within_groups")
    draw(first, tmp_path / "one", parts=parts, rows=rows)
    again = config(write_table(tmp_path / "turned", people[::-1], files=5), shuffler="within_groups")
    job, _, _ = draw(again, tmp_path / "two", parts=parts, rows=11)
    assert [file.read_bytes() for file in files(tmp_path / "one")] == [
        file.read_bytes() for file in files(tmp_path / "two")
    ]
    assert len(files(tmp_path / "one")) == parts
    assert reports(tmp_path / "one").equals(released(people, randomizer_of(job), shuffle=job.config.shuffle))


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.exhaust)])
def test_without_a_shuffle_reports_stand_as_the_rows_do_and_those_left_out_leave_no_gap(
    workers: int, tmp_path: Path
) -> None:
    people = table(150).with_columns(answer=pl.when(pl.int_range(150) % 7 != 0).then("answer"))
    settings = config(write_table(tmp_path / "in", people, files=5), shuffler="identity")
    settings["data"]["missing"] = "drop"
    several = Processes(workers)
    job, census, found = draw(settings, tmp_path / "many", parts=9, rows=11, engine=several)
    several.close()
    draw(settings, tmp_path / "one", parts=1, rows=1000)
    whole = reports(tmp_path / "many")
    left = people.filter(pl.col("answer").is_not_null())
    assert whole.equals(reports(tmp_path / "one")) and whole["region"].equals(left["region"])
    assert whole.equals(released(left, randomizer_of(job), shuffle=job.config.shuffle))
    sizes = [one["rows"] for one in found.summaries[:-1]]
    assert max(sizes) - min(sizes) <= 3 and census.left_out == 22


@pytest.mark.exhaust
@pytest.mark.parametrize("sizes", [{}, {"a": 3, "b": 2}], ids=["everybody", "groups"])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_all_orders_are_equally_likely(parts: int, sizes: dict[str, int]) -> None:
    codes, layout = np.array([0, 1, 0, 1, 0] if sizes else [0] * 5), Layout(5, parts, sizes)
    seen: dict[tuple[int, ...], int] = {}
    for number in range(4000):
        keys = keyed_prints(Secret(number.to_bytes(32, "big")).of("order"), np.arange(5))
        part = layout.part(codes, keys)
        order = np.concatenate([np.flatnonzero(part == one)[sorted_order(codes[part == one], keys[part == one])]
                                for one in range(parts)])  # fmt: skip
        seen[tuple(order.tolist())] = seen.get(tuple(order.tolist()), 0) + 1
    kinds = 12 if sizes else 120
    counts = np.array([*seen.values(), *[0] * (kinds - len(seen))])
    expect_law(counts, np.full(kinds, 1 / kinds))
    expect_broken(np.where(np.arange(kinds) % 2, 0, 2 * counts), np.full(kinds, 1 / kinds))


def test_partitions_never_cut_an_order_and_are_even() -> None:
    codes = np.repeat([0, 1, 2], [5000, 1, 4999])
    keys = keyed_prints(KEY, np.arange(10_000))
    layout = Layout(10_000, 7, {"a": 5000, "b": 1, "c": 4999})
    part = layout.part(codes, keys)
    assert (np.diff(part[np.lexsort((keys[:, 1], keys[:, 0], codes))]) >= 0).all()
    assert part.min() == 0 and part.max() == 6
    assert np.abs(np.bincount(part) - 10_000 / 7).max() < 6.2 * np.sqrt(10_000 / 7)  # 7 binomial counts: below 1e-8


def test_equal_keys_are_one_person_in_two_rows() -> None:
    keys = np.array([[3, 1], [3, 0], [2, 9]], dtype=np.uint64)
    assert sorted_order(np.zeros(3, np.int64), keys).tolist() == [2, 1, 0]
    with pytest.raises(DataError, match="a person stands in two rows"):
        sorted_order(np.zeros(3, np.int64), np.array([[3, 1], [2, 1], [3, 1]], dtype=np.uint64))


@pytest.mark.parametrize("span", [1, 4, 20, 64])
def test_sorting_by_keys_is_exact_however_close_they_are(span: int) -> None:
    keys = keyed_prints(KEY, np.arange(5000))
    keys[:, 0] = (keys[:, 0] >> np.uint64(64 - span)) + np.uint64(1 << 40 if span < 64 else 0)
    expected = np.lexsort((keys[:, 1], keys[:, 0]))
    assert np.array_equal(sorted_order(np.zeros(5000, np.int64), keys), expected)
    assert sorted_order(np.zeros(0, np.int64), keys[:0]).size == 0
    codes = np.arange(5000) % 3
    assert np.array_equal(sorted_order(codes, keys), np.lexsort((keys[:, 1], keys[:, 0], codes)))


@pytest.mark.exhaust
def test_rows_that_are_packed_a_few_at_a_time_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(write_table(tmp_path / "in", table(300)))
    draw(settings, tmp_path / "whole", rows=300)
    monkeypatch.setattr(source, "_FEW", 1)
    monkeypatch.setattr(source, "_BLOB", 2)
    draw(settings, tmp_path / "few", rows=300)
    assert [file.read_bytes() for file in files(tmp_path / "few")] == [
        file.read_bytes() for file in files(tmp_path / "whole")
    ]


def test_what_a_task_sends_is_the_same_in_every_attempt_and_shows_nobody() -> None:
    people, settings = table(50), config(Path("unused"))
    job = Job(parse_config(settings), KEY)
    batch = Batch(job.messages(50)[0], Layout(50, 2), Secret(SECRET))
    pack = PackReports(job.reader(numbers=True), Secret(SECRET), (batch,))
    columns = people.select("id", "answer")
    first, second = pack(columns), pack(columns)
    assert first == second
    everything = b"".join(blob for _, blob in first)
    keys = keyed_prints(Secret(SECRET).of("order"), people["id"].to_numpy())
    assert not any(int(one).to_bytes(8, "little") in everything for one in people["id"])
    assert not any(key.tobytes() in everything for key in keys)
    assert SECRET not in everything and SECRET.hex() not in repr(pack) and str(list(SECRET)) not in repr(pack)
    assert len({Sealer(Secret(SECRET)).seal(bytes([one]), 0)[:12] for one in range(9)}) == 9
    part, blob = first[0]
    with pytest.raises(StorageError, match="altered"):
        Sealer(Secret(SECRET)).open(blob[:-1] + bytes([blob[-1] ^ 1]), part)
    with pytest.raises(StorageError, match="altered"):
        Sealer(Secret(SECRET)).open(blob, part + 1)


def test_counts_of_the_files_are_those_of_their_reports(tmp_path: Path) -> None:
    settings = config(write_table(tmp_path / "in", table(300)), shuffler="within_groups")
    job, census, _ = draw(settings, tmp_path / "out")
    (tally,) = Processes(1).count(files(tmp_path / "out"), job.tally(census), progress=silent).parts
    whole, randomizer = reports(tmp_path / "out"), randomizer_of(job)
    assert tally.n.tolist() == list(census.groups.values())
    for place, name in enumerate(census.groups):
        own = from_columns(randomizer, whole.filter(pl.col("region") == name), ["a", "b", "c"])
        np.testing.assert_array_equal(tally.counts[place], randomizer.tally(own))
    overall = estimate_frequencies(randomizer_of(job), from_columns(randomizer_of(job), whole, ["a", "b", "c"]))  # type: ignore[arg-type]
    assert overall.n == census.n


def test_files_say_how_their_reports_were_made(tmp_path: Path) -> None:
    draw(config(write_table(tmp_path / "in", table(60))), tmp_path / "out")
    said = json.loads(pl.read_parquet_metadata(files(tmp_path / "out")[0])["dovetail"])
    assert (said["randomizer"], said["epsilon"], said["entropy"]) == ("krr", 2.0, "device")


@pytest.mark.exhaust
def test_several_processes_give_the_files_of_one_even_when_one_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(write_table(tmp_path / "in", table(400, text=True)), randomizer="unary")
    several, plain = Processes(2), Processes.exchange

    def dying(engine: Processes, source: Source, pack: Any, unpack: Any, **rest: Any) -> Exchanged:
        return plain(engine, source, DyingPack(pack, str(tmp_path / "died")), unpack, **rest)

    monkeypatch.setattr(Processes, "exchange", dying)
    draw(settings, tmp_path / "two", engine=several)
    several.close()
    monkeypatch.undo()
    assert (tmp_path / "died").exists() and several._retried > 0
    draw(settings, tmp_path / "one")
    assert [file.read_bytes() for file in files(tmp_path / "one")] == [
        file.read_bytes() for file in files(tmp_path / "two")
    ]


def test_a_label_that_was_not_counted_says_that_the_table_has_changed() -> None:
    assert codes_of(("east", "west"), pl.Series(["west", "east"]), 2).tolist() == [1, 0]
    with pytest.raises(DataError, match="has changed while it was read"):
        codes_of(("east", "west"), pl.Series(["west", "north"]), 2)


def test_a_release_whose_files_hold_other_rows_than_people_came_is_none() -> None:
    def release(n: int) -> Manifest:
        files = [{"name": name, "rows": rows, "bytes": 1, "sha256": ""} for name, rows in (("a", 3), ("b", 2))]
        return Manifest("r", n, {}, {}, files)

    assert release(5).n == 5
    for n in (4, 6):
        with pytest.raises(OutputError, match=f"hold 5 reports of {n} people; nothing was released"):
            release(n)
