"""A clock that somebody sets wrong closes no round, and a right one goes on by an operator's word."""

import json

import pytest
from tests.collect.shuffler.served import kind, served
from tests.collect.shuffler.world import BEGIN, DEVICES, PERIOD, World, campaign, message

from dovetail.cli.main import invoke
from dovetail.collect.clock import FrozenClock, SystemClock
from dovetail.collect.http import Refusal
from dovetail.collect.shuffler import trusted_clock
from dovetail.collect.shuffler.service import ShufflerService
from dovetail.collect.shuffler.trusted_clock import ClockLimits, TrustedClock
from dovetail.collect.store.interfaces import Moment
from dovetail.collect.store.shuffler_store import open_shuffler_store

DAY = 86_400.0
LIMITS = ClockLimits(step=300.0, outage=7.0)


class Machine(FrozenClock):
    """A clock whose machine can boot again, without a word of how long that took."""

    name = "one"

    def boot(self):
        return self.name

    def reboot(self, *, away):
        self.name, self._now, self._steady = self.name + "+", self._now + away, 5.0


@pytest.fixture
def store():
    store = open_shuffler_store("sqlite://")
    yield store
    store.close()


@pytest.fixture
def clock():
    return Machine(BEGIN)


def trusted(clock, store, limits=LIMITS):
    return TrustedClock(clock, store, limits)


def halted(found):
    with pytest.raises(Refusal) as refused:
        found.now()
    assert (refused.value.kind, found.halted) == ("unavailable", True)
    return found.halted


@pytest.mark.parametrize("jump", [90 * DAY, 301.0, -301.0, -90 * DAY])
def test_a_jump_halts_and_the_right_time_goes_on(clock, store, jump):
    found = trusted(clock, store)
    before = found.now()
    clock.set(BEGIN + jump)
    assert halted(found) and found.last() == before
    clock.advance(1.6)
    assert halted(found)
    clock.set(BEGIN + 1.6)
    clock.advance(0.5)
    assert found.now() == BEGIN + 2.1 and not found.halted
    assert store.moment().halted is False


@pytest.mark.parametrize("jump", [299.0, -299.0])
def test_a_small_step_is_believed_and_time_never_runs_back(clock, store, jump):
    found = trusted(clock, store)
    seen = [found.now()]
    for change in (jump, -jump, jump):
        clock.advance(10.0)
        clock.set(clock.now() + change)
        seen.append(found.now())
    assert seen == sorted(seen) and not found.halted


def test_many_small_steps_are_a_jump(clock, store):
    found = trusted(clock, store)
    found.now()
    with pytest.raises(Refusal):
        for _ in range(10):
            clock.advance(1.0)
            clock.set(clock.now() + 250.0)
            found.now()
    assert found.last() < BEGIN + 2 * 300.0


def test_a_step_that_was_believed_is_forgotten_slowly(clock, store):
    found = trusted(clock, store)
    found.now()
    for _ in range(3):
        clock.set(clock.now() + 250.0)
        for _ in range(9):
            clock.advance(0.5 * DAY / 9)
            found.now()
    assert not found.halted


def test_an_idle_process_believes_whatever_the_machine_has_counted(clock, store):
    found = trusted(clock, store)
    found.now()
    clock.advance(6.9 * DAY)
    assert found.now() == BEGIN + 6.9 * DAY
    clock.advance(7.1 * DAY)
    assert halted(found)


@pytest.mark.parametrize(
    ("away", "believed"), [(3 * DAY, True), (6.9 * DAY, True), (8 * DAY, False), (-3600.0, False)]
)
def test_after_a_boot_an_outage_must_be_plausible(clock, store, away, believed):
    trusted(clock, store).now()
    clock.reboot(away=away)
    found = trusted(clock, store)
    assert found.now() == BEGIN + away if believed else halted(found)


def test_after_a_restart_on_the_same_boot_a_jump_is_no_outage(clock, store):
    trusted(clock, store).now()
    clock.advance(100.0)
    clock.set(clock.now() + DAY)
    assert halted(trusted(clock, store))


def test_a_halt_outlives_its_process_and_its_boot(clock, store):
    found = trusted(clock, store)
    found.now()
    clock.set(BEGIN + DAY)
    assert halted(found)
    clock.reboot(away=0.0)
    assert halted(trusted(clock, store)), "a day might be an outage, but the clock was seen to jump"


def test_a_wrong_clock_at_the_start_is_not_held_against_the_right_one(clock, store):
    trusted(clock, store).now()
    clock.reboot(away=-BEGIN)  # a machine without a battery, until its clock is set
    found = trusted(clock, store)
    assert halted(found) and found.last() == BEGIN
    clock.set(BEGIN + 600.0)
    clock.advance(1.0)
    assert found.now() == BEGIN + 601.0


