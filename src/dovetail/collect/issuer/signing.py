"""Blind signing with the secret key of a round: OpenSSL's exponentiation, checked before anything leaves.

`cryptography` has no raw RSA. OpenSSL's is constant-time and blinds its input; whoever brings another one, such as a
module of hardware, implements `BlindSigner`.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from dovetail.collect.files import ROUND_BITS, ROUND_EXPONENT, read_secret, token_key
from dovetail.core.errors import ConfigError, DovetailError
from dovetail_protocol.tokens import TokenKey

_SECONDS = 30  # for one signature


class SigningFault(DovetailError):
    """A signature that could not be made, or did not hold; nothing of it is told."""


class BlindSigner(Protocol):
    """The secret key of one round."""

    def sign(self, blinded: bytes) -> bytes:
        """The blind signature (RFC 9474, section 4.3); `SigningFault` if there is none."""


@dataclass(frozen=True)
class OpensslSigner:
    """A key in a PEM file that only its owner can read; the program `openssl` has to be there."""

    path: Path
    public: RSAPublicNumbers = field(repr=False)

    def sign(self, blinded: bytes) -> bytes:
        """blinded^d, by OpenSSL; checked by the public key, so that a fault tells nothing of the secret one."""
        modulus, number = self.public.n, int.from_bytes(blinded)
        if len(blinded) != (modulus.bit_length() + 7) // 8 or number >= modulus:
            raise SigningFault("what is to be signed is no number below the modulus.")
        command = ["openssl", "pkeyutl", "-decrypt", "-inkey", str(self.path), "-pkeyopt", "rsa_padding_mode:none"]
        try:
            made = subprocess.run(command, input=blinded, capture_output=True, timeout=_SECONDS, check=True).stdout
        except (OSError, subprocess.SubprocessError):
            raise SigningFault("OpenSSL made no signature; is the program there, and the key file?") from None
        if len(made) != len(blinded) or pow(int.from_bytes(made), self.public.e, modulus) != number:
            raise SigningFault("OpenSSL made a signature that does not hold.")
        return made


def load_round_keys(folder: Path) -> dict[TokenKey, BlindSigner]:
    """The keys of a folder that are there now: those of coming rounds may still lie elsewhere."""
    if shutil.which("openssl") is None:
        raise ConfigError("an issuer signs with OpenSSL, and there is no program `openssl` here; install it.")
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".pem")
    except OSError:
        raise ConfigError(f"{folder}: no folder of round keys; `dovetail collect token-keys` makes one.") from None
    return dict(_load(file) for file in files)


def _load(path: Path) -> tuple[TokenKey, BlindSigner]:
    content = read_secret(path, "a key").encode()
    try:
        found = load_pem_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    numbers = found.public_key().public_numbers() if isinstance(found, RSAPrivateKey) else None
    kind = None if numbers is None else (numbers.n.bit_length(), numbers.e)
    if not isinstance(found, RSAPrivateKey) or numbers is None or kind != (ROUND_BITS, ROUND_EXPONENT):
        raise ConfigError(f"{path} is no key of a round: RSA of 2,048 bits with the exponent 65,537, PEM.")
    return token_key(found), OpensslSigner(path, numbers)
