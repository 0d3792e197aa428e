"""What is taken, what is refused and why; and that senders cannot tell a new report from a known one."""

import os
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.collect.shuffler.world import (
    BY_CLOCK,
    BY_HAND,
    DEVICES,
    PERIOD,
    SHUFFLER,
    World,
    campaign,
    message,
    roster,
)

from dovetail.collect.http import Refusal
from dovetail.collect.shuffler import intake as report_intake
from dovetail.collect.shuffler.campaigns import ServedVersion
from dovetail.collect.shuffler.intake import AdmissionControl, CheckedReport, RateLimiter
from dovetail.collect.shuffler.shuffler import ShufflerSettings
from dovetail.collect.store.interfaces import SealedReport
from dovetail_device.sender import refusal_event
from dovetail_protocol.keys import Opener, RoleKeys, SigningKey, VerifyingKey
from dovetail_protocol.messages import plain, seal

ONE, TWO = DEVICES[:2]
FUZZED = World(campaign())


def test_a_new_report_and_a_known_one_are_answered_alike():
    world = World(campaign())
    report = message(world.campaign, ONE)
    first, again = (world.shuffler.accept([report], world.clock.now()) for _ in range(2))
    assert first == again
    assert (world.count("accepted"), world.count("duplicate")) == (1, 1)
    assert world.store.rounds("commute")[0].count == 1


def test_the_same_report_twice_in_one_batch_counts_once():
    world = World(campaign())
    report = message(world.campaign, ONE)
    assert world.deliver([report, report]) == ["accepted", "accepted"]
    assert world.store.rounds("commute")[0].count == 1


def test_a_report_that_counted_for_another_campaign_is_not_said_to_count_for_this_one():
    """An honest device draws 16 bytes anew for every report; one whose copies draw alike must not be told a lie."""
    world, id = World(campaign(minimum=1)), os.urandom(16)
    world.store.open_round("trains", 1, now=world.clock.now())
    digest = sha256(id).digest()
    assert world.store.accept([SealedReport("trains", 1, os.urandom(32), digest, b"sealed")]) == ["new"]
    assert world.deliver([message(world.campaign, ONE, id=id)]) == ["content"]
    assert (world.count("content"), world.count("accepted"), world.count("duplicate")) == (1, 0, 0)
    assert refusal_event("content").name == "final", "the device gives up, and its owner can read why"
    assert world.deliver([message(world.campaign, ONE)]) == ["accepted"]


@pytest.mark.exhaust
def test_a_second_report_of_a_device_is_refused_and_the_first_one_stays():
    world = World(campaign(minimum=1))
    world.send(0, value=1)
    assert world.send(0, value=2) == ["second_report"]
    world.to_round(2)
    assert world.analyzer.only().values(world.campaign) == [1]


@pytest.mark.exhaust
def test_a_report_of_the_next_round_is_taken_and_one_beyond_is_too_early():
    world = World(campaign())
    assert world.send(0, round=2) + world.send(0, round=3) == ["accepted", "too_early"]
    assert world.count("too_early") == 1


def test_a_report_before_the_first_round_is_taken_for_it():
    early = World(campaign(rounds=BY_CLOCK.replace("2030-01-01", "2030-01-02")))
    assert early.states() == {}
    assert early.send(0, round=1) + early.send(0, round=2) == ["accepted", "too_early"]


@pytest.mark.exhaust
def test_late_reports_are_refused_where_the_rule_says_so():
    world = World(campaign(minimum=1, late="refuse"))
    world.send(0)
    world.to_round(2)
    assert world.send(1) == ["late"]
    assert world.states() == {1: "delivered", 2: "open"}


@pytest.mark.exhaust
def test_late_reports_join_the_running_round_where_the_rule_says_so():
    world = World(campaign(minimum=1, late="next"))
    world.send(0)
    world.to_round(2)
    assert world.send(1) == ["accepted"]
    assert {round.number: round.count for round in world.store.rounds("commute")} == {1: 1, 2: 1}
    world.to_round(3)
    assert sorted(batch.header.count for batch in world.analyzer.batches.values()) == [1, 1]


