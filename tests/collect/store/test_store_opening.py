"""Opening a store: schemas, versions, and every way in which a database refuses."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, event, inspect, select, text
from sqlalchemy.exc import IntegrityError
from tests.collect.servers import Postgres, free_port
from tests.collect.store.samples import BUSES, fill, report
from tests.waiting import PATIENCE

from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.engine import SCHEMA_VERSION, Database
from dovetail.collect.store.issuer_store import open_issuer_store
from dovetail.collect.store.shuffler_store import DatabaseShufflerStore, open_shuffler_store
from dovetail.collect.store.tables import ANALYZER, ISSUER, SHUFFLER
from dovetail.core.errors import ConfigError, StorageError

ROLES = [
    (open_shuffler_store, SHUFFLER, "shuffler"),
    (open_analyzer_store, ANALYZER, "analyzer"),
    (open_issuer_store, ISSUER, "issuer"),
]


@pytest.fixture
def database(lasting: str) -> Iterator[Database]:
    database = Database(lasting)
    yield database
    database.close()


@pytest.mark.parametrize(("opened", "schema", "role"), ROLES)
def test_an_empty_database_gets_exactly_the_tables_of_the_role(
    lasting: str, database: Database, opened: Callable[[str], Any], schema: MetaData, role: str
) -> None:
    for _ in range(2):
        opened(lasting).close()
        assert database.read(lambda connection: set(inspect(connection).get_table_names())) == {
            *schema.tables,
            SCHEMA_VERSION.name,
        }
    assert database.read(lambda connection: connection.scalars(select(SCHEMA_VERSION)).all()) == [f"{role}/1"]
    keys = database.read(
        lambda connection: {
            name: inspect(connection).get_pk_constraint(name)["constrained_columns"] for name in schema.tables
        }
    )
    assert keys == {name: list(table.primary_key.columns.keys()) for name, table in schema.tables.items()}


def test_a_state_that_nobody_knows_is_not_stored(lasting: str, database: Database) -> None:
    store = open_shuffler_store(lasting)
    store.open_round(BUSES, 1, now=0.0)
    store.close()
    for state in ("lost", "stuck"):
        with pytest.raises((StorageError, IntegrityError)) if state == "stuck" else nullcontext():
            database.write(lambda connection: connection.exec_driver_sql(f"UPDATE round SET state = '{state}'"))  # noqa: B023


def test_roles_share_no_table() -> None:
    assert set(SHUFFLER.tables) & set(ANALYZER.tables) == set()


@pytest.mark.parametrize(("opened", "other"), [(ROLES[0], ROLES[1]), (ROLES[1], ROLES[0])])
def test_the_database_of_the_other_role_is_refused(lasting: str, database: Database, opened: Any, other: Any) -> None:
    other[0](lasting).close()
    with pytest.raises(StorageError, match=f"belongs to the {other[2]}; the {opened[2]} needs one of its own"):
        opened[0](lasting)
    assert database.read(lambda connection: set(inspect(connection).get_table_names())) == {
        *other[1].tables,
        SCHEMA_VERSION.name,
    }


def before(*statements: str) -> Callable[[Connection], None]:
    """What somebody has done to a database before."""

    def work(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    return work


@pytest.mark.parametrize(
    ("work", "found"),
    [
        (before("CREATE TABLE report (id INTEGER)"), "of something else"),
        (before("CREATE TABLE schema_version (version TEXT)"), "of something else"),
        (
            before(
                "CREATE TABLE schema_version (version_num TEXT)", "INSERT INTO schema_version VALUES ('shuffler_4')"
            ),
            "shuffler_4",
        ),
        *(
            (
                before(
                    "CREATE TABLE schema_version (version TEXT)", f"INSERT INTO schema_version VALUES ('{version}')"
                ),
                version,
            )
            for version in ("shuffler/0", "shuffler/2", "shuffler/10")
        ),
    ],
    ids=["foreign", "no version", "before the first release", "older", "newer", "much newer"],
)
def test_tables_of_another_version_are_refused_in_one_line(
    lasting: str, database: Database, work: Callable[[Connection], None], found: str
) -> None:
    def shape(connection: Connection) -> dict[str, list[str]]:
        seen = inspect(connection)
        return {table: [each["name"] for each in seen.get_columns(table)] for table in seen.get_table_names()}

    database.write(work)
    was = database.read(shape)
    with pytest.raises(StorageError) as refused:
        open_shuffler_store(lasting)
    assert str(refused.value) == (
        f"{database.name} has tables {found}, this version of Dovetail knows shuffler/1: "
        "use the version that made them, or an empty database."
    )
    assert database.read(shape) == was


def test_tables_of_others_that_bear_other_names_are_left_alone(lasting: str, database: Database) -> None:
    database.write(before("CREATE TABLE spatial_ref_sys (srid INTEGER)"))
    open_shuffler_store(lasting).close()
    assert "spatial_ref_sys" in database.read(lambda connection: inspect(connection).get_table_names())


def test_durability_is_switched_on(tmp_path: Path) -> None:
    store = open_shuffler_store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    for pragma, wanted in {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}.items():
        statement = text(f"PRAGMA {pragma}")
        assert store._database.read(lambda connection: connection.scalar(statement)) == wanted  # noqa: B023
    store.close()


def test_a_server_that_does_not_wait_for_its_disk_is_told_to(postgres: Postgres) -> None:
    url = postgres.database("store")
    postgres.execute("ALTER DATABASE store SET synchronous_commit = off")
    store = open_shuffler_store(url)
    assert store._database.read(lambda connection: connection.scalar(text("SHOW synchronous_commit"))) == "on"
    store.close()
    postgres.execute("ALTER DATABASE store RESET synchronous_commit")


@pytest.mark.parametrize("url", ["", "store.sqlite", "mysql://user:secret@host/name", "sqlite//x", "postgres://h/n"])
def test_an_address_that_names_no_known_database_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="`store` must be a URL such as sqlite:///") as refused:
        open_shuffler_store(url)
    assert "secret" not in str(refused.value)


def said(error: pytest.ExceptionInfo[StorageError]) -> str:
    """The message, which is one line and holds no statement, value or password."""
    message = str(error.value)
    assert "\n" not in message
    assert not any(word in message for word in ("SELECT", "INSERT", "BEGIN", "sqlalche", "secret"))
    return message


def test_a_locked_database_says_so_and_stores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = open_shuffler_store(f"sqlite:///{path}?timeout=0.05")
    store.open_round(BUSES, 1, now=0.0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError) as refused:
        store.accept([report(1)])
    assert "store.sqlite is locked by another process" in said(refused)
    assert not store.ready()
    other.execute("ROLLBACK")
    other.close()
    assert store.ready()
    assert store.tags(BUSES, [1]) == []
    store.close()


def test_a_locked_row_on_a_server_says_so(postgres: Postgres) -> None:
    url = postgres.database("store")
    store, other = open_shuffler_store(url), Database(url)
    store.open_round(BUSES, 1, now=0.0)
    with other.engine.connect() as connection, pytest.raises(StorageError) as refused:
        connection.execute(text("SELECT * FROM round FOR UPDATE"))
        store._database.write(
            lambda mine: (mine.execute(text("SET lock_timeout = 50")), mine.execute(text("DELETE FROM round")))
        )
    assert "is locked by another process" in said(refused)
    store.close()
    other.close()


def test_a_full_database_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    store = open_shuffler_store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    reports = fill(store, range(5))
    store._database.read(lambda connection: connection.execute(text("PRAGMA max_page_count = 40")))
    before = store.rounds(BUSES)
    with pytest.raises(StorageError) as refused:
        store.accept([report(device, size=1000) for device in range(100, 400)])
    assert "the disk is full" in said(refused)
    assert store.rounds(BUSES) == before
    assert store.fetch(BUSES, [(1, item.tag) for item in reports]) == [item.sealed for item in reports]
    store.close()


FULL = """
import logging, resource, sys
from pathlib import Path
from tests.collect.store.samples import fill
from dovetail.core.errors import StorageError
from dovetail.collect import logs as server_log
from dovetail.collect.store.shuffler_store import open_shuffler_store

