"""The same table is released once; whoever asks again gets the same reports."""

from pathlib import Path

import polars as pl
import pytest

from dovetail.core.errors import OutputError, UnsupportedError
from dovetail.pipeline.release_entry import LedgerAnswer, ReleaseRequest
from dovetail.pipeline.release_ledger import ReleaseLedger


def ask(
    ledger: ReleaseLedger,
    *,
    table: str = "table",
    terms: str = "terms",
    groups: str = "groups",
    people: tuple[str, ...] = (),
    draw: str = "a",
    new: bool = False,
) -> LedgerAnswer:
    request = ReleaseRequest(
        table.encode(),
        terms.encode(),
        groups.encode(),
        list(people),
        epsilon=2.0,
        alpha=1.0,
        n=1,
        shuffler="uniform",
    )
    return ledger.answer(request, new_release=new, draw=lambda: pl.DataFrame({"report": [draw]}))


def test_a_repeated_request_reproduces_the_first_reports(tmp_path: Path) -> None:
    first = ask(ReleaseLedger(tmp_path), draw="a")
    again = ask(ReleaseLedger(tmp_path), draw="b")
    assert not first.reproduced and again.reproduced
    assert again.reports.equals(first.reports) and len(again.history) == 1


def test_other_terms_for_the_same_table_are_refused_without_an_explicit_wish(tmp_path: Path) -> None:
    ask(ReleaseLedger(tmp_path))
    with pytest.raises(UnsupportedError, match=r"released before \(1 times, epsilon 2 in all\).*--new-release"):
        ask(ReleaseLedger(tmp_path), terms="other terms")
    fresh = ask(ReleaseLedger(tmp_path), terms="other terms", draw="b", new=True)
    assert fresh.number == 2 and [entry.epsilon for entry in fresh.history] == [2.0, 2.0]
    again = ask(ReleaseLedger(tmp_path), draw="c")
    assert again.number == 1 and len(again.history) == 2, "the first reports, and everything promised since"


def test_another_table_is_another_matter(tmp_path: Path) -> None:
    ask(ReleaseLedger(tmp_path))
    assert len(ask(ReleaseLedger(tmp_path), table="other").history) == 1


def test_whoever_took_part_before_adds_up_whatever_the_table(tmp_path: Path) -> None:
    ask(ReleaseLedger(tmp_path), people=("ann", "bob"))
    overlap = ask(ReleaseLedger(tmp_path), table="grown", people=("bob", "cas"))
    assert [entry.number for entry in overlap.history] == [1, 2]
    assert [entry.number for entry in ask(ReleaseLedger(tmp_path), table="others", people=("dan",)).history] == [3]


def test_nothing_is_released_when_the_ledger_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    with pytest.raises(OutputError, match="nothing was released"):
        ask(ReleaseLedger(place))


def test_a_damaged_ledger_is_not_mistaken_for_an_empty_one(tmp_path: Path) -> None:
    ask(ReleaseLedger(tmp_path))
    (tmp_path / "000001" / "record.json").write_text("{")
    with pytest.raises(OutputError, match="damaged"):
        ask(ReleaseLedger(tmp_path))


@pytest.mark.parametrize("size", [0, 3, 31, 300])
def test_a_ledger_with_a_damaged_key_is_not_used(tmp_path: Path, size: int) -> None:
    ask(ReleaseLedger(tmp_path))
    (tmp_path / "key").write_bytes(bytes(size))
    with pytest.raises(OutputError, match="damaged"):
        ask(ReleaseLedger(tmp_path))


def test_recorded_reports_that_lost_rows_are_not_released(tmp_path: Path) -> None:
    ask(ReleaseLedger(tmp_path))
    pl.DataFrame({"report": []}).write_parquet(tmp_path / "000001" / "reports.parquet")
    with pytest.raises(OutputError, match="damaged"):
        ask(ReleaseLedger(tmp_path))


def test_a_ledger_without_its_key_is_not_started_anew(tmp_path: Path) -> None:
    ask(ReleaseLedger(tmp_path))
    (tmp_path / "key").unlink()
    with pytest.raises(OutputError, match="lost its key"):
        ask(ReleaseLedger(tmp_path))


def test_fingerprints_are_keyed(tmp_path: Path) -> None:
    one, two = (ask(ReleaseLedger(tmp_path / part), people=("ann",)) for part in ("one", "two"))
    assert one.history[0].table != two.history[0].table
    prints = [(tmp_path / part / "000001" / "people.npy").read_bytes() for part in ("one", "two")]
    assert prints[0] != prints[1] and b"ann" not in prints[0]
    assert (tmp_path / "one" / "key").stat().st_size == 32
