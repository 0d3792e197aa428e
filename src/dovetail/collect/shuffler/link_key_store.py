"""Keys of rounds, outside the database: while one exists its round can be linked to devices, erased it never can.

Database, write-ahead logs and backups hold tags and sealed reports only. So that erasing means something, the vault's
folder belongs on a file system without snapshots, and into no backup. A database that was restored from an older
backup may ask for a key that was erased since: the vault remembers which rounds are over, and makes none anew.
"""

from __future__ import annotations

import hmac
import math
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
from dovetail.ledger.files import sync

_SECRET = 32
_NONCE = 12
_ERASED = bytes(_SECRET)
_IDENTITY = "vault.id"
_FORGOTTEN = "vault.forgotten"


class ErasedKey(StorageError):
    """The round is over: its key was destroyed."""


class UnusableKey(StorageError):
    """The file of the round's key holds no key."""


class ForeignKey(StorageError):
    """There is a key for the round, and it is not the one under which its reports lie."""


@dataclass(frozen=True)
class RoundKey:
    """Key of one round, which names devices and seals their reports.

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
    fingerprint: str = field(default="", repr=False)  # says which key it is, and nothing else about it; 32 hex digits

    @classmethod
    def derive(cls, secret: bytes) -> Self:
        """Two keys of one secret (32 random bytes) and its fingerprint, by HKDF."""
        return cls(
            _expand(secret, b"dovetail round tag v1"),
            AESGCM(_expand(secret, b"dovetail round seal v1")),
            _expand(secret, b"dovetail round fingerprint v1")[:16].hex(),
        )

    def tag(self, device: bytes) -> bytes:
        """32 bytes that stand for a device in this round and say nothing without the key: HMAC-SHA256."""
        return hmac.digest(self.tagging, device, "sha256")

    def seal(self, plaintext: bytes, tag: bytes) -> bytes:
        """Nonce and AES-256-GCM ciphertext, 28 bytes longer; only with `tag` beside it does it open."""
        nonce = os.urandom(_NONCE)
        return nonce + self.sealing.encrypt(nonce, plaintext, tag)

    def open(self, sealed: bytes, tag: bytes) -> bytes:
        """Open what was sealed beside `tag`.

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

    def identity(self) -> str:
        """Identity of this key store; StorageError when it is gone, as when a disk is not mounted."""

    def ready(self) -> bool:
        """True if a key could be made now."""

    def create(self, campaign: str, round: int) -> RoundKey:
        """The key of a round, made if there is none, and durable; everybody who asks gets the same.

        Comes before the store's `open_round`: every round that a store knows then has, or had, a key. ErasedKey
        when the round had one that was destroyed: it is over, whatever a database from a backup says.
        """

    def key(self, campaign: str, round: int) -> RoundKey | None:
        """The key of a round; None if there is none yet, or no more; UnusableKey if what is there is none."""

    def erase(self, campaign: str, round: int) -> None:
        """Destroy the key, durably; nothing if there is none. Comes after the round's reports are deleted."""

    def erased(self, campaign: str) -> set[int]:
        """Rounds that are over: their key was destroyed."""

    def forget_before(self, time: float) -> None:
        """Note, durably, that nobody remembers what came in rounds that began before this (seconds since 1970).

        So it is when this vault takes the place of another one: that one knew which rounds are over, and the
        database beside it may be from a backup. Infinity stands for a moment that is not known yet.
        """

    def forgotten_before(self) -> float:
        """Time that was noted last; minus infinity for a key store that has taken no other one's place."""


