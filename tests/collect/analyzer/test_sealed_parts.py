"""Sealed reports in files are counted as those of a batch, on processes and on Spark, and keys never travel."""

import base64
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.collect.analyzer import world as analysis
from tests.collect.analyzer.test_parallel_unseal import CONFIG
from tests.collect.shuffler.test_people_dummies import Story
from typer.testing import CliRunner

from dovetail.cli.main import app
from dovetail.collect.analyzer import sealed_parts
from dovetail.collect.analyzer.sealed_parts import CountedParts, PackSealed, UnpackSealed, count_parts
from dovetail.collect.files import save_keys
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.engine.processes import Processes


@pytest.fixture(autouse=True)
def fresh_keys() -> None:
    sealed_parts._opening.cache_clear()


def site(folder: Path, asked: Any, keys: Any = analysis.ANALYZER) -> Path:
    (folder / "campaign.toml").write_bytes(asked.signed)
    (folder / "analyzer.toml").write_text(CONFIG)
    save_keys(keys, folder / "analyzer.key")
    return folder / "analyzer.toml"


def sealed_of(asked: Any, n: int, groups: tuple[str, ...] = ()) -> list[bytes]:
    """Reports of every kind: copies, of another round, and what does not open."""
    named = [groups[place % len(groups)] for place in range(n)] if groups else None
    reports = analysis.reports_of(asked, [place % 4 for place in range(n)], "parts")
    sealed = analysis.seal(asked, reports, round=1, groups=named)
    late = analysis.seal(asked, reports[:2], round=2, groups=None if named is None else named[:2])
    return [*sealed, *sealed[:3], *late, *(bytes(len(sealed[0])) for _ in range(2))]


def write(folder: Path, sealed: list[bytes], files: int = 3) -> Path:
    folder.mkdir()
    for place in range(files):
        pl.DataFrame({"sealed": sealed[place::files]}).write_parquet(folder / f"{place}.parquet")
    return folder


def in_a_batch(asked: Any, sealed: list[bytes]) -> tuple[int, dict[str, int], Any]:
    """What the analyzer says of the same reports in one batch."""
    alone = analysis.World((asked,))
    assert alone.analyzer.receive(analysis.batch(asked, sealed)) == "counted"
    (batch,) = alone.store.batches(asked.id)
    tallies = sorted(alone.store.tallies(asked.id, batch.id), key=lambda one: one.group)
    return batch.n, dict(batch.rejected), [(one.group, one.n, one.counts) for one in tallies]


def told(found: CountedParts) -> tuple[int, dict[str, int], Any]:
    return found.n, found.rejected, [(one.group, one.n, one.counts) for one in found.tallies]


def test_parts_are_counted_as_a_batch_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = analysis.campaign()
    config, sealed = site(tmp_path, asked), sealed_of(asked, 60)
    monkeypatch.setattr(sealed_parts, "_AT_ONCE", 9)
    found = count_parts(Processes(1), write(tmp_path / "parts", sealed), config=config, campaign="commute", round=1)
    assert told(found) == in_a_batch(asked, sealed)
    assert found.n == 60 and found.rejected == {"copy": 4, "seal": 3}
    assert sorted(place.name for place in tmp_path.iterdir()) == [
        "analyzer.key", "analyzer.toml", "campaign.toml", "parts",
    ]  # fmt: skip


def test_tasks_carry_no_key_and_the_same_bytes_in_every_attempt(tmp_path: Path) -> None:
    import pickle

    asked = analysis.campaign()
    config, sealed = site(tmp_path, asked), sealed_of(asked, 10)
    pack = PackSealed(len(sealed[0]), 4, bytes(32))
    frame = pl.DataFrame({"sealed": sealed})
    assert pack(frame) == pack(frame) and sum(len(blob) for _, blob in pack(frame)) == len(sealed) * len(sealed[0])
    task = pickle.dumps(UnpackSealed(str(config), asked.digest.hex(), 1))
    secret = (tmp_path / "analyzer.key").read_bytes()
    assert not any(line and line in task for line in secret.splitlines())
    assert len(task) < 400


