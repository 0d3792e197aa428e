"""The audit log: every change, every line taken out or moved is seen, and it holds no value and no address."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.collect.shuffler import world as shuffler_world

from dovetail.cli.main import invoke
from dovetail.collect.analyzer import analyzer as analyzer_config
from dovetail.collect.clock import FrozenClock
from dovetail.collect.files import load_keys, save_keys
from dovetail.collect.http import Refusal
from dovetail.collect.logs import AuditLog, audit_key, verify_log
from dovetail.collect.shuffler import shuffler_config
from dovetail.collect.shuffler.campaigns import owner_request
from dovetail.core.errors import DataError, ParameterError, StorageError
from dovetail_protocol.keys import Role, RoleKeys, VerifyingKey

OWNER, OTHER = RoleKeys.generate("owner"), RoleKeys.generate("owner")
BY = audit_key(OWNER).verifying_key()


def written(folder: Path, count: int = 5) -> AuditLog:
    """A log with so many lines."""
    log = AuditLog(folder / "owner.key.audit", audit_key(OWNER), FrozenClock(1_900_000_000.0))
    for number in range(1, count + 1):
        log.append("round closed", campaign="commute", version=1, round=number)
    return log


def test_a_log_tells_what_was_done_in_its_order(tmp_path: Path) -> None:
    log = written(tmp_path)
    found = verify_log(log.path, BY)
    assert [(entry.number, entry.action, entry.facts["round"]) for entry in found] == [
        (number, "round closed", number) for number in range(1, 6)
    ]
    assert found[0].time == "2030-03-17T17:46:40Z" and log.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.exhaust
def test_every_byte_of_a_log_counts(tmp_path: Path) -> None:
    """One byte changed, anywhere: exhaustively."""
    log = written(tmp_path, 2)
    good = log.path.read_bytes()
    for place in range(len(good)):
        log.path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(DataError, match=r"line [123]"):
            verify_log(log.path, BY)
    log.path.write_bytes(good)
    assert len(verify_log(log.path, BY)) == 2


def test_lines_that_are_taken_out_moved_doubled_or_of_another_log_are_found(tmp_path: Path) -> None:
    log = written(tmp_path)
    lines = log.path.read_bytes().splitlines(keepends=True)
    other = AuditLog(tmp_path / "other", audit_key(OWNER), FrozenClock(0.0))
    other.append("round closed", campaign="commute", version=1, round=1)
    wrong: list[Any] = [lines[:place] + lines[place + 1 :] for place in range(4)]
    wrong += [[lines[1], lines[0], *lines[2:]], [lines[0], *lines], [*lines, lines[-1]]]
    wrong += [[(tmp_path / "other").read_bytes(), *lines[1:]]]
    for changed in wrong:
        log.path.write_bytes(b"".join(changed))
        with pytest.raises(DataError, match="does not follow"):
            verify_log(log.path, BY)
    log.path.write_bytes(b"".join(lines))
    with pytest.raises(DataError, match="line 1: is not signed by"):
        verify_log(log.path, audit_key(OTHER).verifying_key())


def test_a_log_that_was_touched_is_not_written_on(tmp_path: Path) -> None:
    log = written(tmp_path)
    good = log.path.read_bytes()
    log.path.write_bytes(good.replace(b'"round":5', b'"round":4'))
    with pytest.raises(DataError, match="line 5: is not signed"):
        log.append("round closed", campaign="commute", version=1, round=6)
    assert log.path.read_bytes() == good.replace(b'"round":5', b'"round":4')


@pytest.mark.exhaust
def test_a_line_that_a_crash_has_cut_short_is_taken_away_by_the_next(tmp_path: Path) -> None:
    log = written(tmp_path, 3)
    whole = log.path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(start + 1, len(whole)):
        log.path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="line 3: is cut short"):
            verify_log(log.path, BY)
    log.append("round closed", campaign="commute", version=1, round=9)
    assert [entry.facts["round"] for entry in verify_log(log.path, BY)] == [1, 2, 9]


def test_several_at_once_write_one_chain(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log", audit_key(OWNER))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: log.append("round closed", campaign="c", version=1, round=n), range(1, 41)))
    assert {entry.facts["round"] for entry in verify_log(log.path, BY)} == set(range(1, 41))


@pytest.mark.parametrize(
    "facts",
    [
        {"value": 3},
        {"campaign": "127.0.0.1"},
        {"campaign": "device.example.org"},
        {"campaign": "/srv/somebody/owner.key"},
        {"key": "ed25519:AAAA"},
        {"campaign": "walk or bike"},
        {"campaign": ""},
    ],
)
def test_a_log_takes_names_and_numbers_only(facts: dict[str, Any], tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log", audit_key(OWNER))
    with pytest.raises(ParameterError, match="an audit log may hold"):
        log.append("campaign signed", **facts)
    with pytest.raises(ParameterError, match="`action` must be one of"):
        log.append("something else")  # type: ignore[arg-type]
    assert not log.path.exists()


def test_a_log_that_cannot_be_written_stops_the_action(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nothing was done"):
        AuditLog(tmp_path / "none" / "log", audit_key(OWNER)).append("keys made", role="owner")


def test_the_keys_of_logs_are_their_own(tmp_path: Path) -> None:
    """Nobody who is given the key that verifies a log learns one that signs campaigns; each role has another."""
    keys = [RoleKeys.generate(role) for role in ("owner", "shuffler", "analyzer")]
    found = {str(audit_key(each).verifying_key()) for each in keys}
    assert len(found) == 3 and all(each.signing != audit_key(each) for each in keys)
    assert audit_key(keys[0]) == audit_key(RoleKeys.parse(keys[0].to_text(), name="k", role="owner"))


def _key(role: Role) -> VerifyingKey:
    """What verifies the log of a role's key file here."""
    return audit_key(load_keys(Path(f"{role}.key"), role)).verifying_key()


