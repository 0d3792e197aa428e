"""Anonymous tokens (Privacy Pass, RFC 9576 to 9578, type 2): entitled to one report of one round, and not who.

::

    one-time key   Ed25519, of one device for one campaign and round
    nonce          SHA-256(one-time public key)
    context        SHA-256("dovetail token" 0 1 | id length 1 | campaign id | round 4)
    challenge      0x0002 | issuer's name, length 2 | 32 | context | 0 0
    token input    0x0002 | nonce | SHA-256(challenge) | SHA-256(the round's key)      98 bytes
    authenticator  the issuer's blind signature of it                                  256 bytes

The nonce makes a token the certificate of a one-time device key: whoever copies it cannot use it, and the shuffler,
which knows all of the input, gets the authenticator alone. The context names campaign and round, and not the digest
of the file: a change of the shuffler's keys voids no token.

One key for each round of each campaign, all of them in the signed campaign: with one for several rounds a person
could take a token for each and spend them all in one, and with one of her own she could be told from others.
Experimental.

What a device sends to the issuer, and gets back::

    request   "DVTI" | 1 | id length 1 | campaign id | round 4 | kind 1 | proof | TokenRequest 259
              kind 1: invitation code 16;  kind 2: device key 32 | signature 64;  kind 3: account 32 | voucher 32
              signature: of "dovetail issue" 0 1 | the key's id 32 | all of the request but itself
              TokenRequest: 0x0002 | last byte of the key's id | blinded 256
    answer    blind signature 256
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256, sha384
from math import gcd, prod
from typing import Literal, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA384

from dovetail_protocol.endpoint import signed_place
from dovetail_protocol.errors import ConfigError, DataError
from dovetail_protocol.keys import SigningKey, VerifyingKey, raw_or_nothing, text
from dovetail_protocol.toml_section import Section

# Blind RSA signatures (RFC 9474, RSABSSA-SHA384-PSS, deterministic): signed without being seen. Experimental.
#
# ::
#
#     m = EMSA-PSS(message, salt)    blinded = m r^e    signed = blinded^d = m^d r    signature = signed / r
#
# With r uniform, `blinded` is uniform whatever m is, so that the signer learns nothing of message and signature,
# and cannot tell later which of its signatures one is. Here are the client's two steps; the signer's, with the
# secret key, is OpenSSL's and lives with the issuer. Verifying is `cryptography`'s. Python's whole numbers are not
# constant-time.
#
# Where m and the modulus share a prime q, it divides `blinded` and the signature, whatever r is. A modulus that
# somebody made up of small primes would mark most people so: none is used, and no such m is blinded. Whether a
# modulus is prime is not tested, at an exponentiation a key: under a prime one everybody can sign, as where the
# signer gives its secret key away, but nobody is told from others.


SALT = 48  # bytes
_HASH = 48
_SMALL = 1 << 16


@dataclass(frozen=True)
class BlindRsaKey:
    """Public key of a blind signer: modulus and exponent."""

    modulus: int
    exponent: int = 65537

    @property
    def size(self) -> int:
        """Length of the modulus, and of all that is signed, bytes."""
        return (self.modulus.bit_length() + 7) // 8

    @property
    def has_small_factor(self) -> bool:
        """True if a prime below 2^16 divides the modulus, as it does in no key of two large primes."""
        return gcd(self.modulus, _small_primes()) > 1

    def draw_factor(self) -> int:
        """A blinding factor: uniform among the numbers from 1 to the modulus that can be divided by."""
        while True:
            factor = 1 + secrets.randbelow(self.modulus - 1)
            if gcd(factor, self.modulus) == 1:
                return factor

    def blind(self, message: bytes, *, salt: bytes, factor: int) -> bytes:
        """The blinded message that the signer gets: the encoded one times factor^e (RFC 9474, section 4.2).

        Raises
        ------
        DataError
            For an encoded message that shares a factor with the modulus, which the product would show.
        """
        encoded = int.from_bytes(encode_pss(message, self.modulus.bit_length() - 1, salt))
        if gcd(encoded, self.modulus) != 1:
            raise DataError("this key cannot hide the message.")
        return self._bytes(encoded * pow(factor, self.exponent, self.modulus))

    def unblind(self, message: bytes, signed: bytes, *, factor: int, salt_bytes: int = SALT) -> bytes | None:
        """The signature of the message; None if what the signer gave back makes none (RFC 9474, section 4.4)."""
        signature = self._bytes(int.from_bytes(signed) * pow(factor, -1, self.modulus))
        good = len(signed) == self.size and self.verifies(signature, message, salt_bytes=salt_bytes)
        return signature if good else None

    def verifies(self, signature: bytes, message: bytes, *, salt_bytes: int = SALT) -> bool:
        """True if the signature is one of this key (RSASSA-PSS, SHA-384)."""
        try:
            self._key.verify(signature, message, PSS(MGF1(SHA384()), salt_bytes), SHA384())
        except (InvalidSignature, ValueError):
            return False
        return True

    @cached_property
    def _key(self) -> RSAPublicKey:
        return RSAPublicNumbers(self.exponent, self.modulus).public_key()

    def _bytes(self, number: int) -> bytes:
        return (number % self.modulus).to_bytes(self.size)


@cache
def _small_primes() -> int:
    """Product of the primes below 2^16."""
    primes = {2, *range(3, _SMALL, 2)}
    for number in range(3, 1 << 8, 2):
        primes.difference_update(range(number * number, _SMALL, 2 * number))
    return prod(primes)


def encode_pss(message: bytes, bits: int, salt: bytes) -> bytes:
    """EMSA-PSS of so many bits with SHA-384 and MGF1 (RFC 8017, section 9.1.1)."""
    size = (bits + 7) // 8
    digest = sha384(bytes(8) + sha384(message).digest() + salt).digest()
    block = bytes(size - len(salt) - _HASH - 2) + b"\1" + salt
    masked = int.from_bytes(block) ^ int.from_bytes(_mask(digest, len(block)))
    masked &= (1 << (8 * len(block) - (8 * size - bits))) - 1
    return masked.to_bytes(len(block)) + digest + b"\xbc"


def _mask(seed: bytes, length: int) -> bytes:
    """MGF1 with SHA-384 (RFC 8017, section B.2.1)."""
    blocks = (sha384(seed + counter.to_bytes(4)).digest() for counter in range(-(-length // _HASH)))
    return b"".join(blocks)[:length]


MOST_ROUNDS = 1000  # with a key each in the campaign file
AUTHENTICATOR = 256
PATH = "/v1/tokens"
_TYPE = b"\0\2"
_MODULUS = 256
_SPKI = bytes.fromhex(  # RSASSA-PSS with SHA-384, MGF1 and a salt of 48 bytes, as RFC 9578, section 8.2.2, has it
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b0609608648016503040202a2030201300382010f003082010a0282010100"
)
_EXPONENT = bytes.fromhex("0203010001")


@dataclass(frozen=True)
class TokenKey:
    """Public key of an issuer for one round: RSA of 2,048 bits, written as the base64url of its SPKI."""

    modulus: bytes

    @classmethod
    def parse(cls, name: str, encoded: object) -> Self:
        """From the base64url of an SPKI; `name` says in errors which key it is."""
        data = raw_or_nothing(encoded)
        found = cls(data[len(_SPKI) : len(_SPKI) + _MODULUS])
        if (
            data != found.spki
            or len(found.modulus) != _MODULUS
            or not found.modulus[0] >> 7
            or found.rsa.has_small_factor
        ):
            raise ConfigError(f"`{name}` must be an issuer's key, as `dovetail collect token-keys` prints it.")
        return found

    @property
    def spki(self) -> bytes:
        """The key as RFC 9578 publishes it, 342 bytes."""
        return _SPKI + self.modulus + _EXPONENT

    @cached_property
    def id(self) -> bytes:
        """Its name: SHA-256 of the SPKI."""
        return sha256(self.spki).digest()

    @cached_property
    def rsa(self) -> BlindRsaKey:
        """The key in numbers."""
        return BlindRsaKey(int.from_bytes(self.modulus))

    def __str__(self) -> str:
        return text(self.spki)


@dataclass(frozen=True)
class TokenRule:
    """`[tokens]` of a campaign: who issues, where, and with which key for each round.

    `url` and `signing` may change with a version, and devices that follow it ask there. A token is bound to the name,
    and to the round's key.
    """

    issuer: str
    keys: tuple[TokenKey, ...]
    url: str = field(compare=False, repr=False)
    signing: VerifyingKey | None = field(default=None, compare=False)  # of how many tokens were issued

    def key(self, round: int) -> TokenKey:
        """The key of a round."""
        return self.keys[round - 1]

    def input(self, campaign: str, round: int, device: VerifyingKey) -> bytes:
        """The bytes that are signed for a round and a one-time device key."""
        nonce, challenge = sha256(device.public).digest(), sha256(self.challenge(campaign, round)).digest()
        return token_input(nonce, challenge, self.key(round))

    def challenge(self, campaign: str, round: int) -> bytes:
        """The TokenChallenge of a round (RFC 9577, section 2.1): without origin, as the context binds more."""
        name = self.issuer.encode()
        context = sha256(b"dovetail token\0\1" + _place(campaign, round)).digest()
        return _TYPE + len(name).to_bytes(2) + name + bytes([len(context)]) + context + bytes(2)

    def bound(self, campaign: str, round: int) -> bytes:
        """Digest of the challenge and the key of a round: two requests with one nonce are for the same."""
        return sha256(self.challenge(campaign, round) + self.key(round).id).digest()

    def verifies(self, authenticator: bytes, campaign: str, round: int, device: VerifyingKey) -> bool:
        """True if the issuer has signed this one-time device key for this round."""
        return self.key(round).rsa.verifies(authenticator, self.input(campaign, round, device))


def read_tokens(section: Section, rounds: int) -> TokenRule | None:
    """`[tokens]` of a campaign of so many rounds; None where there is none."""
    if not section:
        return None
    rule = TokenRule(
        issuer=section.text("issuer"),
        keys=tuple(TokenKey.parse("tokens.keys", key) for key in section.texts("keys")),
        url=signed_place("tokens.url", section.text("url"), ("http", "https")),
        signing=VerifyingKey.parse("tokens.signing", named) if (named := section.text("signing", "")) else None,
    )
    section.finish()
    if not (0 < len(rule.issuer) <= 255 and rule.issuer.isascii() and rule.issuer.isprintable()):
        raise ConfigError("`tokens.issuer` must be a name of 1 to 255 printable ASCII characters.")
    if rounds > MOST_ROUNDS or len(rule.keys) != rounds:
        raise ConfigError(
            f"`tokens.keys` must be one key for each round, at most {MOST_ROUNDS:,}; there are {len(rule.keys):,} "
            f"keys and {rounds:,} rounds."
        )
    return rule


def token_input(nonce: bytes, challenge: bytes, key: TokenKey) -> bytes:
    """The signed part of a token (RFC 9578, section 6.3), of the digest of its challenge."""
    return _TYPE + nonce + challenge + key.id


def token_request(key: TokenKey, blinded: bytes) -> bytes:
    """The TokenRequest (RFC 9578, section 6.1), 259 bytes."""
    return _TYPE + key.id[-1:] + blinded


@dataclass(frozen=True)
class PendingToken:
    """The record that a device keeps until it has a token: one asks with the same bytes again."""

    secret: SigningKey
    salt: bytes = field(repr=False)
    factor: bytes = field(repr=False)

    @classmethod
    def draw(cls, rule: TokenRule, round: int) -> Self:
        """A one-time device key and the chance that hides it."""
        factor = rule.key(round).rsa.draw_factor().to_bytes(_MODULUS)
        return cls(SigningKey.generate(), secrets.token_bytes(SALT), factor)

    def request(self, rule: TokenRule, campaign: str, round: int) -> bytes:
        """The TokenRequest for a round; DataError if the round's key cannot hide it."""
        message, key = rule.input(campaign, round, self.secret.verifying_key()), rule.key(round)
        return token_request(key, key.rsa.blind(message, salt=self.salt, factor=int.from_bytes(self.factor)))

    def finish(self, signed: bytes, rule: TokenRule, campaign: str, round: int) -> bytes | None:
        """The authenticator; None if the issuer signed something else, or with another key than the campaign's."""
        message = rule.input(campaign, round, self.secret.verifying_key())
        return rule.key(round).rsa.unblind(message, signed, factor=int.from_bytes(self.factor))


