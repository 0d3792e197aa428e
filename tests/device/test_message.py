"""The message: one length for every value, bound to its campaign, round and device, refused by kind otherwise."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.device.campaigns import MECHANISMS, SECRETS, bytes_of, campaign

from dovetail_device.entropy import system_entropy
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.messages import (
    Envelope,
    Rejected,
    inner_bytes,
    inner_info,
    open_envelope,
    outer_info,
    plain,
    plain_bytes,
    read_head,
    seal,
    wire_bytes,
)

HEAD = 41
MERGE = {"batch.small": "merge"}
ZERO = bytes(1)
CAMPAIGN, KEYS = campaign()
OPENER = KEYS.shuffler.opener()
MESSAGE = seal(CAMPAIGN, 3, plain(CAMPAIGN, ZERO), KEYS.device)


def refused(message: bytes, *, by: Campaign = CAMPAIGN) -> str:
    """The kind of the refusal, whose words are one line and repeat nothing of the message."""
    with pytest.raises(Rejected) as caught:
        open_envelope(by, message, OPENER)
    assert "\n" not in str(caught.value) and caught.value.__cause__ is None
    return caught.value.kind


def every_value(mechanism: Any) -> list[Any]:
    """The whole domain, or the ends and the middle of a range."""
    return list(range(mechanism.k)) if hasattr(mechanism, "k") else [mechanism.lower, 20.0, mechanism.upper]


@pytest.mark.parametrize("suite", SECRETS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_messages_have_one_length_for_every_value(name: str, suite: str) -> None:
    found, held = campaign(name=name, suite=suite)
    for value in every_value(found.mechanism)[:20]:
        report = found.mechanism.encode(found.mechanism.randomize(value, system_entropy()))
        assert len(report) == found.mechanism.report_bytes
        assert len(seal(found, 1, plain(found, report), held.device)) == wire_bytes(found)


@pytest.mark.parametrize("name", MECHANISMS)
def test_reports_have_one_length_for_every_value_and_every_draw(name: str) -> None:
    found, _ = campaign(name=name)
    lengths = {
        len(found.mechanism.encode(found.mechanism.randomize(value, system_entropy())))
        for value in every_value(found.mechanism)
        for _ in range(20)
    }
    assert lengths == {found.mechanism.report_bytes}


@pytest.mark.parametrize("changes", [{}, MERGE, {"groups.names": ["north", "south"]}], ids=["", "merge", "groups"])
@pytest.mark.parametrize("suite", SECRETS)
def test_a_message_opens_in_two_steps_and_says_what_was_sealed(suite: str, changes: dict[str, Any]) -> None:
    found, held = campaign(changes, suite=suite)
    plaintext = plain(found, ZERO, "south" if found.groups else None)
    message = seal(found, 7, plaintext, held.device, bytes(range(16)))
    head = read_head(message)
    assert (head.digest, head.round) == (found.digest, 7)
    envelope = open_envelope(found, message, held.shuffler.opener())
    assert (envelope.report_id, envelope.device, envelope.round) == (bytes(range(16)), held.device.verifying_key(), 7)
    assert len(envelope.inner) == inner_bytes(found)
    assert held.analyzer.opener().open(envelope.inner, inner_info(found, 7)) == plaintext
    assert plaintext == bytes([1, 0, 1 if found.groups else 0, 0]) and len(plaintext) == plain_bytes(found)


def test_sealing_again_makes_another_message_of_the_same_length() -> None:
    again = seal(CAMPAIGN, 3, plain(CAMPAIGN, ZERO), KEYS.device)
    assert again != MESSAGE and len(again) == len(MESSAGE)


def test_the_shuffler_cannot_open_the_inner_envelope_nor_the_analyzer_the_outer() -> None:
    envelope = open_envelope(CAMPAIGN, MESSAGE, OPENER)
    assert OPENER.open(envelope.inner, inner_info(CAMPAIGN, 3)) is None
    assert KEYS.analyzer.opener().open(MESSAGE[HEAD:], outer_info(CAMPAIGN, 3)) is None


def test_the_inner_envelope_tells_rounds_apart_unless_they_may_share_a_batch() -> None:
    inner = open_envelope(CAMPAIGN, MESSAGE, OPENER).inner
    assert KEYS.analyzer.opener().open(inner, inner_info(CAMPAIGN, 4)) is None
    mixing, _ = campaign(MERGE)
    assert inner_info(mixing, 3) == inner_info(mixing, 4) == inner_info(mixing, 0)
    assert outer_info(mixing, 3) != outer_info(mixing, 4)


def test_the_two_seals_never_share_an_info() -> None:
    assert {inner_info(CAMPAIGN, t) for t in range(9)}.isdisjoint({outer_info(CAMPAIGN, t) for t in range(9)})


# --- refusals ------------------------------------------------------------------------------------------------------


def test_a_message_cut_anywhere_is_refused() -> None:
    kinds = {refused(MESSAGE[:length]) for length in range(len(MESSAGE))}
    assert kinds == {"malformed"}
    assert refused(MESSAGE + b"\0") == "malformed"
    assert refused(MESSAGE * 1000) == "malformed"


def test_a_message_changed_in_any_bit_of_any_byte_is_refused() -> None:
    expected = {**dict.fromkeys(range(4), "malformed"), 4: "version", **dict.fromkeys(range(5, 37), "campaign")}
    for place in range(len(MESSAGE)):
        for bit in (1, 0x10, 0x80):
            changed = bytearray(MESSAGE)
            changed[place] ^= bit
            kind = refused(bytes(changed))
            assert kind == expected.get(place, kind) and (place < HEAD or kind == "seal")
            assert place not in range(37, HEAD) or kind in ("round", "seal")


@pytest.mark.parametrize("round", [0, 25, 1 << 31, (1 << 32) - 1])
def test_rounds_outside_the_schedule_are_refused(round: int) -> None:
    assert refused(MESSAGE[:37] + round.to_bytes(4, "big") + MESSAGE[HEAD:]) == "round"
    with pytest.raises(Rejected, match="rounds 1 to 24"):
        seal(CAMPAIGN, round, plain(CAMPAIGN, ZERO), KEYS.device)


def test_a_message_of_another_campaign_or_version_is_refused() -> None:
    for changes in ({"version": 2}, {"id": "other"}, {"randomizer.epsilon": 0.9}, {"question": "Another one?"}):
        other, _ = campaign(changes)
        assert refused(MESSAGE, by=other) == "campaign"
        grafted = MESSAGE[:5] + other.digest + MESSAGE[37:]
        assert refused(grafted, by=other) == "seal"


def test_a_message_to_another_shuffler_is_refused() -> None:
    stranger = campaign()[1].analyzer.opener()
    with pytest.raises(Rejected) as caught:
        open_envelope(CAMPAIGN, MESSAGE, stranger)
    assert caught.value.kind == "seal"


def outer_of(message: bytes) -> bytes:
    opened = OPENER.open(message[HEAD:], outer_info(CAMPAIGN, read_head(message).round))
    assert opened is not None
    return opened


def sealed_again(outer: bytes, *, round: int = 3) -> bytes:
    """What somebody sends who holds the parts of messages and the public keys."""
    head = MESSAGE[:37] + round.to_bytes(4, "big")
    return head + CAMPAIGN.shuffler.seal(outer, outer_info(CAMPAIGN, round))


PARTS = {"id": slice(0, 16), "device": slice(16, 48), "signature": slice(48, 112), "inner": slice(112, None)}


@pytest.mark.parametrize("swapped", [set(some) for size in (1, 2, 3) for some in combinations(PARTS, size)])
def test_parts_of_two_messages_cannot_be_mixed(swapped: set[str]) -> None:
    other = SigningKey(bytes_of("another device", 32))
    mine, theirs = outer_of(MESSAGE), outer_of(seal(CAMPAIGN, 3, plain(CAMPAIGN, ZERO), other))
    mixed = b"".join((theirs if part in swapped else mine)[place] for part, place in PARTS.items())
    assert refused(sealed_again(mixed)) == "signature"


def test_an_envelope_cannot_be_moved_to_another_round() -> None:
    assert isinstance(open_envelope(CAMPAIGN, sealed_again(outer_of(MESSAGE)), OPENER), Envelope)
    assert refused(sealed_again(outer_of(MESSAGE), round=4)) == "signature"


def test_an_envelope_cannot_be_moved_to_another_campaign() -> None:
    other, _ = campaign({"id": "other"})
    head = MESSAGE[:5] + other.digest + MESSAGE[37:HEAD]
    moved = head + other.shuffler.seal(outer_of(MESSAGE), outer_info(other, 3))
    assert refused(moved, by=other) == "signature"


def test_every_changed_bit_of_an_outer_plaintext_breaks_the_signature() -> None:
    outer = outer_of(MESSAGE)
    for place in range(len(outer)):
        changed = bytearray(outer)
        changed[place] ^= 4
        assert refused(sealed_again(bytes(changed))) == "signature"


def test_what_no_device_could_send_is_not_sealed() -> None:
    grouped, held = campaign({"groups.names": ["north", "south"]})
    for asked, group in ((CAMPAIGN, "north"), (grouped, None), (grouped, "east")):
        with pytest.raises(Rejected, match="public group"):
            plain(asked, ZERO, group)
    with pytest.raises(Rejected, match="bytes"):
        seal(CAMPAIGN, 1, plain(CAMPAIGN, bytes(2)), KEYS.device)
    with pytest.raises(Rejected, match="16 bytes"):
        seal(grouped, 1, plain(grouped, ZERO, "north"), held.device, bytes(15))


def test_an_envelope_is_mute() -> None:
    envelope = open_envelope(CAMPAIGN, MESSAGE, OPENER)
    assert repr(envelope) == "Envelope(round=3)"


# --- fuzz ----------------------------------------------------------------------------------------------------------


def opens_or_is_rejected(message: bytes) -> None:
    """The only two things that may happen, whatever arrives."""
    try:
        open_envelope(CAMPAIGN, message, OPENER)
    except Rejected:
        pass
    else:
        assert message == MESSAGE


@given(st.binary(max_size=2 * len(MESSAGE)))
def test_no_bytes_break_the_reader(message: bytes) -> None:
    opens_or_is_rejected(message)
    opens_or_is_rejected(MESSAGE[:HEAD] + message)
    opens_or_is_rejected(MESSAGE[:37] + message)


@given(st.lists(st.tuples(st.integers(0, len(MESSAGE) - 1), st.integers(0, 255)), max_size=5))
def test_no_few_changes_break_the_reader(changes: list[tuple[int, int]]) -> None:
    message = bytearray(MESSAGE)
    for place, byte in changes:
        message[place] = byte
    opens_or_is_rejected(bytes(message))


@given(st.binary(min_size=112 + inner_bytes(CAMPAIGN), max_size=112 + inner_bytes(CAMPAIGN)))
def test_whatever_is_sealed_to_the_shuffler_is_rejected_unless_a_device_signed_it(outer: bytes) -> None:
    assert refused(sealed_again(outer)) == "signature"
