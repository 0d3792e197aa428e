"""What a device gives at most, whoever asks under whatever name, and what it says of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.collect.device.made import KRR, Bench, FakeClock, FakeTransport, campaign
from tests.collect.device.test_outbox import at_once

from dovetail_device.__main__ import main
from dovetail_device.client import Device
from dovetail_device.entropy import system_entropy
from dovetail_device.files import save_keys
from dovetail_device.ledger import Limits, question_key
from dovetail_device.outbox import BudgetSpent, Outbox
from dovetail_protocol.budget import DEVICE_TOTAL, QUESTION_TOTAL
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.errors import ConfigError, ParameterError
from dovetail_protocol.keys import RoleKeys

STRONG = KRR.replace("1.0", "2.0")
OTHER = RoleKeys.generate("owner")
assert OTHER.signing
OTHER_NAME = OTHER.signing.verifying_key()


def numbered(number: int, question: str = "Which colour?") -> Campaign:
    """One of many campaigns with reports of 2 nats, each of which pays for one."""
    return campaign(id=f"colours-{number}", randomizer=STRONG, budget=2.0, question=question)


def answer_all(made: Bench, asked: list[Campaign]) -> int:
    """Answer each of these campaigns once on one device; how many reports were drawn."""
    drawn = 0
    for one in asked:
        try:
            drawn += made.restart(one).submit("red", 1).drawn
        except BudgetSpent as refused:
            assert "this device gives at most" in str(refused) and "dovetail-device limit" in str(refused)
    return drawn


def test_a_device_gives_its_total_and_no_more_under_however_many_campaigns() -> None:
    asked = [numbered(number, f"Question {number}?") for number in range(50)]
    made = Bench(asked[0], limits=Limits(), max_epsilon=2.0)
    assert answer_all(made, asked) == DEVICE_TOTAL / 2.0 == len(made.transport.sent)
    assert made.outbox.spending().spent == DEVICE_TOTAL


@pytest.mark.exhaust
def test_one_question_gets_its_limit_and_no_more_under_however_many_campaign_ids() -> None:
    worded = ("Which colour?", "WHICH  colour", "which, colour!")
    asked = [numbered(number, worded[number % 3]) for number in range(50)]
    made = Bench(asked[0], limits=Limits())
    assert answer_all(made, asked) == QUESTION_TOTAL // 2.0
    assert made.outbox.spending().questions == {"which colour": 4.0}
    assert made.restart(numbered(99, "Which car?")).submit("red", 1).drawn  # another question, and the total is left


def test_a_name_for_the_value_counts_reworded_questions_as_one() -> None:
    asked = [numbered(number, f"Question {number}?") for number in range(10)]
    made = Bench(asked[0], limits=Limits(), question="thermometer")
    assert answer_all(made, asked) == QUESTION_TOTAL // 2.0
    assert made.outbox.spending().questions == {"thermometer": 4.0}


def test_ten_reports_of_a_tenth_fit_into_a_total_of_one() -> None:
    made = Bench(campaign(randomizer=KRR.replace("1.0", "0.1"), budget=10.0), limits=Limits(1.0, 1.0))
    assert all(made.device.submit("red", number).drawn for number in range(1, 11))
    made.restart(campaign(id="more", randomizer=KRR.replace("1.0", "0.1"), budget=10.0))
    with pytest.raises(BudgetSpent, match="at most 1 nats on one question, of which 1 are spent"):
        made.device.submit("red", 1)
    assert made.outbox.spending().spent == 1.0


def test_what_a_budget_does_not_pay_for_is_neither_drawn_nor_charged() -> None:
    made = Bench(numbered(1), limits=Limits(total=1.0))
    with pytest.raises(BudgetSpent, match="at most 1 nats in all, of which 0 are spent"):
        made.device.submit("red", 1)
    assert made.outbox.spending().spent == made.outbox.ledgers()[0].spent == 0.0 and not made.transport.sent


@pytest.mark.exhaust
def test_processes_with_different_campaigns_never_spend_more_than_the_total_together(tmp_path: Path) -> None:
    keys = RoleKeys.generate("device")
    assert keys.signing
    name = keys.signing.verifying_key()

    def work(number: int) -> None:
        with closing(Outbox.open(tmp_path / "outbox", name)) as outbox:
            for more in range(4):
                device = Device(
                    numbered(10 * number + more, f"Question {number}, {more}?"), keys, outbox=outbox,
                    transport=FakeTransport(), clock=FakeClock(), words=system_entropy(),
                )  # fmt: skip
                try:
                    device.submit("red", 1)
                except BudgetSpent:
                    continue

    assert at_once([lambda number=number: work(number) for number in range(6)]) == [0] * 6
    with closing(Outbox.open(tmp_path / "outbox", name)) as outbox:
        assert outbox.spending().spent == DEVICE_TOTAL
        assert sum(ledger.counts.get("accepted", 0) for ledger in outbox.ledgers()) == DEVICE_TOTAL / 2.0


def test_what_is_left_is_read_where_no_other_process_can_spend_it(tmp_path: Path) -> None:
    keys = RoleKeys.generate("device")
    assert keys.signing
    path = tmp_path / "outbox"
    with closing(Outbox.open(path, keys.signing.verifying_key())) as outbox, outbox._transaction():
        other = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        with closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")


@pytest.mark.parametrize("options", [{"total": 0.0}, {"per_question": -1.0}, {"total": float("inf")}])
def test_limits_are_finite_numbers_above_zero(options: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match="must be a finite number above 0"):
        Limits(**options)


def test_a_question_is_its_words() -> None:
    assert question_key(" How  did you get to WORK\ttoday?! ") == "how did you get to work today"
    assert question_key("ﬁne?") == "fine" != question_key("fine art")


# Owners


def test_a_second_owner_is_answered_only_after_consent_and_then_for_good() -> None:
    made, asked = Bench(campaign()), campaign(id="shapes", owner=OTHER)
    with pytest.raises(ConfigError, match=r"has not consented to answer ed25519:.* shapes; .*--owner"):
        made.restart(asked)
    assert [ledger.campaign for ledger in made.outbox.ledgers()] == ["colours"]
    made.owners = (OTHER_NAME,)
    assert made.restart(asked).submit("red", 1).drawn
    made.owners = ()
    assert made.restart(asked).submit("red", 2).drawn and made.restart().submit("red", 1).drawn
    assert str(OTHER_NAME) in made.outbox.spending().owners and len(made.outbox.spending().owners) == 2


def test_where_owners_are_named_nobody_else_may_ask() -> None:
    made = Bench(campaign(id="shapes", owner=OTHER), owners=(OTHER_NAME,))
    with pytest.raises(ConfigError, match="has not consented"):
        made.restart(campaign())
    made.owners = ()
    with pytest.raises(ConfigError, match="has not consented"):
        made.restart(campaign())


# What it says


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A campaign and a device's keys as options; nobody answers there."""
    made = campaign(extra='[endpoints]\nhttp = "http://127.0.0.1:9"')
    (tmp_path / "campaign.toml").write_bytes(made.signed)
    save_keys(RoleKeys.generate("device"), tmp_path / "device.key")
    return ["--keys", str(tmp_path / "device.key")]


