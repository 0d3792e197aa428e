"""The table of rounds: exhaustive where it is finite, by random schedules where it is not."""

from itertools import combinations
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.collect.shuffler.world import BEGIN, BY_HAND, PERIOD, campaign

from dovetail.collect.shuffler import rounds as batch_rule
from dovetail.collect.shuffler import rounds as round_schedule
from dovetail.collect.store.interfaces import RoundRecord, RoundState

STATES = ("unopened", *get_args(RoundState))
EVENTS = get_args(batch_rule.RoundEvent)
LEAVING = {"releasing", "released", "delivered"}
SITUATIONS = [frozenset(c) for n in range(4) for c in combinations(batch_rule.FACTS, n)]


def every():
    return [
        (state, event, facts, batch_rule.find_transition(state, event, facts))
        for state in STATES
        for event in EVENTS
        for facts in SITUATIONS
    ]


def test_the_table_names_known_words_only():
    for row in batch_rule.BATCH_RULE:
        assert row.state in STATES and row.after in STATES and row.event in EVENTS
        assert not row.when or row.when in batch_rule.FACTS
        assert set(row.effects) <= set(batch_rule.EFFECTS) == set(get_args(batch_rule.RoundEffect))


def test_every_row_can_be_reached():
    assert {row for *_, row in every() if row} == set(batch_rule.BATCH_RULE)


def test_nothing_leaves_without_enough_reports():
    for _, _, facts, row in every():
        if row and "build" in row.effects:
            assert "enough" in facts


def test_a_round_is_built_from_one_state_only_and_never_again():
    assert {row.state for row in batch_rule.BATCH_RULE if "build" in row.effects} == {"held"}
    for row in batch_rule.BATCH_RULE:
        if row.state in LEAVING - {"releasing"}:
            assert row.after in LEAVING or (row.event, row.when) == ("owner drops", "refused")


def test_a_round_takes_reports_in_one_state_only_and_opens_again_only_when_its_key_is_back():
    assert {row.state for row in batch_rule.BATCH_RULE if row.after == "open"} == {"unopened", "open", "lost"}
    assert {row.event for row in batch_rule.BATCH_RULE if row.state == "lost"} == {"key back", "owner drops"}


def test_a_round_is_lost_only_while_its_reports_wait_and_nothing_of_it_is_deleted_then():
    found = [row for row in batch_rule.BATCH_RULE if row.after == "lost"]
    assert {row.state for row in found} == {"open", "held"}
    assert {row.effects for row in found} == {("lose",)}


def test_an_owner_drops_only_what_cannot_be_released():
    found = {(row.state, row.when) for row in batch_rule.BATCH_RULE if row.event == "owner drops"}
    assert found == {("lost", ""), ("held", "unreadable"), ("released", "refused")}


def test_the_link_is_erased_wherever_reports_are_gone_and_nowhere_else():
    gone = {"released", "delivered", "dropped", "merged"}
    for row in batch_rule.BATCH_RULE:
        if "erase" in row.effects:
            assert row.after in gone
        if row.after in gone and row.state not in gone:
            assert "erase" in row.effects
    for state in gone:  # a crash between the transaction and the erasure
        row = batch_rule.find_transition(state, "restarted")
        assert row is not None and "erase" in row.effects


def test_the_end_states_change_no_more():
    for state, _, _, row in every():
        if state in ("delivered", "dropped", "merged"):
            assert row is None or row.after == state


def test_every_closed_round_goes_somewhere_in_every_situation():
    for facts in SITUATIONS:
        assert batch_rule.find_transition("open", "over", facts) is not None
        assert batch_rule.find_transition("held", "counted", facts) is not None


@pytest.mark.parametrize("small", ["wait", "merge", "drop"])
def test_a_round_without_enough_reports_follows_the_rule_of_its_campaign(small):
    rule = campaign(small=small)
    facts = batch_rule.round_facts(rule, 4, now=BEGIN, follows=True)
    over, counted = (
        batch_rule.find_transition("open", "over", facts),
        batch_rule.find_transition("held", "counted", facts),
    )
    after = {"wait": ("open", "dropped"), "merge": ("held", "held"), "drop": ("held", "dropped")}
    assert over is not None and counted is not None
    assert (over.after, counted.after) == after[small]


@pytest.mark.parametrize("small", ["wait", "merge"])
def test_nothing_waits_beyond_the_end_of_a_campaign(small):
    rule = campaign(small=small, expires="expires = 2030-02-01T00:00:00Z")
    assert rule.expires is not None
    facts = batch_rule.round_facts(rule, 4, now=rule.expires.timestamp(), follows=True)
    over, counted = (
        batch_rule.find_transition("open", "over", facts),
        batch_rule.find_transition("held", "counted", facts),
    )
    assert over is not None and over.after == "held"
    assert counted is not None and counted.after == "dropped"


def rounds_of(states, counts=()):
    counts = list(counts) or [0] * len(states)
    return {
        number: RoundRecord("commute", number, state, count, BEGIN)
        for number, (state, count) in enumerate(zip(states, counts, strict=True), start=1)
        if state != "unopened"
    }


some_rounds = some.lists(some.sampled_from(STATES), min_size=0, max_size=5).map(rounds_of)
some_time = some.floats(BEGIN - 2 * PERIOD, BEGIN + 8 * PERIOD)


@given(some_rounds, some.integers(1, 5), some_time, some.sampled_from(["refuse", "next"]))
def test_a_report_counts_in_a_round_that_takes_reports_or_in_none(rounds, number, now, late):
    rule = campaign(late=late)
    found = round_schedule.receiving_round(rule, number, rounds, now=now)
    running = round_schedule.current_round(rule, rounds, now)
    if found == "too_early":
        assert number > running + 1
    elif found == "lost":
        assert rounds[number].state == "lost"
    elif found != "late":
        assert 1 <= found <= rule.schedule.count
        assert rounds[found].state == "open" if found in rounds else now < rule.schedule.ends(found) + 60
        assert found == number or (late == "next" and number < found <= running + 1)


def test_one_round_ahead_is_taken_because_clocks_differ_and_no_further_one():
    rule, rounds = campaign(), rounds_of(["open"])
    found = [round_schedule.receiving_round(rule, number, rounds, now=BEGIN) for number in (1, 2, 3, 4)]
    assert found == [1, 2, "too_early", "too_early"]


@given(some_rounds, some_time)
def test_only_rounds_that_run_now_are_opened(rounds, now):
    rule = campaign()
    number = round_schedule.round_to_open(rule, rounds, now)
    if number is not None:
        assert number not in rounds and rule.schedule.round_at(now) == number


@given(some.integers(0, 5), some.integers(0, 5))
def test_rounds_by_hand_follow_each_other(closed, more):
    rule = campaign(rounds=BY_HAND)
    rounds = rounds_of((["delivered"] * closed + ["open"] * min(more, 1))[:5])
    running = round_schedule.current_round(rule, rounds, BEGIN)
    assert running == closed + 1
    assert round_schedule.round_to_open(rule, rounds, BEGIN) == (
        running if running not in rounds and running <= 5 else None
    )
    assert round_schedule.later_round_can_close(rule, rounds, BEGIN) == (closed < 5)


def test_a_round_is_over_by_the_clock_after_its_grace_or_when_it_is_full():
    rule, end = campaign(close_at=7), BEGIN + PERIOD + 60
    (round,) = rounds_of(["open"], [6]).values()
    (full,) = rounds_of(["open"], [7]).values()
    assert not round_schedule.is_over(rule, round, end - 1)
    assert round_schedule.is_over(rule, round, end)
    assert round_schedule.is_over(rule, full, BEGIN)
