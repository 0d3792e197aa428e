"""Texts of strangers on a terminal: in one line, with every character visible and in the order in which it stands."""

import unicodedata

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # controls, formats such as bidi overrides, halves of pairs, line ends
_JOINERS = "\u200c\u200d"  # some scripts need them to spell, and they move nothing


def printable(text: str) -> str:
    r"""The text with what moves the cursor, hides letters or reorders them written out as escapes.

    >>> print(printable("safe\x1b[2J\u202eevil\n"))
    safe\x1b[2J\u202eevil\n
    """
    return "".join(letter if is_harmless(letter) else letter.encode("unicode_escape").decode() for letter in text)


def is_harmless(letter: str) -> bool:
    """True if a terminal only draws this letter, in its place."""
    return letter in _JOINERS or unicodedata.category(letter) not in _HIDDEN
