"""Keys of rounds: one for all who ask, and none after it is erased."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from tests.collect.durability import disk_steps

from dovetail.collect.shuffler.link_key_store import FileLinkKeyStore, LinkKeyStore, MemoryLinkKeyStore, RoundKey
from dovetail.core.errors import DataError, ParameterError, StorageError

SECRET = bytes(range(32))


@pytest.fixture(params=["file", "memory"])
def link_keys(request: pytest.FixtureRequest, tmp_path: Path) -> LinkKeyStore:
    return FileLinkKeyStore(tmp_path / "vault") if request.param == "file" else MemoryLinkKeyStore()


def test_a_round_has_one_key_from_creation_until_it_is_erased(link_keys: LinkKeyStore) -> None:
    assert link_keys.key("buses", 1) is None
    key = link_keys.create("buses", 1)
    assert link_keys.create("buses", 1) == key == link_keys.key("buses", 1)
    link_keys.erase("buses", 1)
    link_keys.erase("buses", 1)
    assert link_keys.key("buses", 1) is None


def test_every_round_and_campaign_has_its_own_key(link_keys: LinkKeyStore) -> None:
    keys = [link_keys.create(campaign, number) for campaign in ("buses", "buses-1") for number in (1, 11)]
    assert len({key.tag(b"device") for key in keys}) == 4
    link_keys.erase("buses", 1)
    assert link_keys.key("buses", 11) == keys[1]


def test_a_key_outlives_its_process(tmp_path: Path) -> None:
    key = FileLinkKeyStore(tmp_path).create("buses", 1)
    assert FileLinkKeyStore(tmp_path).key("buses", 1) == key


def create(folder: Path) -> bytes:
    return FileLinkKeyStore(folder).create("buses", 1).tag(b"device")


@pytest.mark.exhaust
def test_processes_that_create_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, get_context("spawn")) as pool:
        assert len(set(pool.map(create, [tmp_path] * 8))) == 1
    for attempt in range(20):
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(create, [tmp_path / str(attempt)] * 8))) == 1
    assert [path.name for path in tmp_path.glob("*/*")] == ["buses-1.key"] * 20


def test_only_its_owner_reads_a_key(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    FileLinkKeyStore(folder).create("buses", 1)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]


def test_erasing_overwrites_the_bytes_before_it_unlinks_them(tmp_path: Path) -> None:
    link_keys = FileLinkKeyStore(tmp_path)
    link_keys.create("buses", 1)
    os.link(tmp_path / "buses-1.key", tmp_path / "held")  # the same bytes on the disk
    assert (tmp_path / "held").read_bytes() != bytes(32)
    link_keys.erase("buses", 1)
    assert (tmp_path / "held").read_bytes() == bytes(32)
    assert not (tmp_path / "buses-1.key").exists()


def test_a_key_whose_erasure_was_interrupted_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "buses-1.key").write_bytes(bytes(32))
    link_keys = FileLinkKeyStore(tmp_path)
    assert link_keys.key("buses", 1) is None
    with pytest.raises(StorageError, match="the key of round 1 of buses has been erased"):
        link_keys.create("buses", 1)


def test_every_step_is_synced_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link_keys = FileLinkKeyStore(tmp_path)
    steps = disk_steps(monkeypatch, "fsync", "link", "unlink")
    link_keys.create("buses", 1)
    assert [step for step in steps if step != "unlink"] == ["sync file", "link", "sync folder"]
    steps.clear()
    link_keys.erase("buses", 1)
    assert steps == ["sync file", "sync folder", "sync file", "unlink", "sync folder"]  # noted, overwritten, removed


@pytest.mark.parametrize("campaign", ["", "../buses", "a/b", "a.b", "x" * 65, "ü"])
def test_no_campaign_leads_out_of_the_folder(tmp_path: Path, campaign: str) -> None:
    with pytest.raises(ParameterError, match="`campaign` must be 1 to 64 letters, digits, - or _"):
        FileLinkKeyStore(tmp_path).create(campaign, 1)


def test_a_folder_or_key_that_cannot_be_used_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="the vault needs a folder of its own"):
        FileLinkKeyStore(tmp_path / "file")
    (tmp_path / "buses-1.key").write_bytes(b"short")
    with pytest.raises(StorageError, match="is not a round's key: it has 5 bytes, not 32"):
        FileLinkKeyStore(tmp_path).key("buses", 1)


def test_what_was_sealed_opens_only_with_its_key_beside_its_tag() -> None:
    key, other = RoundKey.derive(SECRET), RoundKey.derive(bytes(32))
    tag = key.tag(b"device")
    sealed = key.seal(b"report", tag)
    assert key.open(sealed, tag) == b"report"
    assert len(sealed) == len(b"report") + 28
    assert key.seal(b"report", tag) != sealed
    changed = [sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :] for place in range(len(sealed))]
    for attempt in (*changed, sealed[:-1], b"", b"short"):
        with pytest.raises(DataError, match="does not open"):
            key.open(attempt, tag)
    for wrong, beside in ((other, tag), (key, key.tag(b"another"))):
        with pytest.raises(DataError, match="does not open"):
            wrong.open(sealed, beside)


def test_tags_are_hmac_sha256_under_a_key_of_their_own() -> None:
    import hmac
    from hashlib import sha256

    def expand(purpose: bytes) -> bytes:
        """HKDF-Expand of RFC 5869 for one block."""
        return hmac.new(SECRET, purpose + b"\x01", sha256).digest()

    key = RoundKey.derive(SECRET)
    assert key.tag(b"device") == hmac.new(expand(b"dovetail round tag v1"), b"device", sha256).digest()
    assert key.tagging not in (SECRET, expand(b"dovetail round seal v1"))


def test_a_key_shows_nothing_of_itself() -> None:
    assert repr(RoundKey.derive(SECRET)) == "RoundKey()"
    assert "tagging" not in f"{MemoryLinkKeyStore().create('buses', 1)}"
