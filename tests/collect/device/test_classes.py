"""A device in a campaign with classes: joins once, randomizes and pays as its class does, and says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.collect.device.made import Bench, campaign, opened
from tests.statistics import expect_broken, expect_law

from dovetail.randomize.krr import KRR
from dovetail_device.entropy import system_entropy
from dovetail_device.outbox import BudgetSpent
from dovetail_protocol import messages as message
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.errors import ConfigError, DataError

CATEGORIES = 'categories = ["red", "green", "blue", "other"]'


def asked(**changes: Any) -> Campaign:
    """Classes of epsilon 0.5 and 2; the budget pays for twelve reports of the first, and three of the second."""
    wanted = {
        "randomizer": f'name = "krr"\nk = 4\nepsilon = 2.0\n{CATEGORIES}',
        "extra": "[classes]\nopen = 2.0\ncareful = 0.5",
        "budget": 6.0,
    }
    return campaign(**{**wanted, **changes})


def test_a_device_that_is_told_nothing_is_careful_and_pays_for_that() -> None:
    made = Bench(asked())
    for number in range(1, 11):
        made.device.submit("red", number)
    assert {opened(made.campaign, wire)[0].place for wire in made.transport.sent} == {0}
    [ledger] = made.outbox.ledgers()
    assert (ledger.spent, ledger.epsilon_class) == (5.0, "careful")
    assert "in the class careful" in str(ledger)


def test_budgets_are_charged_by_class() -> None:
    made = Bench(asked(), epsilon_class="open")
    for number in (1, 2, 3):
        made.device.submit("red", number)
    assert {opened(made.campaign, wire)[0].place for wire in made.transport.sent} == {1}
    assert made.outbox.ledgers()[0].spent == 6.0
    with pytest.raises(BudgetSpent):
        made.device.submit("red", 4)


@pytest.mark.exhaust
@pytest.mark.parametrize(("name", "epsilon", "other"), [("careful", 0.1, 6.0), ("open", 6.0, 0.1)])
def test_reports_have_the_noise_of_the_class(name: str, epsilon: float, other: float) -> None:
    counts = np.zeros(4, dtype=np.int64)
    found = asked(
        budget=1e6,
        schedule='schedule = "manual"\ncount = 60',
        randomizer=f'name = "krr"\nk = 4\nepsilon = 6.0\n{CATEGORIES}',
        extra="[classes]\nopen = 6.0\ncareful = 0.1",
    )
    made = Bench(found, epsilon_class=name)
    for number in range(1, 61):
        made.device.submit("green", number)
        counts[opened(made.campaign, made.transport.sent[-1])[1][-1]] += 1
    expect_law(counts, KRR(4, epsilon).channel().matrix()[1])
    expect_broken(counts, KRR(4, other).channel().matrix()[1])


def test_a_class_is_chosen_once() -> None:
    made = Bench(asked(), epsilon_class="open")
    made.device.submit("red", 1)
    made.epsilon_class = None
    made.restart()
    made.device.submit("red", 2)
    assert opened(made.campaign, made.transport.sent[-1])[0].place == 1
    with pytest.raises(ConfigError, match=r"has joined the campaign colours in the class open, .* not careful\.$"):
        made.epsilon_class = "careful"
        made.restart()
    assert made.outbox.ledgers()[0].epsilon_class == "open"


def test_a_class_is_chosen_with_the_first_report_and_not_before() -> None:
    made = Bench(asked())
    assert made.device.flush() == [] and made.outbox.ledgers()[0].epsilon_class == ""
    with pytest.raises(DataError):
        made.device.submit("purple", 1)
    made.epsilon_class = "open"
    made.restart()
    made.device.submit("red", 1)
    assert opened(made.campaign, made.transport.sent[-1])[0].place == 1


def test_a_process_that_began_before_another_one_joined_neither_moves_its_reports_nor_adds_its_own() -> None:
    made = Bench(asked())
    own = made.campaign.of_class(1)
    made.outbox.join(made.campaign, 1)  # by another process, which dies when it has drawn
    made.outbox.draw(
        made.campaign, 1, budget=6.0, make=lambda: message.draw(own, 0, system_entropy()), price=own.charged
    )
    made.device.flush()
    assert [opened(made.campaign, wire)[0].place for wire in made.transport.sent] == [1]
    with pytest.raises(ConfigError, match="joined the campaign colours in the class open"):
        made.device.submit("red", 2)
    assert made.outbox.ledgers()[0].spent == 2.0


def test_unknown_classes_and_classes_where_there_are_none_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"`class` must be one of careful, open, got 'openn'"):
        Bench(asked(), epsilon_class="openn")
    with pytest.raises(ConfigError, match="the campaign colours has no classes"):
        Bench(campaign(), epsilon_class="careful")


def test_the_cap_of_a_device_is_compared_with_its_own_class() -> None:
    Bench(asked(), max_epsilon=1.0)
    with pytest.raises(ConfigError, match="reports of epsilon 2, and this device gives at most 1"):
        Bench(asked(), max_epsilon=1.0, epsilon_class="open")
