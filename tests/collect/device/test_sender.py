"""The sender's machine under any order of answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dovetail_device.sender import (
    FINAL,
    LATER,
    TRANSITIONS,
    Backoff,
    DeliveryEffect,
    DeliveryEvent,
    Sender,
    advance,
    refusal_event,
)
from dovetail_protocol.exact_thresholds import Words

BACKOFF = Backoff()
ENDS = ("accepted", "refused")
ANSWERS = {"send": ("accepted", "later", "outdated", "final"), "fetch": ("renewed", "later", "final")}


class Constant(Words):
    """Always the same share of the range, for the ends of what waiting can be."""

    def __init__(self, share: float) -> None:
        self._share = share

    def bits(self, count: int) -> int:
        return min(int(self._share * (1 << count)), (1 << count) - 1)


def steps(sender: Sender, event: DeliveryEvent, share: float = 0.5) -> tuple[Sender, tuple[DeliveryEffect, ...]]:
    return advance(sender, event, backoff=BACKOFF, words=Constant(share))


def names(effects: tuple[DeliveryEffect, ...]) -> tuple[str, ...]:
    """What may answer these effects; what waits is due again."""
    last = effects[-1]
    return ("due",) if last == "wait" else ANSWERS.get(last, ())


@given(st.data())
def test_a_report_is_sent_until_it_is_settled_and_fetched_for_at_most_once_per_attempt(data: st.DataObject) -> None:
    sender, event, done = Sender(), DeliveryEvent("due"), list[DeliveryEffect]()
    for _ in range(30):
        sender, effects = steps(sender, event)
        done += effects
        if sender.state in ENDS:
            break
        assert effects, "the machine is stuck"
        event = DeliveryEvent(data.draw(st.sampled_from(names(effects))))  # type: ignore[arg-type]
    assert done[0] == "send" and done.count("settle") == (sender.state in ENDS)
    for attempt in "/".join(done).split("wait"):
        assert attempt.count("fetch") <= 1 and attempt.count("send") <= 2 and attempt.count("reseal") <= 1


@given(st.sampled_from(list(TRANSITIONS)), st.sampled_from([*FINAL, *LATER]))
def test_a_settled_report_stays_settled(key: tuple[str, str], kind: str) -> None:
    for state in ENDS:
        assert steps(Sender(state), refusal_event(kind)) == (Sender(state), ())  # type: ignore[arg-type]
        assert (state, key[1]) not in TRANSITIONS


@given(st.lists(st.sampled_from(["due", "accepted", "outdated", "renewed", "later", "final"]), max_size=30))
def test_events_that_nobody_waits_for_change_nothing(events: list[str]) -> None:
    sender = Sender()
    for name in events:
        before = sender
        sender, effects = steps(sender, DeliveryEvent(name))  # type: ignore[arg-type]
        assert ((before.state, name) in TRANSITIONS) == bool(effects)
        assert effects or sender == before


def test_every_state_can_be_reached_and_left() -> None:
    reached, entered = {state for state, _ in TRANSITIONS.values()}, {state for state, _ in TRANSITIONS}
    assert reached == {"waiting", "sending", "fetching", "resending", *ENDS} == entered | set(ENDS)
    for (state, _), (_, effects) in TRANSITIONS.items():
        wanted = {"waiting": {"due"}, "fetching": set(ANSWERS["fetch"])}.get(state, set(ANSWERS["send"]))
        assert {name for other, name in TRANSITIONS if other == state} == wanted and effects


@given(st.integers(0, 10**6), st.floats(0, 1e12), st.floats(0, 0.999))
def test_waits_respect_the_service_and_have_a_ceiling(attempts: int, after: float, share: float) -> None:
    seconds = BACKOFF.seconds(attempts, after=after, words=Constant(share))
    assert min(after, BACKOFF.obeyed) <= seconds <= BACKOFF.most


@given(st.integers(0, 11))
def test_backoff_doubles_and_is_jittered_over_its_whole_range(attempts: int) -> None:
    low, high = (BACKOFF.seconds(attempts, after=0.0, words=Constant(share)) for share in (0.0, 1.0))
    assert low == 0.0 and 0.999 * 2.0**attempts < high <= 2.0**attempts


def test_final_kinds_are_final_and_unknown_ones_are_tried_again() -> None:
    assert {refusal_event(kind).name for kind in FINAL} == {"final"}
    assert refusal_event("campaign").name == "outdated"
    for kind in ("too_early", "rate_limited", "unavailable", "unreachable", "teapot", "\x1b[31m", "not_found"):
        assert refusal_event(kind).name == "later" and refusal_event(kind).reason in LATER


def test_a_sender_counts_its_attempts() -> None:
    sender = Sender(attempts=4)
    for name in ("due", "later", "due", "later"):
        sender, _ = steps(sender, DeliveryEvent(name, "unreachable"))  # type: ignore[arg-type]
    assert (sender.attempts, sender.reason, sender.wait) == (6, "unreachable", 16.0)
