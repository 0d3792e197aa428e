"""Nothing lost, nothing doubled: random operations on devices, shuffler and analyzer, checked after every one.

A failure is, at any moment:

* an acknowledged report that is not in exactly one batch, and neither waits in a round nor is among those that the
  campaign's rules have left out; the shuffler's counts must match exactly, not at least;
* a report in two batches, a batch that holds two reports of a device, or one that nobody sent;
* a second report of a device for a round, or another ciphertext of the first; a budget overspent;
* where devices show tokens: a round with more reports than tokens, a device that asks for two of one round;
* a batch that is sent again with other bytes, or that the analyzer counts twice, in part, or wrongly;
* a round that opens, closes or takes a report while its clock is days from right.

And when everything has calmed down: a batch that is not counted, a round that could be released and is not, a device
that still waits for an answer.

No failure is: a report that never arrived, or that came too late and was refused as such; a report whose
acknowledgement got lost, whether it is counted or not; a round that stays small under "wait"; reports left out under
"drop", or for a newer one of the same device under "merge"; reports of a round whose key is lost, until the key comes
back or its owner gives the round up; a batch that is built again, in another order, as long as
nothing of it has left. A process dies before or after an operation of its store, vault, outbox or transport: the
stores' own tests show that nothing lies between.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.collect.machine import in_memory, run
from tests.collect.servers import Postgres
from tests.node import needs_client
from tests.tiers import tiered

from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.batch import Header, entry_bytes
from dovetail.collect.shuffler.intake import ACCEPTED, CheckedReport, Reply, ReportIntake
from dovetail.collect.shuffler.trusted_clock import TrustedClock
from dovetail.collect.simulate.faults import Crash
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation
from dovetail.collect.store.analyzer_store import DatabaseAnalyzerStore
from dovetail.collect.store.interfaces import AcceptOutcome, CountedBatch, SealedReport
from dovetail.collect.store.issuer_store import IssueOutcome, IssuerStore
from dovetail.collect.store.shuffler_store import DatabaseShufflerStore
from dovetail.collect.store.tables import CELL, ROUND


@pytest.mark.parametrize("examples", tiered([3, 60], first=lambda examples: examples == 3))
def test_nothing_is_lost_and_nothing_doubled_in_memory(examples: int) -> None:
    run(in_memory, examples=examples)


@pytest.mark.exhaust
@pytest.mark.parametrize("trust", ["shuffler", "users"])
def test_nothing_is_lost_and_no_dummies_are_drawn_again(trust: str) -> None:
    run(in_memory, examples=30, trust=trust)


@pytest.mark.exhaust
@needs_client
@pytest.mark.parametrize("trust", ["local", "users", "classes"])
def test_nothing_is_lost_and_nothing_doubled_by_devices_in_typescript(trust: str) -> None:
    run(in_memory, examples=12, trust=trust, typescript="off")


@pytest.mark.exhaust
def test_nothing_is_lost_and_nobody_counts_twice_by_tokens() -> None:
    run(in_memory, examples=30, trust="tokens")


@pytest.mark.exhaust
@pytest.mark.parametrize("parts", [None, 2])
def test_nothing_is_lost_and_the_people_of_each_class_are_counted(parts: int | None) -> None:
    run(in_memory, examples=15, trust="classes", parts=parts)


@pytest.mark.exhaust
@pytest.mark.parametrize("parts", [1, 2])
def test_nothing_is_lost_and_nothing_doubled_in_parts(parts: int) -> None:
    run(in_memory, examples=20, parts=parts)


@pytest.mark.exhaust
def test_nothing_is_lost_in_parts_that_hold_dummies() -> None:
    run(in_memory, examples=15, trust="shuffler", parts=2)


@pytest.mark.exhaust
def test_nothing_is_lost_and_nothing_doubled_in_files(tmp_path: Path) -> None:
    number = count()

    def fresh() -> tuple[str, str]:
        folder = tmp_path / str(next(number))
        folder.mkdir()
        return (f"sqlite:///{folder / 'shuffler.sqlite'}", f"sqlite:///{folder / 'analyzer.sqlite'}")

    run(fresh, examples=4)


@pytest.mark.exhaust
def test_nothing_is_lost_and_nothing_doubled_on_postgresql(postgres: Postgres) -> None:
    number = count()

    def fresh() -> tuple[str, str]:
        n = next(number)
        return (postgres.database(f"machine-shuffler-{n}"), postgres.database(f"machine-analyzer-{n}"))

    run(fresh, examples=4)


# The machine must be able to fail: broken services, each of which must be caught.


def caught(match: str, *, small: str | None = None, trust: str = "local") -> None:
    """The machine fails, and says so in these words."""
    with pytest.raises(AssertionError, match=match):
        run(in_memory, examples=60, small=small, trust=trust)


@pytest.mark.exhaust
def test_a_shuffler_that_forgets_the_check_for_duplicates_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DatabaseShufflerStore.accept

    def forgetful(store: DatabaseShufflerStore, reports: list[SealedReport]) -> list[AcceptOutcome]:
        """What is known already is taken as if it came for the first time."""
        known = honest(store, [replace(report, round=0) for report in reports])
        new = [
            replace(report, report=random.randbytes(32)) if told == "duplicate" and report.round else report
            for report, told in zip(reports, known, strict=True)
        ]
        return honest(store, new)

    monkeypatch.setattr(DatabaseShufflerStore, "accept", forgetful)
    caught("doubled=[1-9]", small="wait")


@pytest.mark.exhaust
def test_a_shuffler_that_acknowledges_before_it_has_committed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ReportIntake.commit

    def hasty(ingest: ReportIntake, reports: list[CheckedReport], now: float) -> list[Reply]:
        """The answer is out when the process dies over its transaction."""
        try:
            return honest(ingest, reports, now)
        except Crash:
            return [Reply(ACCEPTED) for _ in reports]

    monkeypatch.setattr(ReportIntake, "commit", hasty)
    caught("lost=[1-9]")


@pytest.mark.exhaust
def test_a_shuffler_that_permutes_again_when_it_sends_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Simulation.send

    def restless(served: Simulation, batch: str, header: bytes, parts: Iterator[bytes]) -> None:
        """Another order each time, signed again."""
        body, size = b"".join(parts), entry_bytes(served.world.campaign)
        entries = [body[start : start + size] for start in range(0, len(body), size)]
        body = b"".join(random.sample(entries, len(entries)))
        honest(served, batch, signed_again(served, header, sha256=sha256(body).hexdigest()), iter([body]))

    monkeypatch.setattr(Simulation, "send", restless)
    caught("changed=[1-9]")


@pytest.mark.exhaust
def test_a_shuffler_that_gives_a_batch_another_name_when_it_sends_again_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = Simulation.send

    def renaming(served: Simulation, batch: str, header: bytes, parts: Iterator[bytes]) -> None:
        honest(served, batch, signed_again(served, header, batch=random.randbytes(16).hex()), parts)

    monkeypatch.setattr(Simulation, "send", renaming)
    caught("doubled=[1-9]")


def signed_again(served: Simulation, header: bytes, **changes: Any) -> bytes:
    """The header of a batch with changes, under the shuffler's own signature."""
    assert served.world.shuffler.signing
    return replace(Header.peek(header), **changes).sign(served.world.shuffler.signing)