server_log.setup(sys.stderr)
place = Path(sys.argv[1])
store = open_shuffler_store(f"sqlite:///{place}")
fill(store, range(5))
assert store.ready()
size = Path(f"{place}-wal").stat().st_size
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))  # the log of the database cannot grow: a full disk
for device in range(2):
    try:
        fill(store, [10 + device])
    except StorageError:
        print("refused", store.ready())
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
print("room", store.ready(), store.faults(""))
fill(store, [10])
"""


@pytest.mark.exhaust
def test_a_store_on_a_full_disk_is_not_ready_until_there_is_room_and_the_log_says_both(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "store.sqlite")],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["refused False", "refused False", "room True {}"]
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in told] == ["the store takes nothing", "the store works again"]


def test_a_database_in_no_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as refused:
        open_shuffler_store(f"sqlite:///{tmp_path / 'none' / 'store.sqlite'}")
    assert "cannot be opened; is there such a folder" in said(refused)


def test_a_database_that_only_reads_says_so(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    open_shuffler_store(f"sqlite:///{path}").close()
    with pytest.raises(StorageError) as refused:
        open_shuffler_store(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert "cannot be written" in said(refused)


def test_a_store_that_may_not_write_is_not_ready(store: DatabaseShufflerStore) -> None:
    sqlite = store._database.engine.dialect.name == "sqlite"
    forbid = "PRAGMA query_only = ON" if sqlite else "SET TRANSACTION READ ONLY"
    event.listen(store._database.engine, "begin", lambda connection: connection.exec_driver_sql(forbid), insert=True)
    assert not store.ready()


def test_a_file_that_is_no_database_says_so(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes(b"not a database at all, but long enough to look at " * 50)
    with pytest.raises(StorageError) as refused:
        open_shuffler_store(f"sqlite:///{path}")
    assert "is not a database" in said(refused)


def test_a_server_that_does_not_answer_says_so() -> None:
    with pytest.raises(StorageError) as refused:
        open_shuffler_store(f"postgresql://user:secret@127.0.0.1:{free_port()}/name")
    assert "the database name cannot be reached" in said(refused)


def test_a_database_that_the_server_does_not_have_says_so(postgres: Postgres) -> None:
    with pytest.raises(StorageError) as refused:
        open_shuffler_store(postgres.url("missing"))
    assert "missing" in said(refused)


@pytest.mark.exhaust
def test_a_store_goes_on_when_its_server_comes_back(postgres: Postgres) -> None:
    url = postgres.database("store")
    store = open_shuffler_store(url)
    fill(store, [1])
    postgres.process.restart()
    postgres.execute("SELECT 1")
    assert store.ready()
    assert store.accept([report(1), report(2)]) == ["duplicate", "new"]
    store.close()