class FileLinkKeyStore:
    """One file per round, readable by its owner only, in a folder that all replicas share.

    Nothing is cached: once erased, a key is gone for all replicas.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: str | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot(folder, error) from None

    def identity(self) -> str:
        path = self._folder / _IDENTITY
        try:
            if self._known is None and not path.exists():
                self._write(path, os.urandom(16).hex().encode())
                sync(self._folder)
            found = path.read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            found = ""
        except OSError as error:
            raise _cannot(path, error) from None
        if not re.fullmatch("[0-9a-f]{32}", found) or self._known not in (None, found):
            raise StorageError(f"{self._folder} is not the vault that it was; is its disk mounted?")
        self._known = found
        return found

    def ready(self) -> bool:
        try:
            self.identity()
            draft = self._draft(self._folder / "ready", bytes(_SECRET))
            draft.unlink()
        except OSError:  # StorageError too
            return False
        return True

    def create(self, campaign: str, round: int) -> RoundKey:
        path = self._path(campaign, round)
        if self._known is not None:
            self.identity()  # a key in the wrong place would be lost with its round
        try:
            if not path.exists():
                if round in self.erased(campaign):
                    raise _over(campaign, round)
                self._write(path, os.urandom(_SECRET))
            sync(self._folder)  # also after another process made it: what is sealed now must open later
        except StorageError:
            raise
        except OSError as error:
            raise _cannot(path, error) from None
        key = self.key(campaign, round)
        if key is None:
            raise _over(campaign, round)
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
            raise UnusableKey(f"{path} is not a round's key: it has {len(secret)} bytes, not {_SECRET}.")
        return RoundKey.derive(secret) if secret != _ERASED else None

    def erase(self, campaign: str, round: int) -> None:
        path = self._path(campaign, round)
        try:
            with suppress(FileNotFoundError):
                with path.open("r+b") as file:
                    self._append(f"{_name(campaign)}.erased", str(round))  # before the key is gone
                    file.write(_ERASED)
                    file.flush()
                    os.fsync(file.fileno())
                path.unlink()
                sync(self._folder)
        except OSError as error:
            raise _cannot(path, error) from None

    def erased(self, campaign: str) -> set[int]:
        path = self._folder / f"{_name(campaign)}.erased"
        try:
            lines = path.read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise _cannot(path, error) from None
        return {int(line[:-1]) for line in lines if re.fullmatch(r"[0-9]+;", line)}  # none cut off by a crash

    def forget_before(self, time: float) -> None:
        try:
            self._append(_FORGOTTEN, "inf" if time == math.inf else str(math.ceil(time)))
        except OSError as error:
            raise _cannot(self._folder / _FORGOTTEN, error) from None

    def forgotten_before(self) -> float:
        path = self._folder / _FORGOTTEN
        try:
            lines = path.read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return -math.inf
        except OSError as error:
            raise _cannot(path, error) from None
        return float(next((line[:-1] for line in reversed(lines) if re.fullmatch(r"([0-9]+|inf);", line)), "-inf"))

    def _path(self, campaign: str, round: int) -> Path:
        return self._folder / f"{_name(campaign)}-{whole('round', round, least=0)}.key"

    def _append(self, name: str, line: str) -> None:
        """A line that is durable, and ends with a semicolon unless a crash has cut it off."""
        path = self._folder / name
        known = path.exists()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(f"\n{line};\n".encode())
            file.flush()
            os.fsync(file.fileno())
        if not known:
            sync(self._folder)

    def _write(self, path: Path, content: bytes) -> None:
        """The whole file at once under its name, or another process's if that was first."""
        draft = self._draft(path, content)
        try:
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()

    def _draft(self, path: Path, content: bytes) -> Path:
        """A durable file beside `path`; none where there is no room for it."""
        draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            draft.unlink()
            raise
        return draft


class MemoryLinkKeyStore:
    """Keys that end with the process: for tests and simulations."""

    def __init__(self) -> None:
        self._keys, self._erased = dict[tuple[str, int], RoundKey](), set[tuple[str, int]]()
        self._known, self._forgotten_before = os.urandom(16).hex(), -math.inf

    def identity(self) -> str:
        return self._known

    def ready(self) -> bool:
        return True

    def create(self, campaign: str, round: int) -> RoundKey:
        if (campaign, round) in self._erased:
            raise _over(campaign, round)
        return self._keys.setdefault((campaign, round), RoundKey.derive(os.urandom(_SECRET)))

    def key(self, campaign: str, round: int) -> RoundKey | None:
        return self._keys.get((campaign, round))

    def erase(self, campaign: str, round: int) -> None:
        if self._keys.pop((campaign, round), None) is not None:
            self._erased.add((campaign, round))

    def erased(self, campaign: str) -> set[int]:
        return {round for of, round in self._erased if of == campaign}

    def forget_before(self, time: float) -> None:
        self._forgotten_before = time

    def forgotten_before(self) -> float:
        return self._forgotten_before


def _expand(secret: bytes, purpose: bytes) -> bytes:
    return HKDFExpand(SHA256(), _SECRET, purpose).derive(secret)


def _over(campaign: str, round: int) -> ErasedKey:
    return ErasedKey(f"the key of round {round} of {campaign} has been erased; the round is over.")


def _name(campaign: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", campaign):
        raise refuse("campaign", "1 to 64 letters, digits, - or _", campaign)
    return campaign


def _cannot(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be read or written ({error.strerror}); the vault needs a folder of its own.")
