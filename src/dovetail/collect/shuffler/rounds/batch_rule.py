"""The batch rule of the shuffler: when the reports of a round may leave as a batch, and what happens to them if not.

A batch leaves only with at least `minimum` reports of distinct devices, of the roster where there is one, whose seal
and signature hold; a smaller round waits, merges into the next one or is dropped, as the campaign says. What a report
says is sealed to the analyzer: whether it is valid is checked there, and below `minimum` valid ones nothing is told.
`BATCH_RULE` is the life of a round as a table: which event, under which facts, has which effects. No clock, no store,
no network.

A round takes reports while it is open. It is over when its time and grace have passed, when it holds `close_at`
reports, or when its owner closes it. It is then closed (held), counted, and released, merged or dropped by the rule.
Each change of state is one transaction of the store, so that a crash leaves every round in a state of this table and
`restarted` takes it from there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from dovetail.collect.store.interfaces import RoundState
from dovetail_protocol.campaign import Campaign

RuleState = RoundState | Literal["unopened"]
RoundEvent = Literal[
    "begins",
    "over",
    "next closed",
    "counted",
    "built",
    "restarted",
    "delivered",
    "failed",
    "key gone",
    "key back",
    "owner drops",
]
RoundEffect = Literal[
    "open",
    "close",
    "hold",
    "merge",
    "drop",
    "build",
    "build on",
    "abandon",
    "release",
    "erase",
    "deliver",
    "retry later",
    "forget",
    "lose",
    "recover",
    "discard",
]


@dataclass(frozen=True)
class Transition:
    """One row: in this state, on this event, where the fact `when` holds (empty: always)."""

    state: RuleState
    event: RoundEvent
    when: str
    effects: tuple[RoundEffect, ...]
    after: RuleState


# the first row that fits is taken
BATCH_RULE = (
    Transition("unopened", "begins", "", ("open",), "open"),
    Transition("open", "over", "enough", ("close",), "held"),
    Transition("open", "over", "waits", ("hold",), "open"),
    Transition("open", "over", "", ("close",), "held"),
    Transition("held", "next closed", "", ("merge", "erase"), "merged"),
    Transition("held", "counted", "enough", ("build",), "releasing"),
    Transition("held", "counted", "merges", ("hold",), "held"),
    Transition("held", "counted", "", ("drop", "erase"), "dropped"),
    Transition("releasing", "built", "", ("release", "erase", "deliver"), "released"),
    Transition("releasing", "restarted", "begun", ("build on",), "releasing"),
    Transition("releasing", "restarted", "", ("abandon",), "held"),
    Transition("released", "restarted", "", ("erase", "deliver"), "released"),
    Transition("merged", "restarted", "", ("erase",), "merged"),
    Transition("dropped", "restarted", "", ("erase",), "dropped"),
    Transition("released", "failed", "", ("retry later",), "released"),
    Transition("released", "delivered", "", ("forget",), "delivered"),
    Transition("delivered", "restarted", "", ("erase",), "delivered"),
    Transition("open", "key gone", "", ("lose",), "lost"),
    Transition("held", "key gone", "", ("lose",), "lost"),
    Transition("lost", "key back", "", ("recover",), "open"),
    Transition("lost", "owner drops", "", ("drop", "erase"), "dropped"),
    Transition("held", "owner drops", "unreadable", ("drop", "erase"), "dropped"),
    Transition("released", "owner drops", "refused", ("discard", "erase"), "dropped"),
)

FACTS = {
    "enough": "at least `minimum` signed reports of distinct devices, merged ones included",
    "waits": "small = wait, and the campaign has not expired",
    "merges": "small = merge, and a later round can still close",
    "unreadable": "its reports do not open under its key",
    "begun": "its batch goes in parts, of which those that stand can be kept: order and key are there",
    "refused": "the analyzer has refused its batch when it last answered",
}

EFFECTS: dict[RoundEffect, str] = {
    "open": "the round takes reports, under a key of its own",
    "close": "the round takes no more reports",
    "hold": "nothing is released; status and log say so",
    "merge": "the reports are sealed again under the next round's key; where a device has one there, that one stays",
    "drop": "the reports are deleted and their number is shown",
    "build": "a permutation and dummies, if any, are drawn, and the batch is put together in its order",
    "build on": "the parts that are not there yet are built, in the order that the others have",
    "release": "the reports are deleted, and the batch waits to be sent: one transaction",
    "deliver": "the batch is sent to the analyzer",
    "retry later": "the batch is sent again after a jittered back-off",
    "erase": "the round's key is destroyed, and with it the link between devices and reports",
    "abandon": "the half-built batch is deleted; nothing of it has left, the next one draws its own",
    "forget": "the body of the batch is deleted",
    "lose": "nothing is deleted; devices are told that the round is lost, and status, health and metrics show it",
    "discard": "the batch is deleted, and nobody can count it any more",
    "recover": "the round goes on where it was: by its time and count it is open, held or released",
}


def find_transition(state: RuleState, event: RoundEvent, facts: Collection[str] = ()) -> Transition | None:
    """The row that fits; None where the event changes nothing."""
    for row in BATCH_RULE:
        if row.state == state and row.event == event and (not row.when or row.when in facts):
            return row
    return None


def round_facts(campaign: Campaign, count: int, *, now: float, follows: bool) -> frozenset[str]:
    """What is true of a round that is over with `count` signed reports of distinct devices.

    follows : whether a later round can still close.
    """
    living = campaign.expires is None or now < campaign.expires.timestamp()
    small = campaign.batch.small
    facts = {
        "enough": count >= campaign.batch.minimum,
        "waits": small == "wait" and living,
        "merges": small == "merge" and living and follows,
    }
    return frozenset(fact for fact, true in facts.items() if true)
