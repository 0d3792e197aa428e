"""While the shuffler is away: one report waits, nothing more is drawn, and nothing is charged that cannot count."""

from __future__ import annotations

import pytest
from tests.collect.device.made import PERIOD, START, Bench, FakeTransport, campaign
from tests.tiers import tiered

from dovetail.collect.simulate.deployment import COMMUTE, ThrowawayCampaign, schedule
from dovetail.collect.simulate.faults import MessageFate, Role, SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation
from dovetail.core.entropy import simulation as seeded
from dovetail_device.client import RoundUnknown
from dovetail_device.sender import UNREACHABLE, refusal_event
from dovetail_protocol.errors import ConfigError

NEXT = 'small = "merge"\nlate = "next"'
BY_HAND = 'schedule = "manual"\ncount = 10'


def bench(*, batch: str = "", answers: int = 0, by_hand: bool = False, **options: object) -> Bench:
    """A device whose first messages are not answered."""
    asked = campaign(budget=10.0, batch=batch, schedule=BY_HAND if by_hand else None)
    return Bench(asked, transport=FakeTransport([UNREACHABLE] * answers), **options)  # type: ignore[arg-type]


def submit_in(made: Bench, round: float) -> tuple[int, str, bool]:
    """Submit at a moment of the schedule; of which round the answer is, its state, and whether it was drawn."""
    made.clock.time = START + (round - 0.5) * PERIOD
    receipt = made.device.submit("red")
    return receipt.round, receipt.state, receipt.drawn


@pytest.mark.parametrize("batch", ["", NEXT, 'small = "drop"'])
def test_an_outage_costs_one_report_however_long_it_lasts(batch: str) -> None:
    made = bench(batch=batch, answers=100)
    assert submit_in(made, 1) == (1, "waiting", True)
    assert [submit_in(made, round) for round in range(2, 9)] == [(1, "waiting", False)] * 7
    assert made.outbox.ledgers()[0].spent == made.outbox.spending().spent == 1.0
    assert len(set(made.transport.sent)) == 1


def test_after_an_outage_what_waited_goes_first_and_the_round_that_runs_has_its_own_report() -> None:
    made = bench(answers=3)
    for round in (1, 2, 3):
        submit_in(made, round)
    assert submit_in(made, 4) == (4, "accepted", True)
    assert made.outbox.ledgers()[0].spent == 2.0 and made.outbox.waiting("colours") == []


@pytest.mark.parametrize("flushes", [False, True])
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_report_that_counts_for_a_later_round_stands_for_it(flushes: bool, by_hand: bool) -> None:
    made = bench(batch='late = "next"', answers=1, by_hand=by_hand)
    made.transport.running = 1
    submit_in(made, 1)
    made.transport.running, made.clock.time = 3, START + 2.5 * PERIOD
    if flushes:
        assert [receipt.state for receipt in made.device.flush()] == ["accepted"]
    assert submit_in(made, 3) == (1, "accepted", False)
    made.transport.running = 4
    assert submit_in(made, 4) == (4, "accepted", True)
    assert made.outbox.spending().spent == 2.0


def test_a_report_that_arrives_in_its_own_round_leaves_the_next_one_free() -> None:
    made = bench(batch='late = "next"', answers=1)
    assert submit_in(made, 1) == (1, "waiting", True)
    assert submit_in(made, 1.3)[1] == "accepted"
    assert submit_in(made, 2) == (2, "accepted", True)


@pytest.mark.parametrize(("batch", "over"), [(NEXT, True), ('small = "drop"', True), ("", False)])
def test_no_report_is_drawn_for_a_round_that_is_over(batch: str, over: bool) -> None:
    """Where batches wait for enough reports, a round takes them also when its time has passed."""
    made = bench(batch=batch)
    made.clock.time = START + 2 * PERIOD
    if not over:
        assert made.device.submit("red", 2).drawn
        return
    with pytest.raises(RoundUnknown, match="round 2 of the campaign colours is over; nothing was drawn"):
        made.device.submit("red", 2)
    assert made.outbox.spending().spent == 0.0 and made.device.submit("red", 3).drawn


def test_no_report_is_drawn_for_a_round_that_the_owner_has_closed() -> None:
    made = bench(by_hand=True)
    made.transport.running = 3
    with pytest.raises(RoundUnknown, match="is over"):
        made.device.submit("red", 2)
    assert made.outbox.spending().spent == 0.0 and made.device.submit("red", 3).drawn


def test_a_report_that_came_too_early_does_not_hold_up_the_round_that_runs() -> None:
    made = bench()
    made.transport = FakeTransport([refusal_event("too_early")])
    made.restart()
    assert made.device.submit("red", 3).reason == "too_early"
    assert made.device.submit("red", 1).drawn and made.outbox.spending().spent == 2.0


def test_what_is_sent_first_may_end_the_campaign_before_anything_is_drawn() -> None:
    made = bench(answers=1)
    submit_in(made, 1)
    made.transport = FakeTransport([refusal_event("campaign")], campaign(version=2, question="Which car?").signed)
    made.clock.time += PERIOD
    with pytest.raises(ConfigError, match="give its file"):
        made.restart().submit("red")
    ledger = made.outbox.ledgers()[0]
    assert (ledger.spent, ledger.refusals) == (1.0, {"changed": 1})


@pytest.mark.exhaust
@pytest.mark.parametrize("small", tiered(["wait", "merge", "drop"], first=lambda small: small == "merge"))
@pytest.mark.parametrize("late", ["refuse", "next"])
def test_after_an_outage_no_shuffler_refuses_a_second_report(small: str, late: str) -> None:
    """Twelve devices answer in ten rounds, of which the shuffler is away in five; every draw is paid for once."""
    world = ThrowawayCampaign.of(
        COMMUTE | {"rounds": schedule(10, grace=600.0), "batch": {"minimum": 4, "small": small, "late": late}}, 12
    )
    away = False

    def fate(role: Role) -> MessageFate:
        return "lost" if away and role == "device" else "arrives"

    made = Simulation(world, dies=lambda _: False, fate=fate, rng=seeded(1))
    fleet = SimulatedDevices.of(world, made.dying, SeededChance(1))
    for round in range(1, 11):
        away = 3 <= round < 8
        for _ in range(4):
            fleet.flush(made.network, made.clock)
            fleet.report(round, range(12), made.network, made.clock)
            made.pass_time(900.0)
    counts = [outbox.ledgers()[0].counts for outbox in fleet.outboxes]
    assert made.verdict().sound and made.messages.get("second_report", 0) == 0
    assert all(outbox.ledgers()[0].refusals.get("late", 0) <= 1 for outbox in fleet.outboxes)
    assert all(sum(count.values()) <= 6 for count in counts)  # five rounds, and one that waited
    assert all(count["accepted"] >= 5 for count in counts)
    fleet.close()
    made.close()
