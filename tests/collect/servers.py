"""Servers of one's own on free loopback ports: our apps, PostgreSQL and Mosquitto, for tests and soak runs.

The last two start in well under a second, and can be killed and started again on the same data.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from starlette.types import ASGIApp
from tests.waiting import PATIENCE, until

from dovetail.collect.http import bind, url_of, uvicorn_server

_USER = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root


class Absent(Exception):
    """A server's program is not installed; the message says which."""


def program(name: str, *places: str) -> str:
    """The path of an installed program; Absent if there is none."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/bin", *places]))
    if found is None:
        raise Absent(f"{name} is not installed")
    return found


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def serving(app: ASGIApp, **tls: Path | None) -> Iterator[str]:
    """The URL of an app on the real server, in a thread of this process; waited for at either end."""
    bound, server = bind("127.0.0.1:0"), uvicorn_server(app, **tls)
    thread = Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        until(lambda: server.started, alive=thread.is_alive)
        yield url_of(bound, tls=bool(tls.get("certificate")))
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        bound.close()
        assert not thread.is_alive()


@dataclass
class Process:
    """One server process that can be started, stopped, killed and started again."""

    command: Sequence[str]
    port: int
    log: Path
    user: str | None = None
    running: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it and wait until its port answers; after a kill its old workers may hold it up for a moment."""
        try:
            until(self._answers, OSError)
        except AssertionError:
            self.kill()
            raise RuntimeError(f"{self.command[0]} did not start: {self.log.read_text()[-2000:]}") from None

    def _answers(self) -> bool:
        if self.running is None or self.running.poll() is not None:
            self.running = self._spawn()
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE):
            return True

    def stop(self, sign: int = signal.SIGINT) -> None:
        """End it in good order (PostgreSQL's fast stop), and wait for that."""
        if self.running is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.running.send_signal(sign)
        try:
            self.running.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.running.kill()
            self.running.wait()
        self.running = None

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **_as_user(self.user)
            )

    def kill(self) -> None:
        """As a power cut would: no good-bye, and no clean-up."""
        self.stop(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it and start it again on the same data."""
        self.stop()
        self.start()


@dataclass
class Postgres:
    """A cluster of its own; `durable=False` leaves out fsync, for tests that do not cut the power."""

    durable: bool = False
    folder: Path = field(init=False)
    process: Process = field(init=False)

    def __post_init__(self) -> None:
        initdb, server = (program(name, *_postgres_folders()) for name in ("initdb", "postgres"))
        self.folder = Path(tempfile.mkdtemp(prefix="dovetail-postgres-"))
        if _USER:
            shutil.chown(self.folder, _USER)
        made = [initdb, "-D", str(self.folder / "data"), "-U", "dovetail", "-A", "trust", "-E", "UTF8"]
        made += ["--locale=C", "--no-sync", "--no-instructions"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, **_as_user(_USER))
        port = free_port()
        settings = {"listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": str(self.folder)}
        quick = {"fsync": "off", "full_page_writes": "off"}
        settings |= {"recovery_init_sync_method": "syncfs"} if self.durable else quick
        command = [server, "-D", str(self.folder / "data")]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.process = Process(command, port, self.folder / "log", _USER)

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        self.process.start()
        self.execute("SELECT 1")

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Rows of an administrator's statement; waits while the server recovers from a kill."""
        import psycopg

        def answered() -> tuple[list[Any]]:
            with psycopg.connect(self.url(database), autocommit=True) as connection:
                cursor = connection.execute(statement.encode())
                return (cursor.fetchall() if cursor.description else [],)

        (rows,) = until(answered, psycopg.OperationalError)
        return list(rows)

    def database(self, name: str) -> str:
        """The URL of an empty database; one that exists is emptied, which is quicker than a new one."""
        if self.execute(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
            self.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public", name)
        else:
            self.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def url(self, name: str) -> str:
        return f"postgresql://dovetail@127.0.0.1:{self.process.port}/{name}"

    def remove(self) -> None:
        """Stop it and delete its data, which are not worth writing down first."""
        self.process.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class Mosquitto:
    """A broker that keeps its sessions and queued messages on disk."""

    folder: Path = field(init=False)
    process: Process = field(init=False)

    def __post_init__(self) -> None:
        broker = program("mosquitto", "/usr/sbin", "/usr/local/sbin")
        self.folder = Path(tempfile.mkdtemp(prefix="dovetail-mosquitto-"))
        port = free_port()
        lines = [f"listener {port} 127.0.0.1", "allow_anonymous true", "persistence true"]
        lines += [f"persistence_location {self.folder}/", "autosave_interval 1", "max_queued_messages 0"]
        lines += ["user root"] if os.geteuid() == 0 else []  # its folder is ours
        configuration = self.folder / "mosquitto.conf"
        configuration.write_text("\n".join(lines) + "\n")
        self.process = Process([broker, "-c", str(configuration)], port, self.folder / "log")

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        self.process.start()

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.process.port}"

    def remove(self) -> None:
        """Stop it and delete its data."""
        self.process.stop(signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """A running PostgreSQL, removed at the end; Absent where it is not installed."""
    server = Postgres(durable)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@contextlib.contextmanager
def mosquitto() -> Iterator[Mosquitto]:
    """A running broker, removed at the end; Absent where it is not installed."""
    server = Mosquitto()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def _as_user(user: str | None) -> dict[str, Any]:
    """How to start a process as this user, in a folder that it may stand in."""
    return {"user": user, "group": user, "extra_groups": [], "cwd": "/"} if user else {}


def _postgres_folders() -> list[str]:
    return [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
