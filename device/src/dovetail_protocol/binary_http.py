"""Binary HTTP of known length (RFC 9292): a request or a response as bytes that no proxy rewrites.

::

    request    0 | method | scheme | authority | path | fields | content | trailers | zeros
    response   1 | status | fields | content | trailers | zeros

Every part is a length and so many bytes, every length a variable-length integer of QUIC (RFC 9000, section 16). Empty
parts at the end may be left out, and zeros may follow: that is how all messages get one length. Messages of unknown
length, informational responses and trailers are refused: nothing here sends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail_protocol.errors import DataError

Fields = tuple[tuple[str, str], ...]

_REQUEST, _RESPONSE = 0, 1


@dataclass(frozen=True)
class BinaryRequest:
    """A request; `fields` are its headers, with names in lower case."""

    method: str
    scheme: str
    authority: str
    path: str
    fields: Fields = ()
    content: bytes = field(default=b"", repr=False)

    def encode(self) -> bytes:
        """Its bytes, with empty parts at the end left out."""
        control = (self.method, self.scheme, self.authority, self.path)
        return _truncated(_integer(_REQUEST) + b"".join(_part(text.encode("ascii")) for text in control), self)

    @classmethod
    def decode(cls, data: bytes) -> BinaryRequest:
        """The request of these bytes, padded or not.

        Raises
        ------
        DataError
            For anything that is no request of known length.
        """
        reader = _Reader(data)
        if reader.integer() != _REQUEST:
            raise DataError("this is no binary request of known length.")
        method, scheme, authority, path = (_text(reader.part()) for _ in range(4))
        return cls(method, scheme, authority, path, *reader.rest())


@dataclass(frozen=True)
class BinaryResponse:
    """A response; `fields` are its headers, with names in lower case."""

    status: int
    fields: Fields = ()
    content: bytes = field(default=b"", repr=False)

    def encode(self) -> bytes:
        """Its bytes, with empty parts at the end left out."""
        return _truncated(_integer(_RESPONSE) + _integer(self.status), self)

    @classmethod
    def decode(cls, data: bytes) -> BinaryResponse:
        """The response of these bytes, padded or not.

        Raises
        ------
        DataError
            For anything that is no final response of known length.
        """
        reader = _Reader(data)
        if reader.integer() != _RESPONSE:
            raise DataError("this is no binary response of known length.")
        status = reader.integer()
        if not 200 <= status <= 599:
            raise DataError("a binary response has a status from 200 to 599.")
        return cls(status, *reader.rest())


def padded(message: bytes, length: int) -> bytes:
    """The message with zeros behind it up to `length` bytes.

    Raises
    ------
    DataError
        If it is longer: it must not be told from others by its length.
    """
    if len(message) > length:
        raise DataError(f"a message of {len(message):,} bytes does not fit into {length:,}.")
    return message.ljust(length, b"\0")


def _truncated(head: bytes, message: BinaryRequest | BinaryResponse) -> bytes:
    lines = b"".join(_part(name.encode("ascii")) + _part(value.encode("latin-1")) for name, value in message.fields)
    if message.content:
        return head + _part(lines) + _part(message.content)
    return head + _part(lines) if lines else head


def _part(data: bytes) -> bytes:
    return _integer(len(data)) + data


def _integer(value: int) -> bytes:
    for code, size in enumerate((1, 2, 4, 8)):
        if value < 1 << (8 * size - 2):
            return (value | code << (8 * size - 2)).to_bytes(size, "big")
    raise DataError("a length of binary HTTP is below 2^62.")


def _text(data: bytes) -> str:
    try:
        found = data.decode("ascii")
    except UnicodeDecodeError:
        raise DataError("the control data of a binary message is ASCII.") from None
    if not found.isprintable():
        raise DataError("the control data of a binary message has no control characters.")
    return found


@dataclass
class _Reader:
    data: bytes
    at: int = 0

    def integer(self) -> int:
        if self.at >= len(self.data):
            raise DataError("a binary message ends in its middle.")
        size = 1 << (self.data[self.at] >> 6)
        return int.from_bytes(self._take(size), "big") & ((1 << (8 * size - 2)) - 1)

    def part(self) -> bytes:
        return self._take(self.integer())

    def rest(self) -> tuple[Fields, bytes]:
        """Headers and content; parts that were left out are empty, and what follows must be padding."""
        lines, content, trailers = (self.part() if self.at < len(self.data) else b"" for _ in range(3))
        if trailers:
            raise DataError("trailers of a binary message are not understood.")
        if any(self.data[self.at :]):
            raise DataError("something other than zeros follows a binary message.")
        return _fields(lines), content

    def _take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) < size:
            raise DataError("a binary message ends in its middle.")
        self.at += size
        return found


def _fields(lines: bytes) -> Fields:
    reader, found = _Reader(lines), list[tuple[str, str]]()
    while reader.at < len(lines):
        name, value = _text(reader.part()), reader.part().decode("latin-1")
        if not name or name != name.lower() or any(c in name for c in ": ") or any(c in value for c in "\r\n\0"):
            raise DataError("a header of a binary message is not well formed.")
        found.append((name, value))
    return tuple(found)


def header(fields: Sequence[tuple[str, str]], name: str, default: str = "") -> str:
    """The first header of this name, in lower case."""
    return next((value for known, value in fields if known == name), default)
