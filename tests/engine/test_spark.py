"""Spark gives the files of the oracle, whatever fails on the way, and tells nobody the secret. Needs a JVM."""

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine import faults
from tests.engine.oracle import SECRET, config, table, write_table
from tests.engine.test_draw import draw, files

from dovetail.core.errors import DataError, StorageError, UnsupportedError
from dovetail.engine import run, spark
from dovetail.engine.rows import Secret
from dovetail.job.config import parse_config

REPOSITORY = Path(__file__).parent.parent.parent
SCRIPT = """
import sys
from pathlib import Path
import pyspark.sql
from pyspark import cloudpickle
from tests.engine import faults
from tests.engine.oracle import config
from tests.engine.test_draw import draw
from dovetail.engine.spark import Spark
cloudpickle.register_pickle_by_value(faults)
master, place = sys.argv[1], Path(sys.argv[2])
builder = pyspark.sql.SparkSession.builder.config("spark.ui.enabled", "false").config("spark.local.dir", str(place))
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
session = (builder.remote(master) if master.startswith("local[") else builder.master(master)).getOrCreate()
engine = Spark(session)
if not master.startswith("local["):
    plain = engine.exchange
    def killing(source, pack, unpack, **rest):
        deadly = faults.KillingUnpack(unpack, str(place / "killed")) if "Reports" in repr(unpack) else unpack
        return plain(source, pack, deadly, **rest)
    engine.exchange = killing
for shuffler in sys.argv[3:]:
    asked = config(place / "in", randomizer="unary", shuffler=shuffler)
    draw(asked, place / "there" / shuffler, parts=7, engine=engine)
print("drawn", (place / "killed").exists())
session.stop()
"""


def need_spark() -> None:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java: apt-get install openjdk-17-jre-headless")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def engine(home: Path) -> Iterator[spark.Spark]:
    need_spark()
    with spark.quiet():
        from pyspark import cloudpickle
        from pyspark.sql import SparkSession

        cloudpickle.register_pickle_by_value(faults)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {
            "spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(home / "local"), "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(home / "events"), "spark.eventLog.compress": "false",
            "spark.shuffle.compress": "false", "spark.driver.memory": "1g",
        }  # fmt: skip
        (home / "events").mkdir()
        builder = SparkSession.builder.master("local[2,4]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        made = spark.Spark(session, own=True)
    yield made
    made.close()


def same(one: Path, two: Path) -> bool:
    return [file.read_bytes() for file in files(one)] == [file.read_bytes() for file in files(two)] != []


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("randomizer", "shuffler", "parts", "text"),
    [
        ("krr", "uniform", 1, False),
        ("unary", "within_groups", 7, True),
        ("laplace", "uniform", 24, False),
        ("krr", "noisy_sort", 5, True),
        ("krr", "mallows", 3, False),
        ("krr", "planar", 2, False),
        ("krr", "identity", 5, True),
    ],
)
def test_spark_gives_the_files_of_one_process(
    randomizer: str, shuffler: str, parts: int, text: bool, engine: spark.Spark, tmp_path: Path
) -> None:
    settings = config(write_table(tmp_path / "in", table(300, text=text)), randomizer=randomizer, shuffler=shuffler)
    draw(settings, tmp_path / "spark", parts=parts, engine=engine)
    draw(settings, tmp_path / "one", parts=parts)
    assert same(tmp_path / "spark", tmp_path / "one")
    if shuffler == "identity":  # rows of a data frame stand in no order
        return
    plain, frame = engine.source, engine.session.read.parquet(str(tmp_path / "in"))
    engine.source = lambda data, _, further: plain(data, frame, further)  # type: ignore[method-assign]
    try:
        draw(settings, tmp_path / "frame", parts=parts, engine=engine)
    finally:
        engine.source = plain  # type: ignore[method-assign]
    assert same(tmp_path / "frame", tmp_path / "one")


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffler", ["uniform", "noisy_sort"])
def test_attempts_that_fail_in_both_stages_change_nothing(shuffler: str, engine: spark.Spark, tmp_path: Path) -> None:
    settings = config(write_table(tmp_path / "in", table(300)), shuffler=shuffler)
    plain = engine.exchange

    def failing(source: Any, pack: Any, unpack: Any, **rest: Any) -> Any:
        return plain(source, faults.FailingPack(pack), faults.FailingUnpack(unpack), **rest)

    engine.exchange = failing  # type: ignore[method-assign]
    try:
        found = draw(settings, tmp_path / "spark", parts=5, engine=engine)[2]
    finally:
        engine.exchange = plain  # type: ignore[method-assign]
    draw(settings, tmp_path / "one", parts=5)
    assert same(tmp_path / "spark", tmp_path / "one") and found.retried >= 4


@pytest.mark.exhaust
def test_a_notebook_releases_a_data_frame_and_spark_keeps_no_secret(
    engine: spark.Spark, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Secret, "fresh", classmethod(lambda cls: cls(SECRET)))
    people = table(500).with_columns(id=table(500)["id"] + (7 << 40))
    frame = engine.session.read.parquet(str(write_table(tmp_path / "in", people)))
    settings = config(tmp_path / "unread")
    report = run(settings, table=frame, out=tmp_path / "out", ledger=tmp_path / "ledger").document()
    assert report["engine"]["name"] == "spark" and report["estimates"]["overall"]["n"] == 500
    again = run(settings, table=frame, out=tmp_path / "out", ledger=tmp_path / "ledger").document()
    assert again["release"]["number"] == 1
    spelled = [SECRET.hex(), repr(SECRET), str(list(SECRET))]
    wanted = [SECRET, base64.b64encode(SECRET), *(one.encode() for one in spelled)]
    wanted += [int(one).to_bytes(8, "little") for one in people["id"]]
    wanted += [int(one).to_bytes(8, "big") for one in people["id"]]
    wanted.append((tmp_path / "ledger" / "key").read_bytes())
    seen = [
        file.read_bytes() for folder in ("local", "events") for file in (home / folder).rglob("*") if file.is_file()
    ]
    assert sum(len(content) for content in seen) > 500 * 17 and any(b"SparkListener" in content for content in seen)
    assert not any(one in content for one in wanted for content in seen)


