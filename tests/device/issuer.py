"""An issuer for tests: keys that are made once, and a signer in whole numbers, beside the product's OpenSSL."""

from __future__ import annotations

from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from tests.device.campaigns import Keys, campaign

from dovetail_protocol.campaign import Campaign
from dovetail_protocol.tokens import TokenKey


@cache
def secret_of(place: int) -> RSAPrivateKey:
    """The secret key of a round, from 0 on; the same in one run of the tests."""
    return generate_private_key(65537, 2048)


def public_of(secret: RSAPrivateKey) -> TokenKey:
    """The key as a campaign names it."""
    return TokenKey(secret.public_key().public_numbers().n.to_bytes(256))


def key_of(place: int) -> str:
    """The public key of a round, from 0 on."""
    return str(public_of(secret_of(place)))


def sign_blinded(secret: RSAPrivateKey, blinded: bytes) -> bytes:
    """The blind signature, by the definition."""
    numbers = secret.private_numbers()
    modulus = numbers.public_numbers.n
    return pow(int.from_bytes(blinded), numbers.d, modulus).to_bytes(len(blinded))


def with_tokens(*, rounds: int = 1, more: dict[str, Any] | None = None) -> tuple[Campaign, Keys]:
    """A campaign whose devices show tokens of these keys, and every secret of it but the issuer's."""
    changes: dict[str, Any] = {
        "rounds.count": rounds,
        "promise.authentication": "token",
        "tokens.issuer": "issuer.example.org",
        "tokens.url": "https://issuer.example.org",
        "tokens.keys": [key_of(place) for place in range(rounds)],
    }
    return campaign(changes | (more or {}))
