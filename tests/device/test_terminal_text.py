"""Texts of strangers: nothing in them moves a cursor, hides or reorders letters."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail_protocol.terminal_text import printable

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@given(st.text())
def test_what_is_printed_has_one_line_and_no_control_format_or_separator(text: str) -> None:
    shown = printable(text)
    assert {unicodedata.category(letter) for letter in shown if letter not in "\u200c\u200d"}.isdisjoint(
        {"Cc", "Cf", "Cs", "Zl", "Zp"}
    )
    assert len(shown.splitlines()) <= 1 and printable(shown) == shown


@pytest.mark.parametrize("letter", [*BIDI, *map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "\u2028", "\ufeff"])
def test_each_character_that_works_on_a_terminal_is_written_out(letter: str) -> None:
    assert printable(f"a{letter}b") not in (f"a{letter}b", "ab") and letter not in printable(letter)


@pytest.mark.exhaust
def test_every_other_letter_stays_as_it_is() -> None:
    letters = "".join(chr(code) for code in range(sys.maxunicode + 1))
    kept = "".join(letter for letter in letters if unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    assert printable(kept) == kept and printable("سلام\u200cها 👩\u200d🔬 é") == "سلام\u200cها 👩\u200d🔬 é"
