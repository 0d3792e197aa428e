"""The devices' side of TLS 1.3 where thousands of devices share the cores with what is measured.

A full handshake for each connection (RFC 8446, 2, 4.4 and 7.1), of the messages that Python's ssl exchanges with the
shipped nginx: X25519, TLS_AES_256_GCM_SHA384, no ticket. The server multiplies, signs and derives as ever. What a
device does on its own processor is left out: nobody looks at the certificate, nor at the server's signature, and the
device's private key is one that multiplies by minus one, so that the server's share is the shared secret. So this
protects nobody; a connection of ssl checks both before a load begins.

A conversation is a generator: it yields bytes that are to be sent, or none where it waits for what comes.
"""

from __future__ import annotations

import hmac
import os
import ssl
from collections.abc import Callable, Generator
from hashlib import sha384
from socket import create_connection

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NAME, SUITE = "localhost", "TLS_AES_256_GCM_SHA384"
ORDER = (1 << 252) + 27742317777372353535851937790883648493  # of X25519's base point (RFC 7748, 4.1)
PRIVATE = 5 * ORDER - 1  # clamped, and -1 modulo the order: it leaves every share of an honest server as it is
PUBLIC = (9).to_bytes(32, "little")
_SIZE = 48  # bytes of SHA-384
_ALERT, _HANDSHAKE, _DATA = 21, 22, 23
_CHANGE = bytes.fromhex("140303000101")  # the record that means nothing, and which every client sends
_FINISHED = bytes.fromhex("14000030")
_SHARE = bytes.fromhex("00330024001d0020")  # extension, its length, X25519, length

Talk = Generator[bytes, bytes, bytes]  # sends, waits, and returns the answer


def _label(label: bytes, context: bytes = b"", size: int = _SIZE) -> bytes:
    """What HKDF-Expand-Label hashes for one block of SHA-384 or less."""
    label = b"tls13 " + label
    return size.to_bytes(2, "big") + bytes([len(label)]) + label + bytes([len(context)]) + context + b"\1"


def _expand(secret: bytes, info: bytes, size: int = _SIZE) -> bytes:
    return hmac.digest(secret, info, "sha384")[:size]


_KEY, _IV, _FINISH = _label(b"key", size=32), _label(b"iv", size=12), _label(b"finished")
_DERIVED = _label(b"derived", sha384().digest())
_ZERO = bytes(_SIZE)
_BEFORE = _expand(hmac.digest(_ZERO, _ZERO, "sha384"), _DERIVED)  # what the shared secret is mixed into


def _sized(data: bytes, size: int) -> bytes:
    return len(data).to_bytes(size, "big") + data


def _hello() -> bytes:
    """A client hello, without its record."""
    name = _sized(b"\0" + _sized(NAME.encode(), 2), 2)
    fixed = bytes.fromhex("000a00040002001d000d000400020403002b0003020304003300260024001d0020")
    extensions = b"\0\0" + _sized(name, 2) + fixed + PUBLIC
    head = b"\3\3" + os.urandom(32) + b"\x20" + os.urandom(32) + bytes.fromhex("000213020100")
    return b"\1" + _sized(head + _sized(extensions, 2), 3)


class _Half:
    """One direction under one secret."""

    def __init__(self, secret: bytes) -> None:
        self._cipher, self._count = AESGCM(_expand(secret, _KEY, 32)), 0
        self._iv = int.from_bytes(_expand(secret, _IV, 12), "big")

    def seal(self, kind: int, data: bytes) -> bytes:
        """A record."""
        head = b"\x17\3\3" + (len(data) + 17).to_bytes(2, "big")
        return head + self._cipher.encrypt(self._nonce(), data + bytes([kind]), head)

    def open(self, record: bytes) -> tuple[int, bytes]:
        """What a record holds, and its kind."""
        data = self._cipher.decrypt(self._nonce(), record[5:], record[:5]).rstrip(b"\0")
        return data[-1], data[:-1]

    def _nonce(self) -> bytes:
        self._count += 1
        return (self._iv ^ (self._count - 1)).to_bytes(12, "big")


class _Records:
    """What comes, record by record."""

    def __init__(self) -> None:
        self._came = b""

    def next(self) -> Talk:
        """The next record."""
        while len(self._came) < 5 or len(self._came) < (size := 5 + int.from_bytes(self._came[3:5], "big")):
            self._came += yield b""
        record, self._came = self._came[:size], self._came[size:]
        return record

    def opened(self, half: _Half, wanted: int) -> Talk:
        """What the next record of this kind holds."""
        while True:
            record = yield from self.next()
            if record[:1] == _CHANGE[:1]:
                continue
            kind, data = half.open(record)
            if kind == _ALERT:
                raise SystemExit(f"the server ended TLS with alert {data[1]}.")
            if kind == wanted:
                return data


def secured(request: bytes, whole: Callable[[bytes], bool]) -> Talk:
    """A connection of its own for one request, until its answer is whole."""
    said, records = _hello(), _Records()
    yield b"\x16\3\1" + _sized(said, 2)
    heard = (yield from records.next())[5:]
    theirs = heard.index(_SHARE) + len(_SHARE)
    handshake = hmac.digest(_BEFORE, heard[theirs : theirs + 32], "sha384")
    transcript = sha384(said + heard)
    mine, its = (_expand(handshake, _label(each + b" hs traffic", transcript.digest())) for each in (b"c", b"s"))
    flight, read = b"", _Half(its)
    while flight[-_SIZE - 4 : -_SIZE] != _FINISHED:
        flight += yield from records.opened(read, _HANDSHAKE)
    transcript.update(flight)
    seen, master = transcript.digest(), hmac.digest(_expand(handshake, _DERIVED), _ZERO, "sha384")
    finished = hmac.digest(_expand(mine, _FINISH), seen, "sha384")
    yield _CHANGE + _Half(mine).seal(_HANDSHAKE, _FINISHED + finished)
    write, read = (_Half(_expand(master, _label(each + b" ap traffic", seen))) for each in (b"c", b"s"))
    yield write.seal(_DATA, request)
    answer = b""
    while not whole(answer):
        answer += yield from records.opened(read, _DATA)
    return answer


def check(port: int, trusted: ssl.SSLContext) -> None:
    """Refuse a server whose certificate is not trusted, or which agrees on something else with ssl."""
    with create_connection(("127.0.0.1", port)) as link, trusted.wrap_socket(link, server_hostname=NAME) as checked:
        agreed = checked.cipher()
        if checked.version() != "TLSv1.3" or agreed is None or agreed[0] != SUITE:
            raise SystemExit(f"ssl and the server agree on {checked.version()} and {agreed}, not on {SUITE}.")
