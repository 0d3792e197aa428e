"""Why there is no Spark is one line, said before Java or a network is waited for. No JVM is started."""

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from dovetail.core.errors import DataError, StorageError, UnreachableError, UnsupportedError
from dovetail.engine import spark as spark_errors
from dovetail.engine import spark as spark_session
from dovetail.engine.processes import Processes


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize("kind", ["spark", "sc"])
def test_an_address_where_nobody_listens_is_not_waited_for(kind: str) -> None:
    at = f"{kind}://127.0.0.1:{closed_port()}"
    with pytest.raises(UnreachableError, match=f"{at}: nobody answers there .*; check --master"):
        spark_session.need_address(at)
    with pytest.raises(UnreachableError, match="nobody answers there"):
        spark_session.need_address(f"{kind}://127.0.0.1:99999999")


def test_one_master_of_several_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        spark_session.need_address(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{port}")
        spark_session.need_address(f"sc://127.0.0.1:{port}/;user_id=me")


@pytest.mark.parametrize("master", ["foo", "spark:/host", "http://host:7077", ""])
def test_what_is_no_address_is_refused(master: str) -> None:
    with pytest.raises(UnsupportedError, match=r"`master` must be local.4., spark://host:7077"):
        spark_session.need_address(master)


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]", "local-cluster[2,1,1024]", "yarn", "k8s://x"])
def test_addresses_that_spark_looks_up_itself_pass(master: str) -> None:
    spark_session.need_address(master)


def test_a_missing_java_is_said_before_scripts_complain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"JAVA_HOME=.* has no bin/java: apt-get install openjdk-17"):
        spark_session.need_java()
    for home in ("", None):
        monkeypatch.setenv("JAVA_HOME", "") if home == "" else monkeypatch.delenv("JAVA_HOME")
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(UnsupportedError, match="and none was found: apt-get install openjdk-17"):
            spark_session.need_java()
    (tmp_path / "java").touch(mode=0o755)
    spark_session.need_java()


def test_the_python_of_workers_is_this_one_or_one_that_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "")
    spark_session.need_python()
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/such/python")
    with pytest.raises(UnsupportedError, match="PYSPARK_PYTHON=/no/such/python is no program that runs here"):
        spark_session.need_python()


LINES: list[tuple[str, type[Exception], str]] = [
    ('java.io.IOException: Cannot run program "/no/python": error=2', UnsupportedError, "find no program /no/python"),
    ("x\nModuleNotFoundError: No module named 'dovetail'\n", UnsupportedError, "a Python that lacks dovetail"),
    ("[PYTHON_VERSION_MISMATCH] 3.12 3.11", UnsupportedError, "run another Python than this one: set PYSPARK_PYTHON"),
    ("Python worker exited unexpectedly (crashed)", StorageError, "workers end at once"),
    ("java.io.IOException: No space left on device", StorageError, "a disk is full"),
    ("[FAILED_READ_FILE.NO_HINT] file:///a/b.parquet.\nat", DataError, "/a/b.parquet: is not readable as Parquet"),
    ("Answer from Java side is empty", StorageError, "Spark has gone away; start it again"),
    ("An error occurred while calling o57.collect.\n: org.a.SparkException: Job aborted.\n\tat x", StorageError,
     "Spark gave up: Job aborted; nothing"),
    ("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03", DataError, "no table at [data] `path`: [PATH"),
    ("x\n: java.lang.RuntimeException: Class a.S3 not found", DataError, "Spark finds no table at [data] `path`"),
    ("a.BException: Lost task 0.0 in stage 0.0 (TID 0) (h executor driver): a.DException:\nit broke.\n",
     StorageError, "Spark gave up: it broke; nothing"),
    ("Error from python worker:\n  SyntaxError", StorageError, "their Python is too old: set PYSPARK_PYTHON"),
    ("", StorageError, "Spark gave up: RuntimeError; nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "line"), LINES, ids=[line for *_, line in LINES])
def test_what_spark_raises_is_one_line_with_the_remedy(text: str, kind: type[Exception], line: str) -> None:
    told = spark_errors.told(RuntimeError(text))
    assert type(told) is kind and line in str(told) and "\n" not in str(told)


def test_a_java_that_is_too_old_or_ends_is_told_from_its_log() -> None:
    old = spark_session._no_start("Error: LinkageError\njava.lang.UnsupportedClassVersionError: x\n")
    assert isinstance(old, UnsupportedError) and "is older: apt-get install" in str(old)
    short = spark_session._no_start("WARNING: x\nError: Could not reserve enough space.\n")
    assert str(short) == "Spark's Java ended at once: Error: Could not reserve enough space; nothing was released."
    assert "it said nothing" in str(spark_session._no_start(""))


def _blocked() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.exhaust
@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows")
def test_processes_leave_an_interruption_to_the_one_that_began_them() -> None:
    engine = Processes(2)
    try:
        assert engine._start(_blocked, ()).result()
    finally:
        engine.close()
    assert not _blocked()
