"""A batch that the analyzer refuses for good is seen, stops nothing else, and its owner may give it up."""

import pytest
from tests.collect.shuffler.served import served
from tests.collect.shuffler.world import DEVICES, OWNER, World, campaign, message
from tests.waiting import until

from dovetail.cli.main import invoke
from dovetail.collect.files import save_keys
from dovetail.collect.http import Refusal
from dovetail.collect.logs import AuditLog
from dovetail.collect.shuffler.shuffler import ShufflerSettings
from dovetail.core.errors import StorageError

WAIT = 300.0  # seconds: no back-off is longer


def refused_world(folder, **rules):
    """A world whose first round was released in a batch that the analyzer refuses."""
    world = World(campaign(minimum=2, **rules), folder=folder)
    world.analyzer.refused.add(1)
    world.send(0, 1)
    world.to_round(2)
    assert world.states()[1] == "released"
    return world


@pytest.mark.exhaust
def test_a_refused_batch_is_named_with_its_round_and_reason_until_it_is_counted(tmp_path):
    world = refused_world(tmp_path)
    assert world.shuffler.refused_batches() == {"commute": {1: "round"}}
    world.restart()  # everything is sent again at once
    assert world.shuffler.refused_batches() == {"commute": {1: "round"}}
    world.analyzer.refused.clear()  # its operator has put right what was wrong there
    world.advance(WAIT)
    assert world.states()[1] == "delivered" and world.shuffler.refused_batches() == {}


def test_a_refused_batch_holds_up_no_other_round(tmp_path):
    world = refused_world(tmp_path)
    for number in (2, 3):
        world.send(0, 1, round=number)
        world.to_round(number + 1)
        assert world.states()[number] == "delivered"
    assert world.states()[1] == "released" and len(world.analyzer.batches) == 2


