"""Every sentence of `ShufflerStore`, on every kind of database."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.collect.store.samples import BUSES, count, digest, fill, outgoing, release, report, sealed_of, state

from dovetail.collect.store.interfaces import AcceptOutcome, RoundRecord, SealedReport, ShufflerStore
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail.core.errors import StorageError


def test_a_round_is_opened_once_and_its_time_is_a_whole_minute(store: ShufflerStore) -> None:
    first = store.open_round(BUSES, 1, now=125.5)
    assert first == RoundRecord(BUSES, 1, "open", 0, 120.0)
    assert store.open_round(BUSES, 1, now=9999.0) == first
    assert store.rounds(BUSES) == [first]


def test_rounds_come_by_number_and_belong_to_their_campaign(store: ShufflerStore) -> None:
    for number in (3, 1, 2):
        store.open_round(BUSES, number, now=0.0)
    store.open_round("trains", 1, now=0.0)
    assert [round.number for round in store.rounds(BUSES)] == [1, 2, 3]


def test_a_ready_store_says_so(store: ShufflerStore) -> None:
    assert store.ready()


def test_a_report_is_new_once_and_then_a_duplicate_in_every_round(store: ShufflerStore) -> None:
    [first] = fill(store, [1])
    store.open_round(BUSES, 2, now=0.0)
    elsewhere = replace(first, round=2, tag=digest("other"))
    assert store.accept([first, elsewhere, first]) == ["duplicate"] * 3
    assert (count(store, 1), count(store, 2)) == (1, 0)


@pytest.mark.parametrize("released", [False, True])
def test_a_report_that_is_known_of_another_campaign_is_told_apart(store: ShufflerStore, released: bool) -> None:
    [first] = fill(store, [1])
    store.open_round("trains", 1, now=0.0)
    if released:
        release(store, 1)
    there = replace(first, campaign="trains")
    nowhere = replace(there, round=0)  # what the intake asks of a report that counts nowhere
    assert store.accept([there, first, nowhere]) == ["elsewhere", "duplicate", "elsewhere"]
    assert [round.count for round in store.rounds("trains")] == [0]
    new, twice = report(2), replace(report(2), campaign="trains")
    told = store.accept([twice, new] if released else [new, twice])
    assert told == (["new", "elsewhere"]), "also where both come at once"


def test_a_device_has_one_report_in_a_round(store: ShufflerStore) -> None:
    [first] = fill(store, [1])
    other = report(1, id=77)
    assert store.accept([other]) == ["second"]
    assert store.fetch(BUSES, [(1, first.tag)]) == [first.sealed]
    store.open_round(BUSES, 2, now=0.0)
    assert store.accept([replace(other, round=2)]) == ["new"], "a report that was refused is not known"


def test_a_round_that_is_not_open_takes_nothing(store: ShufflerStore) -> None:
    assert store.accept([report(1)]) == ["closed"]
    fill(store, [2])
    assert store.set_state(BUSES, 1, "open", "held")
    assert store.accept([report(1), report(2)]) == ["closed", "duplicate"]
    assert store.set_state(BUSES, 1, "held", "open")
    assert store.accept([report(1)]) == ["new"]


def test_a_group_is_judged_as_if_its_reports_came_one_after_the_other(store: ShufflerStore) -> None:
    store.open_round(BUSES, 1, now=0.0)
    group = [report(1), report(1), report(1, id=5), report(2, id=5), report(2), report(3, round=9)]
    assert store.accept(group) == ["new", "duplicate", "second", "new", "second", "closed"]
    assert store.accept([]) == []


devices, ids, rounds = st.integers(0, 3), st.integers(0, 5), st.integers(1, 3)


@pytest.mark.parametrize("url", ["memory"], indirect=True)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(groups=st.lists(st.lists(st.tuples(devices, ids, rounds), max_size=8), max_size=4))
def test_outcomes_are_those_of_a_plain_dictionary(url: str, groups: list[list[tuple[int, int, int]]]) -> None:
    store = open_shuffler_store(url)
    known, taken = set[int](), set[tuple[int, int]]()
    store.open_round(BUSES, 1, now=0.0)
    store.open_round(BUSES, 2, now=0.0)
    for group in groups:
        wanted: list[AcceptOutcome] = []
        for device, id, round in group:
            device_here = (device, round)
            outcome: AcceptOutcome = "second" if device_here in taken else "new"
            outcome = "duplicate" if id in known else "closed" if round == 3 else outcome
            if outcome == "new":
                known.add(id)
                taken.add(device_here)
            wanted.append(outcome)
        assert store.accept([report(device, id=id, round=round) for device, id, round in group]) == wanted
    assert sum(round.count for round in store.rounds(BUSES)) == len(taken)
    store.close()


@pytest.mark.exhaust
def test_more_reports_than_one_question_holds_are_stored_at_once(store: ShufflerStore) -> None:
    reports = fill(store, range(2500))
    assert store.accept(reports) == ["duplicate"] * 2500
    assert count(store, 1) == 2500
    keys = [(1, item.tag) for item in reports]
    assert store.fetch(BUSES, keys) == [item.sealed for item in reports]


def test_tags_come_in_their_own_order_across_rounds(store: ShufflerStore) -> None:
    reports = fill(store, range(20), round=1) + fill(store, range(20), round=2)
    found = store.tags(BUSES, [1, 2])
    assert found == sorted(((item.round, item.tag) for item in reports), key=lambda key: key[1])
    assert store.tags(BUSES, [2]) == [key for key in found if key[0] == 2]
    assert store.tags("trains", [1, 2]) == []


def test_fetch_keeps_the_order_asked_for_and_refuses_what_is_gone(store: ShufflerStore) -> None:
    reports = fill(store, range(5))
    for order in ([4, 0, 2], [2, 2, 1]):
        assert store.fetch(BUSES, [(1, reports[i].tag) for i in order]) == [reports[i].sealed for i in order]
    with pytest.raises(StorageError, match="2 reports of buses are gone"):
        store.fetch(BUSES, [(1, digest("a")), (1, reports[0].tag), (2, reports[0].tag)])


def test_a_state_changes_only_from_the_one_named(store: ShufflerStore) -> None:
    store.open_round(BUSES, 1, now=0.0)
    assert not store.set_state(BUSES, 1, "held", "open")
    assert store.set_state(BUSES, 1, "open", "held")
    assert not store.set_state(BUSES, 1, "open", "held")
    assert not store.set_state(BUSES, 2, "open", "held")
    assert state(store, 1) == "held"


def merged(store: ShufflerStore, number: int, into: int) -> int:
    """Merge as the shuffler does: the same devices and reports under the other round's key."""
    tags = {digest("tag", BUSES, number, device): digest("tag", BUSES, into, device) for device in range(50)}
    keys = [tags[tag] for _, tag in store.tags(BUSES, [number])]
    return store.move(BUSES, number, into, [SealedReport(BUSES, into, tag, b"", sealed_of(tag)) for tag in keys])


