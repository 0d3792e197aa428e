"""A mapped roster says what the CSV file says, device by device, and follows what was changed since."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dovetail.cli.main import invoke
from dovetail.collect.campaign.roster import (
    LiveRoster,
    MappedRoster,
    Roster,
    RosterEntry,
    changes_of,
    is_mapped,
    open_roster,
    write_mapped,
)
from dovetail.core.errors import ConfigError, DataError, OutputError
from dovetail_protocol.keys import VerifyingKey

RNG = random.Random(1)
KEYS = [VerifyingKey(RNG.randbytes(31) + bytes([end])) for end in (0, 1, 255) for _ in range(40)]
SLOTS = RNG.sample(range(1000), len(KEYS))
EDGES = [VerifyingKey(bytes(32)), VerifyingKey(b"\xff" * 32)]  # before and after all others
STRANGERS = [VerifyingKey(RNG.randbytes(32)) for _ in range(40)] + EDGES


def csv_roster(count: int = len(KEYS)) -> Roster:
    """Keys that end in zeros too, in slots of any order; every seventh is revoked."""
    listed = zip(KEYS[:count], SLOTS[:count], strict=True)
    return Roster(RosterEntry(key, slot, number % 7 == 0) for number, (key, slot) in enumerate(listed))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A mapped roster, and the CSV file that it was made of."""
    csv_roster().save(tmp_path / "roster.csv")
    write_mapped(tmp_path / "roster.csv", tmp_path / "roster.keys")
    return tmp_path / "roster.keys"


def facts(roster: Roster | MappedRoster, keys: list[VerifyingKey]) -> list[tuple[int | None, bool]]:
    return [(roster.slot(key), roster.is_revoked(key)) for key in keys]


@pytest.mark.parametrize("count", [0, 1, 2, 3, len(KEYS)])
def test_it_says_of_every_device_and_stranger_what_the_csv_file_says(tmp_path: Path, count: int) -> None:
    plain = csv_roster(count)
    plain.save(tmp_path / "roster.csv")
    mapped = write_mapped(tmp_path / "roster.csv", tmp_path / "roster.keys")
    asked = KEYS + STRANGERS
    assert facts(mapped, asked) == facts(plain, asked) and len(mapped) == len(plain) == count
    assert sorted(mapped, key=lambda entry: entry.slot) == list(plain)
    assert (tmp_path / "roster.keys").stat().st_size == 16 + 36 * count
    assert (tmp_path / "roster.keys").stat().st_mode & 0o777 == 0o600


def test_changes_are_those_of_a_csv_roster_and_the_file_stays(place: Path) -> None:
    before, plain = place.read_bytes(), csv_roster()
    mapped = open_roster(place)
    assert isinstance(mapped, MappedRoster)
    for change in (
        lambda roster: roster.with_devices(STRANGERS[:5]),
        lambda roster: roster.without_devices([KEYS[1], STRANGERS[2]]),
        lambda roster: roster.with_devices(STRANGERS[5:7]),
    ):
        change(mapped).save(place)
        mapped, plain = MappedRoster.load(place), change(plain)
        assert facts(mapped, KEYS + STRANGERS) == facts(plain, KEYS + STRANGERS) and len(mapped) == len(plain)
    assert place.read_bytes() == before
    with pytest.raises(DataError, match="1 of these devices are in the roster already"):
        mapped.with_devices([STRANGERS[0], STRANGERS[20]])
    with pytest.raises(DataError, match="1 of these devices are not in the roster"):
        mapped.without_devices([KEYS[0], STRANGERS[20]])
    again = write_mapped(place, place.with_name("again.keys"))
    assert facts(again, KEYS + STRANGERS) == facts(plain, KEYS + STRANGERS)


def test_a_revocation_counts_in_every_process_with_the_next_report(place: Path) -> None:
    here, there = LiveRoster(place), LiveRoster(place)
    assert not here.current().is_revoked(KEYS[1]) and here.current() is here.current()
    open_roster(place).without_devices([KEYS[1]]).save(place)
    assert here.current().is_revoked(KEYS[1]) and there.current().is_revoked(KEYS[1])
    changes_of(place).write_text("nonsense")
    assert here.current().is_revoked(KEYS[1]) and here.fault, "what is wrong changes nothing"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda place: place.write_bytes(place.read_bytes()[:-1]), "cut short"),
        (lambda place: place.write_bytes(place.read_bytes() + b"\0"), "cut short"),
        (lambda place: changes_of(place).unlink(), "nobody knows which devices were revoked"),
        (lambda place: changes_of(place).write_text("nonsense"), "the first row must be"),
        (lambda place: place.unlink(), "no roster that can be read"),
    ],
)
def test_a_roster_that_is_not_whole_is_refused_in_one_line(place: Path, spoil: object, words: str) -> None:
    spoil(place)  # type: ignore[operator]
    with pytest.raises(ConfigError, match=words) as told:
        MappedRoster.load(place)
    assert "\n" not in str(told.value)


def test_what_contradicts_itself_is_not_written(tmp_path: Path) -> None:
    source, out = tmp_path / "roster.csv", tmp_path / "roster.keys"
    for rows, words in (
        ([(KEYS[0], 1), (KEYS[1], 2), (KEYS[0], 3)], "slot 3 is listed twice"),
        ([(KEYS[0], 1), (KEYS[1], 1)], "slot 1 is given to two devices"),
    ):
        source.write_text("device,slot,revoked\n" + "".join(f"{key},{slot},no\n" for key, slot in rows))
        with pytest.raises(DataError, match=words):
            write_mapped(source, out)
        assert [path.name for path in tmp_path.iterdir()] == ["roster.csv"]


def test_a_file_that_processes_may_have_mapped_is_never_written_over(place: Path) -> None:
    with pytest.raises(OutputError, match="choose another name"):
        write_mapped(place.with_name("roster.csv"), place)


def test_the_command_line_takes_both_kinds(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = str(place.with_name("roster.csv")), str(place.with_name("more.keys"))
    assert invoke(["collect", "roster", "index", source, "--out", out]) == 0
    assert "120 devices" in capsys.readouterr().out and is_mapped(Path(out))
    assert invoke(["collect", "roster", "revoke", out, str(KEYS[1])]) == 0
    assert invoke(["collect", "roster", "add", out, str(STRANGERS[3])]) == 0
    assert "121 devices, 19 of them revoked" in capsys.readouterr().out
    assert invoke(["collect", "roster", "index", source, "--out", out]) != 0
    assert "choose another name" in capsys.readouterr().err
