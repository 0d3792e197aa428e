"""From a configuration file to a shuffler; what does not fit together is refused in one line."""

import os
from pathlib import Path

import pytest
import typer
from tests.collect.shuffler.world import ANALYZER, DEVICES, OWNER, SHUFFLER, campaign, message, roster
from typer.testing import CliRunner

from dovetail.cli.collect import operate as close
from dovetail.cli.collect import servers as shuffler
from dovetail.cli.main import invoke
from dovetail.cli.options import add_verbs
from dovetail.collect.campaign.roster import LiveRoster
from dovetail.collect.clock import FrozenClock
from dovetail.collect.files import save_keys
from dovetail.collect.shuffler.app import scrape, status
from dovetail.collect.shuffler.campaigns import CampaignRegistry
from dovetail.collect.shuffler.shuffler_config import assemble, load
from dovetail.core.errors import ConfigError
from dovetail_protocol.keys import RoleKeys

CONFIG = """
schema_version = 1
campaigns = ["commute.toml"]
owner = "{owner}"
keys = "shuffler.key"
roster = "roster.csv"
analyzer = "http://127.0.0.1:9"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with everything that a shuffler needs."""
    assert OWNER.signing
    (tmp_path / "commute.toml").write_bytes(campaign().signed)
    roster().save(tmp_path / "roster.csv")
    for keys in (OWNER, SHUFFLER, ANALYZER):
        save_keys(keys, tmp_path / f"{keys.role}.key")
    (tmp_path / "shuffler.toml").write_text(CONFIG.format(owner=OWNER.signing.verifying_key()))
    return tmp_path


def changed(place, old, new):
    path = place / "shuffler.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return assemble(load(path), place)


def test_a_configuration_makes_a_shuffler_with_its_files_beside_it(place):
    service, subscribers = assemble(
        load(place / "shuffler.toml"), place, FrozenClock(campaign().schedule.start.timestamp())
    )
    assert subscribers == []
    service.shuffler.start(service.clock.now())
    answers = service.shuffler.accept([message(campaign(), DEVICES[0])], service.clock.now())
    service.shuffler.stop()
    assert [answer.kind for answer in answers] == ["accepted"]
    assert (place / "shuffler.sqlite").exists() and list((place / "vault").iterdir())


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("analyzer =", "analyser =", "did you mean 'analyzer'"),
        ('analyzer = "http://127.0.0.1:9"', "", "`analyzer` is missing"),
        ("schema_version = 1", "schema_version = 2", "schema_version"),
        ('"commute.toml"', '"other.toml"', "no such campaign file"),
        ('"commute.toml"', "", "`campaigns` must have at least 1 entry"),
        ('analyzer = "http://127.0.0.1:9"', 'analyzer = "analyzer:8402"', "`analyzer` must be http://host:port"),
        (
            "schema_version = 1",
            "schema_version = 1\n[limits]\nper_device_per_minut = 3\n",
            "did you mean 'per_device_per_minute'",
        ),
        ('keys = "shuffler.key"', 'keys = "analyzer.key"', "which the shuffler must never hold"),
        ('keys = "shuffler.key"', 'keys = "owner.key"', "which the shuffler must never hold"),
        ('roster = "roster.csv"', "", "asks for a roster"),
        ('roster = "roster.csv"', 'roster = "none.csv"', "no roster"),
        (
            "schema_version = 1",
            "schema_version = 1\n[mqtt]\nurl = 'mqtt://x'\npassword_file = 'p'\n",
            "goes with `user`",
        ),
        ("schema_version = 1", "schema_version = 1\n[limits]\nper_device_per_minute = 0\n", "per_device_per_minute"),
        ("schema_version = 1", "schema_version = 1\n[release]\npart_reports = 0\n", "part_reports"),
        ("schema_version = 1", "schema_version = 1\n[release]\npart_reports = 1000001\n", "part_reports"),
        ("schema_version = 1", "schema_version = 1\n[release]\nparts_at_once = 17\n", "parts_at_once"),
        ("schema_version = 1", "schema_version = 1\n[release]\nparts = 3\n", "parts"),
        ("schema_version = 1", "schema_version = ", "not TOML"),
    ],
)
def test_what_does_not_fit_together_is_refused(old, new, wanted, place):
    if "[" in new:  # tables come last
        text = (place / "shuffler.toml").read_text()
        (place / "shuffler.toml").write_text(text + new.partition("\n")[2])
        old = new = "schema_version = 1"
    with pytest.raises(ConfigError, match=wanted):
        changed(place, old, new)


def test_a_campaign_of_another_owner_is_refused(place):
    stranger = RoleKeys.generate("owner").signing
    assert OWNER.signing and stranger
    with pytest.raises(ConfigError, match=r"commute\.toml: the campaign"):
        changed(place, str(OWNER.signing.verifying_key()), str(stranger.verifying_key()))


def test_keys_that_the_campaign_does_not_name_are_refused():
    with pytest.raises(ConfigError, match="other shuffler keys"):
        CampaignRegistry.of([campaign()], [RoleKeys.generate("shuffler")])


@pytest.mark.parametrize("change", [{"minimum": 6}, {"small": "drop"}, {"authentication": "none"}, {"close_at": 9}])
def test_versions_of_a_campaign_that_change_its_rules_are_refused(change):
    with pytest.raises(ConfigError, match="another id"):
        CampaignRegistry.of([campaign(version=1), campaign(version=2, **change)], [SHUFFLER])


