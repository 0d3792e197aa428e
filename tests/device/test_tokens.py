"""Blind signatures and tokens: the RFCs' own bytes, a signer of whole numbers, and what is refused."""

from __future__ import annotations

import json
from hashlib import sha256
from math import gcd
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st
from tests.device.campaigns import campaign
from tests.device.issuer import key_of, secret_of, sign_blinded, with_tokens
from tests.device.test_campaign import MALLOWS

from dovetail_protocol.errors import ConfigError, DataError
from dovetail_protocol.keys import SigningKey, raw, text
from dovetail_protocol.messages import Rejected, longest_request, open_envelope, plain, seal, wire_bytes
from dovetail_protocol.tokens import (
    AUTHENTICATOR,
    SALT,
    BlindRsaKey,
    PendingToken,
    TokenKey,
    apply_for,
    encode_pss,
    read_application,
    read_entitlement,
    token_input,
    token_request,
    voucher,
)

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "tokens.json").read_text())
OF_9474 = VECTORS["rfc9474"]
NUMBERS = {name: int(digits, 16) for name, digits in OF_9474["key"].items()}
OF_9578 = [(held, vector) for held in VECTORS["rfc9578"] for vector in held["vectors"]]
DEVICE = SigningKey(bytes(range(32)))


def bytes_of(vector: dict[str, str], name: str) -> bytes:
    return bytes.fromhex(vector[name])


@pytest.mark.parametrize("vector", OF_9474["vectors"], ids=[each["variant"] for each in OF_9474["vectors"]])
def test_the_blind_signatures_of_rfc_9474_are_made_byte_for_byte(vector: dict[str, str]) -> None:
    key, message, salt = (
        BlindRsaKey(NUMBERS["n"], NUMBERS["e"]),
        bytes_of(vector, "prepared_msg"),
        bytes_of(vector, "salt"),
    )
    factor = pow(int(vector["inv"], 16), -1, key.modulus)
    assert encode_pss(message, key.modulus.bit_length() - 1, salt) == bytes_of(vector, "encoded_msg")
    assert key.blind(message, salt=salt, factor=factor) == bytes_of(vector, "blinded_msg")
    made = key.unblind(message, bytes_of(vector, "blind_sig"), factor=factor, salt_bytes=len(salt))
    assert made == bytes_of(vector, "sig")


def test_a_message_that_shares_a_factor_with_the_key_is_not_blinded() -> None:
    """RFC 9474, section 4.2, step 4: the factor would stand in the request and in the signature, and link them."""
    key, shared = BlindRsaKey((1 << 2047) + 1), []
    for salt in (bytes([place]) * SALT for place in range(20)):
        if gcd(int.from_bytes(encode_pss(b"message", 2047, salt)), key.modulus) == 1:
            assert len(key.blind(b"message", salt=salt, factor=2)) == key.size
            continue
        shared.append(salt)
        with pytest.raises(DataError, match="cannot hide"):
            key.blind(b"message", salt=salt, factor=2)
    assert 0 < len(shared) < 20, "3 divides the modulus"


@pytest.mark.parametrize("factor", [2, 3, 65521])
def test_a_key_with_a_small_factor_is_no_key_of_an_issuer(factor: int) -> None:
    """An owner who makes up a modulus of small primes would link requests to reports by what divides both."""
    key = TokenKey((factor * ((1 << (2048 - factor.bit_length())) + 1)).to_bytes(256))
    assert key.modulus[0] >> 7 and key.rsa.modulus % 2 == factor % 2
    with pytest.raises(ConfigError, match="must be an issuer's key"):
        TokenKey.parse("key", str(key))


@pytest.mark.parametrize(("held", "vector"), OF_9578)
def test_the_tokens_of_rfc_9578_are_made_byte_for_byte(held: dict[str, Any], vector: dict[str, str]) -> None:
    """Five of the RFC, and five of another implementation with keys of their own."""
    key = TokenKey.parse("key", text(bytes_of(held, "pkS")))
    assert key.spki == bytes_of(held, "pkS") and str(key) == text(key.spki)
    digest = sha256(bytes_of(vector, "token_challenge")).digest()
    message, factor = token_input(bytes_of(vector, "nonce"), digest, key), int(vector["blind"], 16)
    assert token_request(key, key.rsa.blind(message, salt=bytes_of(vector, "salt"), factor=factor)) == bytes_of(
        vector, "token_request"
    )
    made = key.rsa.unblind(message, bytes_of(vector, "token_response"), factor=factor)
    assert made is not None and message + made == bytes_of(vector, "token")
    secret = load_pem_private_key(bytes_of(held, "skS"), None)
    assert isinstance(secret, RSAPrivateKey)
    assert sign_blinded(secret, bytes_of(vector, "token_request")[3:]) == bytes_of(vector, "token_response")