def test_a_report_is_never_counted_again_after_its_digest_is_forgotten():
    days = BY_CLOCK.replace(f"period_seconds = {PERIOD}", "period_seconds = 86400").replace("count = 5", "count = 99")
    world = World(campaign(minimum=1, late="next", rounds=days), settings=ShufflerSettings(retention_days=2))
    report, late = message(world.campaign, ONE), message(world.campaign, TWO)
    world.deliver([report])
    world.advance(86_400.0 + 61)
    assert world.deliver([late]) == ["accepted"]  # its round began less than two days ago
    for _ in range(5):
        world.advance(86_400.0)
    assert world.deliver([report, late, message(world.campaign, TWO)]) == ["late"] * 3
    assert sum(batch.header.count for batch in world.analyzer.batches.values()) == 2


@pytest.mark.exhaust
@pytest.mark.parametrize("late", ["refuse", "next"])
def test_a_retry_of_a_released_report_is_acknowledged_and_counts_nowhere(late):
    world = World(campaign(minimum=1, late=late))
    report = message(world.campaign, ONE)
    world.deliver([report])
    world.to_round(2)
    assert world.deliver([report]) == ["accepted"]
    assert world.count("duplicate") == 1
    world.to_round(3)
    assert len(world.analyzer.batches) == 1


def test_a_report_in_grace_is_taken():
    world = World(campaign())
    world.advance(PERIOD + 59)
    assert world.send(0) == ["accepted"]


def test_unknown_and_revoked_devices_are_refused():
    world = World(campaign(), roster=roster(DEVICES[:2], revoked=[TWO]))
    assert world.send(0, 1, 2) == ["accepted", "revoked_device", "unknown_device"]
    assert (world.count("revoked_device"), world.count("unknown_device")) == (1, 1)


def test_without_authentication_any_key_is_taken():
    world = World(campaign(authentication="none"))
    assert world.deliver([message(world.campaign, SigningKey.generate())]) == ["accepted"]


def forgeries(made):
    """Hostile messages by the refusal that they earn."""
    good = message(made, ONE)
    unsealed = plain(made, made.mechanism.encode(0))
    stranger = replace(made, shuffler=RoleKeys.generate("shuffler").opening.sealing_key())
    elsewhere = replace(made, digest=os.urandom(32))
    beyond = good[:37] + (6).to_bytes(4, "big") + good[41:]
    return {
        "empty": (b"", "malformed"),
        "short": (good[:40], "malformed"),
        "noise": (os.urandom(len(good)), "malformed"),
        "cut": (good[:-1], "malformed"),
        "long": (good + b"\0", "malformed"),
        "another version": (good[:4] + b"\2" + good[5:], "version"),
        "another campaign": (message(elsewhere, ONE), "campaign"),
        "another round": (beyond, "round"),
        "round 0": (good[:37] + bytes(4) + good[41:], "round"),
        "moved to the next round": (good[:37] + (2).to_bytes(4, "big") + good[41:], "seal"),
        "changed": (good[:-1] + bytes([good[-1] ^ 1]), "seal"),
        "another shuffler": (seal(stranger, 1, unsealed, ONE), "seal"),
    }


@pytest.mark.parametrize("case", list(forgeries(campaign())))
def test_what_is_no_report_is_refused_counted_and_changes_nothing(case):
    world = World(campaign())
    hostile, kind = forgeries(world.campaign)[case]
    answers = world.deliver([hostile, message(world.campaign, TWO)])
    assert answers == [kind, "accepted"]
    assert world.store.rounds("commute")[0].count == 1
    assert sum(count for (_, k), count in world.shuffler.counters.total().items() if k == kind) == 1


class Forger(SigningKey):
    """Names another device than the one that signs."""

    def verifying_key(self):
        return ONE.verifying_key()


def test_a_report_in_the_name_of_another_device_is_refused():
    world = World(campaign())
    assert world.deliver([message(world.campaign, Forger(TWO.secret))]) == ["signature"]


@pytest.mark.exhaust
def test_ten_thousand_bad_messages_are_counted_and_leave_no_row():
    world = World(campaign())
    bad = [b"?" + os.urandom(99) for _ in range(9_000)] + [message(world.campaign, ONE)[:-1]] * 1_000
    assert set(world.deliver(bad)) == {"malformed"}
    total = world.shuffler.counters.total()
    assert (total["", "malformed"], total["commute", "malformed"]) == (9_000, 1_000)
    world.advance(1.0)
    assert world.store.faults("commute") == {"malformed": 1_000}
    assert world.store.rounds("commute")[0].count == 0


def test_refusals_say_nothing_of_who_and_what():
    world = World(campaign())
    for hostile, _ in forgeries(world.campaign).values():
        (answer,) = world.shuffler.accept([hostile], world.clock.now())
        assert str(ONE.verifying_key()) not in answer.detail
        assert not hostile or hostile.hex()[-16:] not in answer.detail


