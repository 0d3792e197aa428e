"""Kills of real processes, on both databases, over a broker and with changed keys; `make soak` does two hundred."""

import sys
from pathlib import Path

import pytest
from tests.collect import soak, soak_devices
from tests.collect.servers import Postgres, mosquitto

ROLES = ("shuffler", "analyzer")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills are signals")


def expect_sound(found: soak.Found, kills: int) -> None:
    assert found.sound, found
    assert sum(found.kills.values()) == kills and set(ROLES) <= found.status.keys()
    assert found.verdict.acknowledged > 50 and found.batches > 1  # there was something to lose


@pytest.mark.exhaust
def test_ten_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    expect_sound(soak.soak(tmp_path, kills=10), 10)


@pytest.mark.exhaust
def test_kills_lose_nothing_and_double_nothing_of_batches_in_parts(tmp_path: Path) -> None:
    found = soak.soak(tmp_path, kills=6, part_reports=5, seed=5)
    expect_sound(found, 6)
    assert found.put > 2 * found.batches


@pytest.mark.exhaust
def test_kills_lose_nothing_and_double_nothing_on_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    stores = (postgres.database("soak-shuffler"), postgres.database("soak-analyzer"))
    expect_sound(soak.soak(tmp_path, kills=4, stores=stores, seed=2), 4)


@pytest.mark.exhaust
def test_kills_of_one_of_several_shufflers_and_a_restart_of_all_lose_nothing_and_double_nothing(
    tmp_path: Path, postgres: Postgres
) -> None:
    stores = (postgres.database("soak-shuffler"), postgres.database("soak-analyzer"))
    found = soak.soak(tmp_path, kills=4, stores=stores, processes_of_shuffler=3, seed=4)
    expect_sound(found, 4)
    assert found.kills["shuffler"] > 1


@pytest.mark.exhaust
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_kills_of_issuer_and_relay_too_lose_nothing_and_nobody_counts_twice(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    stores: tuple[str | None, ...] = (None, None, None)
    if store == "postgresql":
        postgres = request.getfixturevalue("postgres")
        stores = tuple(postgres.database(f"soak-tokens-{role}") for role in ("shuffler", "analyzer", "issuer"))
    found = soak.soak(tmp_path, kills=6, stores=stores, tokens=True, seed=6)
    expect_sound(found, 6)
    assert found.kills.keys() & {"issuer", "relay"} and found.status.keys() == {*ROLES, "issuer", "relay"}


@pytest.mark.exhaust
@pytest.mark.usefixtures("mosquitto")  # skips where there is none
def test_kills_of_broker_and_servers_lose_nothing_while_keys_are_changed(tmp_path: Path) -> None:
    with mosquitto() as broker:  # of its own: it is killed
        found = soak.soak(tmp_path, kills=9, broker=broker, rotations=1, seed=3)
    expect_sound(found, 9)
    assert found.versions == 2 and found.kills["broker"] > 0


def test_a_journal_keeps_whole_records_only(tmp_path: Path) -> None:
    journal = soak_devices.Journal(tmp_path / "journal")
    journal.add(b"S", b"message")
    journal.add(b"A", b"message")
    whole = (tmp_path / "journal").read_bytes()
    for cut in range(13, len(whole)):
        (tmp_path / "journal").write_bytes(whole[:cut])
        assert list(soak_devices.Journal.read(tmp_path / "journal")) == [(b"S", b"message")][: cut >= 12]
    (tmp_path / "journal").write_bytes(whole)
    assert list(soak_devices.Journal.read(tmp_path / "journal")) == [(b"S", b"message"), (b"A", b"message")]
