"""The message: one person's report in two envelopes, of one length for every value.

::

    wire    = "DVTL" | version 1 | campaign digest 32 | round 4 | sealed to the shuffler( outer )
    outer   = report id 16 | device key 32 | signature 64 | [token 256] | [kind 1] | sealed to the analyzer( inner )
    inner   = version 1 | public group 2 | report (fixed length of the randomizer)

Where a campaign has classes of people with different epsilons, one byte stands before what is sealed to the analyzer:
the number of the sender's class, which is public, and which the analyzer does not get. Where a device draws a
question that dummies hide, the byte is the number of the question, so that the shuffler can say how many people drew
each: the draw does not depend on what is held. Where devices show tokens, the token stands before that, and the
device key is the one-time key that it certifies (see `tokens`).

Where a person sends several symbols the outer envelope holds an inner one for each, sealed by itself, one after the
other. Where people send dummies (`trust = "users"`) one more holds a dummy or a blank, and their order is random.
They arrive together or not at all.

Numbers are big endian. Both seals bind campaign, round and version through HPKE's `info`. Where rounds may share a
batch the inner one binds round 0, because the analyzer must not tell the rounds of a batch apart; the outer one
always binds the round. The signature covers everything but itself, so a report can be moved to no other round or
device.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import quote

from dovetail_protocol.binary_http import BinaryRequest
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.dummies import Unrandomized
from dovetail_protocol.errors import ConfigError, DovetailError
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.keys import OVERHEAD, Opener, SigningKey, VerifyingKey, raw, text
from dovetail_protocol.tokens import AUTHENTICATOR

VERSION = 1
MAGIC = b"DVTL"
_HEAD = len(MAGIC) + 1 + 32 + 4
_ID, _KEY, _SIGNATURE = 16, 32, 64
_OUTER = _ID + _KEY + _SIGNATURE
_PLAIN = 1 + 2  # version, public group

Kind = Literal["malformed", "version", "campaign", "round", "seal", "signature", "content"]


class Rejected(DovetailError):
    """A message that is not a report: `kind` says which check failed, and nothing else about it is kept."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind


@dataclass(frozen=True)
class Head:
    """Public head of a message."""

    digest: bytes
    round: int


@dataclass(frozen=True)
class Envelope:
    """Part that the shuffler reads: sender, round, and a report, or several entries, that it cannot read.

    place : the sender's class, or the question that the device drew, as its number; 0 where there are none.
    """

    report_id: bytes = field(repr=False)
    device: VerifyingKey = field(repr=False)
    round: int
    inner: bytes = field(repr=False)
    place: int = field(default=0, repr=False)


def class_bytes(campaign: Campaign) -> int:
    """Length of what says the sender's class or question, before what is sealed to the analyzer."""
    return 1 if campaign.kinds else 0


def token_bytes(campaign: Campaign) -> int:
    """Length of the token before all of that."""
    return AUTHENTICATOR if campaign.tokens else 0


def wire_bytes(campaign: Campaign) -> int:
    """Length of every message of this campaign."""
    inner = token_bytes(campaign) + class_bytes(campaign) + campaign.entries * inner_bytes(campaign)
    return _HEAD + OVERHEAD[campaign.shuffler.suite] + _OUTER + inner


def planned_bytes(report_bytes: int, *, entries: int = 1) -> int:
    """Length of every message of a campaign of suite x25519 that is planned, by the bytes of a report."""
    seal = OVERHEAD["x25519"]
    return _HEAD + seal + _OUTER + entries * (seal + _PLAIN + report_bytes)


def inner_bytes(campaign: Campaign) -> int:
    """Length of every entry sealed to the analyzer."""
    return OVERHEAD[campaign.analyzer.suite] + plain_bytes(campaign)


def plain_bytes(campaign: Campaign) -> int:
    """Length of every entry as the analyzer opens it."""
    return _PLAIN + campaign.mechanism.report_bytes


def plain(campaign: Campaign, report: bytes, group: str | None = None) -> bytes:
    """The inner plaintext of an encoded report; `group` is one of `campaign.groups` exactly if there are any."""
    if (group is None) == bool(campaign.groups) or (group is not None and group not in campaign.groups):
        wanted = f"one of {', '.join(campaign.groups)}" if campaign.groups else "absent, as there are no groups"
        raise Rejected("content", f"the public group must be {wanted}.")
    place = 0 if group is None else campaign.groups.index(group)
    return bytes([VERSION]) + place.to_bytes(2, "big") + report


def draw(campaign: Campaign, answer: Any, words: Words, group: str | None = None) -> bytes:
    """The inner plaintexts of one message: each randomized answer, and where people send dummies one entry more.

    Where a question is drawn that dummies hide, a byte before them says which.
    """
    mechanism, sent = campaign.mechanism, campaign.sent
    answers = [answer] if campaign.asked is None else campaign.asked.answers(answer, words)
    if sent is None or not isinstance(mechanism, Unrandomized):
        drawn = [mechanism.randomize(each, words) for each in answers]
    else:
        drawn = sent.of(mechanism).filled(answers, words)
    entries = b"".join(plain(campaign, mechanism.encode(each), group) for each in drawn)
    asked: Any = campaign.asked
    return bytes([asked.place(answers[0])] if campaign.draws else []) + entries


