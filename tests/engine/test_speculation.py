"""Two workers of one cluster, a task that does not end, and Spark's second copy of it: the release is the same."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.oracle import config, table, write_table
from tests.engine.test_draw import draw
from tests.engine.test_spark import REPOSITORY, need_spark, same

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
master, place, password = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
settings = {
    "spark.authenticate": "true", "spark.authenticate.secret": password, "spark.network.crypto.enabled": "true",
    "spark.ui.enabled": "false", "spark.local.dir": str(place / "local"), "spark.executor.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.executor.cores": "1", "spark.cores.max": "2",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s", "spark.speculation": "true",
    "spark.speculation.interval": "100ms", "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5", "spark.speculation.minTaskRuntime": "100ms",
}
builder = pyspark.sql.SparkSession.builder.master(master)
for name, value in settings.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
engine = Spark(session)
plain = engine.exchange
def waiting(source, pack, unpack, **rest):
    slow = faults.WaitingUnpack(unpack, str(place / "copied")) if "Reports" in repr(unpack) else unpack
    return plain(source, pack, slow, **rest)
engine.exchange = waiting
asked = config(place / "in", randomizer="unary", shuffler="within_groups")
found = draw(asked, place / "there", parts=5, engine=engine)[2]
print("drawn", (place / "copied").exists(), found.retried)
session.stop()
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A master and a worker on each of two loopback addresses, which Spark takes for two machines."""
    need_spark()
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    password, starter = secrets.token_hex(16), Path(pyspark.__file__).parent / "bin" / "spark-class"
    (tmp_path / "spark.conf").write_text(f"spark.authenticate true\nspark.authenticate.secret {password}\n")
    common = ["--properties-file", str(tmp_path / "spark.conf"), "--webui-port", "0"]
    deploy, address = "org.apache.spark.deploy", f"spark://127.0.0.1:{port}"
    commands = [("127.0.0.1", [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), *common])]
    for host in ("127.0.0.2", "127.0.0.3"):
        folder = ["--work-dir", str(tmp_path / host), "--cores", "1", "--memory", "600m"]
        commands.append((host, [f"{deploy}.worker.Worker", "--host", host, *folder, *common, address]))
    started = []
    for host, words in commands:
        own = {**os.environ, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable,
               "PYTHONPATH": paths()}  # fmt: skip
        with (tmp_path / f"{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen([str(starter), *words], env=own, stdout=log, stderr=log))
    yield address, password
    for process in reversed(started):
        process.terminate()
        process.wait()


def paths() -> str:
    return os.pathsep.join([str(REPOSITORY), *([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [])])


@pytest.mark.exhaust
def test_a_task_that_is_copied_to_another_machine_changes_nothing(cluster: tuple[str, str], tmp_path: Path) -> None:
    write_table(tmp_path / "in", table(300, text=True))
    own = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths()}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, cluster[0], str(tmp_path), cluster[1]],
        env=own, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "drawn True 0" in done.stdout, done.stdout + done.stderr[-3000:]
    draw(config(tmp_path / "in", randomizer="unary", shuffler="within_groups"), tmp_path / "here", parts=5)
    assert same(tmp_path / "there", tmp_path / "here")