@pytest.mark.exhaust
def test_a_device_that_sends_too_often_is_told_when_to_come_back():
    world = World(campaign(), settings=ShufflerSettings(per_device_per_minute=3))
    report = message(world.campaign, ONE)
    assert world.deliver([report] * 3) == ["accepted"] * 3
    (answer,) = world.shuffler.accept([report], world.clock.now())
    assert (answer.kind, answer.retry_after) == ("rate_limited", 20.0)
    assert world.send(1) == ["accepted"]
    world.clock.advance(20.0)
    assert world.deliver([report]) == ["accepted"]


def test_the_limits_remember_a_bounded_number_of_devices():
    rates = RateLimiter(60, most=100)
    for number in range(1_000):
        assert rates.take(number.to_bytes(4, "big"), 0.0) == 0.0
    assert len(rates) == 100


def test_the_gate_admits_so_much_and_no_more():
    gate = AdmissionControl(10)
    with gate.admit(6), pytest.raises(Refusal) as refused, gate.admit(5):
        pass
    assert (refused.value.kind, refused.value.retry_after) == ("unavailable", 2.0)
    assert gate.used == 0


def test_both_versions_are_taken_until_the_older_one_expires():
    old = campaign(version=1, expires="expires = 2030-01-01T02:00:00Z", minimum=2)
    new = campaign(version=2, expires="expires = 2031-01-01T00:00:00Z", minimum=2)
    world = World(new, others=[old])
    assert world.deliver([message(old, ONE), message(new, TWO)]) == ["accepted", "accepted"]
    world.to_round(2)
    assert world.analyzer.only().header.count == 2
    world.to_round(3)
    assert world.deliver([message(old, ONE, round=3), message(new, TWO, round=3)]) == ["campaign", "accepted"]


def test_a_rotated_shuffler_key_opens_reports_of_its_own_version():
    rotated = RoleKeys.generate("shuffler")
    old, new = campaign(version=1), campaign(version=2, shuffler=rotated)
    world = World(new, others=[old], keys=[SHUFFLER, rotated])
    assert world.deliver([message(old, ONE), message(new, TWO)]) == ["accepted", "accepted"]


def test_a_report_sealed_again_under_a_new_version_counts_once():
    old, new = campaign(version=1), campaign(version=2)
    world = World(new, others=[old])
    assert world.deliver([message(old, ONE, id=b"i" * 16), message(new, ONE, id=b"i" * 16)]) == ["accepted"] * 2
    assert world.store.rounds("commute")[0].count == 1


@pytest.mark.exhaust
def test_rounds_by_hand_open_when_the_one_before_is_closed():
    world = World(campaign(rounds=BY_HAND))
    assert world.states() == {1: "open"}
    assert world.send(0, round=3) == ["too_early"]


def test_a_round_without_its_key_refuses_for_now_and_stops_no_other_campaign():
    other = campaign(id="lunch")
    world = World(campaign(), others=[other])
    world.send(0)
    world.link_keys.erase("commute", 1)  # an operator's accident
    both = [message(world.campaign, TWO), message(other, TWO)]
    assert world.deliver(both) == ["unavailable", "accepted"]
    assert world.store.rounds("lunch")[0].count == 1 and world.count("unavailable") == 1


def test_a_report_whose_round_was_released_a_moment_ago_is_late_and_not_lost():
    world = World(campaign(minimum=1))
    world.send(0)
    old = world.shuffler.rounds.of("commute")
    world.to_round(2)
    world.shuffler.rounds._seen["commute"] = old  # as another thread has seen it
    (answer,) = world.shuffler.accept([message(world.campaign, TWO)], world.clock.now() - 120.0)
    assert answer.kind == "late"


@given(some.binary(max_size=400))
def test_no_bytes_make_the_shuffler_fail(body):
    (answer,) = FUZZED.shuffler.accept([body], FUZZED.clock.now())
    assert answer.kind == "malformed"


@given(some.data())
def test_no_change_of_a_message_is_taken(data):
    good = message(FUZZED.campaign, ONE)
    place = data.draw(some.integers(0, len(good) - 1))
    changed = good[:place] + bytes([good[place] ^ data.draw(some.integers(1, 255))]) + good[place + 1 :]
    (answer,) = FUZZED.shuffler.accept([changed], FUZZED.clock.now())
    assert answer.kind in ("malformed", "version", "campaign", "round", "too_early", "seal")


