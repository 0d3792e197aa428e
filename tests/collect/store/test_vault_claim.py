"""Who works on a database: any number of processes with one vault, and never two vaults."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.collect.servers import Postgres

from dovetail.collect.store.shuffler_store import DatabaseShufflerStore, open_shuffler_store


@contextmanager
def opened(url: str) -> Iterator[DatabaseShufflerStore]:
    store = open_shuffler_store(url)
    try:
        yield store
    finally:
        store.close()


def test_nobody_comes_with_another_vault_while_one_is_in_use(lasting: str) -> None:
    with opened(lasting) as first, opened(lasting) as second, opened(lasting) as third:
        assert first.claim_vault("one") and second.claim_vault("one")
        assert not third.claim_vault("two")
        first.close()
        assert not third.claim_vault("two"), "the second still works"
        second.close()
        assert third.claim_vault("two")
        assert not open_and_claim(lasting, "one")


def test_several_that_start_at_once_with_one_vault_all_get_it(lasting: str) -> None:
    """On a new database nobody is alone, and nobody has noted a vault."""
    with opened(lasting) as first, opened(lasting) as second, opened(lasting) as third:
        for store in (first, second, third):
            assert store._vault._lock.share()
        assert first.claim_vault("one") and second.claim_vault("one") and not third.claim_vault("two")


def open_and_claim(url: str, identity: str) -> bool:
    with opened(url) as store:
        return store.claim_vault(identity)


def test_a_claim_is_asked_for_again_as_often_as_one_likes(lasting: str) -> None:
    with opened(lasting) as store:
        assert [store.claim_vault("one") for _ in range(3)] == [True] * 3
        assert not open_and_claim(lasting, "two")
    assert open_and_claim(lasting, "two")


HOLD = """
import sys
from dovetail.collect.store.shuffler_store import open_shuffler_store
store = open_shuffler_store(sys.argv[1])
print(store.claim_vault("one"), flush=True)
sys.stdin.read()
"""


@pytest.mark.exhaust
def test_a_claim_ends_with_its_process_however_that_ends(lasting: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, lasting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    assert not open_and_claim(lasting, "two") and open_and_claim(lasting, "one")
    process.kill()
    process.communicate()
    with opened(lasting) as store:
        for _ in range(1000):  # a server notices the end of a session a moment later
            if store.claim_vault("two"):
                return
    raise AssertionError("the claim has outlived its process")


@pytest.mark.exhaust
def test_a_claim_outlives_a_restart_of_the_server_or_is_lost_to_another(postgres: Postgres) -> None:
    url = postgres.database("claims")
    with opened(url) as first:
        assert first.claim_vault("one")
        postgres.process.restart()
        postgres.execute("SELECT 1")
        assert first.claim_vault("one") and not open_and_claim(url, "two")
        postgres.process.restart()
        postgres.execute("SELECT 1")
        with opened(url) as second:
            assert second.claim_vault("two"), "nobody has asked again in between"
            assert not first.claim_vault("one")


def test_the_lock_of_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        assert store.claim_vault("one")
        assert (tmp_path / "store.sqlite-lock").stat().st_mode & 0o777 == 0o600
