"""The devices' side of TLS 1.3 where thousands of devices share the cores with what is measured.

A full handshake for each connection (RFC 8446, 2, 4.4 and 7.1), of the messages that Python's ssl exchanges with the
shipped nginx: X25519, TLS_AES_256_GCM_SHA384, no ticket. The server derives and signs as ever. Two things are left
out, which a device does on its own processor: nobody looks at the certificate, nor at the server's signature. So this
protects nobody; a connection of ssl checks both before a load begins. It takes half of ssl's processor time, or less.
"""

from __future__ import annotations

import hmac
import os
import ssl
from hashlib import sha384
from socket import IPPROTO_TCP, TCP_NODELAY, create_connection, socket

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NAME, SUITE = "localhost", "TLS_AES_256_GCM_SHA384"
_SIZE = 48  # bytes of SHA-384
_ALERT, _HANDSHAKE, _DATA = 21, 22, 23
_CHANGE = bytes.fromhex("140303000101")  # the record that means nothing, and which every client sends
_FINISHED = bytes.fromhex("14000030")
_SHARE = bytes.fromhex("00330024001d0020")  # extension, its length, X25519, length


def _expand(secret: bytes, label: bytes, context: bytes = b"", size: int = _SIZE) -> bytes:
    """HKDF-Expand-Label, of one block of SHA-384 or less."""
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes([len(label)]) + label + bytes([len(context)]) + context
    return hmac.digest(secret, info + b"\1", "sha384")[:size]


def _next(secret: bytes, given: bytes) -> bytes:
    """The secret that follows in the key schedule."""
    return hmac.digest(_expand(secret, b"derived", sha384().digest()), given, "sha384")


_EARLY = hmac.digest(bytes(_SIZE), bytes(_SIZE), "sha384")


def _sized(data: bytes, size: int) -> bytes:
    return len(data).to_bytes(size, "big") + data


def _hello(public: bytes) -> bytes:
    """A client hello, without its record."""
    name = _sized(b"\0" + _sized(NAME.encode(), 2), 2)
    fixed = bytes.fromhex("000a00040002001d000d000400020403002b0003020304003300260024001d0020")
    extensions = b"\0\0" + _sized(name, 2) + fixed + public
    head = b"\3\3" + os.urandom(32) + b"\x20" + os.urandom(32) + bytes.fromhex("000213020100")
    return b"\1" + _sized(head + _sized(extensions, 2), 3)


class _Half:
    """One direction under one secret."""

    def __init__(self, secret: bytes) -> None:
        self._cipher, self._count = AESGCM(_expand(secret, b"key", size=32)), 0
        self._iv = int.from_bytes(_expand(secret, b"iv", size=12), "big")

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


class Device:
    """A connection to `link`'s other end, from the handshake on."""

    def __init__(self, link: socket) -> None:
        self._link, self._came = link, b""
        secret = X25519PrivateKey.generate()
        said = _hello(secret.public_key().public_bytes_raw())
        link.sendall(b"\x16\3\1" + _sized(said, 2))
        heard = self._record()[5:]
        theirs = heard.index(_SHARE) + len(_SHARE)
        shared = secret.exchange(X25519PublicKey.from_public_bytes(heard[theirs : theirs + 32]))
        handshake, transcript = _next(_EARLY, shared), sha384(said + heard)
        mine, its = (_expand(handshake, each + b" hs traffic", transcript.digest()) for each in (b"c", b"s"))
        self._read, flight = _Half(its), b""
        while flight[-_SIZE - 4 : -_SIZE] != _FINISHED:
            flight += self._opened(_HANDSHAKE)
        transcript.update(flight)
        seen, master = transcript.digest(), _next(handshake, bytes(_SIZE))
        finished = hmac.digest(_expand(mine, b"finished"), seen, "sha384")
        link.sendall(_CHANGE + _Half(mine).seal(_HANDSHAKE, _FINISHED + finished))
        self._write, self._read = (_Half(_expand(master, each + b" ap traffic", seen)) for each in (b"c", b"s"))

    def sendall(self, data: bytes) -> None:
        self._link.sendall(self._write.seal(_DATA, data))

    def recv(self, _: int) -> bytes:
        return self._opened(_DATA)

    def _opened(self, wanted: int) -> bytes:
        """What the next record of this kind holds."""
        while True:
            record = self._record()
            if record[:1] == _CHANGE[:1]:
                continue
            kind, data = self._read.open(record)
            if kind == _ALERT:
                raise SystemExit(f"the server ended TLS with alert {data[1]}.")
            if kind == wanted:
                return data

    def _record(self) -> bytes:
        while len(self._came) < 5 or len(self._came) < (size := 5 + int.from_bytes(self._came[3:5], "big")):
            more = self._link.recv(1 << 16)
            if not more:
                raise SystemExit("the server closed a connection without an answer.")
            self._came += more
        record, self._came = self._came[:size], self._came[size:]
        return record


def check(port: int, trusted: ssl.SSLContext) -> None:
    """Refuse a server whose certificate is not trusted, or which agrees on something else with ssl."""
    with create_connection(("127.0.0.1", port)) as link, trusted.wrap_socket(link, server_hostname=NAME) as checked:
        agreed = checked.cipher()
        if checked.version() != "TLSv1.3" or agreed is None or agreed[0] != SUITE:
            raise SystemExit(f"ssl and the server agree on {checked.version()} and {agreed}, not on {SUITE}.")


def connected(port: int) -> socket:
    """A connection that sends at once, as those of http.client do."""
    link = create_connection(("127.0.0.1", port))
    link.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    return link