def test_the_verbs_write_what_they_do_before_it_has_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for role in ("owner", "shuffler", "analyzer"):
        assert invoke(["collect", "keys", role, "--out", f"{role}.key"]) == 0
    files = [f"--{role} {role}.key.pub" for role in ("owner", "shuffler", "analyzer")]
    new = "--id c --question Secret-question --categories secret-a,secret-b --manual --http http://127.0.0.1:1"
    assert invoke(["collect", "new", *" ".join([*files, new]).split()]) == 0
    assert invoke(["collect", "sign", "campaign.toml", "--keys", "owner.key"]) == 0
    assert invoke(["collect", "close", "campaign.toml", "1", "--keys", "owner.key"]) != 0  # nobody answers there
    capsys.readouterr()
    assert invoke(["collect", "audit", "owner.key.audit", "--keys", "owner.key", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [entry["action"] for entry in shown["entries"]] == ["keys made", "campaign signed"]
    head = shown["entries"][0]["digest"]
    for role in ("shuffler", "analyzer"):
        assert invoke(["collect", "audit", f"{role}.key.audit", "--keys", f"{role}.key", "--role", role]) == 0
    assert invoke("collect token add tokens --label secret-a --out token --keys analyzer.key".split()) == 0  # noqa: SIM905
    assert invoke("collect token withdraw tokens secret-a --keys analyzer.key".split()) == 0  # noqa: SIM905
    tokens = [entry.action for entry in verify_log(Path("analyzer.key.audit"), _key("analyzer"))]
    assert tokens == ["keys made", "token added", "token withdrawn"]
    assert "secret-a" not in Path("analyzer.key.audit").read_text()
    log = Path("owner.key.audit")
    text = log.read_bytes()
    assert b"ecret-" not in text and b"127.0.0.1" not in text and str(tmp_path).encode() not in text
    assert invoke(["collect", "audit", "owner.key.audit", "--key", shown["by"], "--head", head]) == 0
    log.write_bytes(text.split(b"\n", 1)[1])
    assert invoke(["collect", "audit", "owner.key.audit", "--key", shown["by"]]) == 2
    log.write_bytes(b"")
    assert invoke(["collect", "audit", "owner.key.audit", "--key", shown["by"], "--head", head]) == 2
    log.write_bytes(text[:-20] + b"\n")
    before = Path("campaign.toml").read_bytes().replace(b"version = 1\nquestion", b"version = 2\nquestion")
    Path("campaign.toml").write_bytes(before)
    assert invoke(["collect", "sign", "campaign.toml", "--keys", "owner.key"]) == 2
    assert Path("campaign.toml").read_bytes() == before


@pytest.mark.exhaust
def test_servers_log_their_starts_their_tokens_and_what_owners_have_them_close(tmp_path: Path) -> None:
    asked = shuffler_world.campaign(rounds=shuffler_world.BY_HAND, minimum=1)
    (tmp_path / "c.toml").write_bytes(asked.signed)
    shuffler_world.roster().save(tmp_path / "roster.csv")
    for keys in (shuffler_world.SHUFFLER, shuffler_world.ANALYZER, shuffler_world.OWNER):
        save_keys(keys, tmp_path / f"{keys.role}.key")
    common = {"schema_version": 1, "campaigns": ["c.toml"], "audit": "."}
    servers = {"keys": "shuffler.key", "roster": "roster.csv", "analyzer": "http://127.0.0.1:1"}
    config = shuffler_config.ShufflerConfig.model_validate(common | servers)
    service, _ = shuffler_config.assemble(config, tmp_path, FrozenClock(0.0))
    shuffler, owner = service.shuffler, shuffler_world.OWNER.signing
    assert owner
    shuffler.start(0.0)
    shuffler.turn(0.0)
    shuffler.accept([shuffler_world.message(asked, shuffler_world.DEVICES[0])], 0.0)
    for signing in (shuffler_world.DEVICES[0], owner):
        request = owner_request("close", signing, asked.digest, 1, shuffler.challenge("close", "commute", 1, 0.0))
        with contextlib.suppress(Refusal):
            shuffler.close_round("commute", 1, request, 0.0)
    shuffler.stop()
    by = audit_key(shuffler_world.SHUFFLER).verifying_key()
    found = verify_log(tmp_path / "shuffler.key.audit", by)
    assert [(entry.action, entry.facts.get("round")) for entry in found] == [
        ("server started", None),
        ("round closed", 1),
    ]

    marks = []
    for digests in (["0" * 64], ["0" * 64, "1" * 64], ["1" * 64, "0" * 64]):
        (tmp_path / "tokens").write_text("\n".join(f"{digest} somebody" for digest in digests))
        raw = common | {"keys": "analyzer.key", "tokens": "tokens", "audit": "new/audit"}
        analyzer, _ = analyzer_config.assemble(analyzer_config.AnalyzerConfig.model_validate(raw), tmp_path)
        analyzer.store.close()
        key = audit_key(shuffler_world.ANALYZER).verifying_key()
        marks.append(verify_log(tmp_path / "new" / "audit" / "analyzer.key.audit", key)[-1].facts)
    assert [mark["count"] for mark in marks] == [1, 2, 2]
    assert marks[0]["digest"] != marks[1]["digest"] == marks[2]["digest"]
    assert "somebody" not in (tmp_path / "new" / "audit" / "analyzer.key.audit").read_text()
