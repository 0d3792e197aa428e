"""Clock, logs, problems and roster: small parts that both servers share."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.collect import logs
from dovetail.collect import logs as server_log
from dovetail.collect.campaign.roster import LiveRoster, Roster, RosterEntry
from dovetail.collect.clock import FrozenClock, SystemClock
from dovetail.collect.http import STATUS, problem, read_problem
from dovetail.core.errors import ConfigError, DataError, OutputError, ParameterError
from dovetail_protocol.keys import SigningKey

DEVICES = [SigningKey(bytes([number]) * 32).verifying_key() for number in range(1, 6)]


# --- clock ---------------------------------------------------------------------------------------------------------


def test_a_frozen_clock_moves_only_when_told() -> None:
    clock = FrozenClock(100.0)
    assert clock.now() == clock.now() == 100.0
    clock.advance(2.5)
    assert clock.now() == 102.5
    with pytest.raises(ParameterError):
        clock.advance(-1.0)


def test_the_system_clock_runs_on() -> None:
    clock = SystemClock()
    assert 1.6e9 < clock.now() <= clock.now()


# --- problems ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STATUS)
def test_every_problem_is_read_back_as_it_was_written(kind: str) -> None:
    response = problem(kind, "what to do.", retry_after=1.2)
    found = read_problem(bytes(response.body))
    assert found is not None and (found.kind, found.status, found.detail) == (kind, STATUS[kind], "what to do.")
    assert response.status_code == STATUS[kind] and response.media_type == "application/problem+json"
    assert response.headers["retry-after"] == "2"
    assert ("www-authenticate" in response.headers) == (STATUS[kind] == 401)


def test_the_title_of_a_problem_is_words_and_its_type_a_urn() -> None:
    document = json.loads(bytes(problem("second_report", "one per round.").body))
    assert (document["type"], document["title"]) == ("urn:dovetail:problem:second_report", "second report")


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.binary(max_size=200) | DOCUMENTS.map(lambda value: json.dumps(value).encode()))
def test_no_answer_of_a_stranger_breaks_the_reader(body: bytes) -> None:
    assert read_problem(body) is None


def test_an_answer_nested_without_end_is_no_problem_document() -> None:
    assert read_problem(b"[" * 100_000) is None
    assert read_problem(b'{"type": "urn:dovetail:problem:late", "status": 1e999, "detail": ""}') is None


# --- logs ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """A running server's log, taken down again afterwards."""
    root, level = logging.getLogger(), logging.getLogger().level
    before, stream = list(root.handlers), io.StringIO()
    server_log.setup(stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


def test_a_log_line_is_one_json_document_with_the_time_in_minutes(lines: io.StringIO) -> None:
    logs.Log("shuffler.mixing").info("batch released", campaign="meters", round=3, rounds=(2, 3), count=1000)
    found = json.loads(lines.getvalue())
    moment = found.pop("time")
    assert found == {
        "level": "info",
        "from": "shuffler.mixing",
        "event": "batch released",
        "campaign": "meters",
        "round": 3,
        "rounds": [2, 3],
        "count": 1000,
    }
    assert len(moment) == len("2030-01-31T12:00Z")


@pytest.mark.parametrize(
    "fields",
    [
        {"device": 3},
        {"value": 1},
        {"state": str(DEVICES[0])},
        {"state": "10.1.2.3"},
        {"state": "2001:db8::1"},
        {"state": "a sentence"},
        {"kind": b"bytes"},
        {"rounds": ("x",)},
    ],
)
def test_a_field_that_could_tell_raises_in_tests_and_is_left_out_by_a_server(
    fields: dict[str, object], request: pytest.FixtureRequest
) -> None:
    with pytest.raises(ParameterError):
        logs.Log("shuffler").info("report refused", **fields)  # type: ignore[arg-type]
    stream = request.getfixturevalue("lines")
    logs.Log("shuffler").info("report refused", **fields)  # type: ignore[arg-type]
    assert json.loads(stream.getvalue()).keys() == {"time", "level", "from", "event"}


def test_an_event_is_fixed_words(lines: io.StringIO) -> None:
    logs.Log("shuffler").info("report of 10.1.2.3 refused")
    assert json.loads(lines.getvalue())["event"] == "unnamed"


def test_a_fault_is_logged_by_type_and_place_without_its_message(lines: io.StringIO) -> None:
    try:
        raise ValueError("canary 10.1.2.3")
    except ValueError as error:
        logs.Log("analyzer").fault("batch failed", error, batch="ab" * 16)
    found = json.loads(lines.getvalue())
    assert found["error"] == "ValueError" and found["place"].startswith("test_shared.py:")
    assert "canary" not in lines.getvalue() and "10.1.2.3" not in lines.getvalue()


def test_what_libraries_log_is_reduced_to_type_and_place(lines: io.StringIO) -> None:
    library = logging.getLogger("some.library")
    library.info("quiet canary")
    try:
        raise OSError("canary")
    except OSError:
        library.exception("canary of %s", "10.1.2.3")
    assert len(lines.getvalue().splitlines()) == 1
    found = json.loads(lines.getvalue())
    assert (found["from"], found["event"], found["error"]) == ("some.library", "library", "OSError")
    assert "canary" not in lines.getvalue()


# --- roster --------------------------------------------------------------------------------------------------------


def roster() -> Roster:
    return Roster([RosterEntry(DEVICES[0], 4), RosterEntry(DEVICES[1], 0, revoked=True), RosterEntry(DEVICES[2], 2)])


def test_a_roster_says_slots_and_revocations() -> None:
    found = roster()
    assert [found.slot(device) for device in DEVICES[:4]] == [4, 0, 2, None]
    assert [found.is_revoked(device) for device in DEVICES[:4]] == [False, True, False, False]
    assert len(found) == 3 and [entry.slot for entry in found] == [0, 2, 4]


def test_a_roster_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    roster().save(path)
    assert list(Roster.load(path)) == list(roster())
    assert path.read_text().splitlines()[0] == "device,slot,revoked"
    assert [entry.name for entry in tmp_path.iterdir()] == ["roster.csv"]


def test_a_new_device_takes_the_slot_after_all_others_and_a_revoked_one_keeps_its() -> None:
    found = roster().with_devices(DEVICES[3:4])
    assert found.slot(DEVICES[3]) == 5
    gone = found.without_devices(DEVICES[3:4])
    assert gone.is_revoked(DEVICES[3]) and gone.slot(DEVICES[3]) == 5
    with pytest.raises(DataError, match="1 of these devices are in the roster already"):
        gone.with_devices(DEVICES[3:4])
    with pytest.raises(DataError, match="not in the roster"):
        found.without_devices(DEVICES[4:])
    assert Roster([]).with_devices(DEVICES[:1]).slot(DEVICES[0]) == 0


ROW = f"{DEVICES[0]},0,no"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "first row"),
        ("device,slot\n", "first row"),
        (f"device,slot,revoked\n{ROW}\nx,1,no\n", "line 3"),
        (f"device,slot,revoked\n{DEVICES[0]},-1,no\n", "line 2"),
        (f"device,slot,revoked\n{DEVICES[0]},1.0,no\n", "line 2"),
        (f"device,slot,revoked\n{DEVICES[0]},1,maybe\n", "line 2"),
        (f"device,slot,revoked\n{DEVICES[0]},1\n", "line 2: must have 3 columns, got 2"),
        (f"device,slot,revoked\n{ROW}\n{DEVICES[0]},1,no\n", "line 3: .*listed twice"),
        (f"device,slot,revoked\n{ROW}\n{DEVICES[1]},0,no\n", "line 3: .*given to two devices"),
        ('device,slot,revoked\n"x,1,no\n', "line 2: no row that can be read"),
    ],
)
def test_a_bad_roster_is_refused_in_one_line_that_repeats_no_key(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        Roster.load(path)
    message = str(caught.value)
    assert message.startswith(str(path)) and "\n" not in message
    assert str(DEVICES[0]) not in message and "_entry" not in message


def test_a_missing_roster_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no roster"):
        Roster.load(tmp_path / "none.csv")
    with pytest.raises(OutputError):
        roster().save(tmp_path / "no" / "roster.csv")


def test_a_revocation_counts_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    roster().save(path)
    live = LiveRoster(path)
    assert live.current() is live.current() and not live.current().is_revoked(DEVICES[0])
    roster().without_devices(DEVICES[:1]).save(path)
    assert live.current().is_revoked(DEVICES[0])


def test_a_roster_that_has_become_wrong_changes_nothing_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    roster().save(path)
    live = LiveRoster(path)
    path.write_text("nonsense")
    assert len(live.current()) == 3 and live.fault
    path.unlink()
    assert len(live.current()) == 3 and live.fault
    roster().without_devices(DEVICES[:1]).save(path)
    assert live.current().is_revoked(DEVICES[0]) and not live.fault