def test_a_token_is_made_for_one_device_key_one_round_and_one_campaign() -> None:
    asked, _ = with_tokens(rounds=2)
    rule = asked.tokens
    assert rule is not None
    pending = PendingToken.draw(rule, 1)
    signed = sign_blinded(secret_of(0), pending.request(rule, asked.id, 1)[3:])
    token, device = pending.finish(signed, rule, asked.id, 1), pending.secret.verifying_key()
    assert token is not None and len(token) == AUTHENTICATOR and rule.verifies(token, asked.id, 1, device)
    assert not rule.verifies(token, asked.id, 1, DEVICE.verifying_key()), "a stolen one"
    assert not rule.verifies(token, asked.id, 2, device) and not rule.verifies(token, "another", 1, device)


def test_what_a_key_of_ones_own_has_signed_makes_no_token() -> None:
    """Key consistency: an issuer that marks somebody with another key gives her nothing that she would show."""
    asked, _ = with_tokens(rounds=2)
    assert asked.tokens is not None
    pending = PendingToken.draw(asked.tokens, 1)
    marked = sign_blinded(secret_of(1), pending.request(asked.tokens, asked.id, 1)[3:])
    assert pending.finish(marked, asked.tokens, asked.id, 1) is None
    assert pending.finish(bytes(AUTHENTICATOR), asked.tokens, asked.id, 1) is None
    assert pending.finish(b"", asked.tokens, asked.id, 1) is None


def test_asking_twice_is_the_same_request_and_two_devices_share_no_byte_of_it() -> None:
    asked, _ = with_tokens(rounds=1)
    assert asked.tokens is not None
    one, other = (PendingToken.draw(asked.tokens, 1) for _ in range(2))
    assert one.request(asked.tokens, asked.id, 1) == one.request(asked.tokens, asked.id, 1)
    assert one.request(asked.tokens, asked.id, 1) != other.request(asked.tokens, asked.id, 1)
    assert "secret" not in repr(one.secret) and repr(one).count("b'") == 0


# Messages.


def test_a_report_bears_its_token_and_any_other_is_refused() -> None:
    asked, held = with_tokens(rounds=2)
    rule = asked.tokens
    assert rule is not None
    pending = PendingToken.draw(rule, 1)
    token = pending.finish(sign_blinded(secret_of(0), pending.request(rule, asked.id, 1)[3:]), rule, asked.id, 1)
    assert token is not None
    opener, said = held.shuffler.opener(), plain(asked, asked.mechanism.encode(2))
    wire = seal(asked, 1, said, pending.secret, token=token)
    without, _ = campaign({"rounds.count": 2})
    assert len(wire) == wire_bytes(asked) == wire_bytes(without) + AUTHENTICATOR
    assert longest_request(asked) - longest_request(without) in (AUTHENTICATOR, AUTHENTICATOR + 1)
    envelope = open_envelope(asked, wire, opener)
    assert envelope.device == pending.secret.verifying_key() and token not in envelope.inner
    wrong = bytes([token[0] ^ 1]) + token[1:]
    for what, round, device, shown in (
        ("changed", 1, pending.secret, wrong),
        ("stolen", 1, DEVICE, token),
        ("of another round", 2, pending.secret, token),
        ("empty", 1, pending.secret, bytes(AUTHENTICATOR)),
    ):
        with pytest.raises(Rejected) as refused:
            open_envelope(asked, seal(asked, round, said, device, token=shown), opener)
        assert refused.value.kind == "signature", what
    with pytest.raises(Rejected, match="a token of 256 bytes"):
        seal(asked, 1, said, DEVICE)


def test_a_change_of_keys_voids_no_token() -> None:
    old, _ = with_tokens(rounds=1)
    fresh, _ = with_tokens(rounds=1, more={"version": 2, "tokens.url": "https://elsewhere.example.org"})
    assert old.tokens == fresh.tokens and old.tokens is not None and fresh.tokens is not None
    other, _ = with_tokens(rounds=1, more={"tokens.issuer": "another.example.org"})
    assert other.tokens and other.tokens.bound(old.id, 1) != old.tokens.bound(old.id, 1)
    device = DEVICE.verifying_key()
    assert old.digest != fresh.digest and old.tokens.input(old.id, 1, device) == fresh.tokens.input(
        fresh.id, 1, device
    )


