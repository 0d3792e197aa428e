"""A table is read as [data] says that it is written, and means the same however that is."""

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.job.surveys import numeric, rehearsal, release, survey

import dovetail as dt
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, DataError
from dovetail.job.build import build_collection
from dovetail.job.config import parse_config
from dovetail.table.data_section import DataSection, Spellings
from dovetail.table.reader import read_survey, read_table
from dovetail.table.spelling import read_numbers

GERMAN = """Umfrage 2024;;;

Nr;Geschlecht;Stunden;Rauchen
Nummer;Wie?;h;Rauchen Sie?
1;männlich;1.234,5;Ja
2;weiblich; 3,25 ;ja

3;weiblich;k. A.;Nein;
4;weiblich;- 7 h;JA
Summe;;1.237,75;
"""


def german(tmp_path: Path, **changes: Any) -> DataSection:
    (tmp_path / "german.csv").write_bytes(GERMAN.replace("\n", "\r\n").encode("cp1252"))
    said: dict[str, Any] = {
        "path": str(tmp_path / "german.csv"), "person": "Nr", "private": "Rauchen", "public": ["Geschlecht"],
        "separator": ";", "encoding": "windows-1252", "skip_rows": 2, "header_rows": 2, "footer_rows": 1,
        "categories": ["ja", "nein"], "labels": {"Rauchen": {"Ja": "ja", "JA": "ja", "Nein": "nein"}},
    }  # fmt: skip
    return DataSection(**said | changes)


def test_a_german_export_is_read_as_it_is_written(tmp_path: Path, rng: Entropy) -> None:
    read = read_survey(german(tmp_path), rng)
    assert dict(zip(read.people["Nr"], read.values.tolist(), strict=True)) == {"1": 0, "2": 0, "3": 1, "4": 0}
    assert set(read.public["Geschlecht"]) == {"männlich", "weiblich"}


def test_numbers_with_decimal_commas_thousands_and_units_are_numbers(tmp_path: Path, rng: Entropy) -> None:
    said = german(
        tmp_path, private="Stunden", categories=None, labels={"Stunden": {"k. A.": "40", "- 7 h": "7 h"}},
        decimal=",", thousands=".", units=["h"], lower=0.0, upper=2000.0,
    )  # fmt: skip
    assert sorted(read_survey(said, rng).values) == [3.25, 7.0, 40.0, 1234.5]


@pytest.mark.parametrize(
    ("text", "how", "value"),
    [
        ("1.234,5", {"decimal": ",", "thousands": "."}, 1234.5),
        ("1.234", {"decimal": ","}, None),  # a thousand or one and a bit: nobody guesses
        ("1,234", {}, None),
        ("1,234", {"thousands": ","}, 1234.0),
        ("12,34", {"thousands": ","}, None),
        ("1\u202f234,5", {"decimal": ",", "thousands": " "}, 1234.5),
        ("1\u2019234", {"thousands": "'"}, 1234.0),
        ("45 %", {"units": ["%"]}, 45.0),
        ("-€3.5", {"units": ["€"]}, -3.5),
        ("\u22123", {}, -3.0),
        ("1e3", {}, 1000.0),
        ("", {}, None),
        ("45", {"decimal": ","}, 45.0),
        (".5", {}, 0.5),
        ("5.", {}, 5.0),
        ("nan", {}, None),
    ],
)
def test_a_number_is_read_in_its_spelling_or_not_at_all(text: str, how: dict[str, Any], value: float | None) -> None:
    assert read_numbers(pl.Series([text]), Spellings(**how)).to_list() == [value]


def test_missing_values_are_spelled_as_declared_and_blanks_always_are(rng: Entropy) -> None:
    table = pl.DataFrame({"secret": ["yes", "no", " NA ", "", "  ", "?"], "code": [1, 2, -99, 3, 4, 5]})
    asked = {"private": "secret", "missing": "none", "categories": ["no", "yes", "none"], "public": ["code"]}
    with pytest.raises(DataError, match=r"public column 'code': 1 value is missing \(at row 3\)"):
        read_survey(DataSection(**asked, missing_spellings=["NA", "?", "-99"]), rng, table=table)
    said = DataSection(**asked, missing_spellings=["NA", "?", "-99"], labels={"code": {"": "0"}})
    assert sorted(read_survey(said, rng, table=table).values) == [0, 1, 2, 2, 2, 2]


