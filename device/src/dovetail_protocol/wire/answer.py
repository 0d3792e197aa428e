"""The answer: what the shuffler says of one message, whoever passes it on.

::

    answer = "DVTA" | version 1 | seconds to wait 4 | signature 64 | kind (ASCII)

Over MQTT it is a message of its own, over HTTP its base64url stands in the header `Dovetail-Answer`. The shuffler
signs it together with the digest of the message, so that no broker, proxy or portal can say in its name that a
report is accepted, or refused for good, and no answer speaks of another message. It names neither device nor report:
whoever passes on the message can compute that digest. A shuffler cannot sign for a version of the campaign that it
does not know; "campaign" is therefore read without a signature, and is no more than a reason to look for a newer one.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from dovetail_protocol.keys import SigningKey, VerifyingKey, raw, text

VERSION = 1
MAGIC = b"DVTA"
UNSIGNED = "campaign"
HEADER = "Dovetail-Answer"
_HEAD, _WAIT, _SIGNATURE = len(MAGIC) + 1, 4, 64
_LONGEST = 64  # bytes of a kind
_MOST_SECONDS = (1 << 32) - 1


@dataclass(frozen=True)
class Answer:
    """`kind` is "accepted" or the kind of a refusal; `after` the seconds that the shuffler asks to wait."""

    kind: str
    after: int = 0


def make_answer(answer: Answer, wire: bytes, key: SigningKey | None) -> bytes:
    """The answer to this message; `key` is the shuffler's for the message's version, None where it knows none."""
    wait = min(answer.after, _MOST_SECONDS).to_bytes(_WAIT, "big")
    kind = answer.kind.encode("ascii")
    signature = bytes(_SIGNATURE) if key is None else key.sign(_signed(wire, wait, kind))
    return MAGIC + bytes([VERSION]) + wait + signature + kind


def read_answer(data: bytes, wire: bytes, key: VerifyingKey | None) -> Answer | None:
    """The answer to this message; None for anything else, and for what the shuffler has not signed."""
    head, wait, rest = data[:_HEAD], data[_HEAD : _HEAD + _WAIT], data[_HEAD + _WAIT :]
    signature, kind = rest[:_SIGNATURE], rest[_SIGNATURE:]
    if head != MAGIC + bytes([VERSION]) or not 1 <= len(kind) <= _LONGEST or not kind.isascii():
        return None
    signed = key is not None and key.verifies(signature, _signed(wire, wait, kind))
    if not signed and kind != UNSIGNED.encode():
        return None
    return Answer(kind.decode("ascii"), int.from_bytes(wait, "big") if signed else 0)


def answer_header(answer: bytes) -> str:
    """An answer as it stands in a header of HTTP."""
    return text(answer)


def read_answer_header(header: str, wire: bytes, key: VerifyingKey | None) -> Answer | None:
    """The answer in a header; None as `read_answer`, and where there is none."""
    try:
        return read_answer(raw(header.strip()), wire, key)
    except ValueError:
        return None


def _signed(wire: bytes, wait: bytes, kind: bytes) -> bytes:
    return b"dovetail answer" + bytes([0, VERSION]) + sha256(wire).digest() + wait + kind
