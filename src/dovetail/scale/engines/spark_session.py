"""Starting a Spark session, or saying in one line why there is none: Java, the workers' Python, the address."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from dovetail.core.errors import StorageError, UnreachableError, UnsupportedError
from dovetail.core.extras import require
from dovetail.scale.engines.spark_errors import quiet, told

PATIENCE = 10.0  # seconds until a host that does not answer is given up
_MASTER = re.compile(r"local(-cluster)?(\[.+\])?|(spark|sc|k8s)://.+|yarn(-.+)?")
_PORTS = {"spark": 7077, "sc": 15002}
_REMEDY = "apt-get install openjdk-17-jre-headless, or set JAVA_HOME"
_LOCAL = {
    "spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1", "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR",
}  # fmt: skip


def session_at(master: str) -> Any:
    """A session of Spark at this address.

    Raises
    ------
    MissingExtraError
        Without pyspark.
    UnsupportedError
        Without Java, or a Python for the workers.
    UnreachableError
        When nobody listens there.
    """
    sql = require("pyspark.sql", extra="spark")
    need_address(master)
    remote = master.startswith("sc://")
    if not remote:
        need_java()
        need_python()
    builder = sql.SparkSession.builder.appName("dovetail")
    settings = _LOCAL if master.startswith("local") else {}
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with quiet(), _own_interrupts():
            if not remote:
                _begin({"spark.app.name": "dovetail", "spark.master": master, **settings})
            return (builder.remote(master) if remote else builder.master(master)).getOrCreate()
    except StorageError:
        raise
    except Exception as error:
        if "unresponsive" in str(error):
            raise UnreachableError(f"{master}: no Spark answers there; check --master.") from None
        raise told(error) from None


def need_address(master: str) -> None:
    """Refuse what is no address of Spark, and one where nobody listens: Spark itself would try for minutes."""
    if not _MASTER.fullmatch(master):
        raise UnsupportedError(
            f"`master` must be local[4], spark://host:7077, sc://host:15002, yarn or k8s://..., got {master!r}."
        )
    kind, _, rest = master.partition("://")
    if kind not in _PORTS:
        return
    fault = ""
    for one in re.split(r"[/;]", rest)[0].split(","):
        host, _, port = one.rpartition(":") if re.search(r":\d+$", one) else (one, "", str(_PORTS[kind]))
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
            return
        except (OSError, OverflowError) as error:
            fault = getattr(error, "strerror", None) or str(error)
    raise UnreachableError(f"{master}: nobody answers there ({fault}); check --master, and that Spark is running.")


def need_java() -> None:
    """Refuse to start Spark where it would find no Java; its scripts complain in their own words."""
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home) / "bin" / "java", os.X_OK):
        raise UnsupportedError(f"Spark needs Java 17 or later, and JAVA_HOME={home} has no bin/java: {_REMEDY}.")
    if not home and shutil.which("java") is None:
        raise UnsupportedError(f"Spark needs Java 17 or later, and none was found: {_REMEDY}.")


def need_python() -> None:
    """Give the workers this Python, unless PYSPARK_PYTHON names one; refuse a name without a program."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ[name] = os.environ.get(name) or sys.executable
    named = os.environ["PYSPARK_PYTHON"]
    if shutil.which(named) is None:
        raise UnsupportedError(
            f"PYSPARK_PYTHON={named} is no program that runs here: name the Python of all machines, or unset it."
        )


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Ctrl-C stays what it was: Spark would ask Java to stop from within a question to Java, which fails loudly."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _begin(settings: dict[str, str]) -> None:
    """Start Java; its remarks, and tracebacks of tasks that Spark tries again, go to a file without a name."""
    pyspark, gateway = require("pyspark", extra="spark"), require("pyspark.java_gateway", extra="spark")
    started = pyspark.SparkContext._gateway is not None
    if started or os.environ.get("DOVETAIL_DEBUG") or {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"} & {*os.environ}:
        return
    conf = pyspark.SparkConf().setAll(list(settings.items()))
    with TemporaryFile() as log:
        try:
            java = gateway.launch_gateway(conf, {"stdout": log, "stderr": log})
        except Exception:
            log.seek(0)
            raise _no_start(log.read().decode(errors="replace")) from None
    pyspark.SparkContext(conf=conf, gateway=java)


def _no_start(log: str) -> Exception:
    """Why Java ended before Spark had begun."""
    if "UnsupportedClassVersionError" in log or "Unrecognized option" in log:
        return UnsupportedError(f"Spark needs Java 17 or later, and the one that was found is older: {_REMEDY}.")
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    cause = next((line for line in lines if "rror" in line or "xception" in line), (lines or ["it said nothing"])[-1])
    return StorageError(f"Spark's Java ended at once: {cause[:200].rstrip('.')}; nothing was released.")