def test_two_files_of_one_version_are_refused():
    with pytest.raises(ConfigError, match="two files are version 1"):
        CampaignRegistry.of([campaign(), campaign(expires="expires = 2031-01-01T00:00:00Z")], [SHUFFLER])


@pytest.fixture
def command() -> typer.Typer:
    app = typer.Typer()
    for verb in (shuffler, close):
        add_verbs(app, verb.VERBS)
    return app


def test_the_verbs_explain_themselves(command):
    for verb in ("shuffler", "close"):
        found = CliRunner().invoke(command, [verb, "--help"])
        assert found.exit_code == 0 and "Example" in found.output


def test_the_shuffler_verb_refuses_the_analyzers_keys(command, place):
    text = (place / "shuffler.toml").read_text().replace("shuffler.key", "analyzer.key")
    (place / "shuffler.toml").write_text(text)
    found = CliRunner().invoke(command, ["shuffler", str(place / "shuffler.toml")])
    assert isinstance(found.exception, ConfigError) and "must never hold" in str(found.exception)


def test_only_the_owner_can_ask_for_a_close(command, place):
    arguments = ["close", str(place / "commute.toml"), "1", "--shuffler", "http://127.0.0.1:9"]
    found = CliRunner().invoke(command, [*arguments, "--keys", str(place / "shuffler.key")])
    assert isinstance(found.exception, ConfigError) and "must never hold" in str(found.exception)
    found = CliRunner().invoke(command, [*arguments, "--keys", str(place / "owner.key")])
    assert "no shuffler answers" in str(found.exception)


@pytest.mark.exhaust
def test_a_second_shuffler_with_another_vault_says_why_it_does_not_start(place, capsys):
    service, _ = assemble(load(place / "shuffler.toml"), place)
    with pytest.raises(ConfigError, match="another shuffler works on this database with another `vault`"):
        changed(place, "schema_version = 1\n", 'schema_version = 1\nvault = "elsewhere"\n')
    assert invoke(["collect", "shuffler", str(place / "shuffler.toml")]) == 2
    told = capsys.readouterr().err
    assert "another `vault`; give both the same folder, or stop it." in told and "Traceback" not in told
    service.shuffler.stop()


BREAKS = {  # what a hand does to the last line of a roster: the line that is named, and words
    "a key cut short": (lambda line: line[9:], "roster.csv, line 7: `device`"),
    "bytes that are no text": (lambda line: b"\xff\xfe" + line, "roster.csv, line 7: `device`"),
    "a slot with a point": (lambda line: line.replace(b",5,", b",5.0,"), "roster.csv, line 7: `slot`"),
    "a slot given twice": (lambda line: line.replace(b",5,", b",4,"), "roster.csv, line 7: slot 4"),
    "another word for yes": (lambda line: line.replace(b"yes", b"ja"), "roster.csv, line 7: `revoked`"),
    "a comma too many": (lambda line: line.replace(b"yes", b"yes,"), "roster.csv, line 7: must have 3"),
    "a quote never closed": (lambda line: b'"' + line, "roster.csv, line 7: no row"),
    "the line twice": (lambda line: line + line, "roster.csv, line 8: the device of slot 5 is listed twice"),
    "the file gone": (None, "roster.csv, no roster"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_readiness_status_and_metrics_name_a_broken_roster_until_it_is_mended(name: str, place: Path) -> None:
    spoil, words = BREAKS[name]
    service, _ = assemble(load(place / "shuffler.toml"), place, FrozenClock(campaign().schedule.start.timestamp()))
    service.shuffler.start(service.clock.now())
    path = place / "roster.csv"
    roster(DEVICES[:6], revoked=[DEVICES[5]]).save(path)  # one is revoked by hand ..
    good = path.read_bytes()

    def told() -> tuple[object, str, str]:
        [line] = [each for each in scrape(service).decode().splitlines() if each.startswith("dovetail_roster_broken")]
        return service.health().facts["roster"], status(service)["roster"], line

    assert told() == ("", "read", "dovetail_roster_broken 0.0")
    *kept, last = good.splitlines(keepends=True)
    path.unlink() if spoil is None else path.write_bytes(b"".join([*kept, spoil(last)]))  # .. and something slips
    fault, shown, gauge = told()
    assert fault == shown and shown.startswith(words) and gauge == "dovetail_roster_broken 1.0"
    assert not service.health().fault, "reports of the others can be stored"
    keys = [str(device.verifying_key()).removeprefix("ed25519:") for device in DEVICES]
    assert str(place) not in shown and not any(key[-20:] in shown for key in keys), "never what stands there"
    path.write_bytes(good)
    assert told() == ("", "read", "dovetail_roster_broken 0.0")
    service.shuffler.stop()


def test_a_line_that_is_mended_counts_although_the_files_time_and_size_stay(place: Path) -> None:
    path = place / "roster.csv"
    live = LiveRoster(path)
    roster(DEVICES[:2], revoked=DEVICES[:1]).save(path)
    good, then = path.read_bytes(), path.stat()
    path.write_bytes(good.replace(b"yes", b"yse"))
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert live.fault
    path.write_bytes(good)
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))  # as editors and `cp -p` may leave it
    assert live.current().is_revoked(DEVICES[0].verifying_key()) and not live.fault
