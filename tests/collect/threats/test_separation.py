"""No role holds what it must not know: searched in everything that can be seized of real processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.collect.threats.conftest import SEIZED, Collection
from tests.collect.threats.games import linkage
from tests.collect.threats.stage import Stage, entries, found, spellings
from tests.tiers import one_in
from tests.waiting import PATIENCE

from dovetail.collect.files import load_keys
from dovetail.collect.shuffler.link_key_store import RoundKey
from dovetail.core.errors import DataError
from dovetail_protocol.messages import inner_info, open_envelope


def memory(data: bytes) -> dict[str, bytes]:
    if not data:
        pytest.skip("nobody may read the memory of another process here")
    return {"memory": data}


def devices(collection: Collection, count: int | None = None) -> list[bytes]:
    return [way for each in collection.sent[:count] for way in spellings(each.device.verifying_key().public)]


def sealed(collection: Collection) -> list[bytes]:
    """The reports as they lie in the analyzer's batch, in order of arrival."""
    stage = collection.stage
    keys = load_keys(stage.shuffler.folder / "shuffler.key", "shuffler")
    assert keys.opening
    opener = keys.opening.opener()
    return [open_envelope(stage.campaign, each.wire, opener).inner for each in collection.sent]


# the shuffler cannot read


def test_the_shufflers_files_logs_and_answers_hold_no_opened_report(collection: Collection) -> None:
    needles = [piece for each in collection.sent for piece in (each.report, each.report[32:56], each.report[64:88])]
    for seized in (collection.before, collection.after):
        assert found(needles, seized.files) == found(needles, seized.told) == []


def test_the_shufflers_memory_holds_no_opened_report(collection: Collection) -> None:
    needles = [piece for each in collection.sent[:SEIZED] for piece in (each.report[:24], each.report[38:62])]
    for seized in (collection.before, collection.after):
        assert found(needles, memory(seized.memory)) == []


@pytest.mark.exhaust
def test_the_search_would_find_what_memory_holds(collection: Collection) -> None:
    for seized in (collection.before, collection.analyzer):
        assert found([collection.stage.campaign.digest], memory(seized.memory)) == ["memory"]
    loaded = [each.verifying_key().public for each in collection.stage.devices[-3:]]
    assert found(loaded, memory(collection.before.memory)) == ["memory"] * 3, "the roster lies in memory"


def test_what_the_shuffler_holds_opens_no_report(collection: Collection) -> None:
    stage = collection.stage
    keys = load_keys(stage.shuffler.folder / "shuffler.key", "shuffler")
    assert keys.opening
    opener, info = keys.opening.opener(), inner_info(stage.campaign, 1)
    assert [inner for inner in sealed(collection) if opener.open(inner, info) is not None] == []
    analyzer = load_keys(stage.analyzer.folder / "analyzer.key", "analyzer")
    assert analyzer.opening and analyzer.opening.opener().open(sealed(collection)[0], info) is not None


# the analyzer cannot see people


def test_the_analyzers_files_logs_page_metrics_and_exports_name_no_device(collection: Collection) -> None:
    needles = devices(collection)
    assert found(needles, collection.analyzer.files) == found(needles, collection.analyzer.told) == []
    assert any(name.startswith("analyzer.sqlite") for name in collection.analyzer.files)


def test_the_analyzers_memory_names_no_device(collection: Collection) -> None:
    assert found(devices(collection, SEIZED), memory(collection.analyzer.memory)) == []


def test_the_search_would_find_a_device(collection: Collection) -> None:
    roster = {"roster.csv": (collection.stage.shuffler.folder / "roster.csv").read_bytes()}
    assert len(found(devices(collection), roster)) == len(collection.sent)


def test_a_batch_names_no_device_and_has_every_report_once(collection: Collection) -> None:
    (batch,) = collection.stage.tap.batches
    header, body = entries(collection.stage.campaign, batch)
    assert found(devices(collection), {"batch": batch}) == []
    assert sorted(body) == sorted(sealed(collection))
    assert header.count == len(collection.sent)


def test_all_reports_of_a_batch_have_one_length(collection: Collection) -> None:
    assert len({len(each.wire) for each in collection.sent}) == len({len(each) for each in sealed(collection)}) == 1


def test_the_order_of_a_batch_says_nothing_about_arrival(collection: Collection) -> None:
    arrived = {inner: place for place, inner in enumerate(sealed(collection))}
    _, body = entries(collection.stage.campaign, collection.stage.tap.batches[0])
    assert linkage([arrived[inner] for inner in body]).p_value >= 1e-9
    assert linkage(range(len(body))).p_value < 1e-9, "a batch in order of arrival would be caught"