def test_a_merge_keeps_one_report_of_each_device_and_counts_what_gave_way(store: ShufflerStore) -> None:
    fill(store, [1, 2, 3], round=1)
    fill(store, [3, 4], round=2)
    [(_, before)] = [key for key in store.tags(BUSES, [2]) if key[1] == digest("tag", BUSES, 2, 3)]
    kept = store.fetch(BUSES, [(2, before)])
    store.set_state(BUSES, 1, "open", "held")
    assert merged(store, 1, 2) == 1
    one, two = store.rounds(BUSES)
    assert (one.state, one.into, one.count) == ("merged", 2, 3)
    assert (two.state, two.superseded, two.count) == ("open", 1, 4)
    assert store.tags(BUSES, [1]) == []
    assert store.fetch(BUSES, [(2, before)]) == kept
    assert store.accept([report(1, round=1), report(9, round=1)]) == ["duplicate", "closed"]
    assert merged(store, 1, 2) == 0, "a merged round has nothing more to give"


def test_what_was_merged_twice_is_counted_in_the_last_round(store: ShufflerStore) -> None:
    for number, members in ((1, [1, 2]), (2, [2, 3]), (3, [3, 4])):
        fill(store, members, round=number)
    assert merged(store, 1, 2) == 1
    assert merged(store, 2, 3) == 1
    assert [(r.into, r.count, r.superseded) for r in store.rounds(BUSES)][::2] == [(3, 2, 0), (None, 4, 2)]
    release(store, 3)
    assert [round.batch for round in store.rounds(BUSES)] == ["b1"] * 3


