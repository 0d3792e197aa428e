"""Laws of the issuer's store: a person has one request a round, no matter how many processes note one at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from dovetail.collect.store.issuer_store import open_issuer_store
from dovetail.core.errors import ConfigError

WHO = bytes(32)


def test_a_person_has_one_request_a_round_and_the_store_remembers_it(url: str) -> None:
    store = open_issuer_store(url)
    assert [store.issue("bus", 1, WHO, request) for request in (b"a", b"a", b"b", b"a")] == [
        "new",
        "same",
        "other",
        "same",
    ]
    assert store.issue("bus", 2, WHO, b"b") == store.issue("bus", 1, b"w" * 32, b"b") == "new"
    assert store.issue("tram", 1, WHO, b"c") == "new"
    assert store.counts() == {("bus", 1): 2, ("bus", 2): 1, ("tram", 1): 1} and store.ready()
    store.close()


def test_of_requests_that_come_at_once_one_stands(lasting: str) -> None:
    """Each thread has a connection of its own, as processes do; all begin together."""
    stores, together = [open_issuer_store(lasting) for _ in range(4)], Barrier(4)

    def ask(place: int) -> list[str]:
        together.wait()
        return [stores[place].issue("bus", round, WHO, bytes([place])) for round in range(1, 6)]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert [sorted(round) for round in zip(*answers, strict=True)] == [["new", "other", "other", "other"]] * 5
    assert stores[0].counts() == {("bus", round): 1 for round in range(1, 6)}
    for store in stores:
        store.close()


def test_a_key_is_for_one_round_of_one_campaign_and_a_refusal_notes_nothing(url: str) -> None:
    store = open_issuer_store(url)
    store.claim_keys([(b"a", "bus", 1), (b"b", "bus", 2)], naming=WHO)
    store.claim_keys([(b"a", "bus", 1), (b"b", "bus", 2)], naming=WHO)
    at_once = [(b"c", "tram", 1), (b"c", "bus", 1)]
    for wrong in (
        [(b"c", "tram", 1), (b"a", "tram", 2)],
        [(b"c", "tram", 1), (b"b", "bus", 1)],
        at_once,
        at_once[::-1],
    ):
        with pytest.raises(ConfigError, match="Make new keys"):
            store.claim_keys(wrong, naming=WHO)
    store.claim_keys([(b"c", "bus", 3)], naming=WHO)
    store.close()


def test_a_store_goes_on_with_the_names_that_it_began_with(url: str) -> None:
    store = open_issuer_store(url)
    store.claim_keys([(b"a", "bus", 1)], naming=b"n" * 32)
    store.claim_keys([(b"b", "bus", 2)], naming=b"n" * 32)
    with pytest.raises(ConfigError, match="everybody could ask once more"):
        store.claim_keys([(b"c", "tram", 1)], naming=b"m" * 32)
    store.claim_keys([(b"c", "bus", 3)], naming=b"n" * 32)
    store.close()
