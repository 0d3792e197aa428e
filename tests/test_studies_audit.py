"""The zoo of audits runs at toy size, says what its claim says, and would not say it of other numbers."""

from pathlib import Path

import polars as pl
import pytest
from studies.audit_zoo import run as zoo

RECORDED = Path(zoo.__file__).parent / "results.csv"


@pytest.mark.exhaust
def test_the_zoo_holds_at_toy_size(tmp_path: Path) -> None:
    table = zoo.main(False, tmp_path)
    assert all(zoo.verdict(table).values()), zoo.verdict(table)
    assert (tmp_path / "audit_zoo.csv").exists() and (tmp_path / "record.json").exists()


def test_the_recorded_zoo_caught_every_fault_and_accused_nothing() -> None:
    table = pl.read_csv(RECORDED)
    assert all(zoo.verdict(table).values())
    assert table.filter(kind="fault").height >= 12 and table.filter(kind="correct").height >= 20
    assert table["seconds"].sum() < 600.0 and set(table.filter(kind="fault")["source"]) > {"easily made"}


@pytest.mark.parametrize(("kind", "alarm"), [("fault", False), ("correct", True)])
def test_another_result_would_not_be_called_one(kind: str, alarm: bool) -> None:
    table = pl.read_csv(RECORDED)
    first = table.with_row_index("place").filter(kind=kind)["place"][0]
    wrong = table.with_row_index("place").with_columns(
        pl.when(pl.col("place") == first).then(alarm).otherwise("alarm").alias("alarm")
    )
    assert not all(zoo.verdict(wrong).values())
