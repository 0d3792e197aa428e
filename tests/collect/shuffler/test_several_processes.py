"""Several processes of one shuffler on one database and vault: what one leaves half done, another one finishes."""

from contextlib import nullcontext, suppress
from threading import Event, Thread

import pytest
from tests.collect.shuffler.test_mqtt import subscribed
from tests.collect.shuffler.test_release import asked_to_close
from tests.collect.shuffler.world import BY_HAND, World, campaign
from tests.waiting import PATIENCE

from dovetail.collect.http import Refusal
from dovetail.collect.shuffler import rounds as leftovers
from dovetail.collect.shuffler.mqtt import session_lock
from dovetail.core.errors import StorageError


class Killed(BaseException):
    """A process ends here."""


def killed(*_):
    raise Killed


@pytest.fixture
def two(tmp_path):
    """Two processes of one shuffler; clocks agree."""
    rule = campaign(minimum=2)
    return World(rule, folder=tmp_path), World(rule, folder=tmp_path)


def test_what_a_dead_process_has_half_built_is_released_by_a_living_one(two, monkeypatch):
    dead, living = two
    dead.send(*range(5))
    with monkeypatch.context() as patched, suppress(Killed):
        patched.setattr(dead.store, "finish_batch", killed)
        dead.to_round(2)
        pytest.fail("nothing was built")
    assert dead.states()[1] == "releasing"
    living.to_round(2)
    assert living.states()[1] == "delivered" and living.analyzer.only().header.count == 5
    assert dead.analyzer.sent == 0


@pytest.mark.exhaust
def test_a_key_that_a_dead_process_has_left_is_destroyed_by_a_living_one(two, monkeypatch):
    dead, living = two
    dead.send(0, 1)
    with monkeypatch.context() as patched, suppress(Killed):
        patched.setattr(dead.link_keys, "erase", killed)
        dead.to_round(2)
        pytest.fail("nothing was erased")
    assert living.link_keys.key("commute", 1) is not None
    living.to_round(2)
    assert living.link_keys.key("commute", 1) is None


@pytest.mark.exhaust
def test_what_a_living_process_builds_is_left_alone_by_one_that_starts_and_turns(two, monkeypatch):
    living, starting = two
    living.send(*range(5))
    real, seen = living.store.add_part, []

    def meanwhile(*arguments):
        real(*arguments)
        starting.restart()
        starting.to_round(2)
        seen.extend(batch.state for batch in starting.store.outgoing())

    with monkeypatch.context() as patched:
        patched.setattr(living.store, "add_part", meanwhile)
        living.to_round(2)
    assert seen == ["building"] and living.states()[1] == "delivered"
    assert (living.analyzer.only().header.count, starting.analyzer.sent) == (5, 0)


@pytest.mark.exhaust
def test_a_batch_is_sent_by_one_process_at_a_time(two, monkeypatch):
    first, second = two
    first.send(0, 1)
    real = first.analyzer.send

    def meanwhile(*arguments):
        second.shuffler.deliver(first.clock.now())
        real(*arguments)

    monkeypatch.setattr(first.analyzer, "send", meanwhile)
    first.to_round(2)
    assert (first.analyzer.sent, second.analyzer.sent) == (1, 0)


@pytest.mark.exhaust
def test_a_batch_that_another_process_has_delivered_is_refused_no_more(two):
    first, second = two
    first.analyzer.refused, second.analyzer.refused = {1}, {1}
    first.send(0, 1)
    first.to_round(2)
    second.to_round(2)
    assert second.shuffler.refused_batches() == {"commute": {1: "round"}}
    first.analyzer.refused = set()
    first.advance(400.0)
    second.shuffler.deliver(second.clock.now())
    assert second.shuffler.refused_batches() == {} and first.states()[1] == "delivered"


@pytest.mark.exhaust
def test_the_owner_closes_at_one_process_with_the_challenge_of_another_once(tmp_path):
    rule = campaign(rounds=BY_HAND, minimum=2)
    here, there = World(rule, folder=tmp_path), World(rule, folder=tmp_path)
    here.send(0)
    request = asked_to_close(there)
    assert here.shuffler.close_round("commute", 1, request, here.clock.now()) == "open", "too few, and it waits"
    here.send(1)
    for world in (there, here):
        with pytest.raises(Refusal, match="sent before"):
            world.shuffler.close_round("commute", 1, request, world.clock.now())
    assert there.shuffler.close_round("commute", 1, asked_to_close(here), there.clock.now()) == "released"
    assert there.send(2) == here.send(3) == ["late"]


