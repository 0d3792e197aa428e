"""The same table is released once; whoever asks again gets the same reports."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dovetail.core.errors import OutputError, UnsupportedError
from dovetail.pipeline.ledger import Answer, Ledger


def ask(
    ledger: Ledger, *, table: str = "table", request: str = "terms", draw: str = "a", new: bool = False
) -> Answer:
    terms: dict[str, Any] = {"epsilon": 2.0, "n": 10, "shuffler": "uniform"}
    make: Callable[[], pl.DataFrame] = lambda: pl.DataFrame({"report": [draw]})  # noqa: E731
    return ledger.answer(table=table.encode(), request=request.encode(), terms=terms, new_release=new, draw=make)


def test_a_repeated_request_reproduces_the_first_reports(tmp_path: Path) -> None:
    first = ask(Ledger(tmp_path), draw="a")
    again = ask(Ledger(tmp_path), draw="b")
    assert not first.reproduced and again.reproduced
    assert again.reports.equals(first.reports) and len(again.history) == 1


def test_other_terms_for_the_same_table_are_refused_without_an_explicit_wish(tmp_path: Path) -> None:
    ask(Ledger(tmp_path))
    with pytest.raises(UnsupportedError, match=r"released before \(1 times, epsilon 2 in all\).*--new-release"):
        ask(Ledger(tmp_path), request="other terms")
    fresh = ask(Ledger(tmp_path), request="other terms", draw="b", new=True)
    assert fresh.number == 2 and [entry.epsilon for entry in fresh.history] == [2.0, 2.0]


def test_another_table_is_another_matter(tmp_path: Path) -> None:
    ask(Ledger(tmp_path))
    assert ask(Ledger(tmp_path), table="other").number == 1


def test_nothing_is_released_when_the_ledger_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    drawn: list[int] = []
    with pytest.raises(OutputError, match="nothing was released"):
        Ledger(place).answer(
            table=b"", request=b"", terms={}, new_release=False, draw=lambda: drawn.append(1) or pl.DataFrame()
        )
    assert drawn == []


def test_a_damaged_ledger_is_not_mistaken_for_an_empty_one(tmp_path: Path) -> None:
    ask(Ledger(tmp_path))
    next(tmp_path.glob("*/*/record.json")).write_text("{")
    with pytest.raises(OutputError, match="damaged"):
        ask(Ledger(tmp_path))


def test_fingerprints_are_keyed(tmp_path: Path) -> None:
    ask(Ledger(tmp_path / "one"))
    ask(Ledger(tmp_path / "two"))
    names = [{path.name for path in (tmp_path / part).iterdir() if path.is_dir()} for part in ("one", "two")]
    assert names[0].isdisjoint(names[1])
    assert (tmp_path / "one" / "key").stat().st_size == 32