def test_the_analyzer_keeps_counts_and_no_report_of_a_uniform_shuffle(collection: Collection) -> None:
    needles = [*sealed(collection), *(each.report for each in collection.sent)]
    assert found(needles, collection.analyzer.files) == []
    with sqlite3.connect(collection.stage.analyzer.folder / "analyzer.sqlite") as base:
        assert base.execute("SELECT count(*) FROM placed").fetchone() == (0,)
        assert base.execute("SELECT n, counted_at % 60 FROM counted").fetchall() == [(len(collection.sent), 0)]


# after the batch is handed over


def test_after_release_the_shufflers_files_hold_no_device_and_no_report(
    collection: Collection, tmp_path: Path
) -> None:
    kept = collection.after.files
    assert found([*devices(collection), *sealed(collection)], kept) == []
    assert not any(name.startswith("vault") and "-1.key" in name for name in kept)
    assert kept["shuffler.sqlite-wal"] == b"", "the write-ahead log is empty"
    assert stored(tmp_path, kept) == [], "nor what its key has sealed"


def stored(folder: Path, files: dict[str, bytes]) -> list[tuple[bytes, bytes]]:
    """(tag, sealed) of round 1 in a database that was seized."""
    folder.mkdir(exist_ok=True)
    for name in ("shuffler.sqlite", "shuffler.sqlite-wal"):
        (folder / name).write_bytes(files[name])
    with sqlite3.connect(folder / "shuffler.sqlite") as base:
        return base.execute("SELECT tag, sealed FROM report WHERE number = 1").fetchall()


def windows(files: dict[str, bytes]) -> set[bytes]:
    """Every 32 bytes that stand anywhere in these files and could be a key."""
    return {
        data[place : place + 32]
        for data in files.values()
        for place in range(len(data) - 31)
        if data[place : place + 4] != bytes(4)
    }


def opens(secrets: set[bytes], tag: bytes, report: bytes) -> list[bytes]:
    opened = []
    for secret in secrets:
        try:
            opened.append(RoundKey.derive(secret).open(report, tag))
        except DataError:
            continue
    return opened


@pytest.mark.exhaust
def test_a_backup_from_before_cannot_be_opened_with_anything_that_is_left(
    collection: Collection, tmp_path: Path
) -> None:
    rows = stored(tmp_path, collection.before.files)
    assert len(rows) == len(collection.sent)
    (tag, report), left = rows[0], collection.after.files
    folder = collection.stage.shuffler.folder
    left = {**left, **{name: (folder / name).read_bytes() for name in ("shuffler.key", "shuffler.toml")}}
    assert opens(windows(left), tag, report) == []
    vault = {name: data for name, data in collection.before.files.items() if name.startswith("vault")}
    (opened,) = opens(windows(vault), tag, report)
    assert opened[:32] in {each.device.verifying_key().public for each in collection.sent}, "before, the vault links"


def test_before_release_the_database_without_the_vault_names_nobody(collection: Collection) -> None:
    kept = {name: data for name, data in collection.before.files.items() if not name.startswith("vault")}
    assert found([*devices(collection), *sealed(collection)], kept) == []


def test_who_records_messages_and_gets_the_shufflers_key_later_can_link_them(collection: Collection) -> None:
    """What remains: the outer envelope is as safe as the shuffler's key, for as long as messages are recorded."""
    stage = collection.stage
    keys = load_keys(stage.shuffler.folder / "shuffler.key", "shuffler")
    assert keys.opening
    envelope = open_envelope(stage.campaign, collection.sent[0].wire, keys.opening.opener())
    assert envelope.device == collection.sent[0].device.verifying_key()
    assert envelope.inner in entries(stage.campaign, stage.tap.batches[0])[1]


# roles refuse each other's keys


@pytest.mark.exhaust
@pytest.mark.parametrize(("role", "other"), one_in(2, [("shuffler", "analyzer"), ("analyzer", "shuffler")]))
def test_a_role_refuses_the_key_file_of_the_other(stage: Stage, role: str, other: str) -> None:
    server = {"shuffler": stage.shuffler, "analyzer": stage.analyzer}
    folder = server[role].folder
    wrong = folder.parent / f"{role}-with-{other}"
    wrong.mkdir()
    for name in ("campaign.toml", "roster.csv", "tokens"):
        if (folder / name).exists():
            (wrong / name).write_bytes((folder / name).read_bytes())
    key = wrong / f"{role}.key"
    key.write_bytes((server[other].folder / f"{other}.key").read_bytes())
    key.chmod(0o600)
    (wrong / f"{role}.toml").write_text((folder / f"{role}.toml").read_text())
    command = [sys.executable, "-m", "dovetail", "collect", role, str(wrong / f"{role}.toml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert f"holds keys of the {other}, which the {role} must never hold" in done.stderr
    assert done.stdout == "" and len(done.stderr.strip().splitlines()) == 1
