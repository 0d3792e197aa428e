"""A database from a backup, with the vault or without: nothing is released twice, and nobody counts twice."""

import sqlite3
from contextlib import closing
from math import inf
from pathlib import Path

import pytest
from tests.collect.shuffler.world import BY_HAND, DEVICES, PERIOD, World, campaign, message
from tests.tiers import one_in

from dovetail.collect.shuffler import rounds as round_keys
from dovetail.collect.shuffler.app import round_now, status
from dovetail.collect.shuffler.service import ShufflerService
from dovetail.collect.store.shuffler_store import open_shuffler_store


def backup(world: World) -> bytes:
    """The database as a backup has it; the vault is in none."""
    source = Path(world.folder / "shuffler.sqlite")
    copy = source.with_name("copy.sqlite")
    with closing(sqlite3.connect(source)) as base:
        base.execute("VACUUM INTO ?", [str(copy)])
    content = copy.read_bytes()
    copy.unlink()
    return content


def restore(world: World, content: bytes) -> None:
    world.store.close()
    for path in world.folder.glob("shuffler.sqlite*"):
        path.unlink()
    (world.folder / "shuffler.sqlite").write_bytes(content)


def entries(world):
    found = [entry for batch in world.analyzer.batches.values() for entry in batch.entries]
    assert len(found) == len(set(found)), "a report has left twice"
    return found


@pytest.mark.exhaust
def test_database_back_and_keys_gone_loses_what_waited_and_goes_on(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0, 1)
    content = backup(world)
    restore(world, content)
    world.replace_vault()
    world.restart()
    assert world.states() == {1: "lost"}
    world.to_round(2)
    world.send(0, 1, round=2)
    world.to_round(3)
    assert world.analyzer.only().header.rounds == (2,)


@pytest.mark.parametrize("rounds", one_in(2, ["clock", "hand"]))
def test_keys_back_and_database_older_releases_nothing_twice(tmp_path, rounds):
    rules = {"minimum": 2} if rounds == "clock" else {"minimum": 2, "rounds": BY_HAND}
    world = World(campaign(**rules), folder=tmp_path)
    reports = [message(world.campaign, device) for device in DEVICES[:3]]
    world.deliver(reports[:2])
    content = backup(world)
    world.deliver(reports[2:])
    if rounds == "hand":
        world.close(1)
    world.to_round(2)
    assert world.states()[1] == "delivered"
    world.send(4, 5, round=2)
    if rounds == "hand":
        world.close(2)
        world.advance(1.0)
        assert world.states()[2] == "delivered"
    before = len(entries(world))
    restore(world, content)
    world.restart()
    assert world.states()[1] == "lost"
    assert world.deliver(reports[2:]) == ["late"]
    assert world.shuffler.lost_rounds() == {}, "what has left is not lost"
    assert 1 in world.shuffler.rounds.ended_before("commute")
    if rounds == "hand":
        assert world.states()[2] == "lost", "the vault says that it is over"
        assert world.send(6, 7, round=3) == ["accepted"] * 2 and world.close(3) == "released"
    else:
        world.to_round(3)
        world.send(6, 7, round=3)
        world.to_round(4)
    world.advance(1.0)
    assert len(entries(world)) == before + 2
    assert [batch.header.rounds for batch in world.analyzer.batches.values()].count((1,)) == 1


@pytest.mark.exhaust
def test_a_round_that_the_vault_knows_to_be_over_is_over_for_devices_and_watchers_and_not_lost(tmp_path):
    world = World(campaign(minimum=2, close_at=2), folder=tmp_path)
    world.deliver([message(world.campaign, DEVICES[0])])
    content = backup(world)
    world.deliver([message(world.campaign, DEVICES[1])])
    world.advance(1.0)
    assert world.states()[1] == "delivered", "early, while its time still runs"
    restore(world, content)
    world.restart()
    world.advance(1.0)
    (found,) = status(ShufflerService(world.shuffler, world.clock))["campaigns"]
    assert (found["round"], found["state"], found["lost"], found["ended_before_restore"]) == (1, "over", [], [1])
    assert round_now(world.shuffler, world.campaign, world.clock.now()) == {"round": 1, "state": "over"}


@pytest.mark.exhaust
@pytest.mark.parametrize("when", ["round 1 was open", "round 1 was unknown"])
def test_after_a_restore_a_retry_of_what_was_released_joins_no_later_round(tmp_path, when):
    """Its device never heard the answer; the older database does not know that the report has left."""
    world = World(campaign(minimum=2, late="next"), folder=tmp_path)
    content = backup(world)
    if when == "round 1 was unknown":
        with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as base:
            base.deserialize(content)
            base.execute("DELETE FROM round")
            base.commit()
            content = base.serialize()
    reports = [message(world.campaign, device) for device in DEVICES[:2]]
    world.deliver(reports)
    world.to_round(2)
    assert world.states()[1] == "delivered"
    restore(world, content)
    world.restart()
    assert set(world.deliver(reports)) <= {"lost", "late"}
    world.send(0, 1, 2, round=2)
    world.to_round(3)
    world.advance(300.0)
    assert len(entries(world)) == 5 and len(world.analyzer.batches) == 2


