"""Every sentence of `AnalyzerStore`, on every kind of database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.interfaces import AnalyzerStore, BatchRecord, CountedBatch, GroupTally
from dovetail.core.errors import DataError, StorageError

BATCH = BatchRecord("b1", "buses", "ab", (1, 2), count=7, n=5, counted_at=120.0, rejected={"content": 1, "seal": 1})
TALLIES = (GroupTally("", 0, ()), GroupTally("north", 3, ((-4, 1), (0, 2))), GroupTally("south", 2, ((1 << 40, 2),)))
ASIDE = (("seal", b"z"), ("content", b"a"), ("seal", b"b"), ("seal", b"b"))
PLACED = tuple((slot, bytes([slot % 251])) for slot in range(2500))
COUNTED = CountedBatch(BATCH, TALLIES, ASIDE, PLACED)


def test_a_batch_is_counted_once(analyzer: AnalyzerStore) -> None:
    assert not analyzer.has_counted("b1")
    assert analyzer.count(COUNTED)
    assert analyzer.has_counted("b1")
    assert not analyzer.count(replace(COUNTED, tallies=(GroupTally("", 99, ()),)))
    assert analyzer.tallies("buses", "b1") == list(TALLIES)
    assert analyzer.batches("buses") == [BATCH]


def test_a_round_is_counted_in_one_batch_only(analyzer: AnalyzerStore) -> None:
    analyzer.count(COUNTED)
    with pytest.raises(DataError, match="round 2 of buses has been counted"):
        analyzer.count(CountedBatch(replace(BATCH, id="b2", rounds=(2, 3)), ()))
    assert not analyzer.has_counted("b2")
    assert analyzer.count(CountedBatch(replace(BATCH, id="b2", rounds=(3,)), ()))
    assert analyzer.count(CountedBatch(replace(BATCH, id="b3", campaign="trains", rounds=(2,)), ()))


def test_what_a_batch_leaves_comes_back_as_it_was(analyzer: AnalyzerStore) -> None:
    analyzer.count(COUNTED)
    assert list(analyzer.reports_by_slot("b1")) == list(PLACED)
    assert list(analyzer.aside("b1")) == sorted(ASIDE)
    assert analyzer.tallies("trains", "b1") == []
    assert list(analyzer.reports_by_slot("b2")) == []


def test_reports_are_placed_by_slot_in_whatever_order_they_came(analyzer: AnalyzerStore) -> None:
    analyzer.count(replace(COUNTED, placed=PLACED[::-1]))
    assert list(analyzer.reports_by_slot("b1")) == list(PLACED)


def test_batches_come_by_their_first_round_and_belong_to_their_campaign(analyzer: AnalyzerStore) -> None:
    for id, rounds in (("b3", (9,)), ("b2", (4,)), ("b1", (10, 2))):
        analyzer.count(CountedBatch(replace(BATCH, id=id, rounds=rounds, rejected={}), ()))
    analyzer.count(CountedBatch(replace(BATCH, id="t", campaign="trains"), ()))
    assert [(batch.id, batch.rounds) for batch in analyzer.batches("buses")] == [
        ("b1", (2, 10)),
        ("b2", (4,)),
        ("b3", (9,)),
    ]


def test_times_are_whole_minutes(analyzer: AnalyzerStore) -> None:
    analyzer.count(CountedBatch(replace(BATCH, counted_at=179.9), ()))
    assert analyzer.batches("buses")[0].counted_at == 120.0


def test_a_count_that_fails_leaves_nothing(analyzer: AnalyzerStore) -> None:
    twice = replace(COUNTED, placed=((1, b"a"), (1, b"b")))
    with pytest.raises(OSError, match="nothing was stored"):
        analyzer.count(twice)
    assert not analyzer.has_counted("b1")
    assert analyzer.count(COUNTED)


def test_purge_forgets_what_was_set_aside_and_keeps_the_counts(analyzer: AnalyzerStore) -> None:
    analyzer.count(COUNTED)
    assert analyzer.purge(before=120.0) == 0
    assert analyzer.purge(before=121.0) == 4
    assert list(analyzer.aside("b1")) == []
    assert analyzer.batches("buses") == [BATCH]
    assert analyzer.tallies("buses", "b1") == list(TALLIES)


def test_a_ready_store_says_so(analyzer: AnalyzerStore) -> None:
    assert analyzer.ready()


def test_what_was_counted_is_there_after_opening_again(lasting: str) -> None:
    store = open_analyzer_store(lasting)
    store.count(COUNTED)
    store.close()
    again = open_analyzer_store(lasting)
    assert (again.batches("buses"), again.tallies("buses", "b1")) == ([BATCH], list(TALLIES))
    again.close()


def test_parts_are_kept_by_their_place_until_the_batch_is_counted(analyzer: AnalyzerStore) -> None:
    assert not analyzer.keep_part("b1", 0, b"nobody waits for it") and analyzer.manifest("b1") is None
    assert analyzer.expect("b1", b"manifest", 119.0) and analyzer.expect("b1", b"manifest", 500.0)
    assert not analyzer.expect("b1", b"another", 119.0)
    assert analyzer.expect("b2", b"another", 300.0)
    assert analyzer.keep_part("b1", 4, b"five") and analyzer.keep_part("b1", 1, b"two")
    assert analyzer.keep_part("b1", 4, b"again") and analyzer.keep_part("b2", 1, b"of the other")
    assert (analyzer.manifest("b1"), analyzer.arrived("b1"), analyzer.arrived("b2")) == (b"manifest", [1, 4], [1])
    assert (analyzer.arrived_part("b1", 4), analyzer.arrived_part("b1", 1)) == (b"five", b"two")
    with pytest.raises(StorageError, match="part 2 of the batch b1 is not here"):
        analyzer.arrived_part("b1", 2)
    assert analyzer.count(COUNTED)
    assert (analyzer.manifest("b1"), analyzer.arrived("b1"), analyzer.arrived("b2")) == (None, [], [1])
    assert not analyzer.keep_part("b1", 2, b"late")
    assert not analyzer.expect("b1", b"manifest", 600.0) and analyzer.manifest("b1") is None


def test_parts_that_nobody_waits_for_any_more_are_forgotten(analyzer: AnalyzerStore) -> None:
    for id, now in (("b1", 60.0), ("b2", 119.0), ("b3", 120.0)):
        analyzer.expect(id, b"manifest", now)
        analyzer.keep_part(id, 0, b"body")
    assert analyzer.purge_parts(120.0) == 2 and analyzer.arrived("b2") == [] and analyzer.arrived("b3") == [0]
    analyzer.forget_parts("b3")
    assert analyzer.manifest("b3") is None and analyzer.purge_parts(1e9) == 0