def test_what_cannot_be_counted_is_one_line(tmp_path: Path) -> None:
    asked = analysis.campaign()
    config, parts = site(tmp_path, asked), write(tmp_path / "parts", sealed_of(asked, 10))
    with pytest.raises(DataError, match="serves commute, not 'other'"):
        count_parts(Processes(1), parts, config=config, campaign="other", round=1)
    with pytest.raises(DataError, match="`round` must be 1 to 1000, got 1001"):
        count_parts(Processes(1), parts, config=config, campaign="commute", round=1001)
    short = write(tmp_path / "short", [b"too short"] * 3)
    with pytest.raises(DataError, match="column 'sealed' must hold sealed reports of"):
        count_parts(Processes(1), short, config=config, campaign="commute", round=1)
    pl.DataFrame({"report": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(DataError, match="has no column 'sealed'"):
        count_parts(Processes(1), tmp_path / "other.parquet", config=config, campaign="commute", round=1)


def test_the_command_line_counts_parts(tmp_path: Path) -> None:
    asked = analysis.campaign()
    config, parts = site(tmp_path, asked), write(tmp_path / "parts", sealed_of(asked, 40))
    words = ["collect", "unseal", str(parts), "--config", str(config), "--campaign", "commute", "--round", "1"]
    shown = CliRunner().invoke(app, [*words, "--workers", "1"])
    assert shown.exit_code == 0 and "40 valid reports; set aside: 4 copy, 3 seal" in shown.output, shown.output
    machine = CliRunner().invoke(app, [*words, "--workers", "1", "--json"])
    assert '"n": 40' in machine.output and "everybody" not in machine.output


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Any]:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java: apt-get install openjdk-17-jre-headless")
    from pyspark.sql import SparkSession

    from dovetail.engine.spark import Spark, quiet

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(tmp_path / "local"), "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(tmp_path / "events"), "spark.eventLog.compress": "false",
        "spark.shuffle.compress": "false", "spark.driver.memory": "1g",
    }  # fmt: skip
    (tmp_path / "events").mkdir()
    with quiet():
        active = SparkSession.getActiveSession()
        if active is not None:
            active.stop()
        builder = SparkSession.builder.master("local[2]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        made = Spark(session, own=True)
    yield made
    made.close()


@pytest.mark.exhaust
def test_spark_counts_parts_as_a_batch_and_keeps_no_key(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = analysis.campaign()
    (tmp_path / "site").mkdir()
    config, sealed = site(tmp_path / "site", asked), sealed_of(asked, 200)
    monkeypatch.setattr(sealed_parts, "_AT_ONCE", 60)
    parts = write(tmp_path / "site" / "parts", sealed)
    found = count_parts(spark, parts, config=config, campaign="commute", round=1)
    assert told(found) == in_a_batch(asked, sealed)
    assert analysis.ANALYZER.opening is not None
    spelled = (tmp_path / "site" / "analyzer.key").read_text().split("x25519:")[1].split('"')[0].encode()
    raw = base64.urlsafe_b64decode(spelled + b"=" * (-len(spelled) % 4))
    assert len(raw) == 32
    wanted = [spelled, raw, raw.hex().encode(), base64.b64encode(raw)[:40], repr(raw).encode()]
    places = [place for folder in ("local", "events") for place in (tmp_path / folder).rglob("*")]
    seen = [place.read_bytes() for place in places if place.is_file()]
    assert any(b"SparkListener" in content for content in seen) and sum(map(len, seen)) > 200 * len(sealed[0])
    assert not any(one in content for one in wanted for content in seen)


def test_too_few_reports_are_not_estimated(tmp_path: Path) -> None:
    asked = analysis.campaign(minimum=50)
    config, parts = site(tmp_path, asked), write(tmp_path / "parts", sealed_of(asked, 40))
    found = count_parts(Processes(1), parts, config=config, campaign="commute", round=1)
    assert found.n == 40 and found.document()["estimates"] == {}


def test_public_groups_are_counted_apart(tmp_path: Path) -> None:
    asked = analysis.campaign(more='[groups]\nnames = ["a", "b"]')
    config, sealed = site(tmp_path, asked), sealed_of(asked, 60, ("a", "b"))
    found = count_parts(Processes(1), write(tmp_path / "parts", sealed), config=config, campaign="commute", round=1)
    assert told(found) == in_a_batch(asked, sealed)
    assert {name: one["n"] for name, one in found.document()["estimates"].items()} == {"": 60, "a": 30, "b": 30}


NEARLY_OPEN = 'name = "krr"\nk = 4\nepsilon = 12.0\ncategories = ["bus", "bike", "car", "on foot"]'
DUMMIES = 'trust = "shuffler"\n[dummies]\nepsilon = 1.0\ndelta = 1e-3\nreach = 13'


def test_what_stands_in_a_header_is_not_guessed(tmp_path: Path) -> None:
    asked = analysis.campaign(NEARLY_OPEN, promise=DUMMIES, delta="1e-2", minimum=10)
    config = site(tmp_path, asked)
    parts = write(tmp_path / "parts", analysis.seal(asked, [1] * 20, round=1))
    with pytest.raises(UnsupportedError, match="the analyzer counts its signed batches"):
        count_parts(Processes(1), parts, config=config, campaign="commute", round=1)


def test_files_of_people_who_send_dummies_are_not_opened(tmp_path: Path) -> None:
    story = Story()
    story.play()
    config = site(tmp_path, story.world.campaign, story.world.analyzer)
    parts = write(tmp_path / "parts", story.simulation.audit._entries(story.batch[1]))
    with pytest.raises(UnsupportedError, match=r"its people add dummies: the analyzer counts its signed batches\.$"):
        count_parts(Processes(1), parts, config=config, campaign="commute", round=1)