@pytest.mark.exhaust
def test_a_batch_that_cannot_be_read_holds_up_no_other_one(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.analyzer.failing = True
    for number in (1, 2):
        world.send(0, 1, round=number)
        world.to_round(number + 1)
    world.analyzer.failing = False
    first, second = world.store.outgoing()  # in the order in which they are sent
    statement = f"DELETE FROM part WHERE batch = '{first.id}'"
    world.store._database.write(lambda connection: connection.exec_driver_sql(statement))
    parts = world.store.parts

    def broken(batch):
        if batch == first.id:
            raise StorageError("a page of the disk is gone")
        return parts(batch)

    world.store.parts = broken
    with pytest.raises(StorageError, match="a page"):
        world.advance(WAIT)
    assert list(world.analyzer.batches) == [second.id]


@pytest.mark.exhaust
@pytest.mark.parametrize("missing", [[1 << 63], [3], [0, 0], [0, 1, 2, 2], [10**30]])
def test_an_analyzer_that_lacks_parts_that_are_not_there_holds_up_no_other_batch(missing, monkeypatch):
    world = World(campaign(minimum=2), settings=ShufflerSettings(part_reports=1))
    world.analyzer.parts_left = 0
    for number in (1, 2):
        world.send(0, 1, 2, round=number)
        world.to_round(number + 1)
    world.analyzer.parts_left = 1 << 30
    first, second = world.store.outgoing()  # in the order in which they are sent
    real = world.analyzer.offer
    with monkeypatch.context() as patched:
        patched.setattr(
            world.analyzer, "offer", lambda batch, wire: missing if batch == first.id else real(batch, wire)
        )
        world.advance(WAIT)
    assert list(world.analyzer.batches) == [second.id]
    assert first.id not in [batch for batch, _ in world.analyzer.put]
    world.advance(WAIT)
    assert set(world.analyzer.batches) == {first.id, second.id}


@pytest.mark.exhaust
def test_the_owner_gives_a_refused_batch_up_once_and_for_ever(tmp_path):
    world = refused_world(tmp_path)
    reports = [message(world.campaign, device) for device in DEVICES[2:4]]
    with pytest.raises(Refusal, match="not signed"):
        world.drop(key=DEVICES[0])
    assert [world.drop(), world.drop()] == ["dropped", "dropped"]
    assert world.store.outgoing() == [] and world.shuffler.refused_batches() == {}
    world.analyzer.refused.clear()
    world.restart()
    world.advance(WAIT)
    assert world.states()[1] == "dropped" and world.analyzer.batches == {}, "nobody counts it later"
    assert world.deliver(reports) == ["late", "late"]


@pytest.mark.exhaust
def test_rounds_merged_into_a_refused_one_are_given_up_with_it(tmp_path):
    world = World(campaign(minimum=3, small="merge"), folder=tmp_path)
    world.analyzer.refused.add(2)
    world.send(0, 1)
    world.to_round(2)
    world.send(2, 3, round=2)
    world.to_round(3)
    assert (world.states()[1], world.states()[2]) == ("merged", "released")
    assert world.drop(2) == "dropped" and world.store.outgoing() == []
    world.restart()
    assert (world.states()[1], world.states()[2]) == ("merged", "dropped")


@pytest.mark.exhaust
def test_a_batch_that_may_still_be_counted_is_not_given_up(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.analyzer.failing = True  # away, or its disk is full
    world.send(0, 1)
    world.to_round(2)
    assert world.states()[1] == "released" and world.shuffler.refused_batches() == {}
    with pytest.raises(Refusal, match="round 1 is released; only one that is lost, or does not open, or whose batch"):
        world.drop()
    world.analyzer.failing = False
    world.analyzer.refused.add(1)
    world.advance(WAIT)
    assert world.shuffler.refused_batches() == {"commute": {1: "round"}}
    world.analyzer.refused.clear()
    world.analyzer.failing = True  # its latest word counts
    world.advance(WAIT)
    assert world.shuffler.refused_batches() == {}


@pytest.mark.exhaust
def test_a_drop_is_in_the_audit_log_once_and_before_it_has_effect(tmp_path):
    world = refused_world(tmp_path)
    log = AuditLog.of(OWNER, tmp_path / "server.key")
    world.shuffler._audit = log
    log.path.mkdir()  # it cannot be written
    with pytest.raises(StorageError):
        world.drop()
    assert world.states()[1] == "released"
    log.path.rmdir()
    world.drop()
    world.drop()
    assert log.path.read_text().count("round dropped") == 1


@pytest.mark.exhaust
def test_a_refused_batch_stands_in_health_status_and_metrics_and_is_dropped_by_its_owner(tmp_path, capsys):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.analyzer.refused.add(1)
    world.send(0, 1)
    world.to_round(2)
    with served(world) as client:
        place = str(client.base_url).rstrip("/")
        until(client.service.shuffler.refused_batches)  # it is sent again at the start
        found = client.get("/readyz")
        assert (found.status_code, found.json()) == (200, {"status": "degraded", "refused": {"commute": [1]}})
        (status,) = client.get("/v1/status").json()["campaigns"]
        assert status["refused_batches"] == [{"round": 1, "kind": "round"}]
        assert 'dovetail_batches_refused{campaign="commute"} 1.0' in client.get("/metrics").text
        assert invoke(["collect", "status", place]) == 0
        assert "refuses the batch of round 1 of commute: round" in " ".join(capsys.readouterr().out.split())
        (tmp_path / "campaign.toml").write_bytes(world.campaign.signed)
        save_keys(OWNER, tmp_path / "owner.key")
        drop = ["collect", "drop", str(tmp_path / "campaign.toml"), "1", "--keys", str(tmp_path / "owner.key")]
        assert invoke([*drop, "--shuffler", place]) == 0
        assert client.get("/readyz").json() == {"status": "ready"}
        assert client.get("/v1/status").json()["batches_waiting"] == 0
        assert 'dovetail_batches_refused{campaign="commute"} 0.0' in client.get("/metrics").text
