"""Folders that cannot be read and disks that are full are one line each; nothing is left that stops the next run."""

import errno
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.engine.oracle import config, table, write_table
from tests.tiers import tiered

from dovetail.core.errors import DataError, OutputError, StorageError, UnreachableError, UnsupportedError
from dovetail.engine import publication, run
from dovetail.engine.publication import MANIFEST
from dovetail.engine.source import Source
from dovetail.job.config import RunConfig, load_config, parse_config
from dovetail.ledger.releases import ReleaseLedger

STEPS = ["note in the ledger", "write the report", "write the manifest"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_table(tmp_path / "in", table())
    return tmp_path


def release(place: Path, path: str = "in", **options: Any) -> None:
    run(config(place / path), out=place / "out", ledger=place / "ledger", workers=1, **options)


def source(place: Path, path: str) -> Source:
    return Source.of(parse_config(config(place / path)).data)


def closed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Folders of this name cannot be listed, as somebody else's."""
    plain = os.scandir

    def scandir(folder: Any = ".") -> Any:
        if Path(os.fspath(folder)).name == name:
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(folder))
        return plain(folder)

    monkeypatch.setattr(os, "scandir", scandir)


@pytest.mark.parametrize("path", ["in", "in/*/*.parquet", "in/**/*.parquet"])
def test_a_folder_that_is_closed_is_not_left_out(path: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(place / "in" / "open", table(60))
    write_table(place / "in" / "shut", table(30))
    assert source(place, path).n >= 90
    closed(monkeypatch, "shut")
    with pytest.raises(DataError, match=r"shut: cannot be read \(Permission denied\), so the table would not be"):
        source(place, path)


@pytest.mark.parametrize("out", [".", "", "..", "../here"])
@pytest.mark.parametrize("mode", [{}, {"mode": "rehearsal", "seed": 1}])
def test_what_a_folder_holds_is_named_and_not_what_is_written_there_meanwhile(
    out: str, mode: dict[str, Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "work" / "here").mkdir(parents=True)
    (place / "work" / "here" / "mine").write_text("mine")
    monkeypatch.chdir(place / "work" / "here")
    with pytest.raises(
        OutputError, match=r"holds '(mine|here)', which is no report|is not empty, and holds no release"
    ) as caught:
        run(config(place / "in") | mode, out=out, ledger=place / "ledger", workers=1)
    assert "staging" not in str(caught.value)
    assert sorted(path.name for path in (place / "work").rglob("*")) == ["here", "mine"]


def test_a_folder_is_no_file_whatever_its_name(place: Path) -> None:
    write_table(place / "in" / "day.parquet", table(60).with_columns(id=pl.col("id") + 10**6))
    assert source(place, "in").n == 660, "the files of a folder that Spark wrote count once"
    (place / "in" / "_SUCCESS").touch()
    assert source(place, "in/*").n == 600, "a mark that Spark wrote is no part of the table"


@pytest.mark.exhaust
def test_files_that_hold_no_table_are_named_with_the_remedy(place: Path) -> None:
    file = place / "in" / "part-1.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"part-1.parquet: is not readable as Parquet, or was cut off; replace it"):
        release(place)
    file.write_bytes(whole[:8] + b"\xff" * 600 + whole[608:])
    with pytest.raises(DataError, match=r"part-1.parquet: cannot be read any more, or is damaged"):
        release(place)
    pl.read_parquet(place / "in" / "part-0.parquet").with_columns(pl.concat_list("answer")).write_parquet(file)
    with pytest.raises(DataError, match=r"part-1.parquet: column 'answer' has type List\(String\), but String in"):
        release(place)
    with pytest.raises(DataError, match=r"part-1.parquet: column 'answer' has type List\(String\); use text"):
        release(place, "in/part-1.parquet")


def addressed(place: Path) -> RunConfig:
    """A job whose table lies at an address."""
    (place / "job.toml").write_text(
        'schema_version = 1\nmode = "release"\n[data]\npath = "s3://bucket/table"\nperson = "id"\n'
        'private = "answer"\ncategories = ["a", "b"]\n[randomize]\nepsilon = 2.0\n'
    )
    return load_config(place / "job.toml")


def test_an_address_is_kept_and_is_for_spark(place: Path) -> None:
    settings = addressed(place)
    assert settings.data.path == "s3://bucket/table"
    with pytest.raises(DataError, match="s3://bucket/table: is an address, and processes read files; use --engine"):
        run(settings, out=place / "out", ledger=place / "ledger", workers=1)


@pytest.mark.exhaust
def test_an_address_is_not_tried_with_a_master_that_is_none(place: Path) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(UnsupportedError, match="`master` must be local"):
        run(addressed(place), out=place / "out", ledger=place / "ledger", engine="spark", master="nowhere")


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.exhaust
@pytest.mark.parametrize("step", tiered(STEPS, first=lambda step: step == STEPS[-1]))
def test_a_disk_that_fills_up_leaves_nothing_that_stops_the_next_run(
    step: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(at: str, done: int, total: int) -> None:
        if at == step:
            monkeypatch.setattr(publication, "sync", full)  # what was written is there

    words = r"(cannot|could not) be written \(No space left on device\); nothing was (released|left)"
    with pytest.raises(StorageError, match=words):
        release(place, progress=fill)
    monkeypatch.undo()
    assert not list(place.glob(".out*")) and not list((place / "ledger").glob("drawing-*"))
    release(place)
    assert len(ReleaseLedger(place / "ledger").entries()) == 1


@pytest.mark.exhaust
def test_half_a_list_does_not_stop_the_next_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path) -> None:
        if MANIFEST in path.name:
            path.write_bytes(path.read_bytes()[:9])
            full()

    monkeypatch.setattr(publication, "sync", half)
    with pytest.raises(StorageError, match=r"could not be written \(No space left on device\); nothing was left"):
        release(place)
    monkeypatch.undo()
    release(place)
    assert len(ReleaseLedger(place / "ledger").entries()) == 1


@pytest.mark.exhaust
def test_a_disk_that_is_full_elsewhere_is_named(place: Path) -> None:
    def fill(at: str, done: int, total: int) -> None:
        if at == "count the reports":
            full()

    with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\); nothing was released"):
        release(place, progress=fill)
    assert not list(place.glob(".out*"))


@pytest.mark.parametrize("kind", [UnreachableError, StorageError, DataError, ConnectionResetError])
def test_what_says_itself_what_is_the_matter_keeps_its_words(kind: type[Exception], place: Path) -> None:
    def fail(at: str, done: int, total: int) -> None:
        raise kind("in its own words")

    with pytest.raises(kind) as raised:
        release(place, progress=fail)
    assert str(raised.value) == "in its own words" and not list(place.glob(".out*"))
