"""Which round: by the clock, by what is closed already, and for a report that comes early or late."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from dovetail.collect.store.interfaces import RoundRecord
from dovetail_protocol.campaign import Campaign

RoundsByNumber = Mapping[int, RoundRecord]  # by number


def current_round(campaign: Campaign, rounds: RoundsByNumber, now: float) -> int:
    """The round that devices report for: by the clock, or the first that is not closed; 0 before the first round,
    count + 1 after the last."""
    if campaign.schedule.period is not None:
        return campaign.schedule.round_at(now)
    number = max(rounds, default=1)
    while number > 1 and not _is_closed(rounds, number - 1):
        number -= 1
    return number + 1 if _is_closed(rounds, number) else number


def round_to_open(campaign: Campaign, rounds: RoundsByNumber, now: float) -> int | None:
    """The round that is to be opened now, if there is one."""
    number = current_round(campaign, rounds, now)
    return number if 1 <= number <= campaign.schedule.count and number not in rounds else None


def is_over(campaign: Campaign, round: RoundRecord, now: float) -> bool:
    """Whether an open round ends by itself: its time has passed, or it is full. An owner's close needs no reason."""
    full = campaign.batch.close_at
    return _is_past(campaign, round.number, now) or (full is not None and round.count >= full)


def later_round_can_close(campaign: Campaign, rounds: RoundsByNumber, now: float) -> bool:
    """Whether a round can still close after those that are closed now."""
    if any(round.state == "open" for round in rounds.values()):
        return True
    last = campaign.schedule.count
    return last not in rounds and not _is_past(campaign, last, now)


def receiving_round(
    campaign: Campaign, number: int, rounds: RoundsByNumber, *, now: float, known: float = -math.inf
) -> int | Literal["too_early", "late", "lost"]:
    """The round in which a report for round `number` counts, or why it counts in none.

    One round ahead is taken, because clocks differ; a late report joins the current round, or the next one, where the
    campaign's rule is late = "next", and its own round began after `known` (seconds since 1970): of rounds before,
    nobody remembers which reports came, and a copy of one would count again.
    """
    running = current_round(campaign, rounds, now)
    if number > running + 1:
        return "too_early"
    if _takes(campaign, number, rounds, now):
        return number
    if campaign.batch.late == "next" and _began_at(campaign, number, rounds) > known:
        for later in (running, running + 1):
            if later > number and _takes(campaign, later, rounds, now):
                return later
    return "lost" if number in rounds and rounds[number].state == "lost" else "late"


def _takes(campaign: Campaign, number: int, rounds: RoundsByNumber, now: float) -> bool:
    if number in rounds:
        return rounds[number].state == "open"
    return 1 <= number <= campaign.schedule.count and not _is_past(campaign, number, now)


def _began_at(campaign: Campaign, number: int, rounds: RoundsByNumber) -> float:
    """When a round before the current one began, at the latest."""
    schedule = campaign.schedule
    opened = rounds[number].opened if number in rounds else math.inf
    return opened if schedule.period is None else min(opened, schedule.ends(number) - schedule.period)


def _is_closed(rounds: RoundsByNumber, number: int) -> bool:
    return number in rounds and rounds[number].state != "open"


def _is_past(campaign: Campaign, number: int, now: float) -> bool:
    schedule = campaign.schedule
    return schedule.period is not None and now >= schedule.ends(number) + schedule.grace
