"""The batch: a signed header that says little, and entries of one length."""

from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.device.campaigns import campaign
from tests.device.test_campaign import MALLOWS

from dovetail.collect.batch import MOST_HEADER, PREFIX, SIGNATURE, Header, entry_bytes, head_bytes
from dovetail_protocol.messages import Rejected, inner_bytes

CAMPAIGN, KEYS = campaign()
SHUFFLER = KEYS.shuffler_signing.verifying_key()
HEADER = Header("meters", CAMPAIGN.digest.hex(), "ab" * 16, (2, 3), 120, "cd" * 32, {"superseded": 1})
SIGNED = HEADER.sign(KEYS.shuffler_signing)


def kind(head: bytes) -> str:
    with pytest.raises(Rejected) as caught:
        Header.read(head, SHUFFLER)
    assert "\n" not in str(caught.value)
    return caught.value.kind


def test_a_signed_header_is_read_as_it_was_written() -> None:
    assert Header.read(SIGNED, SHUFFLER) == Header.peek(SIGNED) == HEADER
    assert head_bytes(SIGNED[:PREFIX]) == len(SIGNED)
    assert HEADER.sign(KEYS.shuffler_signing) == SIGNED  # sent again byte for byte


@pytest.mark.exhaust
def test_any_changed_or_missing_byte_breaks_the_signature() -> None:
    for place in range(len(SIGNED)):
        assert kind(SIGNED[:place] + bytes([SIGNED[place] ^ 1]) + SIGNED[place + 1 :]) == "signature"
        assert kind(SIGNED[:place]) == "signature"
    assert kind(HEADER.sign(KEYS.owner)) == "signature"


def test_a_signature_of_a_report_or_campaign_is_none_of_a_batch() -> None:
    head = SIGNED[:-SIGNATURE]
    for domain in (b"", b"dovetail campaign v1\0", b"dovetail device\0\1"):
        assert kind(head + KEYS.shuffler_signing.sign(domain + head)) == "signature"


def test_nothing_in_a_header_names_a_device_or_a_time() -> None:
    said = {"campaign", "digest", "batch", "rounds", "count", "sha256", "dropped"}
    assert set(asdict(HEADER)) == said | {
        "people",
        "dummies",
        "parts",
        "classes",
    }  # which stand in such batches alone
    assert not any(name in SIGNED for name in (b"people", b"dummies", b"parts", b"classes"))


@pytest.mark.parametrize(
    "changes",
    [
        {"campaign": 3},
        {"digest": "x" * 64},
        {"digest": ["ab"]},
        {"batch": "ab"},
        {"batch": "AB" * 16},
        {"sha256": None},
        {"rounds": ()},
        {"rounds": (0,)},
        {"rounds": (3, 2)},
        {"rounds": (2, 2)},
        {"rounds": (True,)},
        {"rounds": (1.0,)},
        {"rounds": "12"},
        {"count": -1},
        {"count": 1 << 60},
        {"count": True},
        {"dropped": []},
        {"classes": (-1, HEADER.count + 1)},
        {"classes": (1.0, HEADER.count - 1)},
        {"classes": (HEADER.count, 1)},
        {"classes": (HEADER.count,), "people": HEADER.count},
        {"dropped": {"late": -1}},
    ],
)
def test_a_field_of_another_kind_is_refused_although_signed(changes: dict[str, Any]) -> None:
    assert kind(replace(HEADER, **changes).sign(KEYS.shuffler_signing)) == "malformed"


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{}", b"[" * 10_000, b'{"rounds": [1], "more": 1}', b"\xff"])
def test_a_signed_text_that_is_no_header_is_refused(text: bytes) -> None:
    head = b"DVTB\1" + len(text).to_bytes(4, "big") + text
    assert kind(head + KEYS.shuffler_signing.sign(b"dovetail batch v1\0" + head)) == "malformed"


def test_only_the_beginning_of_a_batch_is_one() -> None:
    for prefix, wanted in (
        (b"", "malformed"),
        (SIGNED[: PREFIX - 1], "malformed"),
        (b"DVTL" + SIGNED[4:PREFIX], "malformed"),
        (b"DVTB\2" + SIGNED[5:PREFIX], "version"),
        (b"DVTB\1" + (MOST_HEADER + 1).to_bytes(4, "big"), "malformed"),
    ):
        with pytest.raises(Rejected) as caught:
            head_bytes(prefix)
        assert caught.value.kind == wanted


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for attempt in (lambda: Header.peek(data), lambda: Header.read(data, SHUFFLER), lambda: head_bytes(data)):
        with pytest.raises(Rejected):
            attempt()


def test_entries_name_a_slot_only_where_the_order_is_released() -> None:
    assert entry_bytes(CAMPAIGN) == inner_bytes(CAMPAIGN)
    private, _ = campaign({"shuffle": MALLOWS})
    assert entry_bytes(private) == inner_bytes(private) + 4
