"""Published vectors of HPKE, our own message vectors, and another implementation of HPKE at either end."""

from __future__ import annotations

import json
from hashlib import sha256, shake_256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey, KEMKeyPair
from tests.device.campaigns import campaign

from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.keys import SUITES, OpeningKey, SigningKey
from dovetail_protocol.messages import inner_info, open_envelope, outer_info, plain, seal, split, wire_bytes

FOLDER = Path(__file__).parent / "vectors"
PUBLISHED = json.loads((FOLDER / "hpke.json").read_text())
OURS = json.loads((FOLDER / "messages.json").read_text())
PAIRS = json.loads((FOLDER / "pairs.json").read_text())
MESSAGES = [(entry, message) for entry in OURS for message in entry["messages"]]
PEER = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)
HEAD = 41


def opened_by_peer(secret: bytes, sealed: bytes, info: bytes, aad: bytes = b"") -> bytes:
    """What pyhpke reads from encapsulated key and ciphertext."""
    key = KEMKey.from_pyca_cryptography_key(X25519PrivateKey.from_private_bytes(secret))
    return PEER.create_recipient_context(sealed[:32], key, info).open(sealed[32:], aad)


def sealed_by_peer(public: bytes, plaintext: bytes, info: bytes) -> bytes:
    """What pyhpke makes of a plaintext: encapsulated key and ciphertext."""
    key = KEMKey.from_pyca_cryptography_key(X25519PublicKey.from_public_bytes(public))
    enc, context = PEER.create_sender_context(key, info)
    return enc + context.seal(plaintext)


def unhex(entry: dict[str, Any], *names: str) -> list[bytes]:
    return [bytes.fromhex(entry[name]) for name in names]


# --- published -----------------------------------------------------------------------------------------------------

RFC = PUBLISHED[0]


def test_the_peer_reads_and_makes_the_vector_of_rfc_9180() -> None:
    sk, pk, ske, enc, ct, pt, info, aad = unhex(RFC, *["skRm", "pkRm", "skEm", "enc", "ct", "pt", "info", "aad"])
    assert opened_by_peer(sk, enc + ct, info, aad) == pt
    public = KEMKey.from_pyca_cryptography_key(X25519PublicKey.from_public_bytes(pk))
    ephemeral = X25519PrivateKey.from_private_bytes(ske)
    pair = KEMKeyPair(
        KEMKey.from_pyca_cryptography_key(ephemeral), KEMKey.from_pyca_cryptography_key(ephemeral.public_key())
    )
    made, context = PEER.create_sender_context(public, info, eks=pair)
    assert made == enc and context.seal(pt, aad) == ct


@pytest.mark.parametrize("entry", PUBLISHED, ids=[entry["suite"] for entry in PUBLISHED])
def test_our_suites_read_the_published_vectors(entry: dict[str, Any]) -> None:
    # the vectors have associated data, which `cryptography` takes only through the function of its own tests
    secret, enc, ct, pt, info, aad = unhex(entry, *["skRm", "enc", "ct", "pt", "info", "aad"])
    if entry["suite"] == "mlkem768-x25519":
        secret = shake_256(secret).digest(96)  # X-Wing: expandDecapsulationKey
    opener = OpeningKey(entry["suite"], secret).opener()
    assert openssl.hpke._decrypt_with_aad(SUITES[entry["suite"]], enc + ct, opener.key, info, aad) == pt
    assert opener.open(enc + ct, info) is None  # without the associated data


def test_our_key_of_the_rfc_vector_has_the_public_half_that_it_says() -> None:
    secret, public = unhex(RFC, "skRm", "pkRm")
    assert OpeningKey("x25519", secret).sealing_key().public == public


# --- interoperation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 4, 148, 5000])
def test_either_implementation_opens_what_the_other_seals_with_our_info(length: int) -> None:
    made, held = campaign()
    plaintext = bytes(range(256)) * 20
    for key, info in ((held.analyzer, inner_info(made, 3)), (held.shuffler, outer_info(made, 3))):
        sealed = key.sealing_key().seal(plaintext[:length], info)
        assert opened_by_peer(key.secret, sealed, info) == plaintext[:length]
        sealed = sealed_by_peer(key.sealing_key().public, plaintext[:length], info)
        assert key.opener().open(sealed, info) == plaintext[:length]
        assert key.opener().open(sealed, info + b"\0") is None