# What is said to the issuer.


Kind = Literal[1, 2, 3]
INVITATION, DEVICE, ACCOUNT = 1, 2, 3
CODE, VOUCHER = 16, 32 + 32  # bytes of an invitation's code; of an account and its site's word for it
_MAGIC = b"DVTI\1"
_PROOF = {INVITATION: CODE, DEVICE: 32 + 64, ACCOUNT: VOUCHER}
_REQUEST = 2 + 1 + _MODULUS
LONGEST = len(_MAGIC) + 1 + 64 + 4 + 1 + max(_PROOF.values()) + _REQUEST  # bytes of a request


@dataclass(frozen=True)
class Application:
    """A request for one token, read but not judged: `holder` is the code, the device key or the account."""

    campaign: str
    round: int
    kind: int
    holder: bytes = field(repr=False)
    proof: bytes = field(repr=False)  # what shows that the holder asks; empty for a code, which is its own
    request: bytes = field(repr=False)
    said: bytes = field(repr=False)

    @property
    def key_byte(self) -> int:
        """Last byte of the name of the key that is asked for."""
        return self.request[2]

    @property
    def blinded(self) -> bytes:
        """The bytes that the issuer signs."""
        return self.request[3:]

    def is_signed(self, key: TokenKey) -> bool:
        """True if a device has signed it for this key, so that no other issuer can be asked with it."""
        return self.kind == DEVICE and VerifyingKey(self.holder).verifies(self.proof, _statement(key, self.said))

    def is_vouched(self, secret: bytes) -> bool:
        """True if the site with this secret has given the account its voucher for the campaign."""
        return self.kind == ACCOUNT and hmac.compare_digest(
            self.proof, voucher(secret, self.campaign, self.holder)[32:]
        )