def seal(
    campaign: Campaign,
    round: int,
    plaintext: bytes,
    device: SigningKey,
    report_id: bytes | None = None,
    *,
    place: int | None = None,
    token: bytes = b"",
) -> bytes:
    """The message of inner plaintexts (see `draw`): each sealed to the analyzer, signed, sealed to the shuffler.

    place : of the class that the plaintext was drawn for, exactly if the campaign has classes.
    token : of the round, exactly if the campaign has tokens; `device` is then its one-time key.
    """
    size, first = campaign.entries * plain_bytes(campaign), 1 if campaign.draws else 0
    if len(plaintext) != first + size:
        raise Rejected("malformed", f"a report of {campaign.id} has {first + size} bytes.")
    if first:
        place, plaintext = plaintext[0], plaintext[1:]
    _check_round(campaign, round)
    report_id = secrets.token_bytes(_ID) if report_id is None else report_id
    if len(report_id) != _ID:
        raise Rejected("malformed", f"a report id has {_ID} bytes.")
    if (place is None) == bool(campaign.kinds) or not 0 <= (place or 0) < max(1, campaign.kinds):
        what = "questions" if campaign.draws else "classes"
        raise Rejected("content", f"a report of {campaign.id} states one of its {campaign.kinds} {what}.")
    if len(token) != token_bytes(campaign):
        raise Rejected("malformed", f"a report of {campaign.id} has a token of {token_bytes(campaign)} bytes.")
    inner = b"".join(seal_inner(campaign, round, entry) for entry in split(plaintext, campaign.entries))
    inner = token + (b"" if place is None else bytes([place])) + inner
    signature = device.sign(_signed(campaign, round, report_id, device.verifying_key(), inner))
    outer = report_id + device.verifying_key().public + signature + inner
    head = MAGIC + bytes([VERSION]) + campaign.digest + round.to_bytes(4, "big")
    return head + campaign.shuffler.seal(outer, outer_info(campaign, round))


def split(together: bytes, entries: int) -> list[bytes]:
    """So many parts of one length, of what holds all entries of a message."""
    size = len(together) // entries
    return [together[start : start + size] for start in range(0, entries * size, size)]


def seal_inner(campaign: Campaign, round: int, plaintext: bytes) -> bytes:
    """Seal what only the analyzer opens: the report of a device, or a dummy, which looks like one."""
    return campaign.analyzer.seal(plaintext, inner_info(campaign, round))


def read_head(message: bytes) -> Head:
    """Campaign digest and round of a message, before any cryptography."""
    if len(message) < _HEAD or message[:4] != MAGIC:
        raise Rejected("malformed", "this is not a report: it does not begin as one.")
    if message[4] != VERSION:
        raise Rejected("version", f"reports of version {message[4]} are not understood, only {VERSION}.")
    return Head(message[5:37], int.from_bytes(message[37:41], "big"))


def open_envelope(
    campaign: Campaign, message: bytes, opener: Opener, meet: Callable[[VerifyingKey], object] = id
) -> Envelope:
    """The outer envelope, checked: length, campaign, seal, signature and token; `opener` is the shuffler's.

    meet : gets the key that the report names before its signature is verified; what it raises refuses the report.
    """
    head = read_head(message)
    if head.digest != campaign.digest:
        raise Rejected("campaign", f"the report was made for another campaign, or another version of {campaign.id}.")
    if len(message) != wire_bytes(campaign):
        raise Rejected("malformed", f"a message of {campaign.id} has {wire_bytes(campaign)} bytes.")
    _check_round(campaign, head.round)
    outer = opener.open(message[_HEAD:], outer_info(campaign, head.round))
    if outer is None:
        raise Rejected("seal", "the report is not sealed to this shuffler, or has been changed on the way.")
    device, inner = VerifyingKey(outer[_ID : _ID + _KEY]), outer[_OUTER:]
    signature = outer[_ID + _KEY : _OUTER]
    meet(device)
    if not device.verifies(signature, _signed(campaign, head.round, outer[:_ID], device, inner)):
        raise Rejected("signature", "the report is not signed by the device that it names.")
    token, inner = inner[: token_bytes(campaign)], inner[token_bytes(campaign) :]
    if campaign.tokens and not campaign.tokens.verifies(token, campaign.id, head.round, device):
        raise Rejected("signature", "the issuer has not signed a token of the report's key for this round.")
    place = inner[0] if campaign.kinds else 0
    if place >= max(1, campaign.kinds):
        raise Rejected(
            "content", f"the report names no {'question' if campaign.draws else 'class'} of {campaign.id}."
        )
    return Envelope(outer[:_ID], device, head.round, inner[class_bytes(campaign) :], place)