def submitted(files: list[str], tmp_path: Path) -> list[str]:
    return ["submit", *files, "--campaign", str(tmp_path / "campaign.toml"), "--round", "1", "--value", "red"]


def test_a_device_installed_anew_says_that_it_has_no_memory(
    tmp_path: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for forgets, notes in ((False, 1), (False, 0), (True, 1)):
        if forgets:
            for path in tmp_path.glob("device.key.outbox*"):
                path.unlink()
        assert main(submitted(files, tmp_path)) == 0
        assert capsys.readouterr().err.count("no memory of earlier reports") == notes


def test_spent_tells_what_everybody_got_and_limit_changes_what_they_get(
    tmp_path: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spent", *files]) == 2 and "no such outbox" in capsys.readouterr().err
    assert main(["limit", *files, "--total", "3", "--per-question", "2"]) == 0
    assert main(submitted(files, tmp_path)) == 0
    capsys.readouterr()
    assert main(["spent", *files, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    since, owners = told.pop("since"), told.pop("owners")
    assert len(since) == len("2030-01-01") and len(owners) == 1
    assert told == {
        "schema_version": 1, "spent": 1.0, "limits": {"total": 3.0, "per_question": 2.0},
        "questions": {"which colour": 1.0}, "campaigns": {"colours": 1.0},
    }  # fmt: skip
    assert main(["spent", *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 of 3 nats spent in all, as far as this device remembers: since ")
    assert lines[1:3] == ["1 of 2 nats on the question: which colour.", "1 nats for the campaign colours."]
    assert main(["limit", *files, "--total", "0"]) == 2
    assert "`total` must be a finite number above 0" in capsys.readouterr().err
