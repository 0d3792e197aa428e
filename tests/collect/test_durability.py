"""A power cut loses no key, no ledger and no revocation, and others on the machine read none of them."""

import os
import re
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.collect.durability import disk_steps

import dovetail.collect.files as server
import dovetail_device.files as device
from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.core.errors import ConfigError, OutputError
from dovetail_device.outbox import Outbox
from dovetail_protocol.keys import RoleKeys, SigningKey

OWNER_ONLY = 0o600
RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
SQLITE = (
    "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(sys.argv[2])"  # what `sqlite3 FILE STATEMENT` does
)


@pytest.fixture
def no_umask() -> object:
    before = os.umask(0)  # whatever a file is then open for, the program has asked for
    yield
    os.umask(before)


@pytest.mark.parametrize(("files", "role"), [(server, "shuffler"), (device, "device")])
def test_keys_and_their_name_are_on_the_disk_before_anybody_relies_on_them(
    files, role, tmp_path, monkeypatch
) -> None:
    steps = disk_steps(monkeypatch, "fsync")
    files.save_keys(RoleKeys.generate(role), tmp_path / "keys")
    assert steps == ["sync file", "sync folder"]


@pytest.mark.usefixtures("no_umask")
@pytest.mark.parametrize(("files", "role"), [(server, "shuffler"), (device, "device")])
def test_only_their_owner_reads_keys_and_nothing_replaces_them(files, role, tmp_path) -> None:
    place = tmp_path / "keys"
    files.save_keys(RoleKeys.generate(role), place)
    before = place.read_bytes()
    assert stat.S_IMODE(place.stat().st_mode) == OWNER_ONLY
    with pytest.raises(OutputError, match="never overwritten"):
        files.save_keys(RoleKeys.generate(role), place)
    assert place.read_bytes() == before and files.load_keys(place, role)
    for mode in (0o604, 0o602, 0o601, 0o640):
        place.chmod(mode)
        with pytest.raises(ConfigError, match="wider than 0600"):
            files.load_keys(place, role)


@pytest.mark.parametrize("files", [server, device])
def test_a_password_that_everybody_can_read_is_not_used(files, tmp_path) -> None:
    place = tmp_path / "password"
    place.write_text("secret\n")
    place.chmod(0o600)
    assert files.secret_line(place, "a password") == "secret"
    place.chmod(0o604)
    with pytest.raises(ConfigError, match="wider than 0600"):
        files.secret_line(place, "a password")


def test_an_outbox_has_a_name_on_the_disk_before_its_first_report(tmp_path, monkeypatch) -> None:
    steps = disk_steps(monkeypatch, "fsync")
    Outbox.open(tmp_path / "outbox", SigningKey.generate().verifying_key()).close()
    assert "sync folder" in steps


def test_a_revocation_is_on_the_disk_before_and_after_it_takes_its_place(tmp_path, monkeypatch) -> None:
    place = tmp_path / "roster.csv"
    key = SigningKey.generate().verifying_key()
    steps = disk_steps(monkeypatch, "fsync", "replace", "rename")
    Roster([RosterEntry(key, 0, True)]).save(place)
    assert [step for step in steps if step in ("sync file", "sync folder")] == ["sync file", "sync folder"]
    assert Roster.load(place).is_revoked(key)
    assert [path.name for path in tmp_path.iterdir()] == ["roster.csv"], "nothing half written is left"


@pytest.mark.usefixtures("no_umask")
def test_the_commands_of_the_runbook_write_backups_that_only_their_owner_reads(tmp_path) -> None:
    (block,) = re.findall(r"## Back up\n.*?```console\n(.*?)```", RUNBOOK.read_text(), re.S)
    commands = [line.removeprefix("$ ").partition("  #")[0] for line in block.splitlines()]
    assert [line.split()[0] for line in commands] == ["umask", "sqlite3", "pg_dump"]
    with sqlite3.connect(tmp_path / "shuffler.sqlite") as base:
        base.execute("CREATE TABLE round (number INTEGER)")
    base.close()
    programs = f"""sqlite3() {{ "{sys.executable}" -c "{SQLITE}" "$@"; }}; pg_dump() {{ echo dump; }}"""
    subprocess.run(["/bin/sh", "-ec", "\n".join([programs, *commands])], cwd=tmp_path, check=True)
    written = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    del written["shuffler.sqlite"]
    assert written == {"backup.sqlite": OWNER_ONLY, "shuffler.dump": OWNER_ONLY}