@pytest.mark.exhaust
def test_a_merge_that_forgets_a_report_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DatabaseShufflerStore.move

    def forgetful(
        store: DatabaseShufflerStore, campaign: str, number: int, into: int, moved: list[SealedReport]
    ) -> int:
        """One of the reports that give way is not counted as such."""
        gone = honest(store, campaign, number, into, moved)
        if gone:
            place = ROUND.c.campaign == campaign, ROUND.c.number == into
            statement = update(ROUND).where(*place).values(superseded=ROUND.c.superseded - 1)
            store._database.write(lambda connection: connection.execute(statement))
        return gone

    monkeypatch.setattr(DatabaseShufflerStore, "move", forgetful)
    caught("lost=[1-9]", small="merge")


@pytest.mark.exhaust
def test_a_shuffler_that_believes_every_clock_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrustedClock, "_passes", lambda clock, before, reading: True)
    monkeypatch.setattr(TrustedClock, "_slew", lambda clock, before, reading: reading)
    with pytest.raises(AssertionError):  # rounds close, or reports are taken, at a time that is none
        run(in_memory, examples=60)


@pytest.mark.exhaust
def test_an_analyzer_that_counts_a_batch_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DatabaseAnalyzerStore.count

    def counting(store: DatabaseAnalyzerStore, counted: CountedBatch) -> bool:
        """What comes again is added."""
        if not honest(store, counted):
            statement = update(CELL).where(CELL.c.batch == counted.batch.id).values(total=2 * CELL.c.total)
            store._database.write(lambda connection: connection.execute(statement))
        return True

    monkeypatch.setattr(DatabaseAnalyzerStore, "count", counting)
    monkeypatch.setattr(DatabaseAnalyzerStore, "has_counted", lambda store, batch: False)
    monkeypatch.setattr(Analyzer, "_refuse_again", lambda analyzer, arrived: None)
    caught("symbols")


@pytest.mark.exhaust
def test_a_device_that_charges_its_budget_after_it_has_sent_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SimulatedDevices.switch_off

    def careless(fleet: SimulatedDevices, number: int) -> None:
        """What was not sent to its end is neither stored nor paid for."""
        honest(fleet, number)
        run_statement = fleet.outboxes[number]._connection.execute
        run_statement("DELETE FROM report WHERE state IN ('drawn', 'sealed')")
        run_statement("UPDATE campaign SET spent = (SELECT 2 * count(*) FROM report)")

    monkeypatch.setattr(SimulatedDevices, "switch_off", careless)
    caught("second=[1-9]")


@pytest.mark.exhaust
def test_an_issuer_that_sells_a_second_token_to_a_device_that_asks_again_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that notes a request under a name of its own lets a device have as many as it asks for."""
    honest = IssuerStore.issue

    def nameless(store: IssuerStore, campaign: str, round: int, who: bytes, request: bytes) -> IssueOutcome:
        return honest(store, campaign, round, random.randbytes(32), request)

    monkeypatch.setattr(IssuerStore, "issue", nameless)
    caught("reports without tokens", trust="tokens")


@pytest.mark.exhaust
def test_a_device_that_asks_for_another_token_when_no_answer_comes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SimulatedDevices.switch_off

    def forgetful(fleet: SimulatedDevices, number: int) -> None:
        honest(fleet, number)
        fleet.outboxes[number]._connection.execute("DELETE FROM token WHERE state = 'asked'")

    monkeypatch.setattr(SimulatedDevices, "switch_off", forgetful)
    caught("two tokens of a round", trust="tokens")


@pytest.mark.exhaust
@needs_client
def test_a_device_in_typescript_that_forgets_what_has_not_arrived_is_caught() -> None:
    with pytest.raises(AssertionError, match=r"(second|overspent)=[1-9]"):
        run(in_memory, examples=60, typescript="forget")
