"""A database from a backup, with the vault or without: nothing is released twice, and nobody counts twice."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.collect.shuffler.test_lost_rounds import close
from tests.collect.shuffler.world import BY_HAND, DEVICES, World, campaign, message
from tests.tiers import one_in


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
        close(world, 1)
    world.to_round(2)
    assert world.states()[1] == "delivered"
    world.send(4, 5, round=2)
    if rounds == "hand":
        close(world, 2)
        world.advance(1.0)
        assert world.states()[2] == "delivered"
    before = len(entries(world))
    restore(world, content)
    world.restart()
    assert world.states()[1] == "lost"
    assert world.deliver(reports[2:]) == ["lost"]
    if rounds == "hand":
        assert world.states()[2] == "lost", "the vault says that it is over"
        assert world.send(6, 7, round=3) == ["accepted"] * 2 and close(world, 3) == "released"
    else:
        world.to_round(3)
        world.send(6, 7, round=3)
        world.to_round(4)
    world.advance(1.0)
    assert len(entries(world)) == before + 2
    assert [batch.header.rounds for batch in world.analyzer.batches.values()].count((1,)) == 1


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