def test_a_merge_that_would_lose_reports_is_refused_and_does_nothing(store: ShufflerStore) -> None:
    fill(store, [1, 2], round=1)
    fill(store, [3], round=2)
    with pytest.raises(StorageError, match="round 1 of buses has changed"):
        store.move(BUSES, 1, 2, [report(1, round=2)])
    release(store, 2)
    for into in (1, 2, 7):
        with pytest.raises(StorageError, match=f"round {into} of buses takes no reports any more"):
            merged(store, 1, into)
    assert (state(store, 1), len(store.tags(BUSES, [1]))) == ("open", 2)


def test_a_dropped_round_forgets_its_reports_and_knows_their_retries(store: ShufflerStore) -> None:
    fill(store, range(4))
    assert store.drop(BUSES, 1) == 4
    assert (state(store, 1), count(store, 1), store.tags(BUSES, [1])) == ("dropped", 4, [])
    assert store.accept([report(0), report(9)]) == ["duplicate", "closed"]
    assert store.drop(BUSES, 1) == 0


def test_a_batch_goes_from_building_over_waiting_to_delivered(store: ShufflerStore) -> None:
    fill(store, range(3))
    assert store.begin_batch(outgoing(1))
    assert state(store, 1) == "releasing"
    assert store.outgoing() == [outgoing(1)]
    assert store.accept([report(9)]) == ["closed"]
    store.add_part("b1", 0, b"first")
    store.add_part("b1", 1, b"second")
    store.finish_batch("b1", b"header")
    assert store.outgoing() == [replace(outgoing(1), header=b"header", state="waiting")]
    [round] = store.rounds(BUSES)
    assert (round.state, round.count, round.batch, store.tags(BUSES, [1])) == ("released", 3, "b1", [])
    assert list(store.parts("b1")) == [b"first", b"second"]
    assert list(store.parts("b1")) == [b"first", b"second"], "a failed delivery begins again"
    store.mark_delivered("b1")
    store.mark_delivered("b1")
    assert (state(store, 1), store.outgoing()) == ("delivered", [])
    assert store.accept([report(0), report(9)]) == ["duplicate", "closed"]
    with pytest.raises(StorageError, match="does not wait for delivery"):
        list(store.parts("b1"))


def test_a_batch_takes_all_its_rounds_or_none(store: ShufflerStore) -> None:
    fill(store, [1], round=1)
    fill(store, [2], round=2)
    store.set_state(BUSES, 2, "open", "held")
    assert not store.begin_batch(outgoing(1, 3)), "round 3 was never opened"
    assert state(store, 1) == "open"
    assert store.begin_batch(outgoing(1, 2))
    for rival in ((1,), (2,), (1, 2)):
        assert not store.begin_batch(outgoing(*rival, id="b2"))
    assert [batch.id for batch in store.outgoing()] == ["b1"]
    assert store.outgoing()[0].rounds == (1, 2)


def test_an_abandoned_batch_leaves_everything_as_it_was(store: ShufflerStore) -> None:
    fill(store, [1], round=1)
    fill(store, [2], round=2)
    store.set_state(BUSES, 2, "open", "held")
    before = store.rounds(BUSES)
    store.begin_batch(outgoing(1, 2))
    store.add_part("b1", 0, b"first")
    store.abandon_batch("b1")
    assert (store.rounds(BUSES), store.outgoing()) == (before, [])
    with pytest.raises(StorageError, match="b1 is not under construction"):
        store.add_part("b1", 1, b"")
    with pytest.raises(StorageError, match="b1 is not under construction"):
        store.finish_batch("b1", b"")
    release(store, 1, 2)
    store.abandon_batch("b1")
    assert state(store, 1) == "released", "a finished batch is not abandoned"
    assert list(store.parts("b1")) == [b"first", b"second", b"third"]


def test_only_a_finished_batch_is_delivered(store: ShufflerStore) -> None:
    fill(store, [1])
    store.begin_batch(outgoing(1))
    for batch in ("b1", "b9"):
        with pytest.raises(StorageError, match=f"{batch} does not wait for delivery"):
            store.mark_delivered(batch)


