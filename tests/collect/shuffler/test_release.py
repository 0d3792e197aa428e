"""From the first report of a round to its batch at the analyzer, through crashes, in one process."""

from contextlib import nullcontext, suppress

import pytest
from tests.collect.shuffler.world import (
    BY_HAND,
    DEVICES,
    OWNER,
    PERIOD,
    World,
    campaign,
    message,
)

from dovetail.collect.http import Refusal
from dovetail.collect.shuffler import batches as shuffled_batch
from dovetail.collect.shuffler.campaigns import SECONDS, owner_request
from dovetail.core.errors import StorageError
from dovetail_protocol.keys import SigningKey


class Crash(Exception):
    """Where a test kills the process."""


def crash(*_: object) -> None:
    raise Crash


def test_duplicates_and_forgeries_do_not_fill_a_batch_and_one_more_report_does():
    world = World(campaign(minimum=5))
    world.send(0, 1, 2, 3)
    again = message(world.campaign, DEVICES[0])
    world.deliver([again] * 5)
    world.deliver([message(world.campaign, SigningKey.generate()) for _ in range(5)])
    world.to_round(2)
    assert world.analyzer.batches == {}
    assert world.send(4) == ["accepted"]
    world.advance(1.0)
    assert world.analyzer.only().header.count == 5
    world.advance(PERIOD)
    assert world.analyzer.sent == 1


@pytest.mark.exhaust
def test_a_round_that_waits_takes_reports_beside_the_next_one_and_never_shares_a_batch():
    world = World(campaign(minimum=3, small="wait"))
    world.send(0, 1, value=1)
    world.to_round(2)
    assert world.states() == {1: "open", 2: "open"}
    world.send(0, 1, 2, round=2, value=2)
    world.send(2, round=1, value=1)
    world.to_round(3)
    found = {batch.header.rounds: batch.values(world.campaign) for batch in world.analyzer.batches.values()}
    assert found == {(1,): [1, 1, 1], (2,): [2, 2, 2]}


def test_a_small_round_is_dropped_and_its_link_destroyed_where_the_rule_says_so():
    world = World(campaign(minimum=5, small="drop"))
    world.send(0, 1)
    world.to_round(2)
    assert world.states() == {1: "dropped", 2: "open"}
    assert world.store.tags("commute", [1]) == []
    assert world.link_keys.key("commute", 1) is None
    assert world.analyzer.batches == {}


def test_small_rounds_merge_with_the_next_one_and_each_device_counts_once_with_its_newest_report():
    world = World(campaign(minimum=5, small="merge"))
    world.send(0, 1, 2, value=1)
    world.to_round(2)
    assert world.states() == {1: "held", 2: "open"}
    assert world.send(2, 3, round=2, value=2) == ["accepted"] * 2
    world.to_round(3)
    assert world.states() == {1: "merged", 2: "held", 3: "open"}
    assert world.link_keys.key("commute", 1) is None
    assert world.send(3, 4, round=3, value=3) == ["accepted"] * 2
    world.to_round(4)
    batch = world.analyzer.only()
    assert batch.header.rounds == (1, 2, 3)
    assert batch.header.dropped == {"superseded": 2}
    assert sorted(batch.values(world.campaign)) == [1, 1, 2, 3, 3]


def test_what_is_left_at_the_end_of_a_merging_campaign_is_dropped():
    world = World(campaign(minimum=5, small="merge"))
    world.to_round(5)
    world.send(0, 1, round=5)
    world.to_round(6)
    assert set(world.states().values()) == {"merged", "dropped"}
    assert world.store.tags("commute", [5]) == []


def test_a_full_round_closes_before_its_time_and_only_once():
    world = World(campaign(minimum=2, close_at=3))
    world.send(0, 1, 2)
    world.advance(1.0)
    assert world.states()[1] == "delivered"
    assert world.send(3) == ["late"]
    world.to_round(2)
    assert world.analyzer.sent == 1


def asked_to_close(world, number=1, owner=OWNER.signing):
    """What the owner sends to close a round now."""
    return world.word("close", number, key=owner)


def close(world):
    """The owner closes the first round; its state then."""
    return world.shuffler.close_round("commute", 1, asked_to_close(world), world.clock.now())


def test_the_owner_closes_rounds_by_hand_and_nobody_else():
    world = World(campaign(rounds=BY_HAND, minimum=2))
    world.send(0, 1)
    with pytest.raises(Refusal, match="not signed"):
        world.shuffler.close_round("commute", 1, asked_to_close(world, 1, DEVICES[0]), world.clock.now())
    for _ in range(2):
        assert close(world) == "released"
    world.advance(1.0)
    assert world.analyzer.only().header.count == 2
    assert world.states() == {1: "delivered", 2: "open"}
    assert world.send(0, round=2) == ["accepted"]


@pytest.mark.exhaust
def test_a_round_by_hand_with_too_few_reports_stays_open_where_it_waits():
    world = World(campaign(rounds=BY_HAND, minimum=2))
    world.send(0)
    assert close(world) == "open"
    assert world.send(1) == ["accepted"]
    assert close(world) == "released"