def test_labels_are_mapped_once_and_an_empty_one_is_no_value(rng: Entropy) -> None:
    table = pl.DataFrame({"secret": ["a", "b", "c", "999"]})
    labels = {"secret": {"a": "b", "b": "c", "999": ""}}
    said = DataSection(private="secret", missing="b", categories=["b", "c"], labels=labels)
    assert sorted(read_survey(said, rng, table=table).values) == [0, 0, 1, 1]


@pytest.mark.parametrize(("which", "values"), [("first", [0, 1]), ("last", [1, 1])])
def test_of_a_person_in_two_rows_the_first_or_last_is_kept(which: Any, values: list[int], rng: Entropy) -> None:
    table = pl.DataFrame({"id": [1, 1, 2], "secret": ["no", "yes", "yes"]})
    said = DataSection(person="id", private="secret", categories=["no", "yes"], duplicates=which)
    assert sorted(read_survey(said, rng, table=table).values) == values


UNREADABLE = {
    "semicolons": (b"id;secret\n1;no\n", {}, r'is separated by semicolons: set separator = ";" in \[data\]'),
    "Latin letters": ("id,secret\n1,jä\n".encode("cp1252"), {}, r"is not UTF-8 text \(byte 13\); .*dovetail check"),
    "UTF-16": ("id,secret\n1,no\n".encode("utf-16"), {}, r'set encoding = "utf-16"'),
    "a wrong encoding": ("id,secret\n1,j\xfc\n".encode(), {"encoding": "ascii"}, "is not ascii text"),
    "twice": (b"id,secret,id\n1,no,2\n", {}, "names column 'id' 2 times; name the columns anew with `columns`"),
    "too few names": (b"id,secret,id\n1,no,2\n", {"columns": ["a"]}, "has 3 columns, and `columns` .* names 1"),
    "long rows": (
        b"id,secret\n1,no,x\n2,no\n3,no,x,y\n",
        {},
        r"2 rows have more fields .*\(rows 1 with 3",
    ),
    "an open quote": (b'id,secret\n1,"no\n' + b"2,no\n" * 200, {}, "a quote in row 1 is never closed"),
    "an open quote in a short file": (b'id,secret\n1,no\n2,"yes\n3,no\n', {}, "a quote in row 2 is never closed"),
    "an open quote before other columns": (b'id,secret,x\n1,no,a\n2,"yes,b\n3,no,c', {}, "a quote in row 2 is never"),
    "a workbook": (b"PK\x03\x04\x14\0\x06\0[Content_Types].xml", {}, "an Excel workbook .*; save the sheet as CSV"),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", {}, "is an Excel workbook, not text"),
    "a compressed file": (gzip.compress(b"id,secret\n1,no\n"), {}, "is compressed by gzip; unpack it first"),
    "a Parquet file": (b"PAR1\x15\x04\x15", {}, "is a Parquet file; name it .parquet"),
    "header only": (b"id,secret\n", {"header_rows": 2}, "has no rows"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_says_what_to_do(case: str, tmp_path: Path) -> None:
    content, said, message = UNREADABLE[case]
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(str(tmp_path / "t.csv"), written=DataSection(private="secret", **said))


READABLE = {
    "trailing separators": b"id,secret\n1,no,\n2,yes,\n",
    "a blank name": b"id,secret,\n1,no,\n2,yes,\n",
    "stray quotes": b'id,secret,size\n1,no,5" pipe\n2,yes,4" pipe\n',
    "a mark and returns": b"\xef\xbb\xbfid,secret\r\n1,no\r\n2,yes\r\n\r\n",
    "returns alone": b"id,secret\r1,no\r2,yes\r",
    "a line end in the last field": b'id,secret,x\n1,no,\n2,yes,"a\nb"\n',
    "a line end before the last field": b'id,secret,x\n1,no,\n2,yes,"a\nb",\n',
    "a name like a mark": b"PK,id,secret\n1,1,no\n2,2,yes\n",
    "blank rows": b"id,secret,x\n1,no,\n,,\n\n2,yes,\n,,\n",
    "a line in a field": b'id,secret,x\n1,no,"a\nb"\n2,yes,"c"\n',
    "short rows": b"id,secret,x\n1,no\n2,yes,3\n",
    "a break in the header": b'id,secret,"a\nb"\n1,no,1\n2,yes,2\n',
}


@pytest.mark.parametrize("case", READABLE)
def test_what_is_meant_clearly_is_read(case: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(READABLE[case])
    table = read_table(str(tmp_path / "t.csv"))
    assert table.select("id", "secret").rows() == [("1", "no"), ("2", "yes")]


def test_names_may_be_given_where_the_header_is_missing_or_wrong(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"1,no\n2,yes\n")
    said = DataSection(private="secret", header_rows=0, columns=["id", "secret"])
    assert read_table(str(tmp_path / "t.csv"), written=said).rows(named=True)[0] == {"id": "1", "secret": "no"}


def test_settings_of_text_files_are_refused_for_parquet(tmp_path: Path) -> None:
    survey().write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"`separator` in .* is for text files"):
        read_table(str(tmp_path / "t.parquet"), written=DataSection(private="secret", separator=";"))


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a long separator": ({"separator": ";;"}, "separator"),
    "quotes as separators": ({"separator": '"'}, "two different letters"),
    "no encoding": ({"encoding": "utf-99"}, "must be a text encoding"),
    "an encoding of bytes": ({"encoding": "hex"}, "must be a text encoding"),
    "equal marks": ({"decimal": ",", "thousands": ","}, "`decimal` and `thousands` must differ"),
    "a digit as unit": ({"units": ["1"]}, "`units` must be"),
    "labels of nobody": ({"labels": {"sex": {"a": "b"}}}, "column 'sex' has no role"),
    "an undeclared label": ({"labels": {"secret": {"Yes": "yess"}}}, "'yess' is not among .*did you mean 'yes'"),
    "duplicates of nobody": ({"person": None, "duplicates": "last"}, "name their column as `person`"),
    "an unknown key": ({"unconfirmed": ["categorys"]}, "`unconfirmed` must name keys"),
    "nothing private": ({"private": ""}, "`private` must name the column"),
    "names twice": ({"columns": ["a", "a"]}, "`columns` must be distinct"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_spelling_gets_one_clear_line(mistake: str) -> None:
    changes, message = MISTAKES[mistake]
    with pytest.raises(ConfigError, match=message):
        parse_config(rehearsal(data=changes))


def test_a_release_refuses_what_nobody_has_confirmed() -> None:
    with pytest.raises(ConfigError, match=r"a release declares `categories` .* then delete `unconfirmed`"):
        parse_config(release(data={"unconfirmed": ["categories"]}))


@pytest.mark.exhaust
def test_a_rehearsal_says_what_nobody_has_confirmed() -> None:
    for base, what in ((rehearsal(), "categories"), (numeric(rehearsal(estimate={"by": []})), "bounds")):
        base["data"] = {**base["data"], "unconfirmed": ["lower" if what == "bounds" else what]}
        report = dt.run({**base, "attack": {"trials": 2}}, table=survey())
        assumed = " ".join(report.document()["assumptions"])
        assert f"the {what} were inferred" in assumed and "not read off" not in assumed


def test_no_report_repeats_how_values_are_spelled() -> None:
    said = {"labels": {"secret": {"JA!": "yes"}}, "missing_spellings": ["weiss nicht"], "unconfirmed": ["categories"]}
    document = dt.run({**rehearsal(data=said), "attack": {"trials": 2}}, table=survey()).document()
    assert "JA!" not in str(document) and "weiss nicht" not in str(document)


def test_one_content_is_one_release_however_it_is_spelled(rng: Entropy) -> None:
    plain, table = parse_config(release()), survey()
    shouted = table.with_columns(pl.col("secret").str.to_uppercase())
    said = parse_config(release(data={"labels": {"secret": {"NO": "no", "YES": "yes"}}}))
    asked = build_collection(plain, rng, table=table), build_collection(said, rng, table=shouted)
    assert asked[0].terms() == asked[1].terms()
    assert asked[0].survey.identity.sort("id").equals(asked[1].survey.identity.sort("id"))
