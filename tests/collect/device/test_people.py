"""A device among people who send dummies: its draw, its consent, its budget, and a kill at every step."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.collect.device import test_outbox
from tests.collect.device.made import ANALYZER, SHUFFLER, Bench, FakeClock, FakeTransport, campaign
from tests.collect.device.test_outbox import left_by_a_killed_process, lives, wires
from tests.device.words import ChosenBits, SimulatedBits
from tests.statistics import expect_broken, expect_law

from dovetail.core.entropy import Entropy
from dovetail_device.client import Device
from dovetail_device.entropy import system_entropy
from dovetail_device.ledger import terms_of
from dovetail_device.outbox import BudgetSpent, Outbox
from dovetail_device.sender import UNREACHABLE, refusal_event
from dovetail_protocol import messages as message
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.dummies import SCALE, Unrandomized
from dovetail_protocol.errors import ConfigError, DataError, ParameterError
from dovetail_protocol.messages import Rejected

memory = test_outbox.memory  # a fixture
OPEN = 'name = "none"\nk = 4\ncategories = ["red", "green", "blue", "other"]'
HEAD = b"\x01\x00\x00"  # of every entry


def asked(*, rate: float = 0.25, epsilon: float = 1.0, **changes: Any) -> Campaign:
    people = f'trust = "users"\nassumed_honest = 1\n[dummies]\nepsilon = {epsilon}\ndelta = 1e-6\nrate = {rate}'
    return campaign(**{"randomizer": OPEN, "extra": people, **changes})


def entries(found: Campaign, wire: bytes) -> list[int]:
    """The symbols of both entries, as the analyzer opens them."""
    assert SHUFFLER.opening and ANALYZER.opening
    envelope = message.open_envelope(found, wire, SHUFFLER.opening.opener())
    sealed = message.split(envelope.inner, found.entries)
    info = message.inner_info(found, envelope.round)
    plains = [ANALYZER.opening.opener().open(entry, info) for entry in sealed]
    assert all(plain is not None and plain.startswith(HEAD) for plain in plains)
    assert len({*map(len, sealed)}) == 1 and len({*sealed}) == 2
    return [found.mechanism.decode(plain[len(HEAD) :]) for plain in plains if plain]


@pytest.mark.exhaust
def test_a_message_holds_the_answer_and_a_dummy_or_a_blank_in_either_order(rng: Entropy) -> None:
    found, words = asked(), SimulatedBits(rng)
    drawn = Counter(message.draw(found, 1, words) for _ in range(20_000))
    encode = found.mechanism.encode
    pairs = [(1, other) for other in (0, 1, 2, 3, 4)] + [(other, 1) for other in (0, 2, 3, 4)]
    counts = np.array([drawn.pop(HEAD + encode(a) + HEAD + encode(b), 0) for a, b in pairs])
    assert not drawn
    each = 0.25 / 4 / 2
    law = np.array([each, 2 * each, each, each, 0.375, each, each, each, 0.375])
    expect_law(counts, law)
    expect_broken(counts, np.array([each, 2 * each, each, each, 0.41, each, each, each, 0.34]))  # answers first


def test_the_coin_is_exactly_the_rate_and_the_symbol_uniform() -> None:
    found, blank = asked(rate=0.5), 4
    quarter = SCALE // 2
    for bits, wanted in (
        ([quarter, 1], [2, blank]),
        ([quarter, 0], [blank, 2]),
        ([quarter - 1, 3, 1], [2, 3]),
        ([quarter - 1, 3, 0], [3, 2]),
    ):
        drawn = message.split(message.draw(found, 2, ChosenBits(bits)), 2)
        assert [found.mechanism.decode(part[3:]) for part in drawn] == wanted


def test_messages_of_one_device_look_alike_with_and_without_a_dummy() -> None:
    made = Bench(asked(rate=0.5, budget=10.0), trust="users")
    for number in range(1, 11):
        made.device.submit("green", number)
    sent = [entries(made.campaign, wire) for wire in made.transport.sent]
    assert len(sent) == 10 and all(1 in pair for pair in sent)
    assert {len(wire) for wire in made.transport.sent} == {message.wire_bytes(made.campaign)}
    assert len({wire[:41] for wire in made.transport.sent}) == 10  # which differ in their rounds alone
    with pytest.raises(Rejected, match=r"public group must be absent"):
        message.draw(made.campaign, 1, made.words, "north")
    with pytest.raises(Rejected, match="a report of colours has 8 bytes"):
        assert made.keys.signing
        message.seal(made.campaign, 1, bytes(12), made.keys.signing)  # three of them


def test_a_device_answers_as_it_is_only_where_whoever_runs_it_says_so() -> None:
    with pytest.raises(ConfigError, match=r"promises nothing for a single report: .* \(--trust users\)\.$"):
        Bench(asked())
    with pytest.raises(ConfigError, match="reports of epsilon inf, and this device gives at most 20"):
        Bench(asked(), trust="users", max_epsilon=20.0)
    with pytest.raises(ParameterError, match='`trust` must be "users", "shuffler" or nothing'):
        Bench(asked(), trust="everybody")
    made = Bench(asked(), trust="users")
    assert made.device.submit("blue").state == "accepted"
    with pytest.raises(DataError, match="one of red, green, blue, other"):
        made.device.submit("black", 2)
    with pytest.raises(DataError, match=r"whole number in 0\.\.3"):
        made.device.submit(4, 2)  # the blank is nobody's answer


def test_a_report_costs_the_epsilon_of_its_batch_out_of_every_budget() -> None:
    made = Bench(asked(epsilon=1.5, budget=3.0), trust="users")
    for number in (1, 2):
        made.device.submit("red", number)
    with pytest.raises(BudgetSpent, match="budget of 3 nats"):
        made.device.submit("red", 3)
    (ledger,) = made.outbox.ledgers()
    assert (ledger.spent, ledger.trust, made.campaign.affordable) == (3.0, "users", 2)
    assert "3 of 3 nats spent, as long as other people send their dummies; reports: 2 accepted" in str(ledger)
    assert made.outbox.spending().questions == {"which colour": 3.0}


def test_no_other_rate_or_trust_is_followed_without_asking() -> None:
    assert terms_of(asked()) == terms_of(asked(version=2))
    local = campaign()
    assert len({terms_of(found) for found in (asked(), asked(rate=0.5), asked(epsilon=2.0), local)}) == 4
    newer = asked(version=2, rate=0.125)
    made = Bench(asked(), FakeTransport([refusal_event("campaign")], newer.signed), trust="users")
    receipt = made.device.submit("red")
    assert (receipt.state, receipt.reason, len(made.transport.sent)) == ("refused", "changed", 1)
    with pytest.raises(ConfigError, match="a newer version of the campaign colours asks something else"):
        made.device.submit("red", 2)


def test_a_message_that_waits_is_sent_again_as_it_is_and_erased_when_it_has_arrived() -> None:
    made = Bench(asked(), FakeTransport([UNREACHABLE] * 3), trust="users")
    made.device.submit("red")
    kept = made.outbox.find("colours", 1)
    assert kept and len(kept.plaintext) == 2 * 4 and "plaintext" not in repr(kept)
    for _ in range(3):
        made.clock.time += 100.0
        made.restart().flush()
    assert len(made.transport.sent) == 4 and len({*made.transport.sent}) == 1
    left = made.outbox.find("colours", 1)
    assert left and left.state == "accepted" and not (left.plaintext or left.wire)


def test_the_answer_that_has_arrived_is_in_no_file_of_a_killed_process(memory: Path) -> None:
    """Its row holds it as it is: of what stands in that row, all that is told apart in a file is looked for."""
    found = asked()

    def submit(outbox: Outbox) -> None:
        made = FakeTransport([UNREACHABLE])
        device = Device(
            found, test_outbox.KEYS, outbox=outbox, transport=made, clock=FakeClock(), words=system_entropy(),
            trust="users",
        )  # fmt: skip
        device.submit("red")
        (entry,) = outbox.waiting(found.id)
        (memory / "row").write_bytes(entry.id + entry.wire)
        outbox.postpone(entry, "unreachable", attempts=1, due=0.0)
        assert [receipt.state for receipt in device.flush()] == ["accepted"]

    folder = memory / "device"
    folder.mkdir()
    left, row = left_by_a_killed_process(folder, submit), (memory / "row").read_bytes()
    assert left and row[:16] not in left and not any(part in left for part in message.split(row[16:], 4))


@pytest.mark.parametrize("stride", [61, pytest.param(1, marks=pytest.mark.exhaust)])
def test_kill_9_at_every_step_leaves_one_pair_per_round(
    memory: Path, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = asked(budget=2.0)
    monkeypatch.setattr(test_outbox, "CAMPAIGN", found)
    monkeypatch.setattr(test_outbox, "Device", partial(Device, trust="users"))
    step, killed = 1 - stride, 1
    while killed:
        step += stride
        killed = lives(memory / str(step), step)
        seen = wires(memory / str(step))
        assert {number: len(messages) for number, messages in seen.items()} == {1: 1, 2: 1}
        assert all(len(entries(found, wire)) == 2 for messages in seen.values() for wire in messages)
        outbox = Outbox.open(memory / str(step) / "outbox", test_outbox.NAME)
        assert [ledger.spent for ledger in outbox.ledgers()] == [2.0]
        outbox.close()
    assert step > 60


def test_what_is_sent_as_it_is_has_the_form_of_a_symbol_or_a_blank() -> None:
    sent = Unrandomized(255)
    assert [sent.decode(sent.encode(report)) for report in (0, 254, sent.blank)] == [0, 254, 255]
    assert Unrandomized(256).report_bytes == 2 and sent.randomize(3, ChosenBits([])) == 3
    for wrong in (256, -1):
        with pytest.raises(DataError, match=r"`report` must be a whole number in 0\.\.255"):
            sent.encode(wrong)