@pytest.mark.exhaust
def test_after_a_restore_a_retry_of_what_had_joined_a_forgotten_round_counts_nowhere_again(tmp_path):
    """It was made for a round that is known to be over, came late, and left with the next one."""
    world = World(campaign(minimum=2, late="next"), folder=tmp_path)
    late = message(world.campaign, DEVICES[9])
    world.send(0, 1)
    world.to_round(2)
    assert world.states() == {1: "delivered", 2: "open"}
    content = backup(world)
    assert world.deliver([late]) == ["accepted"]
    world.send(0, round=2)
    world.to_round(3)
    assert world.states()[2] == "delivered"
    restore(world, content)
    world.restart()
    assert world.deliver([late]) == ["late"]
    assert world.deliver([message(world.campaign, DEVICES[8], round=3)]) == ["accepted"], "new ones count"


RESTORED = [(rounds, known) for rounds in ("clock", "hand") for known in ("open", "over", "unknown")]


@pytest.mark.exhaust
@pytest.mark.parametrize(("rounds", "known"), one_in(2, RESTORED))
def test_database_back_and_vault_gone_counts_no_recorded_message_again(tmp_path, rounds, known):
    """Without the vault nobody knows which rounds are over: a late report of any of them may have left before.

    known : what the backup says of the round for which the messages were made.
    """
    rules = {"minimum": 2, "late": "next"} | ({} if rounds == "clock" else {"rounds": BY_HAND})
    world = World(campaign(**rules), folder=tmp_path)

    def end(round):
        if rounds == "hand":
            world.close(round)
        else:
            world.to_round(round + 1)
        world.advance(1.0)

    at = {"open": 2, "over": 1, "unknown": 3}[known]  # the round of the messages; the backup is made in round 2
    recorded = {}
    for round in (1, 2, 3):
        if round == 2 and known == "over":  # late ones, which leave with the round that runs
            recorded[2] = [message(world.campaign, device, round=1) for device in DEVICES[5:7]]
        else:
            recorded[round] = [message(world.campaign, device, round=round) for device in DEVICES[round : round + 2]]
        if round == 2:
            content = backup(world)
        assert set(world.deliver(recorded[round])) == {"accepted"}
        end(round)
    before = len(entries(world))
    assert before == 6
    restore(world, content)
    world.replace_vault()
    for _ in range(2):
        world.restart()  # a second start knows it, too
        said = world.deliver(recorded[2 if known == "over" else at])
        if (rounds, known) != ("hand", "unknown"):  # there the round opens anew, and the analyzer knows it
            assert set(said) <= {"late", "lost"}, said
    if rounds == "hand":
        for round in range(2, 5):
            if world.states().get(round) == "open":
                world.send(0, 9, round=round)
                world.analyzer.refused = {2, 3}  # as an analyzer does that has counted these rounds
                end(round)
    world.deliver(recorded[2 if known == "over" else at])
    world.send(0, 9, round=4)
    end(4)
    assert len(entries(world)) == before + 2, "and the new ones of round 4 count"
    assert (4,) in [batch.header.rounds for batch in world.analyzer.batches.values()]


@pytest.mark.exhaust
def test_after_the_vault_is_replaced_late_reports_of_later_rounds_join_the_next_one_again(tmp_path):
    world = World(campaign(minimum=2, late="next"), folder=tmp_path)
    world.replace_vault()
    world.restart()
    assert world.send(3, round=1) == ["lost"], "its key is gone"
    world.to_round(2)
    assert world.send(0, round=1) == ["lost"]
    world.to_round(3)
    assert world.send(1, round=1) == ["lost"] and world.send(2, round=2) == ["accepted"]


@pytest.mark.exhaust
def test_a_vault_that_is_replaced_while_the_clock_is_not_believed_forgets_up_to_the_right_time(tmp_path):
    """The restored database says an older time, and the shuffler starts by that until somebody confirms another."""
    world = World(campaign(minimum=2, late="next"), folder=tmp_path)
    world.replace_vault()
    long_ago = world.clock.now()
    world.clock.advance(3 * PERIOD + 61)  # what the machine says
    url = f"sqlite:///{tmp_path / 'shuffler.sqlite'}"
    world.store = open_shuffler_store(url)
    round_keys.claim_vault(world.link_keys, world.store)  # as `start` does, by the older time
    assert world.link_keys.forgotten_before() == inf
    world.store.close()
    world.restart()
    assert long_ago < world.clock.now() <= world.link_keys.forgotten_before() < inf
    assert world.send(0, round=3) == ["late"]
    assert world.send(0, round=4) == ["accepted"]
