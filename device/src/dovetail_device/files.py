"""Files that a device reads and writes by name: its campaign, its keys, a password."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_IMODE

from dovetail_protocol.campaign import Campaign
from dovetail_protocol.errors import ConfigError, DovetailError, OutputError
from dovetail_protocol.keys import Role, RoleKeys, VerifyingKey


def load_campaign(path: Path, owner: VerifyingKey | None = None) -> Campaign:
    """The verified campaign of a file, with one-line errors that name it."""
    try:
        return Campaign.parse(path.read_bytes(), owner)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such campaign file.") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from None
    except DovetailError as error:
        raise ConfigError(f"{path}: {error}") from None


def save_keys(keys: RoleKeys, path: Path) -> None:
    """Write a file that only its owner can read; an existing file is refused, because keys are not replaced."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise OutputError(f"{path} exists; keys are never overwritten, choose another name.") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}).") from None
    with os.fdopen(descriptor, "w") as file:
        file.write(keys.to_text())
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)  # an outbox belongs to its keys: they must be there after a power cut


def load_keys(path: Path, role: Role) -> RoleKeys:
    """The keys of `role`; a file of another role, or one that anybody but its owner may open, is refused."""
    try:
        content, mode = _read(path)
    except FileNotFoundError:
        maker = "dovetail-device keys" if role == "device" else "dovetail collect keys"
        raise ConfigError(f"{path}: no such key file; `{maker}` makes one.") from None
    except PermissionError:
        raise ConfigError(f"{path}: this user must not read it; run as the user that owns the key.") from None
    except (ValueError, OSError):
        raise ConfigError(f"{path} is not a key file that can be read.") from None
    keys = RoleKeys.parse(content, name=str(path), role=role)
    _require_private(path, mode)
    return keys


def secret_line(path: Path, what: str) -> str:
    """The only line of a file that nobody else can read, such as "a password"; no error repeats it."""
    try:
        content, mode = _read(path)
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path}: no file with {what} that can be read.") from None
    _require_private(path, mode)
    lines = content.splitlines()
    if len(lines) != 1 or not lines[0].strip():
        raise ConfigError(f"{path} must hold {what} in one line, and nothing else.")
    return lines[0].strip()


def _read(path: Path) -> tuple[str, int]:
    """Text and mode of the very file that was read, whatever takes its name meanwhile."""
    with path.open(encoding="utf-8") as file:
        return file.read(), os.fstat(file.fileno()).st_mode


def _require_private(path: Path, mode: int) -> None:
    """Refuse a secret that others may open; where permissions are no bits of the file, as on Windows, say nothing."""
    if os.name == "posix" and mode & 0o177:
        raise ConfigError(
            f"{path} has mode {S_IMODE(mode):04o}, which is wider than 0600; make it private with chmod 600."
        )


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a new file is not there after a power cut until its folder is synced."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