@pytest.mark.exhaust
def test_what_a_task_refuses_is_one_line_without_a_value(engine: spark.Spark, tmp_path: Path) -> None:
    people = table(300)
    frame = engine.session.read.parquet(str(write_table(tmp_path / "in", people.vstack(people[:5]))))
    options: dict[str, Any] = {"out": tmp_path / "out", "ledger": tmp_path / "ledger"}
    with pytest.raises(DataError, match="'id': 5 people stand in more than one row"):
        run(config(tmp_path), table=frame, **options)
    with pytest.raises(DataError, match="has no column 'answer'"):
        run(config(tmp_path), table=frame.drop("answer"), **options)
    with pytest.raises(UnsupportedError, match="rows of a data frame on Spark stand in no order"):
        run(config(tmp_path, shuffler="identity"), table=frame, **options)
    people.write_parquet(tmp_path / "people.parquet")
    engine.session.read.parquet(str(tmp_path / "people.parquet")).createOrReplaceTempView("people")
    asked = {**config(tmp_path), "data": {**config(tmp_path)["data"], "path": None, "table": "people"}}
    assert engine.source(parse_config(asked).data).n == 300
    with pytest.raises(DataError, match="Spark's catalogue has no table 'nobody'"):
        engine.source(parse_config({**asked, "data": {**asked["data"], "table": "nobody"}}).data)
    with pytest.raises(UnsupportedError, match="`table` must be a Spark data frame, got a value of type DataFrame"):
        run(config(tmp_path), table=people, **options)
    assert not (tmp_path / "out").exists()


def elsewhere(master: str, place: Path, *shufflers: str) -> str:
    need_spark()
    write_table(place / "in", table(300, text=True))
    paths = os.pathsep.join([str(REPOSITORY), *([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [])])
    own = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    words = [sys.executable, "-W", "ignore", "-c", SCRIPT, master, str(place), *shufflers]
    done = subprocess.run(words, env=own, capture_output=True, text=True, check=False)
    assert "drawn" in done.stdout, done.stderr[-3000:]
    for shuffler in shufflers:
        draw(config(place / "in", randomizer="unary", shuffler=shuffler), place / "here" / shuffler, parts=7)
        assert same(place / "there" / shuffler, place / "here" / shuffler)
    return done.stdout


@pytest.mark.exhaust
def test_connect_gives_the_files_of_one_process(tmp_path: Path) -> None:
    assert "drawn False" in elsewhere("local[2]", tmp_path, "within_groups", "noisy_sort", "mallows", "planar")


@pytest.mark.exhaust
def test_an_executor_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    assert "drawn True" in elsewhere("local-cluster[2,1,1024]", tmp_path, "within_groups")


def test_closures_that_spark_would_write_to_disk_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="would make Spark write the secret of the release to disk"):
        spark.checked(b"x" * (spark.MOST_CLOSURE + 1))


def test_errors_of_spark_become_one_line() -> None:
    line = "the table has changed; nothing was released."
    ours = f"Traceback\n  File x\ndovetail_protocol.errors.DataError: {line}\n\n\tat java"
    assert isinstance(spark.told(RuntimeError(ours)), DataError)
    assert str(spark.told(RuntimeError(ours))) == line
    other = spark.told(RuntimeError("Job aborted.\n\tat org.apache.spark"))
    assert isinstance(other, StorageError) and str(other) == "Spark gave up: Job aborted; nothing was released."


class PlainSession:
    """A session far away whose network is not encrypted."""

    class conf:
        @staticmethod
        def get(name: str, default: str) -> str:
            return {"spark.master": "spark://far.example:7077"}.get(name, default)


def test_a_plain_network_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UnsupportedError, match=r"spark://far.example:7077 would send the secret .* plain network"):
        spark.Spark(PlainSession())


@pytest.mark.exhaust
def test_without_java_the_remedy_is_all_that_is_said(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    write_table(tmp_path / "in", table(60))
    (tmp_path / "job.toml").write_text(
        'schema_version = 1\nmode = "release"\n[data]\npath = "in"\nperson = "id"\nprivate = "answer"\n'
        'categories = ["a", "b", "c"]\n[randomize]\nepsilon = 2.0\n'
    )
    words = ["run", "job.toml", "--engine", "spark", "--out", "out", "--ledger", "ledger"]
    own = {**os.environ, "JAVA_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "dovetail", *words], env=own, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stderr.startswith("error: Spark needs Java 17 or later, and JAVA_HOME=")
    assert done.stderr.count("\n") == 1 and not list(tmp_path.glob(".out*"))


@pytest.mark.exhaust
def test_workers_without_dovetail_are_one_line(tmp_path: Path) -> None:
    need_spark()
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH= exec {sys.executable} -S -I "$@"\n')
    program.chmod(0o755)
    script = "from dovetail.engine.spark import start; start('local[1]')"
    own = {**os.environ, "PYSPARK_PYTHON": str(program), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=own, capture_output=True, text=True, check=False)
    assert "UnsupportedError: Spark's workers" in done.stderr.splitlines()[-1]
    assert "at org.apache" not in done.stderr and "WARN" not in done.stderr