def test_a_report_is_stored_under_the_hash_of_its_id_alone(tmp_path):
    id = bytes(range(100, 116))  # a device keeps the ids of its reports: the store must not
    world = World(campaign(), folder=tmp_path)
    assert world.deliver([message(world.campaign, DEVICES[0], id=id)]) == ["accepted"]
    world.store.close()
    held = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("shuffler.sqlite*")))
    assert id not in held and sha256(id).digest() in held


def test_silence_earns_a_device_no_more_than_one_minute_of_messages():
    limits = RateLimiter(6.0)
    assert [limits.take(b"device", 0.0) for _ in range(6)] == [0.0] * 6
    assert limits.take(b"device", 5.0) == pytest.approx(5.0), "half a token is none"
    day = 86_400.0
    assert [limits.take(b"device", day) for _ in range(6)] == [0.0] * 6 and limits.take(b"device", day) > 0.0


def test_a_version_takes_no_report_from_the_moment_on_at_which_it_expires():
    made = campaign(expires="expires = 2030-01-02T00:00:00Z")
    assert made.expires is not None
    version, end = ServedVersion(made, None, None, 0), made.expires.timestamp()
    assert version.takes_reports(end - 1e-3) and not version.takes_reports(end)


@pytest.mark.parametrize("change", [-1, 1, 1000])
def test_a_message_of_another_length_costs_no_cryptography(change, monkeypatch):
    """Whoever sends long messages to every shuffler must not keep it busy with them."""
    world = World(campaign())
    good = message(world.campaign, DEVICES[0])
    opened = []
    honest = report_intake.open_envelope
    monkeypatch.setattr(report_intake, "open_envelope", lambda *each: opened.append(each) or honest(*each))
    assert world.deliver([good[:change] if change < 0 else good + bytes(change)]) == ["malformed"] and opened == []
    assert world.deliver([good]) == ["accepted"] and len(opened) == 1


@pytest.mark.parametrize(
    ("kind", "work"),
    [
        *[(kind, "") for kind in ("noise", "cut", "long", "another version", "another campaign", "another round")],
        *[(kind, "opened") for kind in ("moved to the next round", "changed", "another shuffler")],
        ("signed by another", "opened verified"),
        ("unknown device", "opened verified"),
        ("report", "opened verified stored"),
    ],
)
def test_a_message_costs_no_step_beyond_the_one_that_refuses_it(kind, work, monkeypatch):
    """What a flood costs; a stranger is verified, as else refusals would tell whose keys are in the roster."""
    world, done = World(campaign()), list[str]()
    made, store = world.campaign, world.store
    others = {
        "signed by another": message(made, Forger(TWO.secret)),
        "unknown device": message(made, SigningKey.generate()),
        "report": message(made, ONE),
    }
    wire = others[kind] if kind in others else forgeries(made)[kind][0]
    for owner, method, step in ((Opener, "open", "opened"), (VerifyingKey, "verifies", "verified")):
        honest = getattr(owner, method)
        monkeypatch.setattr(owner, method, lambda *each, honest=honest, step=step: done.append(step) or honest(*each))
    accept = store.accept
    monkeypatch.setattr(store, "accept", lambda reports: done.append("stored") or accept(reports))
    world.deliver([wire])
    assert " ".join(done) == work


def test_who_is_told_nothing_is_verified_only_if_the_roster_has_her(monkeypatch):
    """Junk costs no signature where there is no answer whose time could tell of the roster."""
    world, looked, honest = World(campaign(), roster=roster(DEVICES[:2], revoked=[TWO])), [], VerifyingKey.verifies
    monkeypatch.setattr(VerifyingKey, "verifies", lambda *each: looked.append(each) or honest(*each))

    def verified(sender, quiet):
        before = len(looked)
        return world.shuffler.check(message(world.campaign, sender), world.clock.now(), quiet).kind, len(
            looked
        ) - before

    stranger, forger = SigningKey.generate(), Forger(TWO.secret)
    assert verified(stranger, False) == ("unknown_device", 1) and verified(stranger, True) == ("unknown_device", 0)
    assert verified(forger, False) == verified(forger, True) == ("signature", 1)
    assert verified(TWO, False) == verified(TWO, True) == ("revoked_device", 1)
    assert isinstance(world.shuffler.check(message(world.campaign, ONE), world.clock.now(), True), CheckedReport)