@pytest.mark.exhaust
def test_a_close_that_an_observer_has_kept_closes_nothing_later():
    """The owner closed too early; who saw it sends it again when the round has just enough reports."""
    world = World(campaign(rounds=BY_HAND, minimum=2))
    world.send(0)
    kept = asked_to_close(world)
    assert world.shuffler.close_round("commute", 1, kept, world.clock.now()) == "open"
    world.send(1)
    with pytest.raises(Refusal, match="sent before"):
        world.shuffler.close_round("commute", 1, kept, world.clock.now())
    world.restart()  # what was used is not forgotten with the process
    with pytest.raises(Refusal, match="sent before"):
        world.shuffler.close_round("commute", 1, kept, world.clock.now())
    assert world.states()[1] == "open" and close(world) == "released"


def test_a_close_that_an_observer_held_back_is_worth_nothing_a_minute_later():
    world = World(campaign(rounds=BY_HAND, minimum=1))
    world.send(0)
    held = asked_to_close(world)
    with pytest.raises(Refusal, match="no challenge that is good now"):
        world.shuffler.close_round("commute", 1, held, world.clock.now() + SECONDS + 1)
    assert world.shuffler.close_round("commute", 1, held, world.clock.now() + SECONDS) == "released"


def test_a_challenge_serves_one_round_of_one_campaign_at_one_shuffler():
    world, other = World(campaign(rounds=BY_HAND, minimum=1)), World(campaign(rounds=BY_HAND, minimum=1))
    assert OWNER.signing
    world.send(0)
    now = world.clock.now()
    for challenge in (
        world.shuffler.challenge("close", "commute", 2, now),
        other.shuffler.challenge("close", "commute", 1, now),
        bytes(56),
    ):
        request = owner_request("close", OWNER.signing, world.campaign.digest, 1, challenge)
        with pytest.raises(Refusal, match="no challenge that is good now"):
            world.shuffler.close_round("commute", 1, request, now)


def test_a_close_of_the_old_form_is_refused_in_one_line():
    world = World(campaign(rounds=BY_HAND, minimum=1))
    assert OWNER.signing
    world.send(0)
    old = OWNER.signing.sign(b"dovetail close v1\0" + world.campaign.digest + (1).to_bytes(4, "big"))
    with pytest.raises(Refusal, match="old form") as refused:
        world.shuffler.close_round("commute", 1, old, world.clock.now())
    assert refused.value.kind == "version" and "\n" not in refused.value.detail


@pytest.mark.parametrize(("number", "kind"), [(0, "round"), (6, "round"), (3, "round")])
def test_only_rounds_that_are_there_can_be_closed(number, kind):
    world = World(campaign(rounds=BY_HAND))
    with pytest.raises(Refusal) as refused:
        world.shuffler.close_round("commute", number, asked_to_close(world, number), world.clock.now())
    assert refused.value.kind == kind


@pytest.mark.exhaust
def test_rounds_that_close_by_the_clock_are_not_closed_by_hand():
    world = World(campaign())
    with pytest.raises(Refusal, match="by the clock"):
        world.shuffler.close_round("commute", 1, bytes(64), world.clock.now())


@pytest.mark.parametrize("step", ["begin_batch", "add_part", "finish_batch", "set_state", "mark_delivered"])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_step_of_a_release_loses_and_doubles_nothing(step, after, monkeypatch):
    world = World(campaign(minimum=5))
    world.send(0, 1, 2, 3, 4)
    real = getattr(world.store, step)

    def last(*arguments):
        if after:
            real(*arguments)
        raise Crash

    with monkeypatch.context() as patched, suppress(Crash):
        patched.setattr(world.store, step, last)
        world.to_round(2)
        pytest.fail("the step was not reached")
    world.restart()
    world.restart()
    assert world.states()[1] == "delivered"
    assert world.analyzer.only().header.count == 5
    assert world.link_keys.key("commute", 1) is None


@pytest.mark.parametrize("small", ["drop", "wait"])
def test_a_crash_before_the_key_is_erased_is_made_good_at_the_next_start(small, monkeypatch):
    world = World(campaign(minimum=2, small=small))
    world.send(*((0,) if small == "drop" else (0, 1)))
    with monkeypatch.context() as patched, suppress(Crash):
        patched.setattr(world.link_keys, "erase", crash)
        world.to_round(2)
        pytest.fail("nothing was erased")
    assert world.link_keys.key("commute", 1) is not None
    world.restart()
    assert world.link_keys.key("commute", 1) is None


def test_a_key_that_outlived_its_batch_is_destroyed_at_the_next_start(monkeypatch):
    world = World(campaign(minimum=2))
    world.send(0, 1)
    with monkeypatch.context() as patched, suppress(Crash):
        patched.setattr(world.link_keys, "erase", crash)
        world.to_round(2)
        pytest.fail("nothing was erased")
    world.shuffler.deliver(world.clock.now())  # by the other thread, or another replica
    assert world.states()[1] == "delivered"
    world.restart()
    assert world.link_keys.key("commute", 1) is None


