#!/usr/bin/env python3
"""Random passwords for the databases and the broker, each readable by the one user of compose.yaml who needs it.

    sudo python3 deploy/make_secrets.py

Nothing is printed, and what is there already stays as it is. Hand `devices.password` to the devices.
"""

from __future__ import annotations

import os
import secrets
import sys
from base64 import b64encode
from hashlib import pbkdf2_hmac
from pathlib import Path

DOVETAIL, POSTGRES, MOSQUITTO, PROXY, TLS_READERS = 10001, 999, 1883, 101, 10002
_ROUNDS = 101  # of Mosquitto's own hashes; these passwords are random, so that guessing is hopeless anyhow


def main(folder: Path) -> None:
    for role in ("shuffler", "analyzer", "issuer"):
        password = _password(folder / f"{role}-store.password", POSTGRES)
        _write(folder / role / "pgpass", f"*:*:dovetail:dovetail:{password}\n", DOVETAIL)
    shuffler = _password(folder / "shuffler" / "mqtt.password", DOVETAIL)
    devices = _password(folder / "devices.password", os.getuid())
    logins = f"shuffler:{_hash(shuffler)}\ndevices:{_hash(devices)}\n"
    _write(folder / "broker" / "logins", logins, MOSQUITTO)


def _password(path: Path, user: int) -> str:
    _write(path, secrets.token_urlsafe(24) + "\n", user)
    return path.read_text().strip()


def _write(path: Path, text: str, user: int) -> None:
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chown(draft, user, -1)
    draft.rename(path)


def _hash(password: str) -> str:
    """As `mosquitto_passwd` writes it: PBKDF2 with HMAC-SHA512."""
    salt = secrets.token_bytes(12)
    key = pbkdf2_hmac("sha512", password.encode(), salt, _ROUNDS)
    return f"$7${_ROUNDS}${b64encode(salt).decode()}${b64encode(key).decode()}"


if __name__ == "__main__":
    try:
        main(Path(__file__).parent)
    except PermissionError as error:
        sys.exit(f"error: {error.filename}: only root may give files to other users; run this with sudo.")
