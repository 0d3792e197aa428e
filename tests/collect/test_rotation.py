"""New keys and another owner by commands alone: both servers take the files that come out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.collect.durability import disk_steps

from dovetail.cli.main import invoke
from dovetail.collect.analyzer import analyzer as analyzer_config
from dovetail.collect.clock import FrozenClock
from dovetail.collect.files import ServerFile, destroy, free_name, load_campaign, load_keys
from dovetail.collect.shuffler import shuffler_config
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.messages import plain, seal

SHUFFLER = """# our shuffler
schema_version = 1
campaigns = ["campaign.toml"]  # asked
keys = "shuffler.key"
roster = "roster.csv"
analyzer = "http://127.0.0.1:1"
[limits]
per_device_per_minute = 60.0   # each
"""
ANALYZER = 'schema_version = 1\ncampaigns = ["campaign.toml"]\nkeys = "analyzer.key"\n'
CAMPAIGN = "rotate campaign campaign.toml --out c2.toml"
DEVICE = SigningKey.generate()


def collect(line: str) -> None:
    assert invoke(["collect", *line.split()]) == 0, line


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everybody's files in one folder."""
    monkeypatch.chdir(tmp_path)
    for role in ("owner", "shuffler", "analyzer"):
        collect(f"keys {role} --out {role}.key")
    publics = " ".join(f"--{role} {role}.key.pub" for role in ("owner", "shuffler", "analyzer"))
    collect(f"new --id commute --question How --categories walk,bike --manual --minimum 1 --count 3 {publics}")
    collect("sign campaign.toml --keys owner.key")
    collect(f"roster add roster.csv {DEVICE.verifying_key()}")
    (tmp_path / "shuffler.toml").write_text(SHUFFLER)
    (tmp_path / "analyzer.toml").write_text(ANALYZER)
    return tmp_path


def told(now: float, *files: str) -> list[str]:
    """What a shuffler, started now, says of a report made under each of these files; each in a round of its own."""
    folder = Path()
    service, _ = shuffler_config.assemble(shuffler_config.load(folder / "shuffler.toml"), folder, FrozenClock(now))
    service.shuffler.start(now)
    service.shuffler.turn(now)
    wires = []
    for file in files:
        asked = load_campaign(Path(file))
        wires.append(seal(asked, 1, plain(asked, asked.mechanism.encode(0)), DEVICE))
    answers = [answer.kind for wire in wires for answer in service.shuffler.accept([wire], now)]
    service.shuffler.stop()
    return ["accepted" if kind == "second_report" else kind for kind in answers]


def opens() -> list[int]:
    """The versions that the analyzer would count."""
    found, _ = analyzer_config.assemble(analyzer_config.load(Path("analyzer.toml")), Path())
    found.store.close()
    return sorted(each.version for each in found.campaigns.versions)