@pytest.mark.parametrize("jump", [90 * DAY, -90 * DAY])
def test_an_operators_word_lets_a_running_shuffler_go_on(clock, store, jump):
    found = trusted(clock, store)
    found.now()
    clock.set(BEGIN + jump)
    assert halted(found)
    trusted_clock.confirm(trusted_clock.read(clock), store)
    clock.advance(1.0)
    assert found.now() == BEGIN + jump + 1.0
    clock.set(clock.now() + 301.0)
    assert halted(found), "a word is for one jump"


def test_another_replicas_record_is_no_operators_word(clock, store):
    found = trusted(clock, store)
    found.now()
    clock.set(BEGIN + 3 * DAY)
    assert halted(found)
    store.record_moment(Moment(BEGIN + 60.0, "another", BEGIN - 9.0))
    clock.advance(1.0)
    assert halted(found)


def test_the_record_follows_in_whole_minutes(clock, store):
    found = trusted(clock, store)
    for seconds in (0.0, 59.0, 1.5, 130.0):
        clock.advance(seconds)
        found.now()
        found.note()
    assert store.moment().time == BEGIN + 180.0 and store.moment().time % 60 == 0 and store.moment().booted % 60 == 0


@pytest.mark.exhaust
def test_a_jump_of_90_days_drops_no_round_and_refuses_no_later_report():
    world = World(campaign(minimum=5, small="drop"))
    with served(world) as client:
        for device in DEVICES[:3]:
            assert client.post("/v1/reports", content=message(world.campaign, device)).status_code == 202
        world.clock.set(BEGIN + 90 * DAY)
        refused = client.post("/v1/reports", content=message(world.campaign, DEVICES[3]))
        assert (refused.status_code, kind(refused)) == (503, "unavailable")
        assert kind(client.get("/readyz")) == "unavailable" and "clock" in client.get("/readyz").json()["detail"]
        assert client.get("/v1/status").json()["clock"] == "halted"
        assert "dovetail_clock_halted 1.0" in client.get("/metrics").text
        for work in (client.service._turn, world.shuffler.deliver):
            with pytest.raises(Refusal):
                work(client.service.clock.now())
        assert world.states() == {1: "open"}
        world.clock.set(BEGIN)
        world.clock.advance(1.6)
        assert client.get("/readyz").json() == {"status": "ready"}
        assert client.post("/v1/reports", content=message(world.campaign, DEVICES[3])).status_code == 202
        assert world.store.rounds("commute")[0].count == 4


def test_every_turn_of_a_shuffler_keeps_the_record_up_to_date():
    world = World(campaign())
    service = ShufflerService(world.shuffler, world.clock)
    for seconds in (0.0, 600.0):
        world.clock.advance(seconds)
        service._turn(service.clock.now())
        assert world.store.moment().time == world.clock.now()


def test_a_shuffler_starts_on_a_clock_that_it_does_not_believe_and_says_so():
    world = World(campaign())
    world.store.record_moment(Moment(BEGIN + 30 * DAY, "another", BEGIN))
    with served(world) as client:
        assert client.get("/readyz").status_code == 503 and client.get("/healthz").status_code == 200
        world.clock.set(BEGIN + 31 * DAY)
        world.clock.advance(1.0)
        assert client.get("/readyz").status_code == 200


def test_the_verb_shows_and_confirms_the_time(tmp_path, capsys):
    config = tmp_path / "shuffler.toml"
    config.write_text('schema_version = 1\ncampaigns = ["c"]\nkeys = "k"\nanalyzer = "http://127.0.0.1:9"\n')
    now = SystemClock().now()
    store = open_shuffler_store(f"sqlite:///{tmp_path / 'shuffler.sqlite'}")
    store.record_moment(Moment(now - 30 * DAY, "another", now - 40 * DAY, halted=True))

    def ask(*more):
        assert invoke(["collect", "clock", str(config), "--json", *more]) == 0
        return json.loads(capsys.readouterr().out)

    before = ask()
    assert (before["halted"], before["agrees"], before["confirmed"]) == (True, False, 0)
    after = ask("--confirm")
    assert (after["halted"], after["agrees"], after["confirmed"]) == (False, True, 1)
    assert abs(store.moment().time - now) < 3600.0
    store.close()


def test_the_systems_clock_counts_seconds_that_nobody_sets():
    clock = SystemClock()
    first, boot = clock.steady(), clock.boot()
    assert clock.steady() >= first > 0.0 and clock.boot() == boot


def test_a_round_ends_by_the_believed_time(clock, store):
    found = trusted(clock, store)
    found.now()
    for _ in range(61):
        clock.advance(60.0)
        last = found.now()
    assert last == BEGIN + PERIOD + 60.0
