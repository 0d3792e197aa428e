"""Which encoding a text file has, and how sure that is."""

from __future__ import annotations

import re
from pathlib import Path

from dovetail.core.errors import DataError, MissingExtraError
from dovetail.core.extras import require

_WESTERN = ("windows-1252", "windows-1250", "mac_roman", "cp850")  # the likelier ones first
_SAMPLE = 1 << 18
_FEW = 0.45  # in alphabets of Latin letters fewer of the letters than this have marks


def find_encoding(place: Path) -> tuple[str, bool]:
    """The encoding as [data] names it, and whether that is certain.

    Marks at the start and well-formed UTF-8 are certain. Otherwise the code page of Windows, Mac or DOS is taken in
    which marked letters stand where letters stand; other alphabets are guessed by charset-normalizer.

    Raises
    ------
    DataError
        When it is none that is known; the hint names the extra that knows more.
    """
    content = place.read_bytes()
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", True
    if content[:4096].count(b"\0") > len(content[:4096]) // 4:
        return ("utf-16-le" if content[1:2] == b"\0" else "utf-16-be"), True
    try:
        content.decode("utf-8")
        return "utf-8", True
    except UnicodeDecodeError as error:
        first = error.start
    sample = _marked_lines(content[max(0, first - 200) :])
    if _share_of_marks(sample) < _FEW:
        readable = [name for name in _WESTERN if _decodes(content, name)]
        if readable:
            return max(readable, key=lambda name: plausibility(sample.decode(name, "replace"))), False
    return _guess(sample, place), False


def plausibility(text: str) -> float:
    """The share of letters beyond ASCII that are letters as the words around them have them: lower between lower."""
    beyond = re.findall(r"(?<!\w)[^\W\d_]*[^\x00-\x7f][^\W\d_]*", text)
    odd = len(re.findall(r"[^\W\d_][^\w\s.,;:!?'’\-()\"/%€£°\x00-\x7f]|[a-zà-ÿ][A-ZÀ-ÖØ-ÞŠŒŽŸ]", text))
    stray = len(re.findall(r"[ªº¹²³¼½¾µ¿¡¤¦§¨¬¯´¸¢¥®±÷×ƒˆ˜†‡‰]", text))
    return -(odd + stray) / max(len(beyond), 1)


def _marked_lines(content: bytes) -> bytes:
    lines = [line for line in content[: _SAMPLE * 8].splitlines() if not line.isascii()]
    return b"\n".join(lines)[:_SAMPLE]


def _share_of_marks(sample: bytes) -> float:
    beyond, letters = sum(byte > 127 for byte in sample), len(re.findall(rb"[A-Za-z]", sample))
    return beyond / max(beyond + letters, 1)


def _decodes(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _guess(sample: bytes, place: Path) -> str:
    advice = f"{place}: is neither UTF-8 nor of a Western code page; save it as UTF-8, or name its `encoding`"
    try:
        found = require("charset_normalizer", extra="encodings").from_bytes(sample).best()
    except MissingExtraError as error:
        raise DataError(f"{advice} with --text-encoding. {error}") from None
    if found is None:
        raise DataError(f"{advice} with --text-encoding.")
    return str(found.encoding)
