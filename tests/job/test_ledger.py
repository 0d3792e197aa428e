"""The same table is released once; whoever asks again gets the same reports."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.collect.durability import disk_steps

from dovetail.core.errors import OutputError, StorageError, UnsupportedError
from dovetail.ledger.releases import LedgerAnswer, ReleaseLedger, ReleaseRequest


def ask(
    ledger: ReleaseLedger,
    *,
    table: str = "table",
    terms: str = "terms",
    groups: str = "groups",
    people: tuple[str, ...] = (),
    draw: str = "a",
    new: bool = False,
    epsilon: float = 2.0,
) -> LedgerAnswer:
    request = ReleaseRequest(
        table.encode(),
        terms.encode(),
        groups.encode(),
        list(people),
        epsilon=epsilon,
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
    with pytest.raises(UnsupportedError, match=r"released before \(1 time, epsilon 2 in all\).*--new-release"):
        ask(ReleaseLedger(tmp_path), terms="other terms")
    fresh = ask(ReleaseLedger(tmp_path), terms="other terms", draw="b", new=True)
    assert fresh.number == 2 and [entry.epsilon for entry in fresh.history] == [2.0, 2.0]
    again = ask(ReleaseLedger(tmp_path), draw="c")
    assert again.number == 1 and len(again.history) == 2, "the first reports, and everything promised since"


def test_what_was_spent_is_rounded_against_us(tmp_path: Path) -> None:
    for _ in range(2):
        ask(ReleaseLedger(tmp_path), new=True, epsilon=0.1230001)
    with pytest.raises(UnsupportedError, match=r"\(2 times, epsilon 0\.247 in all\)"):  # 0.2460002
        ask(ReleaseLedger(tmp_path), terms="other terms")


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


@pytest.mark.parametrize("batch", [{"honest": 1.0}, {"honest": -1.0}, [1.0], {"more": 1.0}])
def test_a_damaged_promise_is_not_added_to_others(batch: Any, tmp_path: Path) -> None:
    ask(ReleaseLedger(tmp_path))
    place = tmp_path / "000001" / "record.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "batch": batch}))
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


def test_only_its_owner_reads_the_ledger(tmp_path: Path) -> None:
    before = os.umask(0)  # whatever is open then, the ledger has asked for
    try:
        ask(ReleaseLedger(tmp_path / "deep" / "ledger"), people=("ann",))
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "deep" / "ledger").iterdir()}
    assert modes == {"key": 0o600, "000001": 0o700}
    assert stat.S_IMODE((tmp_path / "deep" / "ledger").stat().st_mode) == 0o700


def test_a_release_and_its_key_are_on_the_disk_before_it_is_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = disk_steps(monkeypatch, "fsync", "link", "rename")
    ask(ReleaseLedger(tmp_path), people=("ann",))
    assert steps[:3] == ["sync file", "link", "sync folder"], "the key, under which everything is printed"
    assert steps[3:] == ["sync file"] * 5 + ["sync folder", "rename", "sync folder"]


def test_two_processes_that_begin_a_ledger_at_once_keep_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, link = bytes(range(32)), os.link

    def later(source: str, place: Path) -> None:
        if not place.exists():
            place.write_bytes(other)  # the other process was first, after this one had looked
        link(source, place)

    monkeypatch.setattr(os, "link", later)
    ask(ReleaseLedger(tmp_path))
    assert (tmp_path / "key").read_bytes() == other, "the first key stays: the other's releases are printed with it"
    assert {path.name for path in tmp_path.iterdir()} == {"key", "000001"}
    assert ask(ReleaseLedger(tmp_path), draw="b").reproduced, "and this one's release is recognised under it"


def test_of_two_releases_at_once_the_second_is_not_handed_out(tmp_path: Path) -> None:
    def meanwhile() -> pl.DataFrame:
        ask(ReleaseLedger(tmp_path), table="other")  # another run finishes while this one draws
        return pl.DataFrame({"report": ["a"]})

    request = ReleaseRequest(b"table", b"terms", b"groups", [], 2.0, 1.0, 1, "uniform")
    with pytest.raises(StorageError, match="Run again"):
        ReleaseLedger(tmp_path).answer(request, new_release=False, draw=meanwhile)
    assert {path.name for path in tmp_path.iterdir()} == {"key", "000001"}, "nothing half recorded is left"
    assert ask(ReleaseLedger(tmp_path)).number == 2


def test_what_is_handed_out_is_what_was_recorded(tmp_path: Path) -> None:
    given = ask(ReleaseLedger(tmp_path), people=("ann", "bob"))
    assert pl.read_parquet(tmp_path / "000001" / "reports.parquet").equals(given.reports)
    assert [entry.number for entry in given.history] == [1] and given.number == 1


@pytest.mark.parametrize(("name", "value"), [("epsilon", 1.0), ("alpha", 0.5), ("shuffler", "mallows"), ("n", 2)])
def test_a_recorded_release_is_promised_anew_only_as_what_it_was(tmp_path: Path, name: str, value: object) -> None:
    request = ReleaseRequest(b"table", b"terms", b"groups", [], 2.0, 1.0, 1, "uniform")
    ReleaseLedger(tmp_path).answer(request, new_release=False, draw=lambda: pl.DataFrame({"report": ["a"]}))
    other = replace(request, **{name: value})
    with pytest.raises(UnsupportedError, match="released before"):
        ReleaseLedger(tmp_path).answer(other, new_release=False, draw=lambda: pl.DataFrame({"report": ["b"]}))


def test_the_ledger_does_not_keep_people_in_the_order_of_their_table(tmp_path: Path) -> None:
    names = tuple(f"person {number}" for number in range(20))
    ask(ReleaseLedger(tmp_path), people=names)
    ask(ReleaseLedger(tmp_path), table="other", people=names[::-1])
    first, second = (np.load(tmp_path / f"00000{number}" / "people.npy") for number in (1, 2))
    assert np.array_equal(first, second) and (np.diff(first.astype(object)) > 0).all()


@pytest.mark.parametrize("which", ["first", "second"])
def test_each_test_records_in_a_ledger_of_its_own(which: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = ReleaseLedger.default().folder
    assert folder.is_relative_to(tmp_path_factory.getbasetemp())
    assert not folder.exists(), "another test's releases would answer this one's"
    folder.mkdir()