@pytest.mark.exhaust
def test_keys_are_changed_by_commands_and_old_reports_are_taken_for_the_overlap(
    capsys: pytest.CaptureFixture[str],
) -> None:
    collect("rotate keys shuffler.toml")
    collect("rotate keys analyzer.toml")
    before = load_campaign(Path("campaign.toml"))
    assert told(0.0, "campaign.toml") == ["accepted"] and opens() == [1]  # a restart in between harms nobody
    publics = "--shuffler shuffler-2.key.pub --analyzer analyzer-2.key.pub"
    collect(f"rotate campaign campaign.toml --keys owner.key {publics} --out campaign-2.toml")
    after = load_campaign(Path("campaign-2.toml"), before.owner)
    assert (after.version, after.mechanism, after.owner) == (2, before.mechanism, before.owner)
    assert after.shuffler != before.shuffler and after.analyzer != before.analyzer
    assert after.shuffler_signing != before.shuffler_signing
    collect("rotate add analyzer.toml campaign-2.toml")
    capsys.readouterr()
    collect("rotate add shuffler.toml campaign-2.toml --overlap 3600 --json")
    assert json.loads(capsys.readouterr().out)["version"] == 2
    config = shuffler_config.load(Path("shuffler.toml"))
    assert config.older_versions_until is not None
    end = config.older_versions_until.timestamp()
    assert told(end - 1, "campaign.toml", "campaign-2.toml") == ["accepted", "accepted"]
    assert told(end, "campaign.toml", "campaign-2.toml") == ["campaign", "accepted"] and opens() == [1, 2]
    before_end = {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert invoke(["collect", "rotate", "finish", "shuffler.toml", "--destroy"]) == 2
    assert f"until {config.older_versions_until:%Y-%m-%d %H:%M:%S} UTC" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before_end
    text = Path("shuffler.toml").read_text()
    past = text.replace(f"{config.older_versions_until:%Y-%m-%dT%H:%M:%SZ}", "2020-01-01T00:00:00Z")
    Path("shuffler.toml").write_text(past)
    assert past != text
    collect("rotate finish shuffler.toml --destroy")
    collect("rotate finish analyzer.toml")
    assert told(end - 1, "campaign.toml", "campaign-2.toml") == ["campaign", "accepted"] and opens() == [2]
    assert not Path("shuffler.key").exists() and Path("analyzer.key").exists()
    text = Path("shuffler.toml").read_text()
    assert "# our shuffler" in text and "# each" in text and "older_versions_until" not in text
    for name, role in (("shuffler-2.key", "shuffler"), ("analyzer-2.key", "analyzer")):
        collect(f"audit {name}.audit --keys {name} --role {role}")
    assert "keys destroyed" in Path("shuffler-2.key.audit").read_text()
    assert "keys rotated" in Path("shuffler.key.audit").read_text()


@pytest.mark.exhaust
def test_without_overlap_a_stolen_key_takes_nothing_more() -> None:
    collect("rotate keys shuffler.toml")
    collect("rotate campaign campaign.toml --keys owner.key --shuffler shuffler-2.key.pub --out c2.toml")
    collect("rotate add shuffler.toml c2.toml --overlap 0")
    config = shuffler_config.load(Path("shuffler.toml"))
    assert config.older_versions_until is not None
    assert told(config.older_versions_until.timestamp(), "campaign.toml", "c2.toml") == ["campaign", "accepted"]


def test_another_owner_takes_a_campaign_over_by_two_commands() -> None:
    collect("keys owner --out next.key")
    collect("hand-over campaign.toml --keys owner.key --to next.key.pub")
    collect("rotate campaign campaign.toml --keys next.key --hand-over hand-over.txt --out campaign-2.toml")
    old, new = load_campaign(Path("campaign.toml")), load_campaign(Path("campaign-2.toml"))
    signing = load_keys(Path("next.key"), "owner").signing
    assert signing and new.owner == signing.verifying_key() != old.owner
    assert Campaign.parse(new.signed, old.owner).version == 2
    for server in ("analyzer", "shuffler"):
        path = Path(f"{server}.toml")
        path.write_text(f'owner = "{old.owner}"\n{path.read_text()}')
        collect(f"rotate add {server}.toml campaign-2.toml")
    assert told(0.0, "campaign.toml", "campaign-2.toml") == ["accepted", "accepted"] and opens() == [1, 2]
    assert "campaign handed over" in Path("owner.key.audit").read_text()
    assert "campaign signed" in Path("next.key.audit").read_text()


def test_a_version_of_a_stranger_is_not_added(capsys: pytest.CaptureFixture[str]) -> None:
    collect("keys owner --out stranger.key")
    text = Path("campaign.toml").read_text().replace("version = 1\nquestion", "version = 2\nquestion")
    mine = Path("stranger.key.pub").read_text().strip()
    lines = [mine if line.startswith("owner =") else line for line in text.splitlines()]
    Path("c2.toml").write_text("\n".join(lines) + "\n")
    collect("sign c2.toml --keys stranger.key")
    before = Path("shuffler.toml").read_text()
    capsys.readouterr()
    assert invoke(["collect", "rotate", "add", "shuffler.toml", "c2.toml"]) == 2
    assert "signed no hand-over" in capsys.readouterr().err and Path("shuffler.toml").read_text() == before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{CAMPAIGN} --keys owner.key", "nothing is changed"),
        (
            "rotate campaign campaign.toml --keys other.key --shuffler shuffler.key.pub --out c2.toml",
            "the signing key is",
        ),
        (
            "rotate campaign none.toml --keys owner.key --shuffler shuffler.key.pub --out c2.toml",
            "no such campaign file",
        ),
        ("rotate add shuffler.toml campaign.toml", "is served already"),
        ("rotate add analyzer.toml campaign.toml --overlap 5", "--overlap is for the shuffler"),
        ("rotate keys none.toml", "no such configuration"),
        ("rotate keys campaign.toml", "is it the configuration of a server"),
        ("rotate finish campaign.toml", "is it the configuration of a server"),
        ("hand-over campaign.toml --keys other.key --to owner.key.pub", "does not hold the key of the owner"),
        ("hand-over campaign.toml --keys owner.key --to owner.key.pub", "the same one"),
        ("audit owner.key.audit", "either as --key or"),
    ],
)
def test_what_does_not_fit_is_one_line_and_changes_nothing(
    line: str, words: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collect("keys owner --out other.key")
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    capsys.readouterr()
    assert invoke(["collect", *line.split()]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_key_files_are_numbered_and_none_is_written_over(place: Path) -> None:
    names: list[Any] = [free_name(place / "shuffler.key")]
    for _ in range(2):
        names[-1].touch()
        names.append(free_name(names[-1]))
    assert [name.name for name in names] == ["shuffler-2.key", "shuffler-3.key", "shuffler-4.key"]
    assert free_name(place / "2.key").name == "2-2.key"


def test_a_changed_configuration_is_read_by_whoever_could_read_it_before(place: Path) -> None:
    (place / "shuffler.toml").chmod(0o640)
    before = ServerFile.read(place / "shuffler.toml")
    before.write(campaigns=before.campaigns, keys=before.keys)
    assert (place / "shuffler.toml").stat().st_mode & 0o777 == 0o640


def test_a_destroyed_key_is_overwritten_on_the_disk_before_it_is_taken_away(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, same = place / "old.key", place / "same.key"
    key.write_bytes(b"secret")
    same.hardlink_to(key)
    steps = disk_steps(monkeypatch, "fsync", "unlink")
    destroy(key)
    assert steps == ["sync file", "unlink"] and not key.exists()
    assert same.read_bytes() == bytes(6), "the bytes are gone and not the name alone"


def test_new_keys_under_the_name_of_lost_ones_do_not_go_on_with_their_log(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "owner.key").unlink()
    capsys.readouterr()
    assert invoke(["collect", "keys", "owner", "--out", "owner.key"]) == 2
    assert "owner.key.audit exists, of other keys" in capsys.readouterr().err and not (place / "owner.key").exists()
