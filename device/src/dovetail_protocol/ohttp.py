"""Oblivious HTTP (RFC 9458): a relay sees who sends and no content, the gateway the content and not who sent it.

::

    key configuration      key id 1 | kem 0x0020 | public key 32 | 4 as 2 bytes | kdf 0x0001 | aead 0x0001
    encapsulated request   key id 1 | kem 0x0020 | kdf 0x0001 | aead 0x0001 | enc 32 | AEAD(binary request)
    encapsulated response  nonce 16 | AEAD(binary response), under a key of this exchange alone

The key schedule is HPKE's in base mode (RFC 9180) for DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM. It is
written out here because a response needs the secret that HPKE exports. Curve, HKDF and cipher are `cryptography`'s.

A key configuration is signed in the campaign file and not asked for: a gateway that gave everybody one of their own
could tell them apart.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from dovetail_protocol.endpoint import signed_place
from dovetail_protocol.errors import ConfigError, DataError, DovetailError
from dovetail_protocol.keys import OpeningKey, raw_or_nothing, text
from dovetail_protocol.toml_section import Section

REQUEST_TYPE, RESPONSE_TYPE, KEYS_TYPE = "message/ohttp-req", "message/ohttp-res", "application/ohttp-keys"
OVERHEAD = 7 + 32 + 16  # of an encapsulated request
RESPONSE_OVERHEAD = 16 + 16
MOST_PAD = 1 << 17  # bytes of a request before sealing: what a campaign may ask for
MOST_SEALED = MOST_PAD + OVERHEAD

_KEM, _KDF, _AEAD = 0x0020, 0x0001, 0x0001
_ALGORITHMS = b"".join(code.to_bytes(2, "big") for code in (_KEM, _KDF, _AEAD))
_KEM_SUITE, _SUITE = b"KEM" + _ALGORITHMS[:2], b"HPKE" + _ALGORITHMS
_KEY, _NONCE = 16, 12  # bytes of AES-128-GCM
_REQUEST_LABEL, _RESPONSE_LABEL = b"message/bhttp request\0", b"message/bhttp response"
_CONFIGURATION = 41


class UnknownKey(DovetailError):
    """The request was made for a key that this gateway does not have."""


@dataclass(frozen=True)
class GatewayKey:
    """Public key of a gateway, written as the base64url of its key configuration.

    id : 0 to 255; our own is the first byte of the key's SHA-256, see `of`, and needs no place in a key file.
    """

    id: int
    public: bytes

    @classmethod
    def of(cls, key: OpeningKey) -> Self:
        """The public half of a gateway's secret key."""
        if key.suite != "x25519":
            raise ConfigError("a gateway's key is of x25519, as oblivious HTTP has it.")
        public = key.sealing_key().public
        return cls(sha256(public).digest()[0], public)

    def configuration(self) -> bytes:
        """The key configuration of RFC 9458, section 3.1, 41 bytes."""
        algorithms = _ALGORITHMS[2:]
        return bytes([self.id]) + _ALGORITHMS[:2] + self.public + len(algorithms).to_bytes(2, "big") + algorithms

    def __str__(self) -> str:
        return text(self.configuration())

    @classmethod
    def parse(cls, name: str, encoded: object) -> Self:
        """From the base64url of a key configuration; `name` says in errors which one it is."""
        data = raw_or_nothing(encoded)
        found = cls(data[0] if data else 0, data[3:35])
        if len(data) != _CONFIGURATION or data != found.configuration():
            raise ConfigError(f"`{name}` must be a key of a gateway, as `dovetail collect keys gateway` prints it.")
        return found

    def seal(self, request: bytes, ephemeral: X25519PrivateKey | None = None) -> tuple[bytes, PendingResponse]:
        """The encapsulated request, and what opens its response; `ephemeral` is drawn afresh outside of tests."""
        drawn = X25519PrivateKey.generate() if ephemeral is None else ephemeral
        enc = drawn.public_key().public_bytes_raw()
        head = bytes([self.id]) + _ALGORITHMS
        shared = drawn.exchange(X25519PublicKey.from_public_bytes(self.public))
        schedule = _Schedule.of(shared, enc, self.public, head)
        sealed = AESGCM(schedule.key).encrypt(schedule.nonce, request, b"")
        return head + enc + sealed, PendingResponse(enc, schedule.exported)


@dataclass(frozen=True)
class PendingResponse:
    """One exchange, at either end: seals its response at the gateway, opens it at the device."""

    enc: bytes
    exported: bytes = field(repr=False)

    def seal(self, response: bytes, nonce: bytes | None = None) -> bytes:
        """The encapsulated response; `nonce` (16 bytes) is drawn afresh outside of tests."""
        drawn = secrets.token_bytes(_KEY) if nonce is None else nonce
        key, iv = self._keys(drawn)
        return drawn + AESGCM(key).encrypt(iv, response, b"")

    def open(self, sealed: bytes) -> bytes | None:
        """The response; None for anything that is not the answer to this request."""
        key, iv = self._keys(sealed[:_KEY])
        try:
            return AESGCM(key).decrypt(iv, sealed[_KEY:], b"")
        except (InvalidTag, ValueError):
            return None

    def _keys(self, nonce: bytes) -> tuple[bytes, bytes]:
        secret = hmac.digest(self.enc + nonce, self.exported, "sha256")
        return _expand(secret, b"key", _KEY), _expand(secret, b"nonce", _NONCE)