def test_an_owner_is_asked_to_come_back_while_a_batch_is_built(tmp_path, monkeypatch):
    rule = campaign(rounds=BY_HAND, minimum=2)
    here, there = World(rule, folder=tmp_path), World(rule, folder=tmp_path)
    monkeypatch.setattr(leftovers, "_PATIENCE", 0.0)
    with here.store.alone("rounds") as mine:
        assert mine
        with pytest.raises(Refusal, match="being built") as told:
            there.shuffler.close_round("commute", 1, asked_to_close(there), there.clock.now())
    assert told.value.kind == "unavailable"


@pytest.mark.exhaust
def test_what_a_process_has_accepted_is_published_when_another_one_closes_the_round(two):
    closing, other = two
    other.send(0, 1)
    for _ in range(8):
        other.shuffler.counters.count("commute", "accepted")
    other.shuffler.turn(other.clock.now())
    assert other.shuffler.counters.published() == {}
    closing.to_round(2)
    with closing.store.alone("rounds"):
        other.shuffler.turn(other.clock.now())
    assert other.shuffler.counters.published() == {("commute", "accepted"): 10}


@pytest.mark.exhaust
@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_a_task_is_one_processs_until_it_ends(kind, request, tmp_path):
    from tests.collect.store.conftest import url_of

    from dovetail.collect.store.shuffler_store import open_shuffler_store

    url = url_of(kind, request, tmp_path)
    first, second = open_shuffler_store(url), open_shuffler_store(url)
    with first.alone("rounds") as mine, second.alone("rounds") as other, second.alone("delivery") as another:
        assert (mine, other, another) == (True, False, True)
    with second.alone("rounds") as mine:
        assert mine
    reached, go, found = Event(), Event(), []

    def hold():
        with first.alone("rounds") as mine:
            reached.set()
            assert mine and go.wait(PATIENCE)

    def wait():
        with second.alone("rounds", PATIENCE) as mine:
            found.append(mine)

    holder, waiter = Thread(target=hold, daemon=True), Thread(target=wait, daemon=True)
    holder.start()
    assert reached.wait(PATIENCE)
    waiter.start()
    go.set()
    waiter.join(PATIENCE)
    assert found == [True]
    for store in (first, second):
        store.close()


@pytest.mark.exhaust
def test_one_process_has_the_session_at_the_broker_and_another_one_takes_over(mosquitto, tmp_path):
    session, waiting = tmp_path / "mqtt.session", World(campaign())
    with subscribed(World(campaign()), mosquitto.url, session):
        assert not session_lock(session).alone()
        later = subscribed(waiting, mosquitto.url, session)
        thread = Thread(target=later.__enter__, daemon=True)
        thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it has subscribed once the other one was gone"
    later.__exit__(None, None, None)
    free = session_lock(session)
    assert free.alone() and free.alone()
    free.release()


@pytest.mark.exhaust
def test_two_that_work_at_once_because_a_session_was_lost_release_a_round_once(two, monkeypatch):
    first, second = two
    first.send(*range(5))
    real = first.store.add_part

    def meanwhile(*arguments):
        real(*arguments)
        with monkeypatch.context() as slower:
            slower.setattr(second.store, "alone", lambda *_: nullcontext(True))
            second.to_round(2)

    with monkeypatch.context() as patched:
        patched.setattr(first.store, "add_part", meanwhile)
        with suppress(Exception):
            first.to_round(2)
    first.advance(1.0)
    assert first.analyzer.sent + second.analyzer.sent == 1
    assert first.states()[1] == "delivered" and first.link_keys.key("commute", 1) is None


def test_a_lock_that_cannot_be_had_is_told_and_does_not_look_taken(two, tmp_path):
    (tmp_path / "shuffler.sqlite-rounds").unlink()
    (tmp_path / "shuffler.sqlite-rounds").mkdir()
    with pytest.raises(StorageError, match="cannot be locked"):
        two[0].shuffler.turn(two[0].clock.now())
    (tmp_path / "mqtt.session-lock").mkdir()
    with pytest.raises(StorageError, match=r"`mqtt\.session`"):
        session_lock(tmp_path / "mqtt.session").alone()
