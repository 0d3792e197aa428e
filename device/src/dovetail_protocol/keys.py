"""Keys of the roles: what seals, what opens, what signs; as short texts in campaign files and in key files.

A public key is written `suite:base64url`, a secret key stands in a file that names its role and is readable by its
owner only. Secrets have a mute repr and appear in no error.
"""

from __future__ import annotations

import base64
import secrets
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NoReturn, Self, get_args

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    MLKEM768X25519PublicKey,
    Suite,
)

from dovetail_protocol.errors import ConfigError, UnsupportedError

SuiteName = Literal["x25519", "mlkem768-x25519"]
Role = Literal["owner", "device", "shuffler", "analyzer", "gateway", "issuer"]

SUITES: dict[str, Suite] = {
    "x25519": Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM),
    "mlkem768-x25519": Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM),
}
OVERHEAD = {"x25519": 32 + 16, "mlkem768-x25519": 1120 + 16}  # encapsulated key and tag, bytes
_HOLDS: dict[Role, set[str]] = {
    "owner": {"signing"},
    "device": {"signing"},
    "shuffler": {"signing", "opening"},
    "analyzer": {"opening"},
    "gateway": {"opening"},
    "issuer": {"signing"},
}
_SECRET_BYTES = {"x25519": 32, "mlkem768-x25519": 96}
_PUBLIC_BYTES = {"x25519": 32, "mlkem768-x25519": 1184 + 32}
_FIELD = (1 << 255) - 19  # of the curve of Ed25519, whose points are written by their y and one bit
_ORDER_8 = int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little")
_SMALL = frozenset((0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8))  # y of the points whose eightfold is neutral


