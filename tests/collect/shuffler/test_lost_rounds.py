"""A round whose key is gone stops no other one: devices are told, operators see it, its owner drops it."""

import shutil

import pytest
from tests.collect.shuffler.served import kind, served
from tests.collect.shuffler.world import BY_HAND, DEVICES, OWNER, World, campaign, message
from tests.tiers import one_in

from dovetail.cli.main import invoke
from dovetail.collect.files import save_keys
from dovetail.collect.http import Refusal
from dovetail.collect.shuffler.campaigns import SECONDS
from dovetail.collect.shuffler.link_key_store import FileLinkKeyStore
from dovetail.core.errors import ConfigError, StorageError
from dovetail_device.sender import FINAL, refusal_event


def vault(world):
    return world.folder / "vault"


def lose_key(world, number=1):
    (vault(world) / f"commute-{number}.key").unlink()


@pytest.mark.exhaust
def test_a_lost_key_loses_its_round_and_no_other_one(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0, 1)
    lose_key(world)
    world.to_round(2)
    assert world.states() == {1: "lost", 2: "open"}
    world.send(2, 3, round=2)
    world.to_round(3)
    assert world.states() == {1: "lost", 2: "delivered", 3: "open"}
    assert world.analyzer.only().header.rounds == (2,)


@pytest.mark.exhaust
@pytest.mark.parametrize("small", ["wait", "merge", "drop"])
def test_a_lost_round_holds_up_none_whatever_becomes_of_small_rounds(tmp_path, small):
    world = World(campaign(minimum=2, small=small), folder=tmp_path)
    world.send(0)
    world.to_round(2)
    world.send(0, 1, round=2)
    lose_key(world, 2)
    world.to_round(3)
    assert world.states()[2] == "lost"
    world.send(1, 2, round=3)
    world.to_round(4)
    assert world.states()[3] == "delivered"
    assert 3 in world.analyzer.only().header.rounds and 2 not in world.analyzer.only().header.rounds


def test_devices_are_told_that_the_round_is_lost_and_answer_the_next_one(tmp_path):
    world = World(campaign(), folder=tmp_path)
    world.send(0)
    lose_key(world)
    world.advance(1.0)
    assert world.send(1) == ["lost"] and world.count("lost") == 1
    assert refusal_event("lost").name == "final" and "lost" in FINAL
    world.to_round(2)
    assert world.send(1, round=2) == ["accepted"]


@pytest.mark.exhaust
def test_a_report_for_a_lost_round_joins_the_next_one_where_late_reports_do(tmp_path):
    world = World(campaign(late="next"), folder=tmp_path)
    lose_key(world)
    world.to_round(2)
    assert world.send(1, round=1) == ["accepted"]
    assert world.store.rounds("commute")[1].count == 1


@pytest.mark.exhaust
def test_a_campaign_by_hand_goes_on_with_the_next_round(tmp_path):
    world = World(campaign(rounds=BY_HAND, minimum=2), folder=tmp_path)
    world.send(0, 1)
    lose_key(world)
    world.advance(1.0)
    assert world.states() == {1: "lost", 2: "open"}
    world.send(0, 1, round=2)
    assert world.close(2) == "released"


@pytest.mark.exhaust
def test_a_key_that_is_there_again_brings_its_round_back_with_every_report(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0, 1)
    path = vault(world) / "commute-1.key"
    kept = path.read_bytes()
    path.unlink()
    world.to_round(2)
    assert world.states()[1] == "lost"
    path.write_bytes(kept)
    world.advance(1.0)
    assert world.states()[1] == "delivered" and world.analyzer.only().header.count == 2


@pytest.mark.exhaust
def test_a_round_that_comes_back_too_small_waits_on_and_is_not_dropped(tmp_path):
    world = World(campaign(minimum=2, small="wait"), folder=tmp_path)
    world.send(0)
    path = vault(world) / "commute-1.key"
    kept = path.read_bytes()
    path.unlink()
    world.to_round(2)
    path.write_bytes(kept)
    world.advance(1.0)
    assert world.states()[1] == "open" and world.send(1) == ["accepted"]
    world.advance(1.0)
    assert world.states()[1] == "delivered"