@dataclass(frozen=True)
class Gateway:
    """The secret keys of a gateway, the newest last: opens what was sealed to any of them."""

    keys: tuple[tuple[GatewayKey, OpeningKey], ...] = field(repr=False)

    @classmethod
    def of(cls, keys: Iterable[OpeningKey]) -> Self:
        """The gateway of these keys; two that share an id are refused."""
        held = tuple((GatewayKey.of(key), key) for key in keys)
        if len({public.id for public, _ in held}) < len(held):
            raise ConfigError("two keys of the gateway have one id and cannot be told apart: make another key.")
        return cls(held)

    @cached_property
    def _ready(self) -> dict[bytes, tuple[bytes, X25519PrivateKey]]:
        """Public and secret key, made ready once, by the head of the requests sealed to it."""
        return {
            bytes([public.id]) + _ALGORITHMS: (public.public, X25519PrivateKey.from_private_bytes(key.secret))
            for public, key in self.keys
        }

    def configurations(self) -> bytes:
        """All key configurations as `application/ohttp-keys`, the newest first."""
        found = [public.configuration() for public, _ in reversed(self.keys)]
        return b"".join(len(each).to_bytes(2, "big") + each for each in found)

    def open(self, wire: bytes) -> tuple[bytes, PendingResponse]:
        """The binary request, and what seals its response.

        Raises
        ------
        UnknownKey
            For another key or other algorithms.
        DataError
            For what was not sealed to the key that it names, or has been changed.
        """
        head, enc, sealed = wire[:7], wire[7:39], wire[39:]
        if len(wire) < OVERHEAD:
            raise DataError("this is no encapsulated request.")
        if head not in self._ready:
            raise UnknownKey("the gateway has no key of this id and these algorithms.")
        public, curve = self._ready[head]
        try:
            shared = curve.exchange(X25519PublicKey.from_public_bytes(enc))
            schedule = _Schedule.of(shared, enc, public, head)
            return AESGCM(schedule.key).decrypt(schedule.nonce, sealed, b""), PendingResponse(enc, schedule.exported)
        except (InvalidTag, ValueError):
            raise DataError("the request is not sealed to this gateway, or has been changed on the way.") from None


# What a campaign says of the way there: [ohttp].


@dataclass(frozen=True)
class ObliviousRoute:
    """Relay that devices send to, keys of the gateway behind it, and the length of every request before sealing."""

    relay: str
    keys: tuple[GatewayKey, ...]  # the last one is used
    pad: int  # bytes


def read_route(section: Section) -> ObliviousRoute | None:
    """`[ohttp]` of a campaign; None where there is none."""
    if not section:
        return None
    route = ObliviousRoute(
        relay=signed_place("ohttp.relay", section.text("relay"), ("http", "https")),
        keys=tuple(GatewayKey.parse("ohttp.keys", key) for key in section.texts("keys")),
        pad=section.whole("pad", least=64, most=MOST_PAD),
    )
    section.finish()
    if not route.keys:
        raise ConfigError("`ohttp.keys` must name a key of the gateway.")
    return route


# HPKE in base mode, with the secret that a response is sealed under.


@dataclass(frozen=True)
class _Schedule:
    key: bytes = field(repr=False)
    nonce: bytes = field(repr=False)
    exported: bytes = field(repr=False)

    @classmethod
    def of(cls, shared: bytes, enc: bytes, public: bytes, head: bytes) -> _Schedule:
        extracted = _labeled_extract(_KEM_SUITE, b"", b"eae_prk", shared)
        agreed = _labeled_expand(_KEM_SUITE, extracted, b"shared_secret", enc + public, 32)
        none = _labeled_extract(_SUITE, b"", b"psk_id_hash", b"")
        context = b"\0" + none + _labeled_extract(_SUITE, b"", b"info_hash", _REQUEST_LABEL + head)
        secret = _labeled_extract(_SUITE, agreed, b"secret", b"")
        exporter = _labeled_expand(_SUITE, secret, b"exp", context, 32)
        return cls(
            _labeled_expand(_SUITE, secret, b"key", context, _KEY),
            _labeled_expand(_SUITE, secret, b"base_nonce", context, _NONCE),
            _labeled_expand(_SUITE, exporter, b"sec", _RESPONSE_LABEL, _KEY),
        )


def _labeled_extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt, b"HPKE-v1" + suite + label + secret, "sha256")


def _labeled_expand(suite: bytes, secret: bytes, label: bytes, info: bytes, length: int) -> bytes:
    return _expand(secret, length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, length)


def _expand(secret: bytes, info: bytes, length: int) -> bytes:
    return HKDFExpand(SHA256(), length, info).derive(secret)