@pytest.mark.exhaust
def test_what_another_replica_merges_into_a_round_that_is_being_built_is_not_lost(monkeypatch, tmp_path):
    rule = campaign(small="merge", minimum=5, close_at=5)
    world, other = World(rule, folder=tmp_path), World(rule, folder=tmp_path)
    world.send(0, 1, 2)
    world.clock.advance(PERIOD + 30)  # in the grace of the first round
    world.send(3, 4, 5, 6, 7, round=2)
    real, later = world.store.begin_batch, world.clock.now() + 31

    def overtaken(batch):
        with monkeypatch.context() as slower:
            slower.setattr(other.store, "alone", lambda *_: nullcontext(True))  # our session and its lock are lost
            slower.setattr(other.store, "begin_batch", lambda _: False)
            other.shuffler.turn(later)
        return real(batch)

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "begin_batch", overtaken)
        world.shuffler.step(world.clock.now())
    world.advance(31)
    batch = world.analyzer.only()
    assert (batch.header.rounds, batch.header.count, len(batch.entries)) == ((1, 2), 8, 8)


@pytest.mark.exhaust
def test_a_crash_in_a_merge_keeps_count_of_what_gave_way(monkeypatch):
    world = World(campaign(minimum=2, small="merge"))
    world.send(0)
    world.to_round(2)
    world.send(0, 1, round=2)
    with monkeypatch.context() as patched, suppress(Crash):
        patched.setattr(world.store, "begin_batch", crash)
        world.to_round(3)
        pytest.fail("no batch was begun")
    world.restart()
    assert world.analyzer.only().header.dropped == {"superseded": 1}


def test_a_rebuilt_batch_has_a_permutation_of_its_own(monkeypatch):
    world, drawn = World(campaign(minimum=5)), list[list[int]]()
    real = shuffled_batch.uniform_order

    def watched(n, rng):
        released = real(n, rng)
        drawn.append(released.order.tolist())
        return released

    monkeypatch.setattr(shuffled_batch, "uniform_order", watched)
    world.send(*range(40))
    with monkeypatch.context() as patched, suppress(Crash):
        patched.setattr(world.store, "finish_batch", crash)
        world.to_round(2)
    world.restart()
    assert len(drawn) == 2 and drawn[0] != drawn[1]


@pytest.mark.exhaust
def test_a_failing_analyzer_is_asked_again_later_and_later_and_counts_once():
    world = World(campaign(minimum=1))
    world.analyzer.failing = True
    world.send(0)
    world.to_round(2)
    assert (world.analyzer.sent, world.states()[1]) == (1, "released")
    for _ in range(600):
        world.advance(1.0)
    assert 3 <= world.analyzer.sent <= 60
    world.analyzer.failing = False
    world.advance(300.0)
    sent = world.analyzer.sent
    assert world.states()[1] == "delivered"
    world.advance(300.0)
    assert world.analyzer.sent == sent


@pytest.mark.exhaust
def test_one_broken_campaign_stops_no_other_one(monkeypatch):
    other = campaign(id="other", minimum=1)
    world = World(campaign(minimum=1), others=[other])
    world.send(0)
    world.deliver([message(other, DEVICES[0])])
    refresh = world.shuffler.rounds.refresh

    def broken(id):
        if id == "commute":
            raise StorageError("its rounds cannot be read.")
        return refresh(id)

    monkeypatch.setattr(world.shuffler.rounds, "refresh", broken)
    with pytest.raises(StorageError, match="its rounds cannot be read"):
        world.to_round(2)
    assert [round.state for round in world.store.rounds("other")] == ["released", "open"]


@pytest.mark.exhaust
def test_refused_messages_and_digests_are_kept_as_long_as_the_operator_says():
    world = World(campaign(minimum=1))
    report = message(world.campaign, DEVICES[0])
    world.deliver([report])
    world.to_round(2)
    world.advance(200 * 86_400.0)
    assert world.store.purge(0.0) == 0
    assert world.deliver([report]) == ["late"]


@pytest.mark.exhaust
@pytest.mark.parametrize("step", ["add_part", "finish_batch"])
def test_a_release_that_a_full_disk_has_stopped_goes_on_without_a_restart(step, monkeypatch):
    world = World(campaign(minimum=2))
    world.send(0, 1)
    with monkeypatch.context() as full:
        for method in (step, "abandon_batch"):
            full.setattr(world.store, method, lambda *_: (_ for _ in ()).throw(StorageError("the disk is full.")))
        world.to_round(2)
        assert world.states()[1] == "releasing"
        with pytest.raises(StorageError, match="the disk is full"):
            world.advance(1.0)
    world.advance(1.0)
    assert world.states()[1] == "delivered" and world.analyzer.only().header.count == 2