def test_the_owner_drops_a_lost_round_once_and_for_ever(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    reports = [message(world.campaign, device) for device in DEVICES[:2]]
    world.deliver(reports)
    path = vault(world) / "commute-1.key"
    kept = path.read_bytes()
    path.unlink()
    world.to_round(2)
    with pytest.raises(Refusal, match="the owner has not signed that this round is dropped"):
        world.drop(1, key=DEVICES[0])
    assert [world.drop(1), world.drop(1)] == ["dropped"] * 2
    assert world.store.tags("commute", [1]) == []
    path.write_bytes(kept)
    world.restart()
    assert world.states()[1] == "dropped" and world.link_keys.key("commute", 1) is None
    assert world.deliver(reports) == ["accepted"] * 2, "a retry is known and counts nowhere"


@pytest.mark.exhaust
@pytest.mark.parametrize(("state", "minimum"), [("open", 9), ("delivered", 2)])
def test_nobody_drops_a_round_that_can_be_released_or_was(tmp_path, state, minimum):
    world = World(campaign(minimum=minimum), folder=tmp_path)
    world.send(0, 1)
    world.to_round(2)
    assert world.states()[1] == state
    with pytest.raises(Refusal, match=f"round 1 is {state}; only one that is lost"):
        world.drop(1)
    with pytest.raises(Refusal, match="has not been opened"):
        world.drop(4)
    with pytest.raises(Refusal, match="has the rounds 1 to 5"):
        world.drop(6)
    assert world.store.rounds("commute")[0].count == 2


@pytest.mark.exhaust
def test_a_close_is_no_word_to_drop_and_the_other_way_round(tmp_path):
    """Neither the challenge nor the signature of one action serves the other, in any mixture of them."""
    world = World(campaign(rounds=BY_HAND, minimum=2), folder=tmp_path)
    words = {action: world.word(action) for action in ("close", "drop")}
    lose_key(world)
    world.advance(1.0)
    for action, act in (("close", world.shuffler.close_round), ("drop", world.shuffler.drop_round)):
        other = words["drop" if action == "close" else "close"]
        for word in (other, words[action][:-64] + other[-64:], other[:-64] + words[action][-64:]):
            with pytest.raises(Refusal, match=r"not signed|no challenge that is good"):
                act("commute", 1, word, world.clock.now())
    assert world.states()[1] == "lost"


def test_a_signature_that_does_not_say_what_it_is_for_drops_and_closes_nothing(tmp_path):
    """Else what an owner has signed for another purpose, such as a hand-over, might be worth a drop."""
    world = World(campaign(rounds=BY_HAND, minimum=2), folder=tmp_path)
    bare = world.campaign.digest + (1).to_bytes(4, "big")
    lose_key(world)
    world.advance(1.0)
    for before in (b"", b"dovetail hand-over v1\0", b"dovetail audit v1\0"):
        for action, act in (("close", world.shuffler.close_round), ("drop", world.shuffler.drop_round)):
            challenge = world.word(action)[:-64]
            word = OWNER.signing.sign(before + bare + challenge)
            with pytest.raises(Refusal, match="not signed"):
                act("commute", 1, challenge + word, world.clock.now())


@pytest.mark.exhaust
def test_a_drop_that_an_observer_has_kept_drops_nothing_while_the_key_is_away(tmp_path):
    """It was refused for a healthy round; who saw it sends it again when the key file is away for a second."""
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0, 1, 2)
    kept = world.word("drop")
    unused = world.word("drop")
    with pytest.raises(Refusal, match="only one that is lost"):
        world.shuffler.drop_round("commute", 1, kept, world.clock.now())
    place = vault(world) / "commute-1.key"
    key = place.read_bytes()
    lose_key(world)
    world.advance(1.0)
    assert world.states()[1] == "lost"
    with pytest.raises(Refusal, match="sent before"):
        world.shuffler.drop_round("commute", 1, kept, world.clock.now())
    world.restart()  # what was used is not forgotten with the process
    with pytest.raises(Refusal, match="sent before"):
        world.shuffler.drop_round("commute", 1, kept, world.clock.now())
    with pytest.raises(Refusal, match="no challenge that is good now"):
        world.shuffler.drop_round("commute", 1, unused, world.clock.now() + SECONDS + 1)
    place.write_bytes(key)
    world.to_round(2)
    assert world.analyzer.only().header.count == 3


def spoil(world, number=1):
    """A report of the round that nobody sealed under its key."""
    (_, tag), *_ = world.store.tags("commute", [number])
    statement = f"UPDATE report SET sealed = x'00' WHERE number = {number} AND tag = x'{tag.hex()}'"
    world.store._database.write(lambda connection: connection.exec_driver_sql(statement))


@pytest.mark.exhaust
@pytest.mark.parametrize("small", one_in(2, ["wait", "merge"]))
def test_a_round_that_does_not_open_stops_no_other_one_and_its_owner_may_drop_it(tmp_path, caplog, small):
    world = World(campaign(minimum=2, small=small), folder=tmp_path)
    world.send(0, 1)
    spoil(world)
    world.to_round(2)
    world.send(0, 1, round=2)
    for _ in range(3):
        world.advance(1.0)
    assert world.shuffler.faults.rounds() == {"commute": [1]}
    assert [record.getMessage() for record in caplog.records].count("a round cannot go on") == 1
    world.to_round(3)
    assert world.states()[2] == "delivered" and world.analyzer.only().header.rounds == (2,)
    assert world.drop(1) == "dropped"
    world.advance(1.0)
    assert world.shuffler.faults.rounds() == {}


# which vault


def two(folder, **rules):
    return World(campaign(**rules), folder=folder), World(campaign(**rules), folder=folder)