def test_no_part_is_written_twice(store: ShufflerStore) -> None:
    fill(store, [1])
    store.begin_batch(outgoing(1))
    store.add_part("b1", 0, b"first")
    with pytest.raises(StorageError):
        store.add_part("b1", 0, b"other")
    store.finish_batch("b1", b"header")
    assert list(store.parts("b1")) == [b"first"]


def test_a_body_that_is_deleted_while_it_is_read_does_not_look_complete(store: ShufflerStore) -> None:
    fill(store, [1])
    release(store, 1)
    parts = store.parts("b1")
    next(parts)
    store.mark_delivered("b1")
    with pytest.raises(StorageError, match="was delivered by another replica"):
        next(parts)


def test_faults_add_up_by_campaign_and_kind(store: ShufflerStore) -> None:
    store.add_faults({(BUSES, "seal"): 2, (BUSES, "late"): 1, ("trains", "seal"): 5})
    store.add_faults({(BUSES, "seal"): 3})
    store.add_faults({})
    assert store.faults(BUSES) == {"late": 1, "seal": 5}
    assert store.faults("planes") == {}


def test_purge_forgets_ended_rounds_and_nothing_that_still_counts(store: ShufflerStore) -> None:
    for number in range(1, 6):
        fill(store, [number, number + 10], round=number)
    release(store, 1, id="b1")
    store.mark_delivered("b1")
    release(store, 2, id="b2")  # waits
    store.drop(BUSES, 3)
    merged(store, 4, 5)  # round 5 is open
    assert store.purge(before=60.0) == 0, "no round was opened before the first minute"
    assert store.purge(before=1000.0) == 2 + 1 + 2
    assert store.purge(before=1000.0) == 0
    known = [report(number, round=number) for number in range(1, 6)]
    assert store.accept(known) == ["closed", "duplicate", "closed", "duplicate", "duplicate"]
    assert [batch.id for batch in store.outgoing()] == ["b2"]
    assert [round.number for round in store.rounds(BUSES)] == [1, 2, 3, 4, 5]
    release(store, 5, id="b5")
    store.mark_delivered("b5")
    assert store.purge(before=1000.0) == 2 + 2 + 1, "the merged round ends with the one it is in"


def test_a_batch_is_forgotten_with_the_last_of_its_rounds(store: ShufflerStore) -> None:
    fill(store, [1], round=1)
    fill(store, [2], round=10)
    release(store, 1, 10)
    store.mark_delivered("b1")
    assert store.purge(before=120.0) == 1
    assert store.purge(before=1000.0) == 2


def test_what_was_stored_is_there_after_opening_again(lasting: str) -> None:
    store = open_shuffler_store(lasting)
    fill(store, range(3))
    release(store, 1)
    store.close()
    again = open_shuffler_store(lasting)
    assert (state(again, 1), list(again.parts("b1"))) == ("released", [b"first", b"second", b"third"])
    assert again.accept([report(0)]) == ["duplicate"]
    again.close()


def test_tags_are_scanned_in_pages_of_one_round(store: ShufflerStore) -> None:
    fill(store, range(7), round=1)
    fill(store, range(3), round=2)
    every, found = [tag for _, tag in store.tags(BUSES, [1])], list[bytes]()
    while page := store.scan_tags(BUSES, 1, found[-1] if found else b"", 3):
        assert len(page) <= 3
        found += page
    assert found == every == sorted(every) and store.scan_tags(BUSES, 9, b"", 3) == []


def test_the_secret_of_a_batch_is_there_until_it_is_finished(store: ShufflerStore) -> None:
    fill(store, [1])
    store.begin_batch(replace(outgoing(1), secret=b"sealed"))
    assert store.outgoing() == [replace(outgoing(1), secret=b"sealed")] and store.part_macs("b1") == {}
    store.add_part("b1", 0, b"first", b"code")
    assert (store.part_macs("b1"), store.part("b1", 0)) == ({0: b"code"}, b"first")
    store.add_part("b1", 7, b"seventh")
    assert store.part_macs("b1") == {0: b"code", 7: b""}
    with pytest.raises(StorageError):
        store.part("b1", 1)
    store.finish_batch("b1", b"header")
    assert [batch.secret for batch in store.outgoing()] == [b""]
    assert (len(store.part_macs("b1")), store.part("b1", 0)) == (2, b"first")
