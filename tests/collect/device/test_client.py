"""What a device does and refuses to do, under a clock and a transport of the test."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from tests.collect.device.made import KRR, OWNER, PERIOD, START, Bench, FakeTransport, campaign, opened

from dovetail.collect.campaign.terms import require_same_terms
from dovetail_device.client import RoundUnknown
from dovetail_device.ledger import terms_of
from dovetail_device.outbox import BudgetSpent, Outbox
from dovetail_device.sender import UNREACHABLE, DeliveryEvent, refusal_event
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.errors import ConfigError, DataError, ParameterError
from dovetail_protocol.keys import Role, RoleKeys
from dovetail_protocol.mechanism import mechanism
from dovetail_protocol.messages import Rejected

CAMPAIGN = campaign()
MANUAL = campaign(schedule='schedule = "manual"\ncount = 5')


ROLES: tuple[Role, ...] = ("analyzer", "shuffler")


def bench(*answers: DeliveryEvent, **options: object) -> Bench:
    given = {"campaign": CAMPAIGN, **options}
    transport = FakeTransport(answers, given.pop("file", None), given.pop("running", None))  # type: ignore[arg-type]
    return Bench(transport=transport, **given)  # type: ignore[arg-type]


def test_a_submitted_value_arrives_as_one_report_for_the_round_that_runs() -> None:
    made = bench()
    made.clock.time = START + 2.5 * PERIOD
    receipt = made.device.submit("green")
    envelope, inner = opened(CAMPAIGN, made.transport.sent[0])
    assert (receipt.state, receipt.round, envelope.round, len(made.transport.sent)) == ("accepted", 3, 3, 1)
    assert made.keys.signing and envelope.device == made.keys.signing.verifying_key()
    assert CAMPAIGN.mechanism.decode(inner[3:]) in range(4)


def test_a_second_value_in_a_round_changes_nothing_and_costs_nothing() -> None:
    made = bench(UNREACHABLE, UNREACHABLE)
    for value in ("red", "green", "blue", "other"):
        made.clock.time += PERIOD / 8  # beyond every back-off so far
        made.device.submit(value)
    assert len(set(made.transport.sent)) == 1
    assert made.outbox.ledgers()[0].spent == 1.0


def test_a_resent_report_is_the_same_bytes_also_after_a_restart() -> None:
    made = bench(*[UNREACHABLE] * 5)
    made.device.submit("red")
    for _ in range(5):
        made.clock.time += PERIOD
        made.restart().flush()
    assert len(made.transport.sent) == 6 and len(set(made.transport.sent)) == 1
    assert made.outbox.waiting(CAMPAIGN.id) == []


def test_an_accepted_report_is_erased_and_never_sent_again() -> None:
    made = bench()
    made.device.submit("red")
    entry = made.outbox.find(CAMPAIGN.id, 1)
    assert entry and entry.state == "accepted" and not (entry.plaintext or entry.wire or entry.id)
    again = made.device.submit("green")
    assert (again.state, again.drawn) == ("accepted", False)
    assert made.device.flush() == [] and len(made.transport.sent) == 1


def test_the_budget_ends_the_reports_also_across_restarts() -> None:
    made = bench()
    for number in range(1, 4):
        made.restart().submit("red", number)
    with pytest.raises(BudgetSpent, match=r"budget of 3 nats .* does not pay"):
        made.restart().submit("red", 4)
    assert len(made.transport.sent) == 3
    assert made.device.submit("red", 3).state == "accepted"  # what was paid for stays


def test_ten_reports_of_a_tenth_cost_one() -> None:
    tenth = campaign(randomizer=KRR.replace("1.0", "0.1"), budget=1.0)
    made = bench(campaign=tenth)
    for number in range(1, 11):
        made.device.submit("red", number)
    assert made.outbox.ledgers()[0].spent == 1.0


def test_a_refused_draw_is_not_charged() -> None:
    made = bench()
    with pytest.raises(Rejected, match="public group"):
        made.device.submit("red", group="north")
    assert made.outbox.ledgers()[0].spent == 0.0 and not made.transport.sent


@pytest.mark.parametrize("value", ["magenta-4711", 4711, -4711, 0.4711, float("nan"), None, ["magenta-4711"]])
def test_errors_never_repeat_the_value(value: object) -> None:
    for asked in (CAMPAIGN, campaign(randomizer='name = "krr"\nk = 4\nepsilon = 1.0')):
        with pytest.raises(DataError) as caught:
            bench(campaign=asked).device.submit(value)
        assert "4711" not in str(caught.value) and "nan" not in str(caught.value)


def test_groups_travel_in_the_inner_envelope() -> None:
    grouped = campaign(extra='[groups]\nnames = ["north", "south"]')
    made = bench(campaign=grouped)
    made.device.submit("red", group="south")
    assert opened(grouped, made.transport.sent[0])[1][:3] == b"\x01\x00\x01"


# Campaigns


def test_a_campaign_of_another_owner_is_refused_once_the_owner_is_pinned() -> None:
    made, other = bench(), RoleKeys.generate("owner")
    with pytest.raises(ConfigError, match="pinned"):
        made.restart(campaign(owner=other))


def test_an_object_that_says_something_else_than_the_signed_file_is_not_followed() -> None:
    forged = replace(CAMPAIGN, mechanism=mechanism("krr", k=4, epsilon=50.0))
    assert bench(campaign=forged).device.campaign.mechanism.epsilon == 1.0
    with pytest.raises(ConfigError, match="changed since its owner signed"):
        bench(campaign=replace(CAMPAIGN, signed=CAMPAIGN.signed.replace(b"epsilon = 1.0", b"epsilon = 2.0")))


def test_a_campaign_above_the_devices_cap_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"epsilon 1, and this device gives at most 0\.5"):
        bench(max_epsilon=0.5)
    with pytest.raises(ParameterError, match="max_epsilon"):
        bench(max_epsilon=-1.0)


def test_keys_of_another_role_make_no_device() -> None:
    made = bench()
    made.keys = OWNER
    with pytest.raises(ConfigError, match="role device"):
        made.restart()


def test_one_version_with_two_files_is_refused_and_an_older_one_gives_way() -> None:
    made = bench()
    with pytest.raises(ConfigError, match="two different files of version 1"):
        made.restart(campaign(budget=4.0))
    newer = campaign(version=2, budget=4.0)
    assert made.restart(newer).campaign.version == 2
    assert made.restart(CAMPAIGN).campaign.version == 2


def test_an_older_file_that_asks_something_else_than_the_version_followed_is_refused() -> None:
    made = bench()
    made.restart(campaign(version=2, question="Which car?"))
    with pytest.raises(ConfigError, match="use the file of the newer one"):
        made.restart(CAMPAIGN)


def test_an_expired_campaign_takes_no_reports_unless_the_shuffler_has_a_newer_version() -> None:
    expires = "expires = 2030-01-01T00:05:00Z"
    made = bench(campaign=campaign(expires=expires))
    made.clock.time = START + 301.0
    with pytest.raises(ConfigError, match="has expired"):
        made.device.submit("red")
    made.transport.file = campaign(version=2).signed
    assert made.device.submit("red").state == "accepted"


# Rotation


def test_after_a_rotation_of_keys_the_same_report_is_sealed_again_once() -> None:
    rotated = RoleKeys.generate("analyzer")
    newer = campaign(version=2, analyzer=rotated)
    made = bench(refusal_event("campaign"), file=newer.signed)
    assert made.device.submit("red").state == "accepted"
    (before, report), (after, again) = (
        opened(CAMPAIGN, made.transport.sent[0]),
        opened(newer, made.transport.sent[1], rotated),
    )
    assert (before.report_id, report) == (after.report_id, again)
    assert made.transport.fetched == 1 and made.outbox.ledgers()[0].spent == 1.0
    assert made.restart(CAMPAIGN).campaign.version == 2


def test_a_report_that_is_outdated_twice_waits() -> None:
    newer = campaign(version=2)
    made = bench(refusal_event("campaign"), refusal_event("campaign"), file=newer.signed)
    receipt = made.device.submit("red")
    assert (receipt.state, receipt.reason, len(made.transport.sent)) == ("waiting", "campaign", 2)


def test_a_report_sealed_for_the_version_before_is_first_sent_as_it_is() -> None:
    made = bench(UNREACHABLE, refusal_event("campaign"))
    made.device.submit("red")
    made.restart(campaign(version=2))
    made.clock.time += PERIOD
    assert [receipt.state for receipt in made.device.flush()] == ["accepted"]
    first, second, third = made.transport.sent
    assert first == second != third and made.transport.fetched == 0


@pytest.mark.parametrize(
    "file",
    [
        None,
        b"<html>",
        CAMPAIGN.signed,
        campaign(version=2, owner=RoleKeys.generate("owner")).signed,
        campaign(id="shapes", version=2).signed,
        campaign(version=2).signed.replace(b"epsilon = 1.0", b"epsilon = 9.0"),
    ],
)
def test_a_file_that_is_no_newer_version_of_the_owner_is_not_followed(file: bytes | None) -> None:
    made = bench(refusal_event("campaign"), file=file)
    receipt = made.device.submit("red")
    assert (receipt.state, receipt.reason, made.device.campaign.version) == ("waiting", "campaign", 1)


@pytest.mark.parametrize(
    "newer",
    [
        campaign(version=2, question="Which car?"),
        campaign(version=2, randomizer=KRR.replace("1.0", "2.0")),
        campaign(version=2, extra='authentication = "none"'),
        campaign(version=2, extra="assumed_dishonest = 5"),
        campaign(version=2, schedule='schedule = "manual"\ncount = 10'),
    ],
)
def test_a_newer_version_that_asks_or_promises_something_else_ends_the_report_and_further_draws(
    newer: Campaign,
) -> None:
    made = bench(refusal_event("campaign"), file=newer.signed)
    receipt = made.device.submit("red")
    assert (receipt.state, receipt.reason, len(made.transport.sent)) == ("refused", "changed", 1)
    for device in (made.device, made.restart()):
        with pytest.raises(ConfigError, match="give its file"):
            device.submit("red", 2)
    assert made.outbox.ledgers()[0].spent == 1.0
    assert made.restart(newer).submit("red", 2).state == "accepted"


def test_a_report_drawn_for_a_question_that_is_asked_no_more_is_never_sealed() -> None:
    made = bench()
    made.outbox.draw(CAMPAIGN, 1, budget=3.0, make=lambda: bytes(4))
    made.restart(campaign(version=2, question="Which car?"))
    assert [receipt.reason for receipt in made.device.flush()] == ["changed"]
    assert made.transport.sent == []


def test_a_version_from_the_shuffler_never_raises_the_budget() -> None:
    made = bench(refusal_event("campaign"), file=campaign(version=2, budget=30.0).signed)
    for number in range(1, 4):
        made.device.submit("red", number)
    for device in (made.device, made.restart()):
        with pytest.raises(BudgetSpent):
            device.submit("red", 4)


# Rounds


def test_rounds_opened_by_hand_are_asked_from_the_shuffler() -> None:
    made = bench(campaign=MANUAL, running=2)
    assert made.device.submit("red").round == 2
    for running, told in ((None, "nobody says"), (0, "no round"), (6, "no round")):
        made.transport.running = running
        with pytest.raises(RoundUnknown, match=told):
            made.device.submit("red")
    assert len(made.transport.sent) == 1


@pytest.mark.parametrize("time", [START - 1.0, START + 10 * PERIOD])
def test_before_the_first_and_after_the_last_round_nothing_is_drawn(time: float) -> None:
    made = bench()
    made.clock.time = time
    with pytest.raises(RoundUnknown):
        made.device.submit("red")
    assert made.outbox.ledgers()[0].spent == 0.0


@pytest.mark.parametrize("kind", ["too_early", "late", "round"])
def test_a_clock_that_was_wrong_is_not_followed_again_until_it_is_right(kind: str) -> None:
    made = bench(refusal_event(kind), running=4)
    assert made.device.submit("red").round == 1
    assert made.restart().submit("red").round == 4
    made.clock.time = START + 4.5 * PERIOD
    made.transport.running = 5
    assert made.device.submit("red").round == 5  # both agree now
    made.clock.time += PERIOD
    made.transport.running = None
    with pytest.raises(BudgetSpent):  # round 6, by the clock
        made.device.submit("red")


@pytest.mark.parametrize("round", [0, 11, 1.5, True, "1"])
def test_a_round_outside_the_schedule_is_refused(round: object) -> None:
    with pytest.raises(ParameterError, match="`round`"):
        bench().device.submit("red", round)  # type: ignore[arg-type]


# Waiting


def test_a_report_waits_as_long_as_the_service_asks() -> None:
    made = bench(refusal_event("rate_limited", 30.0))
    receipt = made.device.submit("red")
    assert receipt.state == "waiting" and 30.0 <= receipt.wait <= 31.0
    made.clock.time += 29.0
    assert made.restart().flush()[0].state == "waiting" and len(made.transport.sent) == 1
    made.clock.time += 2.0
    assert made.device.flush()[0].state == "accepted"


def test_a_clock_set_back_by_years_does_not_hold_reports_back_for_years() -> None:
    made = bench(UNREACHABLE)
    made.device.submit("red")
    made.clock.time -= 1e8
    assert made.device.flush()[0].state == "accepted"


def test_what_is_refused_for_good_is_not_sent_again_and_stays_charged() -> None:
    made = bench(refusal_event("revoked_device"))
    receipt = made.device.submit("red")
    assert (receipt.state, receipt.reason) == ("refused", "revoked_device")
    assert "taken off the roster" in str(receipt)
    assert made.device.flush() == [] and made.outbox.ledgers()[0].refusals == {"revoked_device": 1}


def test_an_outbox_of_another_device_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    made = bench(path=tmp_path / "outbox")
    other = RoleKeys.generate("device").signing
    assert other and made.keys.signing
    with pytest.raises(ConfigError, match="belongs to another device"):
        Outbox.open(tmp_path / "outbox", other.verifying_key())
    made.outbox.close()


def dummies(epsilon: float = 1.0, delta: float = 1e-6, reach: int = 20) -> str:
    return f'trust = "shuffler"\n[dummies]\nepsilon = {epsilon}\ndelta = {delta}\nreach = {reach}'


@pytest.mark.parametrize("weaker", ["epsilon", "delta", "reach", "none"])
def test_a_version_whose_shuffler_adds_other_dummies_or_none_is_not_followed(weaker: str) -> None:
    """An owner signs a weaker version and the shuffler refuses the old one: nothing is drawn or sealed for it."""
    changed = {"epsilon": dummies(epsilon=8.0), "delta": dummies(delta=0.1), "reach": dummies(reach=1), "none": ""}
    newer = campaign(version=2, extra=changed[weaker])
    made = bench(UNREACHABLE, refusal_event("campaign"), campaign=campaign(extra=dummies()), file=newer.signed)
    made.device.submit("red")
    made.clock.time += 1e4
    (receipt,) = made.device.flush()
    assert (receipt.state, receipt.reason) == ("refused", "changed") and len(made.transport.sent) == 2
    assert len({*made.transport.sent}) == 1 and opened(made.campaign, made.transport.sent[0])
    with pytest.raises(ConfigError, match="asks something else; give its file to take part"):
        made.device.submit("red", 2)
    assert made.restart(newer).submit("red", 3).state == "accepted", "whoever runs the device has given its file"


def test_a_version_with_new_keys_and_the_same_dummies_is_followed() -> None:
    newer = campaign(version=2, extra=dummies(), analyzer=RoleKeys.generate("analyzer"))
    made = bench(refusal_event("campaign"), campaign=campaign(extra=dummies()), file=newer.signed)
    assert made.device.submit("red").state == "accepted" and made.device.campaign.version == 2


def test_no_version_changes_what_reports_are_sealed_with() -> None:
    strong = {role: RoleKeys.generate(role, "mlkem768-x25519") for role in ROLES}
    weak = {role: RoleKeys.generate(role) for role in ROLES}
    new = {role: RoleKeys.generate(role, "mlkem768-x25519") for role in ROLES}
    for before, after in ((strong, weak), (weak, strong)):
        newer = campaign(version=2, **after)
        made = bench(refusal_event("campaign"), campaign=campaign(**before), file=newer.signed)
        receipt = made.device.submit("red")
        assert (receipt.state, receipt.reason, made.device.campaign.version) == ("refused", "changed", 1)
        with pytest.raises(ConfigError, match="`suite` differs"):
            require_same_terms(campaign(**before), newer)
    made = bench(refusal_event("campaign"), campaign=campaign(**strong), file=campaign(version=2, **new).signed)
    assert made.device.submit("red").state == "accepted" and made.device.campaign.version == 2


def test_a_device_that_reports_before_the_roster_names_it_sends_the_same_report_until_it_does() -> None:
    made = bench(*[refusal_event("unknown_device")] * 3)
    assert str(made.device.submit("red")).endswith("waiting (the device is not on the roster, or not yet).")
    for value in ("red", "blue"):
        made.clock.time += PERIOD  # no other report is drawn, and charged, until this one is taken
        assert made.device.submit(value).round == 1
    made.clock.time += PERIOD
    assert [receipt.state for receipt in made.device.flush()] == ["accepted"]
    assert len({*made.transport.sent}) == 1 and made.outbox.spending().spent == 1.0


KEYS_AND_DATES = {
    "id", "version", "expires", "owner", "analyzer", "shuffler", "shuffler_signing", "endpoints", "handed_over",
    "digest", "signed", "precision",
}  # fmt: skip
SAID_BY_OTHERS = {"combinations", "among"}  # of one question of a campaign: [asks] and the mechanism say it of all


def test_every_part_of_a_campaign_but_keys_and_dates_is_part_of_its_terms() -> None:
    """Whatever is added to a campaign file has to be among the terms or be named above."""
    asked = campaign(extra=dummies())
    for part in fields(asked):
        # the last two have fields of their own, see below
        if part.name in {*KEYS_AND_DATES, *SAID_BY_OTHERS, "shuffle", "promise"}:
            continue
        changed = replace(asked, **{part.name: ("something else",)})
        assert terms_of(changed) != terms_of(asked), part.name


def test_whatever_a_report_answers_or_was_promised_is_part_of_its_terms() -> None:
    asked = campaign()
    others = [
        replace(asked, question="Which colour do you hate?"),
        replace(asked, categories=("red", "green", "blue", "none")),
        replace(asked, groups=("north", "south")),
        replace(asked, mechanism=replace(asked.mechanism, epsilon=2.0)),
        replace(asked, schedule=replace(asked.schedule, count=11)),
        replace(asked, batch=replace(asked.batch, minimum=2)),  # fewer or more people to hide among
        replace(asked, batch=replace(asked.batch, small="merge")),
        replace(asked, shuffle=replace(asked.shuffle, alpha=9.0)),
        replace(asked, promise=replace(asked.promise, delta=1e-3)),
    ]
    terms = [terms_of(one) for one in (asked, *others)]
    assert len(set(terms)) == len(terms)
    same = replace(asked, version=2, promise=replace(asked.promise, device_budget=1.0))
    assert terms_of(same) == terms_of(asked), "a device's own budget is its own, and a version is only a number"