@pytest.mark.exhaust
def test_a_second_shuffler_with_another_vault_does_not_start_and_takes_nothing(tmp_path):
    world, other = two(tmp_path, minimum=2)
    world.send(0, 1)
    other.replace_vault()
    with pytest.raises(ConfigError, match="another shuffler works on this database with another `vault`"):
        other.restart()
    world.to_round(2)
    assert world.states()[1] == "delivered" and world.analyzer.only().header.count == 2


@pytest.mark.exhaust
def test_shufflers_that_share_the_vault_share_the_database(tmp_path):
    world, other = two(tmp_path, minimum=2)
    assert world.send(0) + other.send(1) == ["accepted"] * 2
    assert other.send(0) == ["second_report"], "one device, one tag, whoever took its first report"
    world.to_round(2)
    assert world.analyzer.only().header.count == 2


def test_a_vault_with_another_key_for_a_round_is_refused_at_the_start(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0, 1)
    world.replace_vault()
    world.link_keys.create("commute", 1)
    with pytest.raises(ConfigError, match="another key for round 1 of commute than its reports lie under"):
        world.restart()
    assert world.states()[1] == "open", "nothing has changed"


def test_a_vault_that_changes_under_a_running_shuffler_takes_no_report(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0)
    shutil.rmtree(vault(world))
    other = FileLinkKeyStore(vault(world))
    other.create("commute", 1)
    assert len(other.identity()) == 32, "a vault of its own"
    assert world.send(1) == ["unavailable"]
    world.advance(1.0)
    assert world.shuffler.faults.rounds() == {"commute": [1]} and not world.shuffler.ready()
    assert world.states() == {1: "open"} and world.store.rounds("commute")[0].count == 1


@pytest.mark.exhaust
def test_a_vault_that_is_not_mounted_loses_no_round(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0, 1)
    vault(world).rename(tmp_path / "elsewhere")
    vault(world).mkdir()
    world.to_round(2)
    assert world.states()[1] != "lost" and not world.shuffler.ready()
    vault(world).rmdir()
    (tmp_path / "elsewhere").rename(vault(world))
    world.advance(1.0)
    assert world.shuffler.ready() and world.states()[1] == "delivered"


@pytest.mark.exhaust
def test_the_first_shuffler_may_come_back_when_one_with_an_empty_vault_was_started_instead(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0, 1)
    own = world.link_keys
    world.replace_vault()
    world.restart()
    assert world.states()[1] == "lost"
    world.store.close()
    world.link_keys = FileLinkKeyStore(own._folder)
    world.restart()
    assert world.states()[1] == "open"
    world.to_round(2)
    assert world.analyzer.only().header.count == 2


def test_keys_of_rounds_opened_before_fingerprints_were_kept_are_noted(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    forget = "UPDATE round SET key = NULL"
    world.store._database.write(lambda connection: connection.exec_driver_sql(forget))
    world.restart()
    (found,) = world.store.rounds("commute")
    assert found.key == world.link_keys.key("commute", 1).fingerprint


def test_a_damaged_key_loses_its_round_and_no_start_is_refused(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0, 1)
    (vault(world) / "commute-1.key").write_bytes(b"short")
    world.restart()
    assert world.states()[1] == "lost"
    with pytest.raises(StorageError, match="is not a round's key"):
        world.link_keys.key("commute", 1)


# seen from outside


@pytest.mark.exhaust
def test_a_lost_round_stands_in_health_status_and_metrics_and_is_dropped_by_its_owner(tmp_path):
    world = World(campaign(rounds=BY_HAND, minimum=2), folder=tmp_path)
    with served(world) as client:
        for device in DEVICES[:20]:
            client.post("/v1/reports", content=message(world.campaign, device))
        (tmp_path / "vault" / "commute-1.key").unlink()
        client.service._turn(client.service.clock.now())
        found = client.get("/readyz")
        assert (found.status_code, found.json()) == (200, {"status": "degraded", "lost": {"commute": [1]}})
        (status,) = client.get("/v1/status").json()["campaigns"]
        assert status["lost"] == [{"round": 1, "reports": 20}] and status["faulty"] == []
        assert 'dovetail_rounds{campaign="commute",state="lost"} 1.0' in client.get("/metrics").text
        late = client.post("/v1/reports", content=message(world.campaign, DEVICES[30]))
        assert (late.status_code, kind(late)) == (410, "lost")
        (tmp_path / "campaign.toml").write_bytes(world.campaign.signed)
        save_keys(OWNER, tmp_path / "owner.key")
        drop = ["collect", "drop", str(tmp_path / "campaign.toml"), "1", "--keys", str(tmp_path / "owner.key")]
        assert invoke([*drop, "--shuffler", str(client.base_url).rstrip("/")]) == 0
        assert client.get("/readyz").json() == {"status": "ready"}
        assert client.get("/v1/campaigns/commute/round").json() == {"round": 2, "state": "open"}
