"""A table is bounded by what it takes in memory, not only by what it takes on its way."""

from pathlib import Path

import polars as pl
import pytest
from tests.web.pages import opened, ours

from dovetail.collect.http import Refusal
from dovetail.web import uploads as bounds

FEW = {  # what is small on its way, and how much it is when it is read
    "columns.csv": (b"," * bounds.MOST_COLUMNS + b"\n1,2\n", "columns"),
    "rows.csv": (b"a\n" * (bounds.MOST_ROWS + 1), "rows"),
    "returns.csv": (b"a\r" * (bounds.MOST_ROWS + 1), "rows"),
    "values.csv": (b"," * 1999 + b"\n" * (bounds.MOST_CELLS // 2000 + 1), "values"),
}


@pytest.mark.parametrize("name", FEW)
def test_a_table_with_more_values_than_fit_into_memory_is_refused_unread(name: str, tmp_path: Path) -> None:
    content, things = FEW[name]
    with opened(tmp_path) as (browser, session):
        answer = browser.post(f"/read/open?name={name}", content=content, headers=ours(session))
        assert answer.status_code == 413 and f" {things} is taken here" in answer.json()["detail"]
        assert list(session.folder.iterdir()) == []


@pytest.mark.exhaust
def test_a_small_parquet_file_of_very_many_rows_or_letters_is_refused_unread(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": pl.repeat(1, bounds.MOST_ROWS + 1, dtype=pl.Int8, eager=True)})
    table.write_parquet(tmp_path / "rows.parquet")
    texts = pl.DataFrame({"a": pl.repeat("x" * 100_000, bounds.MOST_TEXT // 100_000 + 1, eager=True)})
    texts.write_parquet(tmp_path / "texts.parquet")
    for name, things in (("rows.parquet", "10,000,000 rows"), ("texts.parquet", "1,024 MB of text")):
        assert (tmp_path / name).stat().st_size < 1 << 20
        with pytest.raises(Refusal, match=f"at most {things}"):
            bounds.refuse_too_large(tmp_path / name)


def test_a_table_within_the_bounds_is_let_through(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    pl.read_csv(tmp_path / "t.csv").write_parquet(tmp_path / "t.parquet")
    (tmp_path / "no.parquet").write_bytes(b"PAR1")  # which reading it will say
    for name in ("t.csv", "t.parquet", "no.parquet"):
        bounds.refuse_too_large(tmp_path / name)
