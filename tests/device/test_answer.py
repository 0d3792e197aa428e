"""The shuffler's answer: only its own, only for the message that it speaks of, and of one form."""

from __future__ import annotations

import pytest

from dovetail_protocol.endpoint import answer_topic, is_answer_topic
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.messages import Answer, answer_header, make_answer, read_answer, read_answer_header

KEY = SigningKey(bytes(range(32)))
SHUFFLER = KEY.verifying_key()
WIRE = b"DVTL" + bytes(200)
VECTOR = (  # version 1 | 17 seconds | signature | kind
    "445654410100000011"
    "e47de16fbbde928997ff05f34587dec2eba24ff1d30e092b95193c970cc58751"
    "cfbcafa0adfd4cfba485040988d774f64ca590bdebcccd34180d9e1e93726508"
    "726174655f6c696d69746564"
)


@pytest.mark.parametrize("answer", [Answer("accepted"), Answer("late"), Answer("rate_limited", 17)])
def test_a_signed_answer_is_read_as_it_was_made(answer: Answer) -> None:
    made = make_answer(answer, WIRE, KEY)
    assert read_answer(made, WIRE, SHUFFLER) == answer
    assert made[:9] == b"DVTA\1" + answer.after.to_bytes(4, "big") and made[73:] == answer.kind.encode()


def test_the_vector_of_an_answer_stays_as_it_is() -> None:
    assert make_answer(Answer("rate_limited", 17), WIRE, KEY).hex() == VECTOR


def test_an_answer_speaks_of_one_message_and_of_one_shuffler() -> None:
    made = make_answer(Answer("accepted"), WIRE, KEY)
    assert read_answer(made, WIRE + b"\0", SHUFFLER) is None
    assert read_answer(made, WIRE, SigningKey.generate().verifying_key()) is None
    assert read_answer(made, WIRE, None) is None


def test_no_changed_byte_of_an_answer_is_believed() -> None:
    made = make_answer(Answer("accepted"), WIRE, KEY)
    for place in range(len(made)):
        for bit in range(8):
            changed = made[:place] + bytes([made[place] ^ (1 << bit)]) + made[place + 1 :]
            assert read_answer(changed, WIRE, SHUFFLER) is None
    for cut in range(len(made)):
        assert read_answer(made[:cut], WIRE, SHUFFLER) is None
    assert read_answer(made + b"x", WIRE, SHUFFLER) is None
    assert read_answer(made + bytes(1000), WIRE, SHUFFLER) is None


def test_without_a_signature_an_answer_is_a_reason_to_look_for_a_newer_version_and_nothing_else() -> None:
    for kind in ("accepted", "late", "revoked_device", "rate_limited", "campaig", "campaign "):
        assert read_answer(make_answer(Answer(kind, 5), WIRE, None), WIRE, SHUFFLER) is None
    assert read_answer(make_answer(Answer("campaign", 5), WIRE, None), WIRE, SHUFFLER) == Answer("campaign", 0)
    assert read_answer(make_answer(Answer("campaign", 5), WIRE, KEY), WIRE, SHUFFLER) == Answer("campaign", 5)


def test_topics_of_answers_have_one_form() -> None:
    assert is_answer_topic(answer_topic(32 * "0"))
    for wrong in (
        "",
        "x",
        answer_topic(""),
        answer_topic(31 * "0"),
        answer_topic(32 * "0") + "\n",
        answer_topic("+"),
    ):
        assert not is_answer_topic(wrong)


def test_the_vector_of_an_answer_in_a_header_stays_as_it_is() -> None:
    header = answer_header(bytes.fromhex(VECTOR))
    assert header.startswith("RFZUQQEAAAAR") and "=" not in header
    assert read_answer_header(header, WIRE, SHUFFLER) == Answer("rate_limited", 17)
    for wrong in ("", "=", header[:-1], header + "A", header + "==", "\xff"):
        assert read_answer_header(wrong, WIRE, SHUFFLER) is None
