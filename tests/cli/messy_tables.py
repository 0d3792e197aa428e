"""Ten tables as people have them: exports of spreadsheets and survey tools, each with what `check` has to find."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Rows = list[list[str]]


@dataclass(frozen=True)
class Messy:
    """A file, what a person declares about it, what has to be found, and what the person then edits.

    Parameters
    ----------
    found : parts of problems, each with its status
    edits : texts of the configuration and what a person makes of them
    corrects : what only the table itself can be corrected for
    truth : what the private column holds, as `run` has to read it: shares by category, or the mean
    """

    name: str
    write: Callable[[Path], None]
    arguments: Sequence[str]
    found: Sequence[tuple[str, str]]
    truth: dict[str, float]
    edits: Sequence[tuple[str, str]] = field(default_factory=list)
    corrects: Callable[[Path], None] | None = None


def text(rows: Rows, separator: str = ",", end: str = "\n", quoting: int = csv.QUOTE_MINIMAL) -> str:
    """Rows as a spreadsheet writes them."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    return out.getvalue()


def people(n: int = 240) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ages, hours with a fraction, and answers yes (one in three) or no."""
    draw = np.random.default_rng(7)
    return draw.integers(18, 80, n), np.round(draw.random(n) * 40, 1), np.arange(n) % 3 == 0


AGES, HOURS, YES = people()
SHARE = float(YES.mean())


def comma(number: float) -> str:
    return f"{number}".replace(".", ",")


def german_excel(place: Path) -> None:
    """Semicolons, Windows-1252, decimal commas, CRLF, a title above, a total below."""
    rows = [["Umfrage Gesundheit 2024", "", "", ""], ["", "", "", ""], ["Lfd. Nr.", "Straße", "Stunden", "Raucher"]]
    for i, (hours, yes) in enumerate(zip(HOURS, YES, strict=True)):
        answer = ("Ja", "ja", "JA ")[i % 9 // 3] if yes else "Nein"
        rows.append([str(i + 1), ("Nord", "Süd", "Würzburger Str.")[i % 3], comma(hours), answer])
    rows.append(["Summe", "", comma(round(float(HOURS.sum()), 1)), ""])
    place.write_bytes(text(rows, ";", "\r\n").encode("cp1252"))


def french_excel(place: Path) -> None:
    """Semicolons, UTF-8 with a mark, thousands with narrow blanks, decimal commas, euros."""
    rows = [["identifiant", "région", "revenu mensuel"]]
    for i, age in enumerate(AGES):
        income = 1000 + 50 * int(age) + 0.5
        shown = f"{income:,.2f}".replace(",", "\u202f").replace(".", ",")
        rows.append([f"P{i:04d}", ("Île-de-France", "Bretagne")[i % 2], f"{shown} €"])
    place.write_bytes(text(rows, ";").encode("utf-8-sig"))


def two_headers(place: Path) -> None:
    """A survey tool: names, questions with line ends and commas, import codes, then people."""
    rows = [["ResponseId", "Q1", "Q2_age", "Q3"]]
    rows.append(["Response ID", "Do you smoke,\nat least sometimes?", "How old are you?", "Anything else?"])
    rows.append([f'{{"ImportId":"{code}"}}' for code in ("_recordId", "QID1", "QID2_TEXT", "QID3_TEXT")])
    for i, (age, yes) in enumerate(zip(AGES, YES, strict=True)):
        answer = "Yes" if yes else "No"
        said = f'I said "never",\nbut twice in {1990 + i % 30} it happened to me in town {i}' if i % 4 == 0 else ""
        rows.append([f"R_{i * 7919:08x}", answer, str(age), said])
    place.write_bytes(text(rows, quoting=csv.QUOTE_ALL).encode())


def utf16_tabs(place: Path) -> None:
    """A spreadsheet's "Unicode text": UTF-16 with tabs; answers in other spellings of one letter."""
    rows = [["id", "Größe", "Geschlecht"]]
    for i, yes in enumerate(YES):
        label = ("ma\u0308nnlich" if i % 2 else "männlich") if yes else "weiblich\u00a0" if i % 5 == 0 else "weiblich"
        rows.append([str(i), str(150 + i % 40), label])
    place.write_bytes(text(rows, "\t", "\r\n").encode("utf-16"))


def trailing_commas(place: Path) -> None:
    """Empty columns at the right, blank rows in between, and a name that is used twice."""
    lines = ["id,answer,answer,,,"]
    for i, yes in enumerate(YES):
        lines.append(f"{i},{'yes' if yes else 'no'},{i % 2},,,")
        if i % 50 == 49:
            lines.append(",,,,,")
    lines += [",,,,,"] * 20
    place.write_bytes(("\r\n".join(lines) + "\r\n").encode())


def percentages(place: Path) -> None:
    """Percent signs, English thousands, and texts among the numbers."""
    rows = [["user_id", "share of income saved", "income"]]
    for i, age in enumerate(AGES):
        rows.append([f"u{i}", "about a third" if i == 17 else f"{age % 60}%", f"{20_000 + 997 * i:,}"])
    place.write_text(text(rows))


