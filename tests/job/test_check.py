"""What is found in a table is what is there: encodings, layouts, spellings of numbers, missing values, people."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, DataError
from dovetail.table import columns as number_style
from dovetail.table.check import TableCheck, check_table
from dovetail.table.columns import Declared, Kind, Status
from dovetail.table.data_section import DataSection, parse_section
from dovetail.table.domain import least_noise, public_bounds, suggested_bounds
from dovetail.table.layout import find_encoding, find_layout
from dovetail.table.reader import read_survey


def looked(tmp_path: Path, table: dict[str, Any] | str, **asked: Any) -> TableCheck:
    """The check of a table."""
    place = tmp_path / ("t.csv" if isinstance(table, str) else "t.parquet")
    if isinstance(table, str):
        place.write_text(table)
    else:
        pl.DataFrame(table).write_parquet(place)
    return check_table(place, Declared(**asked))


def texts(found: TableCheck, status: Status) -> str:
    return "\n".join(f"{one.where}: {one.what}" for one in found.problems if one.status == status)


WORDS = {
    "windows-1252": "Straße, Übung, français, été, œuvre, mañana, 5 €",
    "windows-1250": "Łódź, odpowiedź, wcale się, źdźbło, święto",
    "mac_roman": "Straße, Übung, français, été, größer",
    "cp850": "Straße, Übung, größer, Köln, Görlitz",
    "utf-8": "Straße, 東京, ответ",
    "utf-16": "Straße, 東京",
    "utf-16-le": "some plain words here",
}


@pytest.mark.parametrize("encoding", WORDS)
def test_the_encoding_is_the_one_in_which_marked_letters_stand_among_letters(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes((WORDS[encoding] + "\nplain\n").encode(encoding) * 20)
    assert find_encoding(tmp_path / "t.csv") == (encoding, encoding.startswith("utf"))


def test_lines_in_another_encoding_are_named_and_the_rest_is_read_as_it_is(tmp_path: Path) -> None:
    lines = [f"{row};{'Köln' if row % 3 else 'Nürnberg'};{row % 7}" for row in range(60)]
    stray = {10: "cp1252", 21: "cp1252"}
    content = b"\xef\xbb\xbfid;Ort;Wert\r\n"
    content += b"".join(line.encode(stray.get(row, "utf-8")) + b"\r\n" for row, line in enumerate(lines))
    (tmp_path / "t.csv").write_bytes(content)
    found = check_table(tmp_path / "t.csv", Declared(private="Ort"))
    (told,) = [one for one in found.problems if one.where == "file, lines 12, 23"]
    assert told.what.startswith("2 lines of a UTF-8 file are not UTF-8; read as windows-1252")
    assert "'Köln'" in told.what and "'Nürnberg'" in told.what and told.status == Status.CONFIRM
    assert found.settings["fallback_encoding"] == "windows-1252" and "encoding" not in found.settings
    assert found.settings["categories"] == ["Köln", "Nürnberg"]
    written = parse_section(
        DataSection, {**found.settings, "path": str(tmp_path / "t.csv"), "private": "Ort"}, name="t"
    )
    assert read_survey(written, simulation(1)).categories == ("Köln", "Nürnberg")
    with pytest.raises(ConfigError, match="`fallback_encoding` is for lines that are not UTF-8"):
        parse_section(DataSection, {"private": "a", "encoding": "cp850", "fallback_encoding": "cp1252"}, name="t")


def test_a_few_lines_that_are_utf8_by_chance_leave_a_file_in_its_own_encoding(tmp_path: Path) -> None:
    content = "".join(f"{row},Straße\n" for row in range(9)).encode("cp1252") + "9,ß\n".encode()
    (tmp_path / "t.csv").write_bytes(content)
    assert find_encoding(tmp_path / "t.csv") == ("windows-1252", False)


def test_other_alphabets_are_guessed_or_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("charset_normalizer")
    text = "номер;ответ;город\n" + "1;да;Москва\n2;нет;Казань\n3;может быть;Санкт-Петербург\n" * 20
    (tmp_path / "t.csv").write_bytes(text.encode("cp1251"))
    assert find_encoding(tmp_path / "t.csv") == ("cp1251", False)
    monkeypatch.setitem(__import__("sys").modules, "charset_normalizer", None)
    with pytest.raises(DataError, match=r"--text-encoding.*pip install .*\[encodings\]"):
        find_encoding(tmp_path / "t.csv")


PEOPLE = "".join(f"{i};{i % 7},5;{'ja' if i % 2 else 'nein'}\n" for i in range(50))
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("id,a\n1,x\n2,y\n", {}),
    "decimal commas": ("id;hours;a\n" + PEOPLE, {"separator": ";"}),
    "only numbers with commas": ("a;b\n1,5;2,5\n3,5;4,5\n", {"separator": ";"}),
    "texts with commas": ("id;name\n" + "1;Smith, John\n2;Doe, Jane\n" * 9, {"separator": ";"}),
    "bars": ("a|b\n1|2\n3|4\n", {"separator": "|"}),
    "said by Excel": ("sep=;\na;b\n1;2\n3;4\n", {"separator": ";", "skip_rows": 1}),
    "single quotes": ("a,b\n'x, y','z'\n'u, v','w'\n", {"quote": "'"}),
    "a title": ("Survey of 2024\n\nid;hours;a\n" + PEOPLE, {"separator": ";", "skip_rows": 2}),
    "units below": ("id;hours;a\n;h;\n" + PEOPLE, {"separator": ";", "header_rows": 2}),
    "questions below": ("x,y\nWhy?,How?\n" + "a,b\nc,d\n" * 9, {"header_rows": 2}),
    "no header": (PEOPLE, {"separator": ";", "header_rows": 0, "columns": ["column_1", "column_2", "column_3"]}),
    "years as names": ("2019,2020\n5,6\n7,8\n9,1\n2,3\n4,5\n6,7\n8,9\n", {}),
    "a total": ("id;hours;a\n" + PEOPLE + "Total;170,5;\n;;\n", {"separator": ";", "footer_rows": 1}),
    "one column": ("answer\nyes\nno\n", {}),
    "a number in front": ('"a","b"\n"1",5,"x"\n"2",6,"y"\n', {"columns": ["row", "a", "b"]}),
    "blanks in names": (" id , a\n1,2\n3,4\n", {"columns": ["id", "a"]}),
}


@pytest.mark.parametrize("case", LAYOUTS)
def test_the_layout_of_a_file_is_found(case: str, tmp_path: Path) -> None:
    text, said = LAYOUTS[case]
    (tmp_path / "t.csv").write_text(text)
    assert find_layout(tmp_path / "t.csv", "utf-8").written.model_dump(exclude_defaults=True) == said


NUMBERS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "plain": (["1", "2.5", "-3"], {}),
    "commas": (["1,5", "2,25", "3"], {"decimal": ","}),
    "both": (["1.234,5", "22,1", "3"], {"decimal": ",", "thousands": "."}),
    "English": (["1,234.5", "22.1", "3"], {"thousands": ","}),
    "thousands alone": (["1,234", "12,345", "7"], {"thousands": ","}),
    "Swiss": (["1'234.50", "22.10"], {"thousands": "'"}),
    "money": (["€1", "€2.50", "€3"], {"units": ["€"]}),
    "per cent": (["1 %", "2.5%", "3 %"], {"units": ["%"]}),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_the_spelling_of_numbers_is_found(case: str, tmp_path: Path) -> None:
    spelled, said = NUMBERS[case]
    found = looked(tmp_path, {"n": spelled * 10})
    assert found.settings == said
    assert found.columns["n"].kind == Kind.NUMBER and found.columns["n"].numbers.len() == len(spelled)


def test_of_columns_that_spell_numbers_in_different_ways_the_private_one_is_believed(tmp_path: Path) -> None:
    table = {"a": ["1.5", "2.25"] * 20, "b": ["1,5", "2,25"] * 20, "c": ["7.5", "8.25"] * 20}
    assert looked(tmp_path, table).settings == {}
    found = looked(tmp_path, table, private="b", lower=0.0, upper=9.0)
    assert found.settings["decimal"] == ","
    assert "column 'a': numbers are spelled otherwise" in texts(found, Status.NOTE)


def test_missing_values_are_found_in_every_spelling(tmp_path: Path) -> None:
    answers = ["yes", "no", "NA", "n/a", "?", "-", "", "  ", "K. A.", "#N/A", None] * 5
    found = looked(tmp_path, {"answer": answers}, private="answer")
    assert set(found.settings["missing_spellings"]) == {"NA", "n/a", "?", "-", "K. A.", "#N/A"}
    assert "45 of 55 values are missing" in texts(found, Status.CONFIRM)
    assert found.settings["categories"] == ["no", "yes", "no answer"] and found.settings["missing"] == "no answer"
    assert found.unconfirmed == ("missing", "categories")


def test_what_may_be_an_answer_is_none_of_the_missing_values(tmp_path: Path) -> None:
    found = looked(tmp_path, {"answer": ["none", "unknown", "ND", "0", "*"] * 9}, private="answer")
    assert "missing_spellings" not in found.settings


def test_labels_that_differ_in_blanks_case_or_form_are_one(tmp_path: Path) -> None:
    table = {"answer": ["Yes"] * 30 + ["yes ", "YES", "y\u200bes", "\uff39es", "No", "no."] * 2}
    found = looked(tmp_path, table, private="answer")
    assert found.settings["labels"]["answer"].keys() == {"yes ", "YES", "y\u200bes", "\uff39es", "no."}
    assert found.settings["categories"] == ["No", "Yes"]
    declared = looked(tmp_path, table, private="answer", categories=("yes", "no"))
    assert declared.settings["labels"]["answer"]["Yes"] == "yes" and declared.unconfirmed == ()


def test_undeclared_answers_stop_a_run(tmp_path: Path) -> None:
    found = looked(tmp_path, {"answer": ["yes", "no", "maybe"] * 9}, private="answer", categories=("yes", "no"))
    assert found.stops and "9 values are not among the declared categories: 'maybe'" in texts(found, Status.STOPS)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("id", [str(i) for i in range(40)], Kind.IDENTIFIER),
        ("income", [str(i * 37) for i in range(40)], Kind.NUMBER),
        ("mail", [f"p{i}@example.org" for i in range(40)], Kind.EMAIL),
        ("tel", [f"0170/12345{i:02}" for i in range(40)], Kind.PHONE),
        ("when", [f"{1 + i % 28}.{1 + i % 12}.1990" for i in range(40)], Kind.DATE),
        ("code", [f"x{i}y" for i in range(40)], Kind.IDENTIFIER),
        ("story", [f"in the year {i} we went to see the house" for i in range(40)], Kind.TEXT),
        ("town", ["Paris", "Lyon"] * 20, Kind.CATEGORY),
        ("nothing", [""] * 40, Kind.EMPTY),
    ],
)
def test_a_column_is_what_most_of_its_values_are(name: str, values: list[str], kind: Kind, tmp_path: Path) -> None:
    found = looked(tmp_path, {name: values, "other": ["a", "b"] * 20}, public=(name,))
    assert found.columns[name].kind == kind
    direct = kind in (Kind.EMAIL, Kind.PHONE, Kind.TEXT, Kind.IDENTIFIER)
    assert found.stops == direct


def test_an_address_among_answers_is_counted_and_not_shown(tmp_path: Path) -> None:
    found = looked(tmp_path, {"answer": ["a", "b"] * 30 + ["me@example.org"]})
    assert texts(found, Status.NOTE) == "column 'answer': 1 value looks like e-mail addresses"


@pytest.mark.parametrize("name", ["PersNr", "clientNo", "Kundennummer", "Lfd. Nr."])
def test_a_column_is_found_that_is_called_a_number_of_people(name: str, tmp_path: Path) -> None:
    rows = "".join(f"{place % 27},{'yes' if place % 3 else 'no'}\n" for place in range(30))
    assert looked(tmp_path, f"{name},answer\n{rows}", private="answer").settings["duplicates"] == "first"


def test_people_and_rows_that_stand_twice_are_found(tmp_path: Path) -> None:
    same = {"id": [1, 1, 2, *range(3, 40)], "a": ["x", "x", *["y"] * 38]}
    assert looked(tmp_path, same, person="id").settings["duplicates"] == "first"
    other = same | {"a": ["x", "z", *["y"] * 38]}
    assert "1 person stands in more than one row, with different values" in texts(
        looked(tmp_path, other, person="id"), Status.STOPS
    )
    rows = {"a": [f"{i * 7919 % 9973}" for i in [*range(200), 5]], "b": [f"{i * 31 % 997}" for i in [*range(200), 5]]}
    rows["c"] = [*rows["b"][::-1][1:], "x"]
    rows["c"][-1] = rows["c"][5]
    assert "2 rows are equal" in texts(looked(tmp_path, rows), Status.NOTE)
    assert "rows are equal" not in texts(looked(tmp_path, {"a": ["x", "y"] * 9, "b": ["u", "v"] * 9}), Status.NOTE)


def test_rare_and_too_many_categories_are_measured_against_the_noise(tmp_path: Path) -> None:
    rare = {"a": ["x"] * 500 + ["y"] * 490 + ["z"] * 10}
    assert "1 of 3 categories are rarer than the error" in texts(looked(tmp_path, rare, private="a"), Status.NOTE)
    many = {"a": [f"c{i % 40}" for i in range(400)]}
    assert "has 40 categories" in texts(looked(tmp_path, many, private="a"), Status.NOTE)
    fine = looked(tmp_path, {"a": ["x", "y"] * 500}, private="a", epsilon=4.0)
    assert texts(fine, Status.NOTE) == "" and fine.noise == least_noise(1000, 4.0, k=2)


def test_numbers_outside_their_bounds_stop_a_run_and_are_not_shown(tmp_path: Path) -> None:
    table = {"hours": [float(i % 40) for i in range(100)] + [777.25]}
    declared = texts(looked(tmp_path, table, private="hours", lower=0.0, upper=168.0), Status.STOPS)
    assert declared == "column 'hours', row 101: 1 number lies outside the declared [0, 168]"
    aged = looked(tmp_path, {"age": table["hours"]}, private="age")
    assert "outside the usual [0, 120]" in texts(aged, Status.STOPS) and aged.unconfirmed == ("lower", "upper")


AGES = [20 + place % 50 for place in range(200)]


@pytest.mark.parametrize("codes", [[888, 999], [-9, -99], [-99, 999], [77, 88, 99]])
@pytest.mark.parametrize(
    "asked", [{"private": "x", "lower": 0, "upper": 9999}, {"private": "it"}], ids=["own", "other"]
)
def test_every_code_for_a_missing_value_is_named(codes: list[int], asked: dict[str, Any], tmp_path: Path) -> None:
    numbers = [1 + age % 7 for age in AGES] if 77 in codes else AGES
    table = {"x": [*numbers, *codes, *codes], "it": ["a", "b"] * (len(numbers) // 2 + len(codes))}
    found = looked(tmp_path, table, **asked)
    named = [one.what for one in found.problems if "a code for a missing value?" in one.what]
    assert named == [f"2 values are {code}, far from all others: a code for a missing value?" for code in codes]


def test_suggested_bounds_are_round_and_hold_every_number() -> None:
    for numbers in ([0.0, 37.2], [-3.0, 4.0], [5.0, 5.0], [0.0, 0.0], [-7.0, -2.0], [1e-9, 3e-9], [0.0, 1e12]):
        lower, upper = suggested_bounds(pl.Series(numbers))
        assert lower <= min(numbers) and max(numbers) <= upper and lower < upper
        assert all(f"{abs(bound):e}"[0] in "0125" and float(f"{bound:.0e}") == bound for bound in (lower, upper))
    assert suggested_bounds(pl.Series([0.0, 37.2])) == (0.0, 50.0)
    assert public_bounds("Alter", []) == (0.0, 120.0) and public_bounds("language", []) is None
    assert public_bounds("x", ["%"]) == (0.0, 100.0)


def test_a_constant_private_column_stops_a_run(tmp_path: Path) -> None:
    found = looked(tmp_path, {"a": ["x"] * 30, "b": ["u", "v"] * 15}, private="a")
    assert "has the same value everywhere" in texts(found, Status.STOPS)


def test_several_problems_are_listed_at_once_with_the_gravest_first(tmp_path: Path) -> None:
    text = "id;answer;mail\n" + "".join(f"{i};{'Ja' if i % 3 else 'ja'};p{i}@example.org\n" for i in range(40))
    found = looked(tmp_path, text + "1;?;a@b.de\n5;Ja;x;too;long\n", private="answer", person="id")
    order = list(Status)
    assert [order.index(one.status) for one in found.problems] == sorted(
        order.index(p.status) for p in found.problems
    )
    assert {one.status for one in found.problems} == set(Status) and len(found.problems) >= 6


def test_texts_among_private_numbers_are_counted_and_not_shown(tmp_path: Path) -> None:
    table = {"hours": [f"{i % 40}.5" for i in range(60)] + ["my boss forced me"], "age": ["30"] * 60 + ["about 40"]}
    found = looked(tmp_path, table, private="hours", lower=0.0, upper=60.0)
    assert texts(found, Status.STOPS) == "column 'hours': 1 value of a column of numbers is none"
    assert "column 'age': 1 value of a column of numbers is none: 'about 40'" in texts(found, Status.NOTE)


@pytest.mark.exhaust
def test_a_field_that_is_no_answer_but_a_file_is_refused_in_a_line(tmp_path: Path) -> None:
    for table in ("a,b\n1," + "x" * 300_000 + "\n2,y\n", "a,b\n" + "1,y\n" * 99_999 + "1," + "x" * 300_000 + "\n"):
        with pytest.raises(DataError, match="a field has more than 131,072 letters"):
            looked(tmp_path, table)


def test_a_packed_file_is_called_what_it_is_and_not_an_encoding(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\x1f\x8b\x08\0\xff\xfe\x91")
    with pytest.raises(DataError, match="compressed by gzip"):
        check_table(tmp_path / "t.csv")


def test_a_column_that_spells_numbers_otherwise_is_found_and_no_other_is_looked_at_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    find = number_style.find_number_style

    def counted(columns: Any, **how: Any) -> Any:
        looked_at.append(len(columns))
        return find(columns, **how)

    monkeypatch.setattr(number_style, "find_number_style", counted)
    rows = "".join(f"{i}.25;{i};{i}.5;{i},25\n" for i in range(40))
    found = looked(tmp_path, "a;b;c;d\n" + rows)
    assert "column 'd': numbers are spelled otherwise" in texts(found, Status.NOTE)
    assert looked_at.count(1) == 1  # column d alone


def test_a_column_that_may_name_people_who_stand_in_several_rows_is_asked_about(tmp_path: Path) -> None:
    table = {"id": [f"a{i // 2}" for i in range(300)], "answer": ["no", "yes", "yes"] * 100}
    asked = texts(looked(tmp_path, table, private="answer"), Status.CONFIRM)
    assert "column 'id': 150 different values in 300 rows: assumed not to name people" in asked
    named = looked(tmp_path, table, private="answer", person="id")
    assert "assumed not" not in texts(named, Status.CONFIRM) and "stand in more than one row" in texts(
        named, Status.STOPS
    )
    alone = {**table, "id": [f"a{i}" for i in range(300)]}
    assert "assumed not" not in texts(looked(tmp_path, alone, private="answer"), Status.CONFIRM)
