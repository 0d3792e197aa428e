"""A release that is cut off goes on: nothing is drawn twice, and the ledger counts it once."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from tests.text.corpus import HashedWords, documents, small_candidates

from dovetail.core.entropy import simulation, system_entropy
from dovetail.core.errors import OutputError, StorageError
from dovetail.ledger.releases import ReleaseLedger
from dovetail.text.deep_candidate import DeepCandidate, Drawn, SentenceDP
from dovetail.text.documents import Document
from dovetail.text.release import (
    DocumentJournal,
    RehearsedRows,
    amplify_documents,
    rehearse_documents,
    release_documents,
)

PRIVATE = documents(12, sentences=4, seed=9, prefix="p")
ENCODER, MECHANISM = HashedWords(), DeepCandidate.of(small_candidates(), epsilon=2.0)


class Killed(BaseException):
    """The process ends here."""


def killed_after(count: int) -> object:
    """Progress that ends the run before it draws document `count`."""

    def progress(step: str, done: int, total: int) -> None:
        if step == "protect documents" and done == count:
            raise Killed

    return progress


def release(ledger: ReleaseLedger, private: list[Document] = PRIVATE, **named: object) -> object:
    given = {"ledger": ledger, "rng": system_entropy()} | named
    return release_documents(private, MECHANISM, ENCODER, **given)  # type: ignore[arg-type]


def unfinished(ledger: ReleaseLedger) -> list[Path]:
    return sorted((ledger.folder / "unfinished").glob("*"))


def test_a_run_that_was_cut_off_goes_on_and_counts_once(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path / "ledger")
    with pytest.raises(Killed):
        release(ledger, progress=killed_after(7))
    (journal,) = unfinished(ledger)
    before = [json.loads(line)[1] for line in journal.read_text().splitlines()]
    assert len(before) == 7 and not ledger.entries() and journal.parent.stat().st_mode & 0o077 == 0
    drawn = []

    class Counted(type(system_entropy())):  # type: ignore[misc]
        def words(self, count: int) -> np.ndarray:
            drawn.append(count)
            return super().words(count)

    made = release(ledger, rng=Counted())
    assert made.table["candidate"][:7].to_list() == before
    assert made.guarantee.epsilon == 2.0 and len(ledger.entries()) == 1 and not unfinished(ledger)
    alone: list[int] = []
    drawn, counted = alone, drawn
    release(ReleaseLedger(tmp_path / "other"), rng=Counted())
    assert len(counted) < 0.6 * len(alone)  # five documents instead of twelve
    assert release(ledger).reproduced


def test_a_line_that_was_cut_off_is_no_draw(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path / "ledger")
    with pytest.raises(Killed):
        release(ledger, progress=killed_after(5))
    (journal,) = unfinished(ledger)
    journal.write_bytes(journal.read_bytes()[:-4])
    before = [json.loads(line)[1] for line in journal.read_text().splitlines()[:4]]
    with pytest.raises(Killed):
        release(ledger, progress=killed_after(9))
    whole = [line for line in journal.read_text().splitlines() if line.endswith("]")]
    assert [json.loads(line)[0] for line in whole] == list(range(9))
    assert release(ledger).table["candidate"][:4].to_list() == before


def test_other_documents_or_another_release_start_afresh(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path / "ledger")
    for private, most in ((PRIVATE, None), (PRIVATE[:9], None), (PRIVATE, 3), (PRIVATE[::-1], None)):
        with pytest.raises(Killed):
            release(ledger, private, most_sentences=most, progress=killed_after(5))
    assert len(unfinished(ledger)) == 4
    release(ledger)
    with pytest.raises(Killed):
        release(ledger, new_release=True, progress=killed_after(3))
    assert len(unfinished(ledger)) == 4
    assert release(ledger, new_release=True).guarantee.epsilon == 4.0


def test_the_journal_of_a_recorded_release_is_not_used_for_another_one(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path / "ledger")
    with pytest.raises(Killed):
        release(ledger, progress=killed_after(11))
    (journal,) = unfinished(ledger)
    kept = journal.read_bytes()
    release(ledger)
    journal.write_bytes(kept)  # as if the power had failed between record and removal
    assert release(ledger, new_release=True).guarantee.epsilon == 4.0
    assert unfinished(ledger) == [journal]  # nobody has read it


def test_a_simulated_release_keeps_no_journal_and_stays_reproducible(tmp_path: Path) -> None:
    found = []
    for name in "ab":
        ledger = ReleaseLedger(tmp_path / name)
        if name == "a":
            with pytest.raises(Killed):
                release(ledger, rng=simulation(1), progress=killed_after(5))
        assert not unfinished(ledger)
        found.append(release(ledger, rng=simulation(1)).table)
    assert found[0].equals(found[1])


def test_what_is_drawn_is_written_at_once_and_the_first_draw_counts(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path / "ledger")
    ledger.fingerprint(b"")
    first, second = (DocumentJournal.of(ledger, b"request") for _ in range(2))
    first.keep(0, Drawn(3, 0, False))
    assert DocumentJournal.of(ledger, b"request").drawn(0) == Drawn(3, 0, False), (
        "a process may be killed at any time"
    )
    second.keep(0, Drawn(5, 0, False))
    second.keep(1, Drawn(6, 1, True))
    again = DocumentJournal.of(ledger, b"request")
    assert [again.drawn(place) for place in range(3)] == [Drawn(3, 0, False), Drawn(6, 1, True), None]


def test_a_journal_that_cannot_be_read_stops_the_release(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path / "ledger")
    ledger.fingerprint(b"")
    made = DocumentJournal.of(ledger, b"request")
    made.keep(0, Drawn(3, 0, False))
    made.lines.place.write_bytes(b"\xff\xff")
    with pytest.raises(StorageError, match="cannot be used"):
        DocumentJournal.of(ledger, b"request")


@pytest.mark.exhaust
def test_a_killed_rehearsal_goes_on_with_the_same_rows(tmp_path: Path) -> None:
    place, setting = tmp_path / "rows.jsonl", {"seed": 1, "repetitions": 2, "by_sentences": [1, 4]}
    labelled = documents(12, sentences=3, seed=4, prefix="a") + documents(12, sentences=5, seed=5, prefix="b")
    public = small_candidates()

    def rehearse(rows: RehearsedRows, epsilons: list[float], most: int = 1_000) -> None:
        found = rehearse_documents(
            labelled, public, ENCODER, epsilons=epsilons, utilities=["clipped"], known=rows.known, **setting
        )
        for row in islice(found, most):
            rows.keep(row)

    whole = RehearsedRows.of(None, labelled, public, setting)
    rehearse(whole, [2.0, 8.0])
    rehearse(RehearsedRows.of(place, labelled, public, setting), [2.0], most=8)  # no file is closed: as if killed
    assert place.stat().st_mode & 0o077 == 0
    place.write_bytes(place.read_bytes()[:-5])  # within a row, amid those of one release
    again = RehearsedRows.of(place, labelled, public, setting)
    assert 0 < len(again.rows) == 7 and again.rows == whole.rows[:7]
    rehearse(again, [2.0, 8.0])
    assert again.rows == whole.rows == RehearsedRows.of(place, labelled, public, setting).rows
    content = place.read_bytes()
    for private, other in ((labelled[1:], setting), (labelled, {**setting, "seed": 2})):
        with pytest.raises(OutputError, match="has no rows of these documents under these settings"):
            RehearsedRows.of(place, private, public, other)
    for foreign in (b"notes\n", b"{}\n", b"\xff\n"):
        (tmp_path / "other").write_bytes(foreign)
        with pytest.raises(OutputError, match=r"name another file|cannot keep rows"):
            RehearsedRows.of(tmp_path / "other", labelled, public, setting)
        assert (tmp_path / "other").read_bytes() == foreign
    assert place.read_bytes() == content


@pytest.mark.exhaust
def test_shuffled_rows_have_no_names_and_every_order(tmp_path: Path) -> None:
    from collections import Counter
    from itertools import permutations

    from tests.statistics import expect_broken, expect_law

    from dovetail.text.release import shuffle_rows

    table = release(ReleaseLedger(tmp_path / "l"), PRIVATE[:3]).table.with_columns(candidate=np.arange(3))
    rng = simulation(5)
    seen = Counter(tuple(shuffle_rows(table, rng)["candidate"].to_list()) for _ in range(6_000))
    counts = np.array([seen[order] for order in permutations(range(3))])
    expect_law(counts, np.full(6, 1 / 6))
    expect_broken(counts, np.array([0.3, 0.14, 0.14, 0.14, 0.14, 0.14]))
    made = release(ReleaseLedger(tmp_path / "m"), shuffled=True)
    assert "document" not in made.table.columns and made.table.height == len(PRIVATE)


def test_a_shuffle_starts_from_whole_documents_and_usually_adds_nothing() -> None:
    usual = amplify_documents(SentenceDP(3.0), most_sentences=10, documents=1_000, delta=1e-6)
    assert usual.local == 30.0 and not usual.gains and usual.central <= 30.0
    single = amplify_documents(SentenceDP(1.0), most_sentences=1, documents=1_000, delta=1e-6)
    assert single.gains and single.central < 0.3
    assert amplify_documents(SentenceDP(100.0), most_sentences=10, documents=9, delta=1e-6).central == 1000.0


def test_the_notes_counter_example_refuses_a_start_from_one_sentence() -> None:
    # two candidates, k = 10, epsilon = 1, n = 1000: from one sentence the bound would say .182, the truth is .619
    import dovetail as dt

    wrong = dt.amplify(1.0, n=1_000, delta=1e-6).epsilon
    public = small_pair()
    mechanism = DeepCandidate.of(public, epsilon=1.0, utility="depth", selection="exponential")
    ends = [np.repeat(public.rows[side : side + 1], 10, axis=0) for side in (0, 1)]
    laws = [mechanism.probabilities(one) for one in ends]
    channel = dt.KRR(k=2, epsilon=float(np.log(laws[0][0] / laws[1][0])))
    truth = dt.amplify(channel, n=1_000, delta=1e-6).attack_lower
    assert channel.epsilon > 4.0 and wrong < 0.2 < 0.5 < truth
    assert amplify_documents(mechanism.guarantee, most_sentences=10, documents=1_000, delta=1e-6).central >= truth


def small_pair() -> object:
    from tests.text.small import candidates

    directions = np.array([(4096, 0)], dtype=np.int16)
    return candidates([(4096, 0), (-4096, 0)], half_range=4096 * 4096, projections=directions)