def test_a_device_that_uses_the_other_implementation_is_understood() -> None:
    made, held = campaign()
    inner = sealed_by_peer(made.analyzer.public, plain(made, b"\2"), inner_info(made, 5))
    ours = seal(made, 5, plain(made, b"\2"), held.device)
    report_id, name = bytes(16), held.device.verifying_key().public
    binding = b"dovetail device\0\1" + made.digest + (5).to_bytes(4, "big")
    outer = report_id + name + held.device.sign(binding + report_id + name + inner) + inner
    message = ours[:HEAD] + sealed_by_peer(made.shuffler.public, outer, outer_info(made, 5))
    envelope = open_envelope(made, message, held.shuffler.opener())
    assert held.analyzer.opener().open(envelope.inner, inner_info(made, 5)) == plain(made, b"\2")


# --- our own -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", OURS, ids=[entry["secrets"]["suite"] for entry in OURS])
def test_the_campaigns_of_the_vectors_are_still_read_and_signed_alike(entry: dict[str, Any]) -> None:
    text = entry["campaign"].encode()
    found = Campaign.parse(text)
    body = text[: text.rindex(b"# signed: ")]
    assert found.digest == sha256(body).digest() == bytes.fromhex(entry["digest"])
    assert sign(body, SigningKey(bytes.fromhex(entry["secrets"]["owner"]))) == text


@pytest.mark.parametrize(("entry", "message"), MESSAGES)
def test_the_message_vectors_open_as_they_say(entry: dict[str, Any], message: dict[str, Any]) -> None:
    found, secrets = Campaign.parse(entry["campaign"].encode()), entry["secrets"]
    wire, report_id, device, inner, plaintext, report = unhex(
        message, *["wire", "report_id", "device", "inner", "inner_plaintext", "report"]
    )
    assert len(wire) == wire_bytes(found)
    envelope = open_envelope(found, wire, OpeningKey(secrets["suite"], bytes.fromhex(secrets["shuffler"])).opener())
    assert (envelope.round, envelope.report_id, envelope.inner) == (message["round"], report_id, inner)
    assert envelope.device.public == device
    assert envelope.device == SigningKey(bytes.fromhex(secrets["device"])).verifying_key()
    info = inner_info(found, message["round"])
    assert info.hex() == message["inner_info"] and outer_info(found, message["round"]).hex() == message["outer_info"]
    opener = OpeningKey(secrets["suite"], bytes.fromhex(secrets["analyzer"])).opener()
    assert opener.open(inner, info) == plaintext and plaintext.endswith(report)
    assert found.mechanism.encode(found.mechanism.decode(report)) == report


@pytest.mark.parametrize(("entry", "message"), [pair for pair in MESSAGES if pair[0]["secrets"]["suite"] == "x25519"])
def test_the_other_implementation_opens_the_message_vectors(entry: dict[str, Any], message: dict[str, Any]) -> None:
    wire, inner, plaintext, inner_bound, outer_bound = unhex(
        message, *["wire", "inner", "inner_plaintext", "inner_info", "outer_info"]
    )
    outer = opened_by_peer(bytes.fromhex(entry["secrets"]["shuffler"]), wire[HEAD:], outer_bound)
    assert outer[112:] == inner
    assert opened_by_peer(bytes.fromhex(entry["secrets"]["analyzer"]), inner, inner_bound) == plaintext


@pytest.mark.parametrize("message", PAIRS["messages"], ids=["dummy", "blank"])
def test_a_message_of_two_entries_opens_as_its_vector_says(message: dict[str, Any]) -> None:
    found, secrets = Campaign.parse(PAIRS["campaign"].encode()), PAIRS["secrets"]
    wire, inner, plaintext, info = unhex(message, "wire", "inner", "inner_plaintext", "inner_info")
    opener = OpeningKey("x25519", bytes.fromhex(secrets["shuffler"])).opener()
    assert len(wire) == wire_bytes(found) and open_envelope(found, wire, opener).inner == inner
    secret, entries = bytes.fromhex(secrets["analyzer"]), split(inner, found.entries)
    opened = [opened_by_peer(secret, entry, info) or b"" for entry in entries]
    assert b"".join(opened) == plaintext and info == inner_info(found, message["round"])
    assert [found.mechanism.decode(entry[3:]) for entry in opened] == message["symbols"]


def test_the_layout_is_the_documented_one() -> None:
    entry, message = MESSAGES[0]
    wire, info = unhex(message, "wire", "outer_info")
    digest, round = bytes.fromhex(entry["digest"]), (1).to_bytes(4, "big")
    assert wire[:HEAD] == b"DVTL" + b"\1" + digest + round
    assert info == b"dovetail envelope\0\1" + digest + round
    assert bytes.fromhex(message["inner_info"]) == b"dovetail report\0\1" + digest + round
    assert bytes.fromhex(MESSAGES[3][1]["inner_info"]).endswith(bytes(4))  # rounds of one batch look alike