def no_header(place: Path) -> None:
    """No names at all, and answers as numbers."""
    rows = [[str(1000 + i), str(age), str(1 + i % 5), "yes" if yes else "no"]
            for i, (age, yes) in enumerate(zip(AGES, YES, strict=True))]  # fmt: skip
    place.write_text(text(rows, ";"))


def mixed_dates(place: Path) -> None:
    """Dates in three ways, people twice (the same and otherwise), answers missing in three spellings."""
    rows = [["PatientID", "birthday", "answer", "phone"]]
    for i, yes in enumerate(YES):
        day, month, year = 1 + i % 28, 1 + i % 12, 1940 + i % 60
        date = (f"{year}-{month:02d}-{day:02d}", f"{day:02d}.{month:02d}.{year}", f"{month}/{day}/{year}")[i % 3]
        answer = {5: "NA", 6: "-", 7: ""}.get(i, "yes" if yes else "no")
        rows.append([f"{i:05d}", date, answer, f"+49 170 {1234567 + i}"])
    rows += [rows[10], [rows[11][0], rows[11][1], "yes", rows[11][3]]]
    place.write_text(text(rows))


def codes_and_outliers(place: Path) -> None:
    """A code for missing ages, an impossible one, and five-point answers."""
    rows = [["Respondent ID", "age", "trust"]]
    for i, age in enumerate(AGES):
        rows.append([str(50_000 + i), "999" if i in (3, 4) else "340" if i == 9 else str(age), str(1 + i % 5)])
    place.write_text(text(rows))


def stray_quotes(place: Path) -> None:
    """Inches in a field, a separator that nobody quoted, old line ends, and an odd encoding of a Mac."""
    lines = ["nr,größe,answer"]
    for i, yes in enumerate(YES):
        size = f"{5 + i % 2}' {i % 12}\"" if i != 20 else "6, oder so"
        lines.append(f"{i},{size},{'ja' if yes else 'nein'}")
    place.write_bytes(("\r".join(lines) + "\r").encode("mac_roman"))


def quote_a_comma(place: Path) -> None:
    place.write_bytes(place.read_bytes().replace(b"6, oder so", b'"6, oder so"'))


YES_NO = {"no": 1 - SHARE, "yes": SHARE}
TABLES = [
    Messy("german_excel", german_excel, ["--private", "Raucher", "--public", "Straße"],
          [("settled", "semicolons"), ("confirm", "windows-1252"), ("settled", "decimal"),
           ("confirm", "above the header: 2 rows"), ("confirm", "totals"), ("settled", "'JA '"),
           ("confirm", "categories were read")],
          {"Ja": SHARE, "Nein": 1 - SHARE}),
    Messy("french_excel", french_excel, ["--private", "revenu mensuel", "--lower", "0", "--upper", "10000"],
          [("settled", "semicolons"), ("settled", 'thousands = " "'), ("settled", "€")],
          {"mean": float((1000.5 + 50 * AGES).mean())}),
    Messy("two_headers", two_headers, ["--private", "Q1", "--categories", "Yes,No"],
          [("confirm", "below the names: 2 rows"), ("note", "free text")], {"Yes": SHARE, "No": 1 - SHARE}),
    Messy("utf16_tabs", utf16_tabs, ["--private", "Geschlecht", "--categories", "männlich,weiblich"],
          [("settled", "utf-16"), ("settled", "tabs"), ("settled", "spelled otherwise than")],
          {"männlich": SHARE, "weiblich": 1 - SHARE}),
    Messy("trailing_commas", trailing_commas, ["--private", "answer"],
          [("settled", "24 rows without"), ("settled", "repeats the names 'answer'"), ("settled", "have no name"),
           ("confirm", "categories")], YES_NO),
    Messy("percentages", percentages, ["--private", "share of income saved"],
          [("settled", "%"), ("stops", "1 value of a column of numbers is none"), ("confirm", "bounds [0, 100]")],
          {"mean": float(np.delete(AGES % 60, 17).sum() + 33) / len(AGES)},
          [("[randomize]", '[data.labels."share of income saved"]\n"about a third" = "33"\n\n[randomize]')]),
    Messy("no_header", no_header, ["--private", "column_4"],
          [("confirm", "no header"), ("confirm", "categories")], YES_NO),
    Messy("mixed_dates", mixed_dates, ["--private", "answer"],
          [("note", "several ways"), ("stops", "different values"), ("confirm", "missing"),
           ("note", "phone numbers")],
          {"no": 158 / 240, "yes": 79 / 240, "no answer": 3 / 240},
          [('person = "PatientID"', 'person = "PatientID"\nduplicates = "first"')]),
    Messy("codes_and_outliers", codes_and_outliers, ["--private", "age"],
          [("stops", "999"), ("stops", "outside the usual [0, 120]"), ("confirm", "bounds")],
          {"mean": float((AGES.sum() - AGES[[3, 4, 9]].sum() + 3 * 34) / len(AGES))},
          [("[randomize]", '[data.labels.age]\n"999" = "34"\n"340" = "34"\n\n[randomize]')]),
    Messy("stray_quotes", stray_quotes, ["--private", "answer"],
          [("confirm", "mac_roman"), ("stops", "1 row has more fields"), ("confirm", "categories")],
          {"ja": SHARE, "nein": 1 - SHARE}, corrects=quote_a_comma),
]  # fmt: skip