def apply_for(campaign: str, round: int, request: bytes, by: SigningKey | bytes, *, key: TokenKey) -> bytes:
    """A request for a token of this key, by a device of the roster, with a code, or with an account's voucher."""
    head = _MAGIC + _place(campaign, round)
    if isinstance(by, bytes):
        kind = {CODE: INVITATION, VOUCHER: ACCOUNT}[len(by)]
        return head + bytes([kind]) + by + request
    public = by.verifying_key().public
    head += bytes([DEVICE]) + public
    return head + by.sign(_statement(key, head + request)) + request


def read_application(body: bytes) -> Application:
    """A request for a token; DataError for anything else."""
    if body[: len(_MAGIC)] != _MAGIC or len(body) <= len(_MAGIC):
        raise DataError("this is no request for a token.")
    length = body[len(_MAGIC)]
    named = len(_MAGIC) + 1 + length
    kind, start = body[named + 4] if len(body) > named + 4 else 0, named + 5
    if kind not in _PROOF or len(body) != start + _PROOF[kind] + _REQUEST:
        raise DataError("a request for a token names a campaign, a round and who asks, and has one length.")
    split = start + (CODE if kind == INVITATION else 32)
    end = start + _PROOF[kind]
    request = body[end:]
    if request[:2] != _TYPE:
        raise DataError("tokens of type 2 are issued here.")
    try:
        campaign = body[len(_MAGIC) + 1 : named].decode("ascii")
    except UnicodeDecodeError:
        raise DataError("a campaign is named in ASCII.") from None
    round = int.from_bytes(body[named : named + 4])
    return Application(campaign, round, kind, body[start:split], body[split:end], request, body[:split] + request)


def voucher(secret: bytes, campaign: str, account: bytes) -> bytes:
    """An account of 32 bytes, and the word of the site that knows it: one token for each round of the campaign."""
    if len(account) != 32:
        raise DataError("an account is named by 32 bytes, such as a keyed hash of its name.")
    said = b"dovetail account\0\1" + _named(campaign) + account
    return account + hmac.digest(secret, said, "sha256")


def read_entitlement(encoded: str) -> bytes:
    """An invitation's code, or an account's voucher, from its base64url."""
    found = raw_or_nothing(encoded.strip())
    if len(found) not in (CODE, VOUCHER):
        raise DataError("this is neither a code of an invitation nor an account's voucher.")
    return found


def _statement(key: TokenKey, said: bytes) -> bytes:
    return b"dovetail issue\0\1" + key.id + said


def _named(campaign: str) -> bytes:
    name = campaign.encode("ascii")
    return bytes([len(name)]) + name


def _place(campaign: str, round: int) -> bytes:
    return _named(campaign) + round.to_bytes(4)
