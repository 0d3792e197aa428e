"""Planted addresses, client ids, topics, user agents, clocks and values: nowhere in what the roles keep and tell."""

from __future__ import annotations

import json
import sqlite3

import pytest
from tests.collect.threats.conftest import Collection
from tests.collect.threats.stage import ASKING, CANARIES, HEADERS, entries, found


@pytest.mark.exhaust
def test_the_analyzer_keeps_and_tells_no_canary(collection: Collection) -> None:
    seized = collection.analyzer
    assert len(seized.files) >= 2 and len(seized.told) >= 13
    assert found(CANARIES, seized.files) == found(CANARIES, seized.told) == []


def test_the_analyzers_memory_holds_no_canary_of_a_device(collection: Collection) -> None:
    if not collection.analyzer.memory:
        pytest.skip("nobody may read the memory of another process here")
    planted = [word.encode() for word in HEADERS.values() if word not in ASKING.values()]
    assert found(planted, {"memory": collection.analyzer.memory}) == []


def test_the_shuffler_keeps_and_tells_no_canary_at_any_time(collection: Collection) -> None:
    for seized in (collection.before, collection.after):
        assert {"shuffler.sqlite", "log"} <= seized.files.keys()
        assert found(CANARIES, seized.files) == found(CANARIES, seized.told) == []


def test_what_is_handed_over_holds_no_canary(collection: Collection) -> None:
    assert found(CANARIES, {"batch": collection.stage.tap.batches[0]}) == []


def test_the_search_would_find_a_canary(collection: Collection) -> None:
    lines = {"access log": f"{HEADERS['User-Agent']} 127.83.71.59".encode(), "batch": b"CANARYCLIENTID".lower()}
    assert set(found(CANARIES, lines)) == {"access log", "batch"}


def test_logs_are_documents_of_known_words_with_times_in_minutes(collection: Collection) -> None:
    lines = (collection.after.files["log"] + collection.analyzer.files["log"]).splitlines()
    read = [json.loads(line) for line in lines]
    assert {"batch built", "batch delivered", "batch counted"} <= {line["event"] for line in read}
    assert {len(line["time"]) for line in read} == {len("2030-01-01T00:00Z")}


def test_times_in_the_stores_are_whole_minutes(collection: Collection) -> None:
    stage = collection.stage
    kept = [
        (stage.shuffler, "round", "opened"),
        (stage.shuffler, "moment", "time"),
        (stage.shuffler, "moment", "booted"),
    ]
    for server, table, column in (*kept, (stage.analyzer, "counted", "counted_at")):
        with sqlite3.connect(server.folder / f"{server.role}.sqlite") as base:
            assert base.execute(f"SELECT DISTINCT {column} % 60 FROM {table}").fetchall() == [(0,)]


def test_the_metrics_of_the_shuffler_come_in_tens(collection: Collection) -> None:
    before, after = (
        [line for line in seized.told["/metrics"].decode().splitlines() if line.startswith("dovetail_messages_total")]
        for seized in (collection.before, collection.after)
    )
    assert not any("accepted" in line for line in before), "before the round closes nothing is told of reports"
    assert any("accepted" in line for line in after)
    assert all(float(line.split()[-1]) % 10 == 0 for line in before + after)
    assert str(len(collection.sent)) not in collection.before.told["/v1/status"].decode()


def test_a_batch_says_nothing_but_what_it_must(collection: Collection) -> None:
    header, _ = entries(collection.stage.campaign, collection.stage.tap.batches[0])
    assert header.campaign == "sightings" and header.rounds == (1,) and header.dropped == {}