# Campaigns.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokens.keys": [key_of(0)]}, "one key for each round"),
        ({"tokens.keys": [key_of(0), key_of(0)]}, "names something twice"),
        ({"tokens.keys": [key_of(0), "AAAA"]}, "must be an issuer's key"),
        ({"tokens.url": "ftp://issuer.example.org"}, "`tokens.url` must be"),
        ({"tokens.url": "https://exämple.org"}, "`tokens.url` must be .* in plain ASCII"),
        ({"tokens.issuer": "ü"}, "printable ASCII"),
        ({"tokens.more": 1}, "more"),
        ({"promise.authentication": "roster"}, "go together"),
        ({"batch.small": "merge"}, "two strangers"),
        ({"batch.late": "next"}, "two strangers"),
        ({"shuffle": MALLOWS}, "order privacy needs a roster"),
    ],
)
def test_what_does_not_go_with_tokens_is_refused_in_one_line(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        with_tokens(rounds=2, more=changes)
    assert "\n" not in str(refused.value)


def test_authentication_by_token_without_an_issuer_is_refused() -> None:
    with pytest.raises(ConfigError, match="go together"):
        campaign({"promise.authentication": "token"})


@pytest.mark.parametrize("place", [4, 40, 300, 341, -1])
def test_a_key_of_another_form_is_no_key_of_an_issuer(place: int) -> None:
    """Other algorithm identifiers, exponents, lengths, and an even modulus."""
    spki = bytearray(raw(key_of(0)))
    spki[place] ^= 1 if place != 300 else 0
    if place == 300:
        del spki[300]
    with pytest.raises(ConfigError, match="must be an issuer's key"):
        TokenKey.parse("key", text(bytes(spki)))


# What is said to the issuer.

REQUEST = b"\0\2" + bytes(range(1, 256)) + bytes(2)
KEY = TokenKey(b"\xff" * 256)


def test_an_application_is_read_as_it_was_made() -> None:
    by_device = read_application(apply_for("meters", 3, REQUEST, DEVICE, key=KEY))
    assert (by_device.campaign, by_device.round, by_device.kind) == ("meters", 3, 2)
    assert by_device.holder == DEVICE.verifying_key().public and by_device.is_signed(KEY)
    assert by_device.request == REQUEST and by_device.blinded == REQUEST[3:]
    by_code = read_application(apply_for("meters", 3, REQUEST, b"c" * 16, key=KEY))
    assert (by_code.kind, by_code.holder, by_code.proof) == (1, b"c" * 16, b"") and not by_code.is_signed(KEY)
    account = voucher(b"secret", "meters", b"a" * 32)
    by_account = read_application(apply_for("meters", 3, REQUEST, account, key=KEY))
    assert (
        by_account.is_vouched(b"secret") and not by_account.is_vouched(b"another") and not by_account.is_signed(KEY)
    )
    elsewhere = read_application(apply_for("others", 3, REQUEST, account, key=KEY))
    assert not elsewhere.is_vouched(b"secret"), "a voucher is for one campaign"


def test_a_device_that_did_not_sign_this_application_is_not_believed() -> None:
    said = apply_for("meters", 3, REQUEST, DEVICE, key=KEY)
    for place in range(5, len(said)):
        changed = said[:place] + bytes([said[place] ^ 1]) + said[place + 1 :]
        try:
            assert not read_application(changed).is_signed(KEY), place
        except DataError:
            continue


def test_a_device_signs_for_one_key_and_not_for_all_that_end_like_it() -> None:
    """Else an owner whose key ends so would pass the request on to another issuer that knows the device."""
    alike = (TokenKey(b"\xfe" + number.to_bytes(255)) for number in range(100_000))
    other = next(key for key in alike if key.id[-1] == KEY.id[-1])
    said = read_application(apply_for("meters", 3, REQUEST, DEVICE, key=KEY))
    assert said.is_signed(KEY) and not said.is_signed(other)


@given(st.binary(max_size=500))
def test_bytes_of_strangers_are_refused_and_raise_nothing_else(body: bytes) -> None:
    for said in (body, b"DVTI\1" + body):
        with pytest.raises(DataError):
            read_application(said)


@pytest.mark.parametrize("wrong", ["", "AAAA", "!", text(b"c" * 17)])
def test_what_is_no_code_and_no_voucher_is_refused(wrong: str) -> None:
    with pytest.raises(DataError, match="neither a code"):
        read_entitlement(wrong)
    assert read_entitlement(text(b"c" * 16)) == b"c" * 16