def inner_info(campaign: Campaign, round: int) -> bytes:
    """`info` of the seal to the analyzer; round 0 where rounds may share a batch."""
    return _info(b"dovetail report", campaign, 0 if campaign.rounds_mix else round)


def outer_info(campaign: Campaign, round: int) -> bytes:
    """`info` of the seal to the shuffler."""
    return _info(b"dovetail envelope", campaign, round)


def _check_round(campaign: Campaign, round: int) -> None:
    if not 1 <= round <= campaign.schedule.count:
        raise Rejected("round", f"{campaign.id} has the rounds 1 to {campaign.schedule.count}.")


def _signed(campaign: Campaign, round: int, report_id: bytes, device: VerifyingKey, inner: bytes) -> bytes:
    return _info(b"dovetail device", campaign, round) + report_id + device.public + inner


def _info(purpose: bytes, campaign: Campaign, round: int) -> bytes:
    return purpose + bytes([0, VERSION]) + campaign.digest + round.to_bytes(4, "big")


# The answer: what the shuffler says of one message, whoever passes it on.
#
# ::
#
#     answer = "DVTA" | version 1 | seconds to wait 4 | signature 64 | kind (ASCII)
#
# Over MQTT it is a message of its own, over HTTP its base64url stands in the header `Dovetail-Answer`. The shuffler
# signs it together with the digest of the message, so that no broker, proxy or portal can say in its name that a
# report is accepted, or refused for good, and no answer speaks of another message. It names neither device nor
# report: whoever passes on the message can compute that digest. A shuffler cannot sign for a version of the campaign
# that it does not know; "campaign" is therefore read without a signature, and is no more than a reason to look for a
# newer one.


ANSWER_MAGIC = b"DVTA"
UNSIGNED = "campaign"
HEADER = "Dovetail-Answer"
_ANSWER_HEAD, _WAIT, _ANSWER_SIGNATURE = len(ANSWER_MAGIC) + 1, 4, 64
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
    signature = bytes(_ANSWER_SIGNATURE) if key is None else key.sign(_signed_answer(wire, wait, kind))
    return ANSWER_MAGIC + bytes([VERSION]) + wait + signature + kind


def read_answer(data: bytes, wire: bytes, key: VerifyingKey | None) -> Answer | None:
    """The answer to this message; None for anything else, and for what the shuffler has not signed."""
    head, wait, rest = data[:_ANSWER_HEAD], data[_ANSWER_HEAD : _ANSWER_HEAD + _WAIT], data[_ANSWER_HEAD + _WAIT :]
    signature, kind = rest[:_ANSWER_SIGNATURE], rest[_ANSWER_SIGNATURE:]
    if head != ANSWER_MAGIC + bytes([VERSION]) or not 1 <= len(kind) <= _LONGEST or not kind.isascii():
        return None
    signed = key is not None and key.verifies(signature, _signed_answer(wire, wait, kind))
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


def _signed_answer(wire: bytes, wait: bytes, kind: bytes) -> bytes:
    return b"dovetail answer" + bytes([0, VERSION]) + sha256(wire).digest() + wait + kind


# The three requests that devices make, as a relay passes them on: sealed, and all of one length.
#
# A report, the campaign file, the round: the first is idempotent by its report id, the others change nothing. So a
# request that a relay repeats has no effect, and no store of replays is kept; a route with another effect must not
# join this list.


REPORTS, CAMPAIGNS = "/v1/reports", "/v1/campaigns"
ANSWER, PAGE = 512, 4096  # bytes of every answer; of a longer one, a campaign file, its length is a multiple of PAGE
KEPT = ("content-type", "dovetail-answer", "retry-after")  # headers of an answer that a device reads
_AUTHORITY = "shuffler"  # of every request: where it goes is the gateway's business


def oblivious_request(method: str, path: str, body: bytes | None = None) -> BinaryRequest:
    """A request of a device, with nothing in it that tells devices apart."""
    fields = () if body is None else (("content-type", "application/octet-stream"),)
    return BinaryRequest(method, "https", _AUTHORITY, path, fields, body or b"")


def campaign_path(id: str) -> str:
    """Path of the campaign file; with /round that of the round that runs."""
    return f"{CAMPAIGNS}/{quote(id, safe='')}"


def longest_request(campaign: Campaign) -> int:
    """Length of the longest request of a device of this campaign, bytes."""
    report = oblivious_request("POST", REPORTS, bytes(wire_bytes(campaign)))
    round = oblivious_request("GET", f"{campaign_path(campaign.id)}/round")
    return max(len(report.encode()), len(round.encode()))


def require_room(campaign: Campaign) -> None:
    """Refuse a `pad` that some request of this campaign is longer than."""
    route = campaign.ohttp
    if route is not None and route.pad < (longest := longest_request(campaign)):
        raise ConfigError(f"`ohttp.pad` = {route.pad} is below {longest}, the longest request of {campaign.id}.")


def answer_length(size: int) -> int:
    """Length that an answer of `size` bytes is padded to."""
    return ANSWER if size <= ANSWER else -(-size // PAGE) * PAGE
