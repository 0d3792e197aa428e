"""Three tables as people get them, each from the first command to a report: what is declared, and the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cli.messy_tables import text

# spellings of yes and no that a hundred typists leave behind; the first of each is the declared one
JA = ("ja", "Ja", "JA", "ja ", " ja", "J", "j", "yes", "Yes", "y", "true", "TRUE", "wahr", "1", "x", "X", "jawohl",
      "ja!", "Ja.")  # fmt: skip
NEIN = ("nein", "Nein", "NEIN", "nein ", "n", "N", "no", "No", "false", "FALSE", "falsch", "0", "Nein.", "nö", "nee",
        "nein!", "\tnein", "nope")  # fmt: skip
CITIES = ("Köln", "Nürnberg", "Berlin", "Lübeck")


@dataclass(frozen=True)
class Ugly:
    """A table, its plan, what is declared about it, and the fixes that a person chooses, by their words.

    Parameters
    ----------
    truth : what the report has to find: shares by label, or the mean
    n : people who are counted
    """

    name: str
    write: Callable[[Path], None]
    plan: Sequence[str]
    arguments: Sequence[str]
    chosen: Sequence[str]
    truth: dict[str, float]
    n: int


def umfrage(place: Path, n: int = 600) -> None:
    """A mark at the start, 37 spellings, two encodings, doubled people, gaps, dates, free text, a codebook row."""
    rows = [
        ["Teilnehmer-Nr", "Alter", 'Stadt "Ort" (PLZ)', "Rauchen Sie?  ", "Einkommen, netto", "Datum", "Bemerkung"]
    ]
    rows.append(["", "in Jahren", "", "ja/nein", "EUR", "Tag", "frei"])
    for i in range(n):
        answer = JA[i // 3 % len(JA)] if i % 3 == 0 else NEIN[i // 3 % len(NEIN)]
        answer = ("", "k.A.", "-")[i % 3] if i % 50 == 0 else "vielleicht" if i % 50 == 1 else answer
        date = (f"{1 + i % 28:02d}.03.2024", f"2024-03-{1 + i % 28:02d}")[i % 2]
        said = "Gern wieder; aber es war zu lang, finde ich, und die Fragen waren seltsam" if i % 4 == 0 else ""
        city = f"{CITIES[i % 4]} ({i % 3})"
        rows.append([f"T{i:04d}", str(18 + i % 60), city, answer, f"{1 + i % 3}.{i % 900 + 100},50", date, said])
    rows += [rows[10], [*rows[11][:3], "nein", *rows[11][4:]]]
    lines = text(rows, ";", "\r\n").split("\r\n")
    place.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(
        line.encode("cp1252" if number % 40 == 7 else "utf-8") for number, line in enumerate(lines)
    ))  # fmt: skip


def umfrage_truth(n: int = 600) -> dict[str, float]:
    """Those who said nothing or "vielleicht" have given no answer."""
    said = ["no answer" if i % 50 < 2 else "ja" if i % 3 == 0 else "nein" for i in range(n)]
    return {label: said.count(label) / n for label in ("ja", "nein", "no answer")}


def clinic(place: Path, n: int = 500) -> None:
    """English: a title, doubled names of columns, a code for no answer, typing errors, gaps."""
    rows = [["Ward survey, exported 2024-05-01"], [], ["Patient ID", "hours of sleep", "ward", "ward", "note"]]
    for i in range(n):
        hours = "" if i % 25 == 0 else "99" if i % 25 == 1 else "77.5" if i == 77 else str(4 + i % 9 / 2)
        rows.append([f"p{i:05d}", hours, "ABC"[i % 3], str(i % 2), ""])
    place.write_text(text(rows))


def clinic_truth(n: int = 500) -> dict[str, float]:
    """The impossible number counts as 24 hours."""
    kept = [24.0 if i == 77 else 4 + i % 9 / 2 for i in range(n) if i % 25 > 1]
    return {"mean": sum(kept) / len(kept)}


def panel(place: Path, n: int = 450) -> None:
    """From a survey tool: names, questions, codes of import; everything quoted; other spellings of answers."""
    rows = [["ResponseId", 'Q1 \\ "satisfied"', "region"], ["Response ID", "How satisfied are you?", "Where?"]]
    rows.append(['{"ImportId":"_recordId"}', '{"ImportId":"QID1"}', '{"ImportId":"QID2"}'])
    answers = ("low", "Low ", "middle", "MIDDLE", "high", "high.")
    for i in range(n):
        rows.append(
            [f"R_{i * 7919:08x}", answers[i % 6] if i % 90 else "don't know", ("North", "south ", "South")[i % 3]]
        )
    place.write_text(text(rows, quoting=1))


def panel_truth(n: int = 450) -> dict[str, float]:
    """Those who do not know are left out."""
    said = [("low", "middle", "high")[i % 6 // 2] for i in range(n) if i % 90]
    return {label: said.count(label) / len(said) for label in ("low", "middle", "high")}


FREQUENCY = ("--question", "frequency", "--error", "0.1", "--epsilon", "1")
TABLES = [
    Ugly("umfrage", umfrage, [*FREQUENCY, "--k", "2"],
         ["--private", "Rauchen Sie?", "--person", "Teilnehmer-Nr", "--categories", "ja,nein",
          "--public", '"Stadt ""Ort"" (PLZ)"'],
         ["count them as no answer", "keep the first row of each"], umfrage_truth(), 600),
    Ugly("clinic", clinic, ["--question", "mean", "--lower", "0", "--upper", "24", "--n", "500", "--epsilon", "1"],
         ["--private", "hours of sleep", "--person", "Patient ID"],
         ["count it as no answer and leave these people out", "count them as the nearest bound"], clinic_truth(),
         460),
    Ugly("panel", panel, [*FREQUENCY, "--k", "3"],
         ["--private", 'Q1 \\ "satisfied"', "--categories", "low,middle,high", "--public", "region"],
         ["count them as no answer"], panel_truth(), 445),
]  # fmt: skip