def text(data: bytes) -> str:
    """Bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def raw(encoded: str) -> bytes:
    """Bytes of base64url without padding; ValueError for anything else, also for a second spelling."""
    data = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    if text(data) != encoded:
        raise ValueError("not the base64url of any bytes")
    return data


def raw_or_nothing(encoded: object) -> bytes:
    """Bytes of base64url without padding; none for anything else."""
    try:
        return raw(encoded) if isinstance(encoded, str) else b""
    except ValueError:
        return b""


def _never_pickled(_: object) -> NoReturn:
    raise UnsupportedError("secrets are not pickled; every process reads the key file of its own role.")


@dataclass(frozen=True)
class SealingKey:
    """Public half of an HPKE key pair: anybody who has it can seal, nobody can open with it."""

    suite: str
    public: bytes

    def __str__(self) -> str:
        return f"{self.suite}:{text(self.public)}"

    @classmethod
    def parse(cls, name: str, encoded: object) -> Self:
        """From `suite:base64url`; `name` says in errors which key it is."""
        suite, public = _split(name, encoded, _PUBLIC_BYTES)
        key = cls(suite, public)
        try:
            key.seal(b"", b"")
        except ValueError:
            raise ConfigError(f"`{name}` is not a public key of {suite}.") from None
        return key

    def seal(self, plaintext: bytes, info: bytes) -> bytes:
        """HPKE base mode, single shot (RFC 9180): encapsulated key, ciphertext; `OVERHEAD[suite]` bytes longer."""
        return SUITES[self.suite].encrypt(plaintext, self._key(), info)

    def _key(self) -> Any:
        if self.suite == "x25519":
            return X25519PublicKey.from_public_bytes(self.public)
        lattice = MLKEM768PublicKey.from_public_bytes(self.public[:1184])
        return MLKEM768X25519PublicKey(lattice, X25519PublicKey.from_public_bytes(self.public[1184:]))


@dataclass(frozen=True)
class OpeningKey:
    """Secret half of an HPKE key pair."""

    suite: str
    secret: bytes = field(repr=False)
    __reduce__ = _never_pickled

    @classmethod
    def generate(cls, suite: str = "x25519") -> Self:
        return cls(suite, secrets.token_bytes(_SECRET_BYTES[suite]))

    def sealing_key(self) -> SealingKey:
        curve = self._curve().public_key().public_bytes_raw()
        if self.suite == "x25519":
            return SealingKey(self.suite, curve)
        return SealingKey(self.suite, self._lattice().public_key().public_bytes_raw() + curve)

    def opener(self) -> Opener:
        """The key made ready once, for many envelopes."""
        if self.suite == "x25519":
            return Opener(self.suite, self._curve())
        return Opener(self.suite, MLKEM768X25519PrivateKey(self._lattice(), self._curve()))

    def _curve(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(self.secret[-32:])

    def _lattice(self) -> MLKEM768PrivateKey:
        return MLKEM768PrivateKey.from_seed_bytes(self.secret[:64])


@dataclass(frozen=True)
class Opener:
    """Opens what was sealed to one key."""

    suite: str
    key: Any = field(repr=False)
    __reduce__ = _never_pickled

    def open(self, sealed: bytes, info: bytes) -> bytes | None:
        """The plaintext, or None if it was not sealed to this key with this `info`, or has been changed."""
        try:
            return SUITES[self.suite].decrypt(sealed, self.key, info)
        except (InvalidTag, ValueError):
            return None


@dataclass(frozen=True)
class VerifyingKey:
    """Public half of an Ed25519 key pair; a device's is its name in the roster.

    Nothing verifies under a point of small order, although RFC 8032 would accept it: anybody finds signatures for it.
    """

    public: bytes

    def __str__(self) -> str:
        return f"ed25519:{text(self.public)}"

    @classmethod
    def parse(cls, name: str, encoded: object) -> Self:
        key = cls(_split(name, encoded, {"ed25519": 32})[1])
        if key._anybodys:
            raise ConfigError(f"`{name}` is a point of small order, for which anybody can sign; make a key.")
        return key

    @property
    def _anybodys(self) -> bool:
        return int.from_bytes(self.public, "little") % (1 << 255) % _FIELD in _SMALL

    def verifies(self, signature: bytes, message: bytes) -> bool:
        if self._anybodys:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True)
class SigningKey:
    """Secret half of an Ed25519 key pair."""

    secret: bytes = field(repr=False)
    __reduce__ = _never_pickled

    @classmethod
    def generate(cls) -> Self:
        return cls(secrets.token_bytes(32))

    def verifying_key(self) -> VerifyingKey:
        return VerifyingKey(self._key.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """64 bytes, deterministic (RFC 8032)."""
        return self._key.sign(message)

    @cached_property
    def _key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.secret)


@dataclass(frozen=True)
class RoleKeys:
    """The secrets of one role: a signing key (owner, device, shuffler) and an opening key (shuffler, analyzer)."""

    role: Role
    signing: SigningKey | None = None
    opening: OpeningKey | None = None

    @classmethod
    def generate(cls, role: Role, suite: str = "x25519") -> Self:
        return cls(
            role,
            SigningKey.generate() if "signing" in _HOLDS[role] else None,
            OpeningKey.generate(suite) if "opening" in _HOLDS[role] else None,
        )

    def to_text(self) -> str:
        """The key file: for its owner's eyes only."""
        lines = [
            "# Dovetail secret keys: keep them where their role runs, and nowhere else.",
            f'role = "{self.role}"',
        ]
        if self.signing:
            lines += [f'signing = "ed25519:{text(self.signing.secret)}"']
        if self.opening:
            lines += [f'opening = "{self.opening.suite}:{text(self.opening.secret)}"']
        return "\n".join(lines) + "\n"

    @classmethod
    def parse(cls, content: str, *, name: str, role: Role) -> Self:
        """The keys of `role` in the file `name`; one of another role is refused: nobody holds what is not theirs."""
        try:
            found = tomllib.loads(content)
        except (ValueError, RecursionError):
            raise ConfigError(f"{name} is not a key file that can be read.") from None
        holder = found.pop("role", None)
        if holder not in get_args(Role):
            raise ConfigError(f"{name} is not a key file: it names no role.")
        if holder != role:
            raise ConfigError(f"{name} holds keys of the {holder}, which the {role} must never hold.")
        if found.keys() != _HOLDS[role]:
            raise ConfigError(
                f"{name} must hold {' and '.join(sorted(_HOLDS[role]))} of the {role}, and nothing else."
            )
        signing = opening = None
        if "signing" in found:
            signing = SigningKey(_split(f"{name}: signing", found["signing"], {"ed25519": 32})[1])
        if "opening" in found:
            opening = OpeningKey(*_split(f"{name}: opening", found["opening"], _SECRET_BYTES))
        return cls(role, signing, opening)


def _split(name: str, encoded: object, lengths: dict[str, int]) -> tuple[str, bytes]:
    """Suite and bytes of `suite:base64url`; the error never repeats the text, which may be a secret."""
    suite, _, rest = encoded.partition(":") if isinstance(encoded, str) else ("", "", "")
    try:
        data = raw(rest)
    except ValueError:
        data = b""
    if len(data) != lengths.get(suite):
        known = " or ".join(f"{suite}:{'.' * 3} of {length} bytes" for suite, length in lengths.items())
        raise ConfigError(f"`{name}` must be a key such as {known}.")
    return suite, data
