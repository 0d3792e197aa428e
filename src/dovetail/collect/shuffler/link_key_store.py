"""Keys of rounds, outside the database: while one exists its round can be linked to devices, erased it never can.

Database, write-ahead logs and backups hold tags and sealed reports only. So that erasing means something, the vault's
folder belongs on a file system without snapshots, and into no backup.
"""

from __future__ import annotations

import hmac
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from dovetail.core.checks import refuse, whole
from dovetail.core.errors import DataError, StorageError

_SECRET = 32
_NONCE = 12
_ERASED = bytes(_SECRET)


@dataclass(frozen=True)
class RoundKey:
    """What names devices and seals their reports within one round.

    Examples
    --------
    >>> key = RoundKey.derive(bytes(range(32)))
    >>> tag = key.tag(b"public key of a device")
    >>> key.open(key.seal(b"device and report", tag), tag)
    b'device and report'
    >>> key
    RoundKey()
    """

    tagging: bytes = field(repr=False)
    sealing: AESGCM = field(repr=False, compare=False)

    @classmethod
    def derive(cls, secret: bytes) -> Self:
        """Two keys of one secret (32 random bytes), by HKDF."""
        return cls(_expand(secret, b"dovetail round tag v1"), AESGCM(_expand(secret, b"dovetail round seal v1")))

    def tag(self, device: bytes) -> bytes:
        """32 bytes that stand for a device in this round and say nothing without the key: HMAC-SHA256."""
        return hmac.digest(self.tagging, device, "sha256")

    def seal(self, plaintext: bytes, tag: bytes) -> bytes:
        """Nonce and AES-256-GCM ciphertext, 28 bytes longer; only with `tag` beside it does it open."""
        nonce = os.urandom(_NONCE)
        return nonce + self.sealing.encrypt(nonce, plaintext, tag)

    def open(self, sealed: bytes, tag: bytes) -> bytes:
        """What was sealed beside `tag`.

        Raises
        ------
        DataError
            When it was sealed under another key or tag, or has been changed.
        """
        try:
            return self.sealing.decrypt(sealed[:_NONCE], sealed[_NONCE:], tag)
        except (InvalidTag, ValueError):
            raise DataError(
                "a stored report does not open: wrong key for its round, or a changed database."
            ) from None


class LinkKeyStore(Protocol):
    """The keys of the rounds of a shuffler, shared by its replicas."""

    def create(self, campaign: str, round: int) -> RoundKey:
        """The key of a round, made if there is none, and durable; everybody who asks gets the same.

        Comes before the store's `open_round`: every round that a store knows then has, or had, a key.
        """

    def key(self, campaign: str, round: int) -> RoundKey | None:
        """The key of a round; None if there is none yet, or no more."""

    def erase(self, campaign: str, round: int) -> None:
        """Destroy the key, durably; nothing if there is none. Comes after the round's reports are deleted."""


class FileLinkKeyStore:
    """One file per round, readable by its owner only, in a folder that all replicas share.

    Nothing is cached: once erased, a key is gone for all replicas.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot(folder, error) from None

    def create(self, campaign: str, round: int) -> RoundKey:
        path = self._path(campaign, round)
        try:
            if not path.exists():
                self._write(path)
            _sync(self._folder)  # also after another process made it: what we seal now must open after a power cut
        except OSError as error:
            raise _cannot(path, error) from None
        key = self.key(campaign, round)
        if key is None:
            raise StorageError(f"the key of round {round} of {campaign} has been erased; the round is over.")
        return key

    def key(self, campaign: str, round: int) -> RoundKey | None:
        path = self._path(campaign, round)
        try:
            secret = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _cannot(path, error) from None
        if len(secret) != _SECRET:
            raise StorageError(f"{path} is not a round's key: it has {len(secret)} bytes, not {_SECRET}.")
        return RoundKey.derive(secret) if secret != _ERASED else None

    def erase(self, campaign: str, round: int) -> None:
        path = self._path(campaign, round)
        try:
            with suppress(FileNotFoundError):
                with path.open("r+b") as file:
                    file.write(_ERASED)
                    file.flush()
                    os.fsync(file.fileno())
                path.unlink()
                _sync(self._folder)
        except OSError as error:
            raise _cannot(path, error) from None

    def _path(self, campaign: str, round: int) -> Path:
        return self._folder / f"{_name(campaign)}-{whole('round', round, least=0)}.key"

    def _write(self, path: Path) -> None:
        """The whole file at once under its name, or another process's if that was first."""
        draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_SECRET))
            file.flush()
            os.fsync(file.fileno())
        try:
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()


class MemoryLinkKeyStore:
    """Keys that end with the process: for tests and simulations."""

    def __init__(self) -> None:
        self._keys = dict[tuple[str, int], RoundKey]()

    def create(self, campaign: str, round: int) -> RoundKey:
        return self._keys.setdefault((campaign, round), RoundKey.derive(os.urandom(_SECRET)))

    def key(self, campaign: str, round: int) -> RoundKey | None:
        return self._keys.get((campaign, round))

    def erase(self, campaign: str, round: int) -> None:
        self._keys.pop((campaign, round), None)


def _expand(secret: bytes, purpose: bytes) -> bytes:
    return HKDFExpand(SHA256(), _SECRET, purpose).derive(secret)


def _name(campaign: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", campaign):
        raise refuse("campaign", "1 to 64 letters, digits, - or _", campaign)
    return campaign


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be read or written ({error.strerror}); the vault needs a folder of its own.")
