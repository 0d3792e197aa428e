"""Strange documents, encoders and names: a row or one clear line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.text.corpus import PUBLIC, HashedWords, small_candidates

from dovetail.cli.main import invoke
from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.text.deep_candidate import DeepCandidate, protect_documents
from dovetail.text.documents import Document, PublicDocuments, clean, read_documents, split_sentences
from dovetail.text.encoders import CallableEncoder, SVDEncoder, check_deterministic

LONE = "a ship \ud83d sails."


@pytest.mark.parametrize("strange", ["words", ["a", "b"], [[1.0], [1.0, 2.0]], {"a": 1}, [1j, 1.0]])
def test_an_encoder_that_returns_no_numbers_is_one_line_that_quotes_nothing(strange: object) -> None:
    with pytest.raises(DataError, match=r"must return .*") as found:
        CallableEncoder(lambda sentence: strange, 2).encode(["a secret"])  # type: ignore[arg-type,return-value]
    assert "secret" not in str(found.value) and "words" not in str(found.value)


def test_half_a_character_becomes_a_question_mark_in_sentences_and_files(tmp_path: Path) -> None:
    assert clean([LONE]) == split_sentences(LONE) == ("a ship ? sails.",)
    assert np.array_equal(HashedWords().encode([LONE]), HashedWords().encode(["a ship ? sails."]))
    place = tmp_path / "d.jsonl"
    place.write_text(json.dumps({"id": "n\udc80", "text": LONE, "label": "l\ud800"}) + "\n")
    (found,) = read_documents(place, name="id", label="label").documents
    assert found == Document("n?", ("a ship ? sails.",), "l?")


@pytest.mark.parametrize("name", [None, 5, "n\udc80"])
def test_a_name_that_is_no_text_is_refused(name: object) -> None:
    with pytest.raises(ParameterError, match="`name` must be a text"):
        Document(name, ("a.",))  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_row_without_a_name_is_told_with_its_number(suffix: str, tmp_path: Path) -> None:
    place, rows = tmp_path / f"d{suffix}", [{"id": "a", "text": "One."}, {"id": None, "text": "Two."}]
    if suffix == ".jsonl":
        place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pl.DataFrame(rows).write_parquet(place)
    with pytest.raises(DataError, match=r"1 row: no name in column 'id' \(first at row 2\)"):
        read_documents(place, name="id")


@pytest.mark.exhaust
def test_every_kind_of_document_gets_a_candidate() -> None:
    encoder = SVDEncoder.fit(PUBLIC, dimension=8)
    strange = {
        "empty": (), "one": ("the ship.",), "blank": ("   ",), "junk": ("\x01\x02\xff\x7f" * 50,),
        "mixed": ("Das Schiff sinkt.", "船が沈む。", "السفينة تغرق.", "ship"), "many": ("the ship sails.",) * 10_000,
        "candidate": PUBLIC.documents[0].sentences, "half": (LONE,),
    }  # fmt: skip
    documents = [Document(name, sentences) for name, sentences in strange.items()]
    made = protect_documents(
        documents, DeepCandidate.of(small_candidates(encoder), epsilon=3.0), encoder, rng=simulation(1)
    )
    assert made.table.height == len(strange) and made.empty == 1 and made.unread >= 4
    with pytest.raises(DataError, match="at most 10,000 sentences, got 10,001"):
        Document("more", ("a.",) * 10_001)


def test_rare_randomness_is_not_found_and_the_check_says_so() -> None:
    calls = []

    def seldom(sentence: str) -> np.ndarray:
        calls.append(sentence)
        return np.ones(3) if len(calls) < 100 else np.arange(3.0)

    check_deterministic(CallableEncoder(seldom, 3), ["a", "b"])
    assert "not found" in str(check_deterministic.__doc__)


def test_no_warning_of_a_library_stands_before_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    same = [{"text": ["one two three."] * 9}, {"text": ["one two three."] * 9}, {"text": ["two one."] * 9}] * 4
    (tmp_path / "same.jsonl").write_text("".join(json.dumps(row) + "\n" for row in same))
    assert invoke(["text", "candidates", str(tmp_path / "same.jsonl"), "--out", str(tmp_path / "c.npz")]) in (0, 2)
    assert capsys.readouterr().err.count("\n") <= 1 and not recwarn.list


def test_public_documents_without_words_are_one_line() -> None:
    with pytest.raises(DataError, match="no words in common"):
        SVDEncoder.fit(PublicDocuments([Document(str(one), ("?!",)) for one in range(5)]))


def test_a_table_is_read_however_it_is_written(tmp_path: Path) -> None:
    place = tmp_path / "d.csv"
    place.write_bytes(
        'Nr;Body;Place\n1;"Schöne Grüße; bis bald.";Köln\n2;Total 12, und mehr.;Bonn\n'.encode("cp1252")
    )
    table = read_documents(place, name="Nr", label="Place")
    assert table.documents == (
        Document("1", ("Schöne Grüße; bis bald.",), "Köln"), Document("2", ("Total 12, und mehr.",), "Bonn"),
    )  # fmt: skip
    (note,) = table.notes
    assert "is no UTF-8 and was read as" in note
    place.write_bytes("text\tid\nEins, zwei.\ta\n".encode("utf-16"))
    assert read_documents(place, name="id").documents == (Document("a", ("Eins, zwei.",)),)


def test_all_faults_stand_in_one_line_and_rows_are_left_out_when_asked(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": "One."},
        {"id": None, "text": "Two."},
        {"id": "c", "text": 3},
        {"id": "d", "text": "\0"},
    ]
    place = tmp_path / "d.jsonl"
    place.write_text("".join(json.dumps(row) + "\n" for row in rows) + "broken\n[1]\n")
    told = (
        r"2 lines: no JSON object \(first at lines 5, 6\); 1 row: no name .*; 1 row: no text and .*"
        r"; 1 row: zero bytes, which no text has \(first at row 4\); --drop-bad leaves them out"
    )
    with pytest.raises(DataError, match=told):
        read_documents(place, name="id")
    table = read_documents(place, name="id", drop_bad=True)
    assert table.documents == (Document("a", ("One.",)),)
    assert len(table.notes) == 4 and all(one.startswith("left out: ") for one in table.notes)
    place.write_text("broken\n" + json.dumps({"text": 1}) + "\n")
    with pytest.raises(DataError, match="holds no document: 1 line: no JSON object"):
        read_documents(place, drop_bad=True)


def test_a_document_with_a_separator_that_nobody_quoted_is_counted(tmp_path: Path) -> None:
    place = tmp_path / "d.csv"
    place.write_text("id,text\n1,One.\n2,Two, three.\n3,Four.\n")
    with pytest.raises(DataError, match="1 row has more fields than the 2 of the header"):
        read_documents(place)
    assert [one.sentences for one in read_documents(place, drop_bad=True).documents] == [("One.",), ("Four.",)]
